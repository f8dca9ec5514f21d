"""Partitions of a game into a trunk and subtrees, and visits to these parts.

If chance splits a game into many subtrees, a solver can visit them one at a time, in the same small workspace. It can
also visit several at once. Subtrees meet in the trunk only. Values that they pass up are added in the order of the
subtrees, so that results don't depend on the number of threads.
"""

import concurrent.futures
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import AnyFloats, Int64s, Uint64s, aligned_zeros
from spiel_cfr._numba.line_steps import Copy, Selection, add_to_line, copy_line, gather_line
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr._numba.steps import Step
from spiel_cfr.games.compiled.forced_moves import Decisions
from spiel_cfr.games.compiled.shards import Shards
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.sequence_form.blocks import new_scratch
from spiel_cfr.games.sequence_form.single_passes import reach
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, COLUMNS, FIRST_SEQUENCE

_NO_GROUPS = np.zeros((0, COLUMNS), np.uint64)


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
  """A part of a game that a solver visits at once: the whole game, its trunk, or subtrees below moves of chance.

  Arrays of a subtree begin with the part's own sequences. After them come the sequences of the trunk that are directly
  above its infosets or terminals. Each player has arrays of its own. In a part that is the whole game, all players
  share the arrays, and sequences are numbered as in the game.

  Attributes:
    sequences: for each player, slice. The game's sequences that its arrays hold.
    infosets: for each player, slice. The game's infosets that its arrays hold, in layout order.
    trees: for each player, Tree. The infosets to visit, in the numbering of the part.
    trunk_sequences: for each player, int64. The trunk's sequences above the part, in the numbering of the trunk; empty
      in the trunk and in a whole game.
    payoff: Payoff. The terminals of the part.
    left_out: for each player, uint64 (groups, 6). The groups of infosets with one action, if `trees` leave them out.
      Then `Tree.parent` still has an element for every infoset: its owner's last choice before it.
    shared_places: for each player, slice. Its place in the arrays that all players share; empty if they don't.
    with_forced: for each player, Tree. All infosets, those with one action too; empty if `trees` has all.
  """

  sequences: tuple[slice, ...]
  infosets: tuple[slice, ...]
  trees: tuple[Tree, ...]
  trunk_sequences: tuple[Int64s, ...]
  payoff: Payoff
  left_out: tuple[Uint64s, ...] = (_NO_GROUPS, _NO_GROUPS)
  shared_places: tuple[slice, ...] = ()
  with_forced: tuple[Tree, ...] = ()

  @property
  def every_infoset(self) -> tuple[Tree, ...]:
    """For each player, all infosets of the part, those with one action too."""
    return self.with_forced or self.trees

  def own_length(self, player: int) -> int:
    """Returns the number of the part's own sequences in a player's arrays."""
    own = self.sequences[player]
    return int(own.stop - own.start)

  def length(self, player: int) -> int:
    """Returns the number of sequences in a player's arrays, those of the trunk included."""
    return self.own_length(player) + len(self.trunk_sequences[player])

  def place(self, player: int) -> slice:
    """Returns the slice of a player's arrays with all of its sequences; in a whole game or trunk, the root is first."""
    return self.shared_places[player] if self.shared_places else slice(0, self.length(player))


@dataclasses.dataclass(frozen=True, eq=False)
class Partition:
  """A game cut into parts, and the threads or processes that visit them.

  Attributes:
    parts: the trunk, then the subtrees.
    num_threads: int. The number of subtrees that are visited at once.
    shards: the processes that visit subtrees; None if the solver's own process does.
  """

  parts: list[Part]
  num_threads: int
  shards: Shards | None = None

  def forced(self) -> Iterator[tuple[slice, Int64s]]:
    """Yields, for each group that is left out, its sequences and the owner's last choice before each infoset."""
    for part in self.parts:
      for player, own in enumerate(part.sequences):
        if not len(part.left_out[player]):
          continue
        above = self.parts[0].sequences[player].start + part.trunk_sequences[player]
        numbers = np.concatenate([np.arange(own.start, own.stop), above])
        for first, _, count, _, infoset, _ in part.left_out[player].astype(np.int64).tolist():
          chosen = part.trees[player].parent[infoset : infoset + count]
          yield slice(own.start + first, own.start + first + count), numbers[chosen]


def undivided(every: Decisions, decisions: Decisions | None = None) -> Partition:
  """Returns a game as a single part.

  Args:
    every: all infosets of the game.
    decisions: the infosets to visit; by default all.
  """
  decisions = decisions or every
  left_out = every.groups[:0]
  if len(decisions.groups) < len(every.groups):
    left_out = every.groups[every.groups[:, ACTIONS] == 1]
  bounds, every_bounds = (some.players.astype(int).tolist() for some in (decisions, every))
  num_players, end = len(bounds), bounds[-1][3]
  owner = np.searchsorted([row[3] for row in bounds], left_out[:, FIRST_SEQUENCE], side="right")
  part = Part(
    sequences=(slice(0, end),) * num_players,
    infosets=(slice(0, len(every.parent)),) * num_players,
    trees=tuple(Tree(decisions.groups[row[0] : row[1]], decisions.parent) for row in bounds),
    trunk_sequences=(np.zeros(0, np.int64),) * num_players,
    payoff=decisions.payoff,
    left_out=tuple(left_out[owner == player] for player in range(num_players)),
    shared_places=tuple(slice(root, stop) for _, _, root, stop in bounds),
    with_forced=tuple(Tree(every.groups[row[0] : row[1]], every.parent) for row in every_bounds),
  )
  return Partition([part], num_threads=1)


class Workspace:
  """The arrays that a thread needs to visit some parts: one for each player, or one that all share.

  Attributes:
    sequence_form: for each player, reach probabilities.
    utility: for each player, utilities.
    prediction: for each player, predicted utilities; empty if there are none.
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
    if parts and parts[0].shared_places:
      lengths = [parts[0].own_length(0)]
    else:
      # Kernels may read and write whole vectors.
      lengths = [MOST_LANES + max(part.length(player) for part in parts) for player in players]
    self.sequence_form, self.utility, self.prediction = (
      _for_each_player([aligned_zeros(length * wanted, dtype=dtype) for length in lengths], players)
      for wanted in (True, True, predicts)
    )
    self.scratch = new_scratch(dtype)


def _for_each_player(lines: list[AnyFloats], players: range) -> list[AnyFloats]:
  return lines if len(lines) == len(players) else lines * len(players)


class Visit(NamedTuple):
  """A player's visit to a part, in a workspace.

  Attributes:
    number: int. The part's place in `Partition.parts`; 0 is the trunk.
    player: int. The player.
    workspace: Workspace. The arrays.
  """

  number: int
  player: int
  workspace: Workspace

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


class PartWalk:
  """Visits to the parts of a game: the subtrees in any order, several at once, and then the trunk.

  A game that is not cut is a trunk without subtrees.

  Attributes:
    parts: list of `Part`. The parts of the game, the trunk first.
    trunk: the workspace of the trunk.
    workspaces: the workspaces of the threads that visit subtrees.
  """

  def __init__(
    self, partition: Partition, *, predicts: bool = False, dtype: npt.DTypeLike = np.float64
  ) -> None:
    """Allocates workspaces, with room for predicted utilities if `predicts`."""
    self.parts, self._dtype = partition.parts, np.dtype(dtype)
    self.players = range(len(self.parts[0].sequences))
    self.trunk = Workspace(self.parts[:1], predicts, dtype)
    subtrees = self.parts[1:]
    self.workspaces = [
      Workspace(subtrees, predicts, dtype) for _ in range(partition.num_threads if subtrees else 0)
    ]
    lines = 2 if predicts else 1
    self._passed_up: list[list[list[AnyFloats]]] = [
      [[np.zeros(len(above), dtype) for _ in range(lines)] for above in part.trunk_sequences]
      for part in self.parts
    ]

  def passed_up(self, number: int, player: int) -> list[AnyFloats]:
    """Returns the values that the last visit to a subtree passed up: utilities and, if any, predictions."""
    return self._passed_up[number][player]

  def for_each_subtree(self, work: Callable[[int, Workspace], None]) -> None:
    """Calls `work` with the number of each subtree and a workspace."""
    # A thread that is done takes the next subtree. Results do not depend on which thread took it.
    numbers = iter(range(1, len(self.parts)))

    def share(workspace: Workspace) -> None:
      for number in numbers:
        work(number, workspace)

    if len(self.workspaces) == 1:
      share(self.workspaces[0])
    elif self.workspaces:
      with concurrent.futures.ThreadPoolExecutor(len(self.workspaces)) as threads:
        list(threads.map(share, self.workspaces))

  def visits(self, number: int) -> list[Visit]:
    """Returns the visits of all players to a part, in the first workspace."""
    workspace = self.workspaces[0] if number else self.trunk
    return [Visit(number, player, workspace) for player in self.players]

  def enter(self, visit: Visit) -> list[Step]:
    """Returns the steps that copy the trunk's reach probabilities to a subtree; a root is set to 1."""
    number, player, _ = visit
    part = self.parts[number]
    if not number:
      visit.sequence_form[part.place(player).start] = 1.0
      return []
    above = part.trunk_sequences[player].astype(np.uint32)
    target = visit.sequence_form[part.own_length(player) :]
    pick = Selection(self.trunk.sequence_form[player], above, target)
    return [gather_line.on(pick, self._dtype)]

  def reach(self, visit: Visit, strategy: AnyFloats, tree: Tree | None = None) -> list[Step]:
    """Returns the steps that compute a player's reach probabilities in a part from its strategy there."""
    tree = tree or self.parts[visit.number].trees[visit.player]
    scratch = visit.workspace.scratch
    return [*self.enter(visit), reach(tree, strategy, visit.sequence_form, scratch)]

  def load(
    self,
    number: int,
    workspace: Workspace,
    sequence_form: AnyFloats,
    totals: Sequence[float] | None = None,
  ) -> None:
    """Copies a sequence form of the whole game to a part, divided by a total for each player.

    The trunk must be loaded before its subtrees.
    """
    part = self.parts[number]
    for player, own in enumerate(part.sequences):
      place, length = part.place(player), part.own_length(player)
      reach, stop = workspace.sequence_form[player], min(place.stop, length)
      # Infinite and NaN results show in the values that are computed from them.
      with np.errstate(all="ignore"):
        np.divide(
          sequence_form[own.start + place.start : own.start + stop],
          1.0 if totals is None else totals[player],
          out=reach[place.start : stop],
          dtype=np.float64,
        )
      if number:
        reach[length : place.stop] = self.trunk.sequence_form[player][part.trunk_sequences[player]]

  def gradient(self, visit: Visit) -> Step:
    """Returns the step that computes a player's gradient in a part."""
    others = visit.workspace.sequence_form[(visit.player + 1) % len(self.players)]
    payoff = self.parts[visit.number].payoff
    return payoff.gradient_step(visit.player, others, visit.utility)

  def copy_to_prediction(self, visit: Visit) -> Step:
    """Returns the step that copies the gradient, before a backward pass, to the predicted utilities."""
    own = self.parts[visit.number].place(visit.player)
    return copy_line.on(Copy(visit.utility[own], visit.prediction[own]), self._dtype)

  def leave(self, visit: Visit) -> list[Step]:
    """Returns the steps that keep the values that a subtree passes up to the trunk; none in the trunk."""
    part, lines = self.parts[visit.number], (visit.utility, visit.prediction)
    above = slice(part.own_length(visit.player), part.length(visit.player))
    return [
      copy_line.on(Copy(line[above], passed), self._dtype)
      for line, passed in zip(lines, self.passed_up(visit.number, visit.player), strict=False)
      if visit.number
    ]

  def collect(self, visit: Visit) -> list[Step]:
    """Returns the steps that add the values of all subtrees to the trunk; none in a subtree."""
    return [
      add_to_line.on(
        Selection(passed, part.trunk_sequences[visit.player].astype(np.uint32), line), self._dtype
      )
      for number, part in enumerate(self.parts)
      for line, passed in zip(
        (visit.utility, visit.prediction), self.passed_up(number, visit.player), strict=False
      )
      if number and not visit.number
    ]
