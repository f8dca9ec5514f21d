"""Every number that a public function, constructor or method takes, found by inspection.

`cases` walks the top level and the rooms. What a call needs besides the number under test is looked up by the
parameter's name in `_bases`, or else built by its annotation, so that new classes need no entry as long as their
parameters have known names.
"""

import contextlib
import dataclasses
import enum
import functools
import inspect
import math
import pathlib
import re
import signal
import tempfile
import types
import typing
import unittest.mock
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyspiel
from executors import Here

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.deep_cfr.network import LeastSquares
from spiel_cfr.mccfr.sampling_rules import Rule, Sampler
from spiel_cfr.regret_minimizers.schedules import Schedule

BAD: dict[str, Any] = {
  "nan": math.nan,
  "inf": math.inf,
  "-inf": -math.inf,
  "-1": -1,
  "0.5": 0.5,
  "10^400": 10**400,
  "text": "5",
  "bytes": b"5",
  "None": None,
  "True": True,
  "list": [1],
}
# Values that are never numbers.
NEVER = ("nan", "10^400", "text", "bytes", "True", "list")
_SECONDS = 60


@dataclasses.dataclass(frozen=True)
class Case:
  """A call, and one of its parameters.

  Attributes:
    name: of both.
    owner: the class whose constructor or method it is, None for a function.
    function: what is called, by name for methods.
    parameter: the number.
    may_be_none: whether None means something.
  """

  name: str
  owner: type | None
  function: Any
  parameter: str
  may_be_none: bool


def cases() -> Iterator[Case]:
  """Yields every numeric parameter of everything public."""
  for name, owner, function, signed in callables():
    yield from _cases_of(name, owner, function, signed)


def callables() -> Iterator[tuple[str, type | None, Any, Any]]:
  """Yields everything public that is called: name, owner and function as of a `Case`, and what has its signature."""
  for name, thing in _public():
    if inspect.isclass(thing):
      if not _is_record(thing) and not inspect.isabstract(thing) and not _maker(thing):
        yield name, thing, thing, thing.__init__
      if not inspect.isabstract(thing):
        for method, function in _methods(thing):
          yield f"{name}.{method}", thing, method, function
    elif inspect.isfunction(thing) or isinstance(thing, recorded):
      yield name, None, thing, thing


def concrete_classes() -> list[type]:
  """Returns the public classes of which there are instances that `instance` can make."""
  return [
    thing
    for _, thing in _public()
    if inspect.isclass(thing) and not inspect.isabstract(thing) and not _is_record(thing)
  ]


def abstract_classes() -> list[type]:
  """Returns the public classes that others derive from."""
  return [thing for _, thing in _public() if inspect.isclass(thing) and inspect.isabstract(thing)]


def methods_with_numbers(cls: type) -> list[str]:
  """Returns the names of a class's public methods that take a number."""
  return [name for name, function in _methods(cls) if _numbers(function)]


def attempt(case: Case, value: Any) -> None:
  """Makes a call with a value, and uses the result."""
  with _alarm():
    function, named = call_of(case)
    use(function(**named | {case.parameter: value}))


def call_of(case: Case) -> tuple[Any, dict[str, Any]]:
  """Returns a function, and arguments with which the call works."""
  if case.owner is None or case.owner is case.function:
    function = case.function
  else:
    found = inspect.getattr_static(case.owner, case.function)
    holder = case.owner if isinstance(found, classmethod) else instance(case.owner)
    function = getattr(holder, case.function)
  named = _arguments(function)
  if function is spiel_cfr.parametric_games.optimize_parameters:
    named["game"] = spiel_cfr.parametric_games.linear_game(
      _kuhn(), spiel_cfr.parametric_games.kuhn_bets
    )
  if function in (spiel_cfr.abstraction.equity_histograms, spiel_cfr.abstraction.next_histograms):
    # Public cards are to come.
    game = named["game"] = _in_parts()
    if "labels" in named:
      named["labels"] = [np.arange(len(board.hands[0])) for board in game.tree.boards[1:]]
  if function is spiel_cfr.games.shard:
    named["game"] = _in_parts()
  if function is spiel_cfr.referee.nash_conv_lower_bound:
    named = {"episodes": 3, "evaluation_episodes": 3} | named
  if function is spiel_cfr.StablePredictiveCFRSolver and case.parameter != "delta":
    named = {"horizon": 10, "steps": "paper"} | named
  return function, named


def instance(cls: type) -> Any:
  """Makes an object of a public class."""
  if inspect.isabstract(cls):
    cls = next(other for other in concrete_classes() if issubclass(other, cls))
  if cls in _instances:
    return _instances[cls]()
  maker = _maker(cls)
  make: Any = cls if maker is None else maker
  return make(**_arguments(make))


# What there is.


@functools.cache
def rooms() -> list[types.ModuleType]:
  """Returns the modules with public names: the top level, the rooms, and other public modules."""
  # Those that are imported when they are asked for, too.
  named = [getattr(spiel_cfr, name) for name in dir(spiel_cfr)]
  found = [
    spiel_cfr,
    *(
      value
      for value in named
      if hasattr(value, "__all__") and value.__name__.startswith("spiel_cfr")
    ),
  ]
  return [*found, spiel_cfr.catalogue, spiel_cfr.errors]


def _public() -> Iterator[tuple[str, Any]]:
  """Yields every public object once, by its shortest name."""
  seen: set[int] = set()
  for room in rooms():
    prefix = room.__name__.partition(".")[2]
    for name in dir(room):
      thing = getattr(room, name)
      listed = getattr(room, "__all__", None)
      own = not name.startswith("_") and getattr(thing, "__module__", "") == room.__name__
      if isinstance(thing, types.ModuleType) or not (own if listed is None else name in listed):
        continue
      # Solvers call networks, and search calls its trees; users name them.
      called_by_others = (spiel_cfr.deep_cfr.Approximator, spiel_cfr.search.SearchTree)
      is_called = inspect.isclass(thing) and issubclass(thing, called_by_others)
      if id(thing) not in seen and not is_called and thing is not Any:
        seen.add(id(thing))
        yield f"{prefix}.{name}" if prefix else name, thing


def _is_record(cls: type) -> bool:
  """Returns whether a class is a result, which users do not construct."""
  is_plain = dataclasses.is_dataclass(cls) and not hasattr(cls, "__post_init__")
  return (
    (is_plain and not issubclass(cls, spiel_cfr.RegretMinimizer | spiel_cfr.CompiledGame))
    or issubclass(cls, BaseException | enum.Enum)
    or hasattr(cls, "_fields")
  )


def _maker(cls: type) -> Any:
  """Returns the factory function of a class, None for its constructor."""
  found = re.search(r"Make one with `(\w+)`", cls.__doc__ or "")
  return (
    next(getattr(room, found[1]) for room in rooms() if hasattr(room, found[1])) if found else None
  )


# What wrappers and certificates call of the solver inside, and search of public trees, with numbers that are checked.
_INTERNAL = {"infoset_numbers", "num_private_states", "counterfactual_reach"}
_INTERNAL |= {"blueprint", "start", "first_histories", "places", "by_private_state"}


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
  for name in dir(cls):
    if (name.startswith("_") and name != "__call__") or name in _INTERNAL:
      continue
    function = inspect.getattr_static(cls, name)
    function = getattr(function, "__func__", function)
    if inspect.isfunction(function) and function.__module__.startswith("spiel_cfr"):
      yield name, function


def _cases_of(name: str, owner: type | None, function: Any, signed: Any) -> Iterator[Case]:
  for parameter, may_be_none in _numbers(signed).items():
    yield Case(f"{name}({parameter})", owner, function, parameter, may_be_none)


def _numbers(function: Any) -> dict[str, bool]:
  """Returns the numeric parameters of a function that have one value, and whether they may be None."""
  result = {}
  known = inspect.signature(inspect.unwrap(function)).parameters
  for name, hint in hints_of(function).items():
    if name in known and known[name].kind is inspect.Parameter.VAR_POSITIONAL:
      continue
    kinds = set(alternatives(hint))
    if kinds & {int, float}:
      result[name] = type(None) in kinds
  return result


def hints_of(function: Any) -> dict[str, Any]:
  """Returns the annotation of each parameter, those in `**options` among them."""
  # Some aliases are strings, of what other modules import.
  names = {key: value for room in reversed(rooms()) for key, value in vars(room).items()}
  names |= {"pyspiel": pyspiel}
  hints = typing.get_type_hints(inspect.unwrap(function), None, names, include_extras=True)
  hints.pop("return", None)
  for name in list(hints):
    if typing.get_origin(hints[name]) is typing.Unpack:
      hints.update(typing.get_type_hints(typing.get_args(hints.pop(name))[0]))
  return hints


def alternatives(hint: Any) -> Iterator[Any]:
  if typing.get_origin(hint) in (typing.Union, types.UnionType):
    for part in typing.get_args(hint):
      yield from alternatives(part)
  else:
    yield hint


# What it is called with.


@functools.cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
  return tempfile.TemporaryDirectory()


def _endgame() -> pathlib.Path:
  path = pathlib.Path(_folder().name) / "endgame.txt"
  reach = " ".join(["1"] * 2652)
  path.write_text(f"-round 4\n-board 7s9h9cTc2d\n-pot 500\n-reach {reach}\n")
  return path


@functools.cache
def _kuhn() -> pyspiel.Game:
  return pyspiel.load_game("kuhn_poker")


@functools.cache
def _compiled() -> spiel_cfr.CompiledGame:
  return spiel_cfr.compile_game(_kuhn())


@functools.cache
def _public_game() -> Any:
  """Games are cached, and their checks of random deals skipped."""
  return spiel_cfr.poker.compile_public_game(**_arguments(spiel_cfr.poker.compile_public_game))


@functools.cache
def _in_parts() -> Any:
  return spiel_cfr.poker.compile_public_game("leduc_poker", partitioned=True)


def _hand_buckets() -> Any:
  game = instance(spiel_cfr.poker.PublicGame)
  return spiel_cfr.abstraction.hand_buckets(
    game, [np.arange(len(own)) // 2 for own in game.tree.boards[0].hands]
  )


def _state() -> Any:
  state = _kuhn().new_initial_state()
  state.apply_action(0)
  state.apply_action(1)
  return state


def _one_feature(state: Any) -> list[float]:
  return [1.0]


_bases: dict[str, Callable[[], Any]] = {
  "game": _kuhn,
  "compiled": _compiled,
  # What can be pruned has this one.
  "minimizer": spiel_cfr.RegretMatching.plus,
  # Networks of JAX are compiled anew for every shape.
  "network": LeastSquares,
  "width": lambda: 3,
  "seed": lambda: 1,
  "sampler": lambda: Sampler(Rule.EVERY_ACTION, Rule.BY_STRATEGY),
  "policies": lambda: spiel_cfr.CFRSolver(_compiled()).average_policy(),
  "probabilities": lambda: policies.uniform(_compiled()),
  "name": lambda: "hsdcfr",
  "horizon": lambda: 10,
  "first": lambda: 0.5,
  "until": lambda: 10.0,
  "gamma": lambda: 30.0,
  "limit": lambda: 2.0,
  "half": lambda: 1.0,
  "iterations": lambda: 3,
  "iteration": lambda: 3,
  "every": lambda: 2,
  "grid": lambda: {"game": [_compiled()], "solver": ["cfr"]},
  "executor": Here,
  "folder": lambda: _folder().name,
  "path": _endgame,
  "progress": lambda: False,
  "player": lambda: 0,
  "infosets": lambda: slice(0, 1),
  "bets": lambda: "50%, a",
  "pattern": lambda: "^2",
  "place": lambda: 0,
  "state": _state,
  "infostate": lambda: "0",
  "chips": lambda: 100.0,
  "board": lambda: "7s9h9cTc2d",
  "pot": lambda: 500,
  "rate": lambda: 0.05,
  "reaches": lambda: np.ones((2, 1326)),
  "actions": lambda: [0],
  "buckets": lambda: {},
  "labels": list,
  "filtered": _compiled,
  "profiles": lambda: [policies.uniform(_compiled())],
  "correlated_policy": lambda: instance(spiel_cfr.correlated.MixturePolicy),
  "mediator": lambda: instance(spiel_cfr.correlated.Mediator),
  "policy": lambda: spiel_cfr.CFRSolver(_compiled()).average_policy(),
  "translate": lambda: lambda state, action: {},
  "points": lambda: np.eye(4),
  "size": lambda: 2,
  "count": lambda: 1,
  "start": lambda: lambda state, actions: actions,
  "target": lambda: 0.5,
  "bet": lambda: 1.0,
  "below": lambda: 0.5,
  "above": lambda: 2.0,
  "regrets": lambda: policies.uniform(_compiled()),
  "sequence_form": lambda: policies.sequence_form(_compiled(), policies.uniform(_compiled())),
  "tree": lambda: spiel_cfr.search.public_states(_compiled()),
  "examples": lambda: [spiel_cfr.search.self_play("kuhn_poker", plays=1, batch=2, iterations=2)],
  "bot": lambda: spiel_cfr.search.SearchBot(spiel_cfr.CFRSolver(_compiled()), 0),
  "leaf_values": lambda: spiel_cfr.search.no_values,
  "components": lambda: spiel_cfr.parametric_games.kuhn_bets,
  "parameters": lambda: [1.0],
  "contestant": lambda: spiel_cfr.CFRSolver(_compiled()),
  "opponent": lambda: spiel_cfr.CFRSolver(_compiled()),
  "deals": lambda: 3,
  "blueprint": lambda: spiel_cfr.CFRSolver(_compiled()).average_policy(),
  "public_state": lambda: instance(spiel_cfr.search.PublicState),
  # Of the public state above.
  "ranges": lambda: [
    np.ones(count) for count in _bases["tree"]().num_private_states(_bases["index"]())
  ],
  "searcher": lambda: 0,
  "front": lambda: "pick",
  "number": lambda: 1,
  "index": lambda: 1,
  "function": lambda: lambda seen, legal: legal / legal.sum(axis=1, keepdims=True),
  "step": lambda: 3,
  # A function that can be pickled.
  "features": lambda: _one_feature,
  "values": lambda: np.ones(3),
  "trust": lambda: 0.5,
  "histories": lambda: [[0, 1, 0, 0]],
  "observed": lambda: spiel_cfr.exploitation.count_actions(_compiled(), [[0, 1, 0, 0]], 1),
}


# Of classes whose objects are found rather than made.
def _ray_executor() -> spiel_cfr.runs.RayExecutor:
  """An executor that does not start Ray, and has one core."""
  executor = spiel_cfr.runs.RayExecutor()
  executor.ray = unittest.mock.MagicMock()
  executor.ray.nodes.return_value = [{"Alive": True, "NodeID": "", "Resources": {"CPU": 1.0}}]
  return executor


def _subgame() -> spiel_cfr.search.Subgame:
  state = spiel_cfr.search.public_states(_compiled()).natural_cut()[0]
  return spiel_cfr.search.Subgame(state, np.ones((2, 3)))


_instances: dict[type, Callable[[], Any]] = {
  spiel_cfr.poker.PublicGame: _public_game,
  spiel_cfr.runs.RayExecutor: _ray_executor,
  spiel_cfr.abstraction.HandBuckets: _hand_buckets,
  spiel_cfr.referee.Match: lambda: spiel_cfr.referee.Match(*np.ones((2, 3, 2))),
  spiel_cfr.referee.Verdict: lambda: spiel_cfr.judge(_compiled(), spiel_cfr.CFRSolver(_compiled())),
  spiel_cfr.search.Subgame: _subgame,
  spiel_cfr.search.SubgameSolution: lambda: _subgame().solve(),
  spiel_cfr.catalogue.SolverEntry: lambda: spiel_cfr.catalogue.SOLVERS["hsdcfr"],
}


def _arguments(function: Any) -> dict[str, Any]:
  """Returns arguments with which a call works: of all known names, and of whatever has no default."""
  signed = function.__init__ if inspect.isclass(function) else function
  hints, result = hints_of(signed), {}
  for name, parameter in inspect.signature(function).parameters.items():
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
      continue
    required = parameter.default is parameter.empty
    if name in _bases and (required or parameter.default is None or name == "progress"):
      hint = hints.get(name)
      if hint is spiel_cfr.CompiledGame:
        result[name] = _compiled()
      elif hint is spiel_cfr.poker.PublicGame:
        result[name] = instance(hint)
      else:
        result[name] = _bases[name]()
    elif required:
      hint = hints.get(name)
      if name == "solver" and (not inspect.isclass(hint) or getattr(hint, "_is_protocol", False)):
        hint = spiel_cfr.FullWidthSolver
      if not inspect.isclass(hint):
        raise LookupError(f"Nothing is known to call {function.__qualname__}({name}: {hint}) with.")
      result[name] = instance(hint)
  # Steps that come from the run, the default, take no horizon; and this gamma is the power of a weight.
  if function is spiel_cfr.StablePredictiveCFRSolver:
    del result["horizon"], result["gamma"]
  # That of a page is a public state, not a bet.
  if function is spiel_cfr.explore:
    del result["below"]
  # A function of the user's that names infostates is not the name of one.
  if "infostate" in result and hints["infostate"] is not str:
    del result["infostate"]
  return result


def use(result: Any) -> None:
  """Uses a result; this must work, or be refused by name."""
  if isinstance(result, spiel_cfr.Solver):
    result.run(2)
    assert math.isfinite(result.nash_conv())
  elif isinstance(result, spiel_cfr.RegretMinimizer):
    use(spiel_cfr.FullWidthSolver(_compiled(), result))
  elif isinstance(result, spiel_cfr.runs.Every | spiel_cfr.runs.Powers):
    assert result(5) > 5
  elif isinstance(result, spiel_cfr.Checkpoints):
    assert result.schedule(5) > 5
  elif isinstance(result, Schedule):
    assert np.isfinite(result(np.arange(1, 4))).all()
  elif isinstance(result, float | int):
    assert not math.isnan(result)


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
  """Raises an exception if a call takes too long."""

  def late(number: int, frame: Any) -> None:
    raise TimeoutError(f"It takes more than {_SECONDS} seconds.")

  before = signal.signal(signal.SIGALRM, late)
  signal.alarm(_SECONDS)
  try:
    yield
  finally:
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def refused(case: Case, value: Any) -> bool:
  """Returns whether a value is refused by name; any other exception comes out."""
  try:
    attempt(case, value)
  except errors.SpielCFRError as error:
    assert str(error)
    return True
  return False
