"""Beginnings of subgames, from both players' ranges and the opponent's bounds, or from a blueprint."""

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.search.cut_outs import PerPlayer, Start
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.search_tree import Blueprint, SearchTree

# A subgame omits private states whose probability is below this part of the largest one, because counterfactual bounds
# are divided by the probability.
_UNLIKELY = 1e-12


def start_from_blueprint(blueprint: Blueprint, number: int, gadget: Gadget) -> Start | None:
  """Returns the beginning of the subgame at a public state; None if its probability is 0.

  The ranges are the blueprint's. The bounds are the values of the opponent's best response to it.

  Args:
    blueprint: the blueprint.
    number: the index of the public state.
    gadget: the gadget.
  """
  ranges = blueprint.ranges(number)
  bound = np.zeros(len(ranges[1 - blueprint.searcher]))
  if gadget.is_safe:
    bound += blueprint.expected_payoffs(number)
  if gadget.reach:
    bound += blueprint.gifts(number)
  return start_from_ranges(blueprint.tree, number, ranges, blueprint.searcher, gadget, bound)


def start_from_ranges(
  tree: SearchTree,
  number: int,
  ranges: PerPlayer,
  searcher: int,
  gadget: Gadget,
  bound: Float64s,
) -> Start | None:
  """Returns the beginning of the subgame at a public state; None if its probability is 0.

  Args:
    tree: the public states.
    number: the index of the public state.
    ranges: by player, float64 (private states,). Both players' ranges.
    searcher: the player whose strategy is re-solved.
    gadget: the gadget. In a safe one, the opponent's range determines only `Start.r`.
    bound: float64 (J,). The largest expected payoff that the opponent may have at each J.
  """
  searcher_range, opponent_range = (
    np.where(range_ > _UNLIKELY * range_.max(), range_, 0.0)
    for range_ in _searcher_first(ranges, searcher)
  )
  opponent_weights = np.ones_like(opponent_range) if gadget.is_safe else opponent_range
  w = tree.counterfactual_reach(number, 1 - searcher, searcher_range)
  reach = w * opponent_weights
  is_likely = reach > _UNLIKELY * reach.max()
  if not is_likely.any():
    return None
  total = reach[is_likely].sum()
  weights = (searcher_range / total, np.where(is_likely, opponent_weights, 0.0))
  return Start(
    number,
    searcher,
    _searcher_first(weights, searcher),
    np.where(is_likely, w / total, 0.0),
    ranges[1 - searcher],
    bound,
  )


def _searcher_first(pair: PerPlayer, searcher: int) -> PerPlayer:
  """Returns a pair with the searcher's array first. Applied twice, it returns the original order."""
  return pair if searcher == 0 else pair[::-1]
