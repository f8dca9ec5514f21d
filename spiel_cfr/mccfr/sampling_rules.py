"""What a Monte Carlo solver samples: which actions a traversal explores, and what a visit weighs in averages."""

import enum
from typing import NamedTuple

from numba import types

from spiel_cfr._numba.arrays import tuple_type


class AverageType(enum.Enum):
  """What it weighs in the average of player i that a traversal for player p meets one of i's infosets.

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
  """How many actions are explored, and which.

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
  """What a Monte Carlo solver does, whatever the game and the minimizer; chance is sampled by its own probabilities.

  Attributes:
    own: the rule for the player whose regrets a traversal estimates.
    others: the rule for the other players.
    epsilon: of the rules, as far as they use it.
    beta: likewise.
    tau: likewise.
    repeats_draws: whether the traversals of all players in an iteration draw the same random numbers.
    average_type: how visits are weighted, the value of an `AverageType`.
    averages_own: whether a traversal averages the strategies of its own player, or of the next one.
    baseline_rate: how far a baseline moves to a new value, 0 for none.
  """

  own: int
  others: int
  epsilon: float = 0.0
  beta: float = 0.0
  tau: float = 0.0
  repeats_draws: bool = False
  average_type: int = AverageType.SIMPLE.value
  averages_own: bool = False
  baseline_rate: float = 0.0


SAMPLER = tuple_type(
  Sampler,
  *[types.int64] * 2,
  *[types.float64] * 3,
  types.boolean,
  types.int64,
  types.boolean,
  types.float64,
)
