"""The iterations of full-width solvers: one interface, and an implementation for each way to go through a game."""

from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.loop import FullWidthState, IterationNumbers, Loop
from spiel_cfr.cfr.loops.partitioned_loop import PartitionedLoop
from spiel_cfr.cfr.loops.whole_game import WholeGameLoop
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

__all__ = ["FullWidthState", "IterationNumbers", "Loop", "WholeGameLoop", "make_loop"]


def make_loop(game: CompiledGame, minimizer: RegretMinimizer, averaging: Averaging) -> Loop:
  """Returns the loop for a game before its first iteration."""
  if game.partition is None:
    return WholeGameLoop(game, minimizer, averaging)
  return PartitionedLoop(game, minimizer, game.partition, averaging)
