"""Targets: every parameter of every public callable, found by inspection, and arguments with which the call works."""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import public_api
import pyspiel

import spiel_cfr
from spiel_cfr import catalogue
from spiel_cfr.policies.open_spiel import HasAveragePolicy

# What solvers and games call of the classes that one derives from, with numbers that were checked before.
_CALLED_BY_US = {
  *(
    "PublicState",
    "no_values",
    "begin_warm",
    "check",
    "gap",
    "initial_infoset_state",
    "lock_as",
    "only",
    "parameters",
  ),
  *("per_sequence", "warm_action_state", "entrances"),
  *(
    "parameter_rows",
    "probabilities_in",
    "scale",
    "follows",
    "shares",
    "shutdown",
    "submit",
    "to_original",
    "with_partition",
  ),
  *("with_payoff", "write", "solver", "trace"),
}
# What belongs to a game.
OF_A_GAME = (HasAveragePolicy, spiel_cfr.policies.CompiledTabularPolicy, pyspiel.State)


class Target(NamedTuple):
  """A parameter of a public callable; `case` says how that is called, `hint` is the annotation."""

  case: public_api.Case
  hint: Any

  @property
  def name(self) -> str:
    """The callable's name, without the parameter."""
    return self.case.name.partition("(")[0]

  @property
  def room(self) -> str:
    """The part of the library that has it."""
    modules = [getattr(each, "__module__", "") for each in (self.case.owner, self.case.function)]
    inside = [module for module in modules if str(module).startswith("spiel_cfr.")]
    if not inside:
      inside = [inspect.unwrap(self.case.function).__module__]
    return str(inside[0]).split(".")[1]

  def call(self) -> tuple[Any, dict[str, Any]]:
    """Returns a function, and arguments with which the call works."""
    try:
      function, named = public_api.call_of(self.case)
    except (AttributeError, LookupError, ValueError):
      # Those below have to do.
      owner, function, named = self.case.owner, self.case.function, {}
      if owner not in (None, function):
        make_holder = _HOLDERS.get(owner.__name__)
        function = getattr(make_holder() if make_holder else public_api.instance(owner), function)
    holder = getattr(function, "__self__", None)
    for key in (self.name.rpartition(".")[2], self.name):
      plain = _PLAIN.get(key, {})
      # Functions of one name may have other parameters.
      own = set(plain) & set(inspect.signature(inspect.unwrap(function)).parameters)
      named |= {name: plain[name](holder) for name in sorted(own)}
    return function, named


def targets() -> Iterator[Target]:
  """Yields every parameter of everything public, in a fixed order."""
  for name, owner, function, signed in public_api.callables():
    known = inspect.signature(inspect.unwrap(signed)).parameters
    # Schedules and values of public states.
    is_ours = name.endswith(".__call__") and name.startswith(("regret_minimizers", "search"))
    if name.rpartition(".")[2] in _CALLED_BY_US or is_ours:
      continue
    for parameter, hint in public_api.hints_of(signed).items():
      kind = known[parameter].kind if parameter in known else inspect.Parameter.KEYWORD_ONLY
      if kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        case = public_api.Case(f"{name}({parameter})", owner, function, parameter, False)
        yield Target(case, hint)


@functools.cache
def kuhn() -> spiel_cfr.CompiledGame:
  """Returns Kuhn poker, which most calls are about."""
  return spiel_cfr.compile_game("kuhn_poker")


def solver(name: str = "cfr+") -> Any:
  """Returns a solver of Kuhn poker that has run for a while."""
  family = catalogue.SOLVERS[name].family
  seed = {"seed": 0} if issubclass(family, spiel_cfr.mccfr.MonteCarloSolver) else {}
  result = catalogue.make(name, kuhn(), 10, **seed)
  result.run(3)
  return result


def _saved(holder: Any) -> str:
  """Writes a checkpoint of a solver, or of some solver."""
  (holder if isinstance(holder, spiel_cfr.Solver) else solver()).save("plain.npz")
  return "plain.npz"


def _game_file(holder: Any) -> str:
  kuhn().save("plain_game.npz")
  return "plain_game.npz"


def _policy_file(holder: Any) -> str:
  spiel_cfr.save_policy(kuhn(), solver(), "plain.json")
  return "plain.json"


def _trace_file(holder: Any) -> str:
  spiel_cfr.run(solver(), 8, traces=[spiel_cfr.runs.TraceFile("plain.csv")], progress=False)
  return "plain.csv"


def _stable_solver(holder: Any) -> Any:
  return spiel_cfr.StablePredictiveCFRSolver(kuhn(), horizon=10, steps="paper")


@functools.cache
def _river_solver() -> Any:
  river = spiel_cfr.poker.ranges.endgame("AA,KK", "QQ,JJ", board="2c3c4c7h8d", pot=200, stack=200)
  game = spiel_cfr.poker.compile_public_game(river.load(), spiel_cfr.poker.few_bets)
  result = spiel_cfr.DCFRSolver(game)
  result.run(3)
  return result


def _solution_file(holder: Any) -> str:
  spiel_cfr.poker.save_solution(_river_solver(), "plain.solution")
  return "plain.solution"


def _cut() -> Any:
  return spiel_cfr.search.public_states(kuhn()).natural_cut()


def _solved_game() -> Any:
  return spiel_cfr.atlas.find("kuhn_poker")


def _played(holder: Any) -> Any:
  # So that there is a gap.
  holder.add(solver()) if hasattr(holder, "add") else holder.run(1)
  return None


# Of methods whatever the class, and of callables by their whole names: arguments, made of the object.
_PLAIN: dict[str, dict[str, Callable[[Any], Any]]] = {
  "load": {"path": _saved},
  "restore": {"path": _saved},
  "load_state_dict": {"state": lambda holder: holder.state_dict()},
  "lock": {"policy": lambda holder: {"0": {0: 1.0, 1: 0.0}}},
  "init_from_strategy": {"sequence_form": lambda holder: holder.current_sequence_form()},
  "load_compiled_game": {"path": _game_file},
  "load_policy": {"path": _policy_file},
  "runs.read_trace": {"path": _trace_file},
  "runs.merge": {"policies": lambda holder: [solver(), spiel_cfr.CFRSolver(kuhn())]},
  "EFRSolver.gap": {"kind": _played},
  "correlated.EmpiricalPlay.gap": {"kind": _played},
  "stable_predictive.check_proof": {"solver": _stable_solver},
  "stable_predictive.step_sizes": {"solver": _stable_solver},
  "from_actions": {"entries": lambda holder: np.ones(len(holder.all_action_sequences))},
  "to_actions": {"probabilities": lambda holder: np.ones(holder.end)},
  "policies.behavioral_form": {
    "compiled": lambda holder: kuhn(),
    "sums": lambda holder: spiel_cfr.policies.uniform(kuhn()),
  },
  "games.game_from_arrays": {
    "parents": lambda holder: [[0], [0]],
    "num_actions": lambda holder: [[2], [2]],
    "leaf_sequences": lambda holder: [[1, 1, 2, 2], [1, 2, 1, 2]],
    "payoffs": lambda holder: [1, -1, -1, 1],
  },
  "parametric_games.LinearGame.values": {"sequence_form": lambda holder: np.ones(kuhn().end)},
  "abstraction.hand_buckets": {"labels": lambda holder: [np.arange(3) // 2] * 2},
  "atlas.find": {"game": lambda holder: "kuhn_poker"},
  "atlas.load": {"game": lambda holder: "selten_1975_1.efg"},
  "certificates.Certificate.save": {"path": lambda holder: "plain_certificate.json"},
  "certificates.Interval.total": {"intervals": lambda holder: [_solved_game().value]},
  "exploitation.SafeExploiter.observe": {"history": lambda holder: [0, 1, 0, 0]},
  "explorer.hand_report": {
    "solution": lambda holder: spiel_cfr.poker.PokerSolution.of(_river_solver()),
    "moves": lambda holder: [],
  },
  "poker.load_solution": {"path": _solution_file},
  "poker.save_solution": {
    "solver": lambda holder: _river_solver(),
    "path": lambda holder: "plain.solution",
  },
  "poker.PokerSolution.save": {"path": lambda holder: "plain.solution"},
  "poker.parse_range": {"text": lambda holder: "AA,KK:0.5"},
  "referee.head_to_head": {"policies": lambda holder: {"one": solver(), "other": solver("cfr")}},
  "search.Subgame": {
    "public_state": lambda holder: _cut()[0],
    "ranges": lambda holder: np.ones((2, 3)),
  },
}
# Objects that nobody makes, by class.
_HOLDERS: dict[str, Callable[[], Any]] = {
  "Certificate": lambda: spiel_cfr.certify(kuhn(), solver()),
  "Interval": lambda: _solved_game().value,
  "PokerSolution": lambda: spiel_cfr.poker.PokerSolution.of(_river_solver()),
}
