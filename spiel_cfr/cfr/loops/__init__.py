"""Iterations of full-width solvers: the loop over a whole game, and that over a trunk and subtrees."""

import functools

from spiel_cfr import errors
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.arrays import IterationNumbers
from spiel_cfr.cfr.loops.loop import Loop, Players, WholeGameLoop
from spiel_cfr.cfr.loops.partitioned_loop import PartitionedLoop
from spiel_cfr.cfr.loops.sharded_subtrees import ShardedSubtrees
from spiel_cfr.cfr.loops.state import FullWidthState
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import undivided
from spiel_cfr.games.sequence_form.shared_infosets import spans_depths
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

__all__ = ["FullWidthState", "IterationNumbers", "Loop", "make_loop"]


def make_loop(
  game: CompiledGame,
  minimizer: RegretMinimizer,
  averaging: Averaging,
  updates: tuple[Players, ...],
) -> Loop:
  """Returns the loop of a solver before its first iteration, with uniform strategies; for arguments see `Loop`.

  Raises:
    AbstractionError: the minimizer predicts, and shared infosets differ in depth.
    ShardError: other processes visit the subtrees, and the minimizer can't be pickled.
  """
  shared, partition = game.shared_infosets, game.partition
  if shared is not None and minimizer.predict is not None and spans_depths(shared, game.groups):
    raise errors.AbstractionError(
      f"{minimizer} predicts utilities from the deepest infosets up, so all infosets of a bucket must have the same "
      "depth. In this game some differ. Use a solver without predictions, such as DCFRSolver, or put the number of the "
      "player's own actions into the names of the buckets."
    )
  if partition is None:
    decisions = game.every_infoset if minimizer.visits_forced else game.decisions
    partition = undivided(game.every_infoset, decisions)
  if len(partition.parts) == 1:
    loop: Loop = WholeGameLoop(game, minimizer, averaging, updates, partition)
  elif partition.shards is None:
    loop = PartitionedLoop(game, minimizer, averaging, updates, partition)
  else:
    subtrees = functools.partial(ShardedSubtrees, shards=partition.shards, minimizer=minimizer)
    loop = PartitionedLoop(game, minimizer, averaging, updates, partition, subtrees)
  loop.arrays.initialize()
  return loop
