"""Shards on one machine: a solver's arrays lie in a file that all processes map, so that nobody has to be asked.

A call that dies half-way is made again by its executor, with the same bytes: before a subtree is changed, what will
change is copied to a second set of arrays, and its *mark* set to the number of the visit. Whoever finds that mark puts
the copy back first.
"""

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
from spiel_cfr._numba.arrays import AnyFloats, Int64s
from spiel_cfr.cfr.loops.part_steps import PartSteps, memory_sizes
from spiel_cfr.cfr.loops.shards import (
  ShardedLoop,
  Visit,
  averages,
  enter,
  left_for_trunk,
  remembered,
  visit_part,
)
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import Partition
from spiel_cfr.games.compiled.shards import MappedPartition
from spiel_cfr.games.compiled.shared_memory import SharedGame
from spiel_cfr.games.sequence_form.tree_passes import Memory
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

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


class MappedLoop(ShardedLoop):
  """See the module's docstring."""

  def __init__(
    self,
    game: CompiledGame,
    minimizer: RegretMinimizer,
    partition: MappedPartition,
    tapered: bool,
    correlated: bool,
  ) -> None:
    """Makes the file; see the base class.

    Raises:
      ShardError: the minimizer can't be pickled.
      OSError: the file can't be made.
    """
    self._executors = partition.executors
    self._path = str(partition.folder / f"arrays-{uuid.uuid4().hex}")
    super().__init__(game, minimizer, partition, tapered, correlated)
    self._source = _Source(partition.game, self._pickled_minimizer, self._path)

  def _allocate(self, partition: Partition) -> Memory:
    path, size = self._path, _places(self._game, self._minimizer, partition)[-1]
    weakref.finalize(self, pathlib.Path(path).unlink, missing_ok=True)
    with open(path, "xb") as file:
      if hasattr(os, "posix_fallocate"):
        # A full disk is to be an error here, and not a signal when the memory is written to.
        os.posix_fallocate(file.fileno(), 0, size)
      else:
        file.truncate(size)
    self._mapped = _map(path, self._game, self._minimizer, partition)
    return self._mapped.live

  def _share(self, visit: Visit) -> None:
    calls = [
      self._submit(executor, _visit, self._source, numbers, visit)
      for executor, numbers in zip(self._executors, self._numbers, strict=True)
    ]
    for numbers, call in zip(self._numbers, calls, strict=True):
      left = self._result(call)
      if left is None:
        left = _go_through(self._steps, self._mapped, numbers, visit)
      self._take_over(numbers, visit.turn, left)


def _visit(source: _Source, numbers: Sequence[int], visit: Visit) -> AnyFloats:
  """Goes through some subtrees in another process."""
  steps, mapped = _OWN.open(source)
  enter(steps, visit)
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
  steps: PartSteps, mapped: _Mapped, numbers: Sequence[int], visit: Visit
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
    visit_part(steps, number, visit)
  return left_for_trunk(steps, numbers, visit.turn)


def _changing(steps: PartSteps, memory: Memory, number: int, visit: Visit) -> Iterator[AnyFloats]:
  """Yields what a visit changes of a part."""
  yield from averages(steps, memory, number, np.flatnonzero(visit.owed))
  yield from remembered(steps, memory, number, visit.turn)


def _places(game: CompiledGame, minimizer: RegretMinimizer, partition: Partition) -> list[int]:
  """Returns where in the file each array begins, and where the last one ends, in bytes."""
  sizes = [length * np.dtype(dtype).itemsize for length, dtype in memory_sizes(game, minimizer)]
  marks = len(partition.parts) * np.dtype(np.int64).itemsize
  padded = [math.ceil(size / _ALIGNMENT) * _ALIGNMENT for size in (marks, *sizes, *sizes)]
  return list(itertools.accumulate(padded, initial=0))


def _map(path: str, game: CompiledGame, minimizer: RegretMinimizer, partition: Partition) -> _Mapped:
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
