"""Typed patterns: payoffs of games with private types (cards, dice, hands) as multiples of few small matrices.

The payoffs of leaves that differ only in the players' types, times chance's probability, are a small tensor with one
dimension for each player. Types decide who wins, and the public history decides how much. Most tensors are therefore
multiples of a few *patterns*, which are stored once. A tensor is a pattern, a factor, and the rows of sequences of the
types. Liar's dice with one die a player has 4,095 tensors of 36 leaves each, and 12 patterns for each player.

`private_types` finds the types in the leaves, without knowledge of cards. `build_payoff` tests whether the form reads
less memory than a list of leaves.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import (
  AnyFloats,
  Bools,
  Float64s,
  Int64s,
  aligned,
  concatenated_ranges,
  range_starts,
  require,
  require_array,
)
from spiel_cfr._numba.simd import LANES
from spiel_cfr._numba.steps import Step
from spiel_cfr._util import files
from spiel_cfr.games.payoffs import runs as column
from spiel_cfr.games.payoffs.payoff import Payoff, summed_scales
from spiel_cfr.games.payoffs.private_types import LeafTensors, find_terms
from spiel_cfr.games.payoffs.runs import rows_of
from spiel_cfr.games.payoffs.typed_gradient import (
  PATTERN,
  WIDTH,
  PatternArrays,
  PatternGradient,
  several_player_gradient,
  two_player_gradient,
)
from spiel_cfr.games.payoffs.utility_bounds import Leaves
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# Size of patterns, in bytes, that fit in a level-2 cache beside the other arrays.
_CACHED = 1 << 20
_NO_SQUARES = np.zeros(0, np.int64)
# Lines of `_run_keys`.
_LENGTH, _TYPES, _WIDTH, _FIRST_PATTERN, _LAST_PATTERN = range(5)


class TypedPatterns(Payoff):
  """Payoffs as multiples of few patterns over private types.

  A *term* pairs a row of up to `LANES` of the player's types with rows of the other players' types. Longer rows are
  cut. `values` has the factor of each term. `others`, uint32 (terms, 2 * (players - 1)), has the number of the term's
  pattern and the rows of the other players p, q, r, in ascending order: *first* is the first sequence of a row, and
  *width* its number of sequences. The width of the last row is not stored:

      two players      pattern, first of r
      three players    pattern, width of q, first of q, first of r
      four players     pattern, width of p, first of p, width of q, first of q, first of r

  A pattern has a *square* for each combination of types of the other players before the last. A square has `LANES`
  columns, one for each type of the last player r. A column has `LANES` elements, one for each of the player's types.
  Squares are stored column by column and padded with zeros. With two players a pattern is one square, or two
  consecutive squares, and pattern number i begins at square i.

  Example: a showdown of Kuhn poker, with types in the order jack, queen, king. The factor is the stake divided by 6.

      type       r: J   Q   K
          J         0  -1  -1        utility[row + type] += factor * sum over r of
          Q         1   0  -1            pattern[type, r] * strategy[first + r]
          K         1   1   0

  With more players many squares are equal, and `patterns` has each of them once. `squares` lists the squares of each
  pattern, and the number of a pattern is the index of its first square in that list. An element is 2 * (number of the
  square), plus 1 if the last column of the square is not zero. For example, two patterns of two squares share square 1:

      squares    0 2 2 5    pattern 0 is squares 0 and 1, pattern 2 is squares 1 and 2; square 2 has a last column

  With two players, all rows of a run with one or two terms have the same patterns. Rows are sorted to make such runs
  long, unless the patterns are too many for a cache.
  """

  form = "typed patterns"
  arrays: PatternArrays

  def __init__(self, arrays: PatternArrays, single: PatternArrays | None = None) -> None:
    """Takes the arrays that `build` or another constructor makes; `single` has those of a game in float32."""
    super().__init__(arrays)
    self._single = single or arrays

  def gradient_step(self, player: int, sequence_form: AnyFloats, utility: AnyFloats) -> Step:
    kernel = two_player_gradient if len(self.arrays.player_bounds) == 2 else several_player_gradient
    arrays = self.arrays if utility.dtype == np.float64 else self._single
    return kernel.on(PatternGradient(player, arrays, sequence_form, utility), utility.dtype)

  def infoset_scales(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    values, patterns = np.abs(self.arrays.values), np.abs(self.arrays.patterns)
    absolute = TypedPatterns(self.arrays._replace(values=values, patterns=patterns))
    return summed_scales(absolute, treeplexes, player)

  @property
  def num_leaves(self) -> int:
    return int(self.arrays.player_bounds[0, column.LEAVES])

  @classmethod
  def build(
    cls, tensors: LeafTensors, leaf_payoffs: Float64s, treeplexes: Sequence[Treeplex]
  ) -> "TypedPatterns":
    """Builds the form from the leaves by tensor, and payoffs of shape (leaves, players)."""
    rows: list[PatternRows] = []
    pattern_squares: list[Int64s] = []
    squares: list[Float64s] = []
    num_listed = num_squares = 0
    for player, tree in enumerate(treeplexes):
      sequences = np.arange(tree.root, tree.end)
      offsets = sequences - tensors.first[sequences]
      starts = sequences[(tensors.width[sequences] > 0) & (offsets % LANES == 0)]
      terms = find_terms(tensors, player, leaf_payoffs[:, player])
      terms.others[:, PATTERN] += num_listed
      lengths = np.diff(np.append(np.searchsorted(terms.rows, starts), len(terms.rows)))
      num_leaves = int(np.count_nonzero(leaf_payoffs[:, player]))
      bounds = tree.root, tree.end, num_leaves
      rows.append(PatternRows(starts, lengths, terms.others, terms.factors, bounds))
      pattern_squares.append(terms.pattern_squares + 2 * num_squares)
      squares.append(terms.squares)
      num_listed += len(terms.pattern_squares)
      num_squares += len(terms.squares)
    # With two players, the number of a pattern is the number of its square.
    listed = [] if len(treeplexes) == 2 else pattern_squares
    all_squares = np.concatenate(squares)
    square_rows = SquareRows(rows, all_squares, _widths(all_squares))
    return cls(_arranged(square_rows, np.concatenate([_NO_SQUARES, *listed])))

  @classmethod
  def of_squares(cls, double: "SquareRows", single: "SquareRows | None" = None) -> "TypedPatterns":
    """Builds the form for two players in float64, and in float32 if `single` is given."""
    if single is None:
      return cls(_arranged(double))
    arrays = _arranged(single)
    values, patterns = arrays.values.astype(np.float32), aligned(arrays.patterns, np.float32)
    return cls(_arranged(double), arrays._replace(values=values, patterns=patterns))

  def saved(self) -> files.Arrays:
    """Returns the patterns, and each player's rows sorted by sequence."""
    bounds, _, _, others, values, patterns, squares = self.arrays
    result = {"patterns": patterns, "squares": squares, "leaves": bounds[:, column.LEAVES].copy()}
    for player in range(len(bounds)):
      starts, lengths, terms = self._in_order(player)
      result |= {
        f"{player}.starts": starts.astype(np.uint32),
        f"{player}.lengths": lengths.astype(np.uint32),
        f"{player}.others": others[terms],
        f"{player}.values": values[terms],
      }
    return result

  @classmethod
  def restored(cls, arrays: Mapping[str, Any], treeplexes: Sequence[Treeplex]) -> "TypedPatterns":
    """Checks the arrays of a file, and arranges the rows in runs again."""
    patterns, squares, num_leaves = (arrays[name] for name in ("patterns", "squares", "leaves"))
    num_players = len(treeplexes)
    require_array(patterns, "patterns", np.float64, -1)
    require_array(squares, "squares", np.uint32, 0 if num_players == 2 else -1)
    require_array(num_leaves, "leaves", np.uint64, num_players)
    require(len(patterns) % LANES**2 == 0, "patterns are squares")
    num_squares = len(patterns) // LANES**2
    require(squares < 2 * num_squares, "squares are there")
    num_patterns = num_squares if num_players == 2 else len(squares)
    rows: list[PatternRows] = []
    for player, tree in enumerate(treeplexes):
      names = ("starts", "lengths", "others", "values")
      starts, lengths, others, values = (arrays[f"{player}.{name}"] for name in names)
      require_array(starts, "starts", np.uint32, -1)
      require_array(lengths, "lengths", np.uint32, len(starts))
      require_array(values, "values", np.float64, -1)
      require_array(others, "others", np.uint32, len(values), 2 * (num_players - 1))
      require(lengths.sum(dtype=np.float64) == len(values), "rows have all terms")
      bounds = tree.root, tree.end, int(num_leaves[player])
      starts, lengths, others = (array.astype(np.int64) for array in (starts, lengths, others))
      _check_rows(starts, tree)
      _check_others(others, [*treeplexes[:player], *treeplexes[player + 1 :]], num_patterns)
      rows.append(PatternRows(starts, lengths, others, values, bounds))
    patterns = patterns.reshape(-1, LANES**2)
    return cls(_arranged(SquareRows(rows, patterns, _widths(patterns)), squares))

  def leaves(self, player: int) -> Leaves:
    """Lists a player's leaves, sorted by its rows."""
    starts, lengths, terms = self._in_order(player)
    first_sequence = np.repeat(starts, lengths)
    columns = self.arrays.others[terms].astype(np.int64)
    two_players = columns.shape[1] == 2
    num_squares = columns[:, 1:-1:2].prod(axis=1)
    if two_players:
      num_squares *= max(1, -(-int(self.arrays.runs[:, WIDTH].max(initial=0)) // LANES))
    # `term`, `combination` and `squares` have an element for each square of each term.
    term = np.repeat(np.arange(len(columns)), num_squares)
    combination = concatenated_ranges(np.zeros_like(num_squares), num_squares)
    squares = columns[term, PATTERN] + combination
    if not two_players:
      squares = self.arrays.squares[squares] >> 1
    factors = self.arrays.values[terms[term]]
    cells = self.arrays.patterns.reshape(-1, LANES, LANES)[squares] * factors[:, None, None]
    # From here on, arrays have an element for each leaf.
    square, last_type, own_type = np.nonzero(cells)
    term, combination = term[square], combination[square]
    others = [columns[term, -1] + last_type + (LANES * combination if two_players else 0)]
    for width in range(columns.shape[1] - 3, 0, -2):
      others.insert(0, columns[term, width + 1] + combination % columns[term, width])
      combination = combination // columns[term, width]
    # Terms list the other players in ascending order, `Leaves` from the next player on.
    others = others[player:] + others[:player]
    return Leaves(
      (first_sequence[term] + own_type).astype(np.uint32),
      np.stack(others).astype(np.uint32),
      cells[square, last_type, own_type],
    )

  def _in_order(self, player: int) -> tuple[Int64s, Int64s, Int64s]:
    """Returns a player's rows sorted by sequence.

    Returns:
      int64 (rows,), the first sequence of each row; int64 (rows,), its number of terms; int64 (terms,), all terms, row
      by row.
    """
    starts, lengths, first_term = rows_of(*self.arrays[:3], player)
    order = np.argsort(starts)
    terms = first_term + concatenated_ranges(range_starts(lengths)[order], lengths[order])
    return starts[order], lengths[order], terms


class PatternRows(NamedTuple):
  """One player's rows, before they are arranged in runs.

  Attributes:
    starts: int64 (rows,). The first sequence of each row.
    lengths: int64 (rows,). The number of terms of each row.
    others: integers (terms, columns). The pattern and the other players' rows of each term, see `TypedPatterns`.
    factors: float64 (terms,). The factor of each term's pattern.
    bounds: three integers. The player's root, one past its last sequence, and its number of leaves.
  """

  starts: Int64s
  lengths: Int64s
  others: npt.NDArray[Any]
  factors: Float64s
  bounds: Sequence[int]


class SquareRows(NamedTuple):
  """All players' rows, and the squares of their patterns.

  Attributes:
    rows: list of `PatternRows`, one for each player.
    squares: float64 (squares, LANES * lanes). The squares. Each has `LANES` columns of `lanes` elements, column by
      column. With two players, two consecutive squares may be one pattern.
    widths: int64 (squares,). The number of columns of the pattern that begins at each square.
    lanes: int. The number of elements of a column, one for each of the player's types.
  """

  rows: Sequence[PatternRows]
  squares: Float64s
  widths: Int64s
  lanes: int = LANES


def _run_keys(rows: PatternRows, square_rows: SquareRows) -> Int64s:
  """Returns the properties that are the same for all rows of a run, int64 (5, rows).

  The lines are the number of terms, the number of types, the width of patterns, the first pattern and the last. Both
  patterns are set only for rows of one or two terms.
  """
  keys = np.zeros((5, len(rows.starts)), np.int64)
  keys[_LENGTH] = rows.lengths
  keys[_TYPES] = np.minimum(np.diff(rows.starts, append=rows.bounds[1]), square_rows.lanes)
  if len(square_rows.rows) > 2:
    keys[_WIDTH] = square_rows.lanes
    return keys
  patterns, first_term = rows.others[:, PATTERN], range_starts(rows.lengths)
  has_terms, has_few = rows.lengths > 0, (rows.lengths == 1) | (rows.lengths == 2)
  if has_terms.any():
    widths = square_rows.widths[patterns]
    keys[_WIDTH, has_terms] = np.maximum.reduceat(widths, first_term[has_terms])
  keys[_WIDTH] += keys[_WIDTH] % 2
  keys[_FIRST_PATTERN, has_few] = patterns[first_term[has_few]]
  keys[_LAST_PATTERN, has_few] = patterns[(first_term + rows.lengths)[has_few] - 1]
  return keys


def _arranged(
  square_rows: SquareRows, pattern_squares: npt.NDArray[Any] = _NO_SQUARES
) -> PatternArrays:
  """Arranges all players' rows in runs, see `TypedPatterns`; `pattern_squares` become its `squares`."""
  sorts_rows = len(square_rows.rows) == 2 and square_rows.squares.nbytes <= _CACHED
  bounds, runs, starts, terms = [], [], [], []
  num_rows = num_terms = num_runs = 0
  for rows in square_rows.rows:
    keys, order = _run_keys(rows, square_rows), np.arange(len(rows.starts))
    if sorts_rows:
      order = np.lexsort(keys[::-1])
    keys = keys[:, order]
    begins_run = np.diff(keys, axis=1, prepend=-1).any(axis=0)
    first_row = np.flatnonzero(begins_run)
    end_row = np.append(first_row[1:], len(order))
    length, num_types, width, _, _ = keys[:, first_row]
    first_term = num_terms + range_starts((end_row - first_row) * length)
    columns = num_rows + first_row, num_rows + end_row, first_term, length, num_types, width
    runs.append(np.stack(columns, axis=1))
    starts.append(rows.starts[order])
    row_terms = range_starts(rows.lengths)
    terms.append(num_terms + concatenated_ranges(row_terms[order], rows.lengths[order]))
    root, end, num_leaves = rows.bounds
    bounds.append((root, end, num_runs, num_runs + len(first_row), num_leaves))
    num_rows, num_runs = num_rows + len(order), num_runs + len(first_row)
    num_terms += len(rows.others)
  term_order = np.concatenate(terms)
  others = np.concatenate([rows.others for rows in square_rows.rows])
  return PatternArrays(
    player_bounds=np.array(bounds, np.uint64),
    runs=np.concatenate(runs).astype(np.uint64),
    rows=np.concatenate(starts).astype(np.uint32),
    others=others[term_order].astype(np.uint32, order="C"),
    values=np.concatenate([rows.factors for rows in square_rows.rows])[term_order],
    patterns=aligned(square_rows.squares.reshape(-1)),
    squares=pattern_squares.astype(np.uint32),
  )


def _widths(squares: Float64s) -> Int64s:
  """Returns the number of columns of each square up to the last that is not zero."""
  cells: Bools = np.any(squares.reshape(len(squares), LANES, -1) != 0, axis=2)
  return np.where(cells.any(axis=1), LANES - cells[:, ::-1].argmax(axis=1), 0)


def _check_rows(starts: Int64s, tree: Treeplex) -> None:
  """Raises ValueError unless a player's rows, given their first sequences, are in order and cover all sequences."""
  require(np.diff(starts) > 0, "rows are in order")
  require((starts >= tree.root) & (starts + LANES <= tree.end), "rows are in their treeplex")
  written = np.zeros(tree.end - tree.root, bool)
  written[
    concatenated_ranges(starts - tree.root, np.minimum(np.diff(starts, append=tree.end), LANES))
  ] = True
  require(written[0], "rows have all sequences")
  for sequences, _ in tree.infoset_groups():
    require(written[sequences - tree.root], "rows have all sequences")


def _check_others(others: Int64s, other_trees: Sequence[Treeplex], num_patterns: int) -> None:
  """Raises ValueError unless the sequences and patterns of all terms exist, given the other players' treeplexes."""
  *outer, last = other_trees
  num_squares = np.ones(len(others))
  for index, tree in enumerate(outer):
    width, first = others[:, 1 + 2 * index], others[:, 2 + 2 * index]
    require((width > 0) & (first >= tree.root), "others' rows are in their treeplexes")
    require(first + np.maximum(width, LANES) <= tree.end, "others' rows are in their treeplexes")
    num_squares *= width
  # Kernels read a whole vector of the last two players' types.
  require(not outer or others[:, -3] <= LANES, "rows are cut")
  require(others[:, PATTERN] + num_squares <= num_patterns, "patterns are there")
  first = others[:, -1]
  require(
    (first >= last.root) & (first + LANES <= last.end), "others' rows are in their treeplexes"
  )
