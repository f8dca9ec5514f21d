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
from typing import Any

import numpy as np
from numba import types

from spiel_cfr.game.treeplex import Treeplex
from spiel_cfr.kernels.arrays import (
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
from spiel_cfr.kernels.compile import kernel
from spiel_cfr.kernels.simd import LANES, add_multiple, full, load, lowest_bit, nonzero_bits, store
from spiel_cfr.payoffs.base import Payoff, PayoffArrays, check_sequences, gradient_signature
from spiel_cfr.payoffs.private_types import Blocks, parts

_ZERO, _ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX, _SEVEN, _EIGHT = (
  np.uint64(number) for number in range(9)
)
_NONE = np.uint64(np.iinfo(np.uint64).max)
_LANES, _SQUARE = np.uint64(LANES), np.uint64(LANES * LANES)
# Two tensors with a largest element of 1 that agree to these decimals are the same pattern. Chance's probabilities,
# multiplied in another order, make them differ in later ones.
_DECIMALS = 13
# Elements of a tensor that are this much of the largest, or more, are equally large but for rounding.
_ALMOST_ONE = 1 - 1e-9
# Bounds the memory that building takes besides that of the game.
_SQUARES_AT_A_TIME = 1 << 9


@kernel(gradient_signature(types.float64))
def typed_pattern_gradient(
  player: int, arrays: PayoffArrays, sequence_form: Float64s, utility: Float64s
) -> None:
  """Multiplies patterns by the other players' strategies, for a vector of the player's own types at a time.

  See `TypedPatterns.build` for the arrays. What a vector has beyond the types in its row is zero, and falls on
  sequences that are written later or on padding. What is read beyond the types of the last other player is multiplied
  by zero.
  """
  table, rows, others, values = arrays
  first_row, end_row, first_factor = table[player, 0], table[player, 1], table[player, 2]
  if others.shape[1] == 2:
    # Neighbouring rows often share a pattern, so it stays in registers.
    loaded, width = _NONE, _EIGHT
    c0 = c1 = c2 = c3 = c4 = c5 = c6 = c7 = full(0.0)
    for row in range(first_row, end_row):
      total = full(0.0)
      for entry in range(np.uint64(rows[_TWO * row + _ONE]), np.uint64(rows[_TWO * row + _THREE])):
        pattern, other = np.uint64(others[entry, 0]) * _SQUARE, np.uint64(others[entry, 1])
        if pattern != loaded:
          loaded = pattern
          c0 = load(values, pattern)
          c1 = load(values, pattern + _LANES)
          c2 = load(values, pattern + _LANES * _TWO)
          c3 = load(values, pattern + _LANES * _THREE)
          c4 = load(values, pattern + _LANES * _FOUR)
          c5 = load(values, pattern + _LANES * _FIVE)
          c6 = load(values, pattern + _LANES * _SIX)
          c7 = load(values, pattern + _LANES * _SEVEN)
          # Patterns are rarely eight wide, and often two: what is 0 in all rows need not be added.
          width = _TWO
          if nonzero_bits(c2) | nonzero_bits(c3):
            width = _FOUR
          if nonzero_bits(c4) | nonzero_bits(c5):
            width = _SIX
          if nonzero_bits(c6) | nonzero_bits(c7):
            width = _EIGHT
        product = add_multiple(full(0.0), c0, sequence_form[other])
        product = add_multiple(product, c1, sequence_form[other + _ONE])
        if width > _TWO:
          product = add_multiple(product, c2, sequence_form[other + _TWO])
          product = add_multiple(product, c3, sequence_form[other + _THREE])
          if width > _FOUR:
            product = add_multiple(product, c4, sequence_form[other + _FOUR])
            product = add_multiple(product, c5, sequence_form[other + _FIVE])
            if width > _SIX:
              product = add_multiple(product, c6, sequence_form[other + _SIX])
              product = add_multiple(product, c7, sequence_form[other + _SEVEN])
        total = add_multiple(total, product, values[first_factor + entry])
      store(utility, np.uint64(rows[_TWO * row]), total)
  else:
    last = np.uint64(others.shape[1] - 1)
    for row in range(first_row, end_row):
      total = full(0.0)
      for entry in range(np.uint64(rows[_TWO * row + _ONE]), np.uint64(rows[_TWO * row + _THREE])):
        column, other = np.uint64(others[entry, 0]) * _SQUARE, np.uint64(others[entry, last])
        if nonzero_bits(load(sequence_form, other)) == _ZERO:
          continue
        # All combinations of types of the other players but the last two, in lexicographic order.
        combinations = _ONE
        for line in range(_ONE, last - _TWO, _TWO):
          combinations *= np.uint64(others[entry, line])
        width, first = np.uint64(others[entry, last - _TWO]), np.uint64(others[entry, last - _ONE])
        for combination in range(combinations):
          rest: Any = combination
          factor = values[first_factor + entry]
          for back in range(_FOUR, last, _TWO):
            outer_width = np.uint64(others[entry, last - back])
            factor *= sequence_form[
              np.uint64(others[entry, last - back + _ONE]) + rest % outer_width
            ]
            rest = rest // outer_width
          if factor != 0.0:
            # Players soon stop playing to most places: what is 0 is left out without a branch for each type.
            for start in range(_ZERO, width, _LANES):
              played = nonzero_bits(load(sequence_form, first + start))
              played &= (_ONE << min(_LANES, width - start)) - _ONE
              while played != _ZERO:
                outer = start + lowest_bit(played)
                played &= played - _ONE
                square = column + outer * _SQUARE
                product = full(0.0)
                for lane in range(_LANES):
                  block = load(values, square + lane * _LANES)
                  product = add_multiple(product, block, sequence_form[other + lane])
                total = add_multiple(total, product, factor * sequence_form[first + outer])
          column += width * _SQUARE
      store(utility, np.uint64(rows[_TWO * row]), total)


class TypedPatterns(Payoff):
  """Payoffs as multiples of few patterns over private types."""

  form = "typed patterns"
  gradient = typed_pattern_gradient

  @classmethod
  def build(
    cls, blocks: Blocks, leaf_payoffs: Float64s, treeplexes: Sequence[Treeplex]
  ) -> "TypedPatterns":
    """Builds it.

    Rows longer than a vector are cut. Whatever part of a player's own row meets a part of a row of the last other
    player, and full rows of the others, is an entry.

    Args:
      blocks: the leaves by block.
      leaf_payoffs: shape (leaves, players).
      treeplexes: one per player.

    Returns:
      The payoff with, in `table`, a player's first row, one past its last, where the factors of all players begin in
      `values`, and the number of leaves; in `rows`, for each row, its first sequence and its first entry; in `others`,
      shape (entries, 2 * (players - 1)), the pattern, as a multiple of the size of a square, then for each other player
      but the last, the width and the first sequence of its row, then the first sequence of the last one's; in `values`,
      the patterns and then a factor per entry. A pattern is a tensor whose last dimension is the player's own, and the
      one before the last other player's, both padded to `LANES`: a square for each combination of the others' types.
    """
    table = np.zeros((len(treeplexes), 4), np.uint64)
    rows: list[Int64s] = []
    others: list[Int64s] = []
    patterns: list[Float64s] = []
    factors: list[Float64s] = []
    num_rows = num_entries = num_squares = 0
    for player, treeplex in enumerate(treeplexes):
      own = np.arange(treeplex.root, treeplex.end)
      starts = own[(blocks.width[own] > 0) & ((own - blocks.first[own]) % LANES == 0)]
      entries = _entries(blocks, player, leaf_payoffs[:, player])
      entries.lines[:, 0] += num_squares
      rows.append(np.stack([starts, num_entries + np.searchsorted(entries.rows, starts)], axis=1))
      others.append(entries.lines)
      patterns.append(entries.patterns)
      factors.append(entries.factors)
      table[player] = num_rows, num_rows + len(starts), 0, np.count_nonzero(leaf_payoffs[:, player])
      num_rows += len(starts)
      num_entries += len(entries.rows)
      num_squares += len(entries.patterns) // LANES**2
    rows.append(np.array([[treeplexes[-1].end, num_entries]]))
    table[:, 2] = num_squares * LANES**2
    arrays = PayoffArrays(
      table=table,
      rows=np.concatenate(rows).astype(np.uint32).reshape(-1),
      others=np.concatenate(others).astype(np.uint32, order="C"),
      values=aligned(np.concatenate([*patterns, *factors])),
    )
    return cls(arrays)

  def check(self, treeplexes: Sequence[Treeplex], real: Bools) -> None:
    """See the base class."""
    table, rows, others, values = self.arrays
    num_players, square = len(treeplexes), LANES * LANES
    require_array(table, "table", np.uint64, num_players, 4)
    require_array(rows, "rows", np.uint32, -1)
    require_array(others, "others", np.uint32, -1, 2 * (num_players - 1))
    require_array(values, "values", np.float64, -1)
    num_rows, num_entries = len(rows) // 2 - 1, len(others)
    num_cells = len(values) - num_entries
    require((len(rows) % 2 == 0, num_rows >= 0), "rows are pairs")
    require((num_cells >= 0, num_cells % square == 0), "patterns are squares")
    require(table[:, 2] == num_cells, "factors follow the patterns")
    require((table[0, 0] == 0, table[-1, 1] == num_rows), "the table has all rows")
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
        read = -(-width // LANES) * LANES
        require(first + read <= other.end, "others' rows are in their treeplexes")
        combinations *= width
      require((mine[:, 0] + combinations) * square <= num_cells, "patterns are there")
      require(table[player, 3] <= square * combinations.sum(), "the table counts the leaves")
      check_sequences(others[entries, -1], last, real)
      require(mine[:, -1] + LANES <= last.end, "others' rows are in their treeplexes")

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """See the base class."""
    table, rows, columns, values = self.arrays
    first_row, end_row, first_factor = table[player, :3].astype(np.int64)
    rows, starts = rows.reshape(-1, 2)[first_row : end_row + 1].astype(np.int64).T
    own = np.repeat(rows[:-1], np.diff(starts))
    lines = columns[starts[0] : starts[-1]].astype(np.int64)
    # From here on, an element a square, and then an element a leaf.
    squares = lines[:, 1:-1:2].prod(axis=1)
    entry = np.repeat(np.arange(len(lines)), squares)
    combination = np.arange(len(entry)) - np.repeat(np.cumsum(squares) - squares, squares)
    cells = values[:first_factor].reshape(-1, LANES, LANES)[lines[entry, 0] + combination]
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
    patterns: the player's patterns, end to end.
  """

  rows: Int64s
  lines: Int64s
  factors: Float64s
  patterns: Float64s


def _entries(blocks: Blocks, player: int, payoffs: Float64s) -> _Entries:
  own_row, own_type = blocks.rows[player], blocks.types[player]
  *outer_rows, last_row = np.delete(blocks.rows, player, axis=0)
  *outer_types, last_type = [own for other, own in enumerate(blocks.types) if other != player]
  # An entry for each pair of parts of the two rows that are cut.
  last_parts = parts(blocks.width[last_row])
  num_entries = parts(blocks.width[own_row]) * last_parts
  first_entry = np.cumsum(num_entries) - num_entries
  block = np.repeat(np.arange(len(num_entries)), num_entries)
  own_part, last_part = np.divmod(np.arange(len(block)) - first_entry[block], last_parts[block])
  squares = np.ones_like(block)
  for outer_row in outer_rows:
    squares *= blocks.width[outer_row[block]]

  entry = np.empty(len(payoffs), np.uint32)
  for some in pieces(len(entry)):
    here = blocks.block[some]
    entry[some] = first_entry[here] + last_type[some] // LANES
    entry[some] += (own_type[some] // LANES * last_parts[here]).astype(np.uint32)
  leaves_of = np.bincount(entry, minlength=len(block))
  first_leaf = np.cumsum(leaves_of) - leaves_of
  leaves = np.argsort(entry).astype(np.uint32)
  del entry

  def tensors(batch: Int64s, size: int) -> Float64s:
    """Returns the payoffs of some entries with `size` squares each, shape (entries, elements)."""
    these = leaves[spread(first_leaf[batch], leaves_of[batch])]
    here = blocks.block[these]
    square = np.zeros(len(these), np.int64)
    for outer_row, outer_type in zip(outer_rows, outer_types, strict=True):
      square = square * blocks.width[outer_row[here]] + outer_type[these]
    cells = np.zeros((len(batch), size, LANES, LANES))
    place = np.repeat(np.arange(len(batch)), leaves_of[batch])
    cells[place, square, last_type[these] % LANES, own_type[these] % LANES] = payoffs[these]
    return cells.reshape(len(batch), -1)

  pattern, factors, patterns = _factorize(tensors, squares)
  lines = [pattern]
  for outer_row in outer_rows:
    lines += [blocks.width[outer_row[block]], outer_row[block]]
  lines.append(last_row[block] + LANES * last_part)
  rows = own_row[block] + LANES * own_part
  used = np.flatnonzero(factors)
  used = used[np.argsort(rows[used], kind="stable")]
  return _Entries(rows[used], np.stack(lines, axis=1)[used], factors[used], patterns)


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
