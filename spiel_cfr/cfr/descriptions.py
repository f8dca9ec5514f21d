"""Solvers in words: the class and the arguments of the constructor as JSON, as checkpoints and traces have them."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Schedule

CLASS = "class"


class Described:
  """What is described by class and fields when it is an argument: frozen dataclasses derived from it."""


# What an argument may be that is described so.
_DESCRIBED = (RegretMinimizer, Schedule, Described)


def newest_class(bases: Sequence[type[Any]], name: str) -> Any:
  """Returns the class of that name, of `bases` or derived from one; of several the one defined last, as in notebooks.

  Raises:
    KeyError: there is none.
  """
  known = {base.__name__: base for base in bases}
  unseen = [*bases]
  while unseen:
    children = unseen.pop().__subclasses__()
    known.update((child.__name__, child) for child in children)
    unseen += children
  return known[name]


def to_json(value: Any) -> Any:
  """Writes an argument as JSON has it; minimizers and schedules become class and fields, enumerations a name."""
  if isinstance(value, np.generic | np.ndarray):
    return value.tolist()
  if isinstance(value, bool | int | float | str | None):
    return value
  if isinstance(value, enum.Enum | pyspiel.MCCFRAverageType):
    return value.name
  if isinstance(value, list | tuple):
    return [to_json(entry) for entry in value]
  if isinstance(value, dict):
    return {name: to_json(entry) for name, entry in value.items()}
  if isinstance(value, _DESCRIBED) and dataclasses.is_dataclass(value):
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {CLASS: type(value).__name__} | to_json(fields)
  raise errors.ArgumentError(f"{value!r} can't be kept in a checkpoint.")


def from_json(value: Any) -> Any:
  """Reads what `to_json` has written; tuples have become lists."""
  if isinstance(value, list):
    return [from_json(entry) for entry in value]
  if isinstance(value, dict):
    fields = {name: from_json(entry) for name, entry in value.items() if name != CLASS}
    return newest_class(_DESCRIBED, value[CLASS])(**fields) if CLASS in value else fields
  return value


def signature(description: Any) -> str:
  """Returns what `Solver.description` returns as a call."""
  try:
    arguments = [f"{name}={value!r}" for name, value in description["arguments"].items()]
    if "solver" in description:
      arguments.insert(0, signature(description["solver"]))
    return f"{description[CLASS]}({', '.join(arguments)})"
  except (KeyError, TypeError, AttributeError):
    return repr(description)


def split_by_place(state: Mapping[str, Any], *places: str) -> list[dict[str, Any]]:
  """Returns what of a state has a name without a place, and then, for each place, what is called "place.name"."""
  nested: dict[str, dict[str, Any]] = {place: {} for place in ("", *places)}
  for name, value in state.items():
    place, dot, inner = name.partition(".")
    nested[place if dot and place in nested else ""][inner if dot else name] = value
  return list(nested.values())
