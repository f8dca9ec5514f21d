"""The end of a traversal: regret matching where it has been, and full averages."""

from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  COUNT,
  FLOAT_TABLE,
  FLOATS,
  Float64s,
  Uint32s,
  tuple_type,
)
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr.mccfr.infoset_table import ENTRIES, Entries


class Batch(NamedTuple):
  """What depends on the iteration, for some iterations in a row.

  Attributes:
    logarithms: shape (iterations, 2): sums of the logarithms of all that positive and negative regrets have been
      multiplied by, the iteration's own factors included.
    weights: shape (iterations,): what strategies weigh in the average.
    discounting: whether any of these is not 0.
    forgets_negative: see `RegretMatching`.
    tie: regrets up to this count as 0.
  """

  logarithms: Float64s
  weights: Float64s
  discounting: bool
  forgets_negative: bool
  tie: float


BATCH = tuple_type(Batch, FLOAT_TABLE, FLOATS, types.boolean, types.boolean, types.float64)


@inlined
def match_regrets(
  reached: Uint32s, count: int, batch: Batch, iteration: int, entries: Entries
) -> None:
  """Adds what a traversal has estimated at the first `count` infosets of `reached`, and matches regrets there."""
  regret, strategy, increment = entries.regret, entries.strategy, entries.increment
  caught_up, logarithms, tie = entries.caught_up, batch.logarithms, batch.tie
  for i in range(count):
    begin = np.uint64(reached[i])
    end = begin + np.uint64(entries.touched[begin])
    entries.touched[begin] = 0
    if batch.discounting:
      of_positive = np.exp(logarithms[iteration, 0] - caught_up[0, begin])
      of_negative = np.exp(logarithms[iteration, 1] - caught_up[1, begin])
      for entry in range(begin, end):
        regret[entry] *= of_positive if regret[entry] > tie else of_negative
      caught_up[0, begin], caught_up[1, begin] = logarithms[iteration, 0], logarithms[iteration, 1]
    total = 0.0
    for entry in range(begin, end):
      updated = regret[entry] + increment[entry]
      increment[entry] = 0.0
      positive = updated if updated > tie else 0.0
      regret[entry] = positive if batch.forgets_negative else updated
      strategy[entry] = positive
      total += positive
    for entry in range(begin, end):
      strategy[entry] = strategy[entry] / total if total > 0.0 else 1.0 / (end - begin)


def _average_all(num_players: int, num_infosets: int, weight: float, entries: Entries) -> None:
  """Adds every infoset's strategy to its average, weighted by `weight` and own reach."""
  reach, strategy = entries.reach, entries.strategy
  cumulative = entries.cumulative
  for player in range(num_players):
    reach[player] = 1.0
    cumulative[player] += weight
  for infoset in range(num_infosets):
    begin = np.uint64(entries.first[infoset])
    above = reach[entries.parent[infoset]]
    for entry in range(begin, begin + np.uint64(entries.num_actions[infoset])):
      reach[entry] = above * strategy[entry]
      cumulative[entry] += weight * reach[entry]


average_all_inlined = inlined(_average_all)
average_all = kernel(types.void(COUNT, COUNT, types.float64, ENTRIES))(_average_all)
