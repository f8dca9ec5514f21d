"""`build_payoff`, which chooses the payoff form of an enumerated game; and `merged_leaves`, which renumbers leaves."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.private_types import find_tensors
from spiel_cfr.games.payoffs.typed_patterns import TypedPatterns
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# The two forms of games that list their leaves, and these forms by their names in files.
ListedPayoff: TypeAlias = LeafRows | TypedPatterns
FORMS: dict[str, type[ListedPayoff]] = {form.form: form for form in (LeafRows, TypedPatterns)}


def build_payoff(
  leaf_sequences: Uint32s,
  leaf_payoffs: Float64s,
  treeplexes: Sequence[Treeplex],
  states: Sequence[Int64s],
) -> ListedPayoff:
  """Builds the payoff in the form whose gradients read less memory: typed patterns or leaf rows.

  Args:
    leaf_sequences: uint32 (players, leaves). The leaves, in the numbering of the treeplexes; overwritten.
    leaf_payoffs: float64 (leaves, players). The payoffs, weighted by chance.
    treeplexes: one for each player, built with `states`.
    states: for each player, int64 (infosets,). The public state of each infoset, from `public_states`, in layout order.
  """
  tensors = find_tensors(leaf_sequences, treeplexes, states)
  num_leaves = np.count_nonzero(leaf_payoffs)
  # A vector of a pattern in the cache takes about as long as a leaf. Patterns that hardly repeat are not in the cache.
  if 0 < tensors.num_vectors <= num_leaves:
    payoff = TypedPatterns.build(tensors, leaf_payoffs, treeplexes)
    if payoff.num_bytes <= num_leaves * (8 + 4 * (len(treeplexes) - 1)):
      return payoff
  tensors.restore(leaf_sequences)
  return LeafRows.build(leaf_sequences, leaf_payoffs, treeplexes)


def merged_leaves(
  payoff: Payoff, num_players: int, number: Uint32s, multiplicity: Float64s
) -> tuple[Uint32s, Float64s]:
  """Renumbers the sequences of a payoff's leaves, and sums the payoffs of leaves that become equal.

  Args:
    payoff: the payoffs of all players.
    num_players: number of players.
    number: uint32 (sequences,). The new number of each sequence. Several sequences may get the same number.
    multiplicity: float64 (sequences,). The divisor of each sequence. Payoffs of a leaf are divided by the product of
      those of all players' sequences.

  Returns:
    Leaf sequences, uint32 (players, leaves), and payoffs, float64 (leaves, players), as of `Enumeration`.
  """
  renumbered, payoffs = [], []
  for player in range(num_players):
    own, others, values = payoff.leaves(player)
    sequences = np.vstack([own, others])
    payoffs.append(values / np.prod(multiplicity[sequences], axis=0))
    # `Leaves` lists the player first; the result lists players in ascending order.
    renumbered.append(number[np.roll(sequences, player, axis=0)])
  leaves, new_leaf = distinct_columns(np.hstack(renumbered))
  ends = np.cumsum([len(values) for values in payoffs])[:-1]
  sums = [
    np.bincount(leaf, values, leaves.shape[1])
    for leaf, values in zip(np.split(new_leaf, ends), payoffs, strict=True)
  ]
  return leaves.astype(np.uint32), np.stack(sums, axis=1).astype(np.float64)
