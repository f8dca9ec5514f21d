"""Beginnings of subgames, from both players' ranges and the opponent's bounds, or from an evaluated policy."""

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.search.cut_outs import PerPlayer, Start
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.search_tree import EvaluatedPolicy, SearchTree

# A subgame omits private states whose probability is below this part of the largest one, because counterfactual bounds
# are divided by the probability.
_UNLIKELY = 1e-12


def start_from_policy(evaluated: EvaluatedPolicy, index: int, gadget: Gadget) -> Start | None:
  """Returns the beginning of the subgame at a public state; None if its probability is 0.

  The ranges are those of a policy. The bounds are the values of the opponent's best response to it.

  Args:
    evaluated: the policy.
    index: the index of the public state.
    gadget: the gadget.
  """
  ranges = evaluated.ranges(index)
  bound = np.zeros(len(ranges[1 - evaluated.searcher]))
  if gadget.has_bounds:
    bound += evaluated.expected_payoffs(index)
  if gadget.reach:
    bound += evaluated.gifts(index)
  return start_from_ranges(evaluated.tree, index, ranges, evaluated.searcher, gadget, bound)


def start_from_ranges(
  tree: SearchTree,
  index: int,
  ranges: PerPlayer,
  searcher: int,
  gadget: Gadget,
  bound: Float64s,
) -> Start | None:
  """Returns the beginning of the subgame at a public state; None if its probability is 0.

  Args:
    tree: the public states.
    index: the index of the public state.
    ranges: by player, float64 (private states,). Both players' ranges.
    searcher: the player whose strategy is re-solved.
    gadget: the gadget. If it has bounds, the opponent's range determines only `Start.r`.
    bound: float64 (J,). The largest expected payoff that the opponent may have at each J.
  """
  searcher_range, opponent_range = (
    np.where(range_ > _UNLIKELY * range_.max(), range_, 0.0)
    for range_ in _searcher_first(ranges, searcher)
  )
  opponent_weights = np.ones_like(opponent_range) if gadget.has_bounds else opponent_range
  w = tree.counterfactual_reach(index, 1 - searcher, searcher_range)
  reach = w * opponent_weights
  is_likely = reach > _UNLIKELY * reach.max()
  if not is_likely.any():
    return None
  total = reach[is_likely].sum()
  weights = (searcher_range / total, np.where(is_likely, opponent_weights, 0.0))
  return Start(
    index,
    searcher,
    _searcher_first(weights, searcher),
    float(total),
    np.where(is_likely, w / total, 0.0),
    ranges[1 - searcher],
    bound,
  )


def _searcher_first(pair: PerPlayer, searcher: int) -> PerPlayer:
  """Returns a pair with the searcher's array first. Applied twice, it returns the original order."""
  return pair if searcher == 0 else pair[::-1]
