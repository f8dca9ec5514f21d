"""Subtrees that other processes visit.

Each *shard*, a process, visits some of the subtrees. In each visit it is sent the trunk's reach probabilities, and it
returns the values that its subtrees leave for the trunk. The shard keeps the solver's arrays of its subtrees.

This process keeps a copy of those arrays from the last *barrier*, and the visits since then. When a shard dies, its
successor receives both and repeats these visits, with the same bytes. When the executor fails, this process repeats
them itself, and raises an error after the iteration. A caller that reads the arrays forces a barrier. Since the caller
may also write to them, the shards receive them again before the next visit.
"""

import dataclasses
import pickle
import uuid
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

# The number of visits between two barriers.
_BETWEEN_BARRIERS = 100


class _Visit(NamedTuple):
  """The players that update, `IterationNumbers.row`, and copies of the arrays of `_inputs`."""

  turn: Turn
  numbers: Float64s
  inputs: list[AnyFloats]


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
    try:
      self._source = shards.game, pickle.dumps(minimizer)
    except Exception as error:
      raise errors.ShardError(
        f"{type(minimizer).__name__} can't be pickled, so other processes can't go through subtrees with it. Define "
        "it, and its kernels, at the top level of a module; or solve the game as it was before shard()."
      ) from error
    self._arrays, self._solver, count = arrays, uuid.uuid4().hex, len(shards.executors)
    self._executors = {
      range(first, len(arrays.parts), count): executor
      for first, executor in enumerate(shards.executors, 1)
    }
    # The number of the last visit, and the visits since the last barrier.
    self._last = 0
    self._visits: list[_Visit] = []
    # Whether the arrays may have been written to since the last visit.
    self._written = True
    self._failure: BaseException | None = None

  def visit(self, turn: Turn) -> None:
    arrays = self._arrays
    inputs = [line.copy() for line in _inputs(arrays)]
    self._visits.append(_Visit(turn, arrays.numbers.row.copy(), inputs))
    self._last += 1
    answers = self._ask(self._visits[-1:], barrier=len(self._visits) >= _BETWEEN_BARRIERS)
    for subtrees, (left, _) in answers.items():
      _write(_left(arrays, subtrees, turn), left)

  def gather(self) -> None:
    # Ctrl-C waits.
    whole_steps(lambda number, last: self.gather_averages(), 1 if self._visits else 0)
    # With a new number, no shard takes its own arrays for these.
    self._last, self._written = self._last + 1, True

  def gather_averages(self) -> None:
    if self._visits:
      failure = self._failure
      self._ask([], barrier=True)
      # If an executor fails now, nothing is lost: this process has repeated the visits.
      self._failure = failure

  def check(self) -> None:
    failure, self._failure = self._failure, None
    if failure is not None:
      _SERVED.clear()
      raise errors.ShardError(
        f"The executor failed with {type(failure).__name__}: {failure}. This process has finished the iterations that "
        "were begun; the solver is as it would have been, and may go on with this game or be saved."
      ) from failure

  def _ask(self, visits: Sequence[_Visit], barrier: bool) -> dict[range, _Answer]:
    """Has the shards make visits, none or the last one, and return their arrays at a barrier."""

    def order(subtrees: range, is_whole: bool) -> tuple[Any, ...]:
      made, source = (self._visits, self._source) if is_whole else (visits, None)
      arrays = None
      if is_whole or self._written:
        arrays = _state(self._arrays, subtrees), self._arrays.locked
      return self._solver, subtrees, self._last - len(made), made, barrier, arrays, source

    answers = self._answers({each: order(each, False) for each in self._executors})
    # Shards that have lost their arrays are asked again, with all that they need.
    while missing := [each for each in self._executors if each not in answers]:
      answers |= self._answers({each: order(each, True) for each in missing})
    self._written = False
    if barrier:
      for subtrees, (_, state) in answers.items():
        _write(_state(self._arrays, subtrees), state)
      self._visits.clear()
    return answers

  def _answers(self, orders: dict[range, tuple[Any, ...]]) -> dict[range, _Answer]:
    """Returns the answers of the shards that have what they need; of none if the executor fails now."""
    if self._failure is None:
      try:
        calls = [self._executors[each].submit(_serve, *order) for each, order in orders.items()]
        found = [call.result() for call in calls]
      # An interrupt can come from another process, too.
      except BaseException as error:
        self._failure = error
        return {}
    else:
      found = [_serve(*order) for order in orders.values()]
    return {each: answer for each, answer in zip(orders, found, strict=True) if answer is not None}


# The solver that this process has served last: its name, its loop, and the last visit to each shard's subtrees.
_SERVED: dict[str, tuple[PartsLoop, dict[range, int]]] = {}


def _serve(
  solver: str,
  subtrees: range,
  since: int,
  visits: Sequence[_Visit],
  barrier: bool,
  arrays: tuple[list[AnyFloats], tuple[Int64s, AnyFloats]] | None,
  source: tuple[bytes, bytes] | None,
) -> _Answer | None:
  """Makes visits of a shard, in its process.

  Args:
    solver: names the solver, unique among all.
    subtrees: the subtrees of the shard.
    since: the number of the last visit that the shard has made; visits have numbers one after the other.
    visits: the visits to make.
    barrier: whether to return the arrays of the subtrees.
    arrays: the arrays after visit `since`, and `SolverArrays.locked`; None if the shard has them.
    source: the pickled game and minimizer; None if the shard has them.

  Returns:
    The answer; None if the process lacks something.
  """
  if solver not in _SERVED:
    if source is None:
      return None
    game, minimizer = map(pickle.loads, source)
    partition = dataclasses.replace(game.partition, num_threads=1)
    # As long as the arrays of the whole game; but memory that is never written to is only an address.
    _SERVED.clear()
    _SERVED[solver] = PartsLoop(game, minimizer, Averaging(), partition), {}
  loop, last = _SERVED[solver]
  own = loop.arrays
  if arrays is not None:
    state, (sequences, probabilities) = arrays
    _write(_state(own, subtrees), state)
    own.state.strategy[sequences] = probabilities
    loop.lock(sequences)
  elif last.get(subtrees) != since:
    return None
  # Not known in the middle of a visit.
  last.pop(subtrees, None)
  for turn, numbers, inputs in visits:
    loop.set_numbers(numbers)
    _write(_inputs(own), inputs)
    for number in subtrees:
      loop.subtree(number, own.walk.workspaces[0], turn).run()
  last[subtrees] = since + len(visits)
  left = _left(own, subtrees, visits[-1].turn) if visits else []
  return left, _state(own, subtrees) if barrier else []


def _inputs(arrays: SolverArrays) -> list[AnyFloats]:
  """Returns the arrays of the trunk that a visit reads: views."""
  walk = arrays.walk
  return [arrays.deferred, *walk.trunk.sequence_form, *map(arrays.total, walk.players)]


def _left(arrays: SolverArrays, subtrees: range, turn: Turn) -> list[AnyFloats]:
  """Returns the values that subtrees have left for the trunk: the arrays themselves."""
  walk = arrays.walk
  return [line for number in subtrees for player in turn for line in walk.passed_up(number, player)]


def _state(arrays: SolverArrays, subtrees: range) -> list[AnyFloats]:
  """Returns the solver's arrays of some subtrees: views."""
  kinds = arrays.strategy, arrays.cumulative, arrays.action_state, arrays.infoset_state
  return [
    kind(visit) for number in subtrees for visit in arrays.walk.visits(number) for kind in kinds
  ]


def _write(lines: Sequence[AnyFloats], values: Sequence[AnyFloats]) -> None:
  for line, given in zip(lines, values, strict=True):
    line[...] = given
