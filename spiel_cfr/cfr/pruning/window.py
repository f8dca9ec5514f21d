"""A window of pruning: iterations on what is left of a game."""

from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.pruning.compaction import Compacted


class Window:
  """A solver of what is left of a game, which keeps the state of a solver of the whole game up to date."""

  def __init__(self, left: Compacted, whole: FullWidthSolver) -> None:
    self.left, self._state = left, whole.state
    self._solver = FullWidthSolver(left.game, **whole.constructor_arguments())
    own, state, infosets = self._solver.state, self._state, np.arange(len(left.infosets))
    # Arrays of the small game and of the whole one, and the places in each that belong together.
    self._pairs: list[tuple[AnyFloats, AnyFloats, Any, Any]] = [
      (own.strategy, state.strategy, left.places, left.sequences),
      (own.cumulative, state.cumulative, left.places, left.sequences),
      (own.action_state, state.action_state, left.places, left.sequences),
      (own.infoset_state, state.infoset_state, infosets, left.infosets),
    ]
    for small, large, here, there in self._pairs:
      small[..., here] = large[..., there]
    own.counts[:] = state.counts
    self._solver.refresh()

  def advance(self, count: int) -> None:
    """Runs iterations."""
    self._solver._advance(count)
    for small, large, here, there in self._pairs:
      large[..., there] = small[..., here]
    self._state.counts[:] = self._solver.state.counts
