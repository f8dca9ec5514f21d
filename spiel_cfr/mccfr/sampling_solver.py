"""Monte Carlo CFR solver with any sampling scheme, on compiled games or on OpenSpiel's states.

Every iteration makes one traversal for each player. After it, the player's regrets and strategies are updated.
"""

import copy
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.iteration_schedule import check_weights
from spiel_cfr.cfr.off_path import Unreached
from spiel_cfr.cfr.solver_state import MOST_ITERATIONS
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.mccfr.compiled_engine import CompiledEngine
from spiel_cfr.mccfr.infoset_table import SamplingState
from spiel_cfr.mccfr.monte_carlo_solver import DEFAULT_MAX_NODES, EngineName, MonteCarloSolver
from spiel_cfr.mccfr.random_draws import ITERATIONS, new_counters
from spiel_cfr.mccfr.sampled_policy import (
  Engine,
  SampledPolicy,
  in_action_order,
  regrets_now,
  sampled_dict,
  sampled_probabilities,
)
from spiel_cfr.mccfr.sampling_rules import Sampler
from spiel_cfr.mccfr.state_engine import StateEngine
from spiel_cfr.mccfr.updates import check_minimizer, discounts_of, update_steps
from spiel_cfr.policies import open_spiel
from spiel_cfr.policies.tabular_policy import LivePolicy
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Weights, as_weights, evaluated

DEFAULT_MAX_INFOSETS = 2_000_000
# The logarithm of a discount of 0 is replaced by this number, whose exponential is 0.
_LEAST_LOGARITHM = -1000.0


class _Run(NamedTuple):
  """The state of a solver, and the engine that changes it."""

  state: SamplingState
  engine: Engine


class SamplingSolver(MonteCarloSolver):
  """Monte Carlo CFR with any sampler. Checkpoints need the compiled engine.

  On the state engine, `run` raises GameTooLargeError when samples have visited more than `max_infosets` infosets.

  Attributes:
    minimizer: `RegretMinimizer`. The regret minimizer of every infoset.
  """

  _runtime: _Run

  def __init__(
    self,
    game: AnyGame,
    sampler: Sampler,
    *,
    seed: int | np.random.Generator | None = None,
    minimizer: RegretMinimizer | None = None,
    average_weights: Weights = 0.0,
    engine: EngineName | None = None,
    max_nodes: int = DEFAULT_MAX_NODES,
    max_infosets: int = DEFAULT_MAX_INFOSETS,
  ) -> None:
    """Makes the solver.

    Args:
      game: a game, its string, or a compiled game of any form.
      sampler: the sampling scheme and the averaging weights of visits.
      seed: an integer, or a generator that draws it. The same seed gives the same policy on any machine. None draws
        from NumPy's global state, so that `np.random.seed` determines the run, as in OpenSpiel.
      minimizer: the regret minimizer: regret matching with or without discounts, regret matching+, or Hedge. None is
        regret matching.
      average_weights: the weight of iteration t in the average: a schedule, a function of t, or a power of t. The
        power 1 equals multiplying the average by t / (t + 1) after each iteration.
      engine: "compiled" samples arrays of the whole game. "states" samples OpenSpiel's states and stores the infosets
        that samples visit. None chooses "compiled" if the game has at most `max_nodes` histories and perfect recall.
      max_nodes: the largest number of histories in the arrays. A compiled game that lists its states may have more.
      max_infosets: the largest number of infosets that the state engine stores, at about 0.6 kB each.

    Raises:
      GameError: the game can't be loaded or sampled; see `compile_game`.
      GameTooLargeError: `engine` is "compiled", and there are more than `max_nodes` histories.
      InconsistentInfosetError: a compiled game differs from its OpenSpiel game. Example: it was compiled with an action
        filter, and read from a file.
      ArgumentError: an argument is invalid.
    """
    arguments.of_type(sampler, "sampler", Sampler)
    self._max_infosets = arguments.positive_integer(max_infosets, "max_infosets")
    self._weights = as_weights(average_weights, "average_weights")
    self.minimizer = check_minimizer(RegretMatching() if minimizer is None else minimizer)
    super().__init__(game, sampler, seed, engine, max_nodes)
    self.reset()

  def reset(self) -> None:
    counters = new_counters(self._key)
    engine: Engine
    if self._compiled_engine is not None:
      engine = self._compiled_engine.fresh_copy(counters)
    else:
      engine = StateEngine(self.view, self._sampler, counters, self._max_infosets)
    state = engine.table.state(counters, self.engine == "compiled")
    self._runtime = _Run(state, engine)

  @property
  def _engine(self) -> Engine:
    return self._runtime.engine

  def __getstate__(self) -> dict[str, Any]:
    """Returns the pickled attributes. On the state engine, they include the engine and its table."""
    if self.engine == "compiled":
      return super().__getstate__()
    return self.configuration() | {"_runtime": copy.deepcopy(self._runtime)}

  def __setstate__(self, attributes: dict[str, Any]) -> None:
    if "_runtime" in attributes:
      self.__dict__.update(attributes)
    else:
      super().__setstate__(attributes)

  def state_dict(self) -> dict[str, Any]:
    """Returns a copy of the state, by name.

    Raises:
      UnsupportedGameError: the solver works on states.
    """
    if self.engine == "states":
      raise errors.UnsupportedGameError(
        "The solver works on states and adds infosets as samples visit them, which checkpoints can't "
        'store: make it with engine="compiled".'
      )
    # The state then does not depend on the lengths of runs.
    self._update_logarithms()
    return super().state_dict()

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(state["counters"][ITERATIONS] <= MOST_ITERATIONS, "the iteration is possible")
    self._engine.table.check(state)

  def _advance(self, count: int) -> None:
    updates = functools.partial(update_steps, self.minimizer, self._payoff_range, self._tie)
    self._engine.run(self._next_numbers(count), updates)

  def _update_logarithms(self) -> None:
    """Updates the state's sums of logarithms to the number of iterations done."""
    self._next_numbers(0)

  def _next_numbers(self, count: int) -> Float64s:
    """Returns the weights and discounts of the next iterations, and updates the state's sums of logarithms.

    Args:
      count: the number of iterations.

    Returns:
      float64 (iterations, 3). See `traversal.AVERAGE_WEIGHT`.
    """
    sums = self.state.logarithms
    done, summed = int(self.state.counters[ITERATIONS]), int(sums[0])
    iterations = np.arange(summed + 1, done + count + 1)
    with np.errstate(divide="ignore"):
      logarithms = np.log(discounts_of(self.minimizer, iterations))  # type: ignore[arg-type]
    logarithms = np.maximum(logarithms, _LEAST_LOGARITHM)
    logarithms = np.cumsum(np.vstack([sums[1:], logarithms]), axis=0)[done - summed :]
    sums[:] = done, *logarithms[0]
    weights = evaluated(self._weights, iterations[done - summed :])
    check_weights(weights, count, float(self._engine.table.entries.cumulative[0]))
    return np.hstack([weights[:, None], logarithms[1:]])

  @property
  def num_infosets(self) -> int:
    """The number of infosets; on the state engine, of those that samples have visited."""
    return self._engine.table.num_infosets

  @property
  def num_bytes(self) -> int:
    """The size of the table in bytes, without the names of infosets."""
    return self._engine.table.num_bytes

  @typed
  def average_policy(self, unreached: Unreached = "uniform") -> open_spiel_policy.Policy:
    """Returns the average policy, uniform at infosets that were not sampled. It answers at any state of a decision.

    As in OpenSpiel, the policy changes as the solver runs; `copy.copy` returns a policy that does not. On the state
    engine, `to_tabular()` walks the whole game.
    """
    engine = self._engine
    if isinstance(engine, StateEngine) and unreached == "uniform":
      return SampledPolicy(self.view, engine, "cumulative", self._mutex)
    if unreached != "uniform":
      return super().average_policy(unreached)
    source = LivePolicy(self.average_probabilities, self._version)
    return self._policies.up_to_date("average", self.compiled_game, source)

  def current_policy(self) -> open_spiel_policy.Policy:
    engine = self._engine
    if isinstance(engine, StateEngine):
      return SampledPolicy(self.view, engine, "strategy", self._mutex)
    return super().current_policy()

  def average_probabilities(self) -> Float64s:
    return sampled_probabilities(self.compiled_game, self._engine, "cumulative")

  def current_probabilities(self) -> Float64s:
    return sampled_probabilities(self.compiled_game, self._engine, "strategy")

  # On the state engine, dictionaries and infostates list the infosets that samples have visited.

  def average_policy_dict(self) -> open_spiel.PolicyDict:
    if isinstance(self._engine, CompiledEngine):
      return super().average_policy_dict()
    return sampled_dict(self._engine, "cumulative")

  def current_policy_dict(self) -> open_spiel.PolicyDict:
    if isinstance(self._engine, CompiledEngine):
      return super().current_policy_dict()
    return sampled_dict(self._engine, "strategy")

  def infostates(self) -> list[list[str]]:
    if isinstance(self._engine, CompiledEngine):
      return super().infostates()
    return [list(infostates) for infostates in self._engine.infostates]

  def cumulative_regrets(self) -> Float64s:
    self._update_logarithms()
    regrets = regrets_now(self._engine.table, self.state.logarithms[1:])
    return in_action_order(self.compiled_game, self._engine, regrets)
