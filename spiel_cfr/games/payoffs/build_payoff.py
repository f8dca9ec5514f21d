"""Which form the payoffs of an enumerated game take."""

from collections.abc import Sequence

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.private_types import find_blocks
from spiel_cfr.games.payoffs.sorted_patterns import SortedPatterns
from spiel_cfr.games.payoffs.sorted_rows import sorted_rows
from spiel_cfr.games.payoffs.typed_patterns import TypedPatterns
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# Bytes of patterns that a level-2 cache holds beside all else.
_CACHED = 1 << 20
# By name, as files keep it.
FORMS: dict[str, type[Payoff]] = {form.form: form for form in (LeafRows, TypedPatterns)}


def build_payoff(
  leaf_sequences: Uint32s,
  leaf_payoffs: Float64s,
  treeplexes: Sequence[Treeplex],
  states: Sequence[Int64s],
) -> Payoff:
  """Builds the payoff in the form whose gradients read less: typed patterns, or else leaf rows.

  Args:
    leaf_sequences: shape (players, leaves), in the numbering of the treeplexes; written over.
    leaf_payoffs: shape (leaves, players).
    treeplexes: one per player, built with the `public_states`.
    states: of each player, the public state of each infoset, in layout order.

  Returns:
    The payoff.
  """
  blocks = find_blocks(leaf_sequences, treeplexes, states)
  num_leaves = np.count_nonzero(leaf_payoffs)
  # A vector of a pattern takes about as long as a leaf, from the cache. Patterns that hardly repeat don't fit there.
  if blocks.num_vectors <= num_leaves:
    payoff: Payoff = TypedPatterns.build(blocks, leaf_payoffs, treeplexes)
    if payoff.num_bytes <= num_leaves * (8 + 4 * (len(treeplexes) - 1)):
      return payoff
  blocks.restore(leaf_sequences)
  return LeafRows.build(leaf_sequences, leaf_payoffs, treeplexes)


def quickest(payoff: Payoff) -> Payoff:
  """Returns payoffs in the form that iterations read fastest: sorted, those of two players.

  Patterns that stay in no cache are read in the order in which they lie.
  """
  if isinstance(payoff, LeafRows) and len(payoff.arrays.others) == 1:
    return sorted_rows(payoff, np.ones(len(payoff.arrays.values), bool))
  if isinstance(payoff, TypedPatterns) and payoff.arrays.others.shape[1] == 2:
    return SortedPatterns(payoff) if payoff.arrays.values.nbytes <= _CACHED else payoff
  return payoff
