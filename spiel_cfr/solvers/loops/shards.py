"""The loop over a game in parts whose subtrees other processes go through.

A *visit* goes through all subtrees once, for one player's update. Each shard, a call of the executor, goes through
some of them: it is given the trunk's reach probabilities, and returns what the trunk's sequences are worth. The arrays
lie in a file that all processes map, so that what solvers are asked between iterations is answered as ever.

A call that dies half-way is made again by its executor, with the same bytes: before a subtree is changed, what will
change is copied to a second set of arrays, and its *mark* set to the number of the visit. Whoever finds that mark puts
the copy back first. Where the executor gives up, this process does what is left, and says so after the iteration.
"""

import concurrent.futures
import dataclasses
import functools
import itertools
import math
import mmap
import os
import pathlib
import pickle
import threading
import uuid
import weakref
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.compiled.parts import PLAYERS, Partition
from spiel_cfr.compiled.shards import ShardedPartition
from spiel_cfr.compiled.shared_game import SharedGame
from spiel_cfr.game.sweeps import Memory
from spiel_cfr.kernels.arrays import AnyFloats, Float64s, Int64s, Uint64s
from spiel_cfr.minimizers.base import LocalMinimizer
from spiel_cfr.solvers.loops.base import IterationNumbers
from spiel_cfr.solvers.loops.part_steps import PartSteps, memory_sizes
from spiel_cfr.solvers.loops.parts import PartsLoop

_ALIGNMENT = 64


class _Mapped(NamedTuple):
  """The arrays of one solver in a file.

  Attributes:
    marks: in which visit each part was last changed, shape (parts,).
    live: what the solver remembers.
    copies: of a part what `live` was before the visit of its mark, as far as that changes it.
  """

  marks: Int64s
  live: Memory
  copies: Memory


@dataclasses.dataclass(frozen=True)
class _Source:
  """Where other processes find what they work on.

  Attributes:
    game: the game.
    minimizer: pickled.
    path: the file of arrays.
  """

  game: SharedGame
  minimizer: bytes
  path: str


class _Visit(NamedTuple):
  """What a shard is to do.

  Attributes:
    serial: the number of the visit.
    turn: see `PartSteps.visit`.
    parameters: likewise.
    owed: likewise.
    reaches: the trunk's, of each player; None where nobody needs them.
  """

  serial: int
  turn: Sequence[int]
  parameters: Float64s
  owed: Float64s
  reaches: list[AnyFloats | None]


class ShardedLoop(PartsLoop):
  """See the module's docstring."""

  def __init__(
    self,
    game: CompiledGame,
    minimizer: LocalMinimizer,
    partition: ShardedPartition,
    tapered: bool,
    correlated: bool,
  ) -> None:
    """Makes the file; see the base class.

    Raises:
      ShardError: the minimizer can't be pickled.
      OSError: the file can't be made.
    """
    self._partition = partition
    try:
      pickled = pickle.dumps(minimizer)
    except Exception as error:
      raise errors.ShardError(
        f"{type(minimizer).__name__} can't be pickled, so other processes can't go through subtrees with it. Define "
        "it, and its kernels, at the top level of a module; or solve the game as it was before shard()."
      ) from error
    path = str(partition.folder / f"arrays-{uuid.uuid4().hex}")
    self._source = _Source(partition.game, pickled, path)
    self._visits = 0
    self._failure: BaseException | None = None
    super().__init__(game, minimizer, partition, tapered, correlated)

  def _allocate(self, partition: Partition) -> Memory:
    path, size = self._source.path, _places(self._game, self._minimizer, partition)[-1]
    weakref.finalize(self, pathlib.Path(path).unlink, missing_ok=True)
    with open(path, "xb") as file:
      if hasattr(os, "posix_fallocate"):
        # A full disk is to be an error here, and not a signal when the memory is written to.
        os.posix_fallocate(file.fileno(), 0, size)
      else:
        file.truncate(size)
    self._mapped = _map(path, self._game, self._minimizer, partition)
    return self._mapped.live

  def advance(self, alternating: bool, numbers: IterationNumbers, done: Uint64s) -> None:
    """See the base class.

    Raises:
      ShardError: the executor has failed. The iterations are whole all the same.
    """
    super().advance(alternating, numbers, done)
    self._raise_failure()

  def update(self, player: int, parameters: Float64s, before: Float64s, after: Float64s) -> None:
    """See the base class, and `advance`."""
    super().update(player, parameters, before, after)
    self._raise_failure()

  def _raise_failure(self) -> None:
    failure, self._failure = self._failure, None
    if failure is not None:
      raise errors.ShardError(
        f"The executor failed with {type(failure).__name__}: {failure}. This process has finished the iterations that "
        "were begun; the solver is as it would have been, and may go on with this game or be saved."
      ) from failure

  def _visit_subtrees(self, turn: Sequence[int], parameters: Float64s, owed: Float64s) -> None:
    self._visits += 1
    walk, count = self._steps.walk, self._partition.num_shards
    reaches = [
      walk.trunk.sequence_form[player][: self._parts[0].length(player)]
      if owed[player] or 1 - player in turn
      else None
      for player in PLAYERS
    ]
    visit = _Visit(self._visits, turn, parameters, owed, reaches)
    shards = [range(first, len(self._parts), count) for first in range(1, count + 1)]
    calls = [self._submit(numbers, visit) for numbers in shards]
    for numbers, call in zip(shards, calls, strict=True):
      left = self._result(call)
      if left is None:
        left = _go_through(self._steps, self._mapped, numbers, visit)
      begin = 0
      for kept in _kept(self._steps, numbers, turn):
        kept[:] = left[begin : begin + len(kept)]
        begin += len(kept)

  def _submit(
    self, numbers: Sequence[int], visit: _Visit
  ) -> "concurrent.futures.Future[AnyFloats] | None":
    """Asks the executor; returns None if it has failed."""
    if self._failure is None:
      try:
        return self._partition.executor.submit(_visit, self._source, numbers, visit)
      except Exception as error:
        self._failure = error
    return None

  def _result(self, call: "concurrent.futures.Future[AnyFloats] | None") -> AnyFloats | None:
    """Returns what a shard has left for the trunk, or None if its executor has failed."""
    if call is not None:
      try:
        return call.result()
      # Also what interrupts other processes.
      except BaseException as error:
        self._failure = error
    return None


def _visit(source: _Source, numbers: Sequence[int], visit: _Visit) -> AnyFloats:
  """Goes through some subtrees in another process."""
  steps, mapped = _OWN.open(source)
  for reach, sent in zip(steps.walk.trunk.sequence_form, visit.reaches, strict=True):
    if sent is not None:
      reach[: len(sent)] = sent
  return _go_through(steps, mapped, numbers, visit)


def _open(source: _Source) -> tuple[PartSteps, _Mapped]:
  """Returns what a process needs for one solver."""
  game, minimizer = source.game.load(), pickle.loads(source.minimizer)
  assert game.partition is not None
  partition = dataclasses.replace(game.partition, num_threads=1)
  mapped = _map(source.path, game, minimizer, partition)
  return PartSteps(game, minimizer, partition, mapped.live), mapped


class _Own(threading.local):
  """What a thread keeps for the next visits, since some executors call in threads."""

  def __init__(self) -> None:
    self.open = functools.lru_cache(maxsize=2)(_open)


_OWN = _Own()


def _go_through(
  steps: PartSteps, mapped: _Mapped, numbers: Sequence[int], visit: _Visit
) -> AnyFloats:
  """Goes through subtrees, again if that was begun before; returns what it leaves for the trunk, in one array."""
  for number in numbers:
    live, copies = (
      list(_changing(steps, memory, number, visit)) for memory in (mapped.live, mapped.copies)
    )
    again = mapped.marks[number] == visit.serial
    for one, copy in zip(live, copies, strict=True):
      if again:
        one[:] = copy
      else:
        copy[:] = one
    # Not before the copy is complete.
    mapped.marks[number] = visit.serial
    workspace = steps.walk.workspaces[0]
    steps.visit(number, workspace, visit.turn, visit.parameters, visit.owed)
  return np.concatenate([steps.memory.strategy[:0], *_kept(steps, numbers, visit.turn)])


def _changing(steps: PartSteps, memory: Memory, number: int, visit: _Visit) -> Iterator[AnyFloats]:
  """Yields what a visit changes of a part."""
  part = steps.parts[number]
  for player in PLAYERS:
    own = part.sequences[player]
    if visit.owed[player]:
      yield memory.cumulative[own]
    if player in visit.turn:
      yield memory.strategy[own]
      yield steps.state_of(memory, own)
      yield steps.local_of(memory, part.infosets[player])


def _kept(steps: PartSteps, numbers: Sequence[int], turn: Sequence[int]) -> Iterator[AnyFloats]:
  """Yields what subtrees have left for the trunk."""
  for number in numbers:
    for player in turn:
      yield from steps.walk.kept(number, player)[: 1 + steps.predicts]


def _places(game: CompiledGame, minimizer: LocalMinimizer, partition: Partition) -> list[int]:
  """Returns where in the file each array begins, and where the last one ends, in bytes."""
  sizes = [length * np.dtype(dtype).itemsize for length, dtype in memory_sizes(game, minimizer)]
  marks = len(partition.parts) * np.dtype(np.int64).itemsize
  padded = [math.ceil(size / _ALIGNMENT) * _ALIGNMENT for size in (marks, *sizes, *sizes)]
  return list(itertools.accumulate(padded, initial=0))


def _map(path: str, game: CompiledGame, minimizer: LocalMinimizer, partition: Partition) -> _Mapped:
  """Maps a file of arrays into memory.

  Raises:
    DamagedFileError: it has another size.
    OSError: it can't be opened.
  """
  places = _places(game, minimizer, partition)
  with open(path, "r+b") as file:
    if os.fstat(file.fileno()).st_size != places[-1]:
      raise errors.DamagedFileError(f"{path} is not what the solver made. Start the program again.")
    content = mmap.mmap(file.fileno(), places[-1])
  sizes = memory_sizes(game, minimizer)
  arrays = [
    np.frombuffer(content, dtype, length, begin)
    for (length, dtype), begin in zip([*sizes, *sizes], places[1:-1], strict=True)
  ]
  marks = np.frombuffer(content, np.int64, len(partition.parts))
  return _Mapped(marks, Memory(*arrays[:4]), Memory(*arrays[4:]))
