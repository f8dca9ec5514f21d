"""The iterations of full-width solvers on games that are cut into a trunk and subtrees.

The same three steps as in `loop`, in another order: a subtree is gone through from its reach probabilities to the new
strategies before the next one is touched. What a solver must remember (the minimizer's state, strategies and averages)
lies in one block a subtree; all else is a workspace that serves one subtree after the other. Where the remembered
arrays are float32, the workspace is float64 all the same.

An iteration of the players that update together:

1. In each subtree: reach probabilities from the trunk's; the averages of the players that update; their gradients; the
   sweep up, whose values at the trunk's sequences are kept.
2. In the trunk: the gradients, to which those values are added; the sweeps up and down.
3. Where averages take strategies after the update: the sweep down in each subtree.

Several threads can share the subtrees. The values that meet in the trunk are added in the order of the subtrees,
whoever computed them, so that results don't depend on the number of threads.
"""

import concurrent.futures
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from numba import types

from spiel_cfr.evaluate import best_response_block
from spiel_cfr.game.compiled import CompiledGame
from spiel_cfr.game.subtrees import Subtree
from spiel_cfr.kernels.arrays import (
  COUNT_TABLE,
  FLOAT_TABLE,
  FLOATS,
  INDICES,
  LINE,
  Float64s,
  Uint32s,
  Uint64s,
  aligned_zeros,
)
from spiel_cfr.kernels.compile import CHUNK, Kernel, kernel
from spiel_cfr.minimizers.base import BLOCK_SIGNATURE, SCRATCH_LINES, LocalMinimizer
from spiel_cfr.solvers.loop import sweep_down, sweep_up

_PLAYERS = (0, 1)
_ZERO, _CHUNK = np.uint64(0), np.uint64(CHUNK)
AnyFloats: TypeAlias = npt.NDArray[Any]


class PartitionedGame(Protocol):
  """What the loop needs of a game: a `CompiledGame` that also has these."""

  subtrees: list[Subtree]
  dtype: npt.DTypeLike
  num_threads: int


@kernel(
  types.void(
    types.FunctionType(BLOCK_SIGNATURE),
    COUNT_TABLE,
    INDICES,
    FLOAT_TABLE,
    FLOAT_TABLE,
    FLOATS,
    FLOATS,
    FLOAT_TABLE,
    FLOATS,
  )
)
def subtree_up(
  block: Kernel,
  groups: Uint64s,
  parent: Uint32s,
  state: Float64s,
  local: Float64s,
  strategy: Float64s,
  utility: Float64s,
  scratch: Float64s,
  parameters: Float64s,
) -> None:
  """`sweep_up` over all groups."""
  sweep_up(
    block,
    np.uint64(0),
    np.uint64(groups.shape[0]),
    groups,
    parent,
    state,
    local,
    strategy,
    utility,
    scratch,
    parameters,
  )


@kernel(
  types.void(
    COUNT_TABLE, INDICES, FLOATS, FLOATS, FLOATS, FLOAT_TABLE, types.float64, types.float64
  )
)
def subtree_down(
  groups: Uint64s,
  parent: Uint32s,
  strategy: Float64s,
  sequence: Float64s,
  average: Float64s,
  scratch: Float64s,
  weight_before: float,
  weight_after: float,
) -> None:
  """`sweep_down` over all groups."""
  sweep_down(
    np.uint64(0),
    np.uint64(groups.shape[0]),
    groups,
    parent,
    strategy,
    sequence,
    average,
    scratch,
    weight_before,
    weight_after,
  )


@kernel(types.void(COUNT_TABLE, INDICES, FLOATS, FLOATS, FLOAT_TABLE))
def subtree_reach(
  groups: Uint64s,
  parent: Uint32s,
  strategy: Float64s,
  sequence: Float64s,
  scratch: Float64s,
) -> None:
  """Turns local strategies into sequence form, nothing more."""
  reach = scratch[0]
  for group in range(np.uint64(groups.shape[0])):
    first, stride, total = groups[group, 0], groups[group, 1], groups[group, 2]
    actions, infoset = groups[group, 3], groups[group, 4]
    for start in range(_ZERO, total, _CHUNK):
      count = min(_CHUNK, total - start)
      for i in range(count):
        reach[i] = sequence[parent[infoset + start + i]]
      for action in range(actions):
        row = first + start + action * stride
        for i in range(count):
          sequence[row + i] = reach[i] * strategy[row + i]


class _Workspace:
  """What one thread works on: arrays long enough for any of some parts, a player.

  Attributes:
    sequence: reach probabilities.
    utility: utilities.
    prediction: predicted ones.
    copies: float64 copies of what is remembered as float32: strategy, average and state.
    scratch: the kernels'.
  """

  def __init__(self, parts: Sequence[Subtree], minimizer: LocalMinimizer, copies: bool) -> None:
    # Kernels may read and write whole vectors.
    lengths = [LINE + max(part.lengths[player] for part in parts) for player in _PLAYERS]
    self.sequence = [aligned_zeros(length) for length in lengths]
    self.utility = [aligned_zeros(length) for length in lengths]
    self.prediction = [aligned_zeros(length if minimizer.predict else 0) for length in lengths]
    lines = (1, 1, minimizer.state_lines) if copies else ()
    self.copies = [[aligned_zeros(length * count) for count in lines] for length in lengths]
    self.scratch = aligned_zeros(SCRATCH_LINES, CHUNK)


class SubtreeLoop:
  """The arrays of one solver, and the iterations on them.

  Attributes:
    strategy: probability of each sequence's action at its infoset, shape (sequences,).
    average: weighted sum of sequence-form strategies, shape (sequences,).
    state: the minimizer's, shape (lines, sequences), but laid out as one block of (lines, sequences) a part.
    local: the minimizer's, shape (lines, infosets), likewise.
  """

  def __init__(self, game: CompiledGame, minimizer: LocalMinimizer) -> None:
    """Allocates the arrays, for a game that has the attributes of `PartitionedGame`."""
    partitioned = cast(PartitionedGame, game)
    self._parts: list[Subtree] = partitioned.subtrees
    self._num_threads: int = partitioned.num_threads
    self._minimizer = minimizer
    dtype = np.dtype(partitioned.dtype)
    self.strategy = _zeros(dtype, game.end)
    for treeplex in game.treeplexes:
      for sequences, _ in treeplex.blocks():
        self.strategy[sequences] = 1.0 / len(sequences)
    self.average = _zeros(dtype, game.end)
    self.state = _zeros(dtype, minimizer.state_lines, game.end)
    self.local = np.zeros((minimizer.local_lines, game.num_infosets))
    initial = minimizer.initial_local(game)
    for part in self._parts:
      for infosets in part.infosets:
        _block(self.local, infosets)[:] = initial[:, infosets]
    copies = dtype != np.float64
    self._trunk = _Workspace(self._parts[:1], minimizer, copies)
    self._workspaces = [
      _Workspace(self._parts[1:], minimizer, copies) for _ in range(self._num_threads)
    ]
    # What each part's sweeps have left at the sequences of the trunk above it: a player, utilities and predictions.
    self._at_entries = [
      [[np.zeros(len(entries)) for _ in range(2)] for entries in part.entries]
      for part in self._parts
    ]

  def advance(
    self,
    gradient: Kernel,
    alternating: bool,
    parameters: Float64s,
    weights_before: Float64s,
    weights_after: Float64s,
    done: Uint64s,
  ) -> None:
    """Runs as many iterations as there are rows of `parameters`; arguments as in `loop.run_iterations`.

    Ctrl-C raises KeyboardInterrupt between two iterations.
    """
    interrupted = threading.Event()

    def iterate() -> None:
      for player in _PLAYERS:
        self._reach(self._parts[0], player, self._trunk)
      for numbers, before, after in zip(parameters, weights_before, weights_after, strict=True):
        for turn in [(0,), (1,)] if alternating else [_PLAYERS]:
          self._update(gradient, turn, numbers, before, after)
        done[0] += np.uint64(1)
        if interrupted.is_set():
          return

    # Python interrupts its main thread only, so that an iteration in another one is finished.
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
      running = thread.submit(iterate)
      try:
        running.result()
      except KeyboardInterrupt:
        interrupted.set()
        raise

  def best_response_values(self, gradient: Kernel, of_uniform: bool) -> list[float]:
    """Returns what each player gets from a best response to the average policy, or to the current one."""
    average = self.average
    if of_uniform:
      average = np.zeros_like(self.average)
      for player in _PLAYERS:
        self._reach(self._parts[0], player, self._trunk)
        self._add_to_average(average, 0, self._trunk, player, 1.0)
        average[self._parts[0].sequences[player].start] = 1.0
        for number in range(1, len(self._parts)):
          self._add_to_average(average, number, self._workspaces[0], player, 1.0)
    values = []
    for player in _PLAYERS:
      other = self._parts[0].sequences[1 - player]
      scale = 1.0 / float(average[other.start])
      reach = self._trunk.sequence[1 - player]
      np.multiply(average[other], scale, out=reach[: other.stop - other.start])

      def respond(number: int, workspace: _Workspace) -> None:
        part = self._parts[number]
        own = part.sequences[1 - player]  # noqa: B023
        sequence = workspace.sequence[1 - player]  # noqa: B023
        np.multiply(average[own], scale, out=sequence[: own.stop - own.start])  # noqa: B023
        self._enter(part, 1 - player, workspace)  # noqa: B023
        self._respond(gradient, number, player, workspace)  # noqa: B023

      self._for_each_subtree(respond)
      self._respond(gradient, 0, player, self._trunk)
      values.append(float(self._trunk.utility[player][0]))
    return values

  def _for_each_subtree(self, work: Callable[[int, _Workspace], None]) -> None:
    # Each thread takes the next subtree when it is done with one; what it leaves does not depend on who took it.
    numbers = iter(range(1, len(self._parts)))

    def share(thread: int) -> None:
      for number in numbers:
        work(number, self._workspaces[thread])

    if self._num_threads == 1:
      share(0)
      return
    with concurrent.futures.ThreadPoolExecutor(self._num_threads) as threads:
      list(threads.map(share, range(self._num_threads)))

  def _update(
    self,
    gradient: Kernel,
    turn: Sequence[int],
    parameters: Float64s,
    weights_before: Float64s,
    weights_after: Float64s,
  ) -> None:
    """Does an iteration of the players that update together."""

    def update(number: int, workspace: _Workspace) -> None:
      self._update_subtree(number, workspace, gradient, turn, parameters, weights_before)

    def add_after(number: int, workspace: _Workspace) -> None:
      for player in turn:
        if weights_after[player]:
          weight = float(weights_after[player])
          self._add_to_average(self.average, number, workspace, player, weight)

    self._for_each_subtree(update)
    self._update_trunk(gradient, turn, parameters, weights_before, weights_after)
    if weights_after[list(turn)].any():
      self._for_each_subtree(add_after)

  def _update_subtree(
    self,
    number: int,
    workspace: _Workspace,
    gradient: Kernel,
    turn: Sequence[int],
    parameters: Float64s,
    weights_before: Float64s,
  ) -> None:
    """Does step 1 in one subtree."""
    part = self._parts[number]
    for player in _PLAYERS:
      if player in turn and weights_before[player]:
        weight = float(weights_before[player])
        self._add_to_average(self.average, number, workspace, player, weight)
      else:
        self._reach(part, player, workspace)
    for player in turn:
      _gradient(gradient, part, player, workspace)
    for player in turn:
      self._observe(part, player, workspace, parameters)
      length = part.lengths[player] - len(part.entries[player])
      values = workspace.utility[player], workspace.prediction[player]
      for kept, swept in zip(self._at_entries[number][player], values, strict=True):
        if len(swept):
          kept[:] = swept[length : length + len(kept)]

  def _update_trunk(
    self,
    gradient: Kernel,
    turn: Sequence[int],
    parameters: Float64s,
    weights_before: Float64s,
    weights_after: Float64s,
  ) -> None:
    """Does step 2."""
    trunk, workspace = self._parts[0], self._trunk
    for player in turn:
      _gradient(gradient, trunk, player, workspace)
    for player in turn:
      self._observe(trunk, player, workspace, parameters)
      before, after = float(weights_before[player]), float(weights_after[player])
      own = trunk.sequences[player]
      average = self._open(self.average, own, workspace, player, 1)
      average[0] += before + after
      subtree_down(
        trunk.groups[player],
        trunk.parent[player],
        self._open(self.strategy, own, workspace, player, 0),
        workspace.sequence[player],
        average,
        workspace.scratch,
        before,
        after,
      )
      _close(self.average, own, average)

  def _observe(
    self, part: Subtree, player: int, workspace: _Workspace, parameters: Float64s
  ) -> None:
    """Runs the minimizer over a part, with the gradient in the workspace."""
    own, minimizer = part.sequences[player], self._minimizer
    strategy = self._open(self.strategy, own, workspace, player, 0)
    state = self._open(self.state, own, workspace, player, 2)
    local = _block(self.local, part.infosets[player])
    steps = [(minimizer.observe, workspace.utility[player])]
    if minimizer.predict is not None:
      workspace.prediction[player][:] = workspace.utility[player]
      steps.append((minimizer.predict, workspace.prediction[player]))
    if part is self._parts[0]:
      for number in range(1, len(self._parts)):
        entries = self._parts[number].entries[player]
        for (_, utility), values in zip(steps, self._at_entries[number][player], strict=False):
          utility[entries] += values
    for block, utility in steps:
      subtree_up(
        block,
        part.groups[player],
        part.parent[player],
        state,
        local,
        strategy,
        utility,
        workspace.scratch,
        parameters,
      )
    _close(self.strategy, own, strategy)
    _close(self.state, own, state)

  def _respond(self, gradient: Kernel, number: int, player: int, workspace: _Workspace) -> None:
    """Values a part by a best response."""
    part = self._parts[number]
    _gradient(gradient, part, player, workspace)
    utility = workspace.utility[player]
    if number == 0:
      for other in range(1, len(self._parts)):
        utility[self._parts[other].entries[player]] += self._at_entries[other][player][0]
    subtree_up(
      best_response_block,
      part.groups[player],
      part.parent[player],
      workspace.scratch,
      workspace.scratch,
      # The response itself is not wanted.
      workspace.sequence[player],
      utility,
      workspace.scratch,
      workspace.scratch[0],
    )
    length = part.lengths[player] - len(part.entries[player])
    self._at_entries[number][player][0][:] = utility[length : part.lengths[player]]

  def _enter(self, part: Subtree, player: int, workspace: _Workspace) -> None:
    """Copies the reach probabilities of the trunk that a subtree begins with."""
    length = part.lengths[player] - len(part.entries[player])
    trunk = self._trunk.sequence[player]
    workspace.sequence[player][length : part.lengths[player]] = trunk[part.entries[player]]

  def _reach(self, part: Subtree, player: int, workspace: _Workspace) -> None:
    """Computes the reach probabilities of a part."""
    if part is self._parts[0]:
      workspace.sequence[player][0] = 1.0
    else:
      self._enter(part, player, workspace)
    strategy = self._open(self.strategy, part.sequences[player], workspace, player, 0)
    groups, parent = part.groups[player], part.parent[player]
    subtree_reach(groups, parent, strategy, workspace.sequence[player], workspace.scratch)

  def _add_to_average(
    self, average: AnyFloats, number: int, workspace: _Workspace, player: int, weight: float
  ) -> None:
    """Computes the reach probabilities of a part, and adds them to the average."""
    part = self._parts[number]
    own = part.sequences[player]
    if number:
      self._enter(part, player, workspace)
    opened = self._open(average, own, workspace, player, 1)
    subtree_down(
      part.groups[player],
      part.parent[player],
      self._open(self.strategy, own, workspace, player, 0),
      workspace.sequence[player],
      opened,
      workspace.scratch,
      0.0,
      weight,
    )
    _close(average, own, opened)

  def _open(
    self, array: AnyFloats, own: slice, workspace: _Workspace, player: int, line: int
  ) -> Float64s:
    """Returns a part's block of a remembered array, in float64."""
    block = _block(array, own)
    if block.dtype == np.float64:
      return block
    copy = workspace.copies[player][line][: block.size].reshape(block.shape)
    copy[:] = block
    return copy


def _zeros(dtype: np.dtype[Any], *shape: int) -> AnyFloats:
  """Returns zeros, aligned where kernels will work on them directly."""
  return aligned_zeros(*shape) if dtype == np.float64 else np.zeros(shape, dtype)


def _close(array: AnyFloats, own: slice, opened: Float64s) -> None:
  """Writes back what `_open` has returned, if that was a copy."""
  if array.dtype != np.float64:
    _block(array, own)[:] = opened


def _block(array: AnyFloats, own: slice) -> AnyFloats:
  """Returns what a part has of an array: lines of an array with several lines are next to each other a part."""
  if array.ndim == 1:
    return array[own]
  lines = len(array)
  flat = array.reshape(-1)
  return flat[lines * own.start : lines * own.stop].reshape(lines, own.stop - own.start)


def _gradient(gradient: Kernel, part: Subtree, player: int, workspace: _Workspace) -> None:
  payoff = part.payoff
  gradient(
    np.uint64(player),
    payoff.table,
    payoff.rows,
    payoff.others,
    payoff.values,
    workspace.sequence[1 - player],
    workspace.utility[player],
  )
