"""Leaf rows of two players, sorted by their length: what iterations read.

Most rows have few leaves, and a row of one or two takes less time than the processor loses by guessing wrongly where it
ends. So rows of about the same length are summed side by side, a vector at a time: their first leaves are next to each
other, then their second ones, and so on. In the last place of the shorter ones of them is a leaf that is worth nothing.
Rows of which there are not enough are on their own.
"""

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
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
from spiel_cfr._numba.kernels import kernel
from spiel_cfr._numba.simd import LANES, full, gather, load, scatter
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.payoffs.payoff import Payoff, PayoffArrays, gradient_signature

# Columns of the table, of players and of runs of rows.
COLUMNS = 5
# Rows next to each other are at most this many times as long as each other.
_TIMES = np.uint64(2)
_ZERO, _ONE, _LANES = np.uint64(0), np.uint64(1), np.uint64(LANES)


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
    if table[run, 4] == _ONE:
      for row in range(first, stop):
        total = 0.0
        for entry in range(leaf, leaf + length):
          total += values[entry] * sequence_form[others[0, entry]]
        leaf += length
        utility[rows[row]] = total
    else:
      for row in range(first, stop, _LANES):
        totals = full(0.0)
        for _ in range(length):
          totals = totals + load(values, leaf) * gather(sequence_form, others, leaf)
          leaf += _LANES
        scatter(utility, rows, row, totals)


@kernel(types.uint64(COUNTS, INDICES, COUNTS, COUNT_TABLE, INDICES, COUNTS, COUNTS))
def plan_rows(
  counts: Uint64s,
  place: Uint32s,
  numbers: Uint64s,
  table: Uint64s,
  rows: Uint32s,
  leaf_at: Uint64s,
  step: Uint64s,
) -> np.uint64:
  """Sorts one player's rows, and decides where their leaves go.

  Args:
    counts: how many leaves each row has.
    place: the new number of each sequence, of both players; rows with the same one are put together.
    numbers: the player's root and end, where its leaves, rows and runs begin, its new root and end; where leaves, rows
      and runs begin is brought up to date.
    table: its runs are filled: the length of the rows, the first, one past the last, the first leaf, and how many rows
      are next to each other.
    rows: filled with the new numbers of the rows.
    leaf_at: filled with where the first leaf of each new row goes,
    step: and how far from one to the next.

  Returns:
    How many leaves the player has.
  """
  begin, end, leaf, first_row, run, root = (
    numbers[0],
    numbers[1],
    numbers[2],
    numbers[3],
    numbers[4],
    numbers[5],
  )
  length_of, total = np.zeros(numbers[6] - root, np.uint64), _ZERO
  for own in range(begin, end):
    if counts[own] != _ZERO:
      length_of[np.uint64(place[own]) - root] += counts[own]
      total += counts[own]
  longest = _ZERO
  for length in length_of:
    longest = max(longest, length)
  # How many rows are of each length, then where they go.
  row_at = np.zeros(longest + _ONE, np.uint64)
  for length in length_of:
    row_at[length] += _ONE
  end_row = first_row
  for length in range(_ONE, longest + _ONE):
    number = row_at[length]
    row_at[length] = end_row
    end_row += number
  for new in range(np.uint64(len(length_of))):
    if length_of[new] != _ZERO:
      rows[row_at[length_of[new]]] = np.uint32(root + new)
      row_at[length_of[new]] += _ONE
  row, first_run = first_row, run
  while row < end_row:
    length, together = length_of[rows[row] - root], _ONE
    if row + _LANES <= end_row:
      most = length_of[rows[row + _LANES - _ONE] - root]
      if most <= _TIMES * length:
        length, together = most, _LANES
    if run == first_run or table[run - _ONE, 0] != length or table[run - _ONE, 4] != together:
      table[run, 0], table[run, 1], table[run, 3], table[run, 4] = length, row, leaf, together
      run += _ONE
    for k in range(together):
      new = np.uint64(rows[row + k]) - root
      leaf_at[root + new], step[root + new] = leaf + k, together
    row += together
    leaf += length * together
    table[run - _ONE, 2] = row
  numbers[2], numbers[3], numbers[4] = leaf, row, run
  return total


@kernel(types.void(COUNTS, INDICES, FLOATS, INDICES, COUNTS, COUNTS, INDEX_TABLE, FLOATS))
def place_leaves(
  counts: Uint64s,
  others: Uint32s,
  values: Float64s,
  place: Uint32s,
  leaf_at: Uint64s,
  step: Uint64s,
  sorted_others: Uint32s,
  sorted_values: Float64s,
) -> None:
  """Copies leaves, row by row, to where they go; `leaf_at` and `step` are of new rows, the former a workspace."""
  leaf = _ZERO
  for own in range(np.uint64(counts.shape[0])):
    if counts[own] != _ZERO:
      new = place[own]
      to = leaf_at[new]
      for _ in range(counts[own]):
        sorted_others[0, to] = place[others[leaf]]
        sorted_values[to] = values[leaf]
        to += step[new]
        leaf += _ONE
      leaf_at[new] = to


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
      of runs of rows, how many leaves each of them has, the first row, one past the last, the first leaf, and how many
      rows are side by side; in `rows`, the sequences; in `others`, the other player's; in `values`, what leaves are
      worth.
    """
    # Rows of n different lengths have at least n (n + 1) / 2 leaves; of each there may be rows side by side, and alone.
    table = np.zeros((2 + 4 * int(np.sqrt(2 * len(others) + 1) + 1), COLUMNS), np.uint64)
    rows = np.zeros(int(np.count_nonzero(counts)), np.uint32)
    leaf_at, step = np.empty((2, new_bounds[-1][1]), np.uint64)
    leaf, row, run = 0, 0, 2
    for player, (begin, end) in enumerate(bounds):
      numbers = np.array([begin, end, leaf, row, run, *new_bounds[player]], np.uint64)
      own = plan_rows.unchecked(counts, place, numbers, table, rows, leaf_at, step)
      table[player] = *new_bounds[player], run, int(numbers[4]), own
      leaf, row, run = (int(number) for number in numbers[2:5])
    sorted_others, sorted_values = np.zeros((1, leaf), np.uint32), np.zeros(leaf)
    place_leaves.unchecked(
      counts, others, values, place, leaf_at, step, sorted_others, sorted_values
    )
    return cls(PayoffArrays(table, rows, sorted_others, sorted_values))

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """See the base class."""
    table, rows, others, values = self.arrays
    own: list[Uint32s] = []
    first = last = 0
    for length, begin, end, leaf, together in table[slice(*table[player, 2:4].tolist())].tolist():
      first = leaf if not own else first
      last = leaf + length * (end - begin)
      side_by_side = rows[begin:end].reshape(-1, 1, together)
      own.append(np.repeat(side_by_side, length, axis=1).ravel())
    found = np.concatenate([np.zeros(0, np.uint32), *own])
    real = values[first:last] != 0
    return found[real], others[:, first:last][:, real], values[first:last][real]


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
