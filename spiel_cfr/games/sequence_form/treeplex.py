"""Treeplexes: one player's infosets and sequences, numbered in the layout that block kernels read.

A sequence is the list of a player's own actions on the way to a point in the game. It is identified by its last action:
an action of an infoset, or none for the empty sequence. Each infoset has one parent, its owner's last sequence before
it (perfect recall). See von Stengel, "Efficient Computation of Behavior Strategies" (1996); "treeplex" is from Hoda,
Gilpin, Peña and Sandholm (2010).

The *depth* of an infoset is the number of its owner's infosets above it. A *group* is all infosets of a player with the
same depth and the same number of actions. A *row* is neighboring sequences of one action, at several infosets. A group
of N infosets with m actions stores its sequences as m rows of N: `[group][action][infoset]`. A kernel thus works on
whole rows instead of single infosets. The rows of groups are padded to whole vectors. docs/arrays.md has a table of the
numbers of Kuhn poker.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import (
  LINE,
  Int32s,
  Int64s,
  Integers,
  Uint32s,
  Uint64s,
  concatenated_ranges,
  pieces,
  taken,
)

# Columns of `Treeplex.groups`.
FIRST_SEQUENCE, STRIDE, COUNT, ACTIONS, FIRST_INFOSET, DEPTH = range(6)
COLUMNS = 6


class Treeplex:
  """The sequences and infosets of one player.

  The sequences of all players have different numbers, and so have their infosets. A solver's state is therefore one
  flat array for the whole game. Numbers without a sequence are padding: up to a whole vector after each row, and at
  least one number at the end.

  Attributes:
    root: int. The empty sequence, the first of the player's sequences.
    end: int. One past the last of the player's sequences and their padding.
    first_infoset: int. The first of the player's infosets, in the numbering of all players.
    groups: uint64 (groups, 6). The groups, parents before children. Columns: `FIRST_SEQUENCE`, the sequence of action 0
      of the first infoset; `STRIDE`, the distance from one action's row to the next; `COUNT`, the number of infosets;
      `ACTIONS`, the number of actions of each infoset; `FIRST_INFOSET`, the first infoset; `DEPTH`, the depth.
  """

  def __init__(
    self,
    root: int,
    end: int,
    first_infoset: int,
    groups: Uint64s,
    parent: Uint32s | Callable[[], Uint32s],
  ) -> None:
    """Takes the attributes; `parent` may be a function, which is called when the parents are first read."""
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
    """Number of the player's sequences, the empty sequence included, without padding."""
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

  @property
  def first_sequences(self) -> Int64s:
    """The sequence of action 0 of each infoset, in layout order."""
    groups = self.groups.astype(np.int64)
    return concatenated_ranges(groups[:, FIRST_SEQUENCE], groups[:, COUNT])

  @functools.cached_property
  def last_choices(self) -> Uint32s:
    """The player's last choice on the way to each sequence, uint32 (end - root,).

    A sequence that ends in a choice is its own last choice. The only action of an infoset is not a choice: its last
    choice is that of the sequence above, or the empty sequence.
    """
    result = np.arange(self.root, self.end, dtype=np.uint32)
    for sequences, infosets in self.infoset_groups():
      if len(sequences) == 1:
        result[sequences[0] - self.root] = result[self.parent[infosets] - self.root]
    return result

  def sequences_at(self, position: Uint32s) -> Int64s:
    """Returns the sequences of the actions of some infosets, end to end.

    Args:
      position: the index of each infoset in layout order, counted from the player's first infoset.
    """
    groups, num_actions = self.groups.astype(np.int64), self.infoset_actions[position]
    stride = np.repeat(groups[:, STRIDE], groups[:, COUNT])[position]
    action = concatenated_ranges(np.zeros_like(num_actions), num_actions)
    first = np.repeat(self.first_sequences[position], num_actions)
    return first + action * np.repeat(stride, num_actions)

  def infoset_groups(self) -> Iterator[tuple[Int64s, slice]]:
    """Yields each group's sequences, shape (actions, infosets), and its slice of the player's infosets."""
    for group in self.groups.astype(np.int64):
      start = int(group[FIRST_INFOSET]) - self.first_infoset
      yield group_sequences(group), slice(start, start + int(group[COUNT]))


def group_sequences(group: Int64s) -> Int64s:
  """Returns the sequences of a group, a line of `Treeplex.groups`; shape (actions, infosets)."""
  first, stride, count, actions, _, _ = group.tolist()
  return np.asarray(first + stride * np.arange(actions)[:, None] + np.arange(count))


class Placement(NamedTuple):
  """A treeplex, and the conversion from the order of discovery to its layout.

  Attributes:
    treeplex: Treeplex. The treeplex.
    sequences: uint32 (sequences,). The number in the layout of each sequence, in the order of discovery.
    position: uint32 (infosets,). The index in layout order of each infoset, in the order of discovery.
  """

  treeplex: Treeplex
  sequences: Uint32s
  position: Uint32s


def build_treeplexes(
  parents: Iterable[Integers],
  num_actions: Iterable[Integers],
  *,
  states: Sequence[Int64s] | None = None,
  ranks: Sequence[Uint32s] | None = None,
) -> list[Placement]:
  """Lays out each player's infosets, which are given in order of discovery, parents first.

  Args:
    parents: for each player, integers (infosets,). The sequence above each infoset. A player's sequences are numbered
      in order of discovery: 0 is the empty sequence, then come the actions of infoset 0, of infoset 1 and so on.
    num_actions: for each player, integers (infosets,), at least 1. The number of actions of each infoset.
    states: for each player, int64 (infosets,). The public state of each infoset. Infosets of one group and one public
      state become neighbors. By default, public states are all different.
    ranks: for each player, uint32 (infosets,). The order of the infosets of a group if it is known, such as
      `Placement.position`; it replaces `states`.
  """
  result: list[Placement] = []
  root = first_infoset = 0
  for player, (of_player, counts) in enumerate(zip(parents, num_actions, strict=True)):
    of_states, of_ranks = states[player] if states else None, ranks[player] if ranks else None
    result.append(_build_treeplex(of_player, counts, root, first_infoset, of_states, of_ranks))
    root, first_infoset = result[-1].treeplex.end, first_infoset + len(counts)
  return result


def _build_treeplex(
  parents: Integers,
  num_actions: Integers,
  root: int,
  first_infoset: int,
  states: Int64s | None,
  ranks: Uint32s | None,
) -> Placement:
  """Lays out one player's infosets; see `build_treeplexes`.

  The player's empty sequence and its first infoset get the numbers `root` and `first_infoset`.
  """
  num_infosets = len(parents)
  # The sequence of each infoset's action 0 in the order of discovery; `sequences` converts this order to the layout.
  first_action = np.cumsum(num_actions, dtype=np.int64)
  first_action -= num_actions
  first_action += 1
  # The empty sequence belongs to no infoset.
  infoset_of_sequence = np.append(
    np.int32(-1), np.repeat(np.arange(num_infosets, dtype=np.int32), num_actions)
  )
  sequences = np.zeros(len(infoset_of_sequence), np.uint32)
  sequences[0] = root
  depth = _narrow(infoset_depths(taken(infoset_of_sequence, parents)))
  num_actions = _narrow(num_actions)
  del infoset_of_sequence

  position, layout_parent = np.zeros((2, num_infosets), np.uint32)
  groups: list[tuple[int, int, int, int, int, int]] = []
  end, num_laid_out = root + 1, 0
  for level in range(1 + int(depth.max(initial=0))):
    of_level = np.flatnonzero(depth == level)
    if ranks is None:
      of_state = of_level if states is None else states[of_level]
      of_level = of_level[_state_order(sequences[parents[of_level]], of_state)]
    else:
      of_level = of_level[np.argsort(ranks[of_level], kind="stable")]
    for actions in np.unique(num_actions[of_level]).tolist():
      group = of_level[num_actions[of_level] == actions]
      count, length = len(group), -(-len(group) // LINE) * LINE
      first = -(-end // LINE) * LINE
      for piece in pieces(count):
        infosets, column = group[piece], np.arange(piece.start, piece.stop)
        position[infosets] = num_laid_out + column
        layout_parent[num_laid_out + column] = sequences[parents[infosets]]
        action_0 = first_action[infosets]
        for action in range(actions):
          sequences[action_0 + action] = first + action * length + column
      groups.append((first, length, count, actions, first_infoset + num_laid_out, level))
      end = first + actions * length
      num_laid_out += count
  treeplex = Treeplex(
    root=root,
    # Vectors may reach beyond the last sequence, but not into the next treeplex.
    end=(1 - -end // LINE) * LINE,
    first_infoset=first_infoset,
    groups=np.array(groups, np.uint64).reshape(-1, COLUMNS),
    parent=layout_parent,
  )
  return Placement(treeplex, sequences, position)


def _state_order(parents: Uint32s, states: Int64s) -> Int64s:
  """Returns the order of infosets that makes those of one public state neighbors.

  Public states are in the order of their first parents, and infosets of a public state in the order of their parents.
  Forward and backward passes then read and write parents almost in order.
  """
  _, state = np.unique(states, return_inverse=True)
  first_parent = np.full(len(states), np.iinfo(np.int64).max)
  np.minimum.at(first_parent, state, parents)
  return np.lexsort((parents, state, first_parent[state]))


def infoset_depths(above: Int32s) -> Int32s:
  """Returns the number of a player's infosets above each of its infosets.

  Args:
    above: int32 (infosets,). The player's nearest infoset above each infoset; -1 if there is none.
  """
  depths = np.zeros(len(above), np.int32)
  for piece in pieces(len(above)):
    depths_of_piece, ancestors = depths[piece], above[piece].copy()
    # The depths of all infosets before the piece are known: climb until an ancestor is one of them.
    climbing = np.flatnonzero(ancestors >= piece.start)
    while len(climbing):
      depths_of_piece[climbing] += 1
      ancestors[climbing] = above[ancestors[climbing]]
      climbing = climbing[ancestors[climbing] >= piece.start]
    depths_of_piece += np.where(ancestors >= 0, 1 + depths[ancestors], 0)
  return depths


def _narrow(numbers: Integers) -> Integers:
  """Returns numbers of at least 0 in the smallest type; short numbers are sorted several times as fast."""
  return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
