"""Solver visits to the subtrees of a game in parts, in other processes.

A *visit* updates some players in all subtrees once. A *shard* is a process with some of the subtrees. It may die at any
time. A shard holds the solver's arrays of its subtrees and visits these subtrees. For each visit it receives the
trunk's reach probabilities, and it returns the values that its subtrees pass up to the trunk.

At a *barrier*, the shards also return their arrays. The main process keeps these copies, and the requests since then.
If a shard dies, the process that replaces it receives both and repeats the visits; the results are the same bit for
bit. If the executor itself fails, the main process repeats the visits, and raises an error after the iteration. A
caller that reads the arrays forces a barrier. If it may also have written to them, the shards receive the arrays again
with the next visit.
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
from spiel_cfr.cfr.loops.partitioned_loop import PartitionedLoop, Subtrees
from spiel_cfr.games.compiled.trunk_and_subtrees import Shards
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

# The number of visits between two barriers.
_BETWEEN_BARRIERS = 100


class _Request(NamedTuple):
  """A request to all shards: visit your subtrees.

  Attributes:
    players: the players that update.
    iteration_numbers: `IterationNumbers.joined` of the iteration.
    inputs: copies of the arrays of `_inputs`.
  """

  players: Players
  iteration_numbers: Float64s
  inputs: list[AnyFloats]


# The arrays of `_passed_up` after the last visit; and at a barrier those of `_subtree_arrays`, otherwise none.
_Answer = tuple[list[AnyFloats], list[AnyFloats]]


class ShardedSubtrees(Subtrees):
  """Visits to the subtrees of a solver in the processes of `Shards`."""

  def __init__(
    self,
    arrays: SolverArrays,
    subtree_chain: Callable[..., Chain],
    shards: Shards,
    minimizer: RegretMinimizer,
  ) -> None:
    """Distributes the subtrees: of n shards, shard i gets the subtrees i, i + n, i + 2 n, ..., counted from 1.

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
    self._arrays, self._solver, num_shards = arrays, uuid.uuid4().hex, len(shards.executors)
    # Executors by their subtrees.
    self._executors = {
      range(first, len(arrays.parts), num_shards): executor
      for first, executor in enumerate(shards.executors, 1)
    }
    # The number of the last visit. Visits are numbered consecutively.
    self._last_visit = 0
    # The visits since the last barrier.
    self._requests: list[_Request] = []
    # Whether a caller may have written to the arrays since the last visit, so that those of the shards are out of date.
    self._shards_outdated = True
    # The failure of the executor that `check` has to report.
    self._failure: BaseException | None = None

  def visit(self, players: Players) -> None:
    arrays = self._arrays
    inputs = [array.copy() for array in _inputs(arrays)]
    self._requests.append(_Request(players, arrays.iteration_numbers.joined.copy(), inputs))
    self._last_visit += 1
    answers = self._ask(self._requests[-1:], barrier=len(self._requests) >= _BETWEEN_BARRIERS)
    for subtrees, (passed_up, _) in answers.items():
      _write(_passed_up(arrays, subtrees, players), passed_up)

  def fetch_to_write(self) -> None:
    # As one step, which Ctrl-C does not interrupt.
    whole_steps(lambda number, last: self.fetch_to_read(), 1 if self._requests else 0)
    # Skips a number of visits: no shard has made this one, so each shard finds that its arrays are out of date.
    self._last_visit += 1
    self._shards_outdated = True

  def fetch_to_read(self) -> None:
    if self._requests:
      failure = self._failure
      self._ask([], barrier=True)
      # A failure of the executor now needs no report: this process has repeated the visits.
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
    """Asks all shards for the last visit, or for none, and returns their answers.

    At a barrier, it also copies the arrays of the shards to this process.
    """
    subtrees_of_shards = list(self._executors)
    answers = self._call_shards(
      {
        subtrees: self._serve_arguments(subtrees, visits, barrier=barrier)
        for subtrees in subtrees_of_shards
      }
    )
    # A shard that has lost its arrays receives them, and repeats all visits since the last barrier.
    while missing := [subtrees for subtrees in subtrees_of_shards if subtrees not in answers]:
      answers |= self._call_shards(
        {
          subtrees: self._serve_arguments(subtrees, self._requests, barrier=barrier, is_lost=True)
          for subtrees in missing
        }
      )
    self._shards_outdated = False
    if barrier:
      for subtrees, (_, shard_arrays) in answers.items():
        _write(_subtree_arrays(self._arrays, subtrees), shard_arrays)
      self._requests.clear()
    return answers

  def _serve_arguments(
    self, subtrees: range, visits: Sequence[_Request], *, barrier: bool, is_lost: bool = False
  ) -> tuple[Any, ...]:
    """Returns the arguments of `_serve` for a shard. A lost shard also receives the game and its arrays."""
    arrays = None
    if is_lost or self._shards_outdated:
      arrays = _subtree_arrays(self._arrays, subtrees), self._arrays.locked
    source = self._source if is_lost else None
    since = self._last_visit - len(visits)
    return self._solver, subtrees, since, visits, barrier, arrays, source

  def _call_shards(self, calls: dict[range, tuple[Any, ...]]) -> dict[range, _Answer]:
    """Calls `_serve` for each shard, and returns the answers of the shards that still have their arrays.

    If the executor fails, it notes the failure and returns no answers. Later calls then run in this process.
    """
    if self._failure is None:
      try:
        futures = [
          self._executors[subtrees].submit(_serve, *arguments)
          for subtrees, arguments in calls.items()
        ]
        results = [future.result() for future in futures]
      # Another process, too, can raise an interrupt.
      except BaseException as error:
        self._failure = error
        return {}
    else:
      results = [_serve(*arguments) for arguments in calls.values()]
    pairs = zip(calls, results, strict=True)
    return {subtrees: answer for subtrees, answer in pairs if answer is not None}


# In a shard, the solver of the last call: its name, its loop, and for each range of subtrees the last visit made.
_SERVED: dict[str, tuple[PartitionedLoop, dict[range, int]]] = {}


def _serve(
  solver: str,
  subtrees: range,
  since: int,
  visits: Sequence[_Request],
  barrier: bool,
  arrays: tuple[list[AnyFloats], tuple[Int64s, AnyFloats]] | None,
  source: tuple[bytes, bytes] | None,
) -> _Answer | None:
  """Makes visits to the subtrees of a shard. It runs in the shard's process.

  Args:
    solver: the unique name of the solver.
    subtrees: the subtrees of the shard.
    since: the number of the visit before `visits`.
    visits: the visits to make.
    barrier: whether to return the arrays of the subtrees.
    arrays: the arrays of the subtrees after visit `since`, and `SolverArrays.locked`; None if the shard has them.
    source: the pickled game and minimizer; None if the shard has them.

  Returns:
    The answer; None if this process lacks the game or the arrays after visit `since`.
  """
  if solver not in _SERVED:
    if source is None:
      return None
    game, minimizer = map(pickle.loads, source)
    partition = dataclasses.replace(game.partition, num_threads=1)
    # The arrays are as long as those of the whole game, but memory that is never written to costs nothing.
    _SERVED.clear()
    # A shard visits subtrees only, so its loop has no updates.
    _SERVED[solver] = PartitionedLoop(game, minimizer, Averaging(), (), partition), {}
  loop, last_visits = _SERVED[solver]
  solver_arrays = loop.arrays
  if arrays is not None:
    subtree_arrays, (sequences, probabilities) = arrays
    _write(_subtree_arrays(solver_arrays, subtrees), subtree_arrays)
    solver_arrays.state.strategy[sequences] = probabilities
    loop.lock(sequences)
  elif last_visits.get(subtrees) != since:
    return None
  # The arrays change from here on. If an exception interrupts the visits, the shard counts as without arrays.
  last_visits.pop(subtrees, None)
  for players, iteration_numbers, inputs in visits:
    loop.set_iteration_numbers(iteration_numbers)
    _write(_inputs(solver_arrays), inputs)
    for number in subtrees:
      loop.subtree_chain(number, solver_arrays.part_steps.subtree_workspaces[0], players).run()
  last_visits[subtrees] = since + len(visits)
  passed_up = _passed_up(solver_arrays, subtrees, visits[-1].players) if visits else []
  return passed_up, _subtree_arrays(solver_arrays, subtrees) if barrier else []


def _inputs(arrays: SolverArrays) -> list[AnyFloats]:
  """Returns views of the arrays that a visit reads: deferred weights, and the trunk's reach and sums of weights."""
  part_steps = arrays.part_steps
  return [
    arrays.deferred_weights,
    *part_steps.workspace_of_part_0.sequence_form,
    *map(arrays.weight_sum, part_steps.players),
  ]


def _passed_up(arrays: SolverArrays, subtrees: range, players: Players) -> list[AnyFloats]:
  """Returns views of the values that subtrees have passed up to the trunk."""
  part_steps = arrays.part_steps
  return [
    array
    for number in subtrees
    for player in players
    for array in part_steps.passed_up(number, player)
  ]


def _subtree_arrays(arrays: SolverArrays, subtrees: range) -> list[AnyFloats]:
  """Returns views of the solver's arrays of some subtrees."""
  views = arrays.strategy, arrays.cumulative, arrays.action_state, arrays.infoset_state
  return [
    view(visit)
    for number in subtrees
    for visit in arrays.part_steps.visits(number)
    for view in views
  ]


def _write(targets: Sequence[AnyFloats], sources: Sequence[AnyFloats]) -> None:
  """Copies each source array to its target."""
  for target, source in zip(targets, sources, strict=True):
    target[...] = source
