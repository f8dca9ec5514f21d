"""Type checks of public functions: the decorator `typed` compares arguments with the annotations of the parameters.

A wrong argument then raises an `ArgumentError` that names the parameter, instead of an error deep in the library.
"""

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
from spiel_cfr._util.arguments import is_boolean, shortened

P = ParamSpec("P")
R = TypeVar("R")
# A type that a parameter accepts: a function that returns whether a value has it, and its description for messages.
_AcceptedType = tuple[Callable[[Any], bool], str]


def typed(function: Callable[P, R]) -> Callable[P, R]:
  """Returns a function that checks the types of its arguments against its annotations, at every call.

  The function itself checks what annotations can't express: ranges of numbers, names, paths, policies, and elements of
  sequences. An argument for a parameter called `state` must have a method `current_player`, as OpenSpiel's states do,
  whatever the annotation says.

  Raises:
    ArgumentError: in a call, the annotation of a parameter does not allow the type of its argument.
  """
  parameters = tuple(inspect.signature(function).parameters)

  @functools.cache
  def accepted_types() -> dict[str, list[_AcceptedType]]:
    # Annotations are resolved at the first call. At decoration, their module is still being imported, and names in them
    # may not be defined yet.
    hints = typing.get_type_hints(function)
    result = {name: list(_accepted_types(hints[name])) for name in parameters if name in hints}
    if "state" in result:
      result["state"] = [(lambda value: hasattr(value, "current_player"), "a state of the game")]
    return result

  @functools.wraps(function)
  def checked(*args: P.args, **kwargs: P.kwargs) -> R:
    for name, value in (*zip(parameters, args, strict=False), *kwargs.items()):
      accepted = accepted_types().get(name, [])
      if accepted and not any(accepts(value) for accepts, _ in accepted):
        description = " or ".join(dict.fromkeys(description for _, description in accepted))
        raise errors.ArgumentError(f"{name} must be {description}, not {shortened(value)}.")
    return function(*args, **kwargs)

  return checked


def _accepted_types(hint: Any) -> Iterator[_AcceptedType]:
  """Yields the types that a parameter with the annotation `hint` accepts."""
  origin = typing.get_origin(hint) or hint
  if origin in (typing.Union, types.UnionType):
    for part in typing.get_args(hint):
      yield from _accepted_types(part)
  elif hint in (None, types.NoneType):
    yield (lambda value: value is None), "None"
  elif origin is typing.Literal:
    types_of_literals = tuple({type(literal) for literal in typing.get_args(hint)})
    yield (
      (lambda value: isinstance(value, types_of_literals)),
      "one of " + ", ".join(map(repr, hint.__args__)),
    )
  elif hint is bool:
    yield is_boolean, "True or False"
  elif hint in (int, float):
    yield (lambda value: not isinstance(value, np.ndarray) or value.ndim == 0), "a number"
  elif origin is os.PathLike:
    # `arguments.path` refuses other values, with an example of a path in the message.
    yield (lambda value: True), "a path"
  elif hint is str:
    yield (lambda value: not isinstance(value, np.ndarray | list | dict)), "a string"
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


def _is_series(value: Any) -> bool:
  """Returns whether a value can be iterated over, and is neither a string nor an array without dimensions."""
  if isinstance(value, np.ndarray):
    return value.ndim > 0
  return isinstance(value, collections.abc.Iterable) and not isinstance(value, str | bytes)


def _is_checked(kind: type) -> bool:
  """Returns True if arguments must be instances of an annotated class.

  That holds for classes of this library and of Python's standard library, except protocols. Classes of other packages
  are not checked here, because values of other types may stand for their instances: a string for a game of OpenSpiel.
  """
  package = kind.__module__.partition(".")[0]
  is_known = package == "spiel_cfr" or package in sys.stdlib_module_names
  return is_known and not getattr(kind, "_is_protocol", False) and kind not in (Any, object)
