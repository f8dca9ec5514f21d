"""The plainest form of payoffs: for each player, a sparse row of leaves per sequence."""

from collections.abc import Sequence

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import Bools, Float64s, Uint32s, Uint64s, require, require_array
from spiel_cfr._numba.kernels import kernel
from spiel_cfr.games.payoffs.payoff import Payoff, PayoffArrays, check_sequences, gradient_signature
from spiel_cfr.games.sequence_form.treeplex import Treeplex


@kernel(gradient_signature(types.float64))
def leaf_row_gradient(
  player: int, arrays: PayoffArrays, sequence_form: Float64s, utility: Float64s
) -> None:
  """Sums each sequence's leaves: gathers only, so the order of the sums never changes."""
  table, rows, others, values = arrays
  root, end, first_row = table[player, 0], table[player, 1], table[player, 2]
  num_others = others.shape[0]
  if num_others == 1:
    for own in range(end - root):
      row = first_row + own
      total = 0.0
      for leaf in range(np.uint64(rows[row]), np.uint64(rows[row + np.uint64(1)])):
        total += values[leaf] * sequence_form[others[0, leaf]]
      utility[root + own] = total
  elif num_others == 2:
    for own in range(end - root):
      row = first_row + own
      total = 0.0
      for leaf in range(np.uint64(rows[row]), np.uint64(rows[row + np.uint64(1)])):
        total += values[leaf] * sequence_form[others[0, leaf]] * sequence_form[others[1, leaf]]
      utility[root + own] = total
  else:
    for own in range(end - root):
      row = first_row + own
      total = 0.0
      for leaf in range(np.uint64(rows[row]), np.uint64(rows[row + np.uint64(1)])):
        product = values[leaf]
        for other in range(np.uint64(num_others)):
          product *= sequence_form[others[other, leaf]]
        total += product
      utility[root + own] = total


class LeafRows(Payoff):
  """Payoffs as sparse rows of leaves; it takes any game."""

  form = "leaf rows"
  gradient = leaf_row_gradient

  @classmethod
  def build(
    cls,
    leaf_sequences: Uint32s,
    leaf_payoffs: Float64s,
    treeplexes: Sequence[Treeplex],
    zeros: bool = False,
  ) -> "LeafRows":
    """Builds it.

    Args:
      leaf_sequences: shape (players, leaves), in the numbering of the treeplexes.
      leaf_payoffs: shape (leaves, players).
      treeplexes: one per player.
      zeros: whether leaves are kept that are worth nothing to the player.

    Returns:
      The payoff with, in `table`, a player's root, end, first row and number of leaves; in `rows`, where each row's
      leaves begin; in `others`, shape (players - 1, leaves of all players), the other players' sequences; in `values`,
      the payoffs.
    """
    num_players = len(treeplexes)
    table = np.zeros((num_players, 4), np.uint64)
    rows = [np.zeros(1, np.int64)]
    others: list[Uint32s] = []
    values: list[Float64s] = []
    first_row = first_leaf = 0
    for player, treeplex in enumerate(treeplexes):
      relevant = np.flatnonzero((leaf_payoffs[:, player] != 0) | zeros)
      table[player] = treeplex.root, treeplex.end, first_row, len(relevant)
      keys = [leaf_sequences[(player + shift) % num_players] for shift in range(num_players)]
      order = relevant[np.lexsort([key[relevant] for key in reversed(keys)])]
      others.append(np.stack([key[order] for key in keys[1:]]))
      values.append(leaf_payoffs[order, player])
      counts = np.bincount(
        keys[0][order].astype(np.int64) - treeplex.root, minlength=treeplex.end - treeplex.root
      )
      rows.append(first_leaf + np.cumsum(counts))
      first_row += len(counts)
      first_leaf += len(order)
    arrays = PayoffArrays(
      table=table,
      rows=np.concatenate(rows).astype(np.uint32),
      others=np.concatenate(others, axis=1),
      values=np.concatenate(values),
    )
    return cls(arrays)

  def check(self, treeplexes: Sequence[Treeplex], real: Bools) -> None:
    """See the base class."""
    table, rows, others, values = self.arrays
    num_players = len(treeplexes)
    roots = np.array([treeplex.root for treeplex in treeplexes])
    ends = np.array([treeplex.end for treeplex in treeplexes])
    require_array(table, "table", np.uint64, num_players, 4)
    require_array(values, "values", np.float64, -1)
    require_array(rows, "rows", np.uint32, int(ends[-1]) + 1)
    require_array(others, "others", np.uint32, num_players - 1, len(values))
    require(table[:, 0] == roots, "the table has the roots")
    require(table[:, 1] == ends, "the table has the ends")
    # Each player has as many rows as sequences, so that rows are numbered as sequences are.
    require(table[:, 2] == roots, "players' rows are end to end")
    require((rows[0], rows[-1]) == (0, len(values)), "rows have all leaves")
    require(rows[1:] >= rows[:-1], "rows are end to end")
    require(rows[1:][~real] == rows[:-1][~real], "padding has no leaves")
    begins = rows[np.append(roots, ends[-1])].astype(np.int64)
    require(table[:, 3] == np.diff(begins), "the table counts the leaves")
    for player in range(num_players):
      for shift in range(1, num_players):
        own = others[shift - 1, begins[player] : begins[player + 1]]
        check_sequences(own, treeplexes[(player + shift) % num_players], real)

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """See the base class."""
    table, rows, others, values = self.arrays
    root, end, first_row = table[player, :3].astype(np.int64)
    starts = rows[first_row : first_row + end - root + 1].astype(np.int64)
    own = np.repeat(np.arange(root, end, dtype=np.uint32), np.diff(starts))
    leaves = slice(starts[0], starts[-1])
    return own, others[:, leaves], values[leaves]


def renumbered(
  counts: Uint64s,
  others: Uint32s,
  values: Float64s,
  place: Uint32s,
  bounds: Sequence[tuple[int, int]],
) -> LeafRows:
  """Returns some of a game's leaves with new numbers for sequences, which keep their order.

  Args:
    counts: how many leaves each sequence has, as it was numbered, shape (sequences,).
    others: the other players' sequences of the leaves, row by row, likewise; shape (players - 1, leaves).
    values: what they are worth, shape (leaves,).
    place: the number of each sequence from now on.
    bounds: of each player from now on, the root, and one past the last sequence.
  """
  lengths = np.zeros(bounds[-1][1] + 1, np.int64)
  some = np.flatnonzero(counts)
  lengths[place[some].astype(np.int64) + 1] = counts[some]
  rows = np.cumsum(lengths)
  table = [(root, end, root, rows[end] - rows[root]) for root, end in bounds]
  return LeafRows(
    PayoffArrays(np.array(table, np.uint64), rows.astype(np.uint32), place[others], values)
  )
