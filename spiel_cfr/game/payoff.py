"""Payoffs in sequence form: given how the others play, what each sequence of a player is worth.

With x_q the sequence-form strategy of player q, the expected utility of player p is multilinear, and its gradient in
x_p is, at each sequence s of p,

    u_p(s) = sum over leaves with sequence s of p:  payoff_p(leaf) * product over q != p of x_q(sequence of q)

where a leaf is one tuple of last sequences, and its payoff the sum over the histories that end with it of chance's
probability times the return. A solver needs nothing else of the game's histories.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numba import types

from spiel_cfr.game.treeplex import Treeplex
from spiel_cfr.kernels import (
  COUNT,
  COUNT_TABLE,
  FLOATS,
  INDEX_TABLE,
  INDICES,
  Float64s,
  Kernel,
  Uint32s,
  Uint64s,
  kernel,
)

# (player, table, rows, others, values, sequence, utility): writes the gradient of `player` into `utility` at all of
# that player's sequences, padding included, given everybody's sequence-form strategies. What the four arrays after
# the player hold is the payoff form's own business.
GRADIENT_SIGNATURE = types.void(COUNT, COUNT_TABLE, INDICES, INDEX_TABLE, FLOATS, FLOATS, FLOATS)


@kernel(GRADIENT_SIGNATURE)
def leaf_row_gradient(
  player: int,
  table: Uint64s,
  rows: Uint32s,
  others: Uint32s,
  values: Float64s,
  sequence: Float64s,
  utility: Float64s,
) -> None:
  """Sums each sequence's leaves: gathers only, so the order of the sums never changes."""
  root, end, first_row = table[player, 0], table[player, 1], table[player, 2]
  num_others = others.shape[0]
  if num_others == 1:
    for own in range(end - root):
      row = first_row + own
      total = 0.0
      for leaf in range(np.uint64(rows[row]), np.uint64(rows[row + np.uint64(1)])):
        total += values[leaf] * sequence[others[0, leaf]]
      utility[root + own] = total
  elif num_others == 2:
    for own in range(end - root):
      row = first_row + own
      total = 0.0
      for leaf in range(np.uint64(rows[row]), np.uint64(rows[row + np.uint64(1)])):
        total += values[leaf] * sequence[others[0, leaf]] * sequence[others[1, leaf]]
      utility[root + own] = total
  else:
    for own in range(end - root):
      row = first_row + own
      total = 0.0
      for leaf in range(np.uint64(rows[row]), np.uint64(rows[row + np.uint64(1)])):
        product = values[leaf]
        for other in range(np.uint64(num_others)):
          product *= sequence[others[other, leaf]]
        total += product
      utility[root + own] = total


LEAF_ROWS = "leaf rows"
_GRADIENTS = {LEAF_ROWS: leaf_row_gradient}


def register_gradient(form: str, gradient: Kernel) -> None:
  """Makes a further payoff form known: its name, and its kernel of `GRADIENT_SIGNATURE`."""
  _GRADIENTS[form] = gradient


@dataclasses.dataclass(frozen=True)
class Payoff:
  """The payoffs of all players, in one of several forms.

  Attributes:
    form: names the kernel that computes gradients from the arrays.
    table: uint64 of shape (players, columns).
    rows: uint32, one-dimensional.
    others: uint32, two-dimensional.
    values: float64, one-dimensional.
  """

  form: str
  table: Uint64s
  rows: Uint32s
  others: Uint32s
  values: Float64s

  @property
  def gradient(self) -> Kernel:
    """The kernel, of `GRADIENT_SIGNATURE`."""
    return _GRADIENTS[self.form]

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """Lists the leaves where a player's payoff is not zero, for analysis rather than speed.

    Returns:
      The player's last sequence, shape (leaves,); those of the other players, from the next one on, shape
      (players - 1, leaves); and the payoffs weighted by chance, shape (leaves,).
    """
    root, end, first_row = self.table[player, :3].astype(np.int64)
    starts = self.rows[first_row : first_row + end - root + 1].astype(np.int64)
    own = np.repeat(np.arange(root, end, dtype=np.uint32), np.diff(starts))
    leaves = slice(starts[0], starts[-1])
    return own, self.others[:, leaves], self.values[leaves]

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays."""
    return self.table.nbytes + self.rows.nbytes + self.others.nbytes + self.values.nbytes


def leaf_rows(
  leaf_sequences: Uint32s, leaf_payoffs: Float64s, treeplexes: Sequence[Treeplex]
) -> Payoff:
  """Builds the plainest form: for each player, a sparse row of leaves a sequence.

  Args:
    leaf_sequences: shape (players, leaves), in the numbering of the treeplexes.
    leaf_payoffs: shape (leaves, players).
    treeplexes: one a player.

  Returns:
    The payoff with, in `table`, a player's root, end and first row; in `rows`, where each row's leaves begin; in
    `others`, shape (players - 1, leaves of all players), the other players' sequences; in `values`, the payoffs.
  """
  num_players = len(treeplexes)
  table = np.zeros((num_players, 3), np.uint64)
  rows = [np.zeros(1, np.int64)]
  others: list[Uint32s] = []
  values: list[Float64s] = []
  first_row = first_leaf = 0
  for player, treeplex in enumerate(treeplexes):
    table[player] = treeplex.root, treeplex.end, first_row
    relevant = np.flatnonzero(leaf_payoffs[:, player])
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
  return Payoff(
    form=LEAF_ROWS,
    table=table,
    rows=np.concatenate(rows).astype(np.uint32),
    others=np.concatenate(others, axis=1),
    values=np.concatenate(values),
  )
