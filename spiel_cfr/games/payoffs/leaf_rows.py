"""Leaf rows: payoffs as a list of leaves for each sequence of a player. The form takes any game.

A *leaf list* has the leaves of a single sequence, which is the row of the list in `runs`. Most lists are short. For one
or two leaves, a mispredicted end of the loop costs more time than the sum. Lists are therefore sorted by length, and
`LANES` lists of similar lengths are summed side by side. Their first leaves are stored next to each other, then their
second leaves, and so on. Shorter lists are padded with leaves of value 0. Lists that do not fill `LANES` are summed one
by one.

    SIDE_BY_SIDE 1      a0 a1 a2 b0 b1 b2           lists a, b: one after the other
    SIDE_BY_SIDE 4      a0 b0 c0 d0 a1 b1 c1 d1     lists a to d: their leaves alternate (`LANES` is 8)
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import (
  AnyFloats,
  Float64s,
  Int64s,
  Uint32s,
  range_starts,
  require,
  require_array,
  unpickled,
)
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, CountTable, Doubles, IndexTable, Indices
from spiel_cfr._numba.simd import LANES, full, gather, load, scatter
from spiel_cfr._numba.steps import Step, step
from spiel_cfr._util import files
from spiel_cfr.games.payoffs import runs as column
from spiel_cfr.games.payoffs.payoff import Payoff, summed_scales
from spiel_cfr.games.payoffs.runs import rows_of
from spiel_cfr.games.payoffs.utility_bounds import Leaves
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# The last column of `LeafRowArrays.runs`: the number of leaf lists whose leaves alternate, 1 or `LANES`.
SIDE_BY_SIDE = 4
# The longest of lists side by side is at most this many times as long as the shortest.
_MOST_RATIO = 2
_ONE, _TWO, _LANES = np.uint64(1), np.uint64(2), np.uint64(LANES)


class LeafRowArrays(NamedTuple):
  """The arrays of `LeafRows`. A term is a leaf.

  Attributes:
    player_bounds: uint64 (players, 5). See `runs`.
    runs: uint64 (runs, 5). See `runs`; the last column is `SIDE_BY_SIDE`.
    rows: uint32 (rows,). The sequence of each leaf list.
    others: uint32 (players - 1, terms). The other players' sequences at each leaf.
    values: float64 (terms,). The payoff of each leaf.
  """

  player_bounds: CountTable
  runs: CountTable
  rows: Indices
  others: IndexTable
  values: Doubles

  def __reduce__(self) -> tuple[Any, ...]:
    return unpickled, (LeafRowArrays, *self)


class LeafRowGradient(NamedTuple):
  """The arguments of the gradient kernels of `LeafRows`.

  Attributes:
    player: int. The player.
    arrays: LeafRowArrays. The payoffs.
    sequence_form: float64 (sequences,). The other players' sequence forms.
    utility: float64 (sequences,). The gradient, which the kernel writes.
  """

  player: Count
  arrays: LeafRowArrays
  sequence_form: Doubles
  utility: Doubles


@inlined
def _sum_rows(record: LeafRowGradient, num_others: int) -> None:
  """Writes the sum of each sequence's leaves, always added in the same order."""
  player, sequence_form, utility = record.player, record.sequence_form, record.utility
  bounds, runs, rows = record.arrays.player_bounds, record.arrays.runs, record.arrays.rows
  others, values = record.arrays.others, record.arrays.values
  num_terms = np.uint64(others.shape[1])
  for sequence in range(bounds[player, column.ROOT], bounds[player, column.END]):
    utility[sequence] = 0.0
  for run in range(bounds[player, column.FIRST_RUN], bounds[player, column.END_RUN]):
    first, end = runs[run, column.FIRST_ROW], runs[run, column.END_ROW]
    first_term, length = runs[run, column.FIRST_TERM], runs[run, column.LENGTH]
    if runs[run, SIDE_BY_SIDE] == _ONE:
      for row in range(first, end):
        total = 0.0
        for term in range(first_term, first_term + length):
          product = values[term] * sequence_form[others[0, term]]
          for other in range(_ONE, num_others):
            product *= sequence_form[others[other, term]]
          total += product
        first_term += length
        utility[rows[row]] = total
    else:
      for row in range(first, end, _LANES):
        totals = full(0.0)
        for _ in range(length):
          products = load(values, first_term) * gather(sequence_form, others, first_term)
          for other in range(_ONE, num_others):
            products = products * gather(sequence_form, others, other * num_terms + first_term)
          totals = totals + products
          first_term += _LANES
        scatter(utility, rows, row, totals)


@step(LeafRowGradient, single=False)
def two_player_leaf_rows(record: LeafRowGradient) -> None:
  """The gradient of `LeafRows` in a game of two players."""
  # A constant number of players lets the compiler drop the loop over the other players.
  _sum_rows(record, _ONE)


@step(LeafRowGradient, single=False)
def several_player_leaf_rows(record: LeafRowGradient) -> None:
  """The gradient of `LeafRows` for any number of players."""
  num_others = np.uint64(record.arrays.others.shape[0])
  if num_others == _TWO:
    _sum_rows(record, _TWO)
  else:
    _sum_rows(record, num_others)


class LeafRows(Payoff):
  """Payoffs as a list of leaves for each sequence."""

  form = "leaf rows"
  arrays: LeafRowArrays

  def gradient_step(self, player: int, sequence_form: AnyFloats, utility: AnyFloats) -> Step:
    kernel = two_player_leaf_rows if len(self.arrays.others) == 1 else several_player_leaf_rows
    record = LeafRowGradient(player, self.arrays, sequence_form, utility)
    return kernel.on(record, utility.dtype)

  def infoset_scales(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    absolute = LeafRows(self.arrays._replace(values=np.abs(self.arrays.values)))
    return summed_scales(absolute, treeplexes, player)

  @property
  def num_leaves(self) -> int:
    return int(self.arrays.player_bounds[0, column.LEAVES])

  @classmethod
  def build(
    cls, leaf_sequences: Uint32s, leaf_payoffs: Float64s, treeplexes: Sequence[Treeplex]
  ) -> "LeafRows":
    """Builds the form from leaf sequences, shape (players, leaves), and payoffs, shape (leaves, players)."""
    players = range(len(treeplexes))
    leaves = [_leaves_of(player, leaf_sequences, leaf_payoffs) for player in players]
    return cls.of_leaves(leaves, treeplexes)

  @classmethod
  def of_leaves(cls, leaves: Sequence[Leaves], treeplexes: Sequence[Treeplex]) -> "LeafRows":
    """Builds the form from each player's leaves. The leaves of a sequence are summed in the given order."""
    bounds, all_runs, all_rows, others, values = [], [], [], [], []
    num_rows = first_term = num_runs = 0
    for tree, (sequences, of_others, payoffs) in zip(treeplexes, leaves, strict=True):
      root, end = tree.root, tree.end
      sequence = sequences.astype(np.int64) - root
      if (sequence[1:] < sequence[:-1]).any():
        order = np.argsort(sequence, kind="stable")
        sequence, of_others, payoffs = sequence[order], of_others[:, order], payoffs[order]
      lengths = np.bincount(sequence, minlength=end - root)
      rows = np.argsort(lengths, kind="stable")[np.count_nonzero(lengths == 0) :]
      runs = _plan_runs(lengths[rows])
      term, num_terms = _terms_of_leaves(rows, lengths, runs, sequence)
      others.append(np.zeros((len(of_others), num_terms), np.uint32))
      others[-1][:, term] = of_others
      values.append(np.zeros(num_terms))
      values[-1][term] = payoffs
      all_rows.append(root + rows)
      all_runs.append(runs + np.array([num_rows, num_rows, first_term, 0, 0]))
      end_run = num_runs + len(runs)
      bounds.append((root, end, num_runs, end_run, int(np.count_nonzero(payoffs))))
      num_rows, first_term, num_runs = num_rows + len(rows), first_term + num_terms, end_run
    arrays = LeafRowArrays(
      player_bounds=np.array(bounds, np.uint64),
      runs=np.concatenate(all_runs).astype(np.uint64),
      rows=np.concatenate(all_rows).astype(np.uint32),
      others=np.concatenate(others, axis=1),
      values=np.concatenate(values),
    )
    return cls(arrays)

  def saved(self) -> files.Arrays:
    """Returns each player's leaves, sorted by its sequence."""
    return {
      f"{player}.{name}": np.ascontiguousarray(array)
      for player in range(len(self.arrays.player_bounds))
      for name, array in self.leaves(player)._asdict().items()
    }

  @classmethod
  def restored(cls, arrays: Mapping[str, Any], treeplexes: Sequence[Treeplex]) -> "LeafRows":
    """Rebuilds the rows; the leaves of each sequence keep their order."""
    num_players, leaves = len(treeplexes), []
    for player in range(num_players):
      own, others, values = (arrays[f"{player}.{name}"] for name in Leaves._fields)
      require_array(values, "values", np.float64, -1)
      require_array(own, "own", np.uint32, len(values))
      require_array(others, "others", np.uint32, num_players - 1, len(values))
      for shift, sequences in enumerate([own, *others]):
        tree = treeplexes[(player + shift) % num_players]
        require((sequences >= tree.root) & (sequences < tree.end), "leaves are in treeplexes")
      leaves.append(Leaves(own, others, values))
    return cls.of_leaves(leaves, treeplexes)

  def leaves(self, player: int) -> Leaves:
    """Lists a player's leaves, sorted by its sequence."""
    rows, lengths, begin = rows_of(*self.arrays[:3], player)
    first, end = self.arrays.player_bounds[player, [column.FIRST_RUN, column.END_RUN]].tolist()
    sequences, row = [np.zeros(0, np.int64)], 0
    for first_row, end_row, _, length, side_by_side in self.arrays.runs[first:end].tolist():
      run_rows = rows[row : row + end_row - first_row].reshape(-1, 1, side_by_side)
      sequences.append(np.repeat(run_rows, length, axis=1).ravel())
      row += end_row - first_row
    sequence = np.concatenate(sequences)
    # Terms of value 0 are padding.
    terms = np.flatnonzero(self.arrays.values[begin : begin + lengths.sum()])
    terms = terms[np.argsort(sequence[terms], kind="stable")]
    return Leaves(
      sequence[terms].astype(np.uint32),
      self.arrays.others[:, begin + terms],
      self.arrays.values[begin + terms],
    )


def _leaves_of(player: int, leaf_sequences: Uint32s, leaf_payoffs: Float64s) -> Leaves:
  """Returns the leaves with a payoff for a player, sorted by its sequence, then by the others' sequences."""
  num_players = len(leaf_sequences)
  used = np.flatnonzero(leaf_payoffs[:, player])
  keys = [leaf_sequences[(player + shift) % num_players] for shift in range(num_players)]
  order = used[np.lexsort([key[used] for key in reversed(keys)])]
  return Leaves(
    keys[0][order], np.stack([key[order] for key in keys[1:]]), leaf_payoffs[order, player]
  )


def _plan_runs(lengths: Int64s) -> Int64s:
  """Plans one player's runs, given the lengths of its rows in ascending order.

  Returns:
    int64 (runs, columns), as `LeafRowArrays.runs`. The player's rows and terms are numbered from 0.
  """
  runs: list[list[int]] = []
  row = term = 0
  while row < len(lengths):
    length, side_by_side = int(lengths[row]), 1
    end = row + 1
    if row + LANES <= len(lengths) and lengths[row + LANES - 1] <= _MOST_RATIO * length:
      side_by_side, end = LANES, row + LANES
      if lengths[end - 1] == length:
        # All full vectors of rows of this length are one run.
        num_alike = int(np.searchsorted(lengths, length, side="right")) - row
        end = row + num_alike // LANES * LANES
      length = int(lengths[end - 1])
    if runs and runs[-1][column.LENGTH :] == [length, side_by_side]:
      runs[-1][column.END_ROW] = end
    else:
      runs.append([row, end, term, length, side_by_side])
    term += (end - row) * length
    row = end
  return np.array(runs, np.int64).reshape(-1, SIDE_BY_SIDE + 1)


def _terms_of_leaves(
  rows: Int64s, lengths: Int64s, runs: Int64s, sequence: Int64s
) -> tuple[Int64s, int]:
  """Returns the term of each of a player's leaves, and the number of terms, padding included.

  Args:
    rows: int64 (rows,). The sequence of each row.
    lengths: int64 (sequences,). The number of leaves of each sequence.
    runs: int64 (runs, columns). The result of `_plan_runs`.
    sequence: int64 (leaves,). The sequence of each leaf, ascending.
  """
  num_rows = runs[:, column.END_ROW] - runs[:, column.FIRST_ROW]
  columns = [column.FIRST_ROW, column.FIRST_TERM, column.LENGTH, SIDE_BY_SIDE]
  first_row, first_term, length, side_by_side = np.repeat(runs[:, columns], num_rows, axis=0).T
  row_in_run = np.arange(len(rows)) - first_row
  lane = row_in_run % side_by_side
  # The term of each sequence's first leaf, and the distance to the terms of its next leaves.
  first, step = np.zeros((2, len(lengths)), np.int64)
  first[rows] = first_term + (row_in_run - lane) * length + lane
  step[rows] = side_by_side
  rank = np.arange(len(sequence)) - range_starts(lengths)[sequence]
  return first[sequence] + step[sequence] * rank, int(num_rows @ runs[:, column.LENGTH])
