"""Games whose subtrees several processes share."""

import concurrent.futures
import dataclasses
import os
import pathlib
import pickle
import uuid
import weakref
from collections.abc import Sequence
from typing import Any

from spiel_cfr import errors
from spiel_cfr._util import arguments, files
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition
from spiel_cfr.games.compiled.shared_memory import SharedGame


@dataclasses.dataclass(frozen=True, eq=False)
class ShardedPartition(Partition):
  """A partition whose subtrees are dealt to processes. Copies, pickles too, are plain partitions.

  Attributes:
    executors: one for each shard, on whose processes that goes through its subtrees.
  """

  executors: Sequence[concurrent.futures.Executor]

  def __reduce__(self) -> Any:
    """Pickles without the executors, which belong to this process."""
    return Partition, (self.parts, self.num_threads)


@dataclasses.dataclass(frozen=True, eq=False)
class MappedPartition(ShardedPartition):
  """Whose processes are on one machine, and map what solvers remember.

  Attributes:
    folder: where they find the files that they share.
    game: the game, for the processes.
  """

  folder: pathlib.Path
  game: SharedGame


@dataclasses.dataclass(frozen=True, eq=False)
class RemotePartition(ShardedPartition):
  """Whose processes are anywhere, and remember what solvers do in their own subtrees.

  Attributes:
    game: the game, for the processes, pickled.
    barrier_every: after how many updates of a player they hand over what they remember, if nobody asks before.
  """

  game: bytes
  barrier_every: int


def shard(
  game: CompiledGame,
  executor: concurrent.futures.Executor,
  folder: str | os.PathLike[str] | None = None,
  num_shards: int | None = None,
  barrier_every: int = 100,
) -> CompiledGame:
  """Returns the same game, whose full-width solvers share the subtrees among an executor's processes.

  The trunk stays in this process. In each update of a player it sends reach probabilities, and the processes return
  what the sequences of the trunk are worth, which is added in the order of the subtrees: the same bits for any number
  of shards, processes and threads. See docs/sharding.md.

  With a folder, what a solver remembers lies in a file there that all processes map. A process that is killed costs its
  share of an update, which another one does again. Without one, each shard has a process of its own, on any machine,
  that remembers what there is in its subtrees. This process has a copy from the last barrier, and the reach
  probabilities since: if one is killed, another one takes the copy and does the updates since then again.

  Args:
    game: a game in parts, see `compile_public_game`.
    executor: with a folder, `ProcessExecutor` or any other whose processes are on this machine; without one,
      `RayExecutor`, `ProcessExecutor`, or any with their method `pinned`.
    folder: for files of twice the size of what solvers remember; best in memory, such as a folder of /dev/shm. They are
      removed with the game and its solvers.
    num_shards: among how many calls of the executor, or how many processes, the subtrees are divided; as many as this
      machine has cores by default.
    barrier_every: without a folder, after how many updates of a player the processes hand over what they remember. They
      also do so whenever somebody looks at the solver.

  Raises:
    ArgumentError: the executor is none, `num_shards` is not an integer from 1 to 100,000, or `barrier_every` not one
      from 1 to 1,000,000.
    UnsupportedGameError: the game is not in parts, or its action filter can't be pickled.
    ShardError: there is no folder, and the executor can't say which process a call goes to, or has too few.
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
  barrier_every = arguments.integer(barrier_every, "barrier_every", 1, 1_000_000)
  if game.partition is None:
    raise errors.UnsupportedGameError(
      "Only games in parts have subtrees to share: poker where public cards are dealt, compiled by "
      "compile_public_game(game, partitioned=True)."
    )
  parts, num_threads = game.partition.parts, game.partition.num_threads
  num_shards = min(num_shards, len(parts) - 1)
  if folder is None:
    executors = _pinned(executor, num_shards)
    return game.with_partition(
      RemotePartition(parts, num_threads, executors, pickle.dumps(game), barrier_every)
    )
  directory = pathlib.Path(os.path.abspath(folder))
  files.make_folder(directory)
  path = directory / f"game-{uuid.uuid4().hex}"
  shared = SharedGame.write(game, path)
  partition = MappedPartition(parts, num_threads, [executor] * num_shards, directory, shared)
  weakref.finalize(partition, path.unlink, missing_ok=True)
  return game.with_partition(partition)


def _pinned(
  executor: concurrent.futures.Executor, count: int
) -> Sequence[concurrent.futures.Executor]:
  """Returns executors of one process each."""
  pinned = getattr(executor, "pinned", None)
  if pinned is None:
    raise errors.ShardError(
      f"Without a folder each shard needs a process of its own, and {type(executor).__name__} does not say which "
      "process a call goes to. Take RayExecutor or ProcessExecutor; or give a folder, on one machine."
    )
  result: Sequence[concurrent.futures.Executor] = pinned(count)
  return result
