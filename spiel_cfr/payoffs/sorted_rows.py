"""Leaf rows of two players, sorted by their length: what iterations read.

A row of one or two leaves takes less time than the processor loses by guessing wrongly where it ends. Rows of the same
length, one after the other, all end in the same place.
"""

import numpy as np
from numba import types

from spiel_cfr.kernels.arrays import (
  COUNT_TABLE,
  COUNTS,
  FLOATS,
  INDEX_TABLE,
  INDICES,
  Bools,
  Float64s,
  Uint32s,
  Uint64s,
)
from spiel_cfr.kernels.compile import inlined, kernel
from spiel_cfr.payoffs.base import Payoff, PayoffArrays, gradient_signature
from spiel_cfr.payoffs.leaf_rows import LeafRows

# Columns of the table, of players and of runs of rows.
COLUMNS = 5
_ONE, _TWO, _THREE, _FOUR, _FIVE, _SIX = (np.uint64(number) for number in range(1, 7))


@inlined
def _sum_rows(
  length: int,
  first: int,
  stop: int,
  leaf: int,
  rows: Uint32s,
  others: Uint32s,
  values: Float64s,
  sequence_form: Float64s,
  utility: Float64s,
) -> None:
  """Sums rows of one length, from `first` on; their leaves begin at `leaf`."""
  for row in range(first, stop):
    total = 0.0
    for entry in range(length):
      total += values[leaf + entry] * sequence_form[others[0, leaf + entry]]
    leaf += length
    utility[rows[row]] = total


@kernel(gradient_signature(types.float64))
def sorted_row_gradient(
  player: int, arrays: PayoffArrays, sequence_form: Float64s, utility: Float64s
) -> None:
  """Sums each sequence's leaves."""
  table, rows, others, values = arrays
  root, end, first_run, end_run = (
    table[player, 0],
    table[player, 1],
    table[player, 2],
    table[player, 3],
  )
  for own in range(root, end):
    utility[own] = 0.0
  for run in range(first_run, end_run):
    length, first, stop, leaf = table[run, 0], table[run, 1], table[run, 2], table[run, 3]
    # With the length known to the compiler there is no inner loop to set up, which would take longer than a leaf.
    if length == _ONE:
      _sum_rows(_ONE, first, stop, leaf, rows, others, values, sequence_form, utility)
    elif length == _TWO:
      _sum_rows(_TWO, first, stop, leaf, rows, others, values, sequence_form, utility)
    elif length == _THREE:
      _sum_rows(_THREE, first, stop, leaf, rows, others, values, sequence_form, utility)
    elif length == _FOUR:
      _sum_rows(_FOUR, first, stop, leaf, rows, others, values, sequence_form, utility)
    elif length == _FIVE:
      _sum_rows(_FIVE, first, stop, leaf, rows, others, values, sequence_form, utility)
    elif length == _SIX:
      _sum_rows(_SIX, first, stop, leaf, rows, others, values, sequence_form, utility)
    else:
      _sum_rows(length, first, stop, leaf, rows, others, values, sequence_form, utility)


@kernel(
  types.void(COUNTS, INDICES, FLOATS, INDICES, COUNTS, COUNT_TABLE, INDICES, INDEX_TABLE, FLOATS)
)
def sort_rows(
  counts: Uint64s,
  others: Uint32s,
  values: Float64s,
  place: Uint32s,
  numbers: Uint64s,
  table: Uint64s,
  rows: Uint32s,
  sorted_others: Uint32s,
  sorted_values: Float64s,
) -> None:
  """Copies one player's rows, those of the same length next to each other.

  Args:
    counts: how many leaves each row has.
    others: the other player's sequences of the leaves, row by row, one player's after the other's.
    values: what the leaves are worth.
    place: the new number of each sequence, of both players; rows with the same one are put together.
    numbers: the player's root and end, where its leaves begin and its rows and runs, its new root and end; where rows
      and runs begin is brought up to date.
    table: its runs are filled: the length of the rows, the first, one past the last, the first leaf.
    rows: filled with the new numbers of the rows.
    sorted_others: filled.
    sorted_values: filled.
  """
  begin, end, leaf, root = numbers[0], numbers[1], numbers[2], numbers[5]
  # The length of each new row, then where its next leaf goes.
  length_of = np.zeros(numbers[6] - root, np.uint64)
  for own in range(begin, end):
    if counts[own] != 0:
      length_of[np.uint64(place[own]) - root] += counts[own]
  longest = np.uint64(0)
  for length in length_of:
    longest = max(longest, length)
  # How many rows of each length, then where they go.
  row_at, leaf_at = np.zeros(longest + _ONE, np.uint64), np.zeros(longest + _ONE, np.uint64)
  for length in length_of:
    row_at[length] += _ONE
  row, run, first_leaf = numbers[3], numbers[4], leaf
  for length in range(_ONE, longest + _ONE):
    number = row_at[length]
    row_at[length], leaf_at[length] = row, first_leaf
    if number != 0:
      table[run, 0], table[run, 1], table[run, 2], table[run, 3] = (
        length,
        row,
        row + number,
        first_leaf,
      )
      run += _ONE
    row += number
    first_leaf += number * length
  numbers[3], numbers[4] = row, run
  for new in range(np.uint64(len(length_of))):
    length = length_of[new]
    if length != 0:
      rows[row_at[length]] = np.uint32(root + new)
      row_at[length] += _ONE
      length_of[new] = leaf_at[length]
      leaf_at[length] += length
  for own in range(begin, end):
    length = counts[own]
    if length != 0:
      new = np.uint64(place[own]) - root
      to = length_of[new]
      length_of[new] += length
      for i in range(length):
        sorted_others[0, to + i] = place[others[leaf + i]]
        sorted_values[to + i] = values[leaf + i]
      leaf += length


class SortedRows(Payoff):
  """Payoffs of two players as rows of leaves, sorted by length; not for files."""

  form = "sorted rows"
  gradient = sorted_row_gradient

  @classmethod
  def build(
    cls,
    counts: Uint64s,
    others: Uint32s,
    values: Float64s,
    place: Uint32s,
    bounds: list[tuple[int, int]],
    new_bounds: list[tuple[int, int]],
  ) -> "SortedRows":
    """Builds it.

    Args:
      counts: how many leaves each sequence has, shape (sequences,).
      others: the other player's sequence of each leaf, sequence by sequence, shape (leaves of both players,).
      values: what it is worth.
      place: the number of each sequence from now on, shape (sequences,); several may have the same one.
      bounds: of each player, the root, and one past the last sequence.
      new_bounds: the same, from now on.

    Returns:
      The payoff with, in `table`, first a player's root, end, first run, end of the runs, and number of leaves; then,
      of runs of rows of the same length, this length, the first row, one past the last, the first leaf; in `rows`, the
      sequences; in `others`, the other player's; in `values`, what leaves are worth.
    """
    num_leaves = len(others)
    # Rows of n different lengths have at least n (n + 1) / 2 leaves.
    table = np.zeros((2 + 2 * int(np.sqrt(2 * num_leaves + 1) + 1), COLUMNS), np.uint64)
    rows = np.zeros(int(np.count_nonzero(counts)), np.uint32)
    sorted_others = np.zeros((1, num_leaves), np.uint32)
    sorted_values = np.empty(num_leaves)
    first_leaf, row, run = 0, 0, 2
    for player, (begin, end) in enumerate(bounds):
      numbers = np.array([begin, end, first_leaf, row, run, *new_bounds[player]], np.uint64)
      sort_rows(counts, others, values, place, numbers, table, rows, sorted_others, sorted_values)
      own = int(counts[begin:end].sum())
      table[player] = *new_bounds[player], run, int(numbers[4]), own
      first_leaf, row, run = first_leaf + own, int(numbers[3]), int(numbers[4])
    return cls(PayoffArrays(table, rows, sorted_others, sorted_values))

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """See the base class."""
    table, rows, others, values = self.arrays
    runs = table[int(table[player, 2]) : int(table[player, 3])].astype(np.int64)
    own = [np.repeat(rows[first:end], length) for length, first, end, _, _ in runs]
    first = int(runs[0, 3]) if len(runs) else 0
    leaves = slice(first, first + int(table[player, 4]))
    return np.concatenate([np.zeros(0, np.uint32), *own]), others[:, leaves], values[leaves]


def sorted_rows(payoff: LeafRows, wanted: Bools) -> SortedRows:
  """Returns some of a two-player game's leaves as sorted rows, shape (leaves of both players,)."""
  table, rows, (others,), values = payoff.arrays
  end = len(rows) - 1
  before = np.append(0, np.cumsum(wanted))[rows.astype(np.int64)]
  bounds = [(int(root), int(stop)) for root, stop in table[:, :2]]
  return SortedRows.build(
    np.diff(before).astype(np.uint64),
    others[wanted],
    values[wanted],
    np.arange(end, dtype=np.uint32),
    bounds,
    bounds,
  )
