"""Sampling rules: the actions that a traversal explores, and the averaging weight of a visit."""

import enum
from typing import NamedTuple

from spiel_cfr._numba.records import Count, Double


class AverageType(enum.Enum):
  """The averaging weight of a visit to an infoset of player i in a traversal for player p.

  SIMPLE and FULL are OpenSpiel's, with i = p + 1.

  Attributes:
    SIMPLE: int. Player i's reach over the probability of the samples drawn for i and p; 1 in external sampling.
    FULL: int. Visits have no weight; every infoset is averaged once an iteration, weighted by its owner's reach.
    IMPORTANCE: int. Player i's reach over the probability of all samples, those of chance and of third players
      included. In external sampling of two-player games with equally likely chance outcomes, it is constant in an
      infoset.
  """

  SIMPLE = 0
  FULL = 1
  IMPORTANCE = 2


class Rule(enum.IntEnum):
  """The actions that a traversal explores at an infoset.

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
  """The sampling scheme of a Monte Carlo solver. Chance is sampled by its own probabilities.

  Attributes:
    own: `Rule` for the updating player, whose regrets a traversal estimates.
    others: `Rule` for the other players.
    epsilon: float. The parameter of the rules `BY_EXPLORING_STRATEGY` and `BY_AVERAGE`.
    beta: float. The parameter of the rule `BY_AVERAGE`.
    tau: float. The parameter of the rule `BY_AVERAGE`.
    repeats_draws: bool. True if the traversals of all players in an iteration draw the same random numbers.
    average_type: int. The value of the `AverageType`.
    averages_own: bool. True if a traversal averages the strategies of the updating player, False for the next player.
    baseline_rate: float. The step by which a baseline moves to each new value; 0 for no baselines.
  """

  own: Count
  others: Count
  epsilon: Double = 0.0
  beta: Double = 0.0
  tau: Double = 0.0
  repeats_draws: Count = False
  average_type: Count = AverageType.SIMPLE.value
  averages_own: Count = False
  baseline_rate: Double = 0.0
