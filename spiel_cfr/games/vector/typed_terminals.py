"""Payoffs of a game of private types in vector form: the terminals of its public tree as `TypedPatterns`."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s, Integers, concatenated_ranges
from spiel_cfr._numba.simd import LANES, MOST_LANES
from spiel_cfr.games.payoffs.private_types import leading, rounded
from spiel_cfr.games.payoffs.typed_patterns import PatternRows, SquareRows, TypedPatterns
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.parts import Numbering
from spiel_cfr.games.vector.public_tree import NO_EDGE, PLAYERS
from spiel_cfr.games.vector.typed_tree import TypedTree


class Squares(NamedTuple):
  """The payoff matrices of all terminals, divided into pieces for the kernel of typed patterns.

  A *row* is the sequences of one action at a public node: one for each of a player's types. The matrix of a terminal
  belongs to each player's last row above it. It has an element for each pair of a type of player 0's row and a type of
  player 1's row.

  For each player, the matrix is divided into *pieces* of at most `lanes` of the player's types and 8 or 16 of the
  opponent's. A piece is a *pattern* times a factor; the pattern is stored once for all pieces that are multiples of it.
  Pieces of zeros are left out. A pattern is stored as one or two *squares*, each with LANES of the opponent's types.

  Attributes:
    matrix: int64 (terminals,). The number of each terminal's matrix. Terminals share a matrix if their rows are of the
      same kinds and their payoffs are equal.
    first: for each player, int64 (matrices + 1,). The first piece of each matrix, then the number of all pieces.
    places: for each player, int64 (pieces, 3). The first of the player's types in each piece, the first of the
      opponent's types, and the first square of the piece's pattern.
    factors: for each player, float64 (pieces,). The factor of each piece's pattern.
    squares: float64 (squares, LANES * lanes). `SquareRows.squares`.
    widths: int64 (squares,). `SquareRows.widths`.
    lanes: int. `SquareRows.lanes`.
  """

  matrix: Int64s
  first: list[Int64s]
  places: list[Int64s]
  factors: list[Float64s]
  squares: Float64s
  widths: Int64s
  lanes: int


def cut_squares(tree: TypedTree, layout: Layout, edges: Integers, lanes: int) -> Squares:
  """Divides the matrices of all terminals into pieces. `edges` are each player's last edges before terminals."""
  row_kinds = [layout.row_kind(player_edges) for player_edges in edges]
  cases, case = np.unique(np.stack([tree.matrix, *row_kinds]), axis=1, return_inverse=True)
  # All patterns have the same number of the opponent's types, because the kernel adds that number for each piece.
  columns = LANES if max(tree.deals.num_types) <= LANES else 2 * LANES
  numbers: dict[bytes, int] = {}
  squares: list[Float64s] = []
  widths: list[int] = []

  def first_square(pattern: Float64s) -> int:
    """Returns the first square of a pattern, and stores the pattern if it is new."""
    padded = np.zeros((columns, lanes))
    padded[: pattern.shape[0], : pattern.shape[1]] = pattern
    number = numbers.setdefault(rounded(padded).tobytes(), len(squares))
    if number == len(squares):
      squares.extend(padded.reshape(columns // LANES, -1))
      widths.extend([len(pattern)] * (columns // LANES))
    return number

  firsts, places, factors = [], [], []
  for player in PLAYERS:
    first, player_places, player_factors = [0], [], []
    for matrix, *kinds in cases.T.tolist():
      payoffs = _payoffs_between(tree, matrix, player, kinds)
      num_other, num_own = payoffs.shape
      for other, own in itertools.product(range(0, num_other, columns), range(0, num_own, lanes)):
        piece = payoffs[other : other + columns, own : own + lanes]
        if factor := leading(piece.reshape(1, -1)).item():
          player_places.append((own, other, first_square(piece / factor)))
          player_factors.append(factor)
      first.append(len(player_places))
    firsts.append(np.array(first))
    places.append(np.array(player_places, np.int64).reshape(-1, 3))
    factors.append(np.array(player_factors))
  flat = np.array(squares).reshape(-1, LANES * lanes)
  return Squares(case.reshape(-1), firsts, places, factors, flat, np.array(widths), lanes)


def _payoffs_between(tree: TypedTree, matrix: int, player: int, kinds: list[int]) -> Float64s:
  """Returns a player's payoffs at a terminal, float64 (opponent's types, player's types).

  Args:
    tree: the public tree.
    matrix: the number of the terminal's matrix in the tree.
    player: the player.
    kinds: the kind of each player's row above the terminal; -1 for the empty sequence.
  """
  payoffs: Float64s = tree.matrices[matrix, player]
  for axis, kind in enumerate(kinds):
    # A player who has not acted has the empty sequence for all types.
    payoffs = (
      payoffs.sum(axis=axis, keepdims=True)
      if kind < 0
      else np.take(payoffs, tree.types[kind][axis], axis=axis)
    )
  return payoffs if player else payoffs.T


class TypedTerminals:
  """Builder of the payoffs of a game of private types and of its parts, a `PayoffBuilder`."""

  def __init__(self, tree: TypedTree, layout: Layout, above: Int32s, dtype: npt.DTypeLike) -> None:
    """Takes each player's last edge before terminals, int32 (players, terminals), and the precision of solvers."""
    self._tree, self._layout, self._above, self._dtype = tree, layout, above, dtype
    self._known_squares: dict[int, Squares] = {}

  def __call__(self, numberings: Sequence[Numbering], terminals: Int64s) -> TypedPatterns:
    """Returns the payoff of some terminals, given each player's numbering of the sequences above them."""

    def rows(lanes: int) -> SquareRows:
      squares = self._squares(lanes)
      player_rows = [self._rows(player, numberings, terminals, squares) for player in PLAYERS]
      return SquareRows(player_rows, squares.squares, squares.widths, lanes)

    single = rows(MOST_LANES) if self._dtype == np.float32 else None
    return TypedPatterns.of_squares(rows(LANES), single)

  def _squares(self, lanes: int) -> Squares:
    if lanes not in self._known_squares:
      self._known_squares[lanes] = cut_squares(self._tree, self._layout, self._above, lanes)
    return self._known_squares[lanes]

  def _rows(
    self, player: int, numberings: Sequence[Numbering], terminals: Int64s, squares: Squares
  ) -> PatternRows:
    """Returns a player's rows of a part, with the pieces of some terminals' matrices."""
    layout, numbering = self._layout, numberings[player]
    rows = [numberings[owner].row(layout, self._above[owner, terminals]) for owner in PLAYERS]
    matrix = squares.matrix[terminals]
    num_pieces = np.diff(squares.first[player])[matrix]
    piece = concatenated_ranges(squares.first[player][matrix], num_pieces)
    own_type, other_type, pattern = squares.places[player][piece].T
    own_sequence = np.repeat(rows[player], num_pieces) + own_type
    other_sequence = np.repeat(rows[1 - player], num_pieces) + other_type
    starts = self._starts(numbering, squares.lanes)
    order = np.argsort(own_sequence, kind="stable")
    ends = np.append(np.searchsorted(own_sequence[order], starts), len(own_sequence))
    return PatternRows(
      starts=starts,
      lengths=np.diff(ends),
      others=np.stack([pattern[order], other_sequence[order]], axis=1),
      factors=squares.factors[player][piece[order]],
      bounds=(*numbering.bounds(layout), len(terminals)),
    )

  def _starts(self, numbering: Numbering, lanes: int) -> Int64s:
    """Returns the first sequence of each row of a part. Rows of more than `lanes` types count as several rows."""
    layout, tree, player = self._layout, self._tree, numbering.player
    edges = concatenated_ranges(tree.first_edge[numbering.nodes], tree.num_actions[numbering.nodes])
    if not numbering.part:
      edges = np.append(edges, NO_EDGE)
    first = np.sort(np.append(layout.row(player, edges) - numbering.begin, numbering.trunk_starts))
    # A row reaches up to the next row. It includes the padding between them, so a gradient sets the padding to 0. Parts
    # share workspaces: without this, the padding would keep values of another part, and these would be summed.
    end = numbering.length + len(numbering.trunk_sequences)
    num_pieces = -(-np.diff(first, append=end) // lanes)
    piece = concatenated_ranges(np.zeros_like(num_pieces), num_pieces)
    return np.asarray(np.repeat(first, num_pieces) + lanes * piece)


def loss_bounds(tree: TypedTree, layout: Layout) -> Float64s:
  """Returns a bound on the counterfactual utilities of each infoset, float64 (infosets,)."""
  result = []
  for player in PLAYERS:
    types = tree.deals.types[player]
    chances: list[Float64s] = [
      np.bincount(types, np.maximum(weights, 0.0), tree.num_types[player])
      .astype(np.float64)
      .take(possible[player])
      for weights, possible in zip(tree.weights, tree.types, strict=True)
    ]
    result.append(layout.at_infosets(player, chances))
  return np.concatenate(result) * max(map(abs, tree.payoff_range))
