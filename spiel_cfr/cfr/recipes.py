"""Recipes of solvers: the class or function that made a solver, and its arguments, from which it can be made again.

Checkpoints and traces keep a recipe as JSON. `make` makes the solver of a recipe. `Solver.__new__` records the recipe
of each solver; the decorator `recorded` marks functions that make solvers and records the call of the function instead.
"""

import dataclasses
import enum
import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, NoReturn, ParamSpec, TypeVar

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Schedule

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type[Any])

NAME = "class"
_GAME = "game"


class Recipe(NamedTuple):
  """The recipe of a solver: the name of its class or function, and the arguments besides the game, by name."""

  name: str
  arguments: Mapping[str, Any]


# Base classes of arguments that JSON describes by class and fields. Such arguments are frozen dataclasses.
_DESCRIBED: list[type[Any]] = [RegretMinimizer, Schedule]
# Classes and functions that make solvers, by name. A later definition replaces an earlier one, as in notebooks.
_MAKERS: dict[str, Callable[..., Any]] = {}
# Functions that import more solvers, see `import_later`.
_IMPORTS: list[Callable[[], Any]] = []


def described_by_fields(base: C) -> C:
  """Decorator of a base class. JSON describes arguments of this class, or of a derived one, by class and fields."""
  _DESCRIBED.append(base)
  return base


class recorded(Generic[P, R]):
  """Decorator of functions that make solvers. It records a call of the function as the solver's `recipe`.

  Many functions have names of OpenSpiel's classes. `isinstance(solver, CFRSolver)` therefore works. Deriving a class
  from such a function raises an error.
  """

  def __init__(self, make: Callable[P, R]) -> None:
    functools.update_wrapper(self, make)
    self._make = make
    self._name = make.__name__
    register(self._name, self)

  def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
    result = self._make(*arguments, **named)
    solver: Any = result
    solver.recipe = recipe_of(self._make, arguments, named)
    return result

  def __instancecheck__(self, solver: object) -> bool:
    recipe = getattr(solver, "recipe", None)
    return isinstance(recipe, Recipe) and recipe.name == self._name

  def __mro_entries__(self, bases: tuple[Any, ...]) -> NoReturn:
    raise errors.ArgumentError(
      f"{self._name} is a function that configures a solver, and can't be derived from. Give FullWidthSolver a "
      "RegretMinimizer of your own instead, or derive from spiel_cfr.Solver: docs/extending.md shows how."
    )

  def __reduce__(self) -> str:
    return self._name

  def __repr__(self) -> str:
    return f"<function {self._name}>"


def recipe_of(
  make: Callable[..., Any], arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> Recipe:
  """Returns the recipe of a call of a function or class, with the defaults of missing arguments."""
  bound = inspect.signature(make).bind_partial(*arguments, **named)
  bound.apply_defaults()
  return Recipe(
    make.__name__, {key: value for key, value in bound.arguments.items() if key != _GAME}
  )


def register(name: str, make: Callable[..., Any]) -> None:
  """Makes a class or function available to `make` by name."""
  _MAKERS[name] = make


def import_later(imports: Callable[[], Any]) -> None:
  """Registers a function that imports more solvers. `make` calls it before it gives up on an unknown name."""
  _IMPORTS.append(imports)


def description(recipe: Recipe) -> dict[str, Any]:
  """Returns a recipe in the form of JSON.

  Raises:
    ArgumentError: an argument can't be written as JSON.
  """
  return {NAME: recipe.name, "arguments": to_json(recipe.arguments)}


def make(description: Mapping[str, Any], game: Any) -> Any:
  """Makes the solver of a recipe, in the form that the function `description` returns, for a game.

  Raises:
    KeyError: no solver has this name.
    TypeError: the class or function takes other arguments.
  """
  while description[NAME] not in _MAKERS and _IMPORTS:
    _IMPORTS.pop()()
  maker = _MAKERS[description[NAME]]
  signature = inspect.signature(maker)
  arguments = {_GAME: game} if _GAME in signature.parameters else {}
  for name, value in description["arguments"].items():
    arguments[name] = make(value, game) if _is_recipe(value) else from_json(value)
  if not arguments.keys() <= signature.parameters.keys():
    raise TypeError(f"it takes {', '.join(signature.parameters)}")
  in_order = {name: arguments[name] for name in signature.parameters if name in arguments}
  # Arguments may be positional only, or variable in number.
  bound = inspect.BoundArguments(signature, OrderedDict(in_order))
  return maker(*bound.args, **bound.kwargs)


def _is_recipe(value: Any) -> bool:
  return isinstance(value, dict) and set(value) == {NAME, "arguments"}


def to_json(value: Any) -> Any:
  """Returns an argument in the form of JSON: minimizers and schedules as class and fields, enumerations as a name."""
  if isinstance(value, np.generic | np.ndarray):
    return value.tolist()
  if isinstance(value, bool | int | float | str | None):
    return value
  if isinstance(value, enum.Enum | pyspiel.MCCFRAverageType):
    return value.name
  if isinstance(value, list | tuple):
    return [to_json(entry) for entry in value]
  if isinstance(value, Mapping):
    return {name: to_json(entry) for name, entry in value.items()}
  attributes = vars(type(value))
  # The arguments of a hand-written `__init__` need not be fields.
  is_made_of_fields = "__init__" not in attributes or "__dataclass_fields__" in attributes
  if isinstance(value, tuple(_DESCRIBED)) and dataclasses.is_dataclass(value) and is_made_of_fields:
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {NAME: type(value).__name__} | to_json(fields)
  recipe = getattr(value, "recipe", None)
  if isinstance(recipe, Recipe):
    return description(recipe)
  advice = " Make it a frozen dataclass." if isinstance(value, tuple(_DESCRIBED)) else ""
  raise errors.ArgumentError(f"{value!r} can't be kept in a checkpoint.{advice}")


def from_json(value: Any) -> Any:
  """Returns an argument from its form of JSON by `to_json`; tuples become lists. `make` reads solvers."""
  if isinstance(value, list):
    return [from_json(entry) for entry in value]
  if isinstance(value, dict):
    fields = {name: from_json(entry) for name, entry in value.items() if name != NAME}
    if NAME not in value:
      return fields
    classes = {cls.__name__: cls for base in _DESCRIBED for cls in _classes(base)}
    return classes[value[NAME]](**fields)
  return value


def _classes(base: type[Any]) -> Iterator[type[Any]]:
  """Yields a class and all derived classes. A later definition of a name comes later, as in notebooks."""
  yield base
  for child in base.__subclasses__():
    yield from _classes(child)


def as_call(description: Any) -> str:
  """Returns a recipe in the form of JSON as the text of a call, for messages."""
  try:
    arguments = [
      f"{name}={as_call(value) if _is_recipe(value) else repr(value)}"
      for name, value in description["arguments"].items()
    ]
    return f"{description[NAME]}({', '.join(arguments)})"
  except (KeyError, TypeError, AttributeError):
    return repr(description)
