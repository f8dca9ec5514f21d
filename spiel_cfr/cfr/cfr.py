"""Counterfactual regret minimization and its best-known variants, with OpenSpiel's names, arguments and iterates.

- CFR: Zinkevich et al., "Regret Minimization in Games with Incomplete Information" (2007).
- CFR+: Tammelin, "Solving Large Imperfect Information Games Using CFR+" (2014).
- LCFR and DCFR: Brown and Sandholm, "Solving Imperfect-Information Games via Discounted Regret Minimization" (2019).

As in OpenSpiel, updates alternate unless said otherwise, the strategy that enters a player's average at iteration t is
the one before that player's update, and DCFR discounts after adding unless said otherwise.
"""

import sys

from spiel_cfr._util import arguments
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.regret_matching import DiscountOrder, RegretMatching


class TabularCFRSolver(FullWidthSolver):
  """CFR with each of its classic choices open: the public form of OpenSpiel's `_CFRSolver`."""

  def __init__(
    self,
    game: AnyGame,
    alternating_updates: bool = True,
    linear_averaging: bool = False,
    regret_matching_plus: bool = False,
    correlated: bool = False,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      alternating_updates: whether a player sees the strategies to which those before it have just updated.
      linear_averaging: whether iteration t weighs t in the average, or 1.
      regret_matching_plus: whether negative cumulative regrets are forgotten.
      correlated: whether to keep what `coarse_correlated_gap` takes; only with simultaneous updates.

    Raises:
      ArgumentError: `correlated` is asked for with alternating updates.
      GameError: see `compile_game`.
    """
    super().__init__(
      game,
      RegretMatching.plus() if regret_matching_plus else RegretMatching(),
      alternating_updates=alternating_updates,
      average_weights=1.0 if linear_averaging else 0.0,
      correlated=correlated,
    )


class CFRSolver(TabularCFRSolver):
  """CFR: regret matching, a uniform average, alternating updates."""

  def __init__(self, game: AnyGame) -> None:
    """Makes the solver for a compiled game or what `compile_game` takes."""
    super().__init__(game)


class CFRPlusSolver(TabularCFRSolver):
  """CFR+: regret matching+, a linear average, alternating updates."""

  def __init__(self, game: AnyGame) -> None:
    """Makes the solver for a compiled game or what `compile_game` takes."""
    super().__init__(game, linear_averaging=True, regret_matching_plus=True)


class DCFRSolver(FullWidthSolver):
  """Discounted CFR."""

  def __init__(
    self,
    game: AnyGame,
    alpha: float = 1.5,
    beta: float = 0.0,
    gamma: float = 2.0,
    order: DiscountOrder = "openspiel",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      alpha: positive regrets are multiplied by t^alpha / (t^alpha + 1); not negative.
      beta: negative regrets are multiplied by t^beta / (t^beta + 1).
      gamma: iteration t weighs t^gamma in the average; not negative.
      order: whether regrets are discounted after those of the iteration have been added, as in OpenSpiel
        ("openspiel"), or before, as in the paper ("paper").

    Raises:
      ArgumentError: alpha or gamma is negative, one of the three is no number, or there is no such order.
      GameError: see `compile_game`.
    """
    gamma = arguments.real_number(gamma, "gamma", 0.0, sys.float_info.max)
    minimizer = RegretMatching.discounted(alpha, beta, order)
    super().__init__(game, minimizer, average_weights=gamma)


class LCFRSolver(DCFRSolver):
  """Linear CFR: discounted CFR with all powers 1, which weighs regrets and strategies of iteration t by t."""

  def __init__(self, game: AnyGame) -> None:
    """Makes the solver for a compiled game or what `compile_game` takes."""
    super().__init__(game, alpha=1.0, beta=1.0, gamma=1.0)
