"""The plainest form of payoffs: for each sequence of a player, a row of leaves. It takes any game.

Most rows have few leaves, and a row of one or two takes less time than the processor loses by guessing wrongly where it
ends. So rows are sorted by their length, and those of about the same length are summed side by side, a vector at a
time: their first leaves are next to each other, then their second ones, and so on. In the last place of the shorter
ones of them is a leaf that is worth nothing. Rows of which there are not enough are on their own.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  Bools,
  Float64s,
  Int64s,
  Uint32s,
  borrowed,
  require,
  require_array,
)
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr._numba.simd import LANES, full, gather, load, scatter
from spiel_cfr.games.payoffs.payoff import (
  END,
  END_ROW,
  END_RUN,
  FIRST_ENTRY,
  FIRST_ROW,
  FIRST_RUN,
  LENGTH,
  PLAYER_COLUMNS,
  ROOT,
  RUN_COLUMNS,
  Payoff,
  PayoffArrays,
  check_runs,
  check_sequences,
  gradient_signature,
  rows_of,
)
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# The column of `PayoffArrays.runs` that this form adds: how many rows are side by side, 1 or `LANES`.
SIDE_BY_SIDE = 4
# Rows side by side are at most this many times as long as each other.
_TIMES = 2
_ONE, _TWO, _LANES = np.uint64(1), np.uint64(2), np.uint64(LANES)


@inlined
def _sum_rows(
  num_others: int, player: int, arrays: PayoffArrays, sequence_form: Float64s, utility: Float64s
) -> None:
  """Sums each sequence's leaves."""
  players, runs, rows = arrays.players, arrays.runs, arrays.rows
  others, values, num_leaves = arrays.others, arrays.values, np.uint64(arrays.others.shape[1])
  for own in range(players[player, ROOT], players[player, END]):
    utility[own] = 0.0
  for run in range(players[player, FIRST_RUN], players[player, END_RUN]):
    first, end, leaf = runs[run, FIRST_ROW], runs[run, END_ROW], runs[run, FIRST_ENTRY]
    length = runs[run, LENGTH]
    if runs[run, SIDE_BY_SIDE] == _ONE:
      for row in range(first, end):
        total = 0.0
        for each in range(leaf, leaf + length):
          product = values[each] * sequence_form[others[0, each]]
          for other in range(_ONE, num_others):
            product *= sequence_form[others[other, each]]
          total += product
        leaf += length
        utility[rows[row]] = total
    else:
      for row in range(first, end, _LANES):
        totals = full(0.0)
        for _ in range(length):
          products = load(values, leaf) * gather(sequence_form, others, leaf)
          for other in range(_ONE, num_others):
            products = products * gather(sequence_form, others, other * num_leaves + leaf)
          totals = totals + products
          leaf += _LANES
        scatter(utility, rows, row, totals)


@kernel(gradient_signature(types.float64), passed=True)
def leaf_row_gradient(
  player: int, arrays: PayoffArrays, sequence_form: Float64s, utility: Float64s
) -> None:
  """Sums each sequence's leaves, in an order that never changes."""
  # Helpers that are given arrays with owners would count references.
  arrays, sequence_form, utility = borrowed(arrays), borrowed(sequence_form), borrowed(utility)
  # With the number known to the compiler there is no loop over others.
  num_others = np.uint64(arrays.others.shape[0])
  if num_others == _ONE:
    _sum_rows(_ONE, player, arrays, sequence_form, utility)
  elif num_others == _TWO:
    _sum_rows(_TWO, player, arrays, sequence_form, utility)
  else:
    _sum_rows(num_others, player, arrays, sequence_form, utility)


class Leaves(NamedTuple):
  """One player's leaves.

  Attributes:
    own: the player's last sequence, shape (leaves,).
    others: those of the other players, from the next one on, shape (players - 1, leaves).
    values: the payoffs weighted by chance, shape (leaves,).
  """

  own: Uint32s
  others: Uint32s
  values: Float64s


class LeafRows(Payoff):
  """Payoffs as rows of leaves.

  An entry is a leaf: `others` has shape (players - 1, leaves), and `values` are payoffs. The leaves of rows that are
  side by side alternate.
  """

  form = "leaf rows"
  gradient = leaf_row_gradient

  @classmethod
  def build(
    cls, leaf_sequences: Uint32s, leaf_payoffs: Float64s, treeplexes: Sequence[Treeplex]
  ) -> "LeafRows":
    """Builds it.

    Args:
      leaf_sequences: shape (players, leaves), in the numbering of the treeplexes.
      leaf_payoffs: shape (leaves, players).
      treeplexes: one per player.
    """
    leaves = [
      leaves_of(player, leaf_sequences, leaf_payoffs, leaf_payoffs[:, player] != 0)
      for player in range(len(treeplexes))
    ]
    return cls.of_leaves(leaves, [(tree.root, tree.end) for tree in treeplexes])

  @classmethod
  def of_leaves(cls, leaves: Sequence[Leaves], bounds: Sequence[tuple[int, int]]) -> "LeafRows":
    """Builds it from each player's leaves, given each player's root and one past its last sequence.

    Leaves of one sequence are summed in the order in which they are listed.
    """
    players, all_runs, all_rows, others, values = [], [], [], [], []
    num_rows = num_leaves = num_runs = 0
    for (root, end), (sequences, of_others, payoffs) in zip(bounds, leaves, strict=True):
      own = sequences.astype(np.int64) - root
      if (own[1:] < own[:-1]).any():
        order = np.argsort(own, kind="stable")
        own, of_others, payoffs = own[order], of_others[:, order], payoffs[order]
      lengths = np.bincount(own, minlength=end - root)
      rows = np.argsort(lengths, kind="stable")[np.count_nonzero(lengths == 0) :]
      runs = _plan(lengths[rows])
      place, length = _places(rows, lengths, runs, own)
      others.append(np.zeros((len(of_others), length), np.uint32))
      others[-1][:, place] = of_others
      values.append(np.zeros(length))
      values[-1][place] = payoffs
      all_rows.append(root + rows)
      all_runs.append(runs + np.array([num_rows, num_rows, num_leaves, 0, 0, 0]))
      end_run = num_runs + len(runs)
      players.append((root, end, num_runs, end_run, int(np.count_nonzero(payoffs))))
      num_rows, num_leaves, num_runs = num_rows + len(rows), num_leaves + length, end_run
    arrays = PayoffArrays(
      players=np.array(players, np.uint64).reshape(-1, PLAYER_COLUMNS),
      runs=np.concatenate(all_runs).astype(np.uint64),
      rows=np.concatenate(all_rows).astype(np.uint32),
      others=np.concatenate(others, axis=1),
      values=np.concatenate(values),
    )
    return cls(arrays)

  def check(self, treeplexes: Sequence[Treeplex], real: Bools) -> None:
    """Also checks that rows are different sequences, and leaves the others'."""
    players, runs, rows, others, values, patterns, squares = self.arrays
    check_runs(self.arrays, treeplexes)
    require_array(others, "others", np.uint32, len(treeplexes) - 1, len(values))
    require_array(patterns, "patterns", np.float64, 0)
    require_array(squares, "squares", np.uint32, 0)
    side_by_side = runs[:, SIDE_BY_SIDE]
    require((side_by_side == 1) | (side_by_side == LANES), "rows are alone or make vectors")
    require((runs[:, END_ROW] - runs[:, FIRST_ROW]) % side_by_side == 0, "vectors are full")
    require(others < treeplexes[-1].end, "leaves are in treeplexes")
    require(len(np.unique(rows)) == len(rows), "rows are different sequences")
    for player, tree in enumerate(treeplexes):
      own, lengths, begin = rows_of(self.arrays, player)
      check_sequences(own.astype(np.uint32), tree, real)
      worth = begin + np.flatnonzero(values[begin : begin + lengths.sum()])
      require(players[player, -1] == len(worth), "the leaves of players are counted")
      for shift in range(1, len(treeplexes)):
        other = treeplexes[(player + shift) % len(treeplexes)]
        check_sequences(others[shift - 1, worth], other, real)

  def leaves(self, player: int) -> Leaves:
    """Lists them by the player's sequence."""
    rows, lengths, begin = rows_of(self.arrays, player)
    first, end = self.arrays.players[player, [FIRST_RUN, END_RUN]].tolist()
    sequences, row = [np.zeros(0, np.int64)], 0
    for start, stop, _, length, side_by_side, _ in self.arrays.runs[first:end].tolist():
      some = rows[row : row + stop - start].reshape(-1, 1, side_by_side)
      sequences.append(np.repeat(some, length, axis=1).ravel())
      row += stop - start
    own = np.concatenate(sequences)
    worth = np.flatnonzero(self.arrays.values[begin : begin + lengths.sum()])
    worth = worth[np.argsort(own[worth], kind="stable")]
    return Leaves(
      own[worth].astype(np.uint32),
      self.arrays.others[:, begin + worth],
      self.arrays.values[begin + worth],
    )


def leaves_of(
  player: int, leaf_sequences: Uint32s, leaf_payoffs: Float64s, wanted: Bools
) -> Leaves:
  """Returns some of the leaves from a player's point of view, in ascending order.

  Args:
    player: whose.
    leaf_sequences: shape (players, leaves).
    leaf_payoffs: shape (leaves, players).
    wanted: which leaves, shape (leaves,).
  """
  num_players = len(leaf_sequences)
  some = np.flatnonzero(wanted)
  keys = [leaf_sequences[(player + shift) % num_players] for shift in range(num_players)]
  order = some[np.lexsort([key[some] for key in reversed(keys)])]
  return Leaves(
    keys[0][order], np.stack([key[order] for key in keys[1:]]), leaf_payoffs[order, player]
  )


def _plan(lengths: Int64s) -> Int64s:
  """Returns one player's runs, given the lengths of its rows in ascending order; rows and leaves count from 0."""
  runs: list[list[int]] = []
  row = leaf = 0
  while row < len(lengths):
    length, side_by_side = int(lengths[row]), 1
    end = row + 1
    if row + LANES <= len(lengths) and lengths[row + LANES - 1] <= _TIMES * length:
      side_by_side, end = LANES, row + LANES
      if lengths[end - 1] == length:
        # All vectors of this length at once.
        alike = int(np.searchsorted(lengths, length, side="right")) - row
        end = row + alike // LANES * LANES
      length = int(lengths[end - 1])
    if runs and runs[-1][LENGTH : SIDE_BY_SIDE + 1] == [length, side_by_side]:
      runs[-1][END_ROW] = end
    else:
      runs.append([row, end, leaf, length, side_by_side, 0])
    leaf += (end - row) * length
    row = end
  return np.array(runs, np.int64).reshape(-1, RUN_COLUMNS)


def _places(rows: Int64s, lengths: Int64s, runs: Int64s, own: Int64s) -> tuple[Int64s, int]:
  """Returns where each of one player's leaves goes, and how many places there are.

  Args:
    rows: the sequence of each row.
    lengths: how many leaves each sequence has.
    runs: of the rows.
    own: the sequence of each leaf, in ascending order.
  """
  num_rows = runs[:, END_ROW] - runs[:, FIRST_ROW]
  columns = [FIRST_ROW, FIRST_ENTRY, LENGTH, SIDE_BY_SIDE]
  first, leaf, length, side_by_side = np.repeat(runs[:, columns], num_rows, axis=0).T
  number = np.arange(len(rows)) - first
  lane = number % side_by_side
  begin, step = np.zeros((2, len(lengths)), np.int64)
  begin[rows] = leaf + (number - lane) * length + lane
  step[rows] = side_by_side
  rank = np.arange(len(own)) - (np.cumsum(lengths) - lengths)[own]
  return begin[own] + step[own] * rank, int(num_rows @ runs[:, LENGTH])
