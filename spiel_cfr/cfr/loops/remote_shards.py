"""Shards on any machines: each process remembers what there is in its own subtrees, and nothing is mapped.

This process has a copy of all arrays, as old as the last *barrier*, and the visits since. So a process that has
forgotten everything, since it has just taken the place of one that died, is given the copy and does these visits again,
with the same bytes. Somebody who looks at the arrays is given them at a barrier; and since who looks may write, the
processes then take them over before they go on.
"""

import contextlib
import dataclasses
import pickle
import uuid
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.loops.part_steps import PartSteps, new_memory
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
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS
from spiel_cfr.games.compiled.shards import RemotePartition
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class _Source(NamedTuple):
  """What a solver is made of, pickled."""

  game: bytes
  minimizer: bytes


class _Snapshot(NamedTuple):
  """What is remembered of some parts.

  Attributes:
    arrays: of each part in turn, see `_all_remembered`.
    held: which sequences keep their probabilities, and these.
  """

  arrays: list[AnyFloats]
  held: tuple[Any, AnyFloats]


class _Order(NamedTuple):
  """What a process is to do.

  Attributes:
    numbers: of its subtrees.
    since: the last visit that it has done.
    visits: those that it is to do.
    barrier: whether it then hands over what it remembers.
  """

  numbers: Sequence[int]
  since: int
  visits: list[Visit]
  barrier: bool


class _Answer(NamedTuple):
  """What the last visit has left for the trunk, and what the process remembers if that was asked for."""

  left: AnyFloats
  arrays: list[AnyFloats]


@dataclasses.dataclass
class _Shard:
  """What this process knows of a shard.

  Attributes:
    key: by which its process knows it.
    numbers: of its subtrees.
    executor: of its process.
    barrier: the visit after which this process has its arrays.
  """

  key: str
  numbers: Sequence[int]
  executor: Any
  barrier: int = 0


class RemoteLoop(ShardedLoop):
  """See the module's docstring."""

  def __init__(
    self,
    game: CompiledGame,
    minimizer: RegretMinimizer,
    partition: RemotePartition,
    tapered: bool,
    correlated: bool,
  ) -> None:
    """See the base class."""
    super().__init__(game, minimizer, partition, tapered, correlated)
    self._source = _Source(partition.game, self._pickled_minimizer)
    self._barrier_every = partition.barrier_every
    self._visits: list[Visit] = []
    self._shards = [
      _Shard(uuid.uuid4().hex, numbers, executor)
      for numbers, executor in zip(self._numbers, partition.executors, strict=True)
    ]
    weakref.finalize(self, _forget_all, self._shards).atexit = False

  def gathered(self) -> Self:
    """See the base class."""
    if self._visits:
      # Ctrl-C is to wait.
      whole_steps(lambda number, last: self._gather(), 1)
    # The arrays count as changed.
    self._serial += 1
    for shard in self._shards:
      shard.barrier = self._serial
    return self

  def update(self, player: int, parameters: Float64s, before: Float64s, after: Float64s) -> None:
    """See the base class."""
    try:
      super().update(player, parameters, before, after)
    finally:
      self.gathered()

  def _share(self, visit: Visit) -> None:
    self._visits.append(visit)
    self._ask([visit], barrier=len(self._visits) >= self._barrier_every)

  def _add_to_tapered(self, factor: float) -> None:
    self._gather()
    super()._add_to_tapered(factor)

  def _gather(self) -> None:
    """Makes a barrier."""
    if self._visits:
      failure = self._failure
      self._ask([], barrier=True)
      # If that fails nothing is lost: the visits are done again here.
      self._failure = failure

  def _ask(self, visits: list[Visit], barrier: bool) -> None:
    """Has the shards do visits, none or the last one, and takes over what they return."""
    before = self._serial - len(visits)
    answers: dict[int, _Answer] = {}
    # First it is hoped that processes remember, then that they know the game.
    for with_snapshot, source in ((False, None), (True, None), (True, self._source)):
      calls = {}
      for index, shard in enumerate(self._shards):
        if index in answers:
          continue
        order, snapshot = _Order(shard.numbers, before, visits, barrier), None
        if with_snapshot:
          order = order._replace(since=shard.barrier, visits=self._since(shard))
          snapshot = self._snapshot(shard)
        calls[index] = self._submit(shard.executor, _serve, shard.key, order, snapshot, source)
      for index, call in calls.items():
        answer = self._result(call)
        if answer is not None:
          answers[index] = answer
    for index, answer in answers.items():
      shard = self._shards[index]
      if visits:
        self._take_over(shard.numbers, visits[0].turn, answer.left)
      if barrier:
        _write(self._steps, shard.numbers, answer.arrays)
        shard.barrier = self._serial
    if len(answers) < len(self._shards):
      self._catch_up()
    oldest = min(shard.barrier for shard in self._shards)
    self._visits = [visit for visit in self._visits if visit.serial > oldest]

  def _catch_up(self) -> None:
    """Does in this process what the others have done since the last barrier, and what they have not."""
    trunk = self._steps.walk.trunk.sequence_form
    now = [reach.copy() for reach in trunk]
    totals = [self._steps.total(player) for player in PLAYERS]
    for shard in self._shards:
      _go_through(self._steps, shard.numbers, self._since(shard), self._restore_held)
      shard.barrier = self._serial
    for player, reach in enumerate(now):
      trunk[player][:] = reach
      self._steps.set_total(player, totals[player])

  def _since(self, shard: _Shard) -> list[Visit]:
    """Returns the visits since a shard's last barrier."""
    return [visit for visit in self._visits if visit.serial > shard.barrier]

  def _snapshot(self, shard: _Shard) -> _Snapshot:
    """Returns what there is of a shard here."""
    is_there = np.zeros(self._game.end, bool)
    for number in shard.numbers:
      for own in self._parts[number].sequences:
        is_there[own] = True
    there = is_there[self._held]
    held = self._held[there], self._kept[there]
    return _Snapshot(_all_remembered(self._steps, shard.numbers), held)


class _Worker:
  """What a process has of one shard.

  Attributes:
    serial: the last visit that it has done; -1 if nobody knows.
  """

  def __init__(self, source: _Source) -> None:
    """Remembers nothing yet."""
    game, minimizer = pickle.loads(source.game), pickle.loads(source.minimizer)
    partition = dataclasses.replace(game.partition, num_threads=1)
    # As long as those of the whole game; but memory that is never written to is only an address.
    memory = new_memory(game, minimizer)
    self._steps = PartSteps(game, minimizer, partition, memory)
    self._held: tuple[Any, AnyFloats] = np.zeros(0, np.int64), memory.strategy[:0]
    self.serial = -1

  def take(self, numbers: Sequence[int], snapshot: _Snapshot, serial: int) -> None:
    """Takes over what was remembered after a visit."""
    _write(self._steps, numbers, snapshot.arrays)
    self._held, self.serial = snapshot.held, serial

  def serve(self, order: _Order) -> _Answer:
    """Does what it is told."""
    self.serial = -1
    _go_through(self._steps, order.numbers, order.visits, self._restore_held)
    self.serial = order.visits[-1].serial if order.visits else order.since
    turn = order.visits[-1].turn if order.visits else ()
    return _Answer(
      left_for_trunk(self._steps, order.numbers, turn),
      _all_remembered(self._steps, order.numbers) if order.barrier else [],
    )

  def _restore_held(self) -> None:
    sequences, probabilities = self._held
    self._steps.memory.strategy[sequences] = probabilities


# Those of this process, by the keys of their shards.
_WORKERS: dict[str, _Worker] = {}


def _serve(
  key: str, order: _Order, snapshot: _Snapshot | None, source: _Source | None
) -> _Answer | None:
  """Does what a shard is told, in its process; returns None if the process can't, for all that it knows."""
  worker = _WORKERS.get(key)
  if worker is None:
    if source is None:
      return None
    worker = _WORKERS[key] = _Worker(source)
  if snapshot is not None:
    worker.take(order.numbers, snapshot, order.since)
  return worker.serve(order) if worker.serial == order.since else None


def _forget(key: str) -> None:
  _WORKERS.pop(key, None)


def _forget_all(shards: Sequence[_Shard]) -> None:
  """Has processes forget a solver that is no more."""
  for shard in shards:
    # They may be no more, either.
    with contextlib.suppress(Exception):
      shard.executor.submit(_forget, shard.key)


def _go_through(
  steps: PartSteps, numbers: Sequence[int], visits: Sequence[Visit], restore_held: Any
) -> None:
  """Does visits in some subtrees."""
  for visit in visits:
    enter(steps, visit)
    for player, total in enumerate(visit.totals):
      steps.set_total(player, total)
    for number in numbers:
      visit_part(steps, number, visit)
    restore_held()


def _all_remembered(steps: PartSteps, numbers: Sequence[int]) -> list[AnyFloats]:
  """Returns what is remembered of some parts: views."""
  return [
    array
    for number in numbers
    for function in (remembered, averages)
    for array in function(steps, steps.memory, number, PLAYERS)
  ]


def _write(steps: PartSteps, numbers: Sequence[int], arrays: Sequence[AnyFloats]) -> None:
  """Takes over what `_all_remembered` has returned elsewhere."""
  for own, given in zip(_all_remembered(steps, numbers), arrays, strict=True):
    own[...] = given
