"""State of a solver as one value: conversion to a dictionary and back, for copies, checkpoints and roll-backs.

A state is a dataclass. Its fields are numbers, NumPy random generators, arrays of constant shape or `GROWING`, other
such dataclasses, and tuples of them. The state contains everything that iterations change.
"""

import copy
import dataclasses
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from spiel_cfr import errors

# Floating-point numbers can't distinguish larger numbers of iterations.
MOST_ITERATIONS = 1 << 53
# Metadata of a field with an array whose first axis may become longer. `assign` replaces the array when it grows.
GROWING = types.MappingProxyType({"grows": True})


def as_dict(state: Any) -> dict[str, Any]:
  """Returns copies of a state's values by name. A value of an inner dataclass has the name "field.inner"."""
  return {
    name: copy.deepcopy(value.bit_generator.state)
    if isinstance(value, np.random.Generator)
    else copy.copy(value)
    for name, _, value, _ in _leaves(state)
  }


def assign(state: Any, values: Mapping[str, Any]) -> None:
  """Writes values, as `as_dict` returns them, to a state. Arrays are filled in place: kernels have their addresses."""
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
  """Copies the values of another state of the same solver to `state`, as in a roll-back."""
  values = {
    name: value.bit_generator.state if isinstance(value, np.random.Generator) else value
    for name, _, value, _ in _leaves(source)
  }
  assign(state, values)


def inner_values(values: Mapping[str, Any], name: str) -> dict[str, Any]:
  """Returns the values of an inner state, the field `name`, from the values that `as_dict` returns."""
  prefix = f"{name}."
  return {
    key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)
  }


def check_fits(state: Any, values: Mapping[str, Any], owner: str) -> None:
  """Checks that the values of a checkpoint have the names, types and shapes of the values of a state.

  Args:
    state: the state of a solver.
    values: the values of a checkpoint, in the form of `as_dict`.
    owner: the name of the solver, for messages.

  Raises:
    CheckpointMismatchError: the values are not those of such a solver.
  """
  expected = {name: (value, grows) for name, _, value, grows in _leaves(state)}
  if set(values) != set(expected):
    raise errors.CheckpointMismatchError(
      f"The state of {owner} consists of {sorted(expected)}, but the checkpoint has {sorted(values)}."
    )
  for name, (value, grows) in expected.items():
    new = values[name]
    if grows and isinstance(new, np.ndarray) and new.ndim:
      value, new = value[:0], new[:0]
    if not _fits(value, new):
      raise errors.CheckpointMismatchError(
        f"{name} of {owner} is {_in_words(value)}, but in the checkpoint it is {_in_words(new)}."
      )


def _leaves(state: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any, bool]]:
  """Yields for each value its name in `as_dict`, the dataclass that has the field, the value, and whether it grows."""
  for field in dataclasses.fields(state):
    value = getattr(state, field.name)
    elements = {field.name: value}
    if isinstance(value, tuple):
      elements = {f"{field.name}.{index}": element for index, element in enumerate(value)}
    for name, element in elements.items():
      if dataclasses.is_dataclass(element):
        yield from _leaves(element, f"{prefix}{name}.")
      else:
        yield prefix + name, state, element, field.metadata == GROWING


def _fits(value: Any, new: Any) -> bool:
  """Returns whether `new` has the type of `value` and, for arrays, its shape."""
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
  """Returns the type and shape of a value, for messages."""
  if isinstance(value, np.ndarray):
    return f"an array of {value.dtype} of shape {value.shape}"
  return f"of type {type(value).__name__}"
