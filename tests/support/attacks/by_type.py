"""Arguments that are not what a parameter's annotation says, and twins: others that mean the same as a plain one."""

import dataclasses
import fractions
import functools
import itertools
import math
import os
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import public_api
import pyspiel

import spiel_cfr
from attacks.outcomes import Attack
from attacks.targets import OF_A_GAME, Target, targets

_THREE = "kuhn_poker(players=3)"


class _Anything:
  """A class of anything: as a function, it fails at no argument."""

  def __init__(self, *given: object) -> None:
    pass


class _Text(str):
  """A string of a class of its own."""


def _cycle() -> list[Any]:
  result: list[Any] = [0.5]
  result.append(result)
  return result


@functools.cache
def _stranger() -> spiel_cfr.Solver:
  """A solver of a game whose infostate strings are among those of Kuhn poker for two."""
  return spiel_cfr.CFRSolver(_THREE)


# By name, a factory of an argument that may be given for any parameter.
HOSTILE: dict[str, Callable[[], Any]] = {
  "None": lambda: None,
  "NaN": lambda: math.nan,
  "inf": lambda: math.inf,
  "-inf": lambda: -math.inf,
  "1e308": lambda: 1e308,
  "5e-324": lambda: 5e-324,
  "10**400": lambda: 10**400,
  "2**63": lambda: 2**63,
  "-1": lambda: -1,
  "0": lambda: 0,
  "True": lambda: True,
  "False": lambda: False,
  "1j": lambda: 1j,
  '""': str,
  "'x'": lambda: "x",
  "a surrogate": lambda: "\ud800",
  "a zero byte": lambda: "a\0b",
  "a long name": lambda: "x" * 5000,
  "bytes": lambda: b"x",
  "[]": list,
  "[None]": lambda: [None],
  "['x', 1]": lambda: ["x", 1],
  "{}": dict,
  "{None: None}": lambda: {None: None},
  "a list in itself": _cycle,
  "an iterator": lambda: iter([0.5]),
  "object()": object,
  "a class": lambda: _Anything,
  "a function": lambda: lambda *given: None,
  "an empty array": lambda: np.zeros(0),
  "an array of NaN": lambda: np.full(3, np.nan),
  "an array of shape (2, 2, 2)": lambda: np.ones((2, 2, 2)),
  "an array of texts": lambda: np.array(["x", "y"]),
  "an array of objects": lambda: np.array([None, 10**400]),
  "an array of -1": lambda: np.full(12, -1.0),
  "a number in an array": lambda: np.array(1.0),
  "a state of chess": lambda: pyspiel.load_game("chess").new_initial_state(),
  "a game": lambda: pyspiel.load_game("chess"),
}
# What is for another game; right for no parameter that has a policy, a solver or a state of Kuhn poker for two.
FOREIGN: dict[str, Callable[[], Any]] = {
  "a solver of another game": _stranger,
  "a policy of another game": lambda: _stranger().average_policy(),
  "a state of another game": lambda: pyspiel.load_game(_THREE).new_initial_state(),
  "a compiled game for three": lambda: spiel_cfr.compile_game(_THREE),
}


def attacks(rng: np.random.Generator) -> Iterator[Attack]:
  """Yields every parameter with every argument, in a random order."""
  pairs = list(itertools.product(targets(), [*HOSTILE, *FOREIGN, "twins"]))
  for place in rng.permutation(len(pairs)).tolist():
    target, name = pairs[place]
    if name == "twins":
      yield _attack(target, name, functools.partial(_with_twins, target))
    elif name in FOREIGN:
      yield _attack(target, name, functools.partial(_with_foreign, target, FOREIGN[name]))
    else:
      yield _attack(target, name, functools.partial(_with_hostile, target, HOSTILE[name]))


def _attack(target: Target, name: str, strike: Callable[[], str | None]) -> Attack:
  return Attack(target.room, f"{target.case.name} = {name}", strike)


def _with_hostile(target: Target, make: Callable[[], Any]) -> str:
  function, named = target.call()
  # A hostile accuracy may be out of reach, and chess is larger than any limit.
  limits: dict[str, Any] = {"seconds": 1.0, "max_infosets": 10_000}
  named |= {name: limits[name] for name in limits.keys() & public_api.hints_of(function).keys()}
  value = make()
  result = used(function(**named | {target.case.parameter: value}))
  if not fits(value, target.hint):
    return f"accepted, and made {_shown(result)}"
  return odd(result)


def _with_foreign(target: Target, make: Callable[[], Any]) -> str | None:
  function, named = target.call()
  plain, value = named.get(target.case.parameter), make()
  holder = getattr(function, "__self__", None)
  known_game = "game" in named or any(hasattr(holder, name) for name in ("compiled_game", "tree"))
  meets = known_game and "rule" not in named and isinstance(plain, OF_A_GAME)
  # Another game for a policy of this one.
  others = [each for name, each in named.items() if name != target.case.parameter]
  is_game = isinstance(value, spiel_cfr.CompiledGame) and target.case.parameter == "game"
  meets |= is_game and any(isinstance(each, OF_A_GAME) for each in others)
  if not meets:
    return None
  return f"accepted, and made {_shown(used(function(**named | {target.case.parameter: value})))}"


def _with_twins(target: Target) -> str | None:
  """Compares what a plain argument makes with what others make that mean the same."""
  function, named = target.call()
  if target.case.parameter not in named:
    return None
  twins = list(_twins(named[target.case.parameter]))
  if not twins:
    return None
  np.random.seed(0)  # noqa: NPY002
  plain = used(function(**named))
  for twin in twins:
    function, named = target.call()
    np.random.seed(0)  # noqa: NPY002
    other = used(function(**named | {target.case.parameter: twin}))
    if not same(plain, other):
      return f"{twin!r} makes {_shown(other)}, the plain argument {_shown(plain)}"
  return ""


def _twins(value: Any) -> Iterator[Any]:
  if isinstance(value, bool):
    return
  if isinstance(value, int):
    yield np.int64(value)
    yield np.uint8(value)
  elif isinstance(value, float):
    yield np.float64(value)
    yield fractions.Fraction(value)
  elif isinstance(value, str):
    yield _Text(value)
    yield np.str_(value)
  elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
    yield np.asfortranarray(value)
    yield np.repeat(value, 2, axis=-1)[..., ::2]
    yield value.astype(">f8")
    frozen = value.copy()
    frozen.flags.writeable = False
    yield frozen
  elif isinstance(value, spiel_cfr.Solver):
    yield value.average_policy()
    yield value.tabular_average_policy()


def used(result: Any) -> Any:
  """Returns a result after doing with it what one does with it."""
  if isinstance(result, spiel_cfr.Solver):
    result.run(2)
    return result.nash_conv()
  if isinstance(result, spiel_cfr.RegretMinimizer):
    return used(spiel_cfr.FullWidthSolver("kuhn_poker", result))
  if isinstance(result, Iterator):
    return list(itertools.islice(result, 100))
  return result


def odd(result: Any) -> str:
  """Returns what can't be right about a result."""
  numbers = result if isinstance(result, tuple) else [result]
  if any(isinstance(each, float) and math.isnan(each) for each in numbers):
    return f"it made {_shown(result)}"
  return ""


def same(one: Any, other: Any) -> bool:
  """Returns whether two results are the same, as far as can be told."""
  if isinstance(one, float | int | np.ndarray):
    return bool(np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f"))
  if dataclasses.is_dataclass(one) and not isinstance(one, type):
    names = [field.name for field in dataclasses.fields(one) if "seconds" not in field.name]
    return all(same(getattr(one, name), getattr(other, name)) for name in names)
  if isinstance(one, list | tuple):
    return len(one) == len(other) and all(map(same, one, other))
  if isinstance(one, Mapping):
    return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
  return type(one) is type(other) or one == other


def fits(value: Any, hint: Any) -> bool:
  """Returns whether a value may be what an annotation says; where that can't be told, it may."""
  return any(_fits(value, each) for each in public_api.alternatives(hint))


def _fits(value: Any, hint: Any) -> bool:
  origin = typing.get_origin(hint)
  if hint in (Any, None, type(None)):
    return hint is Any or value is None
  if origin is typing.Literal:
    return any(type(value) is type(each) and value == each for each in typing.get_args(hint))
  is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
  if hint is float:
    return is_number
  if hint is int:
    return is_number and not isinstance(value, float)
  if hint is bool:
    return isinstance(value, bool | np.bool_) or (is_number and value in (0, 1))
  if hint is str or origin is os.PathLike:
    return isinstance(value, str)
  # A protocol, an alias of NumPy's, a sequence: what is in it is for the call to see.
  kind = origin or hint
  if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
    return True
  if kind is Sequence and (isinstance(value, np.ndarray) or value == {}):
    return True
  if kind is np.ndarray:
    return isinstance(value, np.ndarray | list | int | float)
  return isinstance(value, kind | types.NoneType) if kind is object else isinstance(value, kind)


def _shown(result: Any) -> str:
  return repr(result)[:80]
