"""A window of pruning: some iterations on what is left of a game."""

import numpy as np

from spiel_cfr._numba.arrays import Uint64s
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.cfr.loops import FlatLoop, IterationNumbers
from spiel_cfr.cfr.pruning.compaction import Compacted
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.tree_passes import Memory
from spiel_cfr.regret_minimizers.regret_minimizer import LocalMinimizer


class Window:
  """What is left of a game, and a loop over it.

  Attributes:
    left: what is left.
  """

  def __init__(
    self, left: Compacted, minimizer: LocalMinimizer, whole: Memory, game: CompiledGame
  ) -> None:
    """Copies what is left of a solver's arrays.

    Args:
      left: what is left of the game.
      minimizer: what every infoset does.
      whole: the solver's arrays over the whole game, which `advance` keeps up to date.
      game: the whole game.
    """
    self.left, self._whole = left, whole
    scale = np.pad(game.scale[left.infosets], (0, MOST_LANES))
    self._loop = loop = FlatLoop.blank(left.game, minimizer, scale)
    self._small = Memory(loop.strategy, loop.cumulative, loop.state, loop.local)
    for small, array in zip(self._small[:3], whole[:3], strict=True):
      small[..., left.places] = array[..., left.sequences]
    self._small.local[:, : len(left.infosets)] = whole.local[:, left.infosets]
    loop.refresh()

  def advance(self, alternating: bool, numbers: IterationNumbers, done: Uint64s) -> None:
    """Runs iterations, see `Loop.advance`, and brings the solver's arrays up to date."""
    left = self.left
    self._loop.advance(alternating, numbers, done)
    for small, array in zip(self._small[:3], self._whole[:3], strict=True):
      array[..., left.sequences] = small[..., left.places]
    self._whole.local[:, left.infosets] = self._small.local[:, : len(left.infosets)]

  def values(self) -> list[float]:
    """Returns what each player's empty sequence was worth in its last iteration."""
    return self._loop.values()
