"""Partial pruning: where nobody plays to nothing changes, and nothing has to be made up."""

import functools

import numpy as np

from spiel_cfr._numba.arrays import Bools, Int64s
from spiel_cfr.cfr.loops import FlatLoop, IterationNumbers
from spiel_cfr.cfr.pruning.compaction import Compacted
from spiel_cfr.cfr.pruning.constants import Pruning
from spiel_cfr.cfr.pruning.rule import PruningRule, Windowed
from spiel_cfr.cfr.pruning.taking import LeafTable, all_leaves, own_leaves
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.policies import forms

# After so many iterations partial pruning looks whether it was right.
_BATCH = 16


class PartialRule(PruningRule):
  """Partial pruning: what others do not lead to changes nothing, so that nobody need look.

  Nobody knows beforehand what will be played. So this guesses: what was not played to in the last window. After every
  few iterations it looks whether that was right. If not, these are undone, and the window is over.
  """

  owners_go_on = True

  def __init__(self, game: EnumeratedGame, pruning: Pruning) -> None:
    """Takes the game with rows of leaves, of which a window has some in the same order; forced moves are visited."""
    rows = own_leaves(game) if isinstance(game.payoff, LeafRows) else all_leaves(game)
    payoff = rows.payoff(game.treeplexes, np.ones(len(rows.values), bool))
    super().__init__(game.with_payoff(payoff).visiting_all(), pruning)
    self._rows = rows

  @property
  def rows(self) -> LeafTable:
    """See the base class."""
    return self._rows

  @functools.cached_property
  def _above(self) -> Int64s:
    """The sequence above each sequence's infoset; of others, the first one."""
    return self.game.spread(self.game.parent.astype(np.float64)).astype(np.int64)

  @functools.cached_property
  def _real(self) -> Bools:
    return forms.uniform(self.game) > 0

  def decide(self, solver: Windowed, length: int) -> bool:
    """See the base class; what was wrong, `advance` has gone back on."""
    solver._loop.refresh()
    quiet = solver._loop.current_sequence_form() == 0
    quiet &= self._real & (solver._cumulative == solver._opened)
    solver._pruned[:] = quiet & ~quiet[self._above]
    return True

  def settle(self, solver: Windowed, window: Compacted) -> None:
    """See the base class."""

  def advance(self, solver: Windowed, small: FlatLoop, numbers: IterationNumbers) -> int:
    """See the base class."""
    window, count = solver._left(), len(numbers.parameters)
    watched = window.places[solver._pruned[window.sequences]]
    arrays = (small.strategy, small.cumulative, small.state, small.local)
    for first in range(0, count, _BATCH):
      last = min(first + _BATCH, count)
      rows = IterationNumbers(*(each[first:last] for each in numbers))
      kept, done = [each.copy() for each in arrays], solver.iteration
      # Sums show whatever has been played to meanwhile, if they begin at 0, and iterations weigh anything.
      small.cumulative[watched] = 0.0
      small.advance(solver.alternating_updates, rows, solver._iteration)
      weighed = (rows.weights_before + rows.weights_after > 0).all()
      played = small.cumulative[watched].any() or small.current_sequence_form()[watched].any()
      small.cumulative[watched] = kept[1][watched]
      if played or not weighed:
        for array, before in zip(arrays, kept, strict=True):
          array[:] = before
        small.refresh()
        solver.iteration = done
        return first
    return count
