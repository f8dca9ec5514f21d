"""CFR+ with best-response pruning: actions that cannot matter for a while are pruned for a window of iterations.

Brown and Sandholm, "Reduced Space and Faster Convergence in Imperfect-Information Games via Pruning" (2017). While the
regret of an action stays negative nothing at or below it need be looked at. So every so many iterations the solver says
what cannot become positive soon (`cfr.pruning.backfill`), and goes on in a game without it (`cfr.pruning.compaction`);
when the window is over, what was pruned comes back with the history of a best response in hindsight.
docs/theory/rewriting_history.md has the proof; `cfr.pruning.reference_pruning` the papers' algorithms, iteration by
iteration.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Bools, Float64s, aligned, require
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.full_width_solver import FullWidthSolver
from spiel_cfr.cfr.loops import FullWidthState
from spiel_cfr.cfr.pruning import backfill
from spiel_cfr.cfr.pruning.compaction import Compacted, PrunableGame, Window
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.solver_state import inside
from spiel_cfr.evaluation import evaluate
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.schedules import Power, evaluated

# The most iterations of a window, and what part of all iterations so far they may be.
_LONGEST, _PART = 3000, 5
# A window is to take about five times as long as its opening does: as many iterations, and as many leaves that are
# looked at one by one.
_OPENING_ITERATIONS, _OPENING_LEAVES = 250, 8_000_000
# Where nothing can be pruned, the next attempt is this many times as far away.
_IDLE = 2
# What part of an iteration's work may be left at most; otherwise nothing is pruned.
_WORTHWHILE = 0.8


@dataclasses.dataclass
class PrunedState:
  """All that changes from one iteration to the next.

  Attributes:
    solver: the state of the solver that is pruned.
    pruned: whether a sequence is pruned in this window, those below it not counted; shape (sequences,).
    opened: the sums of the average when the window began, shape (sequences,).
    opened_values: what the minimizer noted of infosets then, shape (infosets,) or longer.
    window_end: the iteration after which the window ends.
  """

  solver: FullWidthState
  pruned: Bools
  opened: Float64s
  opened_values: Float64s
  window_end: int


class _Run:
  """What belongs to a run: the solver, and the window, None until it is opened."""

  def __init__(self, solver: FullWidthSolver, state: PrunedState) -> None:
    """Begins without a window."""
    self.solver, self.state = solver, state
    self.window: Window | None = None


class Pruned(Solver):
  """CFR+ with best-response pruning.

      solver = Pruned(CFRPlusSolver("liars_dice"))
      solver.run(10_000)

  An action is pruned for a window of iterations if it is not played and its regret would stay negative although it grew
  by the best response, all losses forgotten, to what the other player has done in the last window, and to `caution`
  times what it has done on average. That is no bound: what comes back too late has a positive regret, which CFR+ makes
  good. Iterations are those of CFR+ until something comes back; averages take the strategies that the other player
  faces: with alternating updates player 0's after the update, player 1's before it.

  Whether a window pays is a matter of counting leaves and sequences, never of a clock, so that runs are repeatable: it
  has a fifth of all iterations so far, at least `shortest` and at most 3,000, and there is none if more than 0.8 of an
  iteration's work would be left.

  Attributes:
    compiled_game: the game as arrays.
    caution: as given.
    shortest: the fewest iterations of a window.
  """

  _runtime: _Run

  def __init__(
    self, solver: FullWidthSolver, *, caution: float = 1.0, shortest: int | None = None
  ) -> None:
    """Makes the solver.

    Args:
      solver: CFR+, or any full-width solver with regret matching+; it is itself left alone, and where it may be in a
        run does not matter.
      caution: how many times all that the other player has ever done counts: it foresees that it comes back to where it
        was not of late.
      shortest: the fewest iterations of a window; by default, about as many as take five times as long as to open it,
        or 3,000 if these are fewer.

    Raises:
      PruningError: the minimizer is not regret matching+, the average's weights are no power of the iteration, the
        solver keeps a tapered average or correlated sums, or the game has other than two players, is an abstraction,
        or is in vector form.
      LockError: a part of the policy is locked.
      ArgumentError: `solver` is no full-width solver, or a number is out of its range.
    """
    if not isinstance(solver, FullWidthSolver):
      raise errors.ArgumentError(
        f"Only full-width solvers can be pruned, not {arguments.shortened(solver)}."
      )
    weights = solver.averaging.weights
    # What a player has faced has to be in the average, and regrets have to be what a best response makes anew.
    is_plus = solver.minimizer == RegretMatching.plus()
    if not (is_plus and isinstance(weights, Power)):
      raise errors.PruningError(
        f"{solver.minimizer} with {weights} is not CFR+, and nothing else makes good what was pruned for too long: "
        "CFR's exploitability on Leduc poker with five sizes of bets was three times as large after 10,000 iterations. "
        "Take Pruned(CFRPlusSolver(game))."
      )
    if solver.averaging.tapered or solver.averaging.correlated:
      raise errors.PruningError(
        f"{solver!r} keeps a tapered average or correlated sums, which windows do not. Take it without, or take no "
        "pruning."
      )
    if solver.state.locked.any():
      raise errors.LockError(
        f"{solver!r} has a locked policy, and what is pruned goes by what is played. Take no pruning."
      )
    self.compiled_game = solver.compiled_game
    self.caution = arguments.real_number(caution, "caution", 0.0, 1e9)
    self._prunable = PrunableGame(self.compiled_game)
    paid = _OPENING_ITERATIONS + _OPENING_LEAVES // max(1, self._prunable.work)
    self.shortest = (
      min(paid, _LONGEST)
      if shortest is None
      else arguments.integer(shortest, "shortest", 1, _LONGEST)
    )
    self._alternating = solver.alternating_updates
    self._minimizer = backfill.NotedMatching(weights)
    self.reset()

  def reset(self) -> None:
    # Plays the same, averages what others face, and notes what infosets were worth.
    solver = FullWidthSolver(
      self.compiled_game,
      self._minimizer,
      alternating_updates=self._alternating,
      averaging=Averaging(self._minimizer.weights, "faced"),
    )
    arrays = solver.state
    state = PrunedState(
      arrays,
      np.zeros(self.compiled_game.end, bool),
      aligned(arrays.cumulative),
      arrays.infoset_state[0].copy(),
      self.shortest,
    )
    self._runtime = _Run(solver, state)

  @property
  def state(self) -> PrunedState:
    return self._runtime.state

  def refresh(self) -> None:
    super().refresh()
    self._runtime.solver.refresh()
    self._runtime.window = None

  @property
  def iteration(self) -> int:  # type: ignore[override]
    """How many iterations have been done."""
    return self._runtime.solver.iteration

  @property
  def nodes_touched(self) -> int:
    """How many states a recursive implementation would have visited without pruning."""
    return self._runtime.solver.nodes_touched

  @property
  def active_share(self) -> float:
    """What part of the leaves the current window goes through."""
    return self._open_window().left.share if self.num_pruned else 1.0

  @property
  def num_pruned(self) -> int:
    """How many sequences are pruned, those below them not counted."""
    return int(self._runtime.state.pruned.sum())

  def prepare(self) -> None:
    solver = self._runtime.solver
    solver.prepare()
    nothing = np.zeros(self.compiled_game.end, bool)
    self._prunable.best_responses(aligned(self._runtime.state.opened))
    window = self._window_on(self._prunable.without(nothing))
    window.advance(self._alternating, solver.iteration_numbers(0))

  def _advance(self, count: int) -> None:
    run, end = self._runtime, self.iteration + count
    solver, state = run.solver, run.state
    while self.iteration < end:
      # What Ctrl-C must not come between: windows, and what is copied back from them.
      with DeferredInterrupt():
        if self.iteration >= state.window_end:
          self._next_window()
        count = min(end, state.window_end) - self.iteration
        if self.num_pruned:
          window = self._open_window()
          window.advance(self._alternating, solver.iteration_numbers(count))
          solver.check_finite(window.values())
        else:
          solver._advance(count)

  def _open_window(self) -> Window:
    """Returns the window, which is made anew where a state was loaded."""
    run = self._runtime
    if run.window is None:
      run.window = self._window_on(self._prunable.without(run.state.pruned))
    return run.window

  def _window_on(self, left: Compacted) -> Window:
    return Window(left, self._minimizer, self._runtime.state.solver, self.compiled_game)

  def _next_window(self) -> None:
    """Ends the window, if there is one, and opens the next."""
    run, game = self._runtime, self._prunable
    state, arrays = run.state, run.state.solver
    if self.num_pruned:
      self._catch_up(self._open_window().left)
    length = min(max(self.iteration // _PART, self.shortest), _LONGEST)
    weights = evaluated(self._minimizer.weights, np.arange(length + 1) + self.iteration + 1)
    best, weight = game.best_responses(arrays.cumulative), float(weights[0])
    pruned = self._prunable_for(float(weights[:-1].sum()), best, weight)
    left = game.without(pruned) if pruned.any() else None
    if left is None or left.work > _WORTHWHILE * game.work:
      left, pruned, length = None, np.zeros_like(pruned), _IDLE * length
    again = state.pruned & ~pruned
    backfill.restore(game.groups, again, arrays, best, weight, game.ties)
    run.solver.refresh()
    state.pruned[:], run.window = pruned, None if left is None else self._window_on(left)
    state.opened[:], state.opened_values[:] = arrays.cumulative, arrays.infoset_state[0]
    state.window_end = self.iteration + length

  def _catch_up(self, left: Compacted) -> None:
    """Brings up to date what was not pruned and not looked at in the window."""
    game, state, arrays = self._prunable, self._runtime.state, self._runtime.state.solver
    self._add_deferred(left, arrays.strategy, state.opened, arrays.cumulative)
    gained = game.gradients(aligned(arrays.cumulative - state.opened))
    backfill.note_unseen(game.groups, left.seen, arrays, gained, state.opened_values)

  def _add_deferred(
    self, left: Compacted, strategy: AnyFloats, opened: Float64s, sums: AnyFloats
  ) -> None:
    """Brings sums of sequence forms up to date where nobody looked."""
    deciding = self.compiled_game.decisions
    backfill.add_deferred(self._prunable.groups, left.seen, strategy, opened, sums)
    sums[deciding.forced] = sums[deciding.chosen]

  def _prunable_for(self, coming: float, best: Float64s, weight: float) -> Bools:
    """Returns which sequences can be pruned, given the weights of the window and of the next iteration, and C."""
    game, state, arrays = self._prunable, self._runtime.state, self._runtime.state.solver
    sums = arrays.cumulative
    of_late, ever = coming / float(sums[0] - state.opened[0]), coming / float(sums[0])
    faced = aligned((of_late + self.caution * ever) * sums - of_late * state.opened)
    growth = game.best_responses(faced, gains_only=True)
    spent = of_late * (arrays.infoset_state[0] - state.opened_values)
    least = game.ties * weight
    return backfill.prunable(
      game.groups, game.owner, arrays, best, growth, spent, least, state.pruned
    )

  def _sums(self) -> AnyFloats:
    """Returns what the average policy is a multiple of, shape (sequences,); before any iteration, the current one."""
    solver, state = self._runtime.solver, self._runtime.state
    if not self.num_pruned:
      return solver.sums()
    sums = aligned(state.solver.cumulative)
    self._add_deferred(self._open_window().left, state.solver.strategy, state.opened, sums)
    return sums

  def cumulative_regrets(self) -> Float64s | None:
    """Returns those of the solver; of what is pruned, as they were when that began."""
    return self._runtime.solver.cumulative_regrets()

  def current_probabilities(self) -> Float64s:
    return self._runtime.solver.current_probabilities()

  def average_probabilities(self) -> Float64s:
    return forms.behavioral_form(self.compiled_game, self._sums())

  def nash_conv(self) -> float:
    return evaluate.original_nash_conv(self.compiled_game, self._sums())

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    own, pruned = inside(state, "solver"), state["pruned"]
    self._runtime.solver.check_numbers(own)
    to_come = state["window_end"] - int(own["counts"][0])
    require(to_come <= _IDLE * _LONGEST, "the window is possible")
    require(np.isfinite(state["opened_values"]), "opened_values is finite")
    require(
      not pruned[forms.uniform(self.compiled_game) == 0].any(), "what is pruned are sequences"
    )
    if pruned.any():
      require(to_come >= 0, "the window is not over")
      require(not own["strategy"][pruned].any(), "what is pruned is not played")
      require(state["opened"] <= own["cumulative"], "what was faced does not get less")
      # Sums where nobody looked come later.
      own["cumulative"] = sums = aligned(own["cumulative"])
      left = self._prunable.without(pruned)
      self._add_deferred(left, own["strategy"], state["opened"], sums)
    for sums in (state["opened"], own["cumulative"]):
      forms.check_sums(self.compiled_game, sums)
