"""Rules of sampling: the actions that a traversal explores, and the weight of a visit in averages."""

import enum
from typing import NamedTuple

from spiel_cfr._numba.records import Count, Double


class AverageType(enum.Enum):
  """The weight, in the average of player i, of a visit to one of i's infosets in a traversal for player p.

  The first two are OpenSpiel's, where i = p + 1.

  Attributes:
    SIMPLE: own reach over the probability of the samples drawn for i and for p. In external sampling that is 1.
    FULL: nothing; every infoset is averaged once an iteration, weighted by own reach.
    IMPORTANCE: own reach over the probability of all samples, chance's and third players' too. In external sampling of
      two-player games whose chance outcomes are equally likely, that is the same throughout an infoset.
  """

  SIMPLE = 0
  FULL = 1
  IMPORTANCE = 2


class Rule(enum.IntEnum):
  """The actions that are explored at a decision.

  Attributes:
    EVERY_ACTION: all of them.
    BY_STRATEGY: one, drawn from the current strategy.
    BY_EXPLORING_STRATEGY: one, drawn uniformly with probability epsilon, otherwise from the current strategy.
    BY_AVERAGE: each by itself with probability max(epsilon, min(1, (beta + tau s(a)) / (beta + sum of s))), where s are
      the sums of the average strategy.
  """

  EVERY_ACTION = 0
  BY_STRATEGY = 1
  BY_EXPLORING_STRATEGY = 2
  BY_AVERAGE = 3


class Sampler(NamedTuple):
  """The sampling of a Monte Carlo solver, for any game and minimizer; chance is sampled by its own probabilities.

  Attributes:
    own: the rule for the player whose regrets a traversal estimates.
    others: the rule for the other players.
    epsilon: the number of that name in the rules `BY_EXPLORING_STRATEGY` and `BY_AVERAGE`.
    beta: the number of that name in the rule `BY_AVERAGE`.
    tau: the number of that name in the rule `BY_AVERAGE`.
    repeats_draws: whether the traversals of all players in an iteration draw the same random numbers.
    average_type: the weight of visits, the value of an `AverageType`.
    averages_own: whether a traversal averages the strategies of its own player, or of the next one.
    baseline_rate: the share of the way that a baseline moves to a new value; 0 for no baselines.
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
