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
from spiel_cfr.cfr.loops.loop import Players
from spiel_cfr.cfr.loops.parts_loop import PartsLoop, Subtrees
from spiel_cfr.games.compiled.shards import Shards
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

# The number of visits between two barriers.
_BETWEEN_BARRIERS = 100


class _Request(NamedTuple):
  """One visit to the subtrees of every shard.

  Attributes:
    players: the players that update.
    numbers: `IterationNumbers.row`.
    inputs: copies of the arrays of `_inputs`.
  """

  players: Players
  numbers: Float64s
  inputs: list[AnyFloats]


# The values that the last visit leaves for the trunk, and at a barrier the arrays of the subtrees.
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
        f"{type(minimizer).__name__} can't be pickled, so other processes can't visit subtrees with it. Define "
        "it, and its kernels, at the top level of a module; or solve the game without shard()."
      ) from error
    self._arrays, self._solver, count = arrays, uuid.uuid4().hex, len(shards.executors)
    self._executors = {
      range(first, len(arrays.parts), count): executor
      for first, executor in enumerate(shards.executors, 1)
    }
    # The number of the last visit, and the visits since the last barrier.
    self._last = 0
    self._requests: list[_Request] = []
    # Whether the arrays may have been written to since the last visit.
    self._written = True
    self._failure: BaseException | None = None

  def visit(self, players: Players) -> None:
    arrays = self._arrays
    inputs = [line.copy() for line in _inputs(arrays)]
    self._requests.append(_Request(players, arrays.numbers.row.copy(), inputs))
    self._last += 1
    answers = self._ask(self._requests[-1:], barrier=len(self._requests) >= _BETWEEN_BARRIERS)
    for subtrees, (left, _) in answers.items():
      _write(_left(arrays, subtrees, players), left)

  def gather(self) -> None:
    # In a step, which Ctrl-C does not interrupt.
    whole_steps(lambda number, last: self.gather_averages(), 1 if self._requests else 0)
    # A new number: the arrays that the shards have are out of date.
    self._last, self._written = self._last + 1, True

  def gather_averages(self) -> None:
    if self._requests:
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
        "had begun; the solver is as without the failure, and may go on with this game or be saved."
      ) from failure

  def _ask(self, visits: Sequence[_Request], barrier: bool) -> dict[range, _Answer]:
    """Sends visits to the shards, none or the last one, and returns the answers; at a barrier, with their arrays."""

    def order(subtrees: range, is_whole: bool) -> tuple[Any, ...]:
      made, source = (self._requests, self._source) if is_whole else (visits, None)
      arrays = None
      if is_whole or self._written:
        arrays = _state(self._arrays, subtrees), self._arrays.locked
      return self._solver, subtrees, self._last - len(made), made, barrier, arrays, source

    answers = self._answers({subtrees: order(subtrees, False) for subtrees in self._executors})
    # Shards that have lost their arrays are asked again, with all that they need.
    while missing := [subtrees for subtrees in self._executors if subtrees not in answers]:
      answers |= self._answers({subtrees: order(subtrees, True) for subtrees in missing})
    self._written = False
    if barrier:
      for subtrees, (_, state) in answers.items():
        _write(_state(self._arrays, subtrees), state)
      self._requests.clear()
    return answers

  def _answers(self, orders: dict[range, tuple[Any, ...]]) -> dict[range, _Answer]:
    """Returns the answers of the shards that have their arrays; no answers if the executor fails now."""
    if self._failure is None:
      try:
        calls = [self._executors[key].submit(_serve, *order) for key, order in orders.items()]
        found = [call.result() for call in calls]
      # An interrupt can come from another process, too.
      except BaseException as error:
        self._failure = error
        return {}
    else:
      found = [_serve(*order) for order in orders.values()]
    pairs = zip(orders, found, strict=True)
    return {subtrees: answer for subtrees, answer in pairs if answer is not None}


# The solver that this process served last: its name, its loop, and the number of each shard's last visit.
_SERVED: dict[str, tuple[PartsLoop, dict[range, int]]] = {}


def _serve(
  solver: str,
  subtrees: range,
  since: int,
  visits: Sequence[_Request],
  barrier: bool,
  arrays: tuple[list[AnyFloats], tuple[Int64s, AnyFloats]] | None,
  source: tuple[bytes, bytes] | None,
) -> _Answer | None:
  """Makes the visits of a shard, in its process.

  Args:
    solver: the unique name of the solver.
    subtrees: the subtrees of the shard.
    since: the number of the last visit that the shard has made; visits have numbers one after the other.
    visits: the visits to make.
    barrier: whether to return the arrays of the subtrees.
    arrays: the arrays after visit `since`, and `SolverArrays.locked`; None if the shard has them.
    source: the pickled game and minimizer; None if the shard has them.

  Returns:
    The answer; None if the process has no source or arrays.
  """
  if solver not in _SERVED:
    if source is None:
      return None
    game, minimizer = map(pickle.loads, source)
    partition = dataclasses.replace(game.partition, num_threads=1)
    # The arrays are as long as those of the whole game, but memory that is never written to costs nothing.
    _SERVED.clear()
    _SERVED[solver] = PartsLoop(game, minimizer, Averaging(), partition), {}
  loop, last = _SERVED[solver]
  solver_arrays = loop.arrays
  if arrays is not None:
    state, (sequences, probabilities) = arrays
    _write(_state(solver_arrays, subtrees), state)
    solver_arrays.state.strategy[sequences] = probabilities
    loop.lock(sequences)
  elif last.get(subtrees) != since:
    return None
  # The number is unknown in the middle of a visit.
  last.pop(subtrees, None)
  for players, numbers, inputs in visits:
    loop.set_numbers(numbers)
    _write(_inputs(solver_arrays), inputs)
    for number in subtrees:
      loop.subtree(number, solver_arrays.walk.workspaces[0], players).run()
  last[subtrees] = since + len(visits)
  left = _left(solver_arrays, subtrees, visits[-1].players) if visits else []
  return left, _state(solver_arrays, subtrees) if barrier else []


def _inputs(arrays: SolverArrays) -> list[AnyFloats]:
  """Returns the arrays of the trunk that a visit reads: views."""
  walk = arrays.walk
  return [arrays.deferred, *walk.trunk.sequence_form, *map(arrays.total, walk.players)]


def _left(arrays: SolverArrays, subtrees: range, players: Players) -> list[AnyFloats]:
  """Returns the values that subtrees have left for the trunk: views."""
  walk = arrays.walk
  return [
    line for number in subtrees for player in players for line in walk.passed_up(number, player)
  ]


def _state(arrays: SolverArrays, subtrees: range) -> list[AnyFloats]:
  """Returns the solver's arrays of some subtrees: views."""
  kinds = arrays.strategy, arrays.cumulative, arrays.action_state, arrays.infoset_state
  return [
    kind(visit) for number in subtrees for visit in arrays.walk.visits(number) for kind in kinds
  ]


def _write(lines: Sequence[AnyFloats], values: Sequence[AnyFloats]) -> None:
  for line, given in zip(lines, values, strict=True):
    line[...] = given
