"""Parts of a game in vector form, and the numbers of sequences inside a part.

Parts are the trunk, the upper nodes of the public tree, and the subtrees below it (`compiled.trunk_and_subtrees`). A
part numbers its own sequences from 0, and then the sequences of the trunk's rows directly above it. `layout` explains
rows and the other terms.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import (
  Int32s,
  Int64s,
  Integers,
  Uint32s,
  Uint64s,
  concatenated_ranges,
  range_starts,
)
from spiel_cfr.games.compiled.trunk_and_subtrees import Part
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, FIRST_INFOSET, FIRST_SEQUENCE
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.public_tree import PLAYERS, LastEdges


class Numbering(NamedTuple):
  """The numbers of a player's sequences in a part: the part's own, then those of the trunk's rows directly above it.

  Attributes:
    player: int. The owner of the sequences.
    part: int. The number of the part, 0 for the trunk; None if the part is the whole game.
    nodes: int64 (nodes,), ascending. The part's nodes at which the player moves.
    begin: int. The part's first sequence, in the numbering of the game.
    length: int. The number of the part's sequences, without those of the trunk.
    trunk_edges: int64 (rows,), ascending. The edges of the trunk's rows above the part.
    trunk_starts: int64 (rows,). The first sequence of each of the trunk's rows, in the numbering of the part.
    trunk_sequences: int64 (sequences,). The sequences of the trunk's rows, in the numbering of the game.
  """

  player: int
  part: int | None
  nodes: Int64s
  begin: int
  length: int
  trunk_edges: Int64s
  trunk_starts: Int64s
  trunk_sequences: Int64s

  def bounds(self, layout: Layout) -> tuple[int, int]:
    """Returns the first number of the part, and one past the last number of the trunk's rows.

    In the trunk and in a whole game, the first number is that of the empty sequence. In other parts it is 0.
    """
    root = 0 if self.part else layout.roots[self.player] - self.begin
    return root, self.length + len(self.trunk_sequences)

  def row(self, layout: Layout, edges: Integers) -> Int64s:
    """Returns the first sequence of the row of each edge, in the numbering of the part."""
    in_part = layout.row(self.player, edges) - self.begin
    if not len(self.trunk_edges):
      return in_part
    index = np.minimum(np.searchsorted(self.trunk_edges, edges), len(self.trunk_edges) - 1)
    return np.where(layout.row_part(edges) == self.part, in_part, self.trunk_starts[index])


# (each player's numbering of sequences, terminals) -> the payoff of these terminals.
PayoffBuilder = Callable[[Sequence[Numbering], Int64s], Payoff]


class Parts:
  """Builder of the parts of a game in vector form, and of the payoff of the whole game."""

  def __init__(
    self,
    layout: Layout,
    builder: Callable[[Layout, Int32s], PayoffBuilder],
    *,
    skips_forced: bool,
  ) -> None:
    """Prepares the builder of payoffs.

    Args:
      layout: the layout of the game.
      builder: function of the layout and of each player's last edges before terminals, int32 (players, terminals);
        returns a builder of payoffs.
      skips_forced: whether solvers skip infosets with one action, see `forced_moves`.
    """
    self._layout, self._skips_forced = layout, skips_forced
    self._above = layout.tree.choices_above() if skips_forced else layout.tree.above
    self._build = builder(layout, self._above.terminals)
    self._nodes, self._terminals = (
      _by_part(part_numbers, layout.num_parts) for part_numbers in layout.part_of
    )

  def whole(self) -> Payoff:
    """Returns the payoff of the whole game, in its own numbering."""
    numberings = [whole_numbering(self._layout, player) for player in PLAYERS]
    return self._build(numberings, np.arange(self._layout.tree.num_terminals))

  def part(self, number: int) -> Part:
    """Returns a part with its payoff."""
    layout = self._layout
    first, second = (self._numbering(player, number) for player in PLAYERS)
    trees, left_out = zip(
      *(self._tree(numbering, number) for numbering in (first, second)), strict=True
    )
    sequences, infosets = (
      [slice(*ends[player, number : number + 2].tolist()) for player in PLAYERS]
      for ends in (layout.first_sequences, layout.first_infosets)
    )
    return Part(
      sequences=(sequences[0], sequences[1]),
      infosets=(infosets[0], infosets[1]),
      trees=trees,
      trunk_sequences=(first.trunk_sequences, second.trunk_sequences - layout.roots[1]),
      payoff=self._build([first, second], self._terminals[number]),
      left_out=left_out,
    )

  def _numbering(self, player: int, part: int) -> Numbering:
    """Returns the numbering of a player's sequences in a part."""
    layout = self._layout
    begin, end = layout.first_sequences[player, part : part + 2].tolist()
    nodes, trunk_edges = self._nodes[part], np.zeros(0, np.int64)
    nodes = nodes[layout.tree.player[nodes] == player]
    if part:
      above = self._above.nodes[player, nodes], self._above.terminals[player, self._terminals[part]]
      edges = np.unique(np.concatenate(above))
      trunk_edges = edges[layout.row_part(edges) == 0]
    widths = layout.row_width(player, trunk_edges)
    return Numbering(
      player=player,
      part=part,
      nodes=nodes,
      begin=begin,
      length=end - begin,
      trunk_edges=trunk_edges,
      trunk_starts=end - begin + range_starts(widths),
      trunk_sequences=concatenated_ranges(layout.row(player, trunk_edges), widths),
    )

  def _tree(self, numbering: Numbering, part: int) -> tuple[Tree, Uint64s]:
    """Returns the groups of a player's infosets to visit in a part, and those left out: they have one action."""
    layout, player = self._layout, numbering.player
    ends = np.append(0, layout.group_ends[player])
    groups = layout.groups[player][ends[part] : ends[part + 1]].copy()
    groups[:, FIRST_SEQUENCE] -= np.uint64(numbering.begin)
    groups[:, FIRST_INFOSET] -= np.uint64(layout.first_infosets[player, part])
    is_left_out = self._skips_forced & (groups[:, ACTIONS] == 1)
    return Tree(groups[~is_left_out], parents(layout, self._above, numbering)), groups[is_left_out]


def whole_numbering(layout: Layout, player: int) -> Numbering:
  """Returns the numbering of a player's sequences in a game of one part."""
  none, nodes = np.zeros(0, np.int64), np.flatnonzero(layout.tree.player == player)
  return Numbering(player, None, nodes, 0, layout.roots[player + 1], none, none, none)


def parents(layout: Layout, above: LastEdges, numbering: Numbering) -> Uint32s:
  """Returns the sequence above each infoset of a part, in layout order.

  Args:
    layout: the layout of the game.
    above: the last edges before each node, which give the sequences.
    numbering: the numbering of the part.
  """
  tree, player = layout.tree, numbering.player
  nodes = numbering.nodes[np.argsort(layout.infoset[numbering.nodes])]
  edges, kind = above.nodes[player, nodes], tree.kind[nodes]
  widths = tree.width[player, kind]
  # The offset in the row above depends only on the kind of that row and the kind of the node.
  pairs, pair = np.unique(np.stack([layout.row_kind(edges), kind]), axis=1, return_inverse=True)
  offsets = [np.zeros(0, np.int64)]
  for before, after in pairs.T.tolist():
    of_types = tree.infoset_offsets(player, before, after)
    offsets.append(of_types[tree.representatives(player, after)])
  lengths = np.array([len(of_infosets) for of_infosets in offsets[1:]], np.int64)
  starts = range_starts(lengths)[pair.reshape(-1)]
  offset = np.concatenate(offsets)[concatenated_ranges(starts, widths)]
  return np.asarray(np.repeat(numbering.row(layout, edges), widths) + offset, np.uint32)


def _by_part(part_of_item: Integers, num_parts: int) -> list[Int64s]:
  """Returns the items (nodes or terminals) of each part, ascending, given the part of each item."""
  order = np.argsort(part_of_item, kind="stable")
  return np.split(order, np.searchsorted(part_of_item[order], np.arange(1, num_parts)))
