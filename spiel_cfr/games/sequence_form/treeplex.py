"""Treeplexes: one player's infosets and sequences, laid out for block kernels.

A sequence is the list of a player's own actions on the way to a point of the game. It is named by its last action: an
action of an infoset, or the empty sequence. Each infoset has one parent, its owner's last sequence before it (perfect
recall). See von Stengel, "Efficient Computation of Behavior Strategies" (1996); "treeplex" is from Hoda, Gilpin, Peña
and Sandholm (2010).

A *group* is all infosets of the player with the same depth, the number of the player's infosets above, and the same
number of actions. A group of N infosets with m actions stores its sequences as m rows of N: `[group][action][infoset]`.
Operations on an infoset thus become operations on whole rows. Rows are padded to whole vectors. docs/arrays.md draws
the numbers of Kuhn poker.
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

  The players share one numbering of sequences and one of infosets, so that a solver's state is one flat array for the
  whole game. Sequences include padding, which belongs to no infoset: up to a whole vector after each row, and at least
  one more at the end.

  Attributes:
    root: int. The empty sequence, the first of the player's sequences.
    end: int. One past the last of the player's sequences.
    first_infoset: int. The first of the player's infosets.
    groups: uint64 (groups, 6), parents before children. Columns: `FIRST_SEQUENCE` (of action 0 of the first infoset),
      `STRIDE` (from one action's row to the next), `COUNT` (of infosets), `ACTIONS` (of each infoset), `FIRST_INFOSET`,
      `DEPTH` (infosets of the player above each).
  """

  def __init__(
    self,
    root: int,
    end: int,
    first_infoset: int,
    groups: Uint64s,
    parent: Uint32s | Callable[[], Uint32s],
  ) -> None:
    """Takes the attributes; `parent` may be a function that computes it when first asked for."""
    self.root = root
    self.end = end
    self.first_infoset = first_infoset
    self.groups = groups
    self._parent = parent

  @functools.cached_property
  def parent(self) -> Uint32s:
    """The sequence above each infoset, uint32 (infosets,), in layout order."""
    return self._parent() if callable(self._parent) else self._parent

  @property
  def num_infosets(self) -> int:
    """Number of the player's infosets."""
    return int(self.groups[:, COUNT].sum())

  @property
  def num_sequences(self) -> int:
    """Number of the player's sequences: the empty one included, padding not."""
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
    """The player's last choice on the way to each sequence, shape (end - root,).

    The only action of an infoset is no choice: the choice before it, or the empty sequence, stands for it. All other
    sequences stand for themselves.
    """
    result = np.arange(self.root, self.end, dtype=np.uint32)
    for sequences, infosets in self.infoset_groups():
      if len(sequences) == 1:
        result[sequences[0] - self.root] = result[self.parent[infosets] - self.root]
    return result

  def infoset_groups(self) -> Iterator[tuple[Int64s, slice]]:
    """Yields each group's sequences, shape (actions, infosets), and its slice of the player's infosets."""
    for first, stride, count, actions, infoset, _ in self.groups.astype(np.int64).tolist():
      sequences = first + stride * np.arange(actions)[:, None] + np.arange(count)
      start = infoset - self.first_infoset
      yield sequences, slice(start, start + count)


class Placement(NamedTuple):
  """A treeplex, and the translation from the order of discovery to its layout.

  Attributes:
    treeplex: Treeplex. The treeplex.
    sequences: uint32 (sequences,). The layout's number of each sequence, in the order of `build_treeplex`'s arguments.
    position: uint32 (infosets,). The place of each infoset in the layout.
    first_sequence: uint32 (infosets,). The sequence of each infoset's action 0.
    stride: uint32 (infosets,). The distance from each action's sequence to the next action's.
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
    parents: int64 (infosets,), in order of discovery, parents first. The sequence above each infoset. Sequences are
      numbered in order of discovery too: 0 is the empty one, then come the actions of infoset 0, of infoset 1 and so
      on.
    num_actions: int64 (infosets,), each at least 1. The number of actions of each infoset.
    root: the number of the empty sequence in the numbering of all players.
    first_infoset: the number of the first infoset in the numbering of all players.
    states: int64 (infosets,). The public state of each infoset: infosets of one group and one public state become
      neighbours. By default, each infoset has its own.
    ranks: uint32 (infosets,). The order of the infosets of a group if it is known, such as `Placement.position`.
  """
  num_infosets = len(parents)
  if states is None:
    states = np.arange(num_infosets)
  starts = 1 + np.cumsum(num_actions) - num_actions
  infoset_of_action = np.repeat(np.arange(num_infosets), num_actions)
  placed = np.zeros(1 + len(infoset_of_action), np.int64)
  placed[0] = root
  depth = infoset_depths(np.append(-1, infoset_of_action)[parents])

  position = np.zeros(num_infosets, np.int64)
  first_sequence = np.zeros(num_infosets, np.int64)
  stride = np.zeros(num_infosets, np.int64)
  layout_parent = np.zeros(num_infosets, np.uint32)
  groups: list[tuple[int, int, int, int, int, int]] = []
  end, laid_out = root + 1, 0
  by_depth = np.argsort(depth, kind="stable")
  for level in np.split(by_depth, np.flatnonzero(np.diff(depth[by_depth])) + 1):
    keys = _state_order(placed[parents[level]], states[level]) if ranks is None else (ranks[level],)
    level = level[np.lexsort((*keys, num_actions[level]))]
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
    # Vectors may reach beyond the last sequence, but not into the next treeplex.
    end=(1 - -end // LINE) * LINE,
    first_infoset=first_infoset,
    groups=np.array(groups, np.uint64).reshape(-1, COLUMNS),
    parent=layout_parent,
  )
  return Placement(
    treeplex, *(array.astype(np.uint32) for array in (placed, position, first_sequence, stride))
  )


def _state_order(parents: Int64s, states: Int64s) -> tuple[Int64s, Int64s, Int64s]:
  """Returns sort keys, the last one first, that make infosets of one public state neighbours.

  Public states are in the order of their first parents, and their infosets in the order of their parents. Both passes
  then read and write parents almost in order.
  """
  _, state = np.unique(states, return_inverse=True)
  first_parent = np.full(len(states), np.iinfo(np.int64).max)
  np.minimum.at(first_parent, state, parents)
  return parents, state, first_parent[state]


def infoset_depths(above: Int64s) -> Int64s:
  """Returns the number of a player's infosets above each of its infosets, given the nearest one above, or -1."""
  depths = np.zeros(len(above), np.int64)
  some = np.flatnonzero(above >= 0)
  ancestors = above[some]
  while len(some):
    depths[some] += 1
    ancestors = above[ancestors]
    goes_on = ancestors >= 0
    some, ancestors = some[goes_on], ancestors[goes_on]
  return depths
