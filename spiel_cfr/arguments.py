"""Checks of what users pass: each returns the value as a plain number, or says what is wrong with it."""

import math
import operator
from collections.abc import Sequence
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


def positive_number(value: Any, name: str) -> float:
  """Returns `value` as a float.

  Raises:
    ArgumentError: it is not a positive, finite number.
  """
  number = _float(value)
  if not 0 < number < math.inf:
    raise errors.ArgumentError(f"{name} must be positive and finite, not {value!r}.")
  return number


def one_of(value: Any, name: str, known: Sequence[str], more: str = "") -> None:
  """Checks that `value` is one of the known names; `more` says what else it might have been.

  Raises:
    ArgumentError: it is not.
  """
  if value not in known:
    names = ", ".join(map(repr, known))
    raise errors.ArgumentError(f"{name} must be one of {names}{more}, not {value!r}.")


def real_number(
  value: Any, name: str, minimum: float = -math.inf, maximum: float = math.inf
) -> float:
  """Returns `value` as a float.

  Raises:
    ArgumentError: it is not a number from `minimum` to `maximum`.
  """
  number = _float(value)
  if not minimum <= number <= maximum:
    raise errors.ArgumentError(
      f"{name} must be a number from {minimum:g} to {maximum:g}, not {value!r}."
    )
  return number


def _float(value: Any) -> float:
  """NaN for what is no number."""
  try:
    return float(value) if not isinstance(value, str | bool) else math.nan
  except (TypeError, ValueError):
    return math.nan
