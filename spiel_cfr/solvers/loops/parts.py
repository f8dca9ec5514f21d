"""The loop over a game that is cut into a trunk and subtrees.

The same three steps as in the flat loop, in another order: a subtree is gone through from its reach probabilities to
the new strategies before the next one is touched. What a solver must remember lies in one block per subtree; all else
is a workspace that serves one subtree after the other. Where the remembered arrays are float32, the workspace is
float64 all the same.

An iteration of the players that update together:

1. In each subtree: reach probabilities from the trunk's; the averages of the players that update; their gradients; the
   sweep up, whose values at the trunk's sequences are kept.
2. In the trunk: the gradients, to which those values are added; the sweeps up and down.
3. Where averages take strategies after the update: the sweep down in each subtree.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.compiled.parts import PLAYERS, Part, Partition, PartWalk, Workspace
from spiel_cfr.game.sweeps import tree_adopt, tree_down, tree_reach, tree_up
from spiel_cfr.kernels.arrays import Float64s, Int64s, Uint64s, aligned_zeros
from spiel_cfr.kernels.simd import LANES
from spiel_cfr.minimizers.base import LocalMinimizer, resumption
from spiel_cfr.slices import whole_steps
from spiel_cfr.solvers.loops.base import AnyFloats, IterationNumbers, Loop

# The remembered arrays that may need copies in float64.
_STRATEGY, _CUMULATIVE, _STATE = range(3)


class _Workspace(Workspace):
  """A workspace with room for float64 copies of what is remembered as float32.

  Attributes:
    copies: of strategy, cumulative and state, per player.
  """

  def __init__(self, minimizer: LocalMinimizer, copies: bool, parts: Sequence[Part]) -> None:
    super().__init__(parts, predicts=minimizer.predict is not None)
    lines = (1, 1, minimizer.state_lines) if copies else ()
    self.copies = [
      [aligned_zeros(len(own) * count) for count in lines] for own in self.sequence_form
    ]


class PartsLoop(Loop):
  """See the module's docstring.

  `strategy` and `cumulative` are in the game's order; of `state` and `local` each part has a block of all its lines.
  """

  def __init__(
    self,
    game: CompiledGame,
    minimizer: LocalMinimizer,
    partition: Partition,
    tapered: bool,
    correlated: bool,
  ) -> None:
    """Allocates the arrays; strategies are uniform."""
    super().__init__(game, minimizer, correlated)
    # There are two players, so that averages say what gradients were.
    self.gradients = aligned_zeros(0)
    dtype = np.dtype(partition.dtype)
    self.strategy = _zeros(dtype, game.end)
    for treeplex in game.treeplexes:
      for sequences, _ in treeplex.blocks():
        self.strategy[sequences] = 1.0 / len(sequences)
    self.cumulative = _zeros(dtype, game.end)
    self.tapered = _zeros(dtype, game.end if tapered else 0)
    self.state = _zeros(dtype, minimizer.state_lines * game.end)
    # Kernels may read whole vectors.
    self.local = aligned_zeros(minimizer.local_lines * game.num_infosets + LANES)
    self._parts = partition.parts
    self.hold(np.zeros(0, np.int64))
    for line, values in enumerate(self._initial_local):
      self.set_local_line(line, values)
    copies = dtype != np.float64
    self._walk = PartWalk(partition, functools.partial(_Workspace, minimizer, copies))

  def advance(self, alternating: bool, numbers: IterationNumbers, done: Uint64s) -> None:
    """See the base class. Ctrl-C raises KeyboardInterrupt between two iterations."""
    rows = list(zip(*numbers, strict=True))

    def iterate(number: int) -> None:
      *numbers_of_players, addition = rows[number]
      for turn in [(0,), (1,)] if alternating else [PLAYERS]:
        self._update(turn, *numbers_of_players)
      if addition:
        for part in self._parts:
          for own in part.sequences:
            self.tapered[own] += addition * self.cumulative[own]
        done[1] = done[0] + np.uint64(1)
      done[0] += np.uint64(1)

    self._enter_trunk()
    whole_steps(iterate, len(rows))

  def update(self, player: int, parameters: Float64s, before: Float64s, after: Float64s) -> None:
    """See the base class."""
    self._enter_trunk()
    self._update((player,), parameters, before, after)

  def _enter_trunk(self) -> None:
    """Computes the reach probabilities of the trunk."""
    for player in PLAYERS:
      self._reach(0, player, self._walk.trunk)

  def hold(self, sequences: Int64s) -> None:
    """See the base class."""
    inside = [
      [sequences[(sequences >= own.start) & (sequences < own.stop)] for own in part.sequences]
      for part in self._parts
    ]
    # For each part and player: places within the part, and the probabilities there.
    self._held = [
      [
        (held - own.start, self.strategy[held].astype(np.float64))
        for held, own in zip(of_part, part.sequences, strict=True)
      ]
      for of_part, part in zip(inside, self._parts, strict=True)
    ]

  def _restore_held(self, number: int, player: int, strategy: Float64s) -> None:
    """Overwrites what a minimizer has chosen at held sequences of a part."""
    places, kept = self._held[number][player]
    strategy[places] = kept

  def resume(self, sequence_form: Float64s, parameters: Float64s) -> None:
    """See the base class."""
    kernel = resumption(self._minimizer)
    for number, part in enumerate(self._parts):
      workspace = self._walk.workspaces[0] if number else self._walk.trunk
      workspace.scratch.value[:] = 0.0
      for player in PLAYERS:
        own, reach = part.sequences[player], workspace.sequence_form[player]
        reach[: part.own_length(player)] = sequence_form[own]
        self._walk.enter(number, player, workspace)
        strategy = self._open(self.strategy[own], workspace, player, _STRATEGY)
        state = self._open(self._state_of(own), workspace, player, _STATE)
        tree_adopt(part.trees[player], reach, strategy)
        self._restore_held(number, player, strategy)
        tree_up(
          kernel,
          part.trees[player],
          strategy,
          workspace.utility[player][0],
          state,
          self._local_of(part.infosets[player]),
          parameters,
          workspace.scratch,
        )
        _close(self.strategy[own], strategy)
        _close(self._state_of(own), state)

  def refresh(self) -> None:
    """See the base class: reach probabilities are computed anew in each call of `advance`."""

  def values(self) -> list[float]:
    """See the base class."""
    return [float(self._walk.trunk.utility[player][0][0]) for player in PLAYERS]

  def state_line(self, line: int) -> Float64s:
    """See the base class."""
    result = np.zeros(self._game.end)
    for own, lines in self._state_blocks():
      result[own] = lines[line]
    return result

  def set_state_line(self, line: int, values: Float64s) -> None:
    """See the base class."""
    for own, lines in self._state_blocks():
      lines[line] = values[own]

  def local_line(self, line: int) -> Float64s:
    """See the base class."""
    result = np.zeros(self._game.num_infosets)
    for own, lines in self._local_blocks():
      result[own] = lines[line]
    return result

  def set_local_line(self, line: int, values: Float64s) -> None:
    """See the base class."""
    for own, lines in self._local_blocks():
      lines[line] = values[own]

  def _state_blocks(self) -> Iterator[tuple[slice, AnyFloats]]:
    """Yields which sequences each part has of each player, and their state."""
    for part in self._parts:
      for own in part.sequences:
        yield own, self._state_of(own)

  def _local_blocks(self) -> Iterator[tuple[slice, AnyFloats]]:
    """Yields which infosets each part has of each player, and what the minimizer keeps there."""
    for part in self._parts:
      for own in part.infosets:
        yield own, self._local_of(own)

  def _state_of(self, own: slice) -> AnyFloats:
    return _block(self.state, self._minimizer.state_lines, own)

  def _local_of(self, own: slice) -> AnyFloats:
    return _block(self.local, self._minimizer.local_lines, own)

  def _update(
    self, turn: Sequence[int], parameters: Float64s, before: Float64s, after: Float64s
  ) -> None:
    """Does an iteration of the players that update together."""

    def update(number: int, workspace: _Workspace) -> None:
      self._update_subtree(number, workspace, turn, parameters, before)

    def add_after(number: int, workspace: _Workspace) -> None:
      for player in turn:
        if after[player]:
          self._average(number, player, workspace, float(after[player]))

    self._walk.for_each_subtree(update)
    self._update_trunk(turn, parameters, before, after)
    if after[list(turn)].any():
      self._walk.for_each_subtree(add_after)

  def _update_subtree(
    self,
    number: int,
    workspace: _Workspace,
    turn: Sequence[int],
    parameters: Float64s,
    before: Float64s,
  ) -> None:
    """Does step 1 in one subtree."""
    for player in PLAYERS:
      if player in turn and before[player]:
        self._average(number, player, workspace, float(before[player]))
      else:
        self._reach(number, player, workspace)
    for player in turn:
      self._walk.gradient(number, player, workspace)
    for player in turn:
      self._observe(number, player, workspace, parameters)
      self._walk.keep(number, player, workspace)

  def _update_trunk(
    self, turn: Sequence[int], parameters: Float64s, before: Float64s, after: Float64s
  ) -> None:
    """Does step 2."""
    trunk, workspace = self._parts[0], self._walk.trunk
    for player in turn:
      self._walk.gradient(0, player, workspace)
    for player in turn:
      self._observe(0, player, workspace, parameters)
      if len(self.play_values):
        self.play_values[player] += before[player] * workspace.utility[player][0][0]
      own = trunk.sequences[player]
      cumulative = self._open(self.cumulative[own], workspace, player, _CUMULATIVE)
      cumulative[0] += before[player] + after[player]
      tree_down(
        trunk.trees[player],
        self._open(self.strategy[own], workspace, player, _STRATEGY),
        workspace.sequence_form[player],
        cumulative,
        workspace.scratch,
        float(before[player]),
        float(after[player]),
      )
      _close(self.cumulative[own], cumulative)

  def _observe(self, number: int, player: int, workspace: _Workspace, parameters: Float64s) -> None:
    """Runs the minimizer over a part, with the gradient in the workspace."""
    part, minimizer = self._parts[number], self._minimizer
    own, (utility, prediction) = part.sequences[player], workspace.utility[player]
    strategy = self._open(self.strategy[own], workspace, player, _STRATEGY)
    state = self._open(self._state_of(own), workspace, player, _STATE)
    steps = [(minimizer.observe, utility)]
    if minimizer.predict is not None:
      prediction[:] = utility
      steps.append((minimizer.predict, prediction))
    if number == 0:
      self._walk.add_kept(player)
    for block_kernel, utilities in steps:
      tree_up(
        block_kernel,
        part.trees[player],
        strategy,
        utilities,
        state,
        self._local_of(part.infosets[player]),
        parameters,
        workspace.scratch,
      )
    self._restore_held(number, player, strategy)
    _close(self.strategy[own], strategy)
    _close(self._state_of(own), state)

  def _reach(self, number: int, player: int, workspace: _Workspace) -> None:
    """Computes the reach probabilities of a part."""
    part = self._parts[number]
    self._walk.enter(number, player, workspace)
    strategy = self.strategy[part.sequences[player]]
    tree_reach(
      part.trees[player],
      self._open(strategy, workspace, player, _STRATEGY),
      workspace.sequence_form[player],
      workspace.scratch,
    )

  def _average(self, number: int, player: int, workspace: _Workspace, weight: float) -> None:
    """Computes the reach probabilities of a part, and adds them to the average."""
    part = self._parts[number]
    own = part.sequences[player]
    self._walk.enter(number, player, workspace)
    cumulative = self._open(self.cumulative[own], workspace, player, _CUMULATIVE)
    tree_down(
      part.trees[player],
      self._open(self.strategy[own], workspace, player, _STRATEGY),
      workspace.sequence_form[player],
      cumulative,
      workspace.scratch,
      0.0,
      weight,
    )
    _close(self.cumulative[own], cumulative)

  def _open(self, block: AnyFloats, workspace: _Workspace, player: int, which: int) -> Float64s:
    """Returns a part's block of a remembered array, in float64."""
    if block.dtype == np.float64:
      return block
    copy = workspace.copies[player][which][: block.size].reshape(block.shape)
    copy[:] = block
    return copy


def _zeros(dtype: np.dtype[Any], length: int) -> AnyFloats:
  """Returns zeros, aligned where kernels will work on them directly."""
  return aligned_zeros(length) if dtype == np.float64 else np.zeros(length, dtype)


def _close(block: AnyFloats, opened: Float64s) -> None:
  """Writes back what `_open` has returned, if that was a copy."""
  if block.dtype != np.float64:
    block[:] = opened


def _block(array: npt.NDArray[Any], lines: int, own: slice) -> AnyFloats:
  """Returns what a part has of an array with several lines."""
  return array[lines * own.start : lines * own.stop].reshape(lines, own.stop - own.start)
