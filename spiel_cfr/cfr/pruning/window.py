"""A window of pruning: some iterations on what is left of a game."""

import numpy as np

from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.cfr.loops import FullWidthState, IterationNumbers, WholeGameLoop
from spiel_cfr.cfr.pruning.compaction import Compacted
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class Window:
  """What is left of a game, and a loop over it.

  Attributes:
    left: what is left.
  """

  def __init__(
    self, left: Compacted, minimizer: RegretMinimizer, whole: FullWidthState, game: CompiledGame
  ) -> None:
    """Copies what is left of a solver's state.

    Args:
      left: what is left of the game.
      minimizer: what every infoset does.
      whole: the solver's state over the whole game, which `advance` keeps up to date.
      game: the whole game.
    """
    self.left = left
    scale = np.pad(game.scale[left.infosets], (0, MOST_LANES))
    self._loop = loop = WholeGameLoop.blank(left.game, minimizer, scale)
    small = loop.state
    # Iterations count as the solver's.
    small.counts = whole.counts
    self._pairs = [
      (small.strategy, whole.strategy),
      (small.cumulative, whole.cumulative),
      (small.regrets, whole.regrets),
    ]
    self._locals = small.local[:, : len(left.infosets)], whole.local
    for own, array in self._pairs:
      own[..., left.places] = array[..., left.sequences]
    own, array = self._locals
    own[:] = array[:, left.infosets]
    loop.refresh()

  def advance(self, alternating: bool, numbers: IterationNumbers) -> None:
    """Runs iterations, see `Loop.advance`, and brings the solver's state up to date."""
    left = self.left
    self._loop.advance(alternating, numbers)
    for own, array in self._pairs:
      array[..., left.sequences] = own[..., left.places]
    own, array = self._locals
    array[:, left.infosets] = own

  def values(self) -> list[float]:
    """Returns what each player's empty sequence was worth in its last iteration."""
    return self._loop.values()
