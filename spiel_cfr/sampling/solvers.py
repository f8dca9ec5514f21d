"""Monte Carlo CFR solvers, with OpenSpiel's names and arguments.

- External and outcome sampling: Lanctot et al., "Monte Carlo Sampling for Regret Minimization in Extensive Games"
  (2009).
- Chance sampling: Zinkevich et al., "Regret Minimization in Games with Incomplete Information" (2007).
- Average-strategy sampling: Gibson et al., "Efficient Monte Carlo Counterfactual Regret Minimization in Games with Many
  Player Actions" (2012).
- Baselines: Schmid et al., "Variance Reduction in Monte Carlo Counterfactual Regret Minimization for Extensive Form
  Games using Baselines" (2019).

A solver is a choice of rules in `rules` on the traversal of `loop`. Every iteration makes one traversal a player, and
players update in turn.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, get_args

import numpy as np
import pyspiel
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import arguments, errors, evaluate, policy
from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.compiling import AnyGame, compile_game
from spiel_cfr.game.loading import load_game
from spiel_cfr.kernels.arrays import Float64s, Uint32s
from spiel_cfr.minimizers.base import TIE, LocalMinimizer
from spiel_cfr.minimizers.regret_matching import RegretMatching
from spiel_cfr.sampling.engines import (
  CompiledEngine,
  Engine,
  Scheme,
  StateEngine,
  new_counters,
)
from spiel_cfr.sampling.loop import ITERATIONS, VISITED, Schedule
from spiel_cfr.sampling.rules import AverageType, Rule, Sampler
from spiel_cfr.slices import Slices
from spiel_cfr.solvers.interface import IterativeSolver

DEFAULT_MAX_NODES = 500_000
DEFAULT_MAX_INFOSETS = 2_000_000
# Stands for the logarithm of 0; its exponential is 0.
_LEAST_LOGARITHM = -1000.0

EngineName = Literal["compiled", "states"]


class Snapshot(NamedTuple):
  """What an infoset does at some time.

  Attributes:
    iteration: how many iterations had been done.
    nodes_touched: how many nodes had been visited.
    player: whose infoset it is.
    infostate: its information state string.
    actions: its legal actions.
    current: the current strategy, action by action.
    average: the average strategy.
    regret: cumulative regrets, as the minimizer discounts them.
  """

  iteration: int
  nodes_touched: int
  player: int
  infostate: str
  actions: list[int]
  current: list[float]
  average: list[float]
  regret: list[float]


class Options(TypedDict, total=False):
  """Arguments that all Monte Carlo solvers take, see `SamplingSolver`."""

  seed: int | np.random.Generator
  minimizer: LocalMinimizer
  average_power: float
  engine: EngineName | None
  max_nodes: int
  max_infosets: int


class _Iterations(int):
  """How many iterations a solver has done. Called, it does one more: OpenSpiel has a method of that name."""

  _one_more: Callable[[], None]

  def __call__(self) -> None:
    """Does one iteration: a traversal for each player, and an update of what it has estimated."""
    self._one_more()


class SamplingSolver(IterativeSolver):
  """A Monte Carlo solver: a sampler, a way to average, a local minimizer.

  It is used as OpenSpiel's are, with `solver.iteration()` or, faster, `solver.run(1000)`; and as all solvers here are,
  where `solver.iteration` is the number of iterations done. `run`, traces and checkpoints need the compiled engine.

  Attributes:
    game: the game, sequential.
    engine: "compiled" or "states".
    minimizer: what every infoset does.
  """

  state_names = (
    "_counters",
    "_logarithms",
    "_regret",
    "_strategy",
    "_average",
    "_caught_up",
    "_baseline",
  )

  def __init__(
    self,
    game: AnyGame,
    scheme: Scheme,
    *,
    seed: int | np.random.Generator = 0,
    minimizer: LocalMinimizer | None = None,
    average_power: float = 0.0,
    engine: EngineName | None = None,
    max_nodes: int = DEFAULT_MAX_NODES,
    max_infosets: int = DEFAULT_MAX_INFOSETS,
  ) -> None:
    """Makes the solver.

    Args:
      game: a game, its string, or a compiled game.
      scheme: what to sample and how to average.
      seed: of all random numbers, or a generator to draw one from. The same seed gives the same policy on any machine.
      minimizer: regret matching if None, or regret matching+ or discounted regret matching.
      average_power: what iteration t adds to the average weighs t^average_power. 1 is the same as to multiply the
        average by t / (t + 1) after each iteration.
      engine: "compiled" samples arrays made of the whole game; "states" samples OpenSpiel's states and remembers the
        infosets met. None compiles a game that has at most `max_nodes` states and perfect recall.
      max_nodes: how many states a game to be compiled here may have.
      max_infosets: how many infosets the state engine may remember, at about 0.6 kB each.

    Raises:
      GameError: the game can't be loaded or sampled; see `compile_game`.
      ArgumentError: an argument makes no sense.
    """
    if engine is not None:
      arguments.one_of(engine, "engine", get_args(EngineName), " or None")
    arguments.positive_integer(max_infosets, "max_infosets")
    self._average_power = arguments.real_number(
      average_power, "average_power", 0.0, sys.float_info.max
    )
    self.minimizer = RegretMatching() if minimizer is None else minimizer
    if (
      not isinstance(self.minimizer, LocalMinimizer)
      or self.minimizer.discounts(np.arange(1, 2)) is None
    ):
      raise errors.ArgumentError(
        f"{self.minimizer} can't be used with Monte Carlo solvers, which need a variant of regret "
        "matching: RegretMatching, RegretMatchingPlus, DiscountedRegretMatching or "
        "DiscountedRegretMatchingPlus, without predictions."
      )
    self._counters = new_counters(seed)
    # The sums of the logarithms of all discounts, and the iteration up to which they go.
    self._logarithms = np.zeros(3)
    self._slices = Slices()
    self._compiled = None if engine == "states" else _compile(game, max_nodes, engine)
    self._engine: Engine
    if self._compiled is None:
      self.engine: EngineName = "states"
      self.game = game.game if isinstance(game, CompiledGame) else load_game(game)
      self._engine = StateEngine(self.game, scheme, self._counters, max_infosets)
    else:
      self.engine = "compiled"
      self.game = self._compiled.game
      self._engine = CompiledEngine(self._compiled, scheme, self._counters)
      entries = self._engine.table.entries
      self._regret, self._strategy, self._average = (
        entries.regret,
        entries.strategy,
        entries.average,
      )
      self._caught_up, self._baseline = entries.caught_up, entries.baseline
    self._tie = TIE * (self.game.max_utility() - self.game.min_utility())

  @property
  def compiled_game(self) -> CompiledGame:
    """The game as arrays.

    Raises:
      UnsupportedGameError: the solver works on states.
    """
    return self._check_compiled()

  @compiled_game.setter
  def compiled_game(self, game: CompiledGame) -> None:
    raise AttributeError("A solver keeps its game.")

  def _check_compiled(self) -> CompiledGame:
    if self._compiled is None:
      raise errors.UnsupportedGameError(
        "The solver works on states, and this needs a compiled game: compile the game with "
        "compile_game and a large enough max_nodes, if there is the time and the memory."
      )
    return self._compiled

  @property
  def iteration(self) -> _Iterations:
    """How many iterations have been done; `iteration()` does one more."""
    done = _Iterations(self._counters[ITERATIONS])
    done._one_more = functools.partial(self._advance, 1)
    return done

  @iteration.setter
  def iteration(self, number: int) -> None:
    self._counters[ITERATIONS] = number

  @property
  def nodes_touched(self) -> int:
    """How many nodes, chance and terminal ones included, the traversals have visited."""
    return int(self._counters[VISITED])

  def prepare(self) -> None:
    """Compiles kernels or takes them from disk, so that the first iteration is not slower than others."""
    self._advance(0)

  def run(self, iterations: int) -> None:
    """Does many iterations: the same numbers as single ones.

    Ctrl-C raises KeyboardInterrupt; the solver can go on from there, on the state engine with baselines that may have
    moved already.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
      GameTooLargeError: the state engine has met more infosets than it may remember.
    """
    for count in self._slices(arguments.positive_integer(iterations, "iterations")):
      self._advance(count)

  def _advance(self, count: int) -> None:
    self._engine.run(self._schedule(count))

  def _schedule(self, count: int) -> Schedule:
    """Returns what the engine has to know of the next iterations."""
    done = int(self._counters[ITERATIONS])
    known = int(self._logarithms[0])
    iterations = np.arange(known + 1, done + count + 1)
    with np.errstate(divide="ignore"):
      logarithms = np.log(self.minimizer.discounts(iterations))  # type: ignore[arg-type]
    logarithms = np.maximum(logarithms, _LEAST_LOGARITHM)
    logarithms = np.cumsum(np.vstack([self._logarithms[1:], logarithms]), axis=0)[done - known :]
    self._logarithms[:] = done, *logarithms[0]
    return Schedule(
      logarithms=logarithms[1:],
      weights=iterations[done - known :].astype(np.float64) ** self._average_power,
      discounting=bool(logarithms.any()),
      forgets_negative=self.minimizer.forgets_negative,
      tie=self._tie,
    )

  @property
  def num_infosets(self) -> int:
    """How many infosets there are, or on the state engine, how many have been met."""
    return self._engine.table.num_infosets

  @property
  def num_bytes(self) -> int:
    """Memory of what is kept of the infosets, their names not counted."""
    return self._engine.table.num_bytes

  def state_dict(self) -> dict[str, Any]:
    """Returns a copy of all that changes from one iteration to the next, by name.

    Raises:
      UnsupportedGameError: the solver works on states.
    """
    self._check_compiled()
    # Brings the sums of logarithms up to the iterations done, however those were divided into runs.
    self._schedule(0)
    return super().state_dict()

  def average_policy(self) -> open_spiel_policy.Policy:
    """Returns a copy of the average policy, uniform where the samples have never been.

    It can be called on any state where a player is to move, and `to_tabular()` lists it, which on the state engine
    walks the whole game.
    """
    return self._policy(self._engine.table.entries.average)

  def current_policy(self) -> open_spiel_policy.Policy:
    """Returns a copy of the current policy, which need not converge."""
    return self._policy(self._engine.table.entries.strategy)

  def _policy(self, sums: Float64s) -> open_spiel_policy.Policy:
    if self._compiled is not None:
      return policy.CompiledTabularPolicy(self._compiled, self._behavioral_form(sums))
    table = self._engine.table
    return SampledPolicy(
      self.game,
      [infostates.copy() for infostates in self._engine.infostates],
      table.entries.first[: table.num_infosets].copy(),
      sums[: table.num_sequences].copy(),
    )

  def average_probabilities(self) -> Float64s:
    """Returns the average policy of a compiled game in behavioural form, shape (sequences,).

    Raises:
      UnsupportedGameError: the solver works on states.
    """
    return self._behavioral_form(self._engine.table.entries.average)

  def current_probabilities(self) -> Float64s:
    """Returns the current policy of a compiled game in behavioural form, shape (sequences,).

    Raises:
      UnsupportedGameError: the solver works on states.
    """
    return self._behavioral_form(self._engine.table.entries.strategy)

  def _behavioral_form(self, sums: Float64s) -> Float64s:
    compiled = self.compiled_game
    result = np.zeros(compiled.end)
    result[compiled.all_action_sequences] = sums[compiled.num_players :]
    return policy.behavioral_form(compiled, result)

  def average_policy_dict(self) -> policy.PolicyDict:
    """Returns the average policy as infostate -> action -> probability, on the state engine where it has been."""
    return self._policy_dict(self._engine.table.entries.average)

  def current_policy_dict(self) -> policy.PolicyDict:
    """Returns the current policy as infostate -> action -> probability, on the state engine where it has been."""
    return self._policy_dict(self._engine.table.entries.strategy)

  def _policy_dict(self, sums: Float64s) -> policy.PolicyDict:
    result: policy.PolicyDict = {}
    for infostates in self._engine.infostates:
      for infostate, infoset in infostates.items():
        actions = self._engine.legal_actions(infoset)
        first = self._engine.table.entries.first.item(infoset)
        probabilities = _normalized(sums[first : first + len(actions)]).tolist()
        result[infostate] = dict(zip(actions, probabilities, strict=True))
    return result

  def infostates(self) -> list[list[str]]:
    """Returns the information state strings of each player, on the state engine those met."""
    return [list(infostates) for infostates in self._engine.infostates]

  def snapshot(self, player: int, infostate: str) -> Snapshot:
    """Returns what an infoset does now.

    Raises:
      ArgumentError: there is no such infoset, or it has not been met.
    """
    infoset = None
    if player in range(self.game.num_players()):
      infoset = self._engine.infostates[player].get(infostate)
    if infoset is None:
      raise errors.ArgumentError(f"Player {player} has no infoset {infostate!r}, or none met yet.")
    entries, actions = self._engine.table.entries, list(self._engine.legal_actions(infoset))
    first = entries.first.item(infoset)
    here = slice(first, first + len(actions))
    self._schedule(0)
    idle = np.exp(self._logarithms[1:] - entries.caught_up[:, first])
    regret = entries.regret[here]
    return Snapshot(
      int(self.iteration),
      self.nodes_touched,
      player,
      infostate,
      actions,
      entries.strategy[here].tolist(),
      _normalized(entries.average[here]).tolist(),
      (regret * np.where(regret > 0, *idle)).tolist(),
    )

  def nash_conv(self) -> float:
    """Returns the NashConv of the average policy of a compiled game.

    Raises:
      UnsupportedGameError: the solver works on states.
    """
    compiled = self.compiled_game
    sequence = policy.sequence_form(compiled, self.average_probabilities())
    return evaluate.evaluate(compiled, sequence).nash_conv


def _compile(game: AnyGame, max_nodes: int, engine: EngineName | None) -> CompiledGame | None:
  """Returns the game compiled, or None if it can't be and does not have to be."""
  try:
    return compile_game(game, max_nodes=max_nodes)
  except (errors.GameTooLargeError, errors.ImperfectRecallError):
    if engine is None:
      return None
    raise


def _normalized(sums: Float64s) -> Float64s:
  total = sums.sum()
  return sums / total if total > 0 else np.full(len(sums), 1.0 / len(sums))


class SampledPolicy(open_spiel_policy.Policy):  # type: ignore[misc]
  """A policy for the infosets that a solver has met; uniform elsewhere."""

  def __init__(
    self,
    game: pyspiel.Game,
    infostates: list[dict[str, int]],
    first: Uint32s,
    sums: Float64s,
  ) -> None:
    """Keeps its arguments.

    Args:
      game: the game.
      infostates: a player's information state strings -> number of the infoset.
      first: where each infoset's actions are in `sums`.
      sums: in proportion to the probabilities.
    """
    super().__init__(game, list(range(game.num_players())))
    self._infostates = infostates
    self._first = first
    self._sums = sums

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability.

    Raises:
      PolicyError: no player is to move, or another one is.
    """
    player = policy.player_to_move(state, player_id)
    actions = state.legal_actions()
    infoset = self._infostates[player].get(state.information_state_string())
    sums = np.zeros(len(actions))
    if infoset is not None:
      first = self._first.item(infoset)
      sums = self._sums[first : first + len(actions)]
    return dict(zip(actions, _normalized(sums).tolist(), strict=True))


class ExternalSamplingSolver(SamplingSolver):
  """External sampling: all actions of the player who learns, one of each other player and of chance."""

  def __init__(
    self,
    game: AnyGame,
    average_type: AverageType = AverageType.SIMPLE,
    *,
    baseline_rate: float = 0.0,
    **options: Unpack[Options],
  ) -> None:
    """Makes the solver.

    Args:
      game: a game, its string, or a compiled game.
      average_type: how strategies are averaged; OpenSpiel's enumeration or a name are taken too.
      baseline_rate: if positive, baselines for the sampled actions, which move by this share to each new value.
      **options: see `SamplingSolver`.

    Raises:
      GameError: the game can't be loaded or sampled.
      ArgumentError: an argument makes no sense.
    """
    name = str(getattr(average_type, "name", average_type))
    arguments.one_of(name, "average_type", list(AverageType.__members__))
    scheme = Scheme(
      Sampler(Rule.EVERY_ACTION, Rule.BY_STRATEGY),
      AverageType[name],
      baseline_rate=arguments.real_number(baseline_rate, "baseline_rate", 0.0, 1.0),
    )
    super().__init__(game, scheme, **options)


class OutcomeSamplingSolver(SamplingSolver):
  """Outcome sampling: one action everywhere, by the player who learns with exploration."""

  def __init__(
    self,
    game: AnyGame,
    epsilon: float = 0.6,
    *,
    baseline_rate: float = 0.0,
    **options: Unpack[Options],
  ) -> None:
    """Makes the solver.

    Args:
      game: a game, its string, or a compiled game.
      epsilon: the probability that the player who learns plays uniformly, above 0, at most 1; OpenSpiel's is 0.6.
      baseline_rate: if positive, baselines for all actions, which move by this share to each new value.
      **options: see `SamplingSolver`.

    Raises:
      GameError: the game can't be loaded or sampled.
      ArgumentError: an argument makes no sense.
    """
    scheme = Scheme(
      Sampler(Rule.BY_EXPLORING_STRATEGY, Rule.BY_STRATEGY, (_positive_fraction(epsilon),)),
      AverageType.IMPORTANCE,
      averages_own=True,
      baseline_rate=arguments.real_number(baseline_rate, "baseline_rate", 0.0, 1.0),
    )
    super().__init__(game, scheme, **options)


class ChanceSamplingSolver(SamplingSolver):
  """Chance sampling: one outcome of each chance node an iteration, the same for all players, and all actions."""

  def __init__(self, game: AnyGame, **options: Unpack[Options]) -> None:
    """Makes the solver.

    Args:
      game: a game, its string, or a compiled game.
      **options: see `SamplingSolver`.

    Raises:
      GameError: the game can't be loaded or sampled.
      ArgumentError: an argument makes no sense.
    """
    sampler = Sampler(Rule.EVERY_ACTION, Rule.EVERY_ACTION, repeats_draws=True)
    super().__init__(game, Scheme(sampler, AverageType.SIMPLE, averages_own=True), **options)


class AverageStrategySamplingSolver(SamplingSolver):
  """Average-strategy sampling: actions that the average policy plays, and some others, of the player who learns.

  Action a of an infoset whose average strategy sums to s is explored with probability

      max(epsilon, min(1, (beta + tau s(a)) / (beta + sum over actions b of s(b))))

  and of the other players' actions and of chance's, one is.
  """

  def __init__(
    self,
    game: AnyGame,
    epsilon: float = 0.05,
    beta: float = 1e6,
    tau: float = 1000.0,
    **options: Unpack[Options],
  ) -> None:
    """Makes the solver.

    Args:
      game: a game, its string, or a compiled game.
      epsilon: the least probability with which an action is explored, above 0, at most 1.
      beta: how long all actions are explored, not negative; the paper's value.
      tau: actions with more than a share 1 / tau of the average are always explored, not negative; the paper's value.
      **options: see `SamplingSolver`.

    Raises:
      GameError: the game can't be loaded or sampled.
      ArgumentError: an argument makes no sense.
    """
    for name, value in (("beta", beta), ("tau", tau)):
      arguments.real_number(value, name, 0.0, sys.float_info.max)
    sampler = Sampler(Rule.BY_AVERAGE, Rule.BY_STRATEGY, (_positive_fraction(epsilon), beta, tau))
    super().__init__(game, Scheme(sampler, AverageType.SIMPLE), **options)


def _positive_fraction(epsilon: float) -> float:
  return arguments.real_number(arguments.positive_number(epsilon, "epsilon"), "epsilon", 0.0, 1.0)
