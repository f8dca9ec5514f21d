"""The choice of a payoff form for enumerated games, and leaves in another numbering."""

from collections.abc import Sequence

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.private_types import find_tensors
from spiel_cfr.games.payoffs.typed_patterns import TypedPatterns
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# Forms by the name that files keep.
FORMS: dict[str, type[Payoff]] = {form.form: form for form in (LeafRows, TypedPatterns)}


def build_payoff(
  leaf_sequences: Uint32s,
  leaf_payoffs: Float64s,
  treeplexes: Sequence[Treeplex],
  states: Sequence[Int64s],
) -> Payoff:
  """Builds the payoff in the form whose gradients read less memory: typed patterns or leaf rows.

  Args:
    leaf_sequences: uint32 (players, leaves), in the numbering of the treeplexes; overwritten.
    leaf_payoffs: float64 (leaves, players).
    treeplexes: one for each player, built with the `public_states`.
    states: for each player, int64 (infosets,). The public state of each infoset, in layout order.
  """
  tensors = find_tensors(leaf_sequences, treeplexes, states)
  num_leaves = np.count_nonzero(leaf_payoffs)
  # A vector of a cached pattern takes about as long as a leaf. Patterns that hardly repeat miss the cache.
  if 0 < tensors.num_vectors <= num_leaves:
    payoff: Payoff = TypedPatterns.build(tensors, leaf_payoffs, treeplexes)
    if payoff.num_bytes <= num_leaves * (8 + 4 * (len(treeplexes) - 1)):
      return payoff
  tensors.restore(leaf_sequences)
  return LeafRows.build(leaf_sequences, leaf_payoffs, treeplexes)


def merged_leaves(
  payoff: Payoff, num_players: int, number: Uint32s, copies: Float64s
) -> tuple[Uint32s, Float64s]:
  """Returns a payoff's leaves with renumbered sequences; leaves that become equal are summed.

  Args:
    payoff: the payoffs of all players.
    num_players: number of players.
    number: uint32 (sequences,). The new number of each sequence; several sequences may share one.
    copies: float64 (sequences,). The number of times that leaves after each sequence are counted; payoffs are divided
      by it.

  Returns:
    Leaf sequences and payoffs, as of `Enumeration`.
  """
  found, payoffs = [], []
  for player in range(num_players):
    own, others, values = payoff.leaves(player)
    columns = np.vstack([own, others])
    payoffs.append(values / np.prod(copies[columns], axis=0))
    # `Leaves` lists the player first; the result lists players in ascending order.
    found.append(number[np.roll(columns, player, axis=0)])
  leaves, which = distinct_columns(np.hstack(found))
  ends = np.cumsum([len(values) for values in payoffs])[:-1]
  sums = [
    np.bincount(places, values, leaves.shape[1])
    for places, values in zip(np.split(which, ends), payoffs, strict=True)
  ]
  return leaves.astype(np.uint32), np.stack(sums, axis=1).astype(np.float64)
