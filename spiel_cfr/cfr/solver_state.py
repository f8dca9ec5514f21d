"""The state of a solver as one value: copies, checkpoints, roll-backs and comparisons.

The value is a dataclass. Its fields are arrays of constant shape or `GROWING`, numbers, NumPy random generators,
dataclasses of these, and tuples of such dataclasses. Everything else of a solver never changes.
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
  """Returns copies of the values of a state by field; values of a state inside it as "field.inner"."""
  return {
    name: copy.deepcopy(value.bit_generator.state)
    if isinstance(value, np.random.Generator)
    else copy.copy(value)
    for name, _, value, _ in _leaves(state)
  }


def assign(state: Any, values: Mapping[str, Any]) -> None:
  """Gives a state the values of `as_dict`. Arrays are written to in place, since compiled code has their addresses."""
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
  """Gives a state the values of another state of the same solver, as in a roll-back."""
  values = {
    name: value.bit_generator.state if isinstance(value, np.random.Generator) else value
    for name, _, value, _ in _leaves(source)
  }
  assign(state, values)


def inside(values: Mapping[str, Any], name: str) -> dict[str, Any]:
  """Returns the values of the state in a field, out of those of `as_dict`."""
  prefix = f"{name}."
  return {
    key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)
  }


def check_fits(state: Any, values: Mapping[str, Any], owner: str) -> None:
  """Checks that values have the names, types and shapes of those of a state.

  Raises:
    CheckpointMismatchError: the values are of another solver, or of none.
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
    CheckpointMismatchError: `new` is of another type, or an array of another shape.
  """
  if not _fits(value, new):
    raise errors.CheckpointMismatchError(f"{name} is {_in_words(value)}, not {_in_words(new)}.")


def _leaves(state: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any, bool]]:
  """Yields a name as in `as_dict`, the dataclass that has the field, the value itself, and whether it grows."""
  for field in dataclasses.fields(state):
    value = getattr(state, field.name)
    named = {field.name: value}
    if isinstance(value, tuple):
      named = {f"{field.name}.{n}": element for n, element in enumerate(value)}
    for name, element in named.items():
      if dataclasses.is_dataclass(element):
        yield from _leaves(element, f"{prefix}{name}.")
      else:
        yield prefix + name, state, element, field.metadata == GROWING


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
