"""The loop over a game that is cut into a trunk and subtrees.

The same three steps as in the flat loop, in another order: a subtree is gone through from its reach probabilities to
the new strategies before the next one is touched. What a solver must remember lies in one block per subtree; all else
is a workspace that serves one subtree after the other.

An iteration of the players that update together:

1. In each subtree: reach probabilities from the trunk's, of the opponents; the gradients of the players that update;
   the sweep up, whose values at the trunk's sequences are kept.
2. In the trunk: the gradients, to which those values are added; the sweeps up and down.

Averages are added to where reach probabilities are computed anyway, in the opponent's next update. So a strategy's
weight is *owed* until then: what it weighs after its own update, and before the next one.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.compiled.parts import PLAYERS, Partition, PartWalk, Workspace
from spiel_cfr.game.sweeps import tree_adopt, tree_down, tree_reach, tree_up
from spiel_cfr.kernels.arrays import AnyFloats, Float64s, Int64s, Uint64s, aligned_zeros
from spiel_cfr.kernels.compile import Kernel
from spiel_cfr.kernels.simd import MOST_LANES
from spiel_cfr.minimizers.base import LocalMinimizer, resumption
from spiel_cfr.slices import whole_steps
from spiel_cfr.solvers.loops.base import IterationNumbers, Loop


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
    super().__init__(game, minimizer)
    zeros = functools.partial(aligned_zeros, dtype=game.dtype)
    self.strategy = zeros(game.end)
    for treeplex in game.treeplexes:
      for sequences, _ in treeplex.blocks():
        self.strategy[sequences] = 1.0 / len(sequences)
    self.cumulative = zeros(game.end)
    self.tapered = zeros(game.end if tapered else 0)
    # There are two players, so that averages say what gradients were.
    self.gradients = aligned_zeros(0)
    self.play_values = np.zeros(len(PLAYERS) if correlated else 0)
    self.state = zeros(minimizer.state_lines * game.end)
    # Kernels may read whole vectors.
    self.local = aligned_zeros(minimizer.local_lines * game.num_infosets + MOST_LANES)
    self._parts = partition.parts
    self.hold(np.zeros(0, np.int64))
    self._trees = [
      [
        tree._replace(scale=game.scale[own.start : own.stop + MOST_LANES])
        for tree, own in zip(part.trees, part.infosets, strict=True)
      ]
      for part in partition.parts
    ]
    for line, values in enumerate(self._initial_local):
      self.set_local_line(line, values)
    predicts = minimizer.predict is not None
    self._walk = PartWalk(partition, predicts=predicts, dtype=game.dtype)

  def advance(self, alternating: bool, numbers: IterationNumbers, done: Uint64s) -> None:
    """See the base class. Ctrl-C raises KeyboardInterrupt between two iterations."""
    parameters, before, after, additions = numbers
    turns = [(0,), (1,)] if alternating else [PLAYERS]
    owed = before[:1].sum(axis=0)

    def iterate(number: int, last: bool) -> None:
      complete = last or additions[number] != 0.0
      upcoming = np.zeros(len(PLAYERS)) if last else before[number + 1]
      for turn in turns:
        self._update(turn, parameters[number], before[number], after[number], owed)
        for player in turn:
          owed[player] = after[number, player] + (0.0 if complete else upcoming[player])
      if complete:
        self._pay(owed)
        owed[:] = upcoming
      if additions[number]:
        for part in self._parts:
          for own in part.sequences:
            self.tapered[own] += additions[number] * self.cumulative[own]
        done[1] = done[0] + np.uint64(1)
      done[0] += np.uint64(1)

    self._enter_trunk()
    whole_steps(iterate, len(parameters))

  def update(self, player: int, parameters: Float64s, before: Float64s, after: Float64s) -> None:
    """See the base class."""
    self._enter_trunk()
    owed = np.zeros(len(PLAYERS))
    owed[player] = before[player]
    self._update((player,), parameters, before, after, owed)
    owed[player] = after[player]
    self._pay(owed)

  def _enter_trunk(self) -> None:
    """Computes the reach probabilities of the trunk."""
    for player in PLAYERS:
      self._reach(0, player, self._walk.trunk)

  def hold(self, sequences: Int64s) -> None:
    """See the base class."""
    # For each part and player.
    self._held = [
      [sequences[(sequences >= own.start) & (sequences < own.stop)] for own in part.sequences]
      for part in self._parts
    ]
    self._kept = [[self.strategy[held] for held in of_part] for of_part in self._held]

  def _restore_held(self) -> None:
    """See the base class."""
    for number in range(len(self._parts)):
      for player in PLAYERS:
        self._restore_held_of(number, player)

  def _restore_held_of(self, number: int, player: int) -> None:
    """Overwrites what a minimizer has chosen at held sequences of a part."""
    self.strategy[self._held[number][player]] = self._kept[number][player]

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
        self._call(tree_adopt, self._trees[number][player], reach, self.strategy[own])
        self._restore_held_of(number, player)
        self._sweep_up(kernel, number, player, workspace.utility[player][0], workspace, parameters)

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
    self,
    turn: Sequence[int],
    parameters: Float64s,
    before: Float64s,
    after: Float64s,
    owed: Float64s,
  ) -> None:
    """Does an iteration of the players that update together, and pays what is owed to averages."""

    def update(number: int, workspace: Workspace) -> None:
      for player in PLAYERS:
        if owed[player]:
          self._average(number, player, workspace, float(owed[player]))
        elif 1 - player in turn:
          self._reach(number, player, workspace)
      for player in turn:
        self._walk.gradient(number, player, workspace)
      for player in turn:
        self._observe(number, player, workspace, parameters)
        self._walk.keep(number, player, workspace)

    self._walk.for_each_subtree(update)
    self._update_trunk(turn, parameters, before, after)
    owed[:] = 0.0

  def _pay(self, owed: Float64s) -> None:
    """Adds to averages what is owed, where nothing else is to be done."""

    def average(number: int, workspace: Workspace) -> None:
      for player in PLAYERS:
        if owed[player]:
          self._average(number, player, workspace, float(owed[player]))

    if owed.any():
      self._walk.for_each_subtree(average)
      owed[:] = 0.0

  def _update_trunk(
    self, turn: Sequence[int], parameters: Float64s, before: Float64s, after: Float64s
  ) -> None:
    """Does step 2."""
    workspace = self._walk.trunk
    for player in turn:
      self._walk.gradient(0, player, workspace)
    for player in turn:
      self._observe(0, player, workspace, parameters)
      if len(self.play_values):
        self.play_values[player] += before[player] * workspace.utility[player][0][0]
      weights = float(before[player]), float(after[player])
      total = self._total(player)
      self.cumulative[self._parts[0].sequences[player].start] += sum(weights)
      self._sweep_down(0, player, workspace, *weights, total)

  def _observe(self, number: int, player: int, workspace: Workspace, parameters: Float64s) -> None:
    """Runs the minimizer over a part, with the gradient in the workspace."""
    minimizer, (utility, prediction) = self._minimizer, workspace.utility[player]
    steps = [(minimizer.observe, utility)]
    if minimizer.predict is not None:
      prediction[:] = utility
      steps.append((minimizer.predict, prediction))
    if number == 0:
      self._walk.add_kept(player)
    for block_kernel, utilities in steps:
      self._sweep_up(block_kernel, number, player, utilities, workspace, parameters)
    self._restore_held_of(number, player)

  def _reach(self, number: int, player: int, workspace: Workspace) -> None:
    """Computes the reach probabilities of a part."""
    self._walk.enter(number, player, workspace)
    self._call(
      tree_reach,
      self._trees[number][player],
      self.strategy[self._parts[number].sequences[player]],
      workspace.sequence_form[player],
      workspace.scratch,
    )

  def _average(self, number: int, player: int, workspace: Workspace, weight: float) -> None:
    """Computes the reach probabilities of a part, and adds them to the average."""
    self._walk.enter(number, player, workspace)
    self._sweep_down(number, player, workspace, 0.0, weight, self._total(player))

  def _sweep_up(
    self,
    block_kernel: Kernel,
    number: int,
    player: int,
    utility: AnyFloats,
    workspace: Workspace,
    parameters: Float64s,
  ) -> None:
    part = self._parts[number]
    own = part.sequences[player]
    self._call(
      tree_up,
      block_kernel.of(self._game.dtype),
      self._trees[number][player],
      self.strategy[own],
      utility,
      self._state_of(own),
      self._local_of(part.infosets[player]),
      parameters,
      workspace.scratch,
    )

  def _sweep_down(
    self,
    number: int,
    player: int,
    workspace: Workspace,
    before: float,
    after: float,
    total: float,
  ) -> None:
    own = self._parts[number].sequences[player]
    self._call(
      tree_down,
      self._trees[number][player],
      self.strategy[own],
      workspace.sequence_form[player],
      self.cumulative[own],
      workspace.scratch,
      before,
      after,
      total,
    )

  def _total(self, player: int) -> float:
    """Returns what the weights of a player's average sum to so far."""
    return float(self.cumulative[self._parts[0].sequences[player].start])

  def _call(self, kernel: Kernel, *arguments: Any) -> None:
    """Calls a kernel in the precision of the game."""
    kernel.of(self._game.dtype)(*arguments)


def _block(array: AnyFloats, lines: int, own: slice) -> AnyFloats:
  """Returns what a part has of an array with several lines."""
  return array[lines * own.start : lines * own.stop].reshape(lines, own.stop - own.start)
