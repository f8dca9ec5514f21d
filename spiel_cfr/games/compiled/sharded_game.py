"""`shard`, which divides the subtrees of a game in parts among several processes."""

import concurrent.futures
import dataclasses
import os
import pickle

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import Shards


@typed
def shard(
  game: CompiledGame,
  executor: concurrent.futures.Executor,
  num_shards: int | None = None,
) -> CompiledGame:
  """Returns the same game, whose full-width solvers divide its subtrees among the processes of an executor.

  Iterations give the same bits for any number of shards, processes and threads, even if processes or machines die. Each
  process keeps the arrays of the last solver that it served. See docs/sharding.md.

  Args:
    game: a game in parts, see `compile_vector_game` and `poker.compile_public_game`.
    executor: `RayExecutor`, or another executor with the method `actors`.
    num_shards: number of processes; by default, the number of this machine's cores.

  Raises:
    ArgumentError: the executor has no `actors`, or `num_shards` is not an integer from 1 to 100,000.
    UnsupportedGameError: the game is not in parts.
    ShardError: the executor has too few processes.
  """
  if not isinstance(game, CompiledGame):
    raise errors.ArgumentError(
      f"game must be a compiled game, not {arguments.shortened(game)}. "
      "games.compile_vector_game(game, partitioned=True) makes one in parts."
    )
  actors = getattr(executor, "actors", None)
  if not callable(actors):
    raise errors.ArgumentError(
      f"executor must be a RayExecutor, or have its method actors, not "
      f"{arguments.shortened(executor)}. On one machine, num_threads is faster."
    )
  if num_shards is None:
    num_shards = os.cpu_count() or 1
  num_shards = arguments.integer(num_shards, "num_shards", 1, 100_000)
  if game.partition is None:
    raise errors.UnsupportedGameError(
      f"{game} is not in parts, so it has no subtrees to share. Compile it with partitioned=True, by "
      "games.compile_vector_game, or by poker.compile_public_game where public cards are dealt."
    )
  # Pickling may fail, so it comes before processes start.
  pickled = pickle.dumps(game)
  executors = actors(min(num_shards, len(game.partition.parts) - 1))
  shards = Shards(executors, pickled)
  return game.with_partition(dataclasses.replace(game.partition, shards=shards))
