"""Games cut into a trunk and subtrees that meet in the trunk only, and how to go through them.

Where chance splits a game into many subtrees, a solver can go through them one at a time with the same small workspace,
or through several at once. What several threads leave at the trunk is added in the order of the subtrees, whoever
computed it, so that results don't depend on the number of threads.
"""

import concurrent.futures
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import AnyFloats, Int64s, Uint64s, aligned_zeros
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.sequence_form.tree_passes import Tree, new_scratch
from spiel_cfr.games.sequence_form.treeplex import COLUMNS

PLAYERS = (0, 1)
_NO_GROUPS = np.zeros((0, COLUMNS), np.uint64)


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
  """A part of a two-player game: the trunk, or what follows one of its moves of chance.

  Each player has its own numbering here: first the sequences of this part, from 0, then those sequences of the trunk
  that are above infosets or terminals of this part.

  Attributes:
    sequences: which of the game's sequences these are, per player.
    infosets: which of the player's infosets, in layout order, per player.
    trees: the groups and parents of a `Treeplex`, in the numbering of this part, per player.
    entries: int64, the sequences of the trunk above this part, in the trunk's numbering; none in the trunk itself.
    payoff: of the terminals of this part; its kernel is given the opponent's sequences and the player's own utilities.
    left_out: groups of infosets with one action that are not in `trees`, per player; `Tree.parent` has them all the
      same, and what their owner has chosen last is above them.
  """

  sequences: tuple[slice, slice]
  infosets: tuple[slice, slice]
  trees: tuple[Tree, Tree]
  entries: tuple[Int64s, Int64s]
  payoff: Payoff
  left_out: tuple[Uint64s, Uint64s] = (_NO_GROUPS, _NO_GROUPS)

  def own_length(self, player: int) -> int:
    """Returns how many sequences of a player are in this part itself."""
    own = self.sequences[player]
    return int(own.stop - own.start)

  def length(self, player: int) -> int:
    """Returns how many sequences of a player are numbered here, those of the trunk included."""
    return self.own_length(player) + len(self.entries[player])


@dataclasses.dataclass(frozen=True, eq=False)
class Shards:
  """Processes that go through the subtrees. Its pickle is None, since they belong to this process.

  Attributes:
    executors: one for each shard, with a single process.
    game: the game, for the processes, pickled.
    barrier_every: after how many updates of a player they hand over what they remember, if nobody asks before.
  """

  executors: Sequence[concurrent.futures.Executor]
  game: bytes
  barrier_every: int

  def __reduce__(self) -> Any:
    """Pickles as None."""
    return type(None), ()


@dataclasses.dataclass(frozen=True, eq=False)
class Partition:
  """A game cut into parts, and how solvers are to go through them.

  Attributes:
    parts: the trunk first.
    num_threads: how many subtrees solvers go through at once.
    shards: who else goes through subtrees; None if solvers do so themselves.
  """

  parts: list[Part]
  num_threads: int
  shards: Shards | None = None

  def forced(self) -> Iterator[tuple[slice, Int64s]]:
    """Yields the sequences that parts leave out, group by group, and what their owners have chosen last before each."""
    for part in self.parts:
      for player, own in enumerate(part.sequences):
        if not len(part.left_out[player]):
          continue
        above = self.parts[0].sequences[player].start + part.entries[player]
        numbers = np.concatenate([np.arange(own.start, own.stop), above])
        for first, _, count, _, infoset, _ in part.left_out[player].astype(np.int64).tolist():
          chosen = part.trees[player].parent[infoset : infoset + count]
          yield slice(own.start + first, own.start + first + count), numbers[chosen]


class Workspace:
  """What one thread works on: arrays long enough for any of some parts, one per player.

  Attributes:
    sequence_form: reach probabilities.
    utility: utilities, and those that are predicted.
    scratch: the block kernels'.
  """

  def __init__(self, parts: Sequence[Part], predicts: bool, dtype: npt.DTypeLike) -> None:
    """Allocates the arrays."""
    zeros = functools.partial(aligned_zeros, dtype=dtype)
    # Kernels may read and write whole vectors.
    lengths = [MOST_LANES + max(part.length(player) for part in parts) for player in PLAYERS]
    self.sequence_form = [zeros(length) for length in lengths]
    self.utility = [(zeros(length), zeros(length if predicts else 0)) for length in lengths]
    self.scratch = new_scratch(dtype)


class PartWalk:
  """Goes through the parts of a game: the subtrees in any order, several at once, then the trunk.

  Attributes:
    parts: of the game.
    trunk: the workspace of part 0.
    workspaces: of the threads that go through the subtrees.
    kept: by part and player, what backward passes have left at the sequences of the trunk above it: the arrays of
      utilities and predictions.
  """

  def __init__(
    self, partition: Partition, *, predicts: bool = False, dtype: npt.DTypeLike = np.float64
  ) -> None:
    """Allocates workspaces, with room for predicted utilities if there are any."""
    self.parts = partition.parts
    self.trunk = Workspace(self.parts[:1], predicts, dtype)
    self.workspaces = [
      Workspace(self.parts[1:], predicts, dtype) for _ in range(partition.num_threads)
    ]
    self.kept: list[list[tuple[AnyFloats, AnyFloats]]] = [
      [
        (np.zeros(len(entries), dtype), np.zeros(len(entries) if predicts else 0, dtype))
        for entries in part.entries
      ]
      for part in self.parts
    ]

  def for_each_subtree(self, work: Callable[[int, Workspace], None]) -> None:
    """Calls `work` with the number of each subtree and a workspace."""
    # Each thread takes the next subtree when it is done with one; what it leaves does not depend on who took it.
    numbers = iter(range(1, len(self.parts)))

    def share(workspace: Workspace) -> None:
      for number in numbers:
        work(number, workspace)

    if len(self.workspaces) == 1:
      share(self.workspaces[0])
      return
    with concurrent.futures.ThreadPoolExecutor(len(self.workspaces)) as threads:
      list(threads.map(share, self.workspaces))

  def enter(self, number: int, player: int, workspace: Workspace) -> None:
    """Copies the reach probabilities of the trunk that a part begins with: 1 in the trunk itself."""
    part, sequence_form = self.parts[number], workspace.sequence_form[player]
    if number == 0:
      sequence_form[0] = 1.0
      return
    begin, end = part.own_length(player), part.length(player)
    sequence_form[begin:end] = self.trunk.sequence_form[player][part.entries[player]]

  def load(
    self,
    number: int,
    workspace: Workspace,
    sequence_form: AnyFloats,
    factors: Sequence[float] = (1.0, 1.0),
  ) -> None:
    """Takes over a sequence form of the whole game, times a number for each player, in a part."""
    part = self.parts[number]
    for player, own in enumerate(part.sequences):
      reach = workspace.sequence_form[player][: part.own_length(player)]
      np.multiply(sequence_form[own], factors[player], out=reach, dtype=np.float64)
      if number:
        self.enter(number, player, workspace)

  def gradient(self, number: int, player: int, workspace: Workspace) -> None:
    """Computes a player's gradient in a part."""
    opponent = workspace.sequence_form[1 - player]
    self.parts[number].payoff.gradient_into(player, opponent, workspace.utility[player][0])

  def keep(self, number: int, player: int, workspace: Workspace) -> None:
    """Notes what a subtree's backward passes have left for the trunk."""
    part = self.parts[number]
    begin, end = part.own_length(player), part.length(player)
    for kept, swept in zip(self.kept[number][player], workspace.utility[player], strict=True):
      if len(swept):
        kept[:] = swept[begin:end]

  def add_kept(self, player: int) -> None:
    """Adds what all subtrees have left to the trunk's utilities."""
    for line, utility in enumerate(self.trunk.utility[player]):
      if len(utility):
        for number in range(1, len(self.parts)):
          utility[self.parts[number].entries[player]] += self.kept[number][player][line]
