"""The terminals of a public tree as rows of `TypedPatterns`, for the whole tree or for one of its parts."""

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s, Int64s, Integers, Uint32s, Uint64s, spread
from spiel_cfr._numba.simd import LANES, MOST_LANES
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS, Part
from spiel_cfr.games.payoffs.private_types import leading, rounded
from spiel_cfr.games.payoffs.typed_patterns import Rows, SquareRows, TypedPatterns
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, FIRST_INFOSET, FIRST_SEQUENCE
from spiel_cfr.games.vector.typed_layout import TypedLayout
from spiel_cfr.games.vector.typed_tree import TypedTree


class Squares(NamedTuple):
  """The matrices of all terminals, cut into pieces that the kernel of typed patterns takes.

  Of its matrix a terminal has the types that are possible where the players have acted last: between these rows. For
  each player a matrix has some pieces, of `lanes` of the own types and up to 16 of the opponent's, each a multiple of
  a pattern; what has nothing but zeros is left out.

  Attributes:
    matrix: of each terminal, which it has, of those that differ in rows too.
    first: by player, the first piece of each matrix, and the end of all.
    cuts: by player, of each piece the first of the own types, the first of the opponent's, and the first square of its
      pattern, shape (pieces, 3).
    factors: likewise, what that is multiplied by.
    squares, widths, lanes: see `SquareRows`.
  """

  matrix: Int64s
  first: list[Int64s]
  cuts: list[Int64s]
  factors: list[Float64s]
  squares: Float64s
  widths: Int64s
  lanes: int


def cut_squares(layout: TypedLayout, edges: Integers, lanes: int) -> Squares:
  """Cuts the matrices of all terminals, above which the players have taken these edges last."""
  tree = layout.tree
  rows = [layout.row_kind(own) for own in edges]
  cases, case = np.unique(np.stack([tree.matrix, *rows]), axis=1, return_inverse=True)
  # As many columns for all: rows have entries of several patterns, and the kernel adds as many columns of each.
  columns = LANES if max(tree.deals.num_types) <= LANES else 2 * LANES
  known: dict[bytes, int] = {}
  squares: list[Float64s] = []
  widths: list[int] = []

  def place(pattern: Float64s) -> int:
    """Returns the first square of a pattern."""
    padded = np.zeros((columns, lanes))
    padded[: pattern.shape[0], : pattern.shape[1]] = pattern
    number = known.setdefault(rounded(padded).tobytes(), len(squares))
    if number == len(squares):
      squares.extend(padded.reshape(columns // LANES, -1))
      widths.extend([len(pattern)] * (columns // LANES))
    return number

  firsts, cuts, factors = [], [], []
  for player in PLAYERS:
    first, found, largest = [0], [], []
    for matrix, *kinds in cases.T.tolist():
      payoffs = _between(tree, matrix, player, kinds)
      others, owns = (range(0, *cut) for cut in zip(payoffs.shape, (columns, lanes), strict=True))
      for other, own in itertools.product(others, owns):
        piece = payoffs[other : other + columns, own : own + lanes]
        if factor := leading(piece.reshape(1, -1)).item():
          found.append((own, other, place(piece / factor)))
          largest.append(factor)
      first.append(len(found))
    firsts.append(np.array(first))
    cuts.append(np.array(found, np.int64).reshape(-1, 3))
    factors.append(np.array(largest))
  flat = np.array(squares).reshape(-1, LANES * lanes)
  return Squares(case.reshape(-1), firsts, cuts, factors, flat, np.array(widths), lanes)


def _between(tree: TypedTree, matrix: int, player: int, kinds: list[int]) -> Float64s:
  """Returns what a player gets, by the opponent's type and its own, where both are in rows of these kinds."""
  payoffs: Float64s = tree.matrices[matrix, player]
  for axis, kind in enumerate(kinds):
    # Who has not acted has the empty sequence alone.
    payoffs = (
      payoffs.sum(axis=axis, keepdims=True)
      if kind < 0
      else np.take(payoffs, tree.types[kind][axis], axis=axis)
    )
  return payoffs if player else payoffs.T


class Numbering(NamedTuple):
  """A player's numbering of the sequences of a part: its own from 0, then rows of the trunk that are above it.

  Attributes:
    player: whose.
    part: which part; None for the whole game in its own numbering.
    begin: what is taken off the game's numbers of the part's own sequences.
    length: how many of these there are.
    above: the edges of the rows of the trunk, ascending.
    starts: where each of these rows is, in the numbering of the part.
    entries: the sequences of these rows, in the game's numbering.
  """

  player: int
  part: int | None
  begin: int
  length: int
  above: Int64s
  starts: Int64s
  entries: Int64s

  def row(self, layout: TypedLayout, edges: Integers) -> Int64s:
    """Returns the first sequence of rows, in the numbering of the part."""
    own = layout.row(self.player, edges) - self.begin
    if not len(self.above):
      return own
    place = np.minimum(np.searchsorted(self.above, edges), len(self.above) - 1)
    return np.where(layout.row_part(edges) == self.part, own, self.starts[place])


class Parts:
  """Makes the payoffs of a game in vector form, and its parts."""

  def __init__(
    self, layout: TypedLayout, dtype: npt.DTypeLike = np.float64, *, skips_forced: bool
  ) -> None:
    """Takes what solvers compute with, and whether infosets with one action are left out, see `forced_moves`."""
    self._layout, self._dtype, self._skips_forced = layout, dtype, skips_forced
    # What is above nodes and terminals, shape (players, nodes).
    above = layout.nodes, layout.terminals
    self._above, self._above_terminals = (
      each.choice if skips_forced else each.edge for each in above
    )
    self._known_squares: dict[int, Squares] = {}
    self._nodes = _by_part(layout.part, layout.num_parts)
    self._terminals = _by_part(layout.terminal_part, layout.num_parts)

  def whole(self) -> TypedPatterns:
    """Returns the payoffs of the whole game, in its own numbering."""
    return self._payoff([self._whole(player) for player in PLAYERS])

  def part(self, number: int) -> Part:
    """Makes a part."""
    layout = self._layout
    first, second = (self._number(player, number) for player in PLAYERS)
    trees, left_out = zip(*(self._tree(each, number) for each in (first, second)), strict=True)
    sequences, infosets = (
      [slice(*ends[player, number : number + 2].tolist()) for player in PLAYERS]
      for ends in (layout.begins, layout.first_infosets)
    )
    return Part(
      sequences=(sequences[0], sequences[1]),
      infosets=(infosets[0], infosets[1]),
      trees=trees,
      entries=(first.entries, second.entries - layout.roots[1]),
      payoff=self._payoff([first, second]),
      left_out=left_out,
    )

  def parents(self, player: int) -> Uint32s:
    """Returns `Treeplex.parent` of a player."""
    return self._parents(self._whole(player))

  def _whole(self, player: int) -> Numbering:
    none = np.zeros(0, np.int64)
    return Numbering(player, None, 0, self._layout.roots[player + 1], none, none, none)

  def _number(self, player: int, part: int) -> Numbering:
    layout = self._layout
    begin, end = layout.begins[player, part : part + 2].tolist()
    edges = np.zeros(0, np.int64)
    if part:
      nodes = self._owned(player, part)
      terminals = self._terminals[part]
      above = self._above[player, nodes], self._above_terminals[player, terminals]
      edges = np.unique(np.concatenate(above))
      edges = edges[layout.row_part(edges) == 0]
    widths = layout.row_width(player, edges)
    starts = end - begin + np.cumsum(widths) - widths
    entries = spread(layout.row(player, edges), widths)
    return Numbering(player, part, begin, end - begin, edges, starts, entries)

  def _owned(self, player: int, part: int | None) -> Int64s:
    """Returns the nodes of a part where a player is to move."""
    owner = self._layout.tree.player
    if part is None:
      return np.flatnonzero(owner == player)
    nodes = self._nodes[part]
    return np.asarray(nodes[owner[nodes] == player])

  def _tree(self, numbering: Numbering, part: int) -> tuple[Tree, Uint64s]:
    """Returns a player's infosets in a part, and the groups that are left out."""
    layout, player = self._layout, numbering.player
    ends = np.append(0, layout.group_ends[player])
    groups = layout.groups[player][ends[part] : ends[part + 1]].copy()
    groups[:, FIRST_SEQUENCE] -= np.uint64(numbering.begin)
    groups[:, FIRST_INFOSET] -= np.uint64(layout.first_infosets[player, part])
    is_left_out = self._skips_forced & (groups[:, ACTIONS] == 1)
    return Tree(groups[~is_left_out], self._parents(numbering)), groups[is_left_out]

  def _parents(self, numbering: Numbering) -> Uint32s:
    """Returns the sequence above each infoset of a part, in the order of the layout."""
    layout, player = self._layout, numbering.player
    nodes = self._owned(player, numbering.part)
    nodes = nodes[np.argsort(layout.infoset[nodes])]
    edges, kind = self._above[player, nodes], layout.tree.kind[nodes]
    widths = layout.width[player, kind]
    pairs, which = np.unique(np.stack([layout.row_kind(edges), kind]), axis=1, return_inverse=True)
    lanes = [layout.tree.lanes(player, before, after) for before, after in pairs.T.tolist()]
    lengths = np.array([len(own) for own in lanes], np.int64)
    starts = (np.cumsum(lengths) - lengths)[which.reshape(-1)]
    lane = np.concatenate([np.zeros(0, np.int64), *lanes])[spread(starts, widths)]
    return np.asarray(np.repeat(numbering.row(layout, edges), widths) + lane, np.uint32)

  def _squares(self, lanes: int) -> Squares:
    if lanes not in self._known_squares:
      self._known_squares[lanes] = cut_squares(self._layout, self._above_terminals, lanes)
    return self._known_squares[lanes]

  def _payoff(self, numberings: list[Numbering]) -> TypedPatterns:
    def rows(lanes: int) -> SquareRows:
      squares = self._squares(lanes)
      own = [self._rows(player, numberings, squares) for player in PLAYERS]
      return SquareRows(own, squares.squares, squares.widths, lanes)

    single = rows(MOST_LANES) if self._dtype == np.float32 else None
    return TypedPatterns.of_squares(rows(LANES), single)

  def _rows(self, player: int, numberings: list[Numbering], squares: Squares) -> Rows:
    """Returns a player's rows of a part, with the terminals there."""
    layout, numbering = self._layout, numberings[player]
    part = numbering.part
    terminals = np.arange(len(squares.matrix)) if part is None else self._terminals[part]
    above = [each.row(layout, self._above_terminals[each.player, terminals]) for each in numberings]
    matrix = squares.matrix[terminals]
    counts = np.diff(squares.first[player])[matrix]
    square = spread(squares.first[player][matrix], counts)
    own_type, other_type, pattern = squares.cuts[player][square].T
    own = np.repeat(above[player], counts) + own_type
    other = np.repeat(above[1 - player], counts) + other_type
    starts = self._starts(numbering, squares.lanes)
    order = np.argsort(own, kind="stable")
    return Rows(
      starts=starts,
      lengths=np.diff(np.append(np.searchsorted(own[order], starts), len(own))),
      lines=np.stack([pattern[order], other[order]], axis=1),
      factors=squares.factors[player][square[order]],
      bounds=(
        0 if part else layout.roots[player] - numbering.begin,
        numbering.length + len(numbering.entries),
        len(terminals),
      ),
    )

  def _starts(self, numbering: Numbering, lanes: int) -> Int64s:
    """Returns where the rows of a part begin, cut after so many types; they are all that gradients write."""
    layout, tree, player = self._layout, self._layout.tree, numbering.player
    nodes = self._owned(player, numbering.part)
    edges = spread(tree.first_edge[nodes], tree.num_actions[nodes])
    if not numbering.part:
      # The empty sequence.
      edges = np.append(edges, -1)
    first = np.sort(np.append(layout.row(player, edges) - numbering.begin, numbering.starts))
    # Up to the next row, padding too: parts share their workspaces, and what another has left there would be summed.
    end = numbering.length + len(numbering.entries)
    cuts = -(-np.diff(first, append=end) // lanes)
    lane = np.arange(cuts.sum()) - np.repeat(np.cumsum(cuts) - cuts, cuts)
    return np.asarray(np.repeat(first, cuts) + lanes * lane)


def _by_part(part: Integers, num_parts: int) -> list[Int64s]:
  """Returns which nodes each part has, ascending."""
  order = np.argsort(part, kind="stable")
  return np.split(order, np.searchsorted(part[order], np.arange(1, num_parts)))
