"""The end of a traversal, as steps: discounts and regret matching at the infosets valued, and full averages.

`update_steps` is the place of the regret minimizer: it returns kernels that take the estimates of a traversal.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.records import Count, Double, Doubles
from spiel_cfr._numba.steps import Step, step
from spiel_cfr.mccfr.infoset_table import Entries
from spiel_cfr.mccfr.traversal import (
  AVERAGE_WEIGHT,
  NEGATIVE,
  POSITIVE,
  Traversal,
  Workspace,
  valued,
)
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer


class Update(NamedTuple):
  """The arguments of an update at the infosets that a traversal has valued.

  Attributes:
    entries: the estimates, and what the minimizer keeps.
    workspace: the workspace of the traversal.
    numbers: float64. The numbers of the iteration.
    forgets_negative: see `RegretMatching`.
    tie: regrets up to this count as 0.
  """

  entries: Entries
  workspace: Workspace
  numbers: Doubles
  forgets_negative: Count
  tie: Double


@step(Update, single=False)
def discount_regrets(record: Update) -> None:
  """Multiplies regrets by all discounts since the last visit to their infoset."""
  entries, numbers, reached = record.entries, record.numbers, record.workspace.reached
  regret, caught_up = entries.regret, entries.caught_up
  for i in range(valued(record.workspace)):
    begin = np.uint64(reached[i])
    of_positive = np.exp(numbers[POSITIVE] - caught_up[0, begin])
    of_negative = np.exp(numbers[NEGATIVE] - caught_up[1, begin])
    for entry in range(begin, begin + np.uint64(entries.touched[begin])):
      regret[entry] *= of_positive if regret[entry] > record.tie else of_negative
    caught_up[0, begin], caught_up[1, begin] = numbers[POSITIVE], numbers[NEGATIVE]


@step(Update, single=False)
def match_regrets(record: Update) -> None:
  """Adds the estimates to the regrets, and matches these; estimates are then 0 again."""
  entries, reached = record.entries, record.workspace.reached
  regret, strategy, increment = entries.regret, entries.strategy, entries.increment
  for i in range(valued(record.workspace)):
    begin = np.uint64(reached[i])
    end = begin + np.uint64(entries.touched[begin])
    entries.touched[begin] = 0
    total = 0.0
    for entry in range(begin, end):
      updated = regret[entry] + increment[entry]
      increment[entry] = 0.0
      positive = updated if updated > record.tie else 0.0
      regret[entry] = positive if record.forgets_negative else updated
      strategy[entry] = positive
      total += positive
    for entry in range(begin, end):
      strategy[entry] = strategy[entry] / total if total > 0.0 else 1.0 / (end - begin)


def check_minimizer(minimizer: RegretMinimizer) -> RegretMatching:
  """Returns a minimizer that can be used with samples.

  Raises:
    ArgumentError: it can't.
  """
  if not isinstance(minimizer, RegretMatching) or minimizer.discounts(np.arange(1, 2)) is None:
    raise errors.ArgumentError(
      f"{minimizer} can't be used with Monte Carlo solvers, which need RegretMatching without "
      "predictions, that keeps negative regrets or forgets them."
    )
  return minimizer


def update_steps(minimizer: RegretMatching, tie: float, traversal: Traversal) -> list[Step]:
  """Returns the steps after a traversal; before it is over, they do nothing."""
  _, entries, workspace, _, numbers, *_ = traversal
  record = Update(entries, workspace, numbers, minimizer.forgets_negative, tie)
  discounts = (minimizer.positive_discount, minimizer.negative_discount) != (1.0, 1.0)
  return [*([discount_regrets.on(record)] if discounts else []), match_regrets.on(record)]


class FullAverage(NamedTuple):
  """The arguments of `average_all`: `numbers` are those of the iteration."""

  entries: Entries
  numbers: Doubles
  num_players: Count


@step(FullAverage, single=False)
def average_all(record: FullAverage) -> None:
  """Adds every infoset's strategy to its average, weighted by own reach and the weight of the iteration."""
  entries, weight = record.entries, record.numbers[AVERAGE_WEIGHT]
  reach, strategy, cumulative = entries.reach, entries.strategy, entries.cumulative
  for player in range(record.num_players):
    reach[player] = 1.0
    cumulative[player] += weight
  for infoset in range(np.uint64(entries.first.shape[0])):
    begin = np.uint64(entries.first[infoset])
    above = reach[entries.parent[infoset]]
    for entry in range(begin, begin + np.uint64(entries.num_actions[infoset])):
      reach[entry] = above * strategy[entry]
      cumulative[entry] += weight * reach[entry]
