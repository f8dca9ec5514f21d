"""Monte Carlo CFR solvers, with OpenSpiel's names and arguments: each is a `Sampler` for `SamplingSolver`.

- External and outcome sampling: Lanctot et al., "Monte Carlo Sampling for Regret Minimization in Extensive Games"
  (2009).
- Chance sampling: Zinkevich et al., "Regret Minimization in Games with Incomplete Information" (2007).
- Average-strategy sampling: Gibson et al., "Efficient Monte Carlo Counterfactual Regret Minimization in Games with Many
  Player Actions" (2012).
- Baselines: Schmid et al., "Variance Reduction in Monte Carlo Counterfactual Regret Minimization for Extensive Form
  Games using Baselines" (2019).

They raise ArgumentError where an argument makes no sense, GameError where the game can't be loaded or sampled.
"""

import sys
from typing import Unpack

from spiel_cfr._util import arguments
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.mccfr.monte_carlo_solver import Options
from spiel_cfr.mccfr.sampling_rules import AverageType, Rule, Sampler
from spiel_cfr.mccfr.sampling_solver import SamplingSolver


@recorded
def ExternalSamplingSolver(
  game: AnyGame,
  average_type: AverageType = AverageType.SIMPLE,
  *,
  baseline_rate: float = 0.0,
  **options: Unpack[Options],
) -> SamplingSolver:
  """External sampling: all actions of the player who learns, one of each other player and of chance.

  Strategies are averaged by an `average_type`, OpenSpiel's enumeration or a name. If `baseline_rate` is positive, there
  are baselines for the sampled actions, which move by this share to each new value. Others are `SamplingSolver`'s.
  """
  name = str(getattr(average_type, "name", average_type))
  arguments.one_of(name, "average_type", list(AverageType.__members__))
  sampler = Sampler(
    Rule.EVERY_ACTION,
    Rule.BY_STRATEGY,
    average_type=AverageType[name].value,
    baseline_rate=arguments.real_number(baseline_rate, "baseline_rate", 0.0, 1.0),
  )
  return SamplingSolver(game, sampler, **options)


@recorded
def OutcomeSamplingSolver(
  game: AnyGame, epsilon: float = 0.6, *, baseline_rate: float = 0.0, **options: Unpack[Options]
) -> SamplingSolver:
  """Outcome sampling: one action everywhere, by the player who learns with exploration.

  That player plays uniformly with probability `epsilon`, above 0, at most 1; OpenSpiel's is 0.6. If `baseline_rate` is
  positive, there are baselines for all actions, which move by this share to each new value. For the others see
  `SamplingSolver`.
  """
  sampler = Sampler(
    Rule.BY_EXPLORING_STRATEGY,
    Rule.BY_STRATEGY,
    _positive_fraction(epsilon),
    average_type=AverageType.IMPORTANCE.value,
    averages_own=True,
    baseline_rate=arguments.real_number(baseline_rate, "baseline_rate", 0.0, 1.0),
  )
  return SamplingSolver(game, sampler, **options)


@recorded
def ChanceSamplingSolver(game: AnyGame, **options: Unpack[Options]) -> SamplingSolver:
  """Chance sampling: one outcome of each chance node an iteration, the same for all players, and all actions."""
  sampler = Sampler(Rule.EVERY_ACTION, Rule.EVERY_ACTION, repeats_draws=True, averages_own=True)
  return SamplingSolver(game, sampler, **options)


@recorded
def AverageStrategySamplingSolver(
  game: AnyGame,
  epsilon: float = 0.05,
  beta: float = 1e6,
  tau: float = 1000.0,
  **options: Unpack[Options],
) -> SamplingSolver:
  """Average-strategy sampling: actions that the average policy plays, and some others, of the player who learns.

  Action a of an infoset whose average strategy sums to s is explored with probability

      max(epsilon, min(1, (beta + tau s(a)) / (beta + sum over actions b of s(b))))

  and of the other players' actions and of chance's, one is.

  Args:
    game: see `SamplingSolver`.
    epsilon: the least probability with which an action is explored, above 0, at most 1.
    beta: how long all actions are explored, not negative; the paper's value.
    tau: actions with more than a share 1 / tau of the average are always explored, not negative; the paper's value.
    **options: see `SamplingSolver`.
  """
  for name, value in (("beta", beta), ("tau", tau)):
    arguments.real_number(value, name, 0.0, sys.float_info.max)
  sampler = Sampler(Rule.BY_AVERAGE, Rule.BY_STRATEGY, _positive_fraction(epsilon), beta, tau)
  return SamplingSolver(game, sampler, **options)


def _positive_fraction(epsilon: float) -> float:
  return arguments.real_number(arguments.positive_number(epsilon, "epsilon"), "epsilon", 0.0, 1.0)
