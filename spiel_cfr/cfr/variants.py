"""Variants of CFR from the literature, each a regret minimizer and a weighting on the shared loop.

As in their papers, updates alternate, and averages take the strategy of iteration t before its owner's update.
"""

from spiel_cfr._util import arguments
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.pruning.constants import Pruning, Rule
from spiel_cfr.cfr.pruning.solver import PruningSolver
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.asymmetric_matching import AsymmetricMatching
from spiel_cfr.regret_minimizers.oftrl import Hedge
from spiel_cfr.regret_minimizers.regret_matching import DiscountOrder, RegretMatching
from spiel_cfr.regret_minimizers.schedules import FallingPower, Power, Saturating
from spiel_cfr.regret_minimizers.volatility_matching import VolatilityAdaptiveMatching


class PCFRPlusSolver(PruningSolver):
  """Predictive CFR+.

  Farina, Kroer and Sandholm, "Faster Game Solving via Predictive Blackwell Approachability" (2021).
  """

  def __init__(
    self, game: AnyGame, gamma: float = 2.0, pruning: Pruning | Rule | None = None
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      gamma: iteration t weighs t^gamma in the average; 2 is the paper's.
      pruning: what may be left alone for a while, see `PruningSolver`; None for nothing.

    Raises:
      ArgumentError: gamma is negative or not finite, or `pruning` is none.
      PruningError: that pruning would not be sound here.
      GameError: see `compile_game`.
    """
    minimizer = RegretMatching.predictive_plus()
    super().__init__(game, minimizer, average_weights=gamma, pruning=pruning)


class SAPCFRPlusSolver(FullWidthSolver):
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
    super().__init__(game, RegretMatching.predictive_plus(weight), average_weights=gamma)


class APCFRPlusSolver(FullWidthSolver):
  """Asymmetric predictive CFR+: see `asymmetric_matching`. From the same paper as `SAPCFRPlusSolver`."""

  def __init__(self, game: AnyGame, most: float = 5.0, gamma: float = 2.0) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      most: the largest asymmetry: the prediction counts 1 / (1 + most) at least.
      gamma: iteration t weighs t^gamma in the average; 2 is the paper's.

    Raises:
      ArgumentError: `most` is not positive and at most 1e100, or gamma is negative or not finite.
      GameError: see `compile_game`.
    """
    super().__init__(game, AsymmetricMatching(most=most), average_weights=gamma)


class APDCFRPlusSolver(FullWidthSolver):
  """Asymmetric predictive discounted CFR+: see `asymmetric_matching`. From the same paper as `SAPCFRPlusSolver`."""

  def __init__(
    self,
    game: AnyGame,
    most: float = 9.0,
    limit: float = 20.0,
    half: float = 500.0,
    beta: float = 1.5,
    gamma: float = 2.5,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      most: as for `APCFRPlusSolver`.
      limit: regrets of iteration t weigh limit * t^beta / (half + t^beta), and so do all before them in a strategy.
      half: see there.
      beta: see there.
      gamma: iteration t weighs t^gamma in the average.

    Raises:
      ArgumentError: `most` is not positive and at most 1e100, the limit is not positive, or one of the others is
        negative or not finite.
      GameError: see `compile_game`.
    """
    weight = Saturating(limit, half, beta)
    super().__init__(game, AsymmetricMatching(weight, most), average_weights=gamma)


class VADCFRSolver(FullWidthSolver):
  """Volatility-adaptive discounted CFR: see `regret_minimizers.volatility_matching`.

  Li, Schultz, Hennes and Lanctot, "Discovering Multiagent Learning Algorithms with Large Language Models" (2026).
  Their average begins at iteration 501 and weighs the strategy of iteration t at an infoset by

      t^(2 + 1.5 min(1, m / 2)) (1 + m / 2)^0.5 / (1 + m^1.5),    m the largest regret there in that iteration

  which tends to t^2. Averages of sequence forms have one weight for all infosets, so here it is t^2.
  """

  def __init__(self, game: AnyGame, unit: float = 1.0, first: int = 501) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      unit: of payoffs, in which the paper's constants are given.
      first: the first iteration that enters the average; before it, the average policy is the current one.

    Raises:
      ArgumentError: the unit is not positive, or `first` is not a positive integer.
      GameError: see `compile_game`.
    """
    after = arguments.positive_integer(first, "first") - 1
    super().__init__(game, VolatilityAdaptiveMatching(unit), average_weights=Power(2.0, after))


class DCFRPlusSolver(PruningSolver):
  """Discounted CFR+.

  Xu et al., "Minimizing Weighted Counterfactual Regret with Optimistic Online Mirror Descent" (2024). Their program has
  1.5 instead of 1 in the denominator of the discount.
  """

  def __init__(
    self,
    game: AnyGame,
    alpha: float = 1.5,
    gamma: float = 4.0,
    pruning: Pruning | Rule | None = None,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      alpha: regrets are multiplied by (t - 1)^alpha / ((t - 1)^alpha + 1) before those of iteration t are added.
      gamma: iteration t weighs t^gamma in the average.
      pruning: what may be left alone for a while, see `PruningSolver`; None for nothing.

    Raises:
      ArgumentError: alpha or gamma is negative or NaN, or `pruning` is none.
      PruningError: that pruning would not be sound here.
      GameError: see `compile_game`.
    """
    minimizer = RegretMatching.discounted_plus(alpha)
    super().__init__(game, minimizer, average_weights=gamma, pruning=pruning)


class PDCFRPlusSolver(FullWidthSolver):
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
      game, RegretMatching.discounted_plus(alpha, predictive=True), average_weights=gamma
    )


class HSDCFRSolver(FullWidthSolver):
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
    weights = FallingPower(first_gamma, horizon)
    self.horizon = weights.horizon
    super().__init__(game, RegretMatching.scheduled(horizon, order), average_weights=weights)


class HSPCFRPlusSolver(FullWidthSolver):
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
    weights = FallingPower(first_gamma, horizon)
    self.horizon = weights.horizon
    super().__init__(game, RegretMatching.predictive_plus(), average_weights=weights)


class HedgeCFRSolver(FullWidthSolver):
  """CFR with multiplicative weights at every infoset: see `regret_minimizers.oftrl.Hedge`."""

  def __init__(
    self,
    game: AnyGame,
    rate: float = 1.0,
    alternating_updates: bool = True,
    threshold: float = 1.0,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      rate: a factor on the steps.
      alternating_updates: whether a player sees the strategies to which those before it have just updated.
      threshold: by what factor the bound on regrets may grow for probabilities that are too small to be 0 (dynamic
        thresholding); 1 drops none.

    Raises:
      ArgumentError: the rate is not positive and finite, or the threshold is below 1 or not finite.
      GameError: see `compile_game`.
    """
    super().__init__(game, Hedge(rate, threshold), alternating_updates=alternating_updates)
