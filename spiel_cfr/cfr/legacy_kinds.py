"""Temporary."""

from typing import Any

import numpy as np

from spiel_cfr import errors


def check_kind(name: str, value: Any, new: Any) -> None:
  """Checks that `new` can take the place of `value`.

  Raises:
    CheckpointMismatchError: it can't.
  """
  expected = dict if isinstance(value, np.random.Generator) else type(value)
  fits = isinstance(new, expected) and isinstance(new, bool) == isinstance(value, bool)
  if fits and isinstance(value, np.ndarray):
    fits = (new.shape, new.dtype) == (value.shape, value.dtype)
  if fits and isinstance(value, np.random.Generator):
    fits = _is_state_of(value, new)
  if not fits:
    raise errors.CheckpointMismatchError(f"{name} is {_in_words(value)}, not {_in_words(new)}.")


def _is_state_of(generator: np.random.Generator, state: Any) -> bool:
  try:
    type(generator.bit_generator)().state = state
  except (ValueError, TypeError, KeyError, IndexError, OverflowError):
    return False
  return True


def _in_words(value: Any) -> str:
  if isinstance(value, np.ndarray):
    return f"an array of {value.dtype} of shape {value.shape}"
  return f"of type {type(value).__name__}"
