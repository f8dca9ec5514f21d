"""Typed patterns of two players, with rows that take the same patterns next to each other: what iterations read.

In their own order, rows change from one pattern to another all the time, and to load a pattern takes longer than to
multiply by it. Rows in a run share patterns, which stay in registers, and all end in the same place.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, Uint32s, aligned, borrowed, spread
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr._numba.simd import LANES, add_multiple, full, load, store_first
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.payoffs.payoff import Payoff, PayoffArrays, gradient_signature
from spiel_cfr.games.payoffs.typed_patterns import TypedPatterns
from spiel_cfr.games.sequence_form.treeplex import Treeplex

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
def _sum_rows(
  length: int,
  first: int,
  stop: int,
  entry: int,
  own: int,
  width: int,
  first_factor: int,
  arrays: PayoffArrays,
  sequence_form: Float64s,
  utility: Float64s,
) -> None:
  """Sums rows of one or two entries that all have the same patterns; see the table of `SortedPatterns`."""
  rows, others, values = arrays.rows, arrays.others, arrays.values
  one = _load_columns(values, others[entry, 0])
  two = _load_columns(values, others[entry + length - _ONE, 0])
  for row in range(first, stop):
    other, factor = np.uint64(others[entry, 1]), values[first_factor + entry]
    total = _add_columns(full(0.0), one, width, factor, other, sequence_form)
    if length == _TWO:
      other, factor = np.uint64(others[entry + _ONE, 1]), values[first_factor + entry + _ONE]
      total = _add_columns(total, two, width, factor, other, sequence_form)
    entry += length
    store_first(utility, np.uint64(rows[row]), total, own)


@kernel(gradient_signature(types.float64))
def sorted_pattern_gradient(
  player: int, arrays: PayoffArrays, sequence_form: Float64s, utility: Float64s
) -> None:
  """Multiplies patterns by the other player's strategy, run by run, for a vector of the own types at a time."""
  # Helpers that are given arrays with owners would count references for every entry: five times as long.
  arrays, sequence_form, utility = borrowed(arrays), borrowed(sequence_form), borrowed(utility)
  table, rows, others, values = arrays
  factors = table[player, 2]
  for run in range(table[player, 0], table[player, 1]):
    first, stop, entry, length, own, width = (
      table[run, 0],
      table[run, 1],
      table[run, 2],
      table[run, 3],
      table[run, 4],
      table[run, 5],
    )
    # With the length known to the compiler there is no inner loop, and patterns stay in registers.
    if length == _ONE:
      _sum_rows(_ONE, first, stop, entry, own, width, factors, arrays, sequence_form, utility)
    elif length == _TWO:
      _sum_rows(_TWO, first, stop, entry, own, width, factors, arrays, sequence_form, utility)
    else:
      for row in range(first, stop):
        total = full(0.0)
        for _ in range(length):
          columns = _load_columns(values, others[entry, 0])
          other, factor = np.uint64(others[entry, 1]), values[factors + entry]
          total = _add_columns(total, columns, width, factor, other, sequence_form)
          entry += _ONE
        store_first(utility, np.uint64(rows[row]), total, own)


class SortedPatterns(TypedPatterns):
  """Payoffs of two players as typed patterns whose rows are sorted; not for files."""

  form = "sorted patterns"
  gradient = sorted_pattern_gradient

  def __init__(self, payoff: TypedPatterns) -> None:
    """Sorts a payoff's rows, and with them `others` and the factors.

    In `table` there are, of each player, the first run, one past the last, where the factors begin, two zeros, and the
    number of leaves; then, of runs, the first row, one past the last, the first entry, how many entries each row has,
    how many of the player's types, and how many columns of the patterns are not zero, rounded up to an even number. In
    `rows` there is the first sequence of each row.
    """
    self._unsorted = payoff
    table, rows, others, values = payoff.arrays
    squares, factors = np.split(values, [len(values) - len(others)])
    cells = squares.reshape(-1, LANES, LANES) != 0
    wide = LANES - cells.any(axis=2)[:, ::-1].argmax(axis=1)
    players, runs, starts, entries = [], [], [], []
    num_runs = len(table)
    for begin, end, first_factor, num_leaves in table.astype(np.int64):
      own, first_entry = rows.reshape(-1, 2)[begin : end + 1].astype(np.int64).T
      kinds, which = distinct_columns(_kinds(own, first_entry, others[:, 0], wide))
      order, counts = np.argsort(which, kind="stable"), np.bincount(which)
      stops, taken = begin + np.cumsum(counts), counts * kinds[0]
      entry = first_entry[0] + np.cumsum(taken) - taken
      runs.append(np.stack([stops - counts, stops, entry, *kinds[:3]], axis=1))
      starts.append(own[order])
      entries.append(spread(first_entry[order], np.diff(first_entry)[order]))
      players.append((num_runs, num_runs + len(stops), first_factor, 0, 0, num_leaves))
      num_runs += len(stops)
    order = np.concatenate(entries)
    super().__init__(
      PayoffArrays(
        table=np.concatenate([players, *runs]).astype(np.uint64),
        rows=np.concatenate(starts).astype(np.uint32),
        others=others[order],
        values=aligned(np.concatenate([squares, factors[order]])),
      )
    )

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """See the base class."""
    return self._unsorted.leaves(player)

  def gains(self) -> "SortedPatterns":
    """See the base class; other rows have the same patterns."""
    return SortedPatterns(self._unsorted.gains())

  def check(self, treeplexes: Sequence[Treeplex], real: Bools) -> None:
    """See `Payoff.check`."""
    Payoff.check(self, treeplexes, real)


def _kinds(own: Int64s, first_entry: Int64s, patterns: Uint32s, wide: Int64s) -> Int64s:
  """Returns what rows of one run have in common: what the table says of them, and, of few entries, the patterns.

  Args:
    own: the first sequence of each row, and of one more that does not count.
    first_entry: the first entry of each.
    patterns: of each entry.
    wide: how many columns each pattern has.

  Returns:
    Shape (5, rows).
  """
  begins, lengths = first_entry[:-1], np.diff(first_entry)
  widths, alike = np.zeros(len(begins), np.int64), np.zeros((2, len(begins)), np.int64)
  some, few = lengths > 0, (lengths == 1) | (lengths == 2)
  widths[some] = np.maximum.reduceat(wide[patterns[: first_entry[-1]]], begins[some])
  alike[:, few] = patterns[begins[few]], patterns[first_entry[1:][few] - 1]
  mine = np.minimum(np.diff(own), LANES)
  return np.stack([lengths, mine, widths + widths % 2, *alike])
