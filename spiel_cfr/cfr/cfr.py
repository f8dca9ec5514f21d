"""CFR, CFR+ and their variants: all are configurations of `FullWidthSolver`.

A full-width solver visits the whole game in every iteration. At every infoset a regret minimizer chooses the next
strategy from counterfactual utilities. The solver computes the utilities and averages the strategies. docs/arrays.md
has CFR+ on the same arrays in NumPy.

To follow the code from `CFRPlusSolver(game).run(1)` to the line that adds a regret, read in this order:

    cfr.cfr                              `CFRPlusSolver`, `FullWidthSolver._iterate`: the configuration, and the loop
    cfr.loops.loop                       `WholeGameLoop.advance`, `Loop.update_chain`: an iteration as a list of steps
    games.sequence_form.tree_passes      `backward_pass`, `forward_pass`: steps that visit a player's infosets
    regret_minimizers.regret_matching    `regret_matching_plus`: regrets and the next strategy at an infoset
    games.sequence_form.blocks           `expected_value`, `tolerance`, `normalize`: the functions that it calls

`Solver.run` calls `FullWidthSolver._advance` repeatedly, each time for about a tenth of a second. These modules are
beside the path:

    games.payoffs                        the gradient, which is the first step of an update
    cfr.iteration_schedule               the averaging weights and the minimizer's parameters of each iteration
    cfr.loops.arrays                     the arrays that steps read and write
    games.compiled.trunk_and_subtrees    a game in parts; a whole game is one part, with one `Visit` for each player
    cfr.warm_startable_solver            starts from a policy or from regrets

- CFR: Zinkevich et al., "Regret Minimization in Games with Incomplete Information" (2007).
- CFR+: Tammelin, "Solving Large Imperfect Information Games Using CFR+" (2014).
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr import locks
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr_br import advance_against_best_responses
from spiel_cfr.cfr.iteration_schedule import IterationSchedule
from spiel_cfr.cfr.loops import FullWidthState, make_loop
from spiel_cfr.cfr.loops.state import check_numbers, check_sums
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.cfr.synchronization import synchronized
from spiel_cfr.cfr.warm_startable_solver import Runtime, WarmStartableSolver
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.locked import Mask, locked_sequences
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

# The strategies that players learn against: the others' current ones, or best responses to all current strategies.
Opponents = Literal["current", "best_response"]


class FullWidthSolver(WarmStartableSolver):
  """CFR with any regret minimizer: every iteration visits the whole game.

  Attributes:
    compiled_game: `CompiledGame`. The game as arrays.
    minimizer: the regret minimizer at every infoset.
    alternating_updates: whether a player sees the new strategies of the players before it.
    averaging: the weights of strategies in the average.
    precision: the relative rounding error of the numbers in the state.
    theory: the step sizes of stable-predictive CFR, which its certificate reads; None for other solvers.
  """

  theory: object = None

  def __init__(
    self,
    game: AnyGame,
    minimizer: RegretMinimizer,
    *,
    alternating_updates: bool = True,
    averaging: Averaging = Averaging(),  # noqa: B008 - it is frozen
    opponents: Opponents = "current",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or an argument of `compile_game`. Compile it yourself to share it or to cache it.
      minimizer: the regret minimizer at every infoset.
      alternating_updates: whether a player sees the new strategies of the players before it. Otherwise all players see
        the strategies of the last iteration.
      averaging: the weights of strategies in the average: `Averaging(2.0)` gives iteration t the weight t^2.
      opponents: the strategies that a player learns against: the others' "current" ones, or, in CFR-BR, the others'
        "best_response".

    Raises:
      GameError: see `compile_game`.
      ArgumentError: `minimizer` or `averaging` has another type; or `averaging.correlated` is set, but updates
        alternate.
      AbstractionError: `averaging.correlated` is set, but the game is an abstraction that loses information.
      InvalidPayoffError: the payoffs are too large or too small to compute with.
    """
    arguments.of_type(minimizer, "minimizer", RegretMinimizer)
    arguments.of_type(averaging, "averaging", Averaging)
    arguments.one_of(opponents, "opponents", get_args(Opponents))
    self.compiled_game = game = compile_game(game)
    self.minimizer = minimizer
    self.alternating_updates = bool(alternating_updates)
    self.averaging = averaging
    self._opponents = opponents
    check_payoffs(game.game_string, game.payoff_range)
    averaging.check(game, self.alternating_updates)
    self.precision = float(np.finfo(game.dtype).eps)
    self.reset()

  def reset(self) -> None:
    before = self.__dict__.get("_runtime")
    game = self.compiled_game
    loop = make_loop(game, self.minimizer, self.averaging)
    schedule = IterationSchedule(game, self.minimizer, self.averaging, self.alternating_updates)
    self._runtime = Runtime(loop, schedule)
    if before is not None and before.loop.arrays.state.locked.any():
      self._lock(before.loop.arrays.state.locked, before.loop.arrays.state.strategy)

  def _advance(self, count: int) -> None:
    self._iterate(count)
    # The backward pass carries a number that is not finite up to the root.
    values = self._runtime.loop.arrays.root_values()
    if not all(map(math.isfinite, values)):
      raise errors.NotFiniteError(
        f"After {self.iteration:,} iterations the value of the game is {values} for its players: the "
        f"strategies or regrets of {self.minimizer} have left the range of floating-point numbers."
      )

  def _iterate(self, count: int) -> None:
    """Runs iterations of CFR, usually in one call of compiled code, or of CFR-BR."""
    loop, schedule = self._runtime
    if self._opponents == "current":
      players = tuple(range(self.compiled_game.num_players))
      updates = [(player,) for player in players] if self.alternating_updates else [players]
      loop.advance(tuple(updates), schedule.next_rows(self.state, count))
    else:
      # Ctrl-C must not stop between the several calls of compiled code that best responses take.
      with DeferredInterrupt(whole=True):
        rows = schedule.next_rows(self.state, count)
        advance_against_best_responses(self.compiled_game, loop, rows)

  def prepare(self) -> None:
    """Compiles the kernels of an iteration and of NashConv, or loads them from disk."""
    # A loop without iterations only compiles.
    self._iterate(0)
    self.nash_conv()

  def evaluate_and_update_policy(self) -> None:
    """Runs one iteration: each player evaluates its actions against the others' policies and updates its own.

    By default the players do so one after the other; with simultaneous updates, all at once.
    """
    self._advance(1)

  def constructor_arguments(self) -> dict[str, Any]:
    """Returns the arguments of the constructor besides the game, by name."""
    return {
      "minimizer": self.minimizer,
      "alternating_updates": self.alternating_updates,
      "averaging": self.averaging,
      "opponents": self._opponents,
    }

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
    check_sums(self.compiled_game, state)

  @property
  def iteration(self) -> int:  # type: ignore[override]
    """The number of iterations so far."""
    return int(self.state.counts[0])

  @property
  def nodes_touched(self) -> int:
    """The number of states that a recursive implementation visits: every state once in each traversal."""
    # Alternating updates traverse the game once for each player, simultaneous updates once for all.
    traversals = self.compiled_game.num_players if self.alternating_updates else 1
    if self._opponents == "best_response":
      # One traversal for each player's best response, and one for its update.
      traversals = 2 * self.compiled_game.num_players
    return (self.iteration - self.warm_iterations) * traversals * self.compiled_game.num_states

  @synchronized
  def sums(self) -> AnyFloats:
    """Returns a multiple of the average policy in sequence form; the current policy before the first iteration."""
    state = self.complete_state()
    return state.sums() if state.cumulative[0] else self.current_sequence_form()

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

  @synchronized
  def infoset_numbers(self, line: int) -> Float64s:
    """Returns one line of `FullWidthState.infoset_state`, in the game's order of infosets, shape (infosets,)."""
    self.complete_state()
    result: Float64s = self._runtime.loop.arrays.infoset_state_in_game_order()[line]
    return result

  def cumulative_regrets(self) -> Float64s | None:
    if not self.minimizer.keeps_regrets:
      return None
    self.complete_state()
    regrets: Float64s = self._runtime.loop.arrays.action_state_in_game_order()[0]
    return regrets[self.compiled_game.all_action_sequences]

  def lock(self, policy: open_spiel.AnyPolicy, infostates: Iterable[Any] | None = None) -> None:
    if self.iteration:
      raise errors.LockError(f"{self!r} has run. Lock a policy before the first iteration.")
    against_best = self._opponents == "best_response"
    locked, probabilities = locks.part_to_lock(
      repr(self), self.compiled_game, policy, infostates, against_best
    )
    self._lock(locked, probabilities)

  @synchronized
  def lock_as(self, other: "FullWidthSolver") -> None:
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


@recorded
def CFRSolver(game: AnyGame) -> FullWidthSolver:
  """CFR: regret matching, a uniform average, alternating updates."""
  return FullWidthSolver(game, RegretMatching())


@recorded
def CFRPlusSolver(game: AnyGame) -> FullWidthSolver:
  """CFR+: regret matching+, a linear average, alternating updates.

      solver = CFRPlusSolver("leduc_poker")
      solver.run(1000)
      solver.average_policy()  # OpenSpiel's TabularPolicy
      solver.exploitability()

  Args:
    game: a compiled game, or an argument of `compile_game`: an OpenSpiel game or its string.

  Returns:
    The solver before its first iteration; help(FullWidthSolver) lists its methods.

  Raises:
    GameError: the game can't be loaded or compiled.
  """
  return FullWidthSolver(game, RegretMatching.plus(), averaging=Averaging(1.0))
