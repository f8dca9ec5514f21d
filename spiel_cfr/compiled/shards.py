"""Games whose subtrees several processes share."""

import concurrent.futures
import dataclasses
import os
import pathlib
import uuid
import weakref
from typing import Any

from spiel_cfr import arguments, errors, files
from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.compiled.parts import Partition
from spiel_cfr.compiled.shared_game import SharedGame


@dataclasses.dataclass(frozen=True, eq=False)
class ShardedPartition(Partition):
  """A partition whose subtrees are dealt to processes. Copies, pickles too, are plain partitions.

  Attributes:
    executor: on whose processes.
    folder: where they find the files that they share.
    num_shards: how many calls of the executor go through the subtrees once.
    game: the game, for the processes.
  """

  executor: concurrent.futures.Executor
  folder: pathlib.Path
  num_shards: int
  game: SharedGame

  def __reduce__(self) -> Any:
    """Pickles without the executor, which belongs to this process."""
    return Partition, (self.parts, self.num_threads)


def shard(
  game: CompiledGame,
  executor: concurrent.futures.Executor,
  folder: str | os.PathLike[str],
  num_shards: int | None = None,
) -> CompiledGame:
  """Returns the same game, whose full-width solvers share the subtrees among an executor's processes.

  The trunk stays in this process. In each update of a player it sends reach probabilities, and the processes return
  what the sequences of the trunk are worth, which is added in the order of the subtrees: the same bits for any number
  of shards, processes and threads. What a solver remembers lies in a file of `folder` that all processes map. A process
  that is killed costs its share of an update, which another one does again. See docs/sharding.md.

  Args:
    game: a game in parts, see `compile_public_game`.
    executor: `ProcessExecutor` or any other whose processes are on this machine.
    folder: for files of twice the size of what solvers remember; best in memory, such as a folder of /dev/shm. They are
      removed with the game and its solvers.
    num_shards: among how many calls of the executor the subtrees are divided; as many as there are cores by default.

  Raises:
    ArgumentError: the executor is none, or `num_shards` is not an integer from 1 to 100,000.
    UnsupportedGameError: the game is not in parts, or its action filter can't be pickled.
    OSError: the folder can't be written to.
  """
  if not isinstance(game, CompiledGame):
    raise errors.ArgumentError(
      f"game must be a compiled game, not {arguments.shortened(game)}. "
      "compile_public_game(game, partitioned=True) makes one in parts."
    )
  if not isinstance(executor, concurrent.futures.Executor):
    raise errors.ArgumentError(
      f"executor must be a concurrent.futures.Executor, not {arguments.shortened(executor)}."
    )
  if num_shards is None:
    num_shards = os.cpu_count() or 1
  num_shards = arguments.integer(num_shards, "num_shards", 1, 100_000)
  if game.partition is None:
    raise errors.UnsupportedGameError(
      "Only games in parts have subtrees to share: poker where public cards are dealt, compiled by "
      "compile_public_game(game, partitioned=True)."
    )
  directory = pathlib.Path(os.path.abspath(folder))
  files.make_folder(directory)
  path = directory / f"game-{uuid.uuid4().hex}"
  shared = SharedGame.write(game, path)
  parts = game.partition.parts
  partition = ShardedPartition(
    parts,
    game.partition.num_threads,
    executor,
    directory,
    min(num_shards, len(parts) - 1),
    shared,
  )
  weakref.finalize(partition, path.unlink, missing_ok=True)
  return game.with_partition(partition)
