"""Monte Carlo CFR solvers, with OpenSpiel's names and arguments. Every solver is a `Sampler` for `SamplingSolver`.

- External and outcome sampling: Lanctot et al., "Monte Carlo Sampling for Regret Minimization in Extensive Games"
  (2009).
- Chance sampling: Zinkevich et al., "Regret Minimization in Games with Incomplete Information" (2007).
- Average-strategy sampling: Gibson et al., "Efficient Monte Carlo Counterfactual Regret Minimization in Games with Many
  Player Actions" (2012).
- Baselines: Schmid et al., "Variance Reduction in Monte Carlo Counterfactual Regret Minimization for Extensive Form
  Games using Baselines" (2019).

All solvers raise ArgumentError for an invalid argument, and GameError if the game can't be loaded or sampled.
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
  """External sampling: explores all actions of the updating player, and samples one action of each opponent and chance.

  Args:
    game: see `SamplingSolver`.
    average_type: the averaging weight of a visit, as `AverageType`, OpenSpiel's enumeration or a name.
    baseline_rate: the fraction of the way that baselines of sampled actions move to each new value; 0 for no baselines.
    **options: see `SamplingSolver`.
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
  """Outcome sampling: samples one action at every node; the updating player explores.

  Args:
    game: see `SamplingSolver`.
    epsilon: the probability, above 0 and at most 1, with which the updating player samples uniformly. The default is
      OpenSpiel's.
    baseline_rate: the fraction of the way that baselines of all actions move to each new value; 0 for no baselines.
    **options: see `SamplingSolver`.
  """
  sampler = Sampler(
    Rule.BY_EXPLORING_STRATEGY,
    Rule.BY_STRATEGY,
    _positive_fraction(epsilon),
    average_type=AverageType.IMPORTANCE.value,
    averages_updating=True,
    baseline_rate=arguments.real_number(baseline_rate, "baseline_rate", 0.0, 1.0),
  )
  return SamplingSolver(game, sampler, **options)


@recorded
def ChanceSamplingSolver(game: AnyGame, **options: Unpack[Options]) -> SamplingSolver:
  """Chance sampling: draws chance outcomes once for an iteration, and explores all actions of all players."""
  sampler = Sampler(
    Rule.EVERY_ACTION, Rule.EVERY_ACTION, repeats_draws=True, averages_updating=True
  )
  return SamplingSolver(game, sampler, **options)


@recorded
def AverageStrategySamplingSolver(
  game: AnyGame,
  epsilon: float = 0.05,
  beta: float = 1e6,
  tau: float = 1000.0,
  **options: Unpack[Options],
) -> SamplingSolver:
  """Average-strategy sampling: explores actions of the updating player that are likely in its average strategy.

  With s the sum of strategies at an infoset, action a of the updating player is explored with probability

      max(epsilon, min(1, (beta + tau s(a)) / (beta + sum over actions b of s(b))))

  One action of each opponent and of chance is sampled.

  Args:
    game: see `SamplingSolver`.
    epsilon: the smallest probability with which an action is explored, above 0, at most 1.
    beta: a bonus to all actions at the beginning, at least 0. The default is the paper's.
    tau: the factor on s, at least 0. The default is the paper's. An action with a share of s above 1 / tau is always
      explored.
    **options: see `SamplingSolver`.
  """
  for name, value in (("beta", beta), ("tau", tau)):
    arguments.real_number(value, name, 0.0, sys.float_info.max)
  sampler = Sampler(Rule.BY_AVERAGE, Rule.BY_STRATEGY, _positive_fraction(epsilon), beta, tau)
  return SamplingSolver(game, sampler, **options)


def _positive_fraction(epsilon: float) -> float:
  return arguments.real_number(arguments.positive_number(epsilon, "epsilon"), "epsilon", 0.0, 1.0)
