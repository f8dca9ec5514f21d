"""Checks of what users pass: each returns the value as a plain number, or says what is wrong with it."""

import math
import operator
from typing import Any

from spiel_cfr import errors


def positive_integer(value: Any, name: str) -> int:
  """Returns `value` as an int.

  Raises:
    ArgumentError: it is not a positive integer.
  """
  try:
    number = operator.index(value)
  except TypeError:
    number = 0
  if number < 1 or isinstance(value, bool):
    raise errors.ArgumentError(f"{name} must be a positive integer, not {value!r}.")
  return number


def real_number(
  value: Any, name: str, minimum: float = -math.inf, maximum: float = math.inf
) -> float:
  """Returns `value` as a float.

  Raises:
    ArgumentError: it is not a number from `minimum` to `maximum`.
  """
  try:
    number = float(value) if not isinstance(value, str | bool) else math.nan
  except (TypeError, ValueError):
    number = math.nan
  if not minimum <= number <= maximum:
    raise errors.ArgumentError(
      f"{name} must be a number from {minimum:g} to {maximum:g}, not {value!r}."
    )
  return number
