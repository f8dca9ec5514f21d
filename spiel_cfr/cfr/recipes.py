"""Recipes of solvers: the name of the class or function that made a solver, and its arguments.

Checkpoints and traces keep a recipe as JSON, and `make` follows it. `Solver.__new__` records the recipe of a
constructor, and the decorator `recorded` that of a function that makes solvers.
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
  """The recipe of a solver: a name that `make` knows, and the arguments besides the game."""

  name: str
  arguments: Mapping[str, Any]


# Base classes of the frozen dataclasses that are described by class and fields.
_DESCRIBED: list[type[Any]] = [RegretMinimizer, Schedule]
# The classes and functions that make solvers, by name; of several with one name the last, as in notebooks.
_MAKERS: dict[str, Callable[..., Any]] = {}
# Functions that import more solvers, see `import_later`.
_IMPORTS: list[Callable[[], Any]] = []


def described(base: C) -> C:
  """Decorator of a class: arguments of this class, or of derived classes, are described by class and fields."""
  _DESCRIBED.append(base)
  return base


class recorded(Generic[P, R]):
  """Decorator of functions that make solvers of a game. It sets the solver's `recipe` to a call of the function.

  The functions have the names of OpenSpiel's classes. So `isinstance` recognizes the solvers that they made. An attempt
  to derive a class from them raises an error.
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
  """Returns the recipe of a call of a function or class; missing arguments get their defaults."""
  bound = inspect.signature(make).bind_partial(*arguments, **named)
  bound.apply_defaults()
  return Recipe(
    make.__name__, {key: value for key, value in bound.arguments.items() if key != _GAME}
  )


def register(name: str, make: Callable[..., Any]) -> None:
  """Lets `make` follow recipes of this name."""
  _MAKERS[name] = make


def import_later(imports: Callable[[], Any]) -> None:
  """Lets `make` import more solvers when it meets an unknown name."""
  _IMPORTS.append(imports)


def description(recipe: Recipe) -> dict[str, Any]:
  """Returns a recipe as JSON.

  Raises:
    ArgumentError: an argument can't be written as JSON.
  """
  return {NAME: recipe.name, "arguments": to_json(recipe.arguments)}


def make(description: Mapping[str, Any], game: Any) -> Any:
  """Makes the solver of a recipe that `description` has written, for a game.

  Raises:
    KeyError: no class or function of this name makes solvers.
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
  known = {name: arguments[name] for name in signature.parameters if name in arguments}
  # Arguments may be positional only, or variable in number.
  bound = inspect.BoundArguments(signature, OrderedDict(known))
  return maker(*bound.args, **bound.kwargs)


def _is_recipe(value: Any) -> bool:
  return isinstance(value, dict) and set(value) == {NAME, "arguments"}


def to_json(value: Any) -> Any:
  """Returns an argument as JSON; minimizers and schedules become class and fields, enumerations a name."""
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
  # Arguments of an `__init__` that a derived class wrote itself are not in the fields.
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
  """Returns the argument that `to_json` has written, except solvers; tuples become lists."""
  if isinstance(value, list):
    return [from_json(entry) for entry in value]
  if isinstance(value, dict):
    fields = {name: from_json(entry) for name, entry in value.items() if name != NAME}
    if NAME not in value:
      return fields
    known = {cls.__name__: cls for base in _DESCRIBED for cls in _classes(base)}
    return known[value[NAME]](**fields)
  return value


def _classes(base: type[Any]) -> Iterator[type[Any]]:
  """Yields a class and all derived classes; the classes defined last come last, as in notebooks."""
  yield base
  for child in base.__subclasses__():
    yield from _classes(child)


def as_call(description: Any) -> str:
  """Returns a recipe as JSON in the form of a call."""
  try:
    arguments = [
      f"{name}={as_call(value) if _is_recipe(value) else repr(value)}"
      for name, value in description["arguments"].items()
    ]
    return f"{description[NAME]}({', '.join(arguments)})"
  except (KeyError, TypeError, AttributeError):
    return repr(description)
