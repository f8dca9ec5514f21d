"""The terminals of a public tree as rows of `TypedPatterns`, for the whole tree or for a part."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s, Integers, concatenated_ranges
from spiel_cfr._numba.simd import LANES, MOST_LANES
from spiel_cfr.games.payoffs.private_types import leading, rounded
from spiel_cfr.games.payoffs.typed_patterns import Rows, SquareRows, TypedPatterns
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.parts import Numbering
from spiel_cfr.games.vector.public_tree import NO_EDGE, PLAYERS
from spiel_cfr.games.vector.typed_tree import TypedTree


class Squares(NamedTuple):
  """The matrices of all terminals, cut into pieces for the kernel of typed patterns.

  A terminal has the part of its matrix whose types are possible where the players acted last, between these two rows.
  For each player, that part is cut into pieces of `lanes` of the player's types and up to 16 of the opponent's. Each
  piece is a multiple of a pattern. Pieces of zeros are left out.

  Attributes:
    matrix: int64 (terminals,). The number of each terminal's matrix; matrices between different rows are different.
    first: for each player, int64 (matrices + 1,). The first piece of each matrix, then the number of pieces.
    cuts: for each player, int64 (pieces, 3). The first of the player's types, the first of the opponent's, and the
      first square of the pattern.
    factors: for each player, float64 (pieces,). The factor of the pattern.
    squares: as of `SquareRows`.
    widths: as of `SquareRows`.
    lanes: as of `SquareRows`.
  """

  matrix: Int64s
  first: list[Int64s]
  cuts: list[Int64s]
  factors: list[Float64s]
  squares: Float64s
  widths: Int64s
  lanes: int


def cut_squares(tree: TypedTree, layout: Layout, edges: Integers, lanes: int) -> Squares:
  """Cuts the matrices of all terminals into squares; `edges` are each player's last edges before terminals."""
  rows = [layout.row_kind(own) for own in edges]
  cases, case = np.unique(np.stack([tree.matrix, *rows]), axis=1, return_inverse=True)
  # All patterns have the same number of columns, since the kernel adds as many columns of each entry of a row.
  columns = LANES if max(tree.deals.num_types) <= LANES else 2 * LANES
  numbers: dict[bytes, int] = {}
  squares: list[Float64s] = []
  widths: list[int] = []

  def place(pattern: Float64s) -> int:
    """Returns the first square of a pattern."""
    padded = np.zeros((columns, lanes))
    padded[: pattern.shape[0], : pattern.shape[1]] = pattern
    number = numbers.setdefault(rounded(padded).tobytes(), len(squares))
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
  """Returns a player's payoffs by the opponent's type and its own, between rows of these kinds."""
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
  """Builds the payoffs of a game of private types, and of its parts: each terminal is a matrix between two rows."""

  def __init__(
    self, tree: TypedTree, layout: Layout, above: Int32s, dtype: npt.DTypeLike = np.float64
  ) -> None:
    """Takes the edges above terminals, int32 (players, terminals), and the precision of solvers."""
    self._tree, self._layout, self._above, self._dtype = tree, layout, above, dtype
    self._known_squares: dict[int, Squares] = {}

  def __call__(self, numberings: Sequence[Numbering], terminals: Int64s) -> TypedPatterns:
    """Returns the payoff of some terminals, given each player's numbering of the sequences above them."""

    def rows(lanes: int) -> SquareRows:
      squares = self._squares(lanes)
      own = [self._rows(player, numberings, terminals, squares) for player in PLAYERS]
      return SquareRows(own, squares.squares, squares.widths, lanes)

    single = rows(MOST_LANES) if self._dtype == np.float32 else None
    return TypedPatterns.of_squares(rows(LANES), single)

  def _squares(self, lanes: int) -> Squares:
    if lanes not in self._known_squares:
      self._known_squares[lanes] = cut_squares(self._tree, self._layout, self._above, lanes)
    return self._known_squares[lanes]

  def _rows(
    self, player: int, numberings: Sequence[Numbering], terminals: Int64s, squares: Squares
  ) -> Rows:
    """Returns a player's rows of a part, with some terminals."""
    layout, numbering = self._layout, numberings[player]
    above = [owner.row(layout, self._above[owner.player, terminals]) for owner in numberings]
    matrix = squares.matrix[terminals]
    counts = np.diff(squares.first[player])[matrix]
    square = concatenated_ranges(squares.first[player][matrix], counts)
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
      bounds=(*numbering.bounds(layout), len(terminals)),
    )

  def _starts(self, numbering: Numbering, lanes: int) -> Int64s:
    """Returns the first sequences of the rows of a part, cut after `lanes` types: everything that a gradient writes."""
    layout, tree, player = self._layout, self._tree, numbering.player
    edges = concatenated_ranges(tree.first_edge[numbering.nodes], tree.num_actions[numbering.nodes])
    if not numbering.part:
      edges = np.append(edges, NO_EDGE)
    first = np.sort(np.append(layout.row(player, edges) - numbering.begin, numbering.starts))
    # Rows reach up to the next row, padding included. Parts share workspaces, and another part's values in the padding
    # would be summed.
    end = numbering.length + len(numbering.trunk_sequences)
    cuts = -(-np.diff(first, append=end) // lanes)
    lane = np.arange(cuts.sum()) - np.repeat(np.cumsum(cuts) - cuts, cuts)
    return np.asarray(np.repeat(first, cuts) + lanes * lane)


def loss_bounds(tree: TypedTree, layout: Layout) -> Float64s:
  """Returns D of each infoset, float64 (infosets,): see `VectorGame.loss_bounds`."""
  result = []
  for player in PLAYERS:
    types = tree.deals.types[player]
    mass: list[Float64s] = [
      np.bincount(types, np.maximum(weights, 0.0), tree.num_types[player])
      .astype(np.float64)
      .take(own[player])
      for weights, own in zip(tree.weights, tree.types, strict=True)
    ]
    result.append(layout.at_infosets(player, mass))
  return np.concatenate(result) * max(map(abs, tree.payoff_range))
