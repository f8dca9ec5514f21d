"""Sums over a player's decisions that the theory needs, carried from the leaves to the root."""

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.sequence_form.treeplex import COUNT, DEPTH, Treeplex


def bottom_up(tree: Treeplex) -> list[tuple[Int64s, slice]]:
  """Returns the groups of `Treeplex.blocks`, children first."""
  return list(tree.blocks())[::-1]


def own_infosets(tree: Treeplex) -> slice:
  """Returns which infosets of the game are the player's."""
  return slice(tree.first_infoset, tree.first_infoset + tree.num_infosets)


def depths(tree: Treeplex) -> Int64s:
  """Returns how many infosets of the player lie above each, shape (infosets,)."""
  groups = tree.groups.astype(np.int64)
  return np.asarray(np.repeat(groups[:, DEPTH], groups[:, COUNT]))


def largest_sum(tree: Treeplex, terms: Float64s, at_observations: np.ufunc = np.add) -> float:
  """Returns the largest sum of terms of infosets along a pure plan.

  Args:
    tree: the player's.
    terms: of each of the player's infosets, shape (infosets,).
    at_observations: how the infosets that may be the next after an action are combined; `np.add` for all of them,
      `np.maximum` for one of them.
  """
  below = np.zeros(tree.end)
  for sequences, infosets in bottom_up(tree):
    best = terms[infosets] + below[sequences].max(axis=0)
    at_observations.at(below, tree.parent[infosets], best)
  return float(below[tree.root])
