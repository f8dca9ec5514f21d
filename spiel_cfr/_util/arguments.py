"""Checks of arguments: each returns the value in a plain type, or raises ArgumentError."""

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

# The largest integer of compiled code.
_MOST = (1 << 63) - 1
# The range of the largest of several weights.
_WEIGHTS = (1e-100, 1e100)


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


def one_of(value: Any, name: str, known: Sequence[str], more: str = "") -> None:
  """Checks that `value` is one of the known names; `more` is added to them in the message.

  Raises:
    ArgumentError: `value` is not a known name.
  """
  if not isinstance(value, str) or value not in known:
    names = ", ".join(map(repr, known))
    raise errors.ArgumentError(f"{name} must be one of {names}{more}, not {shortened(value)}.")


def text(value: Any, name: str) -> str:
  """Returns `value`, a string that files can have.

  Raises:
    ArgumentError: it is not a string, or has half a surrogate pair, which UTF-8 has no bytes for.
  """
  if not isinstance(value, str) or value != value.encode(errors="ignore").decode():
    raise errors.ArgumentError(f"{name} must be a text, not {shortened(value)}.")
  return value


def of_type(value: Any, name: str, kind: type) -> None:
  """Checks that a value is an instance of a class.

  Raises:
    ArgumentError: `value` is not.
  """
  if not isinstance(value, kind):
    raise errors.ArgumentError(f"{name} must be of type {kind.__name__}, not {shortened(value)}.")


def precision(value: Any) -> np.dtype[Any]:
  """Returns float64 or float32 as a NumPy type, given in any form; raises ArgumentError for other types."""
  try:
    known = value is not None and np.dtype(value) in (np.float32, np.float64)
  except (TypeError, ValueError):
    known = False
  if not known:
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
  """Returns weights in any unit, of any shape, as float64.

  Raises:
    ArgumentError: a weight is no number or negative, or the largest is not from 1e-100 to 1e100. Products of larger
      weights with each other and with payoffs could overflow, those of smaller weights vanish.
  """
  try:
    given = np.array(value)
    # Numbers only: strings and objects, such as integers beyond 64 bits, are refused.
    result = given.astype(np.float64) if given.dtype.kind in "fiu" else np.zeros(0)
  except (TypeError, ValueError):
    result = np.zeros(0)
  low, high = _WEIGHTS
  if not (result.size and (result >= 0).all() and low <= result.max() <= high):
    raise errors.ArgumentError(
      f"{name} must be weights, none negative, the largest from {low:zg} to {high:zg}, not {shortened(value)}."
    )
  return result


def numbers(value: Any, name: str, least: int) -> npt.NDArray[Any]:
  """Returns `value` as an array of numbers or of booleans with at least `least` elements, without a copy of an array.

  Raises:
    ArgumentError: `value` is anything else.
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

  Integers are refused, since `open` takes them for file descriptors and closes these.

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
  """Returns `value`, a regular expression or its compiled form, in compiled form.

  Raises:
    ArgumentError: `value` is no regular expression of strings.
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
  """Returns the `repr` of a value for messages, at most 200 characters of it."""
  try:
    text = repr(value)
  except ValueError:  # Python does not write integers of many digits.
    text = f"an integer of {value.bit_length()} bits"
  return text if len(text) <= 200 else text[:200] + "..."


def _float(value: Any) -> float:
  """Returns `value` as a float; NaN if it is no number."""
  if isinstance(value, str | bytes | bytearray | bool | np.bool_ | np.ndarray):
    return math.nan
  try:
    return float(value)
  except (TypeError, ValueError, OverflowError):
    return math.nan
