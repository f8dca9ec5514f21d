"""What an iteration does in one part of a game that is cut into a trunk and subtrees, and who does it."""

import abc
from collections.abc import Callable, Sequence

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Uint32s, aligned_zeros
from spiel_cfr._numba.kernels import Kernel
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.cfr.loops.part_visit import Side, visit_part
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


class PartSteps:
  """The steps of an iteration. A part's number is its place in `Partition.parts`, 0 that of the trunk.

  Attributes:
    memory: what they change. `strategy` and `cumulative` are in the game's order; of `action_state` and `infoset_state`
      each part has a block of all its lines.
    parts: of the game.
    walk: reach probabilities and utilities.
    predicts: whether the minimizer predicts.
    locked: the sequences whose probabilities stay, and these.
  """

  locked: tuple[Uint32s, AnyFloats]

  def __init__(self, game: CompiledGame, minimizer: RegretMinimizer, partition: Partition) -> None:
    """Allocates arrays of zeros, and workspaces."""
    self.memory = Memory(
      aligned_zeros(game.end, dtype=game.dtype),
      aligned_zeros(game.end, dtype=game.dtype),
      aligned_zeros(minimizer.action_lines * game.end, dtype=game.dtype),
      # Kernels may read whole vectors.
      aligned_zeros(minimizer.infoset_lines * game.num_infosets + MOST_LANES),
    )
    self.parts = partition.parts
    self._visits: dict[tuple[int, Workspace], Callable[..., None]] = {}
    self.predicts = minimizer.predict is not None
    self.walk = PartWalk(partition, predicts=self.predicts, dtype=game.dtype)
    self._minimizer, self._dtype = minimizer, game.dtype
    self._trees = [
      [
        tree._replace(scale=game.scale[own.start : own.stop + MOST_LANES])
        for tree, own in zip(part.trees, part.infosets, strict=True)
      ]
      for part in partition.parts
    ]

  def visit_subtree(
    self,
    number: int,
    workspace: Workspace,
    turn: Sequence[int],
    parameters: Float64s,
    deferred: Float64s,
  ) -> None:
    """Does all that an iteration does in a subtree, for the players whose turn it is to update; maybe nobody's.

    `deferred` is the weight with which each player's strategy is still to be added to its average, shape (players,).
    """
    if (number, workspace) not in self._visits:
      self._visits[number, workspace] = self._visit(number, workspace)
    players = sum(1 << player for player in turn)
    totals = np.array([self.total(player) for player in PLAYERS])
    self._visits[number, workspace](np.uint64(players), parameters, deferred, totals)

  def _visit(self, number: int, workspace: Workspace) -> Callable[..., None]:
    """Returns `visit_part` for a subtree, with the arguments that stay: to check them takes as long as a small one."""
    part, dtype, minimizer = self.parts[number], self._dtype, self._minimizer
    sides = []
    for player, own in enumerate(part.sequences):
      memory = Memory(
        self.memory.strategy[own],
        self.memory.cumulative[own],
        self.state_of(number, player),
        self.local_of(number, player),
      )
      sides.append(
        Side(
          tree=self._trees[number][player],
          memory=memory,
          above=part.entries[player].astype(np.uint32),
          trunk=self.walk.trunk.sequence_form[player],
          kept=self.walk.kept[number][player],
          sequence_form=workspace.sequence_form[player],
          utility=workspace.utility[player][0],
          prediction=workspace.utility[player][1],
        )
      )
    return visit_part.of(dtype).bound(
      part.payoff.gradient.of(dtype),
      minimizer.observe.of(dtype),
      (minimizer.predict or minimizer.observe).of(dtype),
      tree_reach.of(dtype),
      tree_forward_pass.of(dtype),
      tree_backward_pass.of(dtype),
      self.predicts,
      part.payoff.arrays_of(dtype),
      tuple(sides),
      workspace.scratch,
    )

  def observe_trunk(self, player: int, parameters: Float64s) -> None:
    """Runs the minimizer over the trunk, with the gradient in its workspace and what subtrees have left for it."""
    minimizer, (utility, prediction) = self._minimizer, self.walk.trunk.utility[player]
    steps = [(minimizer.observe, utility)]
    if minimizer.predict is not None:
      prediction[:] = utility
      steps.append((minimizer.predict, prediction))
    self.walk.add_kept(player)
    for block_kernel, utilities in steps:
      self.backward_pass(block_kernel, 0, player, utilities, self.walk.trunk, parameters)

  def reach(self, number: int, player: int, workspace: Workspace) -> None:
    """Computes the reach probabilities of a part, given those of the trunk."""
    self.walk.enter(number, player, workspace)
    strategy = self.memory.strategy[self.parts[number].sequences[player]]
    tree, reach = self._trees[number][player], workspace.sequence_form[player]
    tree_reach.of(self._dtype)(tree, strategy, reach, workspace.scratch)

  def adopt(self, number: int, player: int, workspace: Workspace, form: Float64s) -> None:
    """Makes a sequence form of the whole game the current strategy of a part."""
    own, reach = self.parts[number].sequences[player], workspace.sequence_form[player]
    reach[: self.parts[number].own_length(player)] = form[own]
    self.walk.enter(number, player, workspace)
    tree_adopt.of(self._dtype)(self._trees[number][player], reach, self.memory.strategy[own])

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
    tree_backward_pass.of(self._dtype)(
      block_kernel.of(self._dtype),
      self._trees[number][player],
      self.memory.strategy[self.parts[number].sequences[player]],
      utility,
      self.state_of(number, player),
      self.local_of(number, player),
      parameters,
      workspace.scratch,
    )

  def forward_trunk(self, player: int, before: float, after: float, total: float) -> None:
    """Computes the reach probabilities of the trunk, and adds to the average; see `tree_passes.tree_forward_pass`."""
    own, workspace = self.parts[0].sequences[player], self.walk.trunk
    tree_forward_pass.of(self._dtype)(
      self._trees[0][player],
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

  def state_of(self, number: int, player: int) -> AnyFloats:
    """Returns the minimizer's state of a part and player, a view of shape (lines, sequences)."""
    own = self.parts[number].sequences[player]
    return _block(self.memory.action_state, self._minimizer.action_lines, own)

  def local_of(self, number: int, player: int) -> AnyFloats:
    """Returns what the minimizer keeps at infosets of a part and player, a view of shape (lines, infosets)."""
    own = self.parts[number].infosets[player]
    return _block(self.memory.infoset_state, self._minimizer.infoset_lines, own)


def _block(array: AnyFloats, lines: int, own: slice) -> AnyFloats:
  """Returns what a part has of an array with several lines."""
  return array[lines * own.start : lines * own.stop].reshape(lines, own.stop - own.start)


class Subtrees(abc.ABC):
  """Who goes through the subtrees of a game."""

  @abc.abstractmethod
  def visit(self, turn: Sequence[int], parameters: Float64s, deferred: Float64s) -> None:
    """Does `PartSteps.visit_subtree` in each subtree; `PartSteps.walk` then has what that leaves for the trunk."""

  def gather(self) -> None:  # noqa: B027
    """Brings what is remembered of subtrees up to date here; whoever asks for it may write to it."""

  def gather_averages(self) -> None:  # noqa: B027
    """Does the same for somebody who only reads."""

  def check(self) -> None:  # noqa: B027
    """Says whether a visit since the last call has not gone as it should.

    Raises:
      ShardError: it has not; what it was to do has been done all the same.
    """


class LocalSubtrees(Subtrees):
  """Goes through them in this process, in one thread or several."""

  def __init__(self, steps: PartSteps) -> None:
    self._steps = steps

  def visit(self, turn: Sequence[int], parameters: Float64s, deferred: Float64s) -> None:
    self._steps.walk.for_each_subtree(
      lambda number, workspace: self._steps.visit_subtree(
        number, workspace, turn, parameters, deferred
      )
    )
