"""Checks of arguments: functions that return a value in a plain type, or raise ArgumentError.

Their argument `name` is the name of the checked argument in the error message.
"""

import math
import operator
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors

Float64s: TypeAlias = npt.NDArray[np.float64]

# The largest integer in compiled code.
_MOST = (1 << 63) - 1
# The largest of several weights must be in this range.
_RANGE_OF_WEIGHTS = (1e-100, 1e100)


def positive_integer(value: Any, name: str) -> int:
  """Returns `value` as an int.

  Raises:
    ArgumentError: `value` is not a positive integer below 2^63.
  """
  return integer(value, name, 1)


def integer(value: Any, name: str, minimum: int = -_MOST, maximum: int = _MOST) -> int:
  """Returns `value` as an int.

  Raises:
    ArgumentError: `value` is not an integer from `minimum` to `maximum`.
  """
  try:
    number = None if isinstance(value, bool | np.bool_) else operator.index(value)
  except TypeError:
    number = None
  if number is None or not minimum <= number <= maximum:
    wanted = f"an integer from {minimum} to {maximum}"
    if maximum == _MOST:
      wanted = {1: "a positive integer", 0: "an integer that is not negative"}.get(minimum, wanted)
      if number is not None and number > maximum:
        wanted += " below 2^63"
    raise errors.ArgumentError(f"{name} must be {wanted}, not {shortened(value)}.")
  return number


def positive_number(value: Any, name: str) -> float:
  """Returns `value` as a float.

  Raises:
    ArgumentError: `value` is not a positive, finite number.
  """
  number = _float(value)
  if not 0 < number < math.inf:
    raise errors.ArgumentError(f"{name} must be positive and finite, not {shortened(value)}.")
  return number


def one_of(value: Any, name: str, options: Sequence[str], alternative: str = "") -> None:
  """Checks that `value` is one of several strings.

  Args:
    value: the value.
    name: the name of the argument.
    options: the strings.
    alternative: words that the message adds to the list of options.

  Raises:
    ArgumentError: `value` is not one of the options.
  """
  if not isinstance(value, str) or value not in options:
    names = ", ".join(map(repr, options))
    raise errors.ArgumentError(
      f"{name} must be one of {names}{alternative}, not {shortened(value)}."
    )


def text(value: Any, name: str) -> str:
  """Returns `value`, a string that can be written to a file.

  Raises:
    ArgumentError: `value` is not a string, or has half of a surrogate pair, which UTF-8 can't encode.
  """
  if not isinstance(value, str) or value != value.encode(errors="ignore").decode():
    raise errors.ArgumentError(f"{name} must be a string, not {shortened(value)}.")
  return value


def is_boolean(value: Any) -> bool:
  """Returns whether `value` is True or False, of Python or NumPy, or the integer 0 or 1."""
  return isinstance(value, bool | np.bool_ | int | np.integer) and value in (0, 1)


def boolean(value: Any, name: str) -> bool:
  """Returns `value` as a bool.

  Raises:
    ArgumentError: `value` is not a boolean, see `is_boolean`.
  """
  if not is_boolean(value):
    raise errors.ArgumentError(f"{name} must be True or False, not {shortened(value)}.")
  return bool(value)


def is_built_in(value: object) -> bool:
  """Returns True for an object of a class of this package, False for one of a user's class."""
  return type(value).__module__.partition(".")[0] == __name__.partition(".")[0]


def of_type(value: Any, name: str, kind: type) -> None:
  """Checks that a value is an instance of a class.

  Raises:
    ArgumentError: `value` is not an instance of `kind`.
  """
  if not isinstance(value, kind):
    raise errors.ArgumentError(f"{name} must be of type {kind.__name__}, not {shortened(value)}.")


def precision(value: Any) -> np.dtype[Any]:
  """Returns the NumPy type float64 or float32, given as anything that `np.dtype` takes.

  Raises:
    ArgumentError: `value` is another type, or none.
  """
  try:
    is_valid = value is not None and np.dtype(value) in (np.float32, np.float64)
  except (TypeError, ValueError):
    is_valid = False
  if not is_valid:
    raise errors.ArgumentError(f"dtype must be float64 or float32, not {shortened(value)}.")
  result: np.dtype[Any] = np.dtype(value)
  return result


def real_number(
  value: Any, name: str, minimum: float = -math.inf, maximum: float = math.inf
) -> float:
  """Returns `value` as a float.

  Raises:
    ArgumentError: `value` is not a number from `minimum` to `maximum`.
  """
  number = _float(value)
  if not minimum <= number <= maximum:
    raise errors.ArgumentError(
      f"{name} must be a number from {minimum:zg} to {maximum:zg}, not {shortened(value)}."
    )
  return number


def weights(value: Any, name: str) -> Float64s:
  """Returns weights of any shape, which need not sum to 1, as float64.

  Raises:
    ArgumentError: a weight is negative or no number, or the largest weight is not from 1e-100 to 1e100. Outside that
      range, products of weights and payoffs could overflow or vanish.
  """
  try:
    array = np.array(value)
    # Strings and objects, such as integers beyond 64 bits, are refused.
    result = array.astype(np.float64) if array.dtype.kind in "fiu" else np.zeros(0)
  except (TypeError, ValueError):
    result = np.zeros(0)
  low, high = _RANGE_OF_WEIGHTS
  if not (result.size and (result >= 0).all() and low <= result.max() <= high):
    raise errors.ArgumentError(
      f"{name} must be weights, none negative, the largest from {low:zg} to {high:zg}, not {shortened(value)}."
    )
  return result


def numbers(value: Any, name: str, least: int) -> npt.NDArray[Any]:
  """Returns `value` as a one-dimensional array of numbers or booleans. An array is not copied.

  Raises:
    ArgumentError: `value` is anything else, or has fewer than `least` elements.
  """
  try:
    result = np.asarray(value)
  except (TypeError, ValueError):
    result = np.zeros(())
  if result.dtype.kind not in "fiub" or result.ndim != 1 or len(result) < least:
    raise errors.ArgumentError(f"{name} must be {least} numbers, not {shortened(value)}.")
  return result


def path(value: Any, name: str) -> pathlib.Path:
  """Returns `value` as a path.

  Integers are refused, because `open` takes them for file descriptors, and would close the descriptors later.

  Raises:
    ArgumentError: `value` is neither a string nor an `os.PathLike` of one, is empty, or is not a possible name.
  """
  try:
    usable = isinstance(value, str | os.PathLike) and value != ""
    result = pathlib.Path(value)
    usable = usable and b"\0" not in os.fsencode(result)
  except (TypeError, ValueError):
    usable = False
  if not usable:
    raise errors.ArgumentError(
      f"{name} must be a path, such as 'results/leduc.npz', not {shortened(value)}."
    )
  return result


def pattern(value: Any, name: str) -> re.Pattern[str]:
  """Returns a regular expression in compiled form, given as a string or in compiled form.

  Raises:
    ArgumentError: `value` is not a regular expression for strings.
  """
  try:
    result = re.compile(value)
    result.search("")
  except (re.error, TypeError) as error:
    raise errors.ArgumentError(
      f"{name} must be a regular expression, not {shortened(value)}: {error}."
    ) from error
  return result


def shortened(value: Any) -> str:
  """Returns the `repr` of a value for error messages, cut off after 200 characters."""
  try:
    text = repr(value)
  except ValueError:  # Python refuses to print integers of many digits.
    text = f"an integer of {value.bit_length()} bits"
  return text if len(text) <= 200 else text[:200] + "..."


def _float(value: Any) -> float:
  """Returns `value` as a float; NaN if it is not a number."""
  if isinstance(value, str | bytes | bytearray | bool | np.bool_ | np.ndarray):
    return math.nan
  try:
    return float(value)
  except (TypeError, ValueError, OverflowError):
    return math.nan
