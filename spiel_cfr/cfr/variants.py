"""Variants of CFR and CFR+ by name: each configures `FullWidthSolver` with a regret minimizer and averaging weights.

Variants that OpenSpiel has, have its names, arguments and iterates. By default, as in OpenSpiel and in the papers,
updates alternate, and a player's average contains its strategy before the update of iteration t.

Every function takes as `game` a compiled game or an argument of `compile_game`. It raises the errors of `compile_game`,
and ArgumentError for a number outside its range.
"""

import math
import sys

from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr import CFRPlusSolver, CFRSolver, FullWidthSolver
from spiel_cfr.cfr.pruning.pruned import Pruned
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.adaptive_mirror_descent import AdaptiveOptimisticDescent
from spiel_cfr.regret_minimizers.asymmetric_matching import AsymmetricMatching
from spiel_cfr.regret_minimizers.hedge import Hedge
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.schedules import Discount, Fading, FallingPower, Saturating
from spiel_cfr.regret_minimizers.trembling_matching import TremblingMatching


@recorded
def TabularCFRSolver(
  game: AnyGame,
  alternating_updates: bool = True,
  linear_averaging: bool = False,
  regret_matching_plus: bool = False,
) -> FullWidthSolver:
  """CFR with its classic choices as arguments; OpenSpiel's `_CFRSolver`, which is private there.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    alternating_updates: whether a player sees the new strategies of the players before it.
    linear_averaging: whether iteration t has weight t in the average; otherwise, weight 1.
    regret_matching_plus: whether negative cumulative regrets are forgotten.
  """
  arguments.boolean(linear_averaging, "linear_averaging")
  return FullWidthSolver(
    game,
    RegretMatching(forgets_negative=regret_matching_plus),
    alternating_updates=alternating_updates,
    averaging=Averaging(1.0 if linear_averaging else 0.0),
  )


@recorded
def DCFRSolver(
  game: AnyGame, alpha: float = 1.5, beta: float = 0.0, gamma: float = 2.0
) -> FullWidthSolver:
  """Discounted CFR. As in OpenSpiel, cumulative regrets are discounted after the regrets of an iteration are added.

  Brown and Sandholm, "Solving Imperfect-Information Games via Discounted Regret Minimization" (2019).

  Args:
    game: a compiled game, or an argument of `compile_game`.
    alpha: positive regrets are multiplied by t^alpha / (t^alpha + 1); not negative.
    beta: negative regrets are multiplied by t^beta / (t^beta + 1).
    gamma: the power of t in the weight t^gamma of iteration t in the average; not negative.
  """
  beta = arguments.real_number(beta, "beta")
  gamma = arguments.real_number(gamma, "gamma", 0.0, sys.float_info.max)
  minimizer = RegretMatching.discounted(alpha, beta)
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def LCFRSolver(game: AnyGame) -> FullWidthSolver:
  """Linear CFR: discounted CFR with all powers 1, so regrets and strategies of iteration t have weight t.

  From the same paper as `DCFRSolver`.
  """
  minimizer = RegretMatching.discounted(1.0, 1.0)
  return FullWidthSolver(game, minimizer, averaging=Averaging(1.0))


@recorded
@typed
def CFRBRSolver(
  game: AnyGame, linear_averaging: bool = False, regret_matching_plus: bool = False
) -> FullWidthSolver:
  """CFR-BR, with OpenSpiel's name, arguments and iterates, for any number of players: see `cfr.cfr_br`.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    linear_averaging: whether iteration t has weight t in the average; otherwise, weight 1.
    regret_matching_plus: whether negative cumulative regrets are forgotten.
  """
  return FullWidthSolver(
    game,
    RegretMatching(forgets_negative=regret_matching_plus),
    alternating_updates=False,
    averaging=Averaging(1.0 if linear_averaging else 0.0),
    opponents="best_response",
  )


@recorded
def PCFRPlusSolver(game: AnyGame, gamma: float = 2.0) -> FullWidthSolver:
  """Predictive CFR+.

  Farina, Kroer and Sandholm, "Faster Game Solving via Predictive Blackwell Approachability" (2021).

  Args:
    game: a compiled game, or an argument of `compile_game`.
    gamma: iteration t has weight t^gamma in the average; 2 in the paper.
  """
  minimizer = RegretMatching(forgets_negative=True, prediction=1.0)
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def SAPCFRPlusSolver(game: AnyGame, weight: float = 1 / 3, gamma: float = 2.0) -> FullWidthSolver:
  """Simple asymmetric predictive CFR+.

  Meng et al., "Faster Game Solving via Asymmetry of Step Sizes" (2025).

  Args:
    game: a compiled game, or an argument of `compile_game`.
    weight: the weight of the predicted regrets, from 0 to 1; 1/3 in the paper, 1 in PCFR+.
    gamma: iteration t has weight t^gamma in the average; 2 in the paper.
  """
  weight = arguments.real_number(weight, "weight", 0.0, 1.0)
  minimizer = RegretMatching(forgets_negative=True, prediction=weight)
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def APCFRPlusSolver(
  game: AnyGame, largest_asymmetry: float = 5.0, gamma: float = 2.0
) -> FullWidthSolver:
  """Asymmetric predictive CFR+: see `asymmetric_matching`. From the same paper as `SAPCFRPlusSolver`.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    largest_asymmetry: the upper bound on the asymmetry, positive and at most 1e100. The prediction has a weight of at
      least 1 / (1 + largest_asymmetry).
    gamma: iteration t has weight t^gamma in the average; 2 in the paper.
  """
  minimizer = AsymmetricMatching(largest_asymmetry=largest_asymmetry)
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def APDCFRPlusSolver(
  game: AnyGame, largest_asymmetry: float = 9.0, gamma: float = 2.5
) -> FullWidthSolver:
  """Asymmetric predictive discounted CFR+: see `asymmetric_matching`. From the same paper as `SAPCFRPlusSolver`.

  The regrets of iteration t, and all regrets before them in a strategy, have weight 20 t^1.5 / (500 + t^1.5).

  Args:
    game: a compiled game, or an argument of `compile_game`.
    largest_asymmetry: the upper bound on the asymmetry, positive and at most 1e100.
    gamma: iteration t has weight t^gamma in the average.
  """
  minimizer = AsymmetricMatching(Saturating(20.0, 500.0, 1.5), largest_asymmetry)
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def DCFRPlusSolver(game: AnyGame, alpha: float = 1.5, gamma: float = 4.0) -> FullWidthSolver:
  """Discounted CFR+.

  Xu et al., "Minimizing Weighted Counterfactual Regret with Optimistic Online Mirror Descent" (2024). Their program has
  1.5 instead of 1 in the denominator of the discount.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    alpha: at iteration t, cumulative regrets are first multiplied by (t - 1)^alpha / ((t - 1)^alpha + 1).
    gamma: iteration t has weight t^gamma in the average.
  """
  alpha = arguments.real_number(alpha, "alpha", 0.0)
  minimizer = RegretMatching(Discount(alpha, delay=1), forgets_negative=True)
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def PDCFRPlusSolver(game: AnyGame, alpha: float = 2.3, gamma: float = 5.0) -> FullWidthSolver:
  """Predictive discounted CFR+, from the same paper as `DCFRPlusSolver`.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    alpha: see `DCFRPlusSolver`. Before predicted regrets are added, regrets are discounted again, with t for t - 1.
    gamma: iteration t has weight t^gamma in the average.
  """
  alpha = arguments.real_number(alpha, "alpha", 0.0)
  minimizer = RegretMatching(
    Discount(alpha, delay=1),
    forgets_negative=True,
    next_discount=Discount(alpha),
    prediction=1.0,
  )
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def HSDCFRSolver(game: AnyGame, horizon: int, first_gamma: float = 30.0) -> FullWidthSolver:
  """DCFR with hyperparameter schedules.

  Zhang, McAleer and Sandholm, "Faster Game Solving via Hyperparameter Schedules" (2024):
  alpha = 1 + 3 t / horizon, beta = -1 - 2 t / horizon, gamma = first_gamma - 5 t / horizon.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    horizon: the number of iterations of the run; after it the schedules stay constant.
    first_gamma: gamma at the first iteration, at least 5; the paper tries 30 and 15.
  """
  alpha, beta = Discount(1.0, 3.0, horizon, 1), Discount(-1.0, -2.0, horizon, 1)
  weights = FallingPower(first_gamma, horizon)
  return FullWidthSolver(game, RegretMatching(alpha, beta), averaging=Averaging(weights))


@recorded
def HSPCFRPlusSolver(game: AnyGame, horizon: int, first_gamma: float = 30.0) -> FullWidthSolver:
  """PCFR+ with the average of `HSDCFRSolver`, from the same paper.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    horizon: the number of iterations of the run; after it the schedule stays constant.
    first_gamma: gamma at the first iteration, at least 5; the paper tries 30 and 15.
  """
  minimizer = RegretMatching(forgets_negative=True, prediction=1.0)
  weights = FallingPower(first_gamma, horizon)
  return FullWidthSolver(game, minimizer, averaging=Averaging(weights))


@recorded
def HedgeCFRSolver(
  game: AnyGame, rate: float = 1.0, alternating_updates: bool = True, threshold: float = 1.0
) -> FullWidthSolver:
  """CFR with multiplicative weights at every infoset: see `regret_minimizers.hedge`.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    rate: a factor of the step sizes; positive.
    alternating_updates: whether a player sees the new strategies of the players before it.
    threshold: the factor by which the bound on regrets may grow because small probabilities are dropped; 1 drops none.
  """
  return FullWidthSolver(game, Hedge(rate, threshold), alternating_updates=alternating_updates)


@recorded
def AdaptiveOptimisticCFRSolver(game: AnyGame, gamma: float = 2.0) -> FullWidthSolver:
  """CFR with adaptive optimistic mirror descent, without horizon or scale of payoffs: see `adaptive_mirror_descent`.

  The last player averages its strategies before the update, which the others have just faced. All other players average
  their strategies after the update, which the next player faces.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    gamma: iteration t has weight t^gamma in the average.
  """
  return FullWidthSolver(game, AdaptiveOptimisticDescent(), averaging=Averaging(gamma, "faced"))


@recorded
def TremblingHandSolver(
  game: AnyGame, trembles: float = 0.1, power: float = 0.5, gamma: float = 2.0
) -> FullWidthSolver:
  """CFR+ in which every infoset plays at random with probability epsilon_t = trembles / t^power.

  As epsilon vanishes, the average tends to an extensive-form perfect equilibrium, which plays well off the path too:
  see `trembling_matching`. `largest_infoset_regret` measures the distance to such an equilibrium.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    trembles: epsilon at the first iteration, below 1.
    power: the power by which epsilon falls, not negative; 0 keeps it constant.
    gamma: iteration t has weight t^gamma in the average.
  """
  trembles = arguments.real_number(trembles, "trembles", 0.0, math.nextafter(1.0, 0.0))
  minimizer = TremblingMatching(Fading(trembles, 1.0, power))
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def RegretBasedPruningSolver(game: AnyGame) -> Pruned:
  """CFR with regret-based pruning: see `pruning.pruned`.

  Brown and Sandholm, "Regret-Based Pruning in Extensive-Form Games" (2015).

  Args:
    game: a compiled game of two players, or an argument of `compile_game`.
  """
  return Pruned(CFRSolver(game))


@recorded
def BestResponsePruningSolver(game: AnyGame) -> Pruned:
  """CFR+ with best-response pruning: see `pruning.pruned`.

  Brown and Sandholm, "Reduced Space and Faster Convergence in Imperfect-Information Games via Pruning" (2017).

  Args:
    game: a compiled game of two players, or an argument of `compile_game`.
  """
  return Pruned(CFRPlusSolver(game))


@recorded
def DynamicThresholdingSolver(
  game: AnyGame, rate: float = 1000.0, threshold: float = 2.0
) -> Pruned:
  """Hedge that drops its smallest probabilities and prunes the subtrees below them: see `pruning.pruned`.

  Brown, Kroer and Sandholm, "Dynamic Thresholding and Pruning for Regret Minimization" (2017).

  Args:
    game: a compiled game of two players, or an argument of `compile_game`.
    rate: a factor of the step sizes from theory, which suit infosets that are always reached; positive.
    threshold: the factor by which the bound on regrets may grow, at least 1; 1 drops nothing.
  """
  return Pruned(HedgeCFRSolver(game, rate=rate, threshold=threshold))
