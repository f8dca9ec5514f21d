"""One player's decision space in sequence form, laid out for block kernels.

A sequence is a way that a player can have acted: an infoset and an action there, or the empty sequence. Each infoset
has one parent, the last sequence of its owner before it (perfect recall). See von Stengel, "Efficient Computation of
Behavior Strategies" (1996); "treeplex" is from Hoda, Gilpin, Peña and Sandholm (2010).

Infosets are grouped by how many infosets of their owner lie above them and by their number of actions. A group of N
infosets with m actions stores its sequences as m rows of N: `[group][action][infoset]`. Whatever is done at one
infoset is then done to whole rows at once. Rows are padded to whole vectors.
"""

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import LINE, Int64s, Uint32s, Uint64s

# Columns of `Treeplex.groups`.
FIRST_SEQUENCE, STRIDE, COUNT, ACTIONS, FIRST_INFOSET, DEPTH = range(6)
COLUMNS = 6


class Treeplex:
  """The sequences and infosets of one player.

  All players share one numbering of sequences and one of infosets, so that a solver's state is one flat array for the
  whole game. Sequences include padding, which belongs to no infoset: up to a whole vector after each row, and at least
  one more at the end.

  Attributes:
    root: the empty sequence, the first of this player's sequences.
    end: one past the last of this player's sequences.
    first_infoset: the first of this player's infosets.
    groups: uint64 of shape (groups, 6), parents before children, columns `FIRST_SEQUENCE` (of action 0 of the group's
      first infoset), `STRIDE` (from one action's row to the next), `COUNT` (infosets), `ACTIONS` (of each infoset),
      `FIRST_INFOSET` and `DEPTH` (infosets of the player above each).
  """

  def __init__(
    self,
    root: int,
    end: int,
    first_infoset: int,
    groups: Uint64s,
    parent: Uint32s | Callable[[], Uint32s],
  ) -> None:
    """Takes the attributes; `parent` may be a function that makes it when it is first asked for."""
    self.root = root
    self.end = end
    self.first_infoset = first_infoset
    self.groups = groups
    self._parent = parent

  @functools.cached_property
  def parent(self) -> Uint32s:
    """The sequence above each infoset: uint32 of shape (infosets,), in layout order."""
    return self._parent() if callable(self._parent) else self._parent

  @property
  def num_infosets(self) -> int:
    """How many infosets the player has."""
    return int(self.groups[:, COUNT].sum())

  @property
  def num_sequences(self) -> int:
    """How many sequences the player has, the empty one included, padding not."""
    return 1 + int((self.groups[:, COUNT] * self.groups[:, ACTIONS]).sum())

  @property
  def depth(self) -> int:
    """The largest number of the player's infosets on one path."""
    return 1 + int(self.groups[:, DEPTH].max()) if len(self.groups) else 0

  @property
  def infoset_actions(self) -> Int64s:
    """Number of actions of each infoset, in layout order."""
    groups = self.groups.astype(np.int64)
    result: Int64s = np.repeat(groups[:, ACTIONS], groups[:, COUNT])
    return result

  @functools.cached_property
  def last_choices(self) -> Uint32s:
    """What the player has chosen last when playing to each sequence, shape (end - root,): that itself, mostly.

    An action that is the only one is no choice; what comes before it is, or the empty sequence.
    """
    result = np.arange(self.root, self.end, dtype=np.uint32)
    for sequences, infosets in self.infoset_groups():
      if len(sequences) == 1:
        result[sequences[0] - self.root] = result[self.parent[infosets] - self.root]
    return result

  def infoset_groups(self) -> Iterator[tuple[Int64s, slice]]:
    """Yields each group's sequences, shape (actions, infosets), and its infosets within this player's."""
    for first, stride, count, actions, infoset, _ in self.groups.astype(np.int64).tolist():
      sequences = first + stride * np.arange(actions)[:, None] + np.arange(count)
      start = infoset - self.first_infoset
      yield sequences, slice(start, start + count)


class Placement(NamedTuple):
  """A treeplex, and where all that was numbered in order of discovery has gone.

  Attributes:
    treeplex: the treeplex.
    sequences: uint32 of shape (sequences,): each sequence, in the numbering of `build_treeplex`'s arguments.
    position: uint32 of shape (infosets,): each infoset's place in the layout.
    first_sequence: uint32 of shape (infosets,): the sequence of each infoset's action 0.
    stride: uint32 of shape (infosets,): from there to the sequence of the next action.
  """

  treeplex: Treeplex
  sequences: Uint32s
  position: Uint32s
  first_sequence: Uint32s
  stride: Uint32s


def build_treeplex(
  parents: Int64s,
  num_actions: Int64s,
  root: int = 0,
  first_infoset: int = 0,
  states: Int64s | None = None,
  ranks: Uint32s | None = None,
) -> Placement:
  """Lays out a player's infosets.

  Args:
    parents: shape (infosets,), in order of discovery, parents first. Sequences are numbered in that order too: 0 is
      the empty one, and infoset j's follow those of infoset j - 1.
    num_actions: shape (infosets,), each at least 1.
    root: number of the empty sequence in the numbering of all players.
    first_infoset: number of the first infoset in that of all players.
    states: shape (infosets,), the public state of each: infosets of one group and one public state are put next to
      each other. By default, each has its own.
    ranks: shape (infosets,), the order of the infosets of a group where it is known, such as `Placement.position`.
  """
  num_infosets = len(parents)
  if states is None:
    states = np.arange(num_infosets)
  starts = 1 + np.cumsum(num_actions) - num_actions
  owner = np.repeat(np.arange(num_infosets), num_actions)
  placed = np.zeros(1 + len(owner), np.int64)
  placed[0] = root
  depth = _depths(parents, owner)

  position = np.zeros(num_infosets, np.int64)
  first_sequence = np.zeros(num_infosets, np.int64)
  stride = np.zeros(num_infosets, np.int64)
  layout_parent = np.zeros(num_infosets, np.uint32)
  groups: list[tuple[int, int, int, int, int, int]] = []
  end, laid_out = root + 1, 0
  by_depth = np.argsort(depth, kind="stable")
  for level in np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1):
    # Public states in the order of their first parents, and infosets there in that of theirs: both sweeps then read
    # and write the parents more or less in order.
    parent = placed[parents[level]]
    _, state = np.unique(states[level], return_inverse=True)
    first_parent = np.full(len(level), np.iinfo(np.int64).max)
    np.minimum.at(first_parent, state, parent)
    order = (parent, state, first_parent[state]) if ranks is None else (ranks[level],)
    level = level[np.lexsort((*order, num_actions[level]))]
    for group in np.split(level, np.flatnonzero(np.diff(num_actions[level])) + 1):
      count, length = len(group), -(-len(group) // LINE) * LINE
      if not count:
        continue
      actions = int(num_actions[group[0]])
      first = -(-end // LINE) * LINE
      row = np.arange(count)
      first_sequence[group] = first + row
      stride[group] = length
      position[group] = laid_out + row
      layout_parent[laid_out : laid_out + count] = placed[parents[group]]
      for action in range(actions):
        placed[starts[group] + action] = first + action * length + row
      groups.append((first, length, count, actions, first_infoset + laid_out, int(depth[group[0]])))
      end = first + actions * length
      laid_out += count
  treeplex = Treeplex(
    root=root,
    # Vectors may go beyond the last sequence, but not into the next treeplex.
    end=(1 - -end // LINE) * LINE,
    first_infoset=first_infoset,
    groups=np.array(groups, np.uint64).reshape(-1, COLUMNS),
    parent=layout_parent,
  )
  return Placement(
    treeplex, *(array.astype(np.uint32) for array in (placed, position, first_sequence, stride))
  )


def _depths(parents: Int64s, owner: Int64s) -> Int64s:
  """Counts the player's infosets above each."""
  depths = [0] * len(parents)
  for infoset, parent in enumerate(parents.tolist()):
    if parent:
      depths[infoset] = depths[owner[parent - 1]] + 1
  return np.array(depths, np.int64)
