"""The terminals of a public tree as rows of `TypedPatterns`, for the whole tree or for one of its parts."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, Integers, Uint32s, spread
from spiel_cfr._numba.simd import LANES
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS, Part
from spiel_cfr.games.payoffs.private_types import leading, rounded
from spiel_cfr.games.payoffs.typed_patterns import Rows, TypedPatterns
from spiel_cfr.games.sequence_form.tree_passes import Tree
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, FIRST_INFOSET, FIRST_SEQUENCE
from spiel_cfr.games.vector.typed_layout import TypedLayout


class Squares(NamedTuple):
  """The matrices of all kinds of terminals, cut into pieces that the kernel of typed patterns takes.

  A kind of terminal is a matrix, and the kinds of the nodes where both players have acted last. For each player it has
  some pieces, of `lanes` of the own types and up to 16 of the opponent's, each a multiple of a pattern; what has
  nothing but zeros is left out.

  Attributes:
    kind: of each terminal, which it is.
    first: by player, the first piece of each kind, and the end of all.
    own: by player, the first of the own types of each piece.
    other: likewise, of the opponent's.
    pattern: likewise, the first square of its pattern.
    factor: likewise, what that is multiplied by.
    squares: shape (squares, 8 * lanes), eight of the opponent's types first; a pattern has one or two.
    widths: of the pattern that begins at each square, how many types of the opponent it has.
    lanes: how many of the own types are side by side.
  """

  kind: Int64s
  first: list[Int64s]
  own: list[Int64s]
  other: list[Int64s]
  pattern: list[Int64s]
  factor: list[Float64s]
  squares: Float64s
  widths: Int64s
  lanes: int


def cut_squares(layout: TypedLayout, edges: Integers, lanes: int) -> Squares:
  """Cuts the matrices of all terminals, above which the players have taken these edges last."""
  tree = layout.tree
  above = [layout.row_kind(own) for own in edges]
  kinds, kind = np.unique(np.stack([tree.matrix, *above]), axis=1, return_inverse=True)
  # As many columns for all: rows have entries of several patterns, and the kernel adds as many columns of each.
  columns = LANES if max(tree.deals.num_types) <= LANES else 2 * LANES
  known: dict[bytes, int] = {}
  squares: list[Float64s] = []
  widths: list[int] = []
  of_players: list[Any] = []
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
      cuts = (
        range(0, size, step) for size, step in zip(payoffs.shape, (columns, lanes), strict=True)
      )
      for other, own in itertools.product(*cuts):
        some = payoffs[other : other + columns, own : own + lanes]
        factor = leading(some.reshape(1, -1)).item()
        if not factor:
          continue
        pattern = np.zeros((columns, lanes))
        pattern[: some.shape[0], : some.shape[1]] = some / factor
        key = rounded(pattern).tobytes()
        if key not in known:
          known[key] = len(squares)
          squares += np.split(pattern.reshape(-1), columns // LANES)
          widths += [len(some)] * (columns // LANES)
        found.append((own, other, known[key], factor))
      first.append(len(found))
    table = np.array(found).reshape(-1, 4)
    of_players.append([np.array(first), *table[:, :3].astype(np.int64).T, table[:, 3]])
  starts, own_types, others, patterns, factors = (
    list(each) for each in zip(*of_players, strict=True)
  )
  return Squares(
    *(kind.reshape(-1), starts, own_types, others, patterns, factors),
    *(np.array(squares).reshape(-1, LANES * lanes), np.array(widths), lanes),
  )


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

  def row(self, layout: TypedLayout, edges: Integers) -> Int64s:
    """Returns the first sequence of rows, in the numbering of the part."""
    own = layout.row(self.player, edges) - self.begin
    if not len(self.above):
      return own
    place = np.minimum(np.searchsorted(self.above, edges), len(self.above) - 1)
    return np.where(layout.row_part(edges) == self.part, own, self.places[place])


class Parts:
  """Makes the payoffs of a game in vector form, and its parts."""

  def __init__(self, layout: TypedLayout, *, skips_forced: bool) -> None:
    """Takes the layout, and whether infosets with one action are left out, see `forced_moves`."""
    self._layout, self._skips_forced = layout, skips_forced
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
      terminals = self._terminals[part]
      above = self._above[player, nodes], self._above_terminals[player, terminals]
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
    if self._skips_forced:
      groups = groups[groups[:, ACTIONS] > 1]
    return Tree(groups, self._parents(numbering))

  def _parents(self, numbering: Numbering) -> Uint32s:
    """Returns the sequence above each infoset of a part, in the order of the layout."""
    layout, player = self._layout, numbering.player
    nodes = self._owned(player, numbering.part)
    nodes = nodes[np.argsort(layout.infoset[nodes])]
    edges, kind = self._above[player, nodes], layout.tree.kind[nodes]
    widths = layout.width[player, kind]
    pairs, which = np.unique(np.stack([layout.row_kind(edges), kind]), axis=1, return_inverse=True)
    places = [layout.tree.places(player, before, after) for before, after in pairs.T.tolist()]
    lengths = np.array([len(own) for own in places], np.int64)
    starts = (np.cumsum(lengths) - lengths)[which.reshape(-1)]
    lanes = np.concatenate([np.zeros(0, np.int64), *places])[spread(starts, widths)]
    return np.asarray(np.repeat(numbering.row(layout, edges), widths) + lanes, np.uint32)

  def _squares(self, lanes: int) -> Squares:
    if lanes not in self._known_squares:
      self._known_squares[lanes] = cut_squares(self._layout, self._above_terminals, lanes)
    return self._known_squares[lanes]

  def _payoff(self, numberings: list[Numbering]) -> TypedPatterns:
    def make(lanes: int) -> tuple[list[Rows], Float64s, Int64s]:
      squares = self._squares(lanes)
      return (
        [self._rows(player, numberings, squares) for player in PLAYERS],
        squares.squares,
        squares.widths,
      )

    return TypedPatterns.of_squares(make)

  def _rows(self, player: int, numberings: list[Numbering], squares: Squares) -> Rows:
    """Returns a player's rows of a part, with the terminals there."""
    layout, numbering = self._layout, numberings[player]
    part = numbering.part
    terminals = np.arange(len(squares.kind)) if part is None else self._terminals[part]
    above = [each.row(layout, self._above_terminals[each.player, terminals]) for each in numberings]
    kind = squares.kind[terminals]
    counts = np.diff(squares.first[player])[kind]
    square = spread(squares.first[player][kind], counts)
    own = np.repeat(above[player], counts) + squares.own[player][square]
    other = np.repeat(above[1 - player], counts) + squares.other[player][square]
    starts = self._starts(numbering, squares.lanes)
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
    """Returns where the rows of a part begin, cut after so many types; they are all that gradients write."""
    layout, tree, player = self._layout, self._layout.tree, numbering.player
    nodes = self._owned(player, numbering.part)
    edges = spread(tree.first_edge[nodes], tree.num_actions[nodes])
    if not numbering.part:
      # The empty sequence.
      edges = np.append(edges, -1)
    first = np.sort(np.append(layout.row(player, edges) - numbering.begin, numbering.places))
    # Up to the next row, padding too: parts share their workspaces, and what another has left there would be summed.
    end = numbering.length + len(numbering.entries)
    cuts = -(-np.diff(first, append=end) // lanes)
    lane = np.arange(cuts.sum()) - np.repeat(np.cumsum(cuts) - cuts, cuts)
    return np.asarray(np.repeat(first, cuts) + lanes * lane)


def _by_part(part: Integers, num_parts: int) -> list[Int64s]:
  """Returns which nodes each part has, ascending."""
  order = np.argsort(part, kind="stable")
  return np.split(order, np.searchsorted(part[order], np.arange(1, num_parts)))
