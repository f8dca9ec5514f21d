"""Subtrees that other processes go through.

A *visit* goes through all subtrees once, for one turn. Each shard, a process, goes through some of them: it is sent the
trunk's reach probabilities, returns what the trunk's sequences are worth, and keeps what a solver remembers of its
subtrees.

This process has a copy of that from the last *barrier*, and the visits since. Where a process dies, the one in its
place is sent both and does these visits again, with the same bytes. Where the executor fails, this process does so
itself, and says so after the iteration. Who looks at the arrays is given them at a barrier; since he may write to them,
the processes are then sent them before the next visit.
"""

import contextlib
import dataclasses
import pickle
import uuid
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.loops.part_steps import PartSteps, Subtrees
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS, Shards
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class _Visit(NamedTuple):
  """A numbered call of `PartSteps.visit_subtree` for each subtree, with what the trunk has to say.

  Attributes:
    reaches: the trunk's sequence form, of each player; None where nobody needs it.
    totals: see `PartSteps.total`, of each player.
  """

  serial: int
  turn: Sequence[int]
  parameters: Float64s
  deferred: Float64s
  reaches: list[AnyFloats | None]
  totals: list[float]


class _Shard(NamedTuple):
  """A shard's key, unique among all solvers, the numbers of its subtrees, and the executor of its process."""

  key: str
  numbers: Sequence[int]
  executor: Any


class _Order(NamedTuple):
  """What a shard, given by key and numbers, is to do.

  Attributes:
    since: the last visit that it has done.
    visits: those that it is to do.
    barrier: whether it then hands over what it remembers.
    snapshot: what it has to remember after `since`, `_remembered` and `PartSteps.locked`; None if it does.
    source: the game and the minimizer, pickled; None if it has them.
  """

  key: str
  numbers: Sequence[int]
  since: int
  visits: Sequence[_Visit]
  barrier: bool
  snapshot: tuple[list[AnyFloats], Any] | None
  source: tuple[bytes, bytes] | None


class _Answer(NamedTuple):
  """What the last visit has left for the trunk, in one array, and what the shard remembers, if that was asked for."""

  left: AnyFloats
  arrays: list[AnyFloats]


class ShardedSubtrees(Subtrees):
  """See the module's docstring."""

  def __init__(self, steps: PartSteps, shards: Shards, minimizer: RegretMinimizer) -> None:
    """Deals the subtrees to the shards.

    Raises:
      ShardError: the minimizer can't be pickled.
    """
    self._steps, self._barrier_every = steps, shards.barrier_every
    try:
      self._source = shards.game, pickle.dumps(minimizer)
    except Exception as error:
      raise errors.ShardError(
        f"{type(minimizer).__name__} can't be pickled, so other processes can't go through subtrees with it. Define "
        "it, and its kernels, at the top level of a module; or solve the game as it was before shard()."
      ) from error
    count = len(shards.executors)
    self._shards = [
      _Shard(uuid.uuid4().hex, range(first, len(steps.parts), count), executor)
      for first, executor in enumerate(shards.executors, 1)
    ]
    weakref.finalize(self, _forget_everywhere, self._shards).atexit = False
    # The last visit, the last one before a barrier, and those since.
    self._serial = self._barrier = 0
    self._visits: list[_Visit] = []
    # Whether the arrays may have been written to since the last visit.
    self._written = True
    self._failure: BaseException | None = None

  def visit(self, turn: Sequence[int], parameters: Float64s, deferred: Float64s) -> None:
    self._serial += 1
    steps, trunk = self._steps, self._steps.walk.trunk.sequence_form
    # Copies, since visits are kept, and all of these change.
    reaches = [
      trunk[player][: steps.parts[0].length(player)].copy()
      if deferred[player] or 1 - player in turn
      else None
      for player in PLAYERS
    ]
    totals = [steps.total(player) for player in PLAYERS]
    visit = _Visit(self._serial, tuple(turn), parameters.copy(), deferred.copy(), reaches, totals)
    self._visits.append(visit)
    answers = self._ask([visit], barrier=len(self._visits) >= self._barrier_every)
    for shard, answer in answers.items():
      left = answer.left
      for kept in _left_for_trunk(steps, shard.numbers, turn):
        kept[:], left = left[: len(kept)], left[len(kept) :]

  def gather(self) -> None:
    # Ctrl-C is to wait.
    whole_steps(lambda number, last: self.gather_averages(), 1 if self._visits else 0)
    # Another number, so that no process takes what it remembers for what is here.
    self._serial += 1
    self._barrier, self._written = self._serial, True

  def gather_averages(self) -> None:
    if self._visits:
      failure = self._failure
      self._ask([], barrier=True)
      # If an executor has failed nothing is lost: the visits have been done again here.
      self._failure = failure

  def check(self) -> None:
    failure, self._failure = self._failure, None
    if failure is not None:
      # What this process has served in place of others.
      for shard in self._shards:
        _forget(shard.key)
      raise errors.ShardError(
        f"The executor failed with {type(failure).__name__}: {failure}. This process has finished the iterations that "
        "were begun; the solver is as it would have been, and may go on with this game or be saved."
      ) from failure

  def _ask(self, visits: Sequence[_Visit], barrier: bool) -> dict[_Shard, _Answer]:
    """Has the shards do visits, none or the last one, and hand over what they remember at a barrier."""
    answers: dict[_Shard, _Answer] = {}
    # At first it is hoped that processes remember. Then they are sent all that they need; and where the executor has
    # failed, this process does it.
    is_whole = False
    while len(answers) < len(self._shards):
      answers |= self._answers(
        {
          shard: self._order(shard, visits, barrier, is_whole)
          for shard in self._shards
          if shard not in answers
        }
      )
      is_whole = True
    self._written = False
    if barrier:
      for shard, answer in answers.items():
        _write(self._steps, shard.numbers, answer.arrays)
      self._barrier = self._serial
      self._visits.clear()
    return answers

  def _order(
    self, shard: _Shard, visits: Sequence[_Visit], barrier: bool, is_whole: bool
  ) -> _Order:
    """Returns what a shard is to do; a whole order has all that it needs, and the visits since the last barrier."""
    since, snapshot, source = self._serial - len(visits), None, None
    if is_whole:
      since, visits, source = self._barrier, self._visits, self._source
    if is_whole or self._written:
      snapshot = _remembered(self._steps, shard.numbers), self._steps.locked
    return _Order(shard.key, shard.numbers, since, visits, barrier, snapshot, source)

  def _answers(self, orders: dict[_Shard, _Order]) -> dict[_Shard, _Answer]:
    """Returns the answers of those shards that remember enough; of none if the executor fails now."""
    if self._failure is None:
      try:
        calls = {shard: shard.executor.submit(_serve, order) for shard, order in orders.items()}
        found = {shard: call.result() for shard, call in calls.items()}
      # Also what interrupts other processes.
      except BaseException as error:
        self._failure = error
        return {}
    else:
      found = {shard: _serve(order) for shard, order in orders.items()}
    return {shard: answer for shard, answer in found.items() if answer is not None}


class _Worker:
  """What a process has of one shard."""

  def __init__(self, source: tuple[bytes, bytes]) -> None:
    game, minimizer = map(pickle.loads, source)
    # As long as those of the whole game; but memory that is never written to is only an address.
    self._steps = PartSteps(game, minimizer, dataclasses.replace(game.partition, num_threads=1))
    # The last visit that has been done; -1 if that is not known.
    self._serial = -1

  def serve(self, order: _Order) -> _Answer | None:
    steps, numbers, serial = self._steps, order.numbers, order.since
    turn: Sequence[int] = ()
    if order.snapshot is not None:
      arrays, steps.locked = order.snapshot
      _write(steps, numbers, arrays)
      self._serial = serial
    if self._serial != serial:
      return None
    self._serial = -1
    for visit in order.visits:
      self._visit(numbers, visit)
      serial, turn = visit.serial, visit.turn
    self._serial = serial
    left = np.concatenate([steps.memory.strategy[:0], *_left_for_trunk(steps, numbers, turn)])
    return _Answer(left, _remembered(steps, numbers) if order.barrier else [])

  def _visit(self, numbers: Sequence[int], visit: _Visit) -> None:
    steps, walk = self._steps, self._steps.walk
    for reach, sent in zip(walk.trunk.sequence_form, visit.reaches, strict=True):
      if sent is not None:
        reach[: len(sent)] = sent
    for player, total in enumerate(visit.totals):
      steps.memory.cumulative[steps.parts[0].sequences[player].start] = total
    # Where they look at types, kernels refuse arrays that can't be written to, as Ray hands them on.
    parameters, deferred = visit.parameters.copy(), visit.deferred.copy()
    for number in numbers:
      steps.visit_subtree(number, walk.workspaces[0], visit.turn, parameters, deferred)
    sequences, probabilities = steps.locked
    steps.memory.strategy[sequences] = probabilities


# Those of this process, by the keys of their shards.
_WORKERS: dict[str, _Worker] = {}


def _serve(order: _Order) -> _Answer | None:
  """Does what a shard is told, in its process; returns None if that does not remember enough."""
  if order.key not in _WORKERS:
    if order.source is None:
      return None
    _WORKERS[order.key] = _Worker(order.source)
  return _WORKERS[order.key].serve(order)


def _forget(key: str) -> None:
  _WORKERS.pop(key, None)


def _forget_everywhere(shards: Sequence[_Shard]) -> None:
  for shard in shards:
    _forget(shard.key)
    # They may be no more, either.
    with contextlib.suppress(Exception):
      shard.executor.submit(_forget, shard.key)


def _left_for_trunk(
  steps: PartSteps, numbers: Sequence[int], turn: Sequence[int]
) -> list[AnyFloats]:
  """Returns what subtrees have left for the trunk: the arrays themselves."""
  lines = 1 + steps.predicts
  return [
    kept
    for number in numbers
    for player in turn
    for kept in steps.walk.kept[number][player][:lines]
  ]


def _remembered(steps: PartSteps, numbers: Sequence[int]) -> list[AnyFloats]:
  """Returns all that a solver remembers of some parts: views."""
  return [
    array
    for number in numbers
    for player, own in enumerate(steps.parts[number].sequences)
    for array in (
      steps.memory.strategy[own],
      steps.memory.cumulative[own],
      steps.state_of(number, player),
      steps.local_of(number, player),
    )
  ]


def _write(steps: PartSteps, numbers: Sequence[int], arrays: Sequence[AnyFloats]) -> None:
  """Takes over what `_remembered` has returned elsewhere."""
  for own, given in zip(_remembered(steps, numbers), arrays, strict=True):
    own[...] = given
