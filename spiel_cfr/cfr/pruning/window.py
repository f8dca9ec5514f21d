"""A window: what is left of a game, and a loop over it."""

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Bools
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.cfr.loops import FlatLoop
from spiel_cfr.cfr.pruning.compaction import compact
from spiel_cfr.cfr.pruning.rewriting import copy_some
from spiel_cfr.cfr.pruning.rule import PruningRule, Windowed


class Window:
  """See the module's docstring.

  Attributes:
    left: what is left of the game.
    loop: of that, once iterations have begun.
  """

  def __init__(self, rule: PruningRule, pruned: Bools) -> None:
    """Compacts the game to what is not pruned."""
    self._scale = rule.game.scale
    self.left = compact(rule.game, rule.rows, pruned, rule.owners_go_on)
    self.loop: FlatLoop | None = None

  def opened(self, solver: Windowed) -> FlatLoop:
    """Returns the loop; the first time, all that the solver remembers of what is left is copied to it."""
    if self.loop is None:
      left = self.left
      scale = np.zeros(len(left.infosets) + MOST_LANES, np.uint16)
      scale[: len(left.infosets)] = self._scale[left.infosets]
      self.loop = FlatLoop.blank(left.game, solver.minimizer, scale)
      self._infosets = np.arange(len(left.infosets), dtype=np.uint32)
      for whole, small in self._of_sequences(solver, self.loop):
        copy_some.unchecked(whole, small, left.sequences, left.places)
      for whole, small in zip(solver._local, self.loop.local, strict=True):
        copy_some.unchecked(whole, small, left.infosets, self._infosets)
      self.loop.refresh()
    return self.loop

  def take_back(self, solver: Windowed) -> None:
    """Copies it back from the loop."""
    left, loop = self.left, self.opened(solver)
    for whole, small in self._of_sequences(solver, loop):
      copy_some.unchecked(small, whole, left.places, left.sequences)
    for whole, small in zip(solver._local, loop.local, strict=True):
      copy_some.unchecked(small, whole, self._infosets, left.infosets)

  def _of_sequences(self, solver: Windowed, loop: FlatLoop) -> list[tuple[AnyFloats, AnyFloats]]:
    """Returns pairs of arrays over the sequences, of the whole game and of what is left."""
    return [
      (solver._strategy, loop.strategy),
      (solver._cumulative, loop.cumulative),
      *zip(solver._state, loop.state, strict=True),
    ]
