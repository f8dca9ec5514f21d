"""Windows of pruning: iterations of a solver of the whole game, made on the compacted game."""

from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.pruning.compaction import CompactedGame


class PruningWindow:
  """A solver of the compacted game that starts from the state of the solver of the whole game, and updates it.

  Attributes:
    compacted: the compacted game.
  """

  def __init__(self, compacted: CompactedGame, whole: FullWidthSolver) -> None:
    """Makes the solver of the compacted game, with the state of `whole`."""
    self.compacted, self._whole_state = compacted, whole.state
    self._solver = FullWidthSolver(compacted.game, **whole.constructor_arguments())
    compact_state, whole_state = self._solver.state, self._whole_state
    compact_infosets = np.arange(len(compacted.infosets))
    # Arrays of the compacted and of the whole game, and the corresponding columns of both.
    self._pairs: list[tuple[AnyFloats, AnyFloats, Any, Any]] = [
      (compact_state.strategy, whole_state.strategy, compacted.places, compacted.sequences),
      (compact_state.cumulative, whole_state.cumulative, compacted.places, compacted.sequences),
      (compact_state.action_state, whole_state.action_state, compacted.places, compacted.sequences),
      (
        compact_state.infoset_state,
        whole_state.infoset_state,
        compact_infosets,
        compacted.infosets,
      ),
    ]
    for compact, full, compact_columns, full_columns in self._pairs:
      compact[..., compact_columns] = full[..., full_columns]
    compact_state.counts[:] = whole_state.counts
    self._solver.refresh()

  def advance(self, count: int) -> None:
    """Runs iterations on the compacted game, and copies the results to the state of the whole game."""
    self._solver._advance(count)
    for compact, full, compact_columns, full_columns in self._pairs:
      full[..., full_columns] = compact[..., compact_columns]
    self._whole_state.counts[:] = self._solver.state.counts
