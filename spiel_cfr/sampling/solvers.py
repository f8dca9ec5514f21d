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

import enum
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

import numpy as np
import pyspiel
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors, evaluate, policy
from spiel_cfr.game.compiled import CompiledGame, compile_game
from spiel_cfr.game.loading import load_game
from spiel_cfr.kernels import TIE, Float64s, Uint32s
from spiel_cfr.minimizers.base import LocalMinimizer
from spiel_cfr.minimizers.regret_matching import RegretMatching
from spiel_cfr.sampling.engines import (
  CompiledEngine,
  Engine,
  Scheme,
  StateEngine,
  new_counters,
)
from spiel_cfr.sampling.loop import ITERATIONS, VISITED, Averaging, Schedule
from spiel_cfr.sampling.rules import Rule, Sampler
from spiel_cfr.solvers.base import AnyGame, positive_integer, run_in_slices

DEFAULT_MAX_NODES = 500_000
DEFAULT_MAX_INFOSETS = 2_000_000
# Stands for the logarithm of 0; its exponential is 0.
_LEAST_LOGARITHM = -1000.0
_MOST_ITERATIONS_AT_A_TIME = 1 << 14


class AverageType(enum.Enum):
  """How external sampling averages strategies, with OpenSpiel's names and one more.

  Attributes:
    SIMPLE: on a traversal for player p, the strategies of player p + 1 count 1 where they are met.
    FULL: all strategies count once an iteration, weighted by own reach.
    IMPORTANCE: as SIMPLE, but what is met is weighted by own reach over the probability of being sampled. In two-player
      games whose chance outcomes are equally likely, that is the same weight throughout an infoset.
  """

  SIMPLE = 0
  FULL = 1
  IMPORTANCE = 2


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
  engine: Literal["compiled", "states"] | None
  max_nodes: int
  max_infosets: int


class SamplingSolver:
  """A Monte Carlo solver: a sampler, a way to average, a local minimizer.

  Attributes:
    game: the game, sequential.
    compiled_game: the game as arrays, None on the state engine.
    minimizer: what every infoset does.
  """

  def __init__(
    self,
    game: AnyGame,
    scheme: Scheme,
    *,
    seed: int | np.random.Generator = 0,
    minimizer: LocalMinimizer | None = None,
    average_power: float = 0.0,
    engine: Literal["compiled", "states"] | None = None,
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
      max_infosets: how many infosets the state engine may remember, at about half a kilobyte each.

    Raises:
      GameError: the game can't be loaded or sampled; see `compile_game`.
      ArgumentError: an argument makes no sense.
    """
    if not 0 <= average_power < np.inf:
      raise errors.ArgumentError(
        f"average_power must be finite and not negative, not {average_power!r}."
      )
    if engine not in (None, "compiled", "states"):
      raise errors.ArgumentError(f"engine must be 'compiled', 'states' or None, not {engine!r}.")
    positive_integer(max_infosets, "max_infosets")
    self.minimizer = RegretMatching() if minimizer is None else minimizer
    if self.minimizer.discounts(np.arange(1, 2)) is None:
      raise errors.ArgumentError(
        f"{self.minimizer} can't be used with Monte Carlo solvers, which need a variant of regret "
        "matching: RegretMatching, RegretMatchingPlus or DiscountedRegretMatching."
      )
    self._average_power = average_power
    self.compiled_game = _compile(game, engine, max_nodes)
    self._counters = new_counters(seed)
    self._engine: Engine
    if self.compiled_game is None:
      self.game = load_game(game.game if isinstance(game, CompiledGame) else game)
      self._engine = StateEngine(self.game, scheme, self._counters, max_infosets)
    else:
      self.game = self.compiled_game.game
      self._engine = CompiledEngine(self.compiled_game, scheme, self._counters)
    self._tie = TIE * (self.game.max_utility() - self.game.min_utility())
    # An iteration, and the sums of the logarithms of all discounts up to it.
    self._logarithms = 0, np.zeros(2)

  def iteration(self) -> None:
    """Does one iteration: a traversal for each player, and an update of what it has estimated."""
    self._advance(1)

  def run(self, iterations: int) -> None:
    """Does many iterations: the same numbers as single ones.

    Ctrl-C raises KeyboardInterrupt; the solver can go on from there as if nothing had happened.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
      GameTooLargeError: the state engine has met more infosets than it may remember.
    """
    iterations = positive_integer(iterations, "iterations")
    run_in_slices(self._advance, iterations, _MOST_ITERATIONS_AT_A_TIME)

  def _advance(self, count: int) -> None:
    self._engine.run(self._schedule(count))

  def _schedule(self, count: int) -> Schedule:
    """Returns what the engine has to know of the next iterations."""
    known, sums = self._logarithms
    done = self.num_iterations
    iterations = np.arange(known + 1, done + count + 1)
    discounts = self.minimizer.discounts(iterations)
    assert discounts is not None
    with np.errstate(divide="ignore"):
      logarithms = np.maximum(np.log(discounts), _LEAST_LOGARITHM)
    logarithms = np.cumsum(np.vstack([sums, logarithms]), axis=0)[done - known :]
    self._logarithms = done, logarithms[0]
    return Schedule(
      discounts=discounts[done - known :],
      logarithms=logarithms,
      weights=iterations[done - known :].astype(np.float64) ** self._average_power,
      discounting=bool(logarithms.any()),
      tie=self._tie,
    )

  @property
  def num_iterations(self) -> int:
    """How many iterations have been done."""
    return int(self._counters[ITERATIONS])

  @property
  def nodes_touched(self) -> int:
    """How many nodes, chance and terminal ones included, the traversals have visited."""
    return int(self._counters[VISITED])

  @property
  def num_infosets(self) -> int:
    """How many infosets there are, or on the state engine, how many have been met."""
    return self._engine.table.num_infosets

  @property
  def num_bytes(self) -> int:
    """Memory of what is kept of the infosets, their names not counted."""
    return self._engine.table.num_bytes

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
    if self.compiled_game is not None:
      return policy.CompiledTabularPolicy(self.compiled_game, self._behavioral_form(sums))
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
    compiled = self._need_compiled()
    result = np.zeros(compiled.end)
    result[compiled.all_action_sequences] = sums[compiled.num_players :]
    return policy.behavioral_form(compiled, result)

  def _need_compiled(self) -> CompiledGame:
    if self.compiled_game is None:
      raise errors.UnsupportedGameError(
        "The solver works on states, and this needs a compiled game: compile the game with "
        "compile_game and a larger max_nodes, if there is the time and the memory."
      )
    return self.compiled_game

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
    idle = np.exp(self._schedule(1).logarithms[0] - entries.caught_up[:, first])
    regret = entries.regret[here]
    return Snapshot(
      self.num_iterations,
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
    compiled = self._need_compiled()
    sequence = policy.sequence_form(compiled, self.average_probabilities())
    return evaluate.evaluate(compiled, sequence).nash_conv

  def exploitability(self) -> float:
    """Returns the exploitability of the average policy of a compiled game: NashConv / 2.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players, or the solver works on states.
    """
    evaluate.check_two_player_constant_sum(self._need_compiled())
    return self.nash_conv() / 2


def _compile(
  game: AnyGame, engine: Literal["compiled", "states"] | None, max_nodes: int
) -> CompiledGame | None:
  """Returns the game compiled, or None if it is to be sampled by states."""
  if engine == "states":
    return None
  try:
    return compile_game(game, max_nodes=max_nodes)
  except (errors.GameTooLargeError, errors.ImperfectRecallError):
    if engine == "compiled":
      raise
    return None


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
      average_type: how strategies are averaged; OpenSpiel's enumeration of the same name is taken too.
      baseline_rate: if positive, baselines for the sampled actions, which move by this share to each new value.
      **options: see `SamplingSolver`.

    Raises:
      GameError: the game can't be loaded or sampled.
      ArgumentError: an argument makes no sense.
    """
    name = str(getattr(average_type, "name", average_type))
    if name not in AverageType.__members__:
      raise errors.ArgumentError(
        f"average_type must be one of {', '.join(map(str, AverageType))}, not {average_type!r}."
      )
    scheme = Scheme(
      Sampler(Rule.EVERY_ACTION, Rule.BY_STRATEGY),
      Averaging[name],
      baseline_rate=_fraction(baseline_rate, "baseline_rate", least=0.0),
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
      Sampler(Rule.BY_EXPLORING_STRATEGY, Rule.BY_STRATEGY, (_fraction(epsilon, "epsilon"),)),
      Averaging.IMPORTANCE,
      averages_own=True,
      baseline_rate=_fraction(baseline_rate, "baseline_rate", least=0.0),
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
    super().__init__(game, Scheme(sampler, Averaging.SIMPLE, averages_own=True), **options)


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
      if not 0 <= value < np.inf:
        raise errors.ArgumentError(f"{name} must be finite and not negative, not {value!r}.")
    sampler = Sampler(Rule.BY_AVERAGE, Rule.BY_STRATEGY, (_fraction(epsilon, "epsilon"), beta, tau))
    super().__init__(game, Scheme(sampler, Averaging.SIMPLE), **options)


def _fraction(value: float, name: str, least: float | None = None) -> float:
  """Returns a number above 0, or from `least` on, to 1."""
  try:
    fits = 0 < value <= 1 or value == least
  except TypeError:
    fits = False
  if not fits:
    above = "above 0" if least is None else "not negative"
    raise errors.ArgumentError(f"{name} must be {above} and at most 1, not {value!r}.")
  return float(value)
