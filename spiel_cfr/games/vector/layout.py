"""`Layout`: the numbers of the sequences and infosets of a public tree.

A *row* is the sequences of one action at one node, one sequence for each infoset of the node. A *part* is the trunk of
the tree or a subtree (`compiled.trunk_and_subtrees`); solvers may visit parts one by one. A *group* is all nodes of one
part and one player that have equally many actions, and equally many nodes of that player above them. A player's
sequences are in the order `[part][group][action][node][infoset]`. The rows of one action, at all nodes of a group, are
padded together to a multiple of `MOST_LANES` = 16 sequences. Infosets are in the order `[part][group][node][infoset]`,
without padding.

In Kuhn poker, player 0's empty sequence is 0. At the root, with a jack, queen or king, its sequences are 16 to 18 to
pass and 32 to 34 to bet. After its pass and player 1's bet they are 48 to 50 and 64 to 66.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import (
  Float64s,
  Int32s,
  Int64s,
  Integers,
  Uint64s,
  concatenated_ranges,
  range_starts,
)
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.games.sequence_form.treeplex import COLUMNS
from spiel_cfr.games.vector.public_tree import PLAYERS, PublicTree

# Largest number of sequences of a part, so that its arrays stay in a cache. `FEWEST_PARTS` makes parts smaller.
PART_SEQUENCES = 500_000
FEWEST_PARTS = 8


class PartNumbers(NamedTuple):
  """A cut of a public tree into parts. Part 0 is the trunk, which has the root; the others are below it.

  Attributes:
    nodes: int32 (nodes,). The part of each node.
    terminals: int32 (terminals,). The part of each terminal.
  """

  nodes: Int32s
  terminals: Int32s


class Layout:
  """The numbering of sequences and infosets of both players.

  Attributes:
    tree: PublicTree. The public tree.
    part_of: PartNumbers. The part of each node and terminal.
    num_parts: int. The number of parts.
    first: uint32 (nodes,). The first sequence of the row of action 0 at each node.
    stride: uint32 (nodes,). The distance from each action's row to the next action's.
    infoset: uint32 (nodes,). The first infoset of each node.
    roots: list of int. Each player's empty sequence, then one past the last sequence.
    groups: for each player, uint64 (groups, 6). The columns of `Treeplex.groups`, part by part.
    group_ends: for each player, int64 (parts,). One past the last group of each part.
    first_sequences: int64 (players, parts + 1). The first sequence of each part, then one past the last. The trunk's
      first sequence is the empty sequence.
    first_infosets: int64 (players, parts + 1). The first infoset of each part, then one past the last.
  """

  def __init__(self, tree: PublicTree, part_of: PartNumbers | None = None) -> None:
    """Numbers both players' sequences and infosets; without `part_of`, in one part."""
    self.tree = tree
    self.part_of = part_of or PartNumbers(
      np.zeros(tree.num_nodes, np.int32), np.zeros(tree.num_terminals, np.int32)
    )
    self.num_parts = 1 + max(int(part_numbers.max(initial=0)) for part_numbers in self.part_of)
    self.first, self.stride, self.infoset = np.zeros((3, tree.num_nodes), np.uint32)
    self.first_sequences, self.first_infosets = np.zeros((2, 2, self.num_parts + 1), np.int64)
    self.roots = [0]
    self.groups: list[Uint64s] = []
    self.group_ends: list[Int64s] = []
    num_infosets = 0
    for player in PLAYERS:
      num_infosets = self._lay_out(player, num_infosets)

  def row(self, player: int, edges: Integers) -> Int64s:
    """Returns the first sequence of the row of each of a player's edges; for `NO_EDGE`, the empty sequence."""
    node = self.tree.node_of_edge[edges]
    index = edges - self.tree.first_edge[node]
    return np.where(edges < 0, self.roots[player], self.first[node] + index * self.stride[node])

  def row_kind(self, edges: Integers) -> Int64s:
    """Returns the kind of the node above each edge, int64 (edges,); -1 for `NO_EDGE`."""
    return np.where(edges < 0, -1, self.tree.kind[self.tree.node_of_edge[edges]])

  def row_width(self, player: int, edges: Integers) -> Int64s:
    """Returns the number of sequences in the row of each of a player's edges; 1 for `NO_EDGE`."""
    return np.where(edges < 0, 1, self.tree.width[player, self.row_kind(edges)])

  def row_part(self, edges: Integers) -> Int64s:
    """Returns the part of the row of each edge; the trunk for `NO_EDGE`."""
    return np.where(edges < 0, 0, self.part_of.nodes[self.tree.node_of_edge[edges]])

  def sequences(self, node: int) -> Int64s:
    """Returns the sequences of the player who moves at a node, int64 (actions, types of the player)."""
    player, kind = int(self.tree.player[node]), int(self.tree.kind[node])
    offsets = self.tree.infoset_offsets(player, kind, kind)
    return np.asarray(self.row_starts(node)[:, None] + offsets)

  def row_starts(self, node: int) -> Int64s:
    """Returns the first sequence of the row of each action at a node, int64 (actions,)."""
    return np.asarray(
      int(self.first[node]) + int(self.stride[node]) * np.arange(self.tree.num_actions[node])
    )

  def sequences_above(self, player: int, child: int) -> Int64s:
    """Returns a player's last sequence for each type at a node, or at terminal k for -1 - k; int64 (types,)."""
    tree = self.tree
    if child >= 0:
      return self.sequences_before(player, tree.above.nodes[player, child], tree.kind[child])
    terminal = -1 - child
    return self.sequences_before(
      player, tree.above.terminals[player, terminal], tree.terminal_kind[terminal]
    )

  def sequences_before(self, player: int, edge: Any, kind: Any) -> Int64s:
    """Returns a player's sequence at an edge for each type of a later kind, int64 (types,)."""
    offsets = self.tree.infoset_offsets(player, int(self.row_kind(edge)), int(kind))
    return np.asarray(self.row(player, edge) + offsets)

  def at_infosets(self, player: int, of_types: Sequence[Float64s]) -> Float64s:
    """Sums numbers over the types of each infoset of a player; returns float64 (infosets,), in layout order.

    Args:
      player: the player.
      of_types: for each kind, float64 (types,). A number for each of the player's types at nodes of the kind.
    """
    tree = self.tree
    kinds = zip(tree.classes, of_types, strict=True)
    sums: list[Float64s] = [
      np.bincount(classes[player], numbers).astype(np.float64) for classes, numbers in kinds
    ]
    lengths = np.array([len(kind_sums) for kind_sums in sums])
    starts = range_starts(lengths)
    nodes = np.flatnonzero(tree.player == player)
    kind = tree.kind[nodes[np.argsort(self.infoset[nodes])]]
    return np.concatenate(sums)[concatenated_ranges(starts[kind], lengths[kind])]

  def cells(self, none: int) -> Int64s:
    """Returns the sequence of each edge for each type of the player who moves there; int64 (edges, types).

    Elements of chance's edges and of impossible types are `none`.
    """
    tree, node = self.tree, self.tree.node_of_edge
    result = np.full((len(tree.child), max(tree.num_types)), none)
    cases = np.stack([tree.player[node].astype(np.int64), tree.kind[node]])
    cases, case = np.unique(cases, axis=1, return_inverse=True)
    order = np.argsort(case.reshape(-1), kind="stable")
    edges_of_case = np.split(order, np.cumsum(np.bincount(case.reshape(-1)))[:-1])
    for (player, kind), edges in zip(cases.T.tolist(), edges_of_case, strict=True):
      if player >= 0:
        offsets = tree.infoset_offsets(player, kind, kind)
        result[np.ix_(edges, tree.types[kind][player])] = self.row(player, edges)[:, None] + offsets
    return result

  def _depth(self, player: int, nodes: Int64s) -> Int64s:
    """Returns the number of a player's nodes above each of `nodes`."""
    tree, result = self.tree, np.zeros(len(nodes), np.int64)
    while (has_above := (edges := tree.above.nodes[player, nodes]) >= 0).any():
      result += has_above
      nodes = np.where(has_above, tree.node_of_edge[edges], nodes)
    return result

  def _lay_out(self, player: int, num_infosets: int) -> int:
    """Numbers a player's sequences and infosets; both follow those of the players before.

    Args:
      player: the player.
      num_infosets: the number of infosets of the players before.

    Returns:
      The number of infosets of all players so far.
    """
    tree = self.tree
    nodes = np.flatnonzero(tree.player == player)
    width = tree.width[player, tree.kind[nodes]]
    depth, actions = self._depth(player, nodes), tree.num_actions[nodes]
    keys = np.stack([self.part_of.nodes[nodes], depth, actions])
    group_keys, group = np.unique(keys, axis=1, return_inverse=True)
    group = group.reshape(-1)
    group_parts, group_depths, group_actions = group_keys
    counts = np.bincount(group, width, len(group_parts)).astype(np.int64)
    strides = -(-counts // MOST_LANES) * MOST_LANES
    lengths = strides * group_actions
    begin = -(-(self.roots[-1] + 1) // MOST_LANES) * MOST_LANES
    begins = begin + range_starts(lengths)
    infosets = num_infosets + range_starts(counts)
    for level in range(int(depth.max(initial=-1)) + 1):
      # Depth by depth, since nodes of a group are in the order of the rows above them.
      at = np.flatnonzero(depth == level)
      rows_above = self.row(player, tree.above.nodes[player, nodes[at]])
      at = at[np.lexsort((rows_above, group[at]))]
      self._place(nodes[at], width[at], group[at], begins, strides, infosets)
    columns = begins, strides, counts, group_actions, infosets, group_depths
    self.groups.append(np.stack(columns, axis=1).astype(np.uint64).reshape(-1, COLUMNS))
    ends = np.searchsorted(group_parts, np.arange(self.num_parts), side="right")
    self.group_ends.append(ends)
    # Kernels read and write whole vectors, so another player's sequences must not follow immediately.
    end = begin + int(lengths.sum())
    self.first_sequences[player] = np.append(begins, end)[np.append(0, ends)]
    self.first_sequences[player, 0] = self.roots[player]
    num_infosets += int(counts.sum())
    self.first_infosets[player] = np.append(infosets, num_infosets)[np.append(0, ends)]
    self.roots.append(end + MOST_LANES)
    return num_infosets

  def _place(
    self,
    nodes: Int64s,
    width: Int64s,
    group: Int64s,
    begins: Int64s,
    strides: Int64s,
    infosets: Int64s,
  ) -> None:
    """Sets `first`, `stride` and `infoset` of all nodes of some groups.

    Args:
      nodes: int64 (nodes,). The nodes, group by group, in the order of their rows.
      width: int64 (nodes,). The number of infosets of each node.
      group: int64 (nodes,). The group of each node.
      begins: int64 (groups,). The first sequence of each group.
      strides: int64 (groups,). The distance from one action's rows to the next action's.
      infosets: int64 (groups,). The first infoset of each group.
    """
    before = range_starts(width)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    # The number of infosets of earlier nodes of the group.
    index = before - np.repeat(before[starts], np.diff(np.append(starts, len(nodes))))
    self.first[nodes] = begins[group] + index
    self.stride[nodes] = strides[group]
    self.infoset[nodes] = infosets[group] + index


def lay_out(tree: PublicTree, in_parts: bool) -> Layout:
  """Returns the layout of a public tree; `in_parts` if solvers visit its subtrees one by one."""
  most = max(1, min(PART_SEQUENCES, int(tree.num_sequences.sum()) // FEWEST_PARTS))
  return Layout(tree, public_subtrees(tree, most) if in_parts else None)


def public_subtrees(tree: PublicTree, most: int) -> PartNumbers:
  """Returns a cut: the largest subgames of at most `most` sequences, and neighbors joined to subtrees of that size."""
  size = tree.num_sequences
  parent, levels = tree.node_of_edge[tree.edge_above], tree.levels()
  for level in reversed(levels[1:]):
    np.add.at(size, parent[level], size[level])
  is_small = size <= most
  is_root = is_small & (tree.edge_above >= 0)
  is_root[is_root] = ~is_small[parent[is_root]]
  roots = np.flatnonzero(is_root)
  part = range_starts(size[roots]) // most
  result = np.zeros(tree.num_nodes, np.int32)
  result[roots] = 1 + np.unique(part, return_inverse=True)[1]
  for level in levels[1:]:
    result[level] = np.maximum(result[level], result[parent[level]])
  return PartNumbers(result, result[tree.node_of_terminal])
