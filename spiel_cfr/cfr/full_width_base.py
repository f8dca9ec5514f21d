"""Base class of the full-width solver: policies, regrets, locks and starts, which read and write its loop's arrays."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s
from spiel_cfr._util import arguments
from spiel_cfr.cfr.iteration_schedule import IterationSchedule
from spiel_cfr.cfr.loops import FullWidthState, Loop
from spiel_cfr.cfr.loops.resume import resume_from
from spiel_cfr.cfr.loops.state import check_numbers
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.substitute_regrets import PolicyValues, WarmStart
from spiel_cfr.cfr.synchronization import synchronized
from spiel_cfr.cfr.warm_start import WarmStartMixin, write_warm_start
from spiel_cfr.evaluation import evaluate
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.locked import Mask, locked_part, locked_sequences
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

# The strategies that players learn against: the others' current ones, or best responses to all current strategies.
Opponents = Literal["current", "best_response"]


class Runtime(NamedTuple):
  """The state of a full-width solver, which is in `loop.arrays`, and the objects that iterate on it."""

  loop: Loop
  schedule: IterationSchedule


class FullWidthBase(WarmStartMixin, Solver):
  """Base class of `FullWidthSolver`, without the constructor and the iterations.

  Attributes:
    minimizer: the regret minimizer at every infoset.
    alternating_updates: whether a player sees the new strategies of the players before it.
    opponents: the strategies that a player learns against, "current" or "best_response".
  """

  minimizer: RegretMinimizer
  alternating_updates: bool
  opponents: Opponents
  _runtime: Runtime

  @property
  def state(self) -> FullWidthState:
    return self._runtime.loop.arrays.state

  def complete_state(self) -> FullWidthState:
    self._runtime.loop.complete_arrays()
    return self.state

  def refresh(self) -> None:
    super().refresh()
    loop = self._runtime.loop
    loop.lock(locked_sequences(self.compiled_game, self.state.locked))
    loop.arrays.compute_trunk_reach()

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    check_numbers(self.compiled_game, state)
    for name in ("cumulative", "tapered"):
      forms.check_sums(self.compiled_game, state[name])

  @property
  def iteration(self) -> int:  # type: ignore[override]
    """The number of iterations so far."""
    return int(self.state.counts[0])

  @property
  def nodes_touched(self) -> int:
    """The number of states that a recursive implementation visits: every state once in each traversal."""
    # Alternating updates traverse the game once for each player, simultaneous updates once for all.
    traversals = self.compiled_game.num_players if self.alternating_updates else 1
    if self.opponents == "best_response":
      # One traversal for each player's best response, and one for its update.
      traversals = 2 * self.compiled_game.num_players
    return (self.iteration - self.warm_iterations) * traversals * self.compiled_game.num_states

  # Policies and regrets.

  @synchronized
  def sums(self) -> AnyFloats:
    """Returns a multiple of the average policy in sequence form; the current policy before the first iteration."""
    state = self.complete_state()
    return state.sums() if state.total_weight else self.current_sequence_form()

  def current_probabilities(self) -> Float64s:
    strategy = self.complete_state().strategy
    forms.check_finite(strategy)
    return strategy.astype(np.float64)

  def current_sequence_form(self) -> Float64s:
    self.complete_state()
    return self._runtime.loop.arrays.sequence_form().astype(np.float64)

  def average_probabilities(self) -> Float64s:
    return forms.behavioral_form(self.compiled_game, self.sums())

  def average_sequence_form(self) -> Float64s:
    # `Solver` would convert to the behavioral form and back.
    return forms.normalized(self.compiled_game, self.sums())

  def nash_conv(self) -> float:
    return evaluate.original_nash_conv(self.compiled_game, self.sums())

  def cumulative_regrets(self) -> Float64s | None:
    if not self.minimizer.keeps_regrets:
      return None
    self.complete_state()
    regrets: Float64s = self._runtime.loop.arrays.action_state_in_game_order()[0]
    return regrets[self.compiled_game.all_action_sequences]

  @synchronized
  def infoset_numbers(self, line: int) -> Float64s:
    """Returns one line of `FullWidthState.infoset_state`, in the game's order of infosets, shape (infosets,)."""
    self.complete_state()
    result: Float64s = self._runtime.loop.arrays.infoset_state_in_game_order()[line]
    return result

  # Locks.

  def lock(self, policy: open_spiel.AnyPolicy, infostates: Iterable[Any] | None = None) -> None:
    game = self.compiled_game
    if self.iteration:
      raise errors.LockError(f"{self!r} has run. Lock a policy before the first iteration.")
    if game.shared_infosets is not None:
      raise errors.LockError(
        f"In {game} infosets are shared (imperfect recall), and one can't be locked without the others. Use buckets "
        "that remember the player's own actions, or the full game."
      )
    if self.opponents == "best_response":
      raise errors.LockError(
        f"{self!r} can't lock a policy, since its best responses would ignore the lock. Use CFRPlusSolver."
      )
    self._lock(*locked_part(game, policy, infostates))

  @synchronized
  def lock_as(self, other: "FullWidthBase") -> None:
    """Locks the infosets that another solver of the same game has locked, before this solver's first iteration."""
    state = other.complete_state()
    if state.locked.any():
      self._lock(state.locked, state.strategy)

  def _lock(self, locked: Mask, probabilities: AnyFloats) -> None:
    """Locks more infosets, a mask of shape (infosets,), at these probabilities, shape (sequences,)."""
    state = self.complete_state()
    state.locked |= locked
    sequences = locked_sequences(self.compiled_game, locked)
    state.strategy[sequences] = probabilities[sequences]
    self.refresh()

  # Starts from given strategies, from a policy (warm start), or from regrets.

  @synchronized
  def init_from_strategy(self, sequence_form: Float64s) -> None:
    """Continues from the given strategies. The average begins anew; `iteration` continues to count.

    Args:
      sequence_form: the strategies, shape (sequences,). An infoset that its owner never reaches keeps its strategy.

    Raises:
      RestartError: the minimizer can't go on from a strategy.
      PolicyError: the array has another shape.
    """
    state, (loop, schedule) = self.complete_state(), self._runtime
    parameters = schedule.minimizer_parameters(np.array([max(1, self.iteration)]))[0]
    resume_from(self.compiled_game, loop, self.minimizer, sequence_form, parameters)
    state.begin_average()

  @property
  def warm_iterations(self) -> int:
    """The number of iterations that the policy of a warm start counts for; 0 without a warm start."""
    return self.state.warm_iterations

  @property
  def full_width_solver(self) -> "FullWidthBase":
    return self

  def begin_warm(self, values: PolicyValues, planned: WarmStart, keep_average: bool) -> None:
    self.reset()
    write_warm_start(*self._runtime, self.minimizer, values, planned, keep_average)
    self._num_loads += 1

  @synchronized
  def begin_with_regrets(self, regrets: Float64s, sequence_form: Float64s, iterations: int) -> None:
    """Begins regret matching anew from the regrets and the average policy of earlier iterations.

    Args:
      regrets: shape (sequences,). Cumulative regrets.
      sequence_form: shape (sequences,). The average policy in sequence form.
      iterations: the number of iterations that both count for.

    Raises:
      PolicyError: an array has another shape.
      ArgumentError: `iterations` is not a positive integer.
    """
    iterations = arguments.positive_integer(iterations, "iterations")
    shape = (self.compiled_game.end,)
    if np.shape(regrets) != shape or np.shape(sequence_form) != shape:
      raise errors.PolicyError(
        f"Regrets and the sequence form of this game have the shape {shape}, not {np.shape(regrets)} and "
        f"{np.shape(sequence_form)}."
      )
    self.reset()
    arrays = self._runtime.loop.arrays
    arrays.set_action_state(regrets[None])
    arrays.set_strategy(forms.behavioral_form(self.compiled_game, np.maximum(regrets, 0.0)))
    self.state.begin_warm(iterations, iterations * sequence_form)
    self.refresh()
