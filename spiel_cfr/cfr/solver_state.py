"""A solver's state is one value, and to copy, keep, restore, roll back or compare it is one function each.

The value is a dataclass whose fields are arrays that keep their shape or are `GROWING`, numbers, NumPy random
generators, and dataclasses of these or tuples of such. All else that a solver is never changes.
"""

import copy
import dataclasses
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from spiel_cfr import errors

# Metadata of the field of an array whose first axis may become longer. It is replaced, not written to.
GROWING = types.MappingProxyType({"grows": True})


def as_dict(state: Any) -> dict[str, Any]:
  """Returns copies of all that a state holds, by field; those of a state inside it as "field.inner"."""
  return {
    name: copy.deepcopy(value.bit_generator.state)
    if isinstance(value, np.random.Generator)
    else copy.copy(value)
    for name, _, value, _ in _leaves(state)
  }


def assign(state: Any, values: Mapping[str, Any]) -> None:
  """Makes a state what `as_dict` has returned. Arrays are written to in place, because compiled code knows them."""
  for name, owner, value, _ in _leaves(state):
    if isinstance(value, np.ndarray) and value.shape == values[name].shape:
      np.copyto(value, values[name])
    elif isinstance(value, np.ndarray):
      setattr(owner, name.rpartition(".")[2], np.array(values[name]))
    elif isinstance(value, np.random.Generator):
      value.bit_generator.state = values[name]
    else:
      setattr(owner, name.rpartition(".")[2], values[name])


def copy_into(state: Any, source: Any) -> None:
  """Makes a state what another one is, of the same solver: a roll-back is this, from one that was set aside."""
  values = {
    name: value.bit_generator.state if isinstance(value, np.random.Generator) else value
    for name, _, value, _ in _leaves(source)
  }
  assign(state, values)


def inside(values: Mapping[str, Any], name: str) -> dict[str, Any]:
  """Returns the part of what `as_dict` has returned that is of the state in a field."""
  prefix = f"{name}."
  return {
    key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)
  }


def check_fits(state: Any, values: Mapping[str, Any], owner: str) -> None:
  """Checks that values have the names, types and shapes of a state's.

  Raises:
    CheckpointMismatchError: they are of another solver, or of none.
  """
  expected = {name: (value, grows) for name, _, value, grows in _leaves(state)}
  if set(values) != set(expected):
    raise errors.CheckpointMismatchError(
      f"{owner} consists of {sorted(expected)}, not of {sorted(values)}."
    )
  for name, (value, grows) in expected.items():
    new = values[name]
    if grows and isinstance(new, np.ndarray) and new.ndim:
      value, new = value[:0], new[:0]
    check_kind(f"{name} of {owner}", value, new)


def check_kind(name: str, value: Any, new: Any) -> None:
  """Checks that `new`, as `as_dict` returns it, can take the place of `value`.

  Raises:
    CheckpointMismatchError: it is of another type, or an array of another shape.
  """
  if not _fits(value, new):
    raise errors.CheckpointMismatchError(f"{name} is {_in_words(value)}, not {_in_words(new)}.")


def _leaves(state: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any, bool]]:
  """Yields names as in `as_dict`, the dataclass that has the field, what is there itself, and whether it grows."""
  for field in dataclasses.fields(state):
    value = getattr(state, field.name)
    several = isinstance(value, tuple)
    named = (
      {f"{field.name}.{n}": each for n, each in enumerate(value)}
      if several
      else {field.name: value}
    )
    for name, each in named.items():
      if dataclasses.is_dataclass(each):
        yield from _leaves(each, f"{prefix}{name}.")
      else:
        yield prefix + name, state, each, field.metadata == GROWING


def _fits(value: Any, new: Any) -> bool:
  if isinstance(value, np.ndarray):
    return isinstance(new, np.ndarray) and (new.shape, new.dtype) == (value.shape, value.dtype)
  if isinstance(value, np.random.Generator):
    try:
      type(value.bit_generator)().state = new
    except (ValueError, TypeError, KeyError, IndexError, OverflowError):
      return False
    return True
  return isinstance(new, type(value)) and isinstance(new, bool) == isinstance(value, bool)


def _in_words(value: Any) -> str:
  if isinstance(value, np.ndarray):
    return f"an array of {value.dtype} of shape {value.shape}"
  return f"of type {type(value).__name__}"
