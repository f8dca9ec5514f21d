"""Typed patterns of two players, with rows that take the same patterns next to each other: what iterations read.

In their own order, rows change from one pattern to another all the time, and to load a pattern takes longer than to
multiply by it. Rows in a run share patterns, which stay in registers, and all end in the same place.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types

from spiel_cfr.game.treeplex import Treeplex
from spiel_cfr.kernels.arrays import Bools, Float64s, Int64s, Uint32s, borrowed
from spiel_cfr.kernels.compile import inlined, kernel
from spiel_cfr.kernels.ordering import distinct_columns
from spiel_cfr.kernels.simd import LANES, add_multiple, full, load, store_first
from spiel_cfr.payoffs.base import Payoff, PayoffArrays, gradient_signature
from spiel_cfr.payoffs.typed_patterns import TypedPatterns

# Rows that are sorted together: as many as the level-1 cache holds utilities of, roughly.
_NEAR = 1024
_ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX, _SEVEN = (np.uint64(number) for number in range(1, 8))
_LANES, _SQUARE = np.uint64(LANES), np.uint64(LANES * LANES)


@inlined
def _load_columns(values: Float64s, square: int) -> Any:
  """Returns the columns of a pattern."""
  first = np.uint64(square) * _SQUARE
  return (
    load(values, first),
    load(values, first + _LANES),
    load(values, first + _LANES * _TWO),
    load(values, first + _LANES * _THREE),
    load(values, first + _LANES * _FOUR),
    load(values, first + _LANES * _FIVE),
    load(values, first + _LANES * _SIX),
    load(values, first + _LANES * _SEVEN),
  )


@inlined
def _add_columns(
  total: Any, columns: Any, width: int, factor: float, other: int, sequence_form: Float64s
) -> Any:
  """Returns `total` with the first columns added, each times the strategy from `other` on and a factor."""
  product = add_multiple(full(0.0), columns[0], sequence_form[other])
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
  return add_multiple(total, product, factor)


@inlined
def _sum_entries(
  begin: int,
  end: int,
  width: int,
  first_factor: int,
  arrays: PayoffArrays,
  sequence_form: Float64s,
) -> Any:
  """Returns the sum of two players' entries from `begin` to `end`, whose patterns have so many columns or fewer."""
  others, values = arrays.others, arrays.values
  total = full(0.0)
  for entry in range(begin, end):
    columns = _load_columns(values, others[entry, 0])
    other, factor = np.uint64(others[entry, 1]), values[first_factor + entry]
    total = _add_columns(total, columns, width, factor, other, sequence_form)
  return total


@inlined
def _sum_rows(
  length: int,
  first: int,
  stop: int,
  own: int,
  width: int,
  first_factor: int,
  arrays: PayoffArrays,
  sequence_form: Float64s,
  utility: Float64s,
) -> None:
  """Sums rows of one or two entries that all have the same patterns."""
  rows, others, values = arrays.rows, arrays.others, arrays.values
  entry = np.uint64(rows[_TWO * first + _ONE])
  one = _load_columns(values, others[entry, 0])
  two = _load_columns(values, others[entry + length - _ONE, 0])
  for row in range(first, stop):
    entry = np.uint64(rows[_TWO * row + _ONE])
    other, factor = np.uint64(others[entry, 1]), values[first_factor + entry]
    total = _add_columns(full(0.0), one, width, factor, other, sequence_form)
    if length == _TWO:
      other, factor = np.uint64(others[entry + _ONE, 1]), values[first_factor + entry + _ONE]
      total = _add_columns(total, two, width, factor, other, sequence_form)
    store_first(utility, np.uint64(rows[_TWO * row]), total, own)


@kernel(gradient_signature(types.float64))
def sorted_pattern_gradient(
  player: int, arrays: PayoffArrays, sequence_form: Float64s, utility: Float64s
) -> None:
  """Multiplies patterns by the other player's strategy, run by run, for a vector of the own types at a time."""
  # Helpers that are given arrays with owners would count references for every entry: five times as long.
  arrays, sequence_form, utility = borrowed(arrays), borrowed(sequence_form), borrowed(utility)
  table, rows = arrays.table, arrays.rows
  first_factor = table[player, 2]
  for run in range(table[player, 0], table[player, 1]):
    first, stop, length, own, width = (
      table[run, 0],
      table[run, 1],
      table[run, 2],
      table[run, 3],
      table[run, 4],
    )
    # With the length known to the compiler there is no inner loop, and patterns stay in registers.
    if length == _ONE:
      _sum_rows(_ONE, first, stop, own, width, first_factor, arrays, sequence_form, utility)
    elif length == _TWO:
      _sum_rows(_TWO, first, stop, own, width, first_factor, arrays, sequence_form, utility)
    else:
      for row in range(first, stop):
        begin = np.uint64(rows[_TWO * row + _ONE])
        total = _sum_entries(begin, begin + length, width, first_factor, arrays, sequence_form)
        store_first(utility, np.uint64(rows[_TWO * row]), total, own)


class SortedPatterns(TypedPatterns):
  """Payoffs of two players as typed patterns whose rows are sorted; not for files.

  Entries, squares and factors are those of the payoff that it is made of, the same memory.
  """

  form = "sorted patterns"
  gradient = sorted_pattern_gradient

  def __init__(self, payoff: TypedPatterns) -> None:
    """Sorts a payoff's rows.

    In `table` there are, of each player, the first run, one past the last, where the factors begin, 0, and the number
    of leaves; then, of runs, the first row, one past the last, the number of entries of each row, how many of the
    player's types it has, and how many columns of the patterns are not zero, rounded up to an even number. In `rows`
    there are, for each row, its first sequence and its first entry.
    """
    self._unsorted = payoff
    _, rows, others, values = payoff.arrays
    tables, runs, sorted_rows = [], [], []
    num_rows, num_runs = 0, 2
    cells = values[: len(values) - len(others)].reshape(-1, LANES, LANES) != 0
    wide = LANES - cells.any(axis=2)[:, ::-1].argmax(axis=1)
    for begin, end, first_factor, num_leaves in payoff.arrays.table.astype(np.int64):
      pairs = rows.reshape(-1, 2)[begin : end + 1].astype(np.int64)
      kinds, which = distinct_columns(_kinds(pairs, others[:, 0], wide))
      stops = num_rows + np.cumsum(np.bincount(which))
      runs.append(np.stack([np.append(num_rows, stops[:-1]), stops, *kinds[1:4]], axis=1))
      sorted_rows.append(pairs[:-1][np.argsort(which, kind="stable")])
      tables.append((num_runs, num_runs + len(stops), first_factor, 0, num_leaves))
      num_rows, num_runs = num_rows + len(which), num_runs + len(stops)
    super().__init__(
      payoff.arrays._replace(
        table=np.concatenate([tables, *runs]).astype(np.uint64),
        rows=np.concatenate(sorted_rows).reshape(-1).astype(np.uint32),
      )
    )

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """See the base class."""
    return self._unsorted.leaves(player)

  def check(self, treeplexes: Sequence[Treeplex], real: Bools) -> None:
    """See `Payoff.check`."""
    Payoff.check(self, treeplexes, real)


def _kinds(rows: Int64s, patterns: Uint32s, wide: Int64s) -> Int64s:
  """Returns what rows of one run have in common: where they are, what the run's table says of them, and patterns.

  Args:
    rows: the first sequence and the first entry of each row, and of one more that does not count.
    patterns: of each entry.
    wide: how many columns each pattern has.

  Returns:
    Shape (6, rows).
  """
  (own, lengths), begins, last = np.diff(rows, axis=0).T, rows[:-1, 1], rows[1:, 1] - 1
  widths, alike = np.zeros(len(own), np.int64), np.zeros((2, len(own)), np.int64)
  some, few = lengths > 0, (lengths == 1) | (lengths == 2)
  widths[some] = np.maximum.reduceat(wide[patterns[: rows[-1, 1]]], begins[some])
  alike[:, few] = patterns[begins[few]], patterns[last[few]]
  near = np.arange(len(own)) // _NEAR
  return np.stack([near, lengths, np.minimum(own, LANES), widths + widths % 2, *alike])
