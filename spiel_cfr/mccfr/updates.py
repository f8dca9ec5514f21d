"""Updates after a traversal: regret matching with discounts, Hedge, and full averages.

`update_steps` returns a regret minimizer's steps. They update the infosets for which the traversal has estimates.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.records import Count, Double
from spiel_cfr._numba.steps import Step, step
from spiel_cfr.mccfr.random_draws import ITERATIONS
from spiel_cfr.mccfr.traversal import (
  AVERAGE_WEIGHT,
  NEGATIVE,
  POSITIVE,
  Traversal,
  num_visited,
)
from spiel_cfr.regret_minimizers.hedge import Hedge
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.regularizers import LEAST_EXPONENT
from spiel_cfr.regret_minimizers.schedules import evaluated

# Minimizers that can take sampled regrets.
SampledMinimizer: TypeAlias = RegretMatching | Hedge


class Update(NamedTuple):
  """The arguments of regret matching at the infosets for which a traversal has estimates.

  Attributes:
    traversal: `Traversal`. The arguments of the traversal.
    forgets_negative: bool. True if negative cumulative regrets are set to 0, as in regret matching+.
    tie: float. Regrets up to this value count as 0.
  """

  traversal: Traversal
  forgets_negative: Count
  tie: Double


@step(Update, single=False)
def discount_regrets(record: Update) -> None:
  """Multiplies cumulative regrets by the discounts of all iterations since the last visit to their infoset."""
  entries, workspace = record.traversal.entries, record.traversal.workspace
  numbers, regret, caught_up = record.traversal.numbers, entries.regret, entries.caught_up
  for i in range(num_visited(workspace)):
    begin = np.uint64(workspace.reached[i])
    of_positive = np.exp(numbers[POSITIVE] - caught_up[0, begin])
    of_negative = np.exp(numbers[NEGATIVE] - caught_up[1, begin])
    for entry in range(begin, begin + np.uint64(entries.touched[begin])):
      regret[entry] *= of_positive if regret[entry] > record.tie else of_negative
    caught_up[0, begin], caught_up[1, begin] = numbers[POSITIVE], numbers[NEGATIVE]


@step(Update, single=False)
def match_sampled_regrets(record: Update) -> None:
  """Adds the estimates to the regrets, sets estimates to 0, and plays in proportion to positive regrets."""
  entries, workspace = record.traversal.entries, record.traversal.workspace
  regret, strategy, increment = entries.regret, entries.strategy, entries.increment
  for i in range(num_visited(workspace)):
    begin = np.uint64(workspace.reached[i])
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


class HedgeUpdate(NamedTuple):
  """The arguments of Hedge at the infosets for which a traversal has estimates.

  Attributes:
    traversal: `Traversal`. The arguments of the traversal.
    scale: float. The factor on step sizes; see `Hedge.scale`.
  """

  traversal: Traversal
  scale: Double


@step(HedgeUpdate, single=False)
def exponentiate_regrets(record: HedgeUpdate) -> None:
  """Adds the estimates to the cumulative regrets, and sets the strategy to the softmax of step size times regret.

  Iteration t has the same step size as in a full-width solver. An infoset keeps its strategy between visits.
  """
  entries, workspace = record.traversal.entries, record.traversal.workspace
  regret, strategy, increment = entries.regret, entries.strategy, entries.increment
  iteration = record.traversal.counters[ITERATIONS] + 1.0
  for i in range(num_visited(workspace)):
    begin = np.uint64(workspace.reached[i])
    actions = np.uint64(entries.touched[begin])
    end = begin + actions
    entries.touched[begin] = 0
    rate = record.scale * np.sqrt(8.0 * np.log(actions) / iteration)
    top, total = -np.inf, 0.0
    for entry in range(begin, end):
      regret[entry] += increment[entry]
      increment[entry] = 0.0
      top = max(top, regret[entry])
    for entry in range(begin, end):
      strategy[entry] = np.exp(max(rate * (regret[entry] - top), LEAST_EXPONENT))
      total += strategy[entry]
    for entry in range(begin, end):
      strategy[entry] /= total


def discounts_of(minimizer: RegretMinimizer, iterations: Int64s) -> Float64s | None:
  """Returns the discounts of positive and negative regrets, shape (iterations, 2).

  Returns None if the minimizer can't take sampled regrets.
  """
  if isinstance(minimizer, Hedge) and minimizer.threshold == 1.0:
    return np.ones((len(iterations), 2))
  if not isinstance(minimizer, RegretMatching):
    return None
  if (minimizer.next_discount, minimizer.prediction) != (1.0, 0.0):
    return None
  discounts = minimizer.positive_discount, minimizer.negative_discount
  return np.column_stack([evaluated(discount, iterations) for discount in discounts])


def check_minimizer(minimizer: RegretMinimizer) -> SampledMinimizer:
  """Returns the minimizer, after a check that it can take sampled regrets.

  Raises:
    ArgumentError: the minimizer is neither Hedge without a threshold nor `RegretMatching` without predictions.
  """
  if discounts_of(minimizer, np.arange(1, 2)) is None:
    raise errors.ArgumentError(
      f"{minimizer} can't be used with Monte Carlo solvers, which need Hedge without a threshold, or "
      "RegretMatching without predictions, that keeps negative regrets or forgets them."
    )
  return minimizer  # type: ignore[return-value]


def update_steps(
  minimizer: SampledMinimizer,
  payoff_range: tuple[float, float],
  tie: float,
  traversal: Traversal,
) -> list[Step]:
  """Returns the steps that update regrets and strategies after a traversal.

  While the traversal is unfinished, these steps do nothing.
  """
  if isinstance(minimizer, Hedge):
    return [exponentiate_regrets.on(HedgeUpdate(traversal, minimizer.scale(payoff_range)))]
  record = Update(traversal, minimizer.forgets_negative, tie)
  match = match_sampled_regrets.on(record)
  has_discounts = (minimizer.positive_discount, minimizer.negative_discount) != (1.0, 1.0)
  return [discount_regrets.on(record), match] if has_discounts else [match]


@step(Traversal, single=False)
def average_all(record: Traversal) -> None:
  """Adds every infoset's strategy to its average, weighted by its player's reach and the weight of the iteration."""
  entries, weight = record.entries, record.numbers[AVERAGE_WEIGHT]
  reach, strategy, cumulative = entries.reach, entries.strategy, entries.cumulative
  for player in range(np.uint64(record.histories.returns.shape[1])):
    reach[player] = 1.0
    cumulative[player] += weight
  for infoset in range(np.uint64(entries.first.shape[0])):
    begin = np.uint64(entries.first[infoset])
    infoset_reach = reach[entries.parent[infoset]]
    for entry in range(begin, begin + np.uint64(entries.num_actions[infoset])):
      reach[entry] = infoset_reach * strategy[entry]
      cumulative[entry] += weight * reach[entry]
