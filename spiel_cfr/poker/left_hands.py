"""The terminals of a poker game, of which some hands are left.

What a hand that cannot be at a terminal has there is nothing, and so is what others lose to it. So the eight terminals
that `terminals` settles at a time need only the hands that are left at any of the eight, and fetch only what is left:
that is a list of sequences, and where in the vectors each goes. Terminals with the same hands are put together.
"""

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import Float64s, Uint32s
from spiel_cfr._numba.kernels import kernel
from spiel_cfr._numba.simd import full, load, store, width
from spiel_cfr.games.payoffs.payoff import Payoff, PayoffArrays, gradient_signature
from spiel_cfr.poker.terminals import settle

# Columns of the table from row 2 on, a row per vector of terminals: whether these are folds; how many hands each player
# has; where in `rows` each player's hands are described; where in `values` the reaches of each player's hands are;
# where in `rows` the levels of strength are, and how many; where in `others` each player's sequences are, and where
# they end; where in `values` the payoffs are. Rows 0 and 1 hold each player's root and end; then row 0 the most hands
# of a vector, and the places of cards.
COLUMNS = 14
_ZERO, _ONE, _TWO = (np.uint64(number) for number in range(3))


@kernel(gradient_signature(types.float64))
def left_gradient(
  player: int, arrays: PayoffArrays, sequence_form: Float64s, utility: Float64s
) -> None:
  """Adds up the terminals, a vector of them at a time."""
  _, table, rows, others, values, _, _ = arrays
  lanes, opponent, sign = width(utility), _ONE - player, 1.0 - 2.0 * player
  most = table[0, 2]
  for i in range(table[player, 0], table[player, 1]):
    utility[i] = 0.0
  reach, value = np.empty((most + _ONE) * lanes), np.empty((most + _ONE) * lanes)
  held, payoff = np.empty(table[0, 3] * lanes), np.empty(lanes)
  for vector in range(_TWO, np.uint64(table.shape[0])):
    is_fold = table[vector, 0] != _ZERO
    own, other_hands = table[vector, 1 + player], table[vector, 1 + opponent]
    weights, other_weights = table[vector, 5 + player], table[vector, 5 + opponent]
    levels, num_levels = table[vector, 7], table[vector, 8]
    for k in range(lanes):
      payoff[k] = values[table[vector, 13] + k] * (sign if is_fold else 1.0)
    for j in range((other_hands + _ONE) * lanes):
      reach[j] = 0.0
    for pair in range(table[vector, 9 + 2 * opponent], table[vector, 10 + 2 * opponent]):
      reach[others[1, pair]] = sequence_form[others[0, pair]]
    for j in range(other_hands):
      store(reach, j * lanes, load(reach, j * lanes) * full(values[other_weights + j]))
    settle(
      is_fold,
      False,
      rows,
      table[vector, 3 + player],
      own,
      table[vector, 3 + opponent],
      other_hands,
      levels + player * (num_levels + _ONE),
      levels + opponent * (num_levels + _ONE),
      num_levels,
      reach,
      held,
      value,
    )
    paid_out = load(payoff, _ZERO)
    for i in range(own):
      store(value, i * lanes, load(value, i * lanes) * paid_out * full(values[weights + i]))
    for pair in range(table[vector, 9 + 2 * player], table[vector, 10 + 2 * player]):
      utility[others[0, pair]] += value[others[1, pair]]


class LeftHands(Payoff):
  """Payoffs at a poker game's terminals for some of the hands; not for files."""

  form = "terminals of some hands"
  gradient = left_gradient

  @property
  def num_lines(self) -> int:
    """See `PokerTerminals.num_lines`."""
    return int(self.arrays.runs[2:, 1:3].sum())

  @property
  def num_fetched(self) -> int:
    """How many pairs of a hand and a terminal are left."""
    return int(self.arrays.others.shape[1])

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """See the base class."""
    table, others = self.arrays.runs, self.arrays.others
    opponent, end = 1 - player, int(table[:2, 1].max())
    own, other, payoffs = [], [], []
    mine = slice(*table[player, :2].tolist())
    theirs = [
      others[0, int(line[9 + 2 * opponent]) : int(line[10 + 2 * opponent])] for line in table[2:]
    ]
    for sequence in np.unique(np.concatenate([np.zeros(0, np.uint32), *theirs])):
      alone, worth = np.zeros((2, end))
      alone[sequence] = 1.0
      self.gradient_into(player, alone, worth)
      own.append(mine.start + np.flatnonzero(worth[mine]))
      other.append(np.full(len(own[-1]), sequence))
      payoffs.append(worth[own[-1]])
    joined = [np.concatenate([np.zeros(0), *each]) for each in (own, other, payoffs)]
    return joined[0].astype(np.uint32), joined[1].astype(np.uint32)[None], joined[2]
