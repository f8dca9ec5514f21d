"""Gradient kernels of typed patterns, for two players and for more.

Kernels read whole vectors: elements beyond the last type are multiplied by zero.
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, unpickled
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, CountTable, IndexTable, Indices, Line
from spiel_cfr._numba.simd import (
  LANES,
  add_multiple,
  full,
  load,
  lowest_bit,
  nonzero_bits,
  store_first,
)
from spiel_cfr._numba.simd import width as lanes_of
from spiel_cfr._numba.steps import step
from spiel_cfr.games.payoffs import runs as column

# The last columns of `PatternArrays.runs`. TYPES: the number of the player's types in each row. WIDTH, for two players:
# the number of columns of a pattern up to the last that is not zero, rounded up to an even number.
TYPES, WIDTH = 4, 5
# The first column of `PatternArrays.others`: the number of a pattern.
PATTERN = 0
_ZERO, _ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX, _SEVEN, _EIGHT = (
  np.uint64(number) for number in range(9)
)
_LANES, _SQUARE = np.uint64(LANES), np.uint64(LANES * LANES)


class PatternArrays(NamedTuple):
  """The arrays of `typed_patterns.TypedPatterns`, which describes them. A term is a multiple of a pattern.

  Attributes:
    player_bounds: uint64 (players, 5). See `runs`.
    runs: uint64 (runs, 6). See `runs`; the last columns are `TYPES` and `WIDTH`.
    rows: uint32 (rows,). The first sequence of each row.
    others: uint32 (terms, columns). The pattern of each term, and the other players' rows.
    values: float array (terms,). The factor of each term's pattern.
    patterns: float array (elements,). The squares of the patterns.
    squares: uint32 (elements,). The squares of each pattern, for three players or more.
  """

  player_bounds: CountTable
  runs: CountTable
  rows: Indices
  others: IndexTable
  values: Line
  patterns: Line
  squares: Indices

  def __reduce__(self) -> tuple[Any, ...]:
    return unpickled, (PatternArrays, *self)


class PatternGradient(NamedTuple):
  """The arguments of the gradient kernels of typed patterns.

  Attributes:
    player: int. The player.
    arrays: PatternArrays. The payoffs.
    sequence_form: float array (sequences,). The other players' sequence forms.
    utility: float array (sequences,). The gradient, which the kernel writes.
  """

  player: Count
  arrays: PatternArrays
  sequence_form: Line
  utility: Line


@inlined
def _load_eight(patterns: AnyFloats, first: int) -> Any:
  """Returns eight columns of a pattern."""
  lanes = lanes_of(patterns)
  return (
    load(patterns, first),
    load(patterns, first + lanes),
    load(patterns, first + lanes * _TWO),
    load(patterns, first + lanes * _THREE),
    load(patterns, first + lanes * _FOUR),
    load(patterns, first + lanes * _FIVE),
    load(patterns, first + lanes * _SIX),
    load(patterns, first + lanes * _SEVEN),
  )


@inlined
def _load_columns(patterns: AnyFloats, square: int, width: int) -> Any:
  """Returns the first eight columns of a pattern, and the next eight if its width is larger."""
  first = np.uint64(square) * _EIGHT * lanes_of(patterns)
  low = _load_eight(patterns, first)
  high = low
  if width > _EIGHT:
    high = _load_eight(patterns, first + _EIGHT * lanes_of(patterns))
  return low, high


@inlined
def _add_eight(product: Any, columns: Any, width: int, other: int, sequence_form: AnyFloats) -> Any:
  """Adds up to eight columns to `product`, each times the opponent's strategy from the sequence `other` on."""
  product = add_multiple(product, columns[0], sequence_form[other])
  product = add_multiple(product, columns[1], sequence_form[other + _ONE])
  if width > _TWO:
    product = add_multiple(product, columns[2], sequence_form[other + _TWO])
    product = add_multiple(product, columns[3], sequence_form[other + _THREE])
    if width > _FOUR:
      product = add_multiple(product, columns[4], sequence_form[other + _FOUR])
      product = add_multiple(product, columns[5], sequence_form[other + _FIVE])
      if width > _SIX:
        product = add_multiple(product, columns[6], sequence_form[other + _SIX])
        product = add_multiple(product, columns[7], sequence_form[other + _SEVEN])
  return product


@inlined
def _add_columns(
  total: Any, columns: Any, width: int, factor: float, other: int, sequence_form: AnyFloats
) -> Any:
  """Adds the first columns of a pattern to `total`, times a factor and the opponent's strategy from `other` on."""
  low, high = columns
  product = _add_eight(full(0.0), low, width, other, sequence_form)
  if width > _EIGHT:
    product = _add_eight(product, high, width - _EIGHT, other + _EIGHT, sequence_form)
  return add_multiple(total, product, factor)


@inlined
def _sum_alike(
  length: int, run: Any, arrays: PatternArrays, sequence_form: Float64s, utility: Float64s
) -> None:
  """Sums the rows of a run with one or two terms a row, whose patterns are the same in all rows."""
  first, end, term, types_, width = run
  others, values = arrays.others, arrays.values
  one = _load_columns(arrays.patterns, others[term, PATTERN], width)
  two = _load_columns(arrays.patterns, others[term + length - _ONE, PATTERN], width)
  for row in range(first, end):
    total = _add_columns(
      full(0.0), one, width, values[term], np.uint64(others[term, 1]), sequence_form
    )
    if length == _TWO:
      other = np.uint64(others[term + _ONE, 1])
      total = _add_columns(total, two, width, values[term + _ONE], other, sequence_form)
    term += length
    store_first(utility, np.uint64(arrays.rows[row]), total, types_)


@step(PatternGradient)
def two_player_gradient(record: PatternGradient) -> None:
  """Multiplies patterns by the opponent's strategy, for a vector of the player's types at a time.

  Loading a pattern takes longer than multiplying by it. The rows of a run share patterns, which stay in registers.
  """
  player, arrays = record.player, record.arrays
  sequence_form, utility = record.sequence_form, record.utility
  bounds, runs, rows = arrays.player_bounds, arrays.runs, arrays.rows
  others, values = arrays.others, arrays.values
  for run in range(bounds[player, column.FIRST_RUN], bounds[player, column.END_RUN]):
    first, end = runs[run, column.FIRST_ROW], runs[run, column.END_ROW]
    term, length = runs[run, column.FIRST_TERM], runs[run, column.LENGTH]
    types_, width = runs[run, TYPES], runs[run, WIDTH]
    # A constant length lets the compiler drop the inner loop and keep patterns in registers.
    if length == _ONE:
      _sum_alike(_ONE, (first, end, term, types_, width), arrays, sequence_form, utility)
    elif length == _TWO:
      _sum_alike(_TWO, (first, end, term, types_, width), arrays, sequence_form, utility)
    else:
      for row in range(first, end):
        total = full(0.0)
        for _ in range(length):
          columns = _load_columns(arrays.patterns, others[term, PATTERN], width)
          other = np.uint64(others[term, 1])
          total = _add_columns(total, columns, width, values[term], other, sequence_form)
          term += _ONE
        store_first(utility, np.uint64(rows[row]), total, types_)


@inlined
def _add_squares(
  total: Any,
  factor: float,
  arrays: PatternArrays,
  pattern: int,
  width: int,
  first: int,
  other: int,
  sequence_form: Float64s,
) -> Any:
  """Adds squares to `total`, each times a factor and the strategies of the last two other players.

  Args:
    total: the vector that is added to.
    factor: a factor of all squares.
    arrays: the payoffs.
    pattern: the index of the first square in `arrays.squares`. There is one square for each type of the next to last
      player.
    width: the number of types of the next to last player, at most `LANES`.
    first: the next to last player's first sequence.
    other: the last player's first sequence.
    sequence_form: shape (sequences,). The strategies.
  """
  patterns = arrays.patterns
  # Most reach probabilities soon become 0. A bit mask skips these types without a branch for each.
  played = nonzero_bits(load(sequence_form, first)) & ((_ONE << width) - _ONE)
  while played != _ZERO:
    outer = lowest_bit(played)
    played &= played - _ONE
    marked = np.uint64(arrays.squares[pattern + outer])
    square = (marked >> _ONE) * _SQUARE
    product = full(0.0)
    for lane in range(_SEVEN):
      cells = load(patterns, square + lane * _LANES)
      product = add_multiple(product, cells, sequence_form[other + lane])
    # The eighth column is 0 if the player has at most seven types, as with eight cards one of which is public.
    if marked & _ONE:
      cells = load(patterns, square + _SEVEN * _LANES)
      product = add_multiple(product, cells, sequence_form[other + _SEVEN])
    total = add_multiple(total, product, factor * sequence_form[first + outer])
  return total


@step(PatternGradient, single=False)
def several_player_gradient(record: PatternGradient) -> None:
  """Multiplies patterns by the other players' strategies, for a vector of the player's types at a time."""
  player, arrays = record.player, record.arrays
  sequence_form, utility = record.sequence_form, record.utility
  bounds, runs, rows = arrays.player_bounds, arrays.runs, arrays.rows
  others, values = arrays.others, arrays.values
  last = np.uint64(others.shape[1] - 1)
  for run in range(bounds[player, column.FIRST_RUN], bounds[player, column.END_RUN]):
    first_term, length = runs[run, column.FIRST_TERM], runs[run, column.LENGTH]
    for row in range(runs[run, column.FIRST_ROW], runs[run, column.END_ROW]):
      total = full(0.0)
      for term in range(first_term, first_term + length):
        pattern, other = np.uint64(others[term, PATTERN]), np.uint64(others[term, last])
        if nonzero_bits(load(sequence_form, other)) == _ZERO:
          continue
        width, first = np.uint64(others[term, last - _TWO]), np.uint64(others[term, last - _ONE])
        # Three players: there is no outer player. An empty loop over combinations would take a seventh of the
        # gradient's time.
        if last == _THREE:
          total = _add_squares(
            total, values[term], arrays, pattern, width, first, other, sequence_form
          )
          continue
        # All combinations of types of the outer players, in lexicographic order.
        combinations = _ONE
        for line in range(_ONE, last - _TWO, _TWO):
          combinations *= np.uint64(others[term, line])
        for combination in range(combinations):
          rest: Any = combination
          weight = values[term]
          for back in range(_FOUR, last, _TWO):
            outer_width = np.uint64(others[term, last - back])
            weight *= sequence_form[
              np.uint64(others[term, last - back + _ONE]) + rest % outer_width
            ]
            rest = rest // outer_width
          if weight != 0.0:
            total = _add_squares(total, weight, arrays, pattern, width, first, other, sequence_form)
          pattern += width
      first_term += length
      store_first(utility, np.uint64(rows[row]), total, runs[run, TYPES])
