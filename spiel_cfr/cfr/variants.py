"""The variants of CFR and CFR+ by name: each a regret minimizer and a weighting of the average on `FullWidthSolver`.

Those that OpenSpiel has have its names, arguments and iterates. As there, and in the papers of the others, updates
alternate unless said otherwise, and the strategy that enters a player's average at iteration t is the one before its
update.

Every one of them takes as `game` a compiled game or what `compile_game` takes, and raises GameError where that does,
and ArgumentError for a number outside its range.
"""

import math
import sys

from spiel_cfr._util import arguments
from spiel_cfr.cfr.averaging import Averaging
from spiel_cfr.cfr.cfr import CFRPlusSolver, CFRSolver, FullWidthSolver
from spiel_cfr.cfr.pruning.pruned import Pruned
from spiel_cfr.cfr.recipes import recorded
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.adaptive_mirror_descent import AdaptiveOptimisticDescent
from spiel_cfr.regret_minimizers.asymmetric_matching import AsymmetricMatching
from spiel_cfr.regret_minimizers.dynamic_thresholds import ThresholdedHedge
from spiel_cfr.regret_minimizers.oftrl import Hedge
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.schedules import Fading, FallingPower, Saturating
from spiel_cfr.regret_minimizers.trembling_matching import TremblingMatching


@recorded
def TabularCFRSolver(
  game: AnyGame,
  alternating_updates: bool = True,
  linear_averaging: bool = False,
  regret_matching_plus: bool = False,
) -> FullWidthSolver:
  """CFR with each of its classic choices open: the public form of OpenSpiel's `_CFRSolver`.

  Args:
    game: a compiled game, or what `compile_game` takes.
    alternating_updates: whether a player sees the strategies to which those before it have just updated.
    linear_averaging: whether iteration t weighs t in the average, or 1.
    regret_matching_plus: whether negative cumulative regrets are forgotten.
  """
  return FullWidthSolver(
    game,
    RegretMatching.plus() if regret_matching_plus else RegretMatching(),
    alternating_updates=alternating_updates,
    averaging=Averaging(1.0 if linear_averaging else 0.0),
  )


@recorded
def DCFRSolver(
  game: AnyGame, alpha: float = 1.5, beta: float = 0.0, gamma: float = 2.0
) -> FullWidthSolver:
  """Discounted CFR; regrets are discounted after those of the iteration have been added, as in OpenSpiel.

  Brown and Sandholm, "Solving Imperfect-Information Games via Discounted Regret Minimization" (2019).

  Args:
    game: a compiled game, or what `compile_game` takes.
    alpha: positive regrets are multiplied by t^alpha / (t^alpha + 1); not negative.
    beta: negative regrets are multiplied by t^beta / (t^beta + 1).
    gamma: iteration t weighs t^gamma in the average; not negative.
  """
  beta = arguments.real_number(beta, "beta")
  gamma = arguments.real_number(gamma, "gamma", 0.0, sys.float_info.max)
  minimizer = RegretMatching.discounted(alpha, beta)
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def LCFRSolver(game: AnyGame) -> FullWidthSolver:
  """Linear CFR: discounted CFR with all powers 1, which weighs regrets and strategies of iteration t by t.

  From the same paper as `DCFRSolver`.
  """
  minimizer = RegretMatching.discounted(1.0, 1.0)
  return FullWidthSolver(game, minimizer, averaging=Averaging(1.0))


@recorded
def CFRBRSolver(
  game: AnyGame, linear_averaging: bool = False, regret_matching_plus: bool = False
) -> FullWidthSolver:
  """CFR-BR, with OpenSpiel's name, arguments and iterates, for any number of players: see `cfr.cfr_br`.

  Args:
    game: a compiled game, or what `compile_game` takes.
    linear_averaging: whether iteration t weighs t in the average, or 1.
    regret_matching_plus: whether negative cumulative regrets are forgotten.
  """
  return FullWidthSolver(
    game,
    RegretMatching.plus() if regret_matching_plus else RegretMatching(),
    alternating_updates=False,
    averaging=Averaging(1.0 if linear_averaging else 0.0),
    opponents="best_response",
  )


@recorded
def PCFRPlusSolver(game: AnyGame, gamma: float = 2.0) -> FullWidthSolver:
  """Predictive CFR+.

  Farina, Kroer and Sandholm, "Faster Game Solving via Predictive Blackwell Approachability" (2021).

  Args:
    game: a compiled game, or what `compile_game` takes.
    gamma: iteration t weighs t^gamma in the average; 2 is the paper's.
  """
  return FullWidthSolver(game, RegretMatching.predictive_plus(), averaging=Averaging(gamma))


@recorded
def SAPCFRPlusSolver(game: AnyGame, weight: float = 1 / 3, gamma: float = 2.0) -> FullWidthSolver:
  """Simple asymmetric predictive CFR+.

  Meng et al., "Faster Game Solving via Asymmetry of Step Sizes" (2025).

  Args:
    game: a compiled game, or what `compile_game` takes.
    weight: of the predicted regrets, between 0 and 1; 1/3 is the paper's, 1 is PCFR+.
    gamma: iteration t weighs t^gamma in the average; 2 is the paper's.
  """
  return FullWidthSolver(game, RegretMatching.predictive_plus(weight), averaging=Averaging(gamma))


@recorded
def APCFRPlusSolver(game: AnyGame, most: float = 5.0, gamma: float = 2.0) -> FullWidthSolver:
  """Asymmetric predictive CFR+: see `asymmetric_matching`. From the same paper as `SAPCFRPlusSolver`.

  Args:
    game: a compiled game, or what `compile_game` takes.
    most: the largest asymmetry: the prediction counts 1 / (1 + most) at least; positive and at most 1e100.
    gamma: iteration t weighs t^gamma in the average; 2 is the paper's.
  """
  return FullWidthSolver(game, AsymmetricMatching(most=most), averaging=Averaging(gamma))


@recorded
def APDCFRPlusSolver(game: AnyGame, most: float = 9.0, gamma: float = 2.5) -> FullWidthSolver:
  """Asymmetric predictive discounted CFR+: see `asymmetric_matching`. From the same paper as `SAPCFRPlusSolver`.

  Regrets of iteration t weigh 20 t^1.5 / (500 + t^1.5), and so do all before them in a strategy.

  Args:
    game: a compiled game, or what `compile_game` takes.
    most: the largest asymmetry, positive and at most 1e100.
    gamma: iteration t weighs t^gamma in the average.
  """
  minimizer = AsymmetricMatching(Saturating(20.0, 500.0, 1.5), most)
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def DCFRPlusSolver(game: AnyGame, alpha: float = 1.5, gamma: float = 4.0) -> FullWidthSolver:
  """Discounted CFR+.

  Xu et al., "Minimizing Weighted Counterfactual Regret with Optimistic Online Mirror Descent" (2024). Their program has
  1.5 instead of 1 in the denominator of the discount.

  Args:
    game: a compiled game, or what `compile_game` takes.
    alpha: regrets are multiplied by (t - 1)^alpha / ((t - 1)^alpha + 1) before those of iteration t are added.
    gamma: iteration t weighs t^gamma in the average.
  """
  return FullWidthSolver(game, RegretMatching.discounted_plus(alpha), averaging=Averaging(gamma))


@recorded
def PDCFRPlusSolver(game: AnyGame, alpha: float = 2.3, gamma: float = 5.0) -> FullWidthSolver:
  """Predictive discounted CFR+, from the same paper as `DCFRPlusSolver`.

  Args:
    game: a compiled game, or what `compile_game` takes.
    alpha: as for `DCFRPlusSolver`; once more, of t instead of t - 1, before the predicted regrets are added.
    gamma: iteration t weighs t^gamma in the average.
  """
  minimizer = RegretMatching.discounted_plus(alpha, predictive=True)
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def HSDCFRSolver(game: AnyGame, horizon: int, first_gamma: float = 30.0) -> FullWidthSolver:
  """DCFR with hyperparameter schedules.

  Zhang, McAleer and Sandholm, "Faster Game Solving via Hyperparameter Schedules" (2024):
  alpha = 1 + 3 t / horizon, beta = -1 - 2 t / horizon, gamma = first_gamma - 5 t / horizon.

  Args:
    game: a compiled game, or what `compile_game` takes.
    horizon: for how many iterations it is to run; past them the schedules stay where they are.
    first_gamma: 30, or 15, which the paper also tries; at least 5.
  """
  weights = FallingPower(first_gamma, horizon)
  return FullWidthSolver(game, RegretMatching.scheduled(horizon), averaging=Averaging(weights))


@recorded
def HSPCFRPlusSolver(game: AnyGame, horizon: int, first_gamma: float = 30.0) -> FullWidthSolver:
  """PCFR+ with the average of `HSDCFRSolver`, from the same paper.

  Args:
    game: a compiled game, or what `compile_game` takes.
    horizon: for how many iterations it is to run; past them the schedule stays where it is.
    first_gamma: 30, or 15, which the paper also tries; at least 5.
  """
  weights = FallingPower(first_gamma, horizon)
  return FullWidthSolver(game, RegretMatching.predictive_plus(), averaging=Averaging(weights))


@recorded
def HedgeCFRSolver(
  game: AnyGame, rate: float = 1.0, alternating_updates: bool = True, threshold: float = 1.0
) -> FullWidthSolver:
  """CFR with multiplicative weights at every infoset: see `regret_minimizers.oftrl.Hedge`.

  Args:
    game: a compiled game, or what `compile_game` takes.
    rate: a factor on the steps; positive.
    alternating_updates: whether a player sees the strategies to which those before it have just updated.
    threshold: by what factor the bound on regrets may grow for small probabilities that are dropped, see
      `regret_minimizers.dynamic_thresholds`; 1 drops none.
  """
  threshold = arguments.real_number(threshold, "threshold", 1.0, sys.float_info.max)
  minimizer = Hedge(rate) if threshold == 1.0 else ThresholdedHedge(threshold, rate)
  return FullWidthSolver(game, minimizer, alternating_updates=alternating_updates)


@recorded
def AdaptiveOptimisticCFRSolver(game: AnyGame, gamma: float = 2.0) -> FullWidthSolver:
  """CFR with adaptive optimistic mirror descent, no horizon, no unit of payoffs: see `adaptive_mirror_descent`.

  Every player but the last averages the strategy to which it has just updated, the one that the next player is about to
  face; the last one averages the strategy that the others have just faced.

  Args:
    game: a compiled game, or what `compile_game` takes.
    gamma: iteration t weighs t^gamma in the average.
  """
  return FullWidthSolver(game, AdaptiveOptimisticDescent(), averaging=Averaging(gamma, "faced"))


@recorded
def TremblingHandSolver(
  game: AnyGame, trembles: float = 0.1, power: float = 0.5, gamma: float = 2.0
) -> FullWidthSolver:
  """CFR+ in which every infoset plays at random with probability epsilon_t = trembles / t^power.

  As epsilon vanishes, the average tends to a Nash equilibrium that is sensible off the path too, an extensive-form
  perfect one; see `trembling_matching`. `largest_infoset_regret` measures by how much it is not.

  Args:
    game: a compiled game, or what `compile_game` takes.
    trembles: epsilon at first, below 1.
    power: how fast it falls, not negative; 0 keeps it.
    gamma: iteration t weighs t^gamma in the average.
  """
  trembles = arguments.real_number(trembles, "trembles", 0.0, math.nextafter(1.0, 0.0))
  minimizer = TremblingMatching(Fading(trembles, 1.0, power))
  return FullWidthSolver(game, minimizer, averaging=Averaging(gamma))


@recorded
def RegretBasedPruningSolver(game: AnyGame) -> Pruned:
  """CFR with regret-based pruning: see `pruning.pruned`.

  Brown and Sandholm, "Regret-Based Pruning in Extensive-Form Games" (2015).

  Args:
    game: a compiled game, or what `compile_game` takes, of two players.
  """
  return Pruned(CFRSolver(game), "regret")


@recorded
def BestResponsePruningSolver(game: AnyGame) -> Pruned:
  """CFR+ with best-response pruning: see `pruning.pruned`.

  Brown and Sandholm, "Reduced Space and Faster Convergence in Imperfect-Information Games via Pruning" (2017).

  Args:
    game: a compiled game, or what `compile_game` takes, of two players.
  """
  return Pruned(CFRPlusSolver(game))


@recorded
def DynamicThresholdingSolver(
  game: AnyGame, rate: float = 1000.0, threshold: float = 2.0
) -> Pruned:
  """Hedge that drops its smallest probabilities, with what follows them pruned: see `pruning.pruned`.

  Brown, Kroer and Sandholm, "Dynamic Thresholding and Pruning for Regret Minimization" (2017).

  Args:
    game: a compiled game, or what `compile_game` takes, of two players.
    rate: a factor on the steps of theory, which are for infosets that are always reached; positive.
    threshold: by what factor the bound on regrets may grow for what is dropped, at least 1, which drops nothing.
  """
  return Pruned(HedgeCFRSolver(game, rate=rate, threshold=threshold), "regret")
