"""Payoffs of games with private types (cards, dice, hands), in a form that exploits them.

Take the leaves that differ in nothing but the types of the players. Their payoffs, chance's probability included, are a
small tensor with a dimension for each player, and games have few such tensors that are not multiples of each other: who
wins depends on the types, how much on the rest. So each such pattern is stored once, and for each block of leaves which
pattern it is, where the types' sequences are, and the factor. Liar's dice with one die a player has 4,095 blocks of 36
leaves each, and 12 patterns for each player.

Nothing here knows of cards. What is a type is read off the leaves (`private_types`), and whether this form pays is a
matter of counting (`build.build_payoff`).
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from spiel_cfr._numba.arrays import (
  Bools,
  Float64s,
  Int64s,
  Uint32s,
  aligned,
  pieces,
  require,
  require_array,
  spread,
)
from spiel_cfr._numba.simd import LANES
from spiel_cfr.games.payoffs.payoff import Payoff, PayoffArrays, check_sequences
from spiel_cfr.games.payoffs.private_types import Blocks, parts
from spiel_cfr.games.payoffs.typed_gradient import typed_pattern_gradient
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# Two tensors with a largest element of 1 that agree to these decimals are the same pattern. Chance's probabilities,
# multiplied in another order, make them differ in later ones.
_DECIMALS = 13
# Elements of a tensor that are this much of the largest, or more, are equally large but for rounding.
_ALMOST_ONE = 1 - 1e-9
# Bounds the memory that building takes besides that of the game.
_SQUARES_AT_A_TIME = 1 << 9


class TypedPatterns(Payoff):
  """Payoffs as multiples of few patterns over private types."""

  form = "typed patterns"
  gradient = typed_pattern_gradient

  @classmethod
  def build(
    cls, blocks: Blocks, leaf_payoffs: Float64s, treeplexes: Sequence[Treeplex]
  ) -> "TypedPatterns":
    """Builds it.

    Rows longer than a vector are cut. Whatever part of a player's own row meets parts of rows of the last two other
    players, and full rows of the others, is an entry.

    Args:
      blocks: the leaves by block.
      leaf_payoffs: shape (leaves, players).
      treeplexes: one per player.

    Returns:
      The payoff with, in `table`, a player's first row, one past its last, where the factors of all players begin in
      `values`, and the number of leaves; in `rows`, for each row, its first sequence and its first entry; in `others`,
      shape (entries, 2 * (players - 1)), the pattern, then for each other player but the last, the width and the first
      sequence of its row, then the first sequence of the last one's; in `values`, the squares of all patterns and then
      a factor per entry. A pattern is a tensor whose last dimension is the player's own, and the one before the last
      other player's, both padded to `LANES`: a square for each combination of the others' types. With two players that
      is one square, whose number names the pattern. With more, many squares are alike, and are kept once: `rows` ends
      with a list of squares, in which each pattern has neighbouring places, and the first of these names it. The list
      has twice the number of a square, plus one if anything in its last column is not zero.
    """
    table = np.zeros((len(treeplexes), 4), np.uint64)
    rows: list[Int64s] = []
    places: list[Int64s] = []
    others: list[Int64s] = []
    squares: list[Float64s] = []
    factors: list[Float64s] = []
    num_rows = num_places = num_entries = num_squares = 0
    for player, treeplex in enumerate(treeplexes):
      own = np.arange(treeplex.root, treeplex.end)
      starts = own[(blocks.width[own] > 0) & ((own - blocks.first[own]) % LANES == 0)]
      entries = _entries(blocks, player, leaf_payoffs[:, player])
      entries.lines[:, 0] += num_places
      rows.append(np.stack([starts, num_entries + np.searchsorted(entries.rows, starts)], axis=1))
      others.append(entries.lines)
      places.append(entries.places + 2 * num_squares)
      squares.append(entries.squares)
      factors.append(entries.factors)
      table[player] = num_rows, num_rows + len(starts), 0, np.count_nonzero(leaf_payoffs[:, player])
      num_rows += len(starts)
      num_entries += len(entries.rows)
      num_places += len(entries.places)
      num_squares += len(entries.squares)
    rows.append(np.array([[treeplexes[-1].end, num_entries]]))
    rows = [own.reshape(-1) for own in rows]
    table[:, 2] = num_squares * LANES**2
    arrays = PayoffArrays(
      table=table,
      rows=np.concatenate(rows if len(treeplexes) == 2 else rows + places).astype(np.uint32),
      others=np.concatenate(others).astype(np.uint32, order="C"),
      values=aligned(np.concatenate([np.concatenate(squares).reshape(-1), *factors])),
    )
    return cls(arrays)

  def gains(self) -> "TypedPatterns":
    """Returns the payoffs of two players, losses counting as nothing; of leaves, it counts as many as before."""
    table, rows, others, values = self.arrays
    squares, factors = np.split(values, [len(values) - len(others)])
    table, others = table.copy(), others.copy()
    # Whatever is negative in a pattern is a gain where the factor is negative too.
    table[:, 2] *= 2
    others[factors < 0, 0] += np.uint32(len(squares) // LANES**2)
    gained = [np.maximum(squares, 0.0), np.maximum(-squares, 0.0), np.abs(factors)]
    return TypedPatterns(PayoffArrays(table, rows, others, aligned(np.concatenate(gained))))

  def check(self, treeplexes: Sequence[Treeplex], real: Bools) -> None:
    """See the base class."""
    table, rows, others, values = self.arrays
    num_players, square = len(treeplexes), LANES * LANES
    require_array(table, "table", np.uint64, num_players, 4)
    require_array(rows, "rows", np.uint32, -1)
    require_array(others, "others", np.uint32, -1, 2 * (num_players - 1))
    require_array(values, "values", np.float64, -1)
    num_rows, num_entries = int(table[-1, 1]), len(others)
    num_cells = len(values) - num_entries
    require((num_cells >= 0, num_cells % square == 0), "patterns are squares")
    require(table[:, 2] == num_cells, "factors follow the patterns")
    require((table[0, 0] == 0, 2 * num_rows + 2 <= len(rows)), "the table has all rows")
    rows, places = np.split(rows, [2 * num_rows + 2])
    num_places = num_cells // square
    if num_players == 2:
      require(len(places) == 0, "the table has all rows")
    else:
      in_last: Bools = np.any(values[:num_cells].reshape(-1, square)[:, -LANES:] != 0, axis=1)
      require(places < 2 * num_places, "squares are there")
      require(places % 2 >= in_last[places // 2], "squares with a last column are marked")
      num_places = len(places)
    require(table[1:, 0] == table[:-1, 1], "players' rows are end to end")
    require(table[:, 0] <= table[:, 1], "players' rows are end to end")
    starts, first_entry = rows.reshape(-1, 2).astype(np.int64).T
    require((first_entry[0], first_entry[-1]) == (0, num_entries), "rows have all entries")
    require(np.diff(first_entry) >= 0, "rows are end to end")
    lines = others.astype(np.int64)
    for player, tree in enumerate(treeplexes):
      begin, end = table[player, :2].astype(np.int64)
      own = starts[begin:end]
      check_sequences(rows[2 * begin : 2 * end : 2], tree, real)
      require(np.diff(own) > 0, "rows are in order")
      require(own + LANES <= tree.end, "rows end before the treeplex")
      # Whoever reads utilities relies on all of them being written.
      written = np.zeros(tree.end - tree.root, bool)
      for lane in range(LANES):
        written[own - tree.root + lane] = True
      require(written | ~real[tree.root : tree.end], "rows have all sequences")
      entries = slice(first_entry[begin], first_entry[end])
      *outer, last = [other for index, other in enumerate(treeplexes) if index != player]
      mine = lines[entries]
      combinations = np.ones(len(mine))
      for place, other in enumerate(outer):
        width, first = mine[:, 1 + 2 * place], mine[:, 2 + 2 * place]
        require((width > 0) & (first >= other.root), "others' rows are in their treeplexes")
        require(first + width <= other.end, "others' rows are in their treeplexes")
        combinations *= width
      if outer:
        # The kernel reads a whole vector of the next to last player's types.
        require((mine[:, -3] <= LANES, mine[:, -2] + LANES <= outer[-1].end), "rows are cut")
      require(mine[:, 0] + combinations <= num_places, "patterns are there")
      require(table[player, 3] <= square * combinations.sum(), "the table counts the leaves")
      check_sequences(others[entries, -1], last, real)
      require(mine[:, -1] + LANES <= last.end, "others' rows are in their treeplexes")

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """See the base class."""
    table, rows, columns, values = self.arrays
    first_row, end_row, first_factor = table[player, :3].astype(np.int64)
    pairs = rows[2 * first_row : 2 * end_row + 2].reshape(-1, 2)
    own_rows, starts = pairs.astype(np.int64).T
    own = np.repeat(own_rows[:-1], np.diff(starts))
    lines = columns[starts[0] : starts[-1]].astype(np.int64)
    # From here on, an element a square, and then an element a leaf.
    squares = lines[:, 1:-1:2].prod(axis=1)
    entry = np.repeat(np.arange(len(lines)), squares)
    combination = np.arange(len(entry)) - np.repeat(np.cumsum(squares) - squares, squares)
    squares = lines[entry, 0] + combination
    if lines.shape[1] > 2:
      squares = rows[2 * int(table[-1, 1]) + 2 :][squares] >> 1
    cells = values[:first_factor].reshape(-1, LANES, LANES)[squares]
    cells = cells * values[first_factor:][starts[0] + entry, None, None]
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


@dataclasses.dataclass(frozen=True)
class _Entries:
  """One player's entries, sorted by row.

  Attributes:
    rows: the first sequence of each entry's own part of a row.
    lines: what `typed_patterns` says of `others`.
    factors: one per entry.
    places: for each square of the player's patterns, end to end, twice which of those that are kept it is, plus one if
      anything in its last column is not zero.
    squares: those that are kept, shape (squares, LANES * LANES).
  """

  rows: Int64s
  lines: Int64s
  factors: Float64s
  places: Int64s
  squares: Float64s


def _entries(blocks: Blocks, player: int, payoffs: Float64s) -> _Entries:
  others = [other for other in range(len(blocks.rows)) if other != player]
  outer, cut = others[:-1], [player, *others[-2:]]
  # An entry for each tuple of parts of the rows that are cut.
  num_parts = {other: parts(blocks.width[blocks.rows[other]]) for other in cut}
  num_entries = np.prod(list(num_parts.values()), axis=0)
  first_entry = np.cumsum(num_entries) - num_entries
  block = np.repeat(np.arange(len(num_entries)), num_entries)
  rest = np.arange(len(block)) - first_entry[block]
  first, width = blocks.rows[:, block], blocks.width[blocks.rows[:, block]]
  for other in reversed(cut):
    rest, part = np.divmod(rest, num_parts[other][block])
    first[other] += LANES * part
    width[other] = np.minimum(LANES, width[other] - LANES * part)

  entry = np.zeros(len(payoffs), np.uint32)
  for some in pieces(len(entry)):
    here = blocks.block[some]
    for other in cut:
      entry[some] *= num_parts[other][here].astype(np.uint32)
      entry[some] += blocks.types[other, some] // LANES
    entry[some] += first_entry[here].astype(np.uint32)
  leaves_of = np.bincount(entry, minlength=len(block))
  first_leaf = np.cumsum(leaves_of) - leaves_of
  leaves = np.argsort(entry)
  del entry
  leaves = leaves.astype(np.uint32)

  def tensors(batch: Int64s, size: int) -> Float64s:
    """Returns the payoffs of some entries with `size` squares each, shape (entries, elements)."""
    these = leaves[spread(first_leaf[batch], leaves_of[batch])]
    place = np.repeat(np.arange(len(batch)), leaves_of[batch])
    types = blocks.types[:, these].astype(np.int64)
    types[cut] %= LANES
    square = np.zeros(len(these), np.int64)
    for other in outer:
      square = square * width[other, batch[place]] + types[other]
    cells = np.zeros((len(batch), size, LANES, LANES))
    cells[place, square, types[others[-1]], types[player]] = payoffs[these]
    return cells.reshape(len(batch), -1)

  pattern, factors, patterns = _factorize(tensors, np.prod(width[outer], axis=0))
  lines = [pattern]
  for other in outer:
    lines += [width[other], first[other]]
  lines.append(first[others[-1]])
  used = np.flatnonzero(factors)
  used = used[np.argsort(first[player, used], kind="stable")]
  places, squares = _shared(patterns.reshape(-1, LANES**2))
  return _Entries(
    rows=first[player, used],
    lines=np.stack(lines, axis=1)[used],
    factors=factors[used],
    places=places,
    squares=squares,
  )


def _factorize(
  tensors: Callable[[Int64s, int], Float64s], squares: Int64s
) -> tuple[Int64s, Float64s, Float64s]:
  """Writes tensors as multiples of as few as possible.

  Args:
    tensors: returns some of them, which have the same number of squares, flat.
    squares: how many squares of LANES * LANES each has.

  Returns:
    For each tensor, the first square of its pattern and its factor, 0 if it has nothing but zeros; and the patterns.
  """
  pattern = np.zeros(len(squares), np.int64)
  factors = np.zeros(len(squares))
  patterns = [np.zeros(0)]
  num_squares = 0
  known: dict[bytes, int] = {}
  for size in np.unique(squares).tolist():
    members = np.flatnonzero(squares == size)
    for batch in np.array_split(members, 1 + len(members) * size // _SQUARES_AT_A_TIME):
      found = tensors(batch, size)
      magnitude = np.abs(found)
      # The first of the largest elements becomes 1.
      one = (magnitude >= _ALMOST_ONE * magnitude.max(axis=1, keepdims=True)).argmax(axis=1)
      factors[batch] = found[np.arange(len(batch)), one]
      used = factors[batch] != 0
      batch, found = batch[used], found[used] / factors[batch][used, None]
      for tensor, rounded in enumerate(found.round(_DECIMALS) + 0.0):
        key = rounded.tobytes()
        if key not in known:
          known[key] = num_squares
          patterns.append(found[tensor].copy())
          num_squares += size
        pattern[batch[tensor]] = known[key]
  return pattern, factors, np.concatenate(patterns)


def _shared(squares: Float64s) -> tuple[Int64s, Float64s]:
  """Finds squares that are alike, to keep each once.

  Args:
    squares: shape (squares, LANES * LANES).

  Returns:
    `places` and `squares` of `_Entries`, the latter in order of their first use.
  """
  keys = (squares.round(_DECIMALS) + 0.0).view(np.dtype((np.void, squares.itemsize * LANES**2)))
  _, first, which = np.unique(keys[:, 0], return_index=True, return_inverse=True)
  kept = np.sort(first)
  places = np.searchsorted(kept, first)[which]
  marked: Bools = np.any(squares[kept, -LANES:] != 0, axis=1)
  return 2 * places + marked[places], squares[kept]
