"""Type checks of public functions: the decorator `typed` compares arguments with the annotations of the parameters."""

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
# A kind of values that a parameter accepts: a function that returns True for these values, and words for them.
_Kind = tuple[Callable[[Any], bool], str]


def typed(function: Callable[P, R]) -> Callable[P, R]:
  """Returns a function that checks the types of its arguments against its annotations, at every call.

  The function itself checks what annotations can't express: ranges of numbers, names, paths, policies, and elements of
  sequences. A parameter `state` must have the methods of OpenSpiel's states, whatever its annotation.

  Raises:
    ArgumentError: in a call, an argument does not have a type of its annotation; the message names the parameter.
  """
  parameters = tuple(inspect.signature(function).parameters)

  @functools.cache
  def kinds() -> dict[str, list[_Kind]]:
    # Annotations are resolved at the first call, because only then all names in them are imported.
    hints = typing.get_type_hints(function)
    result = {name: list(_kinds(hints[name])) for name in parameters if name in hints}
    if "state" in result:
      result["state"] = [(lambda value: hasattr(value, "current_player"), "a state of the game")]
    return result

  @functools.wraps(function)
  def checked(*args: P.args, **kwargs: P.kwargs) -> R:
    for name, value in (*zip(parameters, args, strict=False), *kwargs.items()):
      accepted = kinds().get(name, [])
      if accepted and not any(accepts(value) for accepts, _ in accepted):
        words = " or ".join(dict.fromkeys(words for _, words in accepted))
        raise errors.ArgumentError(f"{name} must be {words}, not {shortened(value)}.")
    return function(*args, **kwargs)

  return checked


def _kinds(hint: Any) -> Iterator[_Kind]:
  """Yields the kinds of values that a parameter with this annotation accepts."""
  origin = typing.get_origin(hint) or hint
  if origin in (typing.Union, types.UnionType):
    for part in typing.get_args(hint):
      yield from _kinds(part)
  elif hint in (None, types.NoneType):
    yield (lambda value: value is None), "None"
  elif origin is typing.Literal:
    kinds = tuple({type(literal) for literal in typing.get_args(hint)})
    yield (lambda value: isinstance(value, kinds)), "one of " + ", ".join(map(repr, hint.__args__))
  elif hint is bool:
    yield _has_truth, "True or False"
  elif hint in (int, float):
    yield (lambda value: not isinstance(value, np.ndarray) or value.ndim == 0), "a number"
  elif origin is os.PathLike:
    # `arguments.path` refuses other values, with an example of a path in the message.
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
  elif isinstance(origin, type) and _is_checked(origin):
    yield (lambda value: isinstance(value, origin)), f"of type {origin.__name__}"
  else:
    yield (lambda value: True), "anything"


def _has_truth(value: Any) -> bool:
  return not isinstance(value, np.ndarray) or value.size == 1


def _is_series(value: Any) -> bool:
  if isinstance(value, np.ndarray):
    return value.ndim > 0
  return isinstance(value, collections.abc.Iterable)


def _is_checked(kind: type) -> bool:
  """Returns True if arguments must be instances of an annotated class: one of this library or of Python, no protocol.

  Classes of other packages are not checked. Lists pass for NumPy arrays, and strings for games of OpenSpiel.
  """
  is_ours = kind.__module__.startswith("spiel_cfr") or kind.__module__ in sys.stdlib_module_names
  return is_ours and not getattr(kind, "_is_protocol", False) and kind not in (Any, object)
