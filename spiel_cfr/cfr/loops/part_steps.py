"""What solvers do in one part of a game that is cut into parts, on arrays that they are given."""

from collections.abc import Sequence
from typing import Any

from spiel_cfr._numba.arrays import AnyFloats, Float64s, aligned_zeros
from spiel_cfr._numba.kernels import Kernel
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS, Partition, PartWalk, Workspace
from spiel_cfr.games.sequence_form.tree_passes import (
  Memory,
  tree_adopt,
  tree_backward_pass,
  tree_forward_pass,
  tree_reach,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


def new_memory(game: CompiledGame, minimizer: RegretMinimizer) -> Memory:
  """Returns arrays of zeros."""
  return Memory(
    aligned_zeros(game.end, dtype=game.dtype),
    aligned_zeros(game.end, dtype=game.dtype),
    aligned_zeros(minimizer.state_lines * game.end, dtype=game.dtype),
    # Kernels may read whole vectors.
    aligned_zeros(minimizer.local_lines * game.num_infosets + MOST_LANES),
  )


class PartSteps:
  """The steps of an iteration, in any part.

  Attributes:
    memory: what they change; `strategy` and `cumulative` are in the game's order, of `state` and `local` each part has
      a block of all its lines.
    parts: of the game.
    walk: reach probabilities and utilities.
    predicts: whether the minimizer predicts.
  """

  def __init__(
    self, game: CompiledGame, minimizer: RegretMinimizer, partition: Partition, memory: Memory
  ) -> None:
    """Allocates workspaces."""
    self.memory = memory
    self.parts = partition.parts
    self.predicts = minimizer.predict is not None
    self.walk = PartWalk(partition, predicts=self.predicts, dtype=game.dtype)
    self._game = game
    self._minimizer = minimizer
    self._trees = [
      [
        tree._replace(scale=game.scale[own.start : own.stop + MOST_LANES])
        for tree, own in zip(part.trees, part.infosets, strict=True)
      ]
      for part in partition.parts
    ]

  def visit(
    self,
    number: int,
    workspace: Workspace,
    turn: Sequence[int],
    parameters: Float64s,
    owed: Float64s,
  ) -> None:
    """Does step 1 in a subtree: of the players that update together, who may be none, and of what averages are owed."""
    for player in PLAYERS:
      if owed[player]:
        self.average(number, player, workspace, float(owed[player]))
      elif 1 - player in turn:
        self.reach(number, player, workspace)
    for player in turn:
      self.walk.gradient(number, player, workspace)
    for player in turn:
      self.observe(number, player, workspace, parameters)
      self.walk.keep(number, player, workspace)

  def observe(self, number: int, player: int, workspace: Workspace, parameters: Float64s) -> None:
    """Runs the minimizer over a part, with the gradient in the workspace."""
    minimizer, (utility, prediction) = self._minimizer, workspace.utility[player]
    steps = [(minimizer.observe, utility)]
    if minimizer.predict is not None:
      prediction[:] = utility
      steps.append((minimizer.predict, prediction))
    if number == 0:
      self.walk.add_kept(player)
    for block_kernel, utilities in steps:
      self.backward_pass(block_kernel, number, player, utilities, workspace, parameters)

  def reach(self, number: int, player: int, workspace: Workspace) -> None:
    """Computes the reach probabilities of a part."""
    self.walk.enter(number, player, workspace)
    self._call(
      tree_reach,
      self._trees[number][player],
      self.memory.strategy[self.parts[number].sequences[player]],
      workspace.sequence_form[player],
      workspace.scratch,
    )

  def average(self, number: int, player: int, workspace: Workspace, weight: float) -> None:
    """Computes the reach probabilities of a part, and adds them to the average."""
    self.walk.enter(number, player, workspace)
    self.forward_pass(number, player, workspace, 0.0, weight, self.total(player))

  def adopt(self, number: int, player: int, workspace: Workspace, form: Float64s) -> None:
    """Makes a sequence form of the whole game the current strategy of a part."""
    own, reach = self.parts[number].sequences[player], workspace.sequence_form[player]
    reach[: self.parts[number].own_length(player)] = form[own]
    self.walk.enter(number, player, workspace)
    self._call(tree_adopt, self._trees[number][player], reach, self.memory.strategy[own])

  def backward_pass(
    self,
    block_kernel: Kernel,
    number: int,
    player: int,
    utility: AnyFloats,
    workspace: Workspace,
    parameters: Float64s,
  ) -> None:
    """Calls a minimizer's kernel at every block of a part, from the leaves on."""
    part = self.parts[number]
    own = part.sequences[player]
    self._call(
      tree_backward_pass,
      block_kernel.of(self._game.dtype),
      self._trees[number][player],
      self.memory.strategy[own],
      utility,
      self.state_of(self.memory, own),
      self.local_of(self.memory, part.infosets[player]),
      parameters,
      workspace.scratch,
    )

  def forward_pass(
    self,
    number: int,
    player: int,
    workspace: Workspace,
    before: float,
    after: float,
    total: float,
  ) -> None:
    """Computes the reach probabilities of a part, and adds to the average; see `tree_passes.tree_forward_pass`."""
    own = self.parts[number].sequences[player]
    self._call(
      tree_forward_pass,
      self._trees[number][player],
      self.memory.strategy[own],
      workspace.sequence_form[player],
      self.memory.cumulative[own],
      workspace.scratch,
      before,
      after,
      total,
    )

  def total(self, player: int) -> float:
    """Returns what the weights of a player's average sum to so far."""
    return float(self.memory.cumulative[self.parts[0].sequences[player].start])

  def set_total(self, player: int, total: float) -> None:
    """Tells what another process has found that to be."""
    self.memory.cumulative[self.parts[0].sequences[player].start] = total

  def _call(self, kernel: Kernel, *arguments: Any) -> None:
    """Calls a kernel in the precision of the game."""
    kernel.of(self._game.dtype)(*arguments)

  def state_of(self, memory: Memory, own: slice) -> AnyFloats:
    """Returns the minimizer's state of a part and player, given which sequences these are; shape (lines, sequences)."""
    return _block(memory.state, self._minimizer.state_lines, own)

  def local_of(self, memory: Memory, own: slice) -> AnyFloats:
    """Returns what the minimizer keeps at infosets, likewise; shape (lines, infosets)."""
    return _block(memory.local, self._minimizer.local_lines, own)


def _block(array: AnyFloats, lines: int, own: slice) -> AnyFloats:
  """Returns what a part has of an array with several lines."""
  return array[lines * own.start : lines * own.stop].reshape(lines, own.stop - own.start)
