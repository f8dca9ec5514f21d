"""Where the infosets and terminals of a game in vector form are.

At each node of the public tree whoever is to move has an infoset for every type that it can have there. These are next
to each other, and so are the sequences of each action, a *row*: `[part][group][action][node][type]`. A part is the
trunk of the tree, or some of the subtrees below it, which solvers go through one by one.

In Kuhn poker player 0 has sequence 0, the empty one; with a jack, queen or king at the root 16 to 18 to pass and 32 to
34 to bet; and 48 to 50 and 64 to 66 where it has passed and player 1 has bet.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Int32s, Int64s, Integers, Uint64s, spread
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS
from spiel_cfr.games.sequence_form.treeplex import COLUMNS
from spiel_cfr.games.vector.typed_tree import TypedTree

# The row of who has not acted yet: the empty sequence alone.
NO_EDGE = -1


class Above(NamedTuple):
  """By player, what is above nodes or terminals.

  Attributes:
    edge: the edge that the player has taken last, `NO_EDGE` before that, int32 (players, nodes).
    choice: likewise, the last that was not the only one.
  """

  edge: Int32s
  choice: Int32s


class TypedLayout:
  """The numbering of sequences and infosets.

  Attributes:
    tree: the public tree.
    part: of each node, shape (nodes,); 0 is the trunk, and all there is in a game that is not cut.
    num_parts: how many there are.
    nodes, terminals: what is above each of these.
    terminal_part: of each terminal, that of the node above.
    first: the first sequence of the first action of each node's owner, shape (nodes,).
    stride: from there to that of the next action.
    infoset: the infoset of the first type at each node.
    roots: each player's empty sequence, and the end of all.
    groups: each player's groups, as of `Treeplex`, part by part.
    group_ends: by player, where the groups of each part end, shape (parts,).
    begins: the first sequence of each part, int64 (players, parts + 1); of the trunk, the empty one.
    first_infosets: the first infoset of each part, int64 (players, parts + 1).
  """

  def __init__(self, tree: TypedTree, most_sequences: int | None) -> None:
    """Lays out both players' infosets, in parts of about so many sequences; None for a single part."""
    self.tree = tree
    self.nodes, self.terminals, depth, terminal_node = _above(tree)
    self.width = np.array([[len(types[player]) for types in tree.types] for player in PLAYERS])
    self.part = np.zeros(tree.num_nodes, np.int32)
    if most_sequences is not None:
      self.part = self._parts(most_sequences)
    self.terminal_part = self.part[terminal_node]
    self.num_parts = int(self.part.max()) + 1
    self.first, self.stride, self.infoset = np.zeros((3, tree.num_nodes), np.uint32)
    self.begins, self.first_infosets = np.zeros((2, 2, self.num_parts + 1), np.int64)
    self.roots = [0]
    self.groups: list[Uint64s] = []
    self.group_ends: list[Int64s] = []
    num_infosets = 0
    for player in PLAYERS:
      num_infosets = self._lay_out(player, depth, num_infosets)

  def row(self, player: int, edges: Integers) -> Int64s:
    """Returns the first sequence of the rows of some of a player's edges; of none, the empty sequence."""
    node = self.tree.node_of_edge[edges]
    index = edges - self.tree.first_edge[node]
    return np.where(edges < 0, self.roots[player], self.first[node] + index * self.stride[node])

  def row_kind(self, edges: Integers) -> Int64s:
    """Returns the kind of the nodes that edges begin at, -1 where there is no edge."""
    return np.where(edges < 0, -1, self.tree.kind[self.tree.node_of_edge[edges]])

  def row_width(self, player: int, edges: Integers) -> Int64s:
    """Returns how many types rows have."""
    kind = self.row_kind(edges)
    return np.where(kind < 0, 1, self.width[player, kind])

  def row_part(self, edges: Integers) -> Int64s:
    """Returns the parts that rows are in."""
    return np.where(edges < 0, 0, self.part[self.tree.node_of_edge[edges]])

  def cells(self, none: int) -> Int64s:
    """Returns the sequence of each edge and type of who moves, `none` where there is none; shape (edges, types)."""
    tree, node = self.tree, self.tree.node_of_edge
    result = np.full((len(tree.child), max(tree.deals.num_types)), none)
    cases = np.stack([tree.player[node].astype(np.int64), tree.kind[node]])
    cases, which = np.unique(cases, axis=1, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(which.reshape(-1)))[:-1])
    for (player, kind), edges in zip(cases.T.tolist(), groups, strict=True):
      if player >= 0:
        types = tree.types[kind][player]
        result[np.ix_(edges, types)] = self.row(player, edges)[:, None] + np.arange(len(types))
    return result

  def _parts(self, most: int) -> Int32s:
    """Cuts off the largest subtrees of at most so many sequences, and puts neighbours together."""
    tree = self.tree
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
    return result

  def _lay_out(self, player: int, depth: Int32s, num_infosets: int) -> int:
    """Places a player's infosets, given how many of its owner's are above each node; returns the next free one."""
    tree = self.tree
    own = np.flatnonzero(tree.player == player)
    width = self.width[player, tree.kind[own]]
    depth, actions, edges = depth[own], tree.num_actions[own], self.nodes.edge[player, own]
    shape = np.stack([self.part[own], depth, actions])
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
      # In the order of their parents: passes then read and write these in order.
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
    # Kernels read and write whole vectors: nothing of another player may follow at once.
    end = begin + int(lengths.sum())
    self.begins[player] = np.append(begins, end)[np.append(0, ends)]
    self.begins[player, 0] = self.roots[player]
    num_infosets += int(counts.sum())
    self.first_infosets[player] = np.append(infosets, num_infosets)[np.append(0, ends)]
    self.roots.append(end + MOST_LANES)
    return num_infosets


def _above(tree: TypedTree) -> tuple[Above, Above, Int32s, Int32s]:
  """Returns what is above nodes and terminals, the depth of nodes, and the node above each terminal."""
  nodes, terminals = (
    Above(*np.full((2, 2, count), NO_EDGE, np.int32))
    for count in (tree.num_nodes, len(tree.matrix))
  )
  depth = np.zeros((2, tree.num_nodes), np.int32)
  terminal_node = np.zeros(len(tree.matrix), np.int32)
  for level in tree.levels():
    edges = spread(tree.first_edge[level], tree.num_actions[level])
    parent, child = tree.node_of_edge[edges], tree.child[edges]
    inner = child >= 0
    terminal_node[-1 - child[~inner]] = parent[~inner]
    for player in PLAYERS:
      mine = tree.player[parent] == player
      chosen = mine & (tree.num_actions[parent] > 1)
      taken = np.where(mine, edges, nodes.edge[player, parent])
      choice = np.where(chosen, edges, nodes.choice[player, parent])
      for found, some, below in (
        (nodes, inner, child[inner]),
        (terminals, ~inner, -1 - child[~inner]),
      ):
        found.edge[player, below], found.choice[player, below] = taken[some], choice[some]
      depth[player, child[inner]] = (depth[player, parent] + mine)[inner]
  return (
    nodes,
    terminals,
    depth[np.maximum(tree.player, 0), np.arange(tree.num_nodes)],
    terminal_node,
  )
