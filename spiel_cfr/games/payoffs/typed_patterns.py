"""Typed patterns: payoffs of games with private types (cards, dice, hands) as multiples of few small matrices.

Take the leaves that differ only in the types of the players. Their payoffs, chance's probability included, are a small
tensor with one dimension for each player. Types decide who wins, and the public history decides how much. Most of these
tensors are therefore multiples of a few *patterns*, and each pattern is stored once. A tensor is a pattern, a factor,
and the rows of sequences of the types. Liar's dice with one die a player has 4,095 tensors of 36 leaves each, and 12
patterns for each player.

The types are read off the leaves (`private_types`), without knowledge of cards. `build_payoff` counts whether the form
pays.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import (
  Bools,
  Float64s,
  Int64s,
  aligned,
  concatenated_ranges,
  require,
  require_array,
)
from spiel_cfr._numba.simd import LANES
from spiel_cfr._util import files
from spiel_cfr.games.payoffs import payoff_columns as column
from spiel_cfr.games.payoffs.payoff import Payoff, PayoffArrays, rows_of
from spiel_cfr.games.payoffs.private_types import LeafTensors, find_entries
from spiel_cfr.games.payoffs.typed_gradient import several_player_gradient, two_player_gradient
from spiel_cfr.games.payoffs.utility_bounds import Leaves
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# Size of patterns, in bytes, that fit in a level-2 cache beside the other arrays.
_CACHED = 1 << 20
_NO_PLACES = np.zeros(0, np.int64)
# Lines of `_run_kinds`.
_LENGTH, _TYPES, _WIDTH, _FIRST_PATTERN, _LAST_PATTERN = range(5)


class TypedPatterns(Payoff):
  """Payoffs as multiples of few patterns over private types.

  An *entry* pairs a row of up to `LANES` of the player's types with rows of the other players' types. Longer rows are
  cut. `values` has the factor of each entry. `others`, uint32 (entries, 2 * (players - 1)), has the number of its
  pattern and the rows of the other players, in ascending order: *first*, the first sequence of the row, and *width*,
  its number of sequences. The width of the last row is not stored:

      two players      pattern, first of r
      three players    pattern, width of q, first of q, first of r
      four players     pattern, width of p, first of p, width of q, first of q, first of r

  A pattern has a *square* for each combination of types of the players before the last. A square has `LANES` columns,
  one for each type of the last player r. A column has `LANES` elements, one for each of the player's own types. Squares
  are stored column by column and filled up with zeros. With two players a pattern is one square, or two consecutive
  ones, and pattern number i begins at square i.

  Example: a showdown of Kuhn poker, with types in the order jack, queen, king. The factor is the stake divided by 6.

      own type   r: J   Q   K
          J         0  -1  -1        utility[row + own] += factor * sum over r of
          Q         1   0  -1            pattern[own, r] * strategy[first + r]
          K         1   1   0

  With more players many squares are equal, and `patterns` keeps each once. `squares` lists the squares of each pattern,
  and the number of a pattern is the place of its first square in that list. An element is 2 * (number of the square),
  plus 1 if the last column of the square is not zero. Two patterns, of two squares each, share one:

      squares    0 2 2 5    pattern 0 is squares 0 and 1, pattern 2 is squares 1 and 2; square 2 has a last column

  With two players, all rows of a run with one or two entries have the same patterns. Rows are sorted to make such runs
  long, unless the patterns are too many for a cache.
  """

  form = "typed patterns"

  def __init__(self, arrays: PayoffArrays) -> None:
    """Takes arrays that `build` has made."""
    super().__init__(arrays)
    two_players = len(arrays.players) == 2
    self.gradient = two_player_gradient if two_players else several_player_gradient

  @property
  def num_leaves(self) -> int:
    return int(self.arrays.players[0, column.LEAVES])

  @classmethod
  def build(
    cls, tensors: LeafTensors, leaf_payoffs: Float64s, treeplexes: Sequence[Treeplex]
  ) -> "TypedPatterns":
    """Builds the form from the leaves by tensor, and payoffs of shape (leaves, players)."""
    rows: list[Rows] = []
    places: list[Int64s] = []
    squares: list[Float64s] = []
    num_places = num_squares = 0
    for player, tree in enumerate(treeplexes):
      own = np.arange(tree.root, tree.end)
      starts = own[(tensors.width[own] > 0) & ((own - tensors.first[own]) % LANES == 0)]
      entries = find_entries(tensors, player, leaf_payoffs[:, player])
      entries.lines[:, column.PATTERN] += num_places
      lengths = np.diff(np.append(np.searchsorted(entries.rows, starts), len(entries.rows)))
      num_leaves = int(np.count_nonzero(leaf_payoffs[:, player]))
      bounds = tree.root, tree.end, num_leaves
      rows.append(Rows(starts, lengths, entries.lines, entries.factors, bounds))
      places.append(entries.places + 2 * num_squares)
      squares.append(entries.squares)
      num_places += len(entries.places)
      num_squares += len(entries.squares)
    # With two players, the number of a pattern is the number of its square.
    listed = [] if len(treeplexes) == 2 else places
    patterns = np.concatenate(squares)
    found = SquareRows(rows, patterns, _widths(patterns))
    return cls(_arranged(found, np.concatenate([_NO_PLACES, *listed])))

  @classmethod
  def of_squares(cls, double: "SquareRows", single: "SquareRows | None" = None) -> "TypedPatterns":
    """Builds the form for two players in float64, and in float32 if `single` is given."""
    result = cls(_arranged(double))
    if single is not None:
      arrays = _arranged(single)
      result._single_arrays = arrays._replace(
        values=arrays.values.astype(np.float32), patterns=aligned(arrays.patterns, np.float32)
      )
    return result

  def saved(self) -> files.Arrays:
    """Returns the patterns, and each player's rows sorted by sequence."""
    players, _, _, others, values, patterns, squares = self.arrays
    result = {"patterns": patterns, "squares": squares, "leaves": players[:, column.LEAVES].copy()}
    for player in range(len(players)):
      starts, lengths, entries = self._in_order(player)
      result |= {
        f"{player}.starts": starts.astype(np.uint32),
        f"{player}.lengths": lengths.astype(np.uint32),
        f"{player}.others": others[entries],
        f"{player}.values": values[entries],
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
    rows: list[Rows] = []
    for player, tree in enumerate(treeplexes):
      names = ("starts", "lengths", "others", "values")
      starts, lengths, others, values = (arrays[f"{player}.{name}"] for name in names)
      require_array(starts, "starts", np.uint32, -1)
      require_array(lengths, "lengths", np.uint32, len(starts))
      require_array(values, "values", np.float64, -1)
      require_array(others, "others", np.uint32, len(values), 2 * (num_players - 1))
      require(lengths.sum(dtype=np.float64) == len(values), "rows have all entries")
      bounds = tree.root, tree.end, int(num_leaves[player])
      starts, lengths, others = (array.astype(np.int64) for array in (starts, lengths, others))
      own = Rows(starts, lengths, others, values, bounds)
      _check_rows(own, tree)
      _check_others(own.lines, [*treeplexes[:player], *treeplexes[player + 1 :]], num_patterns)
      rows.append(own)
    patterns = patterns.reshape(-1, LANES**2)
    return cls(_arranged(SquareRows(rows, patterns, _widths(patterns)), squares))

  def leaves(self, player: int) -> Leaves:
    """Lists the leaves by the player's rows."""
    _, _, _, columns, values, patterns, places = self.arrays
    starts, lengths, entries = self._in_order(player)
    own = np.repeat(starts, lengths)
    lines = columns[entries].astype(np.int64)
    # From here on, arrays have one element for each square; after `nonzero`, one for each leaf.
    two_players = lines.shape[1] == 2
    squares = lines[:, 1:-1:2].prod(axis=1)
    if two_players:
      squares *= max(1, -(-int(self.arrays.runs[:, column.WIDTH].max(initial=0)) // LANES))
    entry = np.repeat(np.arange(len(lines)), squares)
    combination = np.arange(len(entry)) - np.repeat(np.cumsum(squares) - squares, squares)
    squares = lines[entry, column.PATTERN] + combination
    if not two_players:
      squares = places[squares] >> 1
    cells = patterns.reshape(-1, LANES, LANES)[squares] * values[entries[entry], None, None]
    square, last_type, own_type = np.nonzero(cells)
    entry, combination = entry[square], combination[square]
    others = [lines[entry, -1] + last_type + (LANES * combination if two_players else 0)]
    for line in range(lines.shape[1] - 3, 0, -2):
      others.insert(0, lines[entry, line + 1] + combination % lines[entry, line])
      combination = combination // lines[entry, line]
    # Entries list the other players in ascending order, `Leaves` from the next player on.
    others = others[player:] + others[:player]
    return Leaves(
      (own[entry] + own_type).astype(np.uint32),
      np.stack(others).astype(np.uint32),
      cells[square, last_type, own_type],
    )

  def _in_order(self, player: int) -> tuple[Int64s, Int64s, Int64s]:
    """Returns a player's rows sorted by sequence: first sequences, numbers of entries, and the entries of all rows."""
    starts, lengths, first = rows_of(self.arrays, player)
    order = np.argsort(starts)
    entries = first + concatenated_ranges((np.cumsum(lengths) - lengths)[order], lengths[order])
    return starts[order], lengths[order], entries


class Rows(NamedTuple):
  """One player's rows, before they are arranged in runs.

  Attributes:
    starts: int64 (rows,). The first sequence of each row.
    lengths: int64 (rows,). The number of entries of each row.
    lines: integers (entries, columns). The columns of `others`, see `TypedPatterns`.
    factors: float64 (entries,). The factor of each entry.
    bounds: the player's root, one past its last sequence, and its number of leaves.
  """

  starts: Int64s
  lengths: Int64s
  lines: npt.NDArray[Any]
  factors: Float64s
  bounds: Sequence[int]


class SquareRows(NamedTuple):
  """All players' rows, and the patterns that they are multiples of.

  Attributes:
    rows: one `Rows` for each player.
    squares: float64 (squares, LANES * lanes). The squares, column by column, `LANES` columns each. With two players,
      two consecutive squares may be one pattern.
    widths: int64 (squares,). The number of columns of the pattern that begins at each square.
    lanes: int. The number of the player's types side by side.
  """

  rows: Sequence[Rows]
  squares: Float64s
  widths: Int64s
  lanes: int = LANES


def _run_kinds(own: Rows, found: SquareRows) -> Int64s:
  """Returns the properties that all rows of a run share, shape (5, rows)."""
  kinds = np.zeros((5, len(own.starts)), np.int64)
  kinds[_LENGTH] = own.lengths
  kinds[_TYPES] = np.minimum(np.diff(own.starts, append=own.bounds[1]), found.lanes)
  if len(found.rows) > 2:
    kinds[_WIDTH] = found.lanes
    return kinds
  patterns, begins = own.lines[:, column.PATTERN], np.cumsum(own.lengths) - own.lengths
  some, few = own.lengths > 0, (own.lengths == 1) | (own.lengths == 2)
  if some.any():
    kinds[_WIDTH, some] = np.maximum.reduceat(found.widths[patterns], begins[some])
  kinds[_WIDTH] += kinds[_WIDTH] % 2
  kinds[_FIRST_PATTERN, few] = patterns[begins[few]]
  kinds[_LAST_PATTERN, few] = patterns[(begins + own.lengths)[few] - 1]
  return kinds


def _arranged(found: SquareRows, places: npt.NDArray[Any] = _NO_PLACES) -> PayoffArrays:
  """Arranges all players' rows in runs, see `TypedPatterns`; `places` become its `squares`."""
  sorts_rows = len(found.rows) == 2 and found.squares.nbytes <= _CACHED
  players, runs, starts, entries = [], [], [], []
  num_rows = num_entries = num_runs = 0
  for own in found.rows:
    kinds, order = _run_kinds(own, found), np.arange(len(own.starts))
    if sorts_rows:
      order = np.lexsort(kinds[::-1])
    kinds = kinds[:, order]
    is_new = np.diff(kinds, axis=1, prepend=-1).any(axis=0)
    firsts = np.flatnonzero(is_new)
    ends = np.append(firsts[1:], len(order))
    length, num_types, width, _, _ = kinds[:, firsts]
    num_taken = (ends - firsts) * length
    first_entry = num_entries + np.cumsum(num_taken) - num_taken
    runs.append(
      np.stack([num_rows + firsts, num_rows + ends, first_entry, length, num_types, width], axis=1)
    )
    starts.append(own.starts[order])
    begins = np.cumsum(own.lengths) - own.lengths
    entries.append(num_entries + concatenated_ranges(begins[order], own.lengths[order]))
    root, end, num_leaves = own.bounds
    players.append((root, end, num_runs, num_runs + len(firsts), num_leaves))
    num_rows, num_runs = num_rows + len(order), num_runs + len(firsts)
    num_entries += len(own.lines)
  entry_order = np.concatenate(entries)
  lines = np.concatenate([own.lines for own in found.rows])
  return PayoffArrays(
    players=np.array(players, np.uint64),
    runs=np.concatenate(runs).astype(np.uint64),
    rows=np.concatenate(starts).astype(np.uint32),
    others=lines[entry_order].astype(np.uint32, order="C"),
    values=np.concatenate([own.factors for own in found.rows])[entry_order],
    patterns=aligned(found.squares.reshape(-1)),
    squares=places.astype(np.uint32),
  )


def _widths(squares: Float64s) -> Int64s:
  """Returns the number of columns of each square up to the last that is not zero."""
  cells: Bools = np.any(squares.reshape(len(squares), LANES, -1) != 0, axis=2)
  return np.where(cells.any(axis=1), LANES - cells[:, ::-1].argmax(axis=1), 0)


def _check_rows(rows: Rows, tree: Treeplex) -> None:
  """Raises ValueError unless a player's rows are in order and cover all of its sequences."""
  starts = rows.starts
  require(np.diff(starts) > 0, "rows are in order")
  require((starts >= tree.root) & (starts + LANES <= tree.end), "rows are in their treeplex")
  written = np.zeros(tree.end - tree.root, bool)
  written[
    concatenated_ranges(starts - tree.root, np.minimum(np.diff(starts, append=tree.end), LANES))
  ] = True
  require(written[0], "rows have all sequences")
  for sequences, _ in tree.infoset_groups():
    require(written[sequences - tree.root], "rows have all sequences")


def _check_others(lines: Int64s, others: Sequence[Treeplex], num_patterns: int) -> None:
  """Raises ValueError unless all sequences and patterns of entries exist, given the other players' treeplexes."""
  *outer, last = others
  combinations = np.ones(len(lines))
  for place, tree in enumerate(outer):
    width, first = lines[:, 1 + 2 * place], lines[:, 2 + 2 * place]
    require((width > 0) & (first >= tree.root), "others' rows are in their treeplexes")
    require(first + np.maximum(width, LANES) <= tree.end, "others' rows are in their treeplexes")
    combinations *= width
  # Kernels read a whole vector of the last two players' types.
  require(not outer or lines[:, -3] <= LANES, "rows are cut")
  require(lines[:, column.PATTERN] + combinations <= num_patterns, "patterns are there")
  first = lines[:, -1]
  require(
    (first >= last.root) & (first + LANES <= last.end), "others' rows are in their treeplexes"
  )
