"""The leaves of a payoff in another numbering, as if the game had been walked in that."""

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Uint32s
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.payoffs.payoff import Payoff


def merged_leaves(
  payoff: Payoff, num_players: int, number: Uint32s, copies: Float64s
) -> tuple[Uint32s, Float64s]:
  """Returns leaf sequences and payoffs, as of `Enumeration`, in the numbering of discovery here."""
  found, payoffs = [], []
  for player in range(num_players):
    own, others, values = payoff.leaves(player)
    columns = np.vstack([own, others])
    payoffs.append(values / np.prod(copies[columns], axis=0))
    # From an order that begins with the player to ascending order.
    found.append(number[np.roll(columns, player, axis=0)])
  leaves, which = distinct_columns(np.hstack(found))
  ends = np.cumsum([len(values) for values in payoffs])[:-1]
  sums = [
    np.bincount(places, values, leaves.shape[1])
    for places, values in zip(np.split(which, ends), payoffs, strict=True)
  ]
  return leaves.astype(np.uint32), np.stack(sums, axis=1).astype(np.float64)
