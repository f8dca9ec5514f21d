"""The iterations of full-width solvers: one interface, and an implementation for each way to go through a game."""

from spiel_cfr.cfr.loops.flat import FlatLoop
from spiel_cfr.cfr.loops.loop import IterationNumbers, Loop
from spiel_cfr.cfr.loops.mapped_shards import MappedLoop
from spiel_cfr.cfr.loops.parts import PartsLoop
from spiel_cfr.cfr.loops.remote_shards import RemoteLoop
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.shards import MappedPartition, RemotePartition
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

__all__ = ["FlatLoop", "IterationNumbers", "Loop", "make_loop"]


def make_loop(
  game: CompiledGame, minimizer: RegretMinimizer, tapered: bool = False, correlated: bool = False
) -> Loop:
  """Returns the loop for a game, before its first iteration.

  Args:
    game: the game.
    minimizer: what every infoset does.
    tapered: whether it keeps `Loop.tapered`.
    correlated: whether it keeps `Loop.gradients` and `Loop.play_values`.
  """
  if game.partition is None:
    return FlatLoop(game, minimizer, tapered, correlated)
  if isinstance(game.partition, MappedPartition):
    return MappedLoop(game, minimizer, game.partition, tapered, correlated)
  if isinstance(game.partition, RemotePartition):
    return RemoteLoop(game, minimizer, game.partition, tapered, correlated)
  return PartsLoop(game, minimizer, game.partition, tapered, correlated)
