"""Composition of local regret bounds into a bound on a player's regret: Lemmas 1 and 2 of Farina et al. (2019).

The regret of an observation point, a sequence, is the sum of the regrets of the infosets that may come next (Lemma 1).
The regret of an infoset is at most its local regret plus the largest regret below one of its actions (Lemma 2). So the
player's regret is at most the largest sum of local regrets along a pure plan.
"""

from collections.abc import Sequence

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.sequence_form.treeplex import COUNT, DEPTH, Treeplex


def infosets_of(tree: Treeplex) -> slice:
  """Returns the slice of a player's infosets in arrays of all players' infosets."""
  return slice(tree.first_infoset, tree.first_infoset + tree.num_infosets)


def decision_depths(tree: Treeplex) -> Int64s:
  """Returns the number of the player's infosets above each of its infosets, shape (the player's infosets,)."""
  groups = tree.groups.astype(np.int64)
  return np.asarray(np.repeat(groups[:, DEPTH], groups[:, COUNT]))


def largest_plan_sum(tree: Treeplex, terms: Float64s, at_observations: np.ufunc = np.add) -> float:
  """Returns the largest sum of terms of infosets along a pure plan of the player.

  Args:
    tree: the treeplex of the player.
    terms: float64 (the player's infosets,). The term of each infoset, such as a bound on its local regret.
    at_observations: how the infosets that may come next after an action are combined. `np.add` sums over all of them,
      as in Lemma 1; `np.maximum` takes the largest.
  """
  # The largest sum over the infosets after each sequence.
  sums_after = np.zeros(tree.end)
  for sequences, infosets in reversed(list(tree.infoset_groups())):
    largest = terms[infosets] + sums_after[sequences].max(axis=0)
    at_observations.at(sums_after, tree.parent[infosets], largest)
  return float(sums_after[tree.root])


def largest_plan_sums(
  trees: Sequence[Treeplex], terms: Float64s, at_observations: np.ufunc = np.add
) -> Float64s:
  """Returns `largest_plan_sum` of each player, shape (players,).

  Args:
    trees: the treeplex of each player.
    terms: float64 (infosets of all players,). The term of each infoset.
    at_observations: see `largest_plan_sum`.
  """
  return np.array(
    [largest_plan_sum(tree, terms[infosets_of(tree)], at_observations) for tree in trees]
  )
