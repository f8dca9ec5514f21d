"""Layout of a public tree: the numbers of its sequences and infosets.

A *row* is the sequences of one action at one node, one sequence for each type (or class of types that share an
infoset). A player's sequences are ordered `[part][group][action][node][type]`. A *part* is the trunk of the tree or
some subtrees below it; solvers may visit parts one by one. A *group* is the nodes of a part with equally many actions
and equally many own moves above. The rows of all nodes of a group for one action are padded together to a multiple of
`MOST_LANES` = 16 sequences. The infosets of a node are consecutive, too.

In Kuhn poker, player 0's empty sequence is 0. At the root, with a jack, queen or king, its sequences are 16 to 18 to
pass and 32 to 34 to bet. After its pass and player 1's bet they are 48 to 50 and 64 to 66.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s, Integers, Uint64s, concatenated_ranges
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.games.sequence_form.treeplex import COLUMNS
from spiel_cfr.games.vector.public_tree import PLAYERS, PublicTree

# Largest number of sequences of a part, so that its arrays stay in a cache; and least number of parts.
PART_SEQUENCES = 500_000
FEWEST_PARTS = 8


class Cut(NamedTuple):
  """The part of each node and terminal: 0 for the trunk, which is above all others.

  Attributes:
    nodes: int32 (nodes,). The part of each node.
    terminals: int32 (terminals,). The part of each terminal.
  """

  nodes: Int32s
  terminals: Int32s


class Layout:
  """The numbering of sequences and infosets.

  Attributes:
    tree: PublicTree. The public tree.
    cut: Cut. The part of each node and terminal.
    num_parts: int. The number of parts.
    first: uint32 (nodes,). The first sequence of the first action at each node.
    stride: uint32 (nodes,). The distance from each action's first sequence to the next action's.
    infoset: uint32 (nodes,). The infoset of the first type at each node.
    roots: list of int. Each player's empty sequence, then the end of all sequences.
    groups: for each player, uint64 (groups, 6). As of `Treeplex`, part by part.
    group_ends: for each player, int64 (parts,). The end of each part's groups.
    first_sequences: int64 (players, parts + 1). The first sequence of each part, then the end. The trunk's first
      sequence is the empty sequence.
    first_infosets: int64 (players, parts + 1). The first infoset of each part.
  """

  def __init__(self, tree: PublicTree, cut: Cut | None = None) -> None:
    """Lays out both players' infosets; without a cut, in one part."""
    self.tree = tree
    self.cut = cut or Cut(
      np.zeros(tree.num_nodes, np.int32), np.zeros(tree.num_terminals, np.int32)
    )
    self.num_parts = 1 + max(int(own.max(initial=0)) for own in self.cut)
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
    """Returns the kind of the node above each edge; -1 for `NO_EDGE`."""
    return np.where(edges < 0, -1, self.tree.kind[self.tree.node_of_edge[edges]])

  def row_width(self, player: int, edges: Integers) -> Int64s:
    """Returns the number of sequences in each row."""
    return np.where(edges < 0, 1, self.tree.width[player, self.row_kind(edges)])

  def row_part(self, edges: Integers) -> Int64s:
    """Returns the part of each row."""
    return np.where(edges < 0, 0, self.cut.nodes[self.tree.node_of_edge[edges]])

  def sequences(self, node: int) -> Int64s:
    """Returns the sequences of a decision, int64 (actions, types of its player)."""
    player, kind = int(self.tree.player[node]), int(self.tree.kind[node])
    return np.asarray(self.row_starts(node)[:, None] + self.tree.infoset_places(player, kind, kind))

  def row_starts(self, node: int) -> Int64s:
    """Returns the first sequence of each action of a decision, int64 (actions,)."""
    return np.asarray(
      int(self.first[node]) + int(self.stride[node]) * np.arange(self.tree.num_actions[node])
    )

  def sequences_above(self, player: int, place: int) -> Int64s:
    """Returns a player's last sequences before a node, or before terminal k for -1 - k; int64 (types there,)."""
    tree = self.tree
    if place >= 0:
      return self.sequences_before(player, tree.above.nodes[player, place], tree.kind[place])
    terminal = -1 - place
    return self.sequences_before(
      player, tree.above.terminals[player, terminal], tree.terminal_kind[terminal]
    )

  def sequences_before(self, player: int, edge: Any, kind: Any) -> Int64s:
    """Returns a player's sequences at an edge for the types of a later kind, int64 (types,)."""
    places = self.tree.infoset_places(player, int(self.row_kind(edge)), int(kind))
    return np.asarray(self.row(player, edge) + places)

  def at_infosets(self, player: int, of_types: Sequence[Float64s]) -> Float64s:
    """Sums numbers of types over each infoset of a player, in layout order.

    Args:
      player: the player.
      of_types: for each kind, a number for each of the player's types there.
    """
    tree = self.tree
    kinds = zip(tree.classes, of_types, strict=True)
    sums: list[Float64s] = [
      np.bincount(classes[player], own).astype(np.float64) for classes, own in kinds
    ]
    lengths = np.array([len(own) for own in sums])
    starts = np.cumsum(lengths) - lengths
    nodes = np.flatnonzero(tree.player == player)
    kind = tree.kind[nodes[np.argsort(self.infoset[nodes])]]
    return np.concatenate(sums)[concatenated_ranges(starts[kind], lengths[kind])]

  def cells(self, none: int) -> Int64s:
    """Returns the sequence of each edge and type of its player, `none` if there is none; int64 (edges, types)."""
    tree, node = self.tree, self.tree.node_of_edge
    result = np.full((len(tree.child), max(tree.num_types)), none)
    cases = np.stack([tree.player[node].astype(np.int64), tree.kind[node]])
    cases, which = np.unique(cases, axis=1, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(which.reshape(-1)))[:-1])
    for (player, kind), edges in zip(cases.T.tolist(), groups, strict=True):
      if player >= 0:
        places = tree.infoset_places(player, kind, kind)
        result[np.ix_(edges, tree.types[kind][player])] = self.row(player, edges)[:, None] + places
    return result

  def _depth(self, player: int, nodes: Int64s) -> Int64s:
    """Returns the number of the player's nodes above each of its nodes."""
    tree, result = self.tree, np.zeros(len(nodes), np.int64)
    while (below := (edges := tree.above.nodes[player, nodes]) >= 0).any():
      result += below
      nodes = np.where(below, tree.node_of_edge[edges], nodes)
    return result

  def _lay_out(self, player: int, num_infosets: int) -> int:
    """Lays out a player's infosets, numbered from `num_infosets` on; returns the next free number."""
    tree = self.tree
    own = np.flatnonzero(tree.player == player)
    width = tree.width[player, tree.kind[own]]
    depth, actions, edges = (
      self._depth(player, own),
      tree.num_actions[own],
      tree.above.nodes[player, own],
    )
    shape = np.stack([self.cut.nodes[own], depth, actions])
    shapes, group = np.unique(shape, axis=1, return_inverse=True)
    group = group.reshape(-1)
    counts = np.bincount(group, width, shapes.shape[1]).astype(np.int64)
    strides = -(-counts // MOST_LANES) * MOST_LANES
    lengths = strides * shapes[2]
    begin = -(-(self.roots[-1] + 1) // MOST_LANES) * MOST_LANES
    begins = begin + np.cumsum(lengths) - lengths
    infosets = num_infosets + np.cumsum(counts) - counts
    for level in range(int(depth.max(initial=-1)) + 1):
      here = np.flatnonzero(depth == level)
      # In the order of their parents, which passes then read and write in order.
      here = here[np.lexsort((self.row(player, edges[here]), group[here]))]
      before = np.cumsum(width[here]) - width[here]
      starts = np.flatnonzero(np.diff(group[here], prepend=-1))
      place = before - np.repeat(before[starts], np.diff(np.append(starts, len(here))))
      self.first[own[here]] = begins[group[here]] + place
      self.stride[own[here]] = strides[group[here]]
      self.infoset[own[here]] = infosets[group[here]] + place
    columns = begins, strides, counts, shapes[2], infosets, shapes[1]
    self.groups.append(np.stack(columns, axis=1).astype(np.uint64).reshape(-1, COLUMNS))
    ends = np.searchsorted(shapes[0], np.arange(self.num_parts), side="right")
    self.group_ends.append(ends)
    # Kernels read and write whole vectors, so another player's sequences must not follow immediately.
    end = begin + int(lengths.sum())
    self.first_sequences[player] = np.append(begins, end)[np.append(0, ends)]
    self.first_sequences[player, 0] = self.roots[player]
    num_infosets += int(counts.sum())
    self.first_infosets[player] = np.append(infosets, num_infosets)[np.append(0, ends)]
    self.roots.append(end + MOST_LANES)
    return num_infosets


def lay_out(tree: PublicTree, in_parts: bool) -> Layout:
  """Returns the layout of a game, in parts if solvers visit its subtrees one by one."""
  most = max(1, min(PART_SEQUENCES, int(tree.num_sequences.sum()) // FEWEST_PARTS))
  return Layout(tree, public_subtrees(tree, most) if in_parts else None)


def public_subtrees(tree: PublicTree, most: int) -> Cut:
  """Cuts off the largest subtrees of at most `most` sequences, and joins neighbours into parts of that size."""
  size = tree.num_sequences
  parent, levels = tree.node_of_edge[tree.edge_above], tree.levels()
  for level in reversed(levels[1:]):
    np.add.at(size, parent[level], size[level])
  is_small = size <= most
  is_root = is_small & (tree.edge_above >= 0)
  is_root[is_root] = ~is_small[parent[is_root]]
  roots = np.flatnonzero(is_root)
  together = (np.cumsum(size[roots]) - size[roots]) // most
  result = np.zeros(tree.num_nodes, np.int32)
  result[roots] = 1 + np.unique(together, return_inverse=True)[1]
  for level in levels[1:]:
    result[level] = np.maximum(result[level], result[parent[level]])
  return Cut(result, result[tree.node_of_terminal])
