"""Regret-based and best-response pruning: what is left alone comes back with a history that is made up."""

import functools
import math

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Uint64s, aligned_zeros, dot
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.cfr.loops import FlatLoop, IterationNumbers
from spiel_cfr.cfr.pruning.compaction import Compacted
from spiel_cfr.cfr.pruning.constants import MOST, Pruning
from spiel_cfr.cfr.pruning.kept import Kept, find_kept
from spiel_cfr.cfr.pruning.rewriting import choose, fade, note_window, restore, weigh
from spiel_cfr.cfr.pruning.rule import PruningRule, Windowed
from spiel_cfr.cfr.pruning.taking import Prunable, Whole, all_leaves
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.identity import game_backward_pass
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.sorted_rows import sorted_rows
from spiel_cfr.games.payoffs.typed_patterns import TypedPatterns
from spiel_cfr.poker.hand_payoff import PokerTerminals
from spiel_cfr.regret_minimizers.ledger import NotedMatching
from spiel_cfr.regret_minimizers.regret_minimizer import tie_tolerances
from spiel_cfr.regret_minimizers.schedules import evaluated

# What part of utilities is rounding, in sums over a game.
_ROUNDING = 1e-11


class RewritingRule(PruningRule):
  """Regret-based and best-response pruning: see `solvers.pruning`."""

  owners_go_on = False

  def __init__(self, game: Prunable, pruning: Pruning) -> None:
    """Makes what windows are opened with; all of it may have other contents later."""
    super().__init__(game, pruning)
    # To make them anew takes as long as to fill them.
    self._best, self._spare, *self._faced = (aligned_zeros(game.end) for _ in range(4))
    # Of infosets, that no values count.
    self._nothing = aligned_zeros(game.num_infosets + MOST_LANES)

  @functools.cached_property
  def rows(self) -> Whole:
    """See the base class."""
    return all_leaves(self.game) if isinstance(self.game, EnumeratedGame) else self.game.payoff

  @functools.cached_property
  def _gains(self) -> Payoff:
    """The payoffs, losses counting as nothing."""
    payoff, rows = self.game.decisions.payoff, self.rows
    if isinstance(payoff, TypedPatterns | PokerTerminals):
      return payoff.gains()
    assert isinstance(rows, LeafRows)
    return sorted_rows(rows, rows.arrays.values > 0)

  @functools.cached_property
  def _everything(self) -> Kept:
    return find_kept(self.game, np.zeros(self.game.end, bool))

  @functools.cached_property
  def _all(self) -> Uint64s:
    """How many actions are looked at while nothing is pruned: several."""
    return np.full(len(self._everything.infosets), 2, np.uint64)

  @functools.cached_property
  def _ties(self) -> Float64s:
    return tie_tolerances(self.game)

  def prepare(self) -> None:
    """See the base class."""
    super().prepare()
    assert len(self._ties) and len(self._all)
    faced, workspace = self._faced
    for payoff in (self._gains, self.game.decisions.payoff):
      game_backward_pass(self.game, take_best, self._gradients(faced, workspace, payoff), tree=self.tree)

  def advance(self, solver: Windowed, small: FlatLoop, numbers: IterationNumbers) -> int:
    """See the base class."""
    small.advance(solver.alternating_updates, numbers, solver._iteration)
    return len(numbers.parameters)

  def decide(self, solver: Windowed, length: int) -> bool:
    """See the base class."""
    # Of the iteration in which the window began, of the last one, and of those to come.
    times = np.arange(solver.iteration - 1, solver.iteration + length + 1)
    times[0] = solver._epoch_start
    weights = solver._average_weights(np.maximum(times, 1))
    earlier, weight, coming = float(weights[0]), float(weights[1]), float(weights[2:].sum())
    window = solver._left() if solver._pruned.any() else None
    kept, live, discount, missed = self._everything, self._all, 1.0, 0.0
    opened = solver._opened_gradients
    if window is not None:
      kept, live = window.kept, window.live
      solver._add_deferred(solver._cumulative)
      assert isinstance(solver.minimizer, NotedMatching)
      passed = np.arange(solver._epoch_start, solver.iteration) + 1
      discount = float(np.prod(evaluated(solver.minimizer.discount, passed)))
    if opened is None:
      opened = self._gradients(solver._opened, aligned_zeros(self.game.end))
    # In turn, so that no more than these two are made.
    faced, self._spare = self._gradients(solver._cumulative, self._spare), opened
    best = self._best
    if self.forgets:
      best[:] = faced
    else:
      np.subtract(faced, opened, out=best)
    game_backward_pass(self.game, take_best, best, tree=self.tree)
    regret, values = solver._state[0], solver._local[0]
    if window is not None:
      missed = note_window.unchecked(
        kept,
        live,
        self.forgets,
        regret,
        faced,
        opened,
        values,
        solver._opened_values,
        best,
        earlier,
      )
    if length and missed > 0.0 and missed > self._tolerable(solver, faced):
      solver._opened_gradients = None
      return False
    solver._opened_gradients = faced
    growth, factor = self._growth(solver, coming)
    pruned = solver._pruned.view(np.uint8)
    if not self.forgets:
      fade.unchecked(kept.place, pruned, regret, discount, earlier / weight)
    choose.unchecked(
      kept,
      live,
      self.forgets,
      solver._strategy,
      regret,
      values,
      self._nothing if self.forgets else solver._opened_values,
      best,
      pruned,
      growth,
      solver._opened_values,
      factor,
      self._ties,
      earlier,
      weight,
      discount,
    )
    return True

  def _tolerable(self, solver: Windowed, gradients: Float64s) -> float:
    """Returns how much NashConv, times the weight of all iterations, may become worse; gradients of the sums."""
    assert isinstance(solver.minimizer, NotedMatching)
    _, tolerance = self.caution_and_tolerance(solver.minimizer.plus)
    if tolerance > MOST:
      return math.inf
    best = self._best
    if not self.forgets:
      best = self._faced[0]
      best[:] = gradients
      game_backward_pass(self.game, take_best, best, tree=self.tree)
    sums = solver._cumulative
    weight = float(sums[0])
    gap = sum(float(best[tree.root]) for tree in self.game.treeplexes)
    gap -= dot(gradients, sums) / max(weight, math.ulp(0.0))
    low, high = self.game.payoff_range
    return tolerance * max(gap, 0.0) + _ROUNDING * weight * (high - low)

  def settle(self, solver: Windowed, window: Compacted) -> None:
    """See the base class."""
    restore.unchecked(
      self.tree,
      window.kept,
      self.forgets,
      solver._strategy,
      solver._state[0],
      solver._local[0],
      self._best,
      solver._pruned.view(np.uint8),
      np.zeros(self.game.end, np.uint8),
      self._ties,
      solver._weight(solver.iteration),
    )

  def _growth(self, solver: Windowed, coming: float) -> tuple[Float64s, float]:
    """Returns by how much regrets may grow in iterations of this weight, shape (sequences,).

    And what part is taken away of what infosets were worth in the last window.
    """
    passed = float(solver._cumulative[0] - solver._opened[0])
    if not coming or not passed or self._pruning.margin > MOST:
      return np.full(self.game.end, math.inf), 0.0
    if self._pruning.certain:
      return coming * self._most, 0.0
    factor, share = (
      self._pruning.margin * coming / passed,
      solver._caution * coming / float(solver._cumulative[0]),
    )
    # What was faced in the last epoch, and what has ever been faced.
    faced, gained = self._faced
    weigh.unchecked(faced, solver._cumulative, solver._opened, factor + share, factor)
    self._gradients(faced, gained, self._gains)
    game_backward_pass(self.game, take_best, gained, tree=self.tree)
    return gained, factor

  @functools.cached_property
  def _most(self) -> Float64s:
    """How much a regret can grow in an iteration, whatever anybody plays, shape (sequences,)."""
    return 2.0 * self.game.spread(self.game.loss_bounds)

  def _gradients(self, faced: Float64s, result: Float64s, payoff: Payoff | None = None) -> Float64s:
    for player in range(2):
      (payoff or self.game.decisions.payoff).gradient_into(player, faced, result)
    return result
