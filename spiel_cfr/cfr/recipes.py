"""How a solver was made, in words: the name of a class or function and its arguments, as JSON has them.

Checkpoints and traces keep that, and `make` follows it. `Solver.__new__` notes it of constructors, the decorator
`recorded` of functions that make solvers.
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
  """A name that `make` knows, and the arguments besides the game."""

  name: str
  arguments: Mapping[str, Any]


# What an argument may be that is described by class and fields: frozen dataclasses derived from these.
_DESCRIBED: list[type[Any]] = [RegretMinimizer, Schedule]
# All that makes solvers, by name; of several of one name the last, as in notebooks.
_MAKERS: dict[str, Callable[..., Any]] = {}
# Imports of more solvers, see `import_later`.
_IMPORTS: list[Callable[[], Any]] = []


def described(base: C) -> C:
  """Decorator of a class: arguments of this class, and of those derived from it, are described by class and fields."""
  _DESCRIBED.append(base)
  return base


class recorded(Generic[P, R]):
  """Decorator of functions that make solvers of a game: the solver's `recipe` is then this function.

  The functions have the names of OpenSpiel's classes. So `isinstance` knows what they made, and deriving is refused.
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
  """Returns the recipe of a call of a function or class, whose missing arguments have their defaults."""
  bound = inspect.signature(make).bind_partial(*arguments, **named)
  bound.apply_defaults()
  return Recipe(
    make.__name__, {key: value for key, value in bound.arguments.items() if key != _GAME}
  )


def register(name: str, make: Callable[..., Any]) -> None:
  """Lets recipes of this name be followed."""
  _MAKERS[name] = make


def import_later(imports: Callable[[], Any]) -> None:
  """Has `make` import more solvers when a recipe has a name that is not known yet."""
  _IMPORTS.append(imports)


def description(recipe: Recipe) -> dict[str, Any]:
  """Returns a recipe as JSON has it.

  Raises:
    ArgumentError: an argument can't be written as JSON.
  """
  return {NAME: recipe.name, "arguments": to_json(recipe.arguments)}


def make(description: Mapping[str, Any], game: Any) -> Any:
  """Follows a recipe that `description` has written, for a game.

  Raises:
    KeyError: nothing of that name makes solvers here.
    TypeError: it takes other arguments.
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
  # Some may be positional only, or any number of them.
  bound = inspect.BoundArguments(signature, OrderedDict(known))
  return maker(*bound.args, **bound.kwargs)


def _is_recipe(value: Any) -> bool:
  return isinstance(value, dict) and set(value) == {NAME, "arguments"}


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
  if isinstance(value, Mapping):
    return {name: to_json(entry) for name, entry in value.items()}
  own = vars(type(value))
  # What its own __init__ was given is in no field of the base class.
  is_made_of_fields = "__init__" not in own or "__dataclass_fields__" in own
  if isinstance(value, tuple(_DESCRIBED)) and dataclasses.is_dataclass(value) and is_made_of_fields:
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {NAME: type(value).__name__} | to_json(fields)
  recipe = getattr(value, "recipe", None)
  if isinstance(recipe, Recipe):
    return description(recipe)
  advice = " Make it a frozen dataclass." if isinstance(value, tuple(_DESCRIBED)) else ""
  raise errors.ArgumentError(f"{value!r} can't be kept in a checkpoint.{advice}")


def from_json(value: Any) -> Any:
  """Reads what `to_json` has written, but for solvers; tuples have become lists."""
  if isinstance(value, list):
    return [from_json(entry) for entry in value]
  if isinstance(value, dict):
    fields = {name: from_json(entry) for name, entry in value.items() if name != NAME}
    if NAME not in value:
      return fields
    known = {each.__name__: each for base in _DESCRIBED for each in _classes(base)}
    return known[value[NAME]](**fields)
  return value


def _classes(base: type[Any]) -> Iterator[type[Any]]:
  """Yields a class and all that are derived from it; those defined last come last, as in notebooks."""
  yield base
  for child in base.__subclasses__():
    yield from _classes(child)


def as_call(description: Any) -> str:
  """Returns what `description` returns as a call."""
  try:
    arguments = [
      f"{name}={as_call(value) if _is_recipe(value) else repr(value)}"
      for name, value in description["arguments"].items()
    ]
    return f"{description[NAME]}({', '.join(arguments)})"
  except (KeyError, TypeError, AttributeError):
    return repr(description)
