"""Pruning in windows: regret-based pruning, best-response pruning and dynamic thresholding.

A window is a number of iterations on a compacted game, which lacks the subtrees below some frozen actions. The solver
goes through three phases:

1. Freeze. It freezes the actions that are not played now, and whose regrets are so negative that they will probably not
   be played in the window either.
2. Iterate. It iterates on the compacted game.
3. Restore. The skipped subtrees return as if a best response had been played there. Let C be the values of a best
   response to the strategies that the player faced, and Z(j) = sum of w_t v^t(j) the weighted sum of the values of
   infoset j, which the minimizer `WithValueSums` keeps. For a frozen action ja, and all actions j'a' below it,

    CFR, Hedge   in the window:     R(j'a') += C(j'a') - C(j'),  Z(j') += C(j'),  R(ja) += C(ja) - Z(j)
    CFR+         from iteration 1:  R(j'a') =  C(j'a') - C(j'),  Z(j') =  C(j'),  R(ja) =  C(ja) - Z(j)

CFR+ forgets negative regrets, so it restores the whole history of a subtree. In CFR and Hedge, if ja is not played with
this R(ja) either, the window was exact. Otherwise ja came back too late, and the window is rolled back: the solver
returns to the state at the start of the window, and repeats the window with ja. docs/theory/rewriting_history.md has
the proof.

- Brown and Sandholm, "Regret-Based Pruning in Extensive-Form Games" (2015): CFR.
- Brown, Kroer and Sandholm, "Dynamic Thresholding and Pruning for Regret Minimization" (2017): Hedge.
- Brown and Sandholm, "Reduced Space and Faster Convergence in Imperfect-Information Games via Pruning" (2017):
  best-response pruning, here with CFR+.
"""

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, aligned, require
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.loops import FullWidthState
from spiel_cfr.cfr.loops.state import check_numbers
from spiel_cfr.cfr.pruning.compaction import PrunableGame
from spiel_cfr.cfr.pruning.pruning_rule import PruningRule
from spiel_cfr.cfr.pruning.window import PruningWindow
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.solver_state import copy_into, inner_values
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.hedge import Hedge
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.schedules import Power
from spiel_cfr.regret_minimizers.value_sums import WithValueSums

# A window has at most this number of iterations. Its length is the number of iterations so far divided by the second.
_LONGEST, _LENGTH_DIVISOR = 3000, 5
# The default of `min_window` is the first number, plus the second one divided by the number of leaves. The iterations
# of such a window take about five times as long as opening it.
_OPENING_ITERATIONS, _OPENING_LEAVES = 250, 8_000_000
# If nothing can be pruned, the solver tries again after the length of a window times this factor, in iterations.
_IDLE = 2
# A window is opened only if at most this fraction of the leaves remains.
_WORTHWHILE = 0.5


@dataclasses.dataclass
class PrunedState:
  """The state of a pruned solver.

  Attributes:
    solver: the state of the inner solver, which is pruned.
    opened: the state of the inner solver at the start of the window.
    frozen: bool (sequences,). Whether a sequence is frozen; sequences below frozen ones are not marked.
    window_end: the iteration after which the window ends.
    nodes: the number of nodes visited, see `Pruned.nodes_touched`.
    rollbacks: the number of windows that were rolled back.
  """

  solver: FullWidthState
  opened: FullWidthState
  frozen: Bools
  window_end: int
  nodes: int = 0
  rollbacks: int = 0


@dataclasses.dataclass
class _Runtime:
  """The inner solver of the whole game, the state, and the window; None before it is made."""

  solver: FullWidthSolver
  state: PrunedState
  window: PruningWindow | None = None


class Pruned(Solver):
  """CFR with regret-based pruning, CFR+ with best-response pruning, or Hedge with dynamic thresholding and pruning.

      solver = Pruned(CFRPlusSolver("liars_dice"))
      solver.run(10_000)

  An action is frozen if it is not played now, and would not be played at the end of the window in the worst case. In
  the worst case, its player plays a best response below the action, and negative payoffs count as 0. The other player
  plays a forecast: its strategies in the last window, plus those in all iterations, both scaled to the length of the
  window.

  If an action comes back too late, CFR+ corrects its regrets in the next iterations, while CFR and Hedge roll the
  window back. The average policy leaves out the current window if the window would be rolled back now. Averages contain
  the strategies that the other player faces. The length of a window is a fifth of all iterations so far, but at least
  `min_window` and at most 3,000. A window is opened only if at most half of the leaves remain.

  Attributes:
    compiled_game: `CompiledGame`. The game as arrays.
    min_window: the smallest number of iterations in a window.
  """

  _runtime: _Runtime

  def __init__(self, solver: FullWidthSolver, *, min_window: int | None = None) -> None:
    """Makes the solver.

    Args:
      solver: CFR, CFR+, or Hedge with dynamic thresholding. It is not changed; the new solver begins at iteration 0.
      min_window: the smallest number of iterations in a window. The default is chosen so that these iterations take
        about five times as long as opening the window.

    Raises:
      PruningError: the minimizer is not one of the three. Or the average has other weights than the regrets, or is
        tapered. Or the game has more than two players, is an abstraction, or is in vector form.
      LockError: a part of the policy is locked.
      ArgumentError: `solver` is not a full-width solver, or `min_window` is not from 1 to 3,000.
    """
    if not isinstance(solver, FullWidthSolver):
      raise errors.ArgumentError(
        f"Only full-width solvers can be pruned, not {arguments.shortened(solver)}."
      )
    self.compiled_game = solver.compiled_game
    minimizer, self._prunable = _with_value_sums(solver), PrunableGame(self.compiled_game)
    self._pruning_rule = PruningRule(self._prunable, minimizer)
    if min_window is None:
      num_leaves = max(1, self.compiled_game.num_leaves)
      min_window = min(_OPENING_ITERATIONS + _OPENING_LEAVES // num_leaves, _LONGEST)
    self.min_window = arguments.integer(min_window, "min_window", 1, _LONGEST)
    averaging = Averaging(minimizer.weights, "faced")
    self._inner_arguments = solver.constructor_arguments() | {
      "minimizer": minimizer,
      "averaging": averaging,
    }
    self.reset()

  def reset(self) -> None:
    solver = FullWidthSolver(self.compiled_game, **self._inner_arguments)
    # Messages name this solver, not the inner one.
    solver.recipe = self.recipe
    frozen = np.zeros(self.compiled_game.end, bool)
    state = PrunedState(solver.state, copy.deepcopy(solver.state), frozen, self.min_window)
    self._runtime = _Runtime(solver, state)

  @property
  def state(self) -> PrunedState:
    return self._runtime.state

  def refresh(self) -> None:
    super().refresh()
    self._runtime.solver.refresh()
    self._runtime.window = None

  @property
  def iteration(self) -> int:  # type: ignore[override]
    """The number of iterations so far, without those that were rolled back."""
    return self._runtime.solver.iteration

  @property
  def nodes_touched(self) -> int:
    """The number of states visited, also in iterations that were rolled back later.

    An iteration in a window visits only the remaining share of the leaves.
    """
    return self._runtime.state.nodes

  @property
  def active_share(self) -> float:
    """The fraction of the leaves that the current window visits."""
    return self._window().compacted.share if self.num_pruned else 1.0

  @property
  def num_pruned(self) -> int:
    """The number of frozen sequences; sequences below frozen ones do not count."""
    return int(self._runtime.state.frozen.sum())

  def prepare(self) -> None:
    solver, state = self._runtime.solver, self._runtime.state
    solver.prepare()
    faced = aligned(state.opened.cumulative)
    self._prunable.sequence_values(faced, best_response=True, gains_only=True)
    whole_game = self._prunable.without(np.zeros_like(state.frozen))
    PruningWindow(whole_game, solver).advance(0)

  def _advance(self, count: int) -> None:
    solver, state = self._runtime.solver, self._runtime.state
    end = self.iteration + count
    while self.iteration < end:
      # Ctrl-C must not interrupt the change from one window to the next, or a window before its state is copied back.
      with DeferredInterrupt(whole=True):
        if self.iteration >= state.window_end:
          self._next_window()
        count = min(end, state.window_end) - self.iteration
        self._count_nodes(count, self.active_share)
        if self.num_pruned:
          self._window().advance(count)
        else:
          solver._advance(count)

  def _count_nodes(self, iterations: int, share: float = 1.0) -> None:
    """Adds the states visited by some iterations to `nodes`; `share` is the fraction of the leaves that they visit."""
    alternating = self._runtime.solver.alternating_updates
    traversals = self.compiled_game.num_players if alternating else 1
    nodes = round(share * self.compiled_game.num_states)
    self._runtime.state.nodes += iterations * traversals * nodes

  def _window(self) -> PruningWindow:
    """Returns the window; after a state was loaded, a new one."""
    runtime = self._runtime
    if runtime.window is None:
      compacted = self._prunable.without(runtime.state.frozen)
      runtime.window = PruningWindow(compacted, runtime.solver)
    return runtime.window

  def _next_window(self) -> None:
    """Ends the window and opens the next one; or rolls it back, to repeat it with the actions that came too late."""
    state = self._runtime.state
    if self.num_pruned:
      late = self._restore_skipped(state.solver)
      self._count_nodes(1 + self._pruning_rule.forgets)
      if late.any() and not self._pruning_rule.forgets:
        copy_into(state.solver, state.opened)
        state.rollbacks += 1
        self._open_window(state.frozen & ~late)
        return
    length = min(max(self.iteration // _LENGTH_DIVISOR, self.min_window), _LONGEST)
    frozen = self._pruning_rule.sequences_to_freeze(state.solver, state.opened, length)
    self._count_nodes(2)
    copy_into(state.opened, state.solver)
    pays = self._open_window(frozen)
    state.window_end = self.iteration + (length if pays else _IDLE * length)

  def _open_window(self, frozen: Bools) -> bool:
    """Opens a window without the frozen sequences if that pays; otherwise, nothing is frozen.

    Returns:
      Whether the window pays.
    """
    runtime, compacted = self._runtime, self._prunable.without(frozen)
    pays = bool(frozen.any()) and compacted.share <= _WORTHWHILE
    runtime.state.frozen[:] = frozen & pays
    runtime.solver.refresh()
    runtime.window = PruningWindow(compacted, runtime.solver) if pays else None
    return pays

  def _restore_skipped(self, state: FullWidthState) -> Bools:
    """Restores skipped subtrees in a state of the inner solver, see `PruningRule.restore_skipped`."""
    opened, frozen = self._runtime.state.opened, self._runtime.state.frozen
    return self._pruning_rule.restore_skipped(state, opened, frozen, self._window().compacted)

  def cumulative_regrets(self) -> Float64s | None:
    """Returns the regrets of the inner solver. In frozen subtrees, they are those at the start of the window."""
    return self._runtime.solver.cumulative_regrets()

  def current_probabilities(self) -> Float64s:
    return self._runtime.solver.current_probabilities()

  def average_probabilities(self) -> Float64s:
    state, sums = self._runtime.state, self._runtime.solver.sums()
    if self.num_pruned:
      restored = copy.deepcopy(state.solver)
      late = self._restore_skipped(restored)
      # A window that would be rolled back does not count.
      is_exact = not late.any() or self._pruning_rule.forgets
      sums = restored.cumulative if is_exact else state.opened.cumulative
    return forms.behavioral_form(self.compiled_game, sums)

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    current, opened, frozen = (
      inner_values(state, "solver"),
      inner_values(state, "opened"),
      state["frozen"],
    )
    for values in (current, opened):
      check_numbers(self.compiled_game, values)
    began, done, end = int(opened["counts"][0]), int(current["counts"][0]), state["window_end"]
    require(began <= done <= end <= began + _IDLE * _LONGEST, "the window is possible")
    require(min(state["nodes"], state["rollbacks"]) >= 0, "counts are not negative")
    require(opened["cumulative"] <= current["cumulative"], "sums of strategies do not fall")
    require(forms.uniform(self.compiled_game)[frozen] > 0, "frozen sequences are actions")
    require(not current["strategy"][frozen].any(), "frozen sequences are not played")
    sums = aligned(current["cumulative"])
    if frozen.any():
      compacted = self._prunable.without(frozen)
      self._pruning_rule.add_to_skipped_sums(
        compacted, current["strategy"], opened["cumulative"], sums
      )
    forms.check_sums(self.compiled_game, opened["cumulative"])
    forms.check_sums(self.compiled_game, sums)


def _with_value_sums(solver: FullWidthSolver) -> WithValueSums:
  """Returns the solver's minimizer, wrapped to sum the values of infosets.

  Raises:
    PruningError: pruning is not sound with this minimizer and average.
    LockError: a part of the policy is locked.
  """
  minimizer, averaging = solver.minimizer, solver.averaging
  weights, is_plus = averaging.weights, minimizer == RegretMatching.plus()
  drops_actions = isinstance(minimizer, Hedge) and minimizer.threshold > 1.0
  keeps_all_regrets = minimizer == RegretMatching() or drops_actions
  is_sound = is_plus or (keeps_all_regrets and weights == Power(0.0))
  is_plain_average = not (averaging.tapered or averaging.rule)
  if not (is_sound and isinstance(weights, Power) and is_plain_average):
    raise errors.PruningError(
      f"{minimizer} with {averaging} can't be pruned. Pruning is sound with CFR, CFR+, and Hedge with a threshold. "
      "Averages must be plain, with the weights of the regrets. Use Pruned(CFRPlusSolver(game)), or use no pruning."
    )
  if solver.state.locked.any():
    raise errors.LockError(
      f"{solver!r} has a locked policy, which can't be pruned. Use no pruning."
    )
  return WithValueSums(minimizer, weights)
