"""The terminals of a public tree as rows of `TypedPatterns`, for the whole tree or for one of its parts."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s, spread
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS, Part
from spiel_cfr.games.payoffs.typed_patterns import Rows, TypedPatterns
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import FIRST_INFOSET, FIRST_SEQUENCE
from spiel_cfr.games.vector.typed_layout import TypedLayout

# Two patterns with a largest element of 1 that agree to these decimals are the same: chance's probabilities, multiplied
# in another order, make them differ in later ones. Elements this close to the largest are as large but for rounding.
_DECIMALS = 13
_ALMOST_ONE = 1 - 1e-9


class Squares(NamedTuple):
  """The matrices of all kinds of terminals, cut into squares of as many types as a vector has numbers.

  A kind of terminal is a matrix, and the kinds of the nodes where both players have acted last. For each player it has
  some squares, each a multiple of a pattern; what has nothing but zeros is left out.

  Attributes:
    kind: of each terminal, which it is.
    first: by player, the first square of each kind, and the end of all.
    own: by player, the first of the own types of each square.
    other: likewise, of the opponent's.
    pattern: likewise, its pattern.
    factor: likewise, what that is multiplied by.
    patterns: shape (patterns, lanes * lanes), the opponent's types first.
    lanes: how many types are side by side.
  """

  kind: Int64s
  first: list[Int64s]
  own: list[Int64s]
  other: list[Int64s]
  pattern: list[Int64s]
  factor: list[Float64s]
  patterns: Float64s
  lanes: int


def cut_squares(layout: TypedLayout, lanes: int) -> Squares:
  """Cuts the matrices of all terminals."""
  tree = layout.tree
  above = [layout.row_kind(layout.terminals.edge[player]) for player in PLAYERS]
  kinds, kind = np.unique(np.stack([tree.matrix, *above]), axis=1, return_inverse=True)
  known: dict[bytes, int] = {}
  patterns: list[Float64s] = []
  columns: list[list[Any]] = []
  for player in PLAYERS:
    first, found = [0], []
    for matrix, *rows in kinds.T.tolist():
      payoffs = tree.matrices[matrix, player]
      for axis, row in enumerate(rows):
        if row < 0:
          payoffs = payoffs.sum(axis=axis, keepdims=True)
        else:
          payoffs = np.take(payoffs, tree.types[row][axis], axis=axis)
      payoffs = payoffs if player else payoffs.T
      for other, own in itertools.product(*(range(0, size, lanes) for size in payoffs.shape)):
        some = payoffs[other : other + lanes, own : own + lanes]
        square = np.zeros((lanes, lanes))
        square[: some.shape[0], : some.shape[1]] = some
        magnitude = np.abs(square)
        factor = square.flat[np.argmax(magnitude >= _ALMOST_ONE * magnitude.max())]
        if not factor:
          continue
        square /= factor
        key = (square.round(_DECIMALS) + 0.0).tobytes()
        if key not in known:
          known[key] = len(patterns)
          patterns.append(square.reshape(-1))
        found.append((own, other, known[key], factor))
      first.append(len(found))
    table = np.array(found).reshape(-1, 4)
    columns.append([np.array(first), *table[:, :3].astype(np.int64).T, table[:, 3]])
  stacked = np.array(patterns).reshape(-1, lanes * lanes)
  of_both: list[Any] = [list(each) for each in zip(*columns, strict=True)]
  first, owner, opponent, pattern, factors = of_both
  return Squares(kind.reshape(-1), first, owner, opponent, pattern, factors, stacked, lanes)


class Numbering(NamedTuple):
  """A player's numbering of the sequences of a part: its own from 0, then rows of the trunk that are above it.

  Attributes:
    player: whose.
    part: which part; None for the whole game in its own numbering.
    begin: what is taken off the game's numbers of the part's own sequences.
    length: how many of these there are.
    above: the edges of the rows of the trunk, ascending.
    places: where each of these rows is, in the numbering of the part.
    entries: the sequences of these rows, in the game's numbering.
  """

  player: int
  part: int | None
  begin: int
  length: int
  above: Int64s
  places: Int64s
  entries: Int64s

  def row(self, layout: TypedLayout, edges: Int64s) -> Int64s:
    """Returns the first sequence of rows, in the numbering of the part."""
    own = layout.row(self.player, edges) - self.begin
    if not len(self.above):
      return own
    place = np.minimum(np.searchsorted(self.above, edges), len(self.above) - 1)
    return np.where(layout.row_part(edges) == self.part, own, self.places[place])


class Parts:
  """Makes the payoffs of a game in vector form, and its parts."""

  def __init__(self, layout: TypedLayout) -> None:
    """Takes the layout."""
    self._layout = layout
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
    sequences, infosets = (
      [slice(*ends[player, number : number + 2].tolist()) for player in PLAYERS]
      for ends in (layout.begins, layout.first_infosets)
    )
    return Part(
      sequences=(sequences[0], sequences[1]),
      infosets=(infosets[0], infosets[1]),
      trees=(self._tree(first, number), self._tree(second, number)),
      entries=(first.entries, second.entries - layout.roots[1]),
      payoff=self._payoff([first, second]),
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
      above = layout.nodes.edge[player, nodes], layout.terminals.edge[player, self._terminals[part]]
      edges = np.unique(np.concatenate(above))
      edges = edges[layout.row_part(edges) == 0]
    widths = layout.row_width(player, edges)
    places = end - begin + np.cumsum(widths) - widths
    entries = spread(layout.row(player, edges), widths)
    return Numbering(player, part, begin, end - begin, edges, places, entries)

  def _owned(self, player: int, part: int | None) -> Int64s:
    """Returns the nodes of a part where a player is to move."""
    owner = self._layout.tree.player
    if part is None:
      return np.flatnonzero(owner == player)
    nodes = self._nodes[part]
    return np.asarray(nodes[owner[nodes] == player])

  def _tree(self, numbering: Numbering, part: int) -> Tree:
    layout, player = self._layout, numbering.player
    ends = np.append(0, layout.group_ends[player])
    groups = layout.groups[player][ends[part] : ends[part + 1]].copy()
    groups[:, FIRST_SEQUENCE] -= np.uint64(numbering.begin)
    groups[:, FIRST_INFOSET] -= np.uint64(layout.first_infosets[player, part])
    return Tree(groups, self._parents(numbering))

  def _parents(self, numbering: Numbering) -> Uint32s:
    """Returns the sequence above each infoset of a part, in the order of the layout."""
    layout, player = self._layout, numbering.player
    nodes = self._owned(player, numbering.part)
    nodes = nodes[np.argsort(layout.infoset[nodes])]
    edges, kind = layout.nodes.edge[player, nodes], layout.tree.kind[nodes]
    widths = layout.width[player, kind]
    pairs, which = np.unique(np.stack([layout.row_kind(edges), kind]), axis=1, return_inverse=True)
    places = [layout.tree.places(player, before, after) for before, after in pairs.T.tolist()]
    lengths = np.array([len(own) for own in places], np.int64)
    starts = (np.cumsum(lengths) - lengths)[which.reshape(-1)]
    lanes = np.concatenate([np.zeros(0, np.int64), *places])[spread(starts, widths)]
    return np.asarray(np.repeat(numbering.row(layout, edges), widths) + lanes, np.uint32)

  def _squares(self, lanes: int) -> Squares:
    if lanes not in self._known_squares:
      self._known_squares[lanes] = cut_squares(self._layout, lanes)
    return self._known_squares[lanes]

  def _payoff(self, numberings: list[Numbering]) -> TypedPatterns:
    def make(lanes: int) -> tuple[list[Rows], Float64s]:
      return [self._rows(player, numberings, lanes) for player in PLAYERS], self._squares(
        lanes
      ).patterns

    return TypedPatterns.of_squares(make)

  def _rows(self, player: int, numberings: list[Numbering], lanes: int) -> Rows:
    """Returns a player's rows of a part, with the terminals there."""
    layout, squares, numbering = self._layout, self._squares(lanes), numberings[player]
    part = numbering.part
    terminals = np.arange(len(squares.kind)) if part is None else self._terminals[part]
    above = [each.row(layout, layout.terminals.edge[each.player, terminals]) for each in numberings]
    kind = squares.kind[terminals]
    counts = np.diff(squares.first[player])[kind]
    square = spread(squares.first[player][kind], counts)
    own = np.repeat(above[player], counts) + squares.own[player][square]
    other = np.repeat(above[1 - player], counts) + squares.other[player][square]
    starts = self._starts(numbering, lanes)
    order = np.argsort(own, kind="stable")
    square = square[order]
    return Rows(
      starts=starts,
      lengths=np.diff(np.append(np.searchsorted(own[order], starts), len(own))),
      lines=np.stack([squares.pattern[player][square], other[order]], axis=1),
      factors=squares.factor[player][square],
      bounds=(
        0 if part else layout.roots[player] - numbering.begin,
        numbering.length + len(numbering.entries),
        len(terminals),
      ),
    )

  def _starts(self, numbering: Numbering, lanes: int) -> Int64s:
    """Returns where the rows of a part begin, cut after so many types."""
    layout, tree, player = self._layout, self._layout.tree, numbering.player
    nodes = self._owned(player, numbering.part)
    edges = spread(tree.first_edge[nodes], tree.num_actions[nodes])
    if not numbering.part:
      # The empty sequence.
      edges = np.append(edges, -1)
    first = np.append(layout.row(player, edges) - numbering.begin, numbering.places)
    width = layout.row_width(player, np.append(edges, numbering.above))
    cuts = -(-width // lanes)
    lane = np.arange(cuts.sum()) - np.repeat(np.cumsum(cuts) - cuts, cuts)
    return np.sort(np.repeat(first, cuts) + lanes * lane)


def _by_part(part: Int64s, num_parts: int) -> list[Int64s]:
  """Returns which nodes each part has, ascending."""
  order = np.argsort(part, kind="stable")
  return np.split(order, np.searchsorted(part[order], np.arange(1, num_parts)))
