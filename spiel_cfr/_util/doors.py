"""Doors of public functions: arguments are of the types that annotations name, or are refused by name."""

import collections.abc
import functools
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import numpy as np

from spiel_cfr import errors
from spiel_cfr._util.arguments import shortened

P = ParamSpec("P")
R = TypeVar("R")
# Whether a value will do, and what it should be, in words.
_Kind = tuple[Callable[[Any], bool], str]


def typed(function: Callable[P, R]) -> Callable[P, R]:
  """Checks the arguments of a function against its annotations at every call.

  A number, a name of several and a path are for the function to check, which knows more of them. So are the elements of
  a sequence, and policies. A parameter `state` must have the methods of OpenSpiel's states, whatever its annotation.

  Raises:
    ArgumentError: when called, an argument is of none of the types; the message names the parameter.
  """
  parameters = tuple(inspect.signature(function).parameters)

  @functools.cache
  def kinds() -> dict[str, list[_Kind]]:
    # At the first call, when all that annotations name has been imported.
    hints = typing.get_type_hints(function)
    found = {name: list(_kinds(hints[name])) for name in parameters if name in hints}
    if "state" in found:
      found["state"] = [(lambda value: hasattr(value, "current_player"), "a state of the game")]
    return found

  @functools.wraps(function)
  def checked(*args: P.args, **kwargs: P.kwargs) -> R:
    for name, value in (*zip(parameters, args, strict=False), *kwargs.items()):
      known = kinds().get(name, [])
      if known and not any(fits(value) for fits, _ in known):
        wanted = " or ".join(dict.fromkeys(words for _, words in known))
        raise errors.ArgumentError(f"{name} must be {wanted}, not {shortened(value)}.")
    return function(*args, **kwargs)

  return checked


def _kinds(hint: Any) -> Iterator[_Kind]:
  """Yields the kinds of values that an annotation stands for, each with words for it."""
  origin = typing.get_origin(hint) or hint
  if origin in (typing.Union, types.UnionType):
    for part in typing.get_args(hint):
      yield from _kinds(part)
  elif hint in (None, types.NoneType):
    yield (lambda value: value is None), "None"
  elif origin is typing.Literal:
    kinds = tuple({type(each) for each in typing.get_args(hint)})
    yield (lambda value: isinstance(value, kinds)), "one of " + ", ".join(map(repr, hint.__args__))
  elif hint is bool:
    yield _has_truth, "True or False"
  elif hint in (int, float):
    yield (lambda value: not isinstance(value, np.ndarray) or value.ndim == 0), "a number"
  elif origin is os.PathLike:
    # What is no path is refused where it is read, with an example of one.
    yield (lambda value: True), "a path"
  elif hint is str:
    yield (lambda value: not isinstance(value, np.ndarray | list | dict)), "a text"
  elif origin is collections.abc.Callable:
    yield callable, "a function"
  elif origin in (collections.abc.Sequence, collections.abc.Iterable, list, tuple):
    yield _is_series, "a sequence"
  elif origin in (collections.abc.Mapping, dict):
    yield (lambda value: isinstance(value, collections.abc.Mapping)), "a mapping"
  elif origin is np.ndarray:
    yield (lambda value: isinstance(value, np.ndarray | list | tuple)), "an array"
  elif isinstance(origin, type) and _is_plain(origin):
    yield (lambda value: isinstance(value, origin)), f"of type {origin.__name__}"
  else:
    yield (lambda value: True), "anything"


def _has_truth(value: Any) -> bool:
  return not isinstance(value, np.ndarray) or value.size == 1


def _is_series(value: Any) -> bool:
  if isinstance(value, np.ndarray):
    return value.ndim > 0
  return isinstance(value, collections.abc.Iterable)


def _is_plain(kind: type) -> bool:
  """Returns whether an object must be of a class: one of ours or of Python's, and no protocol.

  Arrays are made of lists too, and games of OpenSpiel of what `load_game` takes.
  """
  is_ours = kind.__module__.startswith("spiel_cfr") or kind.__module__ in sys.stdlib_module_names
  return is_ours and not getattr(kind, "_is_protocol", False) and kind not in (Any, object)
