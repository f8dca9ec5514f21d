"""Variants of CFR from the literature, each a local minimizer and a weighting on the shared loop.

As in their papers, updates alternate, and averages take the strategy of iteration t before its owner's update.
"""

import math
import sys

import numpy as np

from spiel_cfr import arguments
from spiel_cfr.kernels.arrays import Float64s, Int64s
from spiel_cfr.minimizers.discounted import (
  DiscountedRegretMatchingPlus,
  DiscountOrder,
  PredictiveRegretMatchingPlus,
  ScheduledRegretMatching,
)
from spiel_cfr.minimizers.oftrl import Hedge
from spiel_cfr.solvers.base import AnyGame, Solver


class PCFRPlusSolver(Solver):
  """Predictive CFR+.

  Farina, Kroer and Sandholm, "Faster Game Solving via Predictive Blackwell Approachability" (2021).
  """

  def __init__(self, game: AnyGame, gamma: float = 2.0) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      gamma: iteration t weighs t^gamma in the average; 2 is the paper's.

    Raises:
      ArgumentError: gamma is negative or not finite.
      GameError: see `compile_game`.
    """
    super().__init__(game, PredictiveRegretMatchingPlus(), average_power=gamma)


class SAPCFRPlusSolver(Solver):
  """Simple asymmetric predictive CFR+.

  Meng et al., "Faster Game Solving via Asymmetry of Step Sizes" (2025).
  """

  def __init__(self, game: AnyGame, weight: float = 1 / 3, gamma: float = 2.0) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      weight: of the predicted regrets; 1/3 is the paper's, 1 is PCFR+.
      gamma: iteration t weighs t^gamma in the average; 2 is the paper's.

    Raises:
      ArgumentError: the weight is not between 0 and 1, or gamma is negative or not finite.
      GameError: see `compile_game`.
    """
    super().__init__(game, PredictiveRegretMatchingPlus(weight), average_power=gamma)


class DCFRPlusSolver(Solver):
  """Discounted CFR+.

  Xu et al., "Minimizing Weighted Counterfactual Regret with Optimistic Online Mirror Descent" (2024). Their program has
  1.5 instead of 1 in the denominator of the discount.
  """

  def __init__(self, game: AnyGame, alpha: float = 1.5, gamma: float = 4.0) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      alpha: regrets are multiplied by (t - 1)^alpha / ((t - 1)^alpha + 1) before those of iteration t are added.
      gamma: iteration t weighs t^gamma in the average.

    Raises:
      ArgumentError: alpha or gamma is negative or NaN.
      GameError: see `compile_game`.
    """
    super().__init__(game, DiscountedRegretMatchingPlus(alpha), average_power=gamma)


class PDCFRPlusSolver(Solver):
  """Predictive discounted CFR+, from the same paper as `DCFRPlusSolver`."""

  def __init__(self, game: AnyGame, alpha: float = 2.3, gamma: float = 5.0) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      alpha: as for `DCFRPlusSolver`; once more, of t instead of t - 1, before the predicted regrets are added.
      gamma: iteration t weighs t^gamma in the average.

    Raises:
      ArgumentError: alpha or gamma is negative or NaN.
      GameError: see `compile_game`.
    """
    super().__init__(
      game, DiscountedRegretMatchingPlus(alpha, predictive=True), average_power=gamma
    )


class HSDCFRSolver(Solver):
  """DCFR with hyperparameter schedules.

  Zhang, McAleer and Sandholm, "Faster Game Solving via Hyperparameter Schedules" (2024):
  alpha = 1 + 3 t / horizon, beta = -1 - 2 t / horizon, gamma = first_gamma - 5 t / horizon.
  """

  def __init__(
    self,
    game: AnyGame,
    horizon: int,
    first_gamma: float = 30.0,
    order: DiscountOrder = "openspiel",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      horizon: for how many iterations it is to run; past them the schedules stay where they are.
      first_gamma: 30, or 15, which the paper also tries; at least 5.
      order: as in `DCFRSolver`.

    Raises:
      ArgumentError: the horizon is not a positive integer, first_gamma is less than 5, or there is no such order.
      GameError: see `compile_game`.
    """
    self.horizon = arguments.positive_integer(horizon, "horizon")
    self._first_gamma = arguments.real_number(first_gamma, "first_gamma", 5.0, sys.float_info.max)
    super().__init__(game, ScheduledRegretMatching(order=order, horizon=self.horizon))

  def _average_weights(self, iterations: Int64s) -> Float64s:
    return scheduled_weights(iterations, self.horizon, self._first_gamma)


class HSPCFRPlusSolver(PCFRPlusSolver):
  """PCFR+ with the average of `HSDCFRSolver`, from the same paper."""

  def __init__(self, game: AnyGame, horizon: int, first_gamma: float = 30.0) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      horizon: for how many iterations it is to run; past them the schedule stays where it is.
      first_gamma: 30, or 15, which the paper also tries; at least 5.

    Raises:
      ArgumentError: the horizon is not a positive integer, or first_gamma is less than 5.
      GameError: see `compile_game`.
    """
    self.horizon = arguments.positive_integer(horizon, "horizon")
    self._first_gamma = arguments.real_number(first_gamma, "first_gamma", 5.0, sys.float_info.max)
    super().__init__(game)

  def _average_weights(self, iterations: Int64s) -> Float64s:
    return scheduled_weights(iterations, self.horizon, self._first_gamma)


def scheduled_weights(iterations: Int64s, horizon: int, first_gamma: float) -> Float64s:
  """Returns what iterations weigh if after iteration s all that came before is multiplied by (s / (s + 1))^gamma_s.

  With gamma_s = g - 5 s / horizon, the weight of iteration t is the product of ((s + 1) / s)^gamma_s over s < t:

    log weight = g log t - 5 / horizon * ((t - 1) log t - log (t - 1)!)

  Past the horizon gamma stays at g - 5.
  """
  within = np.minimum(iterations, horizon)
  logarithms = np.log(within)
  factorials = np.array([math.lgamma(t) for t in within.tolist()])
  within_horizon = first_gamma * logarithms - 5 / horizon * ((within - 1) * logarithms - factorials)
  past = (first_gamma - 5) * (np.log(iterations) - logarithms)
  result: Float64s = np.exp(within_horizon + past)
  return result


class HedgeCFRSolver(Solver):
  """CFR with multiplicative weights at every infoset: see `minimizers.oftrl.Hedge`."""

  def __init__(self, game: AnyGame, rate: float = 1.0, alternating_updates: bool = True) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      rate: a factor on the steps.
      alternating_updates: whether a player sees the strategies to which those before it have just updated.

    Raises:
      ArgumentError: the rate is not positive and finite.
      GameError: see `compile_game`.
    """
    super().__init__(game, Hedge(rate), alternating_updates=alternating_updates)
