"""The loop over a game in parts whose subtrees other processes go through.

A *visit* goes through all subtrees once, for one player's update. Each shard, a call of an executor, goes through some
of them: it is given the trunk's reach probabilities, and returns what the trunk's sequences are worth. Where a solver's
arrays are meanwhile, and what becomes of a process that dies, is up to subclasses. Where an executor gives up, this
process does what is left, and says so after the iteration.
"""

import abc
import concurrent.futures
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Uint64s
from spiel_cfr.cfr.loops.loop import IterationNumbers
from spiel_cfr.cfr.loops.part_steps import PartSteps
from spiel_cfr.cfr.loops.parts import PartsLoop
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS
from spiel_cfr.games.compiled.shards import ShardedPartition
from spiel_cfr.games.sequence_form.tree_passes import Memory
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class Visit(NamedTuple):
  """What shards are to do.

  Attributes:
    serial: the number of the visit.
    turn: see `PartSteps.visit`.
    parameters: likewise.
    owed: likewise.
    reaches: the trunk's, of each player; None where nobody needs them.
    totals: see `PartSteps.total`, of each player.
  """

  serial: int
  turn: Sequence[int]
  parameters: Float64s
  owed: Float64s
  reaches: list[AnyFloats | None]
  totals: list[float]


class ShardedLoop(PartsLoop):
  """See the module's docstring."""

  def __init__(
    self,
    game: CompiledGame,
    minimizer: RegretMinimizer,
    partition: ShardedPartition,
    tapered: bool,
    correlated: bool,
  ) -> None:
    """Allocates the arrays; see the base class.

    Raises:
      ShardError: the minimizer can't be pickled.
    """
    try:
      self._pickled_minimizer = pickle.dumps(minimizer)
    except Exception as error:
      raise errors.ShardError(
        f"{type(minimizer).__name__} can't be pickled, so other processes can't go through subtrees with it. Define "
        "it, and its kernels, at the top level of a module; or solve the game as it was before shard()."
      ) from error
    count = len(partition.executors)
    self._numbers = [range(first, len(partition.parts), count) for first in range(1, count + 1)]
    self._serial = 0
    self._failure: BaseException | None = None
    super().__init__(game, minimizer, partition, tapered, correlated)

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
    self._serial += 1
    trunk = self._steps.walk.trunk.sequence_form
    # Copies, since visits may be kept, and all of these change.
    reaches = [
      trunk[player][: self._parts[0].length(player)].copy()
      if owed[player] or 1 - player in turn
      else None
      for player in PLAYERS
    ]
    totals = [self._steps.total(player) for player in PLAYERS]
    self._share(Visit(self._serial, tuple(turn), parameters.copy(), owed.copy(), reaches, totals))

  @abc.abstractmethod
  def _share(self, visit: Visit) -> None:
    """Has the shards do a visit, and takes over what they leave for the trunk."""

  def _take_over(self, numbers: Sequence[int], turn: Sequence[int], left: AnyFloats) -> None:
    """Notes what a shard has left for the trunk."""
    begin = 0
    for kept in _kept(self._steps, numbers, turn):
      kept[:] = left[begin : begin + len(kept)]
      begin += len(kept)

  def _submit(
    self, executor: concurrent.futures.Executor, function: Callable[..., Any], *arguments: Any
  ) -> "concurrent.futures.Future[Any] | None":
    """Asks an executor; returns None if one has failed."""
    if self._failure is None:
      try:
        return executor.submit(function, *arguments)
      except Exception as error:
        self._failure = error
    return None

  def _result(self, call: "concurrent.futures.Future[Any] | None") -> Any:
    """Returns what a call returns, or None if an executor has failed."""
    if call is not None:
      try:
        return call.result()
      # Also what interrupts other processes.
      except BaseException as error:
        self._failure = error
    return None


def enter(steps: PartSteps, visit: Visit) -> None:
  """Takes over the trunk's reach probabilities."""
  for reach, sent in zip(steps.walk.trunk.sequence_form, visit.reaches, strict=True):
    if sent is not None:
      reach[: len(sent)] = sent


def visit_part(steps: PartSteps, number: int, visit: Visit) -> None:
  """Does a visit in one subtree."""
  # Kernels refuse arrays that can't be written to, as Ray hands them on.
  parameters = visit.parameters.copy()
  steps.visit(number, steps.walk.workspaces[0], visit.turn, parameters, visit.owed)


def left_for_trunk(steps: PartSteps, numbers: Sequence[int], turn: Sequence[int]) -> AnyFloats:
  """Returns what subtrees have left for the trunk, in one array."""
  return np.concatenate([steps.memory.strategy[:0], *_kept(steps, numbers, turn)])


def remembered(
  steps: PartSteps, memory: Memory, number: int, players: Iterable[int]
) -> Iterator[AnyFloats]:
  """Yields what is remembered of players in a part, but for averages."""
  part = steps.parts[number]
  for player in players:
    own = part.sequences[player]
    yield memory.strategy[own]
    yield steps.state_of(memory, own)
    yield steps.local_of(memory, part.infosets[player])


def averages(
  steps: PartSteps, memory: Memory, number: int, players: Iterable[int]
) -> Iterator[AnyFloats]:
  """Yields the averages of players in a part."""
  for player in players:
    yield memory.cumulative[steps.parts[number].sequences[player]]


def _kept(steps: PartSteps, numbers: Sequence[int], turn: Sequence[int]) -> Iterator[AnyFloats]:
  """Yields what subtrees have left for the trunk."""
  for number in numbers:
    for player in turn:
      yield from steps.walk.kept(number, player)[: 1 + steps.predicts]
