"""Windows of pruning: iterations on a game without its frozen subtrees."""

from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.pruning.compaction import Compacted


class Window:
  """A solver of the compacted game, which keeps the state of the solver of the whole game up to date."""

  def __init__(self, left: Compacted, whole: FullWidthSolver) -> None:
    self.left, self._state = left, whole.state
    self._solver = FullWidthSolver(left.game, **whole.constructor_arguments())
    part, whole_state, infosets = self._solver.state, self._state, np.arange(len(left.infosets))
    # Arrays of the compacted game and of the whole game, and the corresponding places in both.
    self._pairs: list[tuple[AnyFloats, AnyFloats, Any, Any]] = [
      (part.strategy, whole_state.strategy, left.places, left.sequences),
      (part.cumulative, whole_state.cumulative, left.places, left.sequences),
      (part.action_state, whole_state.action_state, left.places, left.sequences),
      (part.infoset_state, whole_state.infoset_state, infosets, left.infosets),
    ]
    for small, large, here, there in self._pairs:
      small[..., here] = large[..., there]
    part.counts[:] = whole_state.counts
    self._solver.refresh()

  def advance(self, count: int) -> None:
    """Runs iterations."""
    self._solver._advance(count)
    for small, large, here, there in self._pairs:
      large[..., there] = small[..., here]
    self._state.counts[:] = self._solver.state.counts
