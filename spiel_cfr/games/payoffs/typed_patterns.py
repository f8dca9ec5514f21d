"""Payoffs of games with private types (cards, dice, hands), in a form that exploits them.

Take the leaves that differ in nothing but the types of the players. Their payoffs, chance's probability included, are a
small tensor with a dimension for each player, and games have few such tensors that are not multiples of each other: who
wins depends on the types, how much on the rest. So each such pattern is stored once, and for each block of leaves which
pattern it is, where the types' sequences are, and the factor. Liar's dice with one die a player has 4,095 blocks of 36
leaves each, and 12 patterns for each player.

Nothing here knows of cards. What is a type is read off the leaves (`private_types`), and whether this form pays is a
matter of counting (`build.build_payoff`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import (
  Bools,
  Float64s,
  Int64s,
  Uint32s,
  aligned,
  require,
  require_array,
  spread,
)
from spiel_cfr._numba.simd import LANES
from spiel_cfr.games.payoffs.pattern_entries import find_entries
from spiel_cfr.games.payoffs.payoff import (
  END,
  END_ROW,
  END_RUN,
  FIRST_ENTRY,
  FIRST_ROW,
  FIRST_RUN,
  LEAVES,
  LENGTH,
  ROOT,
  Payoff,
  PayoffArrays,
  check_runs,
  check_sequences,
  rows_of,
)
from spiel_cfr.games.payoffs.private_types import Blocks
from spiel_cfr.games.payoffs.typed_gradient import (
  PATTERN,
  TYPES,
  WIDTH,
  several_player_gradient,
  two_player_gradient,
)
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# Bytes of patterns that a level-2 cache holds beside all else.
_CACHED = 1 << 20
_NO_PLACES = np.zeros(0, np.int64)


class TypedPatterns(Payoff):
  """Payoffs as multiples of few patterns over private types.

  A pattern is a tensor whose last dimension is the player's own, and the one before the last other player's, both
  padded to `LANES`: a square for each combination of the others' types. Rows longer than a vector are cut. Whatever
  part of a player's own row meets parts of rows of the last two other players, and full rows of the others, is an
  entry: `others`, of shape (entries, 2 * (players - 1)), has its pattern, then for each other player but the last, the
  width and the first sequence of its row, then the first sequence of the last one's; `values` has its factor.

  `patterns` has the squares, end to end. With two players a pattern is one square, and is named by its number. With
  more, many squares are alike, and are kept once: `squares` is a list of them in which each pattern has neighbouring
  places, and the first of these names it. The list has twice the number of a square, plus one if anything in its last
  column is not zero.

  A run of rows has two more columns, see `typed_gradient`. With two players, rows of a run with one or two entries have
  the same patterns in them. Rows are then sorted to that end, unless there are too many patterns to stay in a cache.
  """

  form = "typed patterns"

  def __init__(self, arrays: PayoffArrays) -> None:
    """Takes arrays that `build` has made."""
    super().__init__(arrays)
    two_players = len(arrays.players) == 2
    self.gradient = two_player_gradient if two_players else several_player_gradient

  @classmethod
  def build(
    cls, blocks: Blocks, leaf_payoffs: Float64s, treeplexes: Sequence[Treeplex]
  ) -> "TypedPatterns":
    """Builds it.

    Args:
      blocks: the leaves by block.
      leaf_payoffs: shape (leaves, players).
      treeplexes: one per player.
    """
    rows: list[_Rows] = []
    places: list[Int64s] = []
    squares: list[Float64s] = []
    num_places = num_squares = 0
    for player, tree in enumerate(treeplexes):
      own = np.arange(tree.root, tree.end)
      starts = own[(blocks.width[own] > 0) & ((own - blocks.first[own]) % LANES == 0)]
      entries = find_entries(blocks, player, leaf_payoffs[:, player])
      entries.lines[:, PATTERN] += num_places
      lengths = np.diff(np.append(np.searchsorted(entries.rows, starts), len(entries.rows)))
      num_leaves = int(np.count_nonzero(leaf_payoffs[:, player]))
      bounds = tree.root, tree.end, num_leaves
      rows.append(_Rows(starts, lengths, entries.lines, entries.factors, bounds))
      places.append(entries.places + 2 * num_squares)
      squares.append(entries.squares)
      num_places += len(entries.places)
      num_squares += len(entries.squares)
    # What names a square is then the square itself.
    listed = [] if len(treeplexes) == 2 else places
    return cls(_arranged(rows, np.concatenate(squares), np.concatenate([_NO_PLACES, *listed])))

  def gains(self) -> "TypedPatterns":
    """Returns the payoffs of two players, losses counting as nothing; of leaves, it counts as many as before."""
    players, _, _, others, values, patterns, squares = self.arrays
    # Whatever is negative in a pattern is a gain where the factor is negative too.
    others = others.copy()
    others[values < 0, PATTERN] += np.uint32(len(patterns) // LANES**2)
    rows: list[_Rows] = []
    for player, bounds in enumerate(players[:, [ROOT, END, LEAVES]].tolist()):
      starts, lengths, entries = self._in_order(player)
      rows.append(_Rows(starts, lengths, others[entries], np.abs(values[entries]), bounds))
    gained = np.concatenate([np.maximum(patterns, 0.0), np.maximum(-patterns, 0.0)])
    return TypedPatterns(_arranged(rows, gained.reshape(-1, LANES**2), squares))

  def check(self, treeplexes: Sequence[Treeplex], real: Bools) -> None:
    """Also checks that all that vectors of types reach is there, and that every utility is written."""
    players, runs, _, others, values, patterns, places = self.arrays
    num_players, square = len(treeplexes), LANES * LANES
    check_runs(self.arrays, treeplexes)
    require_array(others, "others", np.uint32, len(values), 2 * (num_players - 1))
    require_array(patterns, "patterns", np.float64, -1)
    require_array(places, "squares", np.uint32, -1)
    require(len(patterns) % square == 0, "patterns are squares")
    num_patterns = len(patterns) // square
    if num_players == 2:
      require(len(places) == 0, "patterns of two players are squares themselves")
      wide = _widths(patterns)
    else:
      in_last = _widths(patterns) == LANES
      require(places < 2 * num_patterns, "squares are there")
      require(places % 2 >= in_last[places // 2], "squares with a last column are marked")
      num_patterns = len(places)
    require(runs[:, TYPES] <= LANES, "rows are cut")
    lines = others.astype(np.int64)
    for player, tree in enumerate(treeplexes):
      begin, end = players[player, [FIRST_RUN, END_RUN]].tolist()
      own, lengths, first = rows_of(self.arrays, player)
      mine = runs[begin:end].astype(np.int64)
      num_rows = mine[:, END_ROW] - mine[:, FIRST_ROW]
      num_types, width = (np.repeat(mine[:, column], num_rows) for column in (TYPES, WIDTH))
      check_sequences(own.astype(np.uint32), tree, real)
      require(own + LANES <= tree.end, "rows end before the treeplex")
      # Whoever reads utilities relies on all of them being written.
      written = np.zeros(tree.end - tree.root, bool)
      written[spread(own - tree.root, num_types)] = True
      require(written | ~real[tree.root : tree.end], "rows have all sequences")
      entries = slice(first, first + int(lengths.sum()))
      *outer, last = [other for index, other in enumerate(treeplexes) if index != player]
      line = lines[entries]
      combinations = np.ones(len(line))
      for place, other in enumerate(outer):
        types_, theirs = line[:, 1 + 2 * place], line[:, 2 + 2 * place]
        require((types_ > 0) & (theirs >= other.root), "others' rows are in their treeplexes")
        require(theirs + types_ <= other.end, "others' rows are in their treeplexes")
        combinations *= types_
      if outer:
        # The kernel reads a whole vector of the next to last player's types.
        require((line[:, -3] <= LANES, line[:, -2] + LANES <= outer[-1].end), "rows are cut")
      require(line[:, PATTERN] + combinations <= num_patterns, "patterns are there")
      if not outer:
        require(np.repeat(width, lengths) >= wide[line[:, PATTERN]], "patterns are no wider")
        _check_alike(mine, lines)
      require(players[player, LEAVES] <= square * combinations.sum(), "the leaves are counted")
      check_sequences(others[entries, -1], last, real)
      require(line[:, -1] + LANES <= last.end, "others' rows are in their treeplexes")

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """Lists them by the player's rows."""
    _, _, _, columns, values, patterns, places = self.arrays
    starts, lengths, entries = self._in_order(player)
    own = np.repeat(starts, lengths)
    lines = columns[entries].astype(np.int64)
    # From here on, an element a square, and then an element a leaf.
    squares = lines[:, 1:-1:2].prod(axis=1)
    entry = np.repeat(np.arange(len(lines)), squares)
    combination = np.arange(len(entry)) - np.repeat(np.cumsum(squares) - squares, squares)
    squares = lines[entry, PATTERN] + combination
    if lines.shape[1] > 2:
      squares = places[squares] >> 1
    cells = patterns.reshape(-1, LANES, LANES)[squares] * values[entries[entry], None, None]
    square, last_type, own_type = np.nonzero(cells)
    entry, combination = entry[square], combination[square]
    others = [lines[entry, -1] + last_type]
    for line in range(lines.shape[1] - 3, 0, -2):
      others.insert(0, lines[entry, line + 1] + combination % lines[entry, line])
      combination = combination // lines[entry, line]
    # From ascending order to one that begins with the next player.
    others = others[player:] + others[:player]
    return (
      (own[entry] + own_type).astype(np.uint32),
      np.stack(others).astype(np.uint32),
      cells[square, last_type, own_type],
    )

  def _in_order(self, player: int) -> tuple[Int64s, Int64s, Int64s]:
    """Returns a player's rows by their sequence: the first sequence, how many entries; and the entries of all."""
    starts, lengths, first = rows_of(self.arrays, player)
    order = np.argsort(starts)
    entries = first + spread((np.cumsum(lengths) - lengths)[order], lengths[order])
    return starts[order], lengths[order], entries


class _Rows(NamedTuple):
  """One player's rows, before they are arranged in runs.

  Attributes:
    starts: the first sequence of each.
    lengths: how many entries each has.
    lines: of each entry, what `TypedPatterns` says of `others`.
    factors: one per entry.
    bounds: the player's root, one past its last sequence, and how many leaves it has.
  """

  starts: Int64s
  lengths: Int64s
  lines: npt.NDArray[Any]
  factors: Float64s
  bounds: Sequence[int]


def _arranged(rows: Sequence[_Rows], squares: Float64s, places: npt.NDArray[Any]) -> PayoffArrays:
  """Arranges all players' rows in runs, see `TypedPatterns`; `squares` has shape (squares, LANES * LANES)."""
  two_players, wide = len(rows) == 2, _widths(squares)
  players, runs, starts, entries = [], [], [], []
  num_rows = num_entries = num_runs = 0
  for own in rows:
    begins = np.cumsum(own.lengths) - own.lengths
    kinds = np.zeros((5, len(own.starts)), np.int64)
    kinds[0], kinds[2] = own.lengths, LANES
    kinds[1] = np.minimum(np.diff(own.starts, append=own.bounds[1]), LANES)
    order = np.arange(len(own.starts))
    if two_players:
      patterns = own.lines[:, PATTERN]
      some, few = own.lengths > 0, (own.lengths == 1) | (own.lengths == 2)
      kinds[2] = 0
      if some.any():
        kinds[2, some] = np.maximum.reduceat(wide[patterns], begins[some])
      kinds[2] += kinds[2] % 2
      kinds[3:, few] = patterns[begins[few]], patterns[(begins + own.lengths)[few] - 1]
      if squares.nbytes <= _CACHED:
        order = np.lexsort(kinds[::-1])
    kinds = kinds[:, order]
    new = np.diff(kinds, axis=1, prepend=-1).any(axis=0)
    firsts = np.flatnonzero(new)
    ends = np.append(firsts[1:], len(order))
    taken = (ends - firsts) * kinds[0, firsts]
    first_entry = num_entries + np.cumsum(taken) - taken
    length, num_types, width, _, _ = kinds[:, firsts]
    runs.append(
      np.stack([num_rows + firsts, num_rows + ends, first_entry, length, num_types, width], axis=1)
    )
    starts.append(own.starts[order])
    entries.append(num_entries + spread(begins[order], own.lengths[order]))
    root, end, num_leaves = own.bounds
    players.append((root, end, num_runs, num_runs + len(firsts), num_leaves))
    num_rows, num_runs = num_rows + len(order), num_runs + len(firsts)
    num_entries += len(own.lines)
  order = np.concatenate(entries)
  return PayoffArrays(
    players=np.array(players, np.uint64),
    runs=np.concatenate(runs).astype(np.uint64),
    rows=np.concatenate(starts).astype(np.uint32),
    others=np.concatenate([own.lines for own in rows])[order].astype(np.uint32, order="C"),
    values=np.concatenate([own.factors for own in rows])[order],
    patterns=aligned(squares.reshape(-1)),
    squares=places.astype(np.uint32),
  )


def _widths(squares: Float64s) -> Int64s:
  """Returns how many columns of each square there are up to the last that is not zero."""
  cells: Bools = np.any(squares.reshape(-1, LANES, LANES) != 0, axis=2)
  return np.where(cells.any(axis=1), LANES - cells[:, ::-1].argmax(axis=1), 0)


def _check_alike(runs: Int64s, lines: Int64s) -> None:
  """Checks that rows of one or two entries have the patterns that their run begins with."""
  for length in (1, 2):
    some = runs[runs[:, LENGTH] == length]
    count = (some[:, END_ROW] - some[:, FIRST_ROW]) * length
    first = np.repeat(some[:, FIRST_ENTRY], count)
    place = spread(np.zeros_like(count), count)
    same = lines[first + place, PATTERN] == lines[first + place % length, PATTERN]
    require(same, "rows of a run have the same patterns")
