"""Sampling schemes of Monte Carlo CFR: which actions a traversal explores, and how it averages strategies."""

import enum
from typing import NamedTuple

from spiel_cfr._numba.records import Count, Double


class AverageType(enum.Enum):
  """The weight with which a visit to an infoset adds the current strategy to the average.

  A traversal for the updating player p averages the strategies of one player i. SIMPLE and FULL are OpenSpiel's types,
  with i = p + 1.

  Attributes:
    SIMPLE: int. Player i's reach over the probability of the samples drawn for i and p; 1 in external sampling.
    FULL: int. Visits have no weight. Instead, every iteration averages every infoset, weighted by its player's reach.
    IMPORTANCE: int. Player i's reach over the probability of all samples, including those of chance and of third
      players. In external sampling of two-player games with equally likely chance outcomes, this weight is the same at
      all histories of an infoset.
  """

  SIMPLE = 0
  FULL = 1
  IMPORTANCE = 2


class Rule(enum.IntEnum):
  """The rule that selects the actions that a traversal explores at an infoset.

  Attributes:
    EVERY_ACTION: int. All actions.
    BY_STRATEGY: int. One action, drawn from the current strategy.
    BY_EXPLORING_STRATEGY: int. One action, drawn uniformly with probability epsilon, otherwise from the current
      strategy.
    BY_AVERAGE: int. Each action independently, with probability max(epsilon, min(1, (beta + tau s(a)) / (beta + sum
      of s))), with s the cumulative strategy.
  """

  EVERY_ACTION = 0
  BY_STRATEGY = 1
  BY_EXPLORING_STRATEGY = 2
  BY_AVERAGE = 3


class Sampler(NamedTuple):
  """The sampling scheme of a Monte Carlo solver. Chance outcomes are drawn with their probabilities.

  Attributes:
    updating_rule: `Rule` at infosets of the updating player, whose regrets a traversal estimates.
    opponent_rule: `Rule` at infosets of the other players.
    epsilon: float. The parameter of the rules `BY_EXPLORING_STRATEGY` and `BY_AVERAGE`.
    beta: float. The parameter of the rule `BY_AVERAGE`.
    tau: float. The parameter of the rule `BY_AVERAGE`.
    repeats_draws: bool. True if the traversals of all players in an iteration draw the same random numbers.
    average_type: int. The value of the `AverageType`.
    averages_updating: bool. True if a traversal averages the strategies of the updating player; False if those of the
      player after it.
    baseline_rate: float. The fraction of the way that a baseline moves to each new value; 0 for no baselines.
  """

  updating_rule: Count
  opponent_rule: Count
  epsilon: Double = 0.0
  beta: Double = 0.0
  tau: Double = 0.0
  repeats_draws: Count = False
  average_type: Count = AverageType.SIMPLE.value
  averages_updating: Count = False
  baseline_rate: Double = 0.0
