"""Partitions of a game into a trunk and subtrees, and the steps of visits to these parts.

A cut divides a game into the *trunk*, which has the root, and subgames. The trunk is part 0. Each other part is a
*subtree*: one subgame, or several neighboring ones. A solver visits the subtrees one at a time in one small workspace,
or several at once. Subtrees pass values up to sequences of the trunk. The values are added in the order of the
subtrees, so that results don't depend on the number of threads.
"""

import concurrent.futures
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import AnyFloats, Int64s, Uint64s, aligned_zeros
from spiel_cfr._numba.line_steps import Copy, Selection, add_to_line, copy_line, gather_line
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr._numba.steps import Step
from spiel_cfr.games.compiled.forced_moves import Decisions
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.sequence_form.blocks import new_scratch
from spiel_cfr.games.sequence_form.single_passes import reach
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, FIRST_SEQUENCE


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
  """A part of a game that a solver visits at once: the whole game, its trunk, or a subtree.

  In a visit, each player has its own arrays. In a subtree, a player's arrays also have the sequences of the trunk that
  lead into the subtree, those directly above its infosets and terminals:

      subtree       [own sequences ... | sequences of the trunk above]
      trunk         [own sequences ...]
      whole game    [sequences of player 0 ... | of player 1 ... | ...], one array that all players share

  Attributes:
    sequences: for each player, slice. The part's sequences, in the numbering of the game.
    infosets: for each player, slice. The part's infosets, in the numbering of the game.
    trees: for each player, Tree. The infosets to visit, in the numbering of the part.
    trunk_sequences: for each player, int64 (sequences,). The trunk's sequences above the part, in the numbering of the
      trunk; empty in the trunk and in a whole game.
    payoff: Payoff. The terminals of the part.
    left_out: for each player, uint64 (groups, 6). The groups of infosets with one action, if `trees` leave them out.
      `Tree.parent` still has an element for every infoset: its owner's last choice before it.
    shared_slices: for each player, slice. The player's sequences in the arrays that all players share; empty if each
      player has its own arrays.
    with_forced: for each player, Tree. All infosets, including those with one action; empty if `trees` has all.
  """

  sequences: tuple[slice, ...]
  infosets: tuple[slice, ...]
  trees: tuple[Tree, ...]
  trunk_sequences: tuple[Int64s, ...]
  payoff: Payoff
  left_out: tuple[Uint64s, ...]
  shared_slices: tuple[slice, ...] = ()
  with_forced: tuple[Tree, ...] = ()

  @property
  def every_infoset(self) -> tuple[Tree, ...]:
    """For each player, all infosets of the part, including those with one action."""
    return self.with_forced or self.trees

  def own_length(self, player: int) -> int:
    """Returns the number of the part's sequences in a player's arrays, without those of the trunk above."""
    sequences = self.sequences[player]
    return int(sequences.stop - sequences.start)

  def length(self, player: int) -> int:
    """Returns the number of sequences in a player's arrays, including those of the trunk above."""
    return self.own_length(player) + len(self.trunk_sequences[player])

  def player_slice(self, player: int) -> slice:
    """Returns the slice of the arrays with a player's sequences; in a whole game or trunk, the root is first."""
    return self.shared_slices[player] if self.shared_slices else slice(0, self.length(player))


@dataclasses.dataclass(frozen=True, eq=False)
class Shards:
  """The processes that visit the subtrees. They pickle as None: another process can't use them.

  Attributes:
    executors: one executor for each shard, with a single process.
    game: bytes. The pickled game, which the processes load.
  """

  executors: Sequence[concurrent.futures.Executor]
  game: bytes

  def __reduce__(self) -> Any:
    """Pickles as None."""
    return type(None), ()


@dataclasses.dataclass(frozen=True, eq=False)
class Partition:
  """A game cut into parts, and the threads or processes that visit them.

  Attributes:
    parts: the trunk, then the subtrees.
    num_threads: int. The number of subtrees that are visited at once.
    shards: `Shards`. The processes that visit subtrees; None if the solver's process visits them.
  """

  parts: list[Part]
  num_threads: int
  shards: Shards | None = None

  def forced(self) -> Iterator[tuple[slice, Int64s]]:
    """Yields, for each group that is left out, its sequences and the owner's last choice before each infoset.

    Sequences are numbered as in the game.
    """
    for part in self.parts:
      for player, sequences in enumerate(part.sequences):
        if not len(part.left_out[player]):
          continue
        trunk_sequences = self.parts[0].sequences[player].start + part.trunk_sequences[player]
        in_game = np.concatenate([np.arange(sequences.start, sequences.stop), trunk_sequences])
        for first, _, count, _, infoset, _ in part.left_out[player].astype(np.int64).tolist():
          begin = sequences.start + first
          chosen = part.trees[player].parent[infoset : infoset + count]
          yield slice(begin, begin + count), in_game[chosen]


def undivided(every: Decisions, decisions: Decisions | None = None) -> Partition:
  """Returns the partition of a game into a single part.

  Args:
    every: all infosets of the game.
    decisions: the infosets to visit; by default, all.
  """
  decisions = decisions or every
  left_out = every.groups[:0]
  if len(decisions.groups) < len(every.groups):
    left_out = every.groups[every.groups[:, ACTIONS] == 1]
  bounds, every_bounds = (
    infosets.player_bounds.astype(int).tolist() for infosets in (decisions, every)
  )
  num_players, end = len(bounds), bounds[-1][3]
  owner = np.searchsorted([row[3] for row in bounds], left_out[:, FIRST_SEQUENCE], side="right")
  part = Part(
    sequences=(slice(0, end),) * num_players,
    infosets=(slice(0, len(every.parent)),) * num_players,
    trees=tuple(Tree(decisions.groups[row[0] : row[1]], decisions.parent) for row in bounds),
    trunk_sequences=(np.zeros(0, np.int64),) * num_players,
    payoff=decisions.payoff,
    left_out=tuple(left_out[owner == player] for player in range(num_players)),
    shared_slices=tuple(slice(root, stop) for _, _, root, stop in bounds),
    with_forced=tuple(Tree(every.groups[row[0] : row[1]], every.parent) for row in every_bounds),
  )
  return Partition([part], num_threads=1)


class PartWorkspace:
  """The arrays of a thread that visits parts. Players have an array each, or the same one if a part is a whole game.

  Attributes:
    sequence_form: for each player, float array (sequences,). Reach probabilities.
    utility: for each player, float array (sequences,). Utilities.
    prediction: for each player, float array (sequences,). Predicted utilities; length 0 without predictions.
    scratch: `Scratch`. The workspace of block kernels.
  """

  def __init__(
    self, parts: Sequence[Part], predicts: bool = False, dtype: npt.DTypeLike = np.float64
  ) -> None:
    """Allocates the arrays."""
    players = range(len(parts[0].sequences) if parts else 0)
    self.sequence_form: list[AnyFloats]
    self.utility: list[AnyFloats]
    self.prediction: list[AnyFloats]
    if parts and parts[0].shared_slices:
      lengths = [parts[0].own_length(0)]
    else:
      # Kernels may read and write whole vectors.
      lengths = [MOST_LANES + max(part.length(player) for part in parts) for player in players]
    self.sequence_form, self.utility, self.prediction = (
      _for_each_player(
        [aligned_zeros(length * is_used, dtype=dtype) for length in lengths], players
      )
      for is_used in (True, True, predicts)
    )
    self.scratch = new_scratch(dtype)


def _for_each_player(lines: list[AnyFloats], players: range) -> list[AnyFloats]:
  """Returns a list with an array for each player; one array is repeated for all players."""
  return lines if len(lines) == len(players) else lines * len(players)


class Visit(NamedTuple):
  """A player's visit to a part, in a workspace.

  Attributes:
    part: int. The part's index in `Partition.parts`; 0 is the trunk or the whole game.
    player: int. The player.
    workspace: PartWorkspace. The arrays that the visit reads and writes.
  """

  part: int
  player: int
  workspace: PartWorkspace

  @property
  def sequence_form(self) -> AnyFloats:
    """The player's reach probabilities."""
    return self.workspace.sequence_form[self.player]

  @property
  def utility(self) -> AnyFloats:
    """The player's utilities."""
    return self.workspace.utility[self.player]

  @property
  def prediction(self) -> AnyFloats:
    """The player's predicted utilities."""
    return self.workspace.prediction[self.player]


class PartSteps:
  """Steps of visits to the parts of a game: the subtrees, in any order and several at once, and then the trunk.

  A game that is not cut into parts counts as a trunk without subtrees.

  Attributes:
    parts: list of `Part`. The parts of the game, the trunk first.
    workspace_of_part_0: `PartWorkspace`. The workspace of part 0: the trunk, or the whole game.
    subtree_workspaces: list of `PartWorkspace`. One for each thread that visits subtrees.
  """

  def __init__(
    self, partition: Partition, *, predicts: bool = False, dtype: npt.DTypeLike = np.float64
  ) -> None:
    """Allocates workspaces, with room for predicted utilities if `predicts`."""
    self.parts, self._dtype = partition.parts, np.dtype(dtype)
    self.players = range(len(self.parts[0].sequences))
    self.workspace_of_part_0 = PartWorkspace(self.parts[:1], predicts, dtype)
    subtrees = self.parts[1:]
    self.subtree_workspaces = [
      PartWorkspace(subtrees, predicts, dtype)
      for _ in range(partition.num_threads if subtrees else 0)
    ]
    lines = 2 if predicts else 1
    self._passed_up: list[list[list[AnyFloats]]] = [
      [
        [np.zeros(len(sequences), dtype) for _ in range(lines)]
        for sequences in part.trunk_sequences
      ]
      for part in self.parts
    ]

  def passed_up(self, number: int, player: int) -> list[AnyFloats]:
    """Returns the values that the last visit to a subtree passed up: utilities, then predictions if there are any."""
    return self._passed_up[number][player]

  def for_each_subtree(self, work: Callable[[int, PartWorkspace], None]) -> None:
    """Calls `work` with the number of each subtree and a workspace."""
    # A thread that is done takes the next subtree. Results do not depend on which thread took it.
    numbers = iter(range(1, len(self.parts)))

    def share(workspace: PartWorkspace) -> None:
      for number in numbers:
        work(number, workspace)

    if len(self.subtree_workspaces) == 1:
      share(self.subtree_workspaces[0])
    elif self.subtree_workspaces:
      with concurrent.futures.ThreadPoolExecutor(len(self.subtree_workspaces)) as threads:
        list(threads.map(share, self.subtree_workspaces))

  def visits(self, number: int) -> list[Visit]:
    """Returns the visits of all players to a part, in the first workspace."""
    workspace = self.subtree_workspaces[0] if number else self.workspace_of_part_0
    return [Visit(number, player, workspace) for player in self.players]

  def enter(self, visit: Visit) -> list[Step]:
    """Returns the steps that copy the trunk's reach probabilities to a subtree. At the trunk, sets the root to 1."""
    number, player, _ = visit
    part = self.parts[number]
    if number == 0:
      visit.sequence_form[part.player_slice(player).start] = 1.0
      return []
    trunk_sequences = part.trunk_sequences[player].astype(np.uint32)
    target = visit.sequence_form[part.own_length(player) :]
    selection = Selection(self.workspace_of_part_0.sequence_form[player], trunk_sequences, target)
    return [gather_line.on(selection, self._dtype)]

  def reach(self, visit: Visit, strategy: AnyFloats, tree: Tree | None = None) -> list[Step]:
    """Returns the steps that compute a player's reach probabilities in a part from its strategy there."""
    tree = tree or self.parts[visit.part].trees[visit.player]
    scratch = visit.workspace.scratch
    return [*self.enter(visit), reach(tree, strategy, visit.sequence_form, scratch)]

  def load(
    self,
    number: int,
    workspace: PartWorkspace,
    sequence_form: AnyFloats,
    totals: Sequence[float] | None = None,
  ) -> None:
    """Copies a sequence form of the whole game to the workspace of a part. The trunk must be loaded first.

    Args:
      number: the index of the part.
      workspace: the workspace.
      sequence_form: shape (sequences,). The sequence form, or a weighted sum of sequence forms.
      totals: for each player, the number that its sequences are divided by; by default, 1.
    """
    part = self.parts[number]
    for player, sequences in enumerate(part.sequences):
      target, length = part.player_slice(player), part.own_length(player)
      part_reach, stop = workspace.sequence_form[player], min(target.stop, length)
      # Infinite and NaN results show in the values that are computed from them.
      with np.errstate(all="ignore"):
        np.divide(
          sequence_form[sequences.start + target.start : sequences.start + stop],
          1.0 if totals is None else totals[player],
          out=part_reach[target.start : stop],
          dtype=np.float64,
        )
      if number:
        trunk_reach = self.workspace_of_part_0.sequence_form[player]
        part_reach[length : target.stop] = trunk_reach[part.trunk_sequences[player]]

  def gradient(self, visit: Visit) -> Step:
    """Returns the step that computes a player's gradient in a part."""
    payoff = self.parts[visit.part].payoff
    return payoff.gradient_step(visit.player, self._others_reach(visit), visit.utility)

  def _others_reach(self, visit: Visit) -> AnyFloats:
    """Returns an array with the other players' sequence forms in a part."""
    # Two players have an array each, or share one. More players always share one.
    other = 1 - visit.player if len(self.players) == 2 else visit.player
    return visit.workspace.sequence_form[other]

  def copy_to_prediction(self, visit: Visit) -> Step:
    """Returns the step that copies the gradient to the predicted utilities; it runs before the backward pass."""
    sequences = self.parts[visit.part].player_slice(visit.player)
    copy = Copy(visit.utility[sequences], visit.prediction[sequences])
    return copy_line.on(copy, self._dtype)

  def pass_up_values(self, visit: Visit) -> list[Step]:
    """Returns the steps that copy the values of a subtree's roots to `passed_up`; none for a trunk or a whole game."""
    part, lines = self.parts[visit.part], (visit.utility, visit.prediction)
    trunk_sequences = slice(part.own_length(visit.player), part.length(visit.player))
    return [
      copy_line.on(Copy(line[trunk_sequences], passed), self._dtype)
      for line, passed in zip(lines, self.passed_up(visit.part, visit.player), strict=False)
      if visit.part
    ]

  def add_passed_up_values(self, visit: Visit) -> list[Step]:
    """Returns the steps that add the values that all subtrees passed up to the trunk's utilities.

    There are none for a subtree or a whole game.
    """
    return [
      add_to_line.on(
        Selection(passed, part.trunk_sequences[visit.player].astype(np.uint32), line), self._dtype
      )
      for number, part in enumerate(self.parts)
      for line, passed in zip(
        (visit.utility, visit.prediction), self.passed_up(number, visit.player), strict=False
      )
      if number and not visit.part
    ]
