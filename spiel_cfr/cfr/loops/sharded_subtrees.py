"""Subtrees that other processes visit.

Each *shard*, a process, visits some of the subtrees. In each visit it is sent the trunk's reach probabilities, and it
returns the values that its subtrees leave for the trunk. The shard keeps the solver's arrays of its subtrees.

This process keeps a copy of those arrays from the last *barrier*, and the visits since then. When a shard dies, its
successor receives both and repeats these visits, with the same bytes. When the executor fails, this process repeats
them itself, and raises an error after the iteration. A caller that reads the arrays forces a barrier. Since the caller
may also write to them, the shards receive them again before the next visit.
"""

import contextlib
import dataclasses
import pickle
import uuid
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s
from spiel_cfr._numba.steps import Chain
from spiel_cfr._util.time_slices import whole_steps
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.loops.arrays import SolverArrays
from spiel_cfr.cfr.loops.loop import Turn
from spiel_cfr.cfr.loops.parts_loop import PartsLoop
from spiel_cfr.cfr.loops.subtrees import Subtrees
from spiel_cfr.games.compiled.shards import Shards
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class _Visit(NamedTuple):
  """A visit to all subtrees, with what it needs of the trunk.

  Attributes:
    serial: its number.
    turn: the players that update.
    numbers: `IterationNumbers.row` of the iteration.
    deferred: `SolverArrays.deferred`.
    reaches: for each player, the trunk's reach probabilities.
    totals: for each player, `SolverArrays.total`.
  """

  serial: int
  turn: Turn
  numbers: Float64s
  deferred: Float64s
  reaches: list[AnyFloats]
  totals: list[float]


class _Order(NamedTuple):
  """The work of a shard.

  Attributes:
    key: names the shard, unique among all solvers.
    subtrees: its subtrees.
    since: the last visit that it has made.
    visits: the visits to make.
    barrier: whether it returns the arrays of its subtrees.
    arrays: the arrays after visit `since`, and `SolverArrays.locked`; None if the shard has them.
    source: the pickled game and minimizer; None if the shard has them.
  """

  key: str
  subtrees: Sequence[int]
  since: int
  visits: Sequence[_Visit]
  barrier: bool
  arrays: tuple[list[AnyFloats], tuple[Int64s, AnyFloats]] | None
  source: tuple[bytes, bytes] | None


# The values that the last visit leaves for the trunk, and at a barrier the arrays.
_Answer = tuple[list[AnyFloats], list[AnyFloats]]


class ShardedSubtrees(Subtrees):
  """The subtrees of a solver, dealt to the processes of `Shards`."""

  def __init__(
    self,
    arrays: SolverArrays,
    subtree: Callable[..., Chain],
    shards: Shards,
    minimizer: RegretMinimizer,
  ) -> None:
    """Deals the subtrees to the shards.

    Raises:
      ShardError: the minimizer can't be pickled.
    """
    self._arrays, self._barrier_every = arrays, shards.barrier_every
    try:
      self._source = shards.game, pickle.dumps(minimizer)
    except Exception as error:
      raise errors.ShardError(
        f"{type(minimizer).__name__} can't be pickled, so other processes can't go through subtrees with it. Define "
        "it, and its kernels, at the top level of a module; or solve the game as it was before shard()."
      ) from error
    count = len(shards.executors)
    self._subtrees = {
      uuid.uuid4().hex: range(first, len(arrays.parts), count) for first in range(1, 1 + count)
    }
    self._executors = dict(zip(self._subtrees, shards.executors, strict=True))
    weakref.finalize(self, _forget_everywhere, self._executors).atexit = False
    # The last visit, the last visit before a barrier, and the visits since.
    self._serial = self._barrier = 0
    self._visits: list[_Visit] = []
    # Whether the arrays may have been written to since the last visit.
    self._written = True
    self._failure: BaseException | None = None

  def visit(self, turn: Turn) -> None:
    arrays = self._arrays
    self._serial += 1
    # Copies, since visits are kept, and all of these change.
    self._visits.append(
      _Visit(
        self._serial,
        turn,
        arrays.numbers.row.copy(),
        arrays.deferred.copy(),
        [reach.copy() for reach in arrays.walk.trunk.sequence_form],
        [arrays.total(player).item() for player in arrays.walk.players],
      )
    )
    answers = self._ask(self._visits[-1:], barrier=len(self._visits) >= self._barrier_every)
    for key, (left, _) in answers.items():
      for own, given in zip(_left(arrays, self._subtrees[key], turn), left, strict=True):
        own[:] = given

  def gather(self) -> None:
    # Ctrl-C waits.
    whole_steps(lambda number, last: self.gather_averages(), 1 if self._visits else 0)
    # With a new number, no shard takes its own arrays for these.
    self._serial += 1
    self._barrier, self._written = self._serial, True

  def gather_averages(self) -> None:
    if self._visits:
      failure = self._failure
      self._ask([], barrier=True)
      # If an executor fails now, nothing is lost: this process has repeated the visits.
      self._failure = failure

  def check(self) -> None:
    failure, self._failure = self._failure, None
    if failure is not None:
      # The shards that this process has stood in for.
      for key in self._subtrees:
        _forget(key)
      raise errors.ShardError(
        f"The executor failed with {type(failure).__name__}: {failure}. This process has finished the iterations that "
        "were begun; the solver is as it would have been, and may go on with this game or be saved."
      ) from failure

  def _ask(self, visits: Sequence[_Visit], barrier: bool) -> dict[str, _Answer]:
    """Has the shards make visits, none or the last one, and return their arrays at a barrier."""
    answers: dict[str, _Answer] = {}
    # Shards that have lost their arrays are asked again, with all that they need.
    is_whole = False
    while len(answers) < len(self._subtrees):
      missing = [key for key in self._subtrees if key not in answers]
      answers |= self._answers([self._order(key, visits, barrier, is_whole) for key in missing])
      is_whole = True
    self._written = False
    if barrier:
      for key, (_, arrays) in answers.items():
        _write(self._arrays, self._subtrees[key], arrays)
      self._barrier = self._serial
      self._visits.clear()
    return answers

  def _order(self, key: str, visits: Sequence[_Visit], barrier: bool, is_whole: bool) -> _Order:
    """Returns the work of a shard; a whole order has the arrays, the game, and the visits since the last barrier."""
    since, arrays, source, subtrees = self._serial - len(visits), None, None, self._subtrees[key]
    if is_whole:
      since, visits, source = self._barrier, self._visits, self._source
    if is_whole or self._written:
      arrays = _arrays(self._arrays, subtrees), self._arrays.locked
    return _Order(key, subtrees, since, visits, barrier, arrays, source)

  def _answers(self, orders: Sequence[_Order]) -> dict[str, _Answer]:
    """Returns the answers of the shards that have what they need; of none if the executor fails now."""
    if self._failure is None:
      try:
        calls = [self._executors[order.key].submit(_serve, order) for order in orders]
        found = [call.result() for call in calls]
      # An interrupt can come from another process, too.
      except BaseException as error:
        self._failure = error
        return {}
    else:
      found = [_serve(order) for order in orders]
    return {
      order.key: answer for order, answer in zip(orders, found, strict=True) if answer is not None
    }


class _Worker:
  """The part of a solver that a shard keeps."""

  def __init__(self, source: tuple[bytes, bytes]) -> None:
    game, minimizer = map(pickle.loads, source)
    partition = dataclasses.replace(game.partition, num_threads=1)
    # As long as the arrays of the whole game; but memory that is never written to is only an address.
    self._loop = PartsLoop(game, minimizer, Averaging(), partition)
    # The last visit; -1 if that is not known.
    self._serial = -1

  def serve(self, order: _Order) -> _Answer | None:
    own, serial = self._loop.arrays, order.since
    turn: Turn = ()
    if order.arrays is not None:
      arrays, (sequences, probabilities) = order.arrays
      _write(own, order.subtrees, arrays)
      own.state.strategy[sequences] = probabilities
      self._loop.lock(sequences)
      self._serial = serial
    if self._serial != serial:
      return None
    self._serial = -1
    for visit in order.visits:
      self._visit(order.subtrees, visit)
      serial, turn = visit.serial, visit.turn
    self._serial = serial
    left = _left(own, order.subtrees, turn)
    return left, _arrays(own, order.subtrees) if order.barrier else []

  def _visit(self, subtrees: Sequence[int], visit: _Visit) -> None:
    loop, arrays, walk = self._loop, self._loop.arrays, self._loop.arrays.walk
    loop.set_numbers(visit.numbers)
    arrays.deferred[:] = visit.deferred
    for player in walk.players:
      walk.trunk.sequence_form[player][:] = visit.reaches[player]
      arrays.total(player)[:] = visit.totals[player]
    for number in subtrees:
      loop.subtree(number, walk.workspaces[0], visit.turn).run()


# The workers of this process, by the keys of their shards.
_WORKERS: dict[str, _Worker] = {}


def _serve(order: _Order) -> _Answer | None:
  """Does the work of a shard, in its process; returns None if it lacks something."""
  if order.key not in _WORKERS:
    if order.source is None:
      return None
    _WORKERS[order.key] = _Worker(order.source)
  return _WORKERS[order.key].serve(order)


def _forget(key: str) -> None:
  _WORKERS.pop(key, None)


def _forget_everywhere(executors: dict[str, Any]) -> None:
  for key, executor in executors.items():
    _forget(key)
    # The processes may be gone.
    with contextlib.suppress(Exception):
      executor.submit(_forget, key)


def _left(arrays: SolverArrays, subtrees: Sequence[int], turn: Turn) -> list[AnyFloats]:
  """Returns the values that subtrees have left for the trunk: the arrays themselves."""
  walk = arrays.walk
  return [line for number in subtrees for player in turn for line in walk.left(number, player)]


def _arrays(arrays: SolverArrays, subtrees: Sequence[int]) -> list[AnyFloats]:
  """Returns the solver's arrays of some subtrees: views."""
  kinds = arrays.strategy, arrays.cumulative, arrays.action_state, arrays.infoset_state
  return [
    kind(visit) for number in subtrees for visit in arrays.walk.visits(number) for kind in kinds
  ]


def _write(arrays: SolverArrays, subtrees: Sequence[int], values: Sequence[AnyFloats]) -> None:
  """Writes the arrays that `_arrays` has returned elsewhere."""
  for own, given in zip(_arrays(arrays, subtrees), values, strict=True):
    own[...] = given
