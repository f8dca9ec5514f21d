"""The iterations of full-width solvers."""

import functools

from spiel_cfr import errors
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.arrays import IterationNumbers
from spiel_cfr.cfr.loops.loop import Loop, WholeLoop
from spiel_cfr.cfr.loops.parts_loop import PartsLoop
from spiel_cfr.cfr.loops.sharded_subtrees import ShardedSubtrees
from spiel_cfr.cfr.loops.state import FullWidthState
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import undivided
from spiel_cfr.games.sequence_form.shared_infosets import spans_depths
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

__all__ = ["FullWidthState", "IterationNumbers", "Loop", "make_loop"]


def make_loop(game: CompiledGame, minimizer: RegretMinimizer, averaging: Averaging) -> Loop:
  """Returns the loop for a game before its first iteration; strategies are uniform.

  Raises:
    AbstractionError: the minimizer predicts, and shared infosets differ in depth.
    ShardError: other processes visit the subtrees, and the minimizer can't be pickled.
  """
  shared, partition = game.shared_infosets, game.partition
  if shared is not None and minimizer.predict is not None and spans_depths(shared, game.groups):
    raise errors.AbstractionError(
      f"{minimizer} predicts utilities from the deepest infosets up, which needs buckets of infosets of equal depth; "
      "this game has others. Use a solver without predictions, such as DCFRSolver, or put the number of the player's "
      "own actions into the names of the buckets."
    )
  if partition is None:
    decisions = game.every_infoset if minimizer.visits_forced else game.decisions
    partition = undivided(game.every_infoset, decisions)
  if len(partition.parts) == 1:
    loop: Loop = WholeLoop(game, minimizer, averaging, partition)
  elif partition.shards is None:
    loop = PartsLoop(game, minimizer, averaging, partition)
  else:
    shards = functools.partial(ShardedSubtrees, shards=partition.shards, minimizer=minimizer)
    loop = PartsLoop(game, minimizer, averaging, partition, shards)
  loop.arrays.begin()
  return loop
