"""Adaptive optimistic CFR: no horizon, no unit of payoffs, no tuning."""

from spiel_cfr.cfr.averaging import Averaged
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.regret_minimizers.adaptive_mirror_descent import AdaptiveOptimisticDescent


class AdaptiveOptimisticCFRSolver(FullWidthSolver):
  """CFR with adaptive optimistic mirror descent at every infoset: see `regret_minimizers.adaptive_mirror_descent`.

  Updates alternate. Every player but the last averages the strategy to which it has just updated, the one that the
  next player is about to face; the last one averages the strategy that the others have just faced.
  """

  def __init__(
    self,
    game: AnyGame,
    step: float = 0.25,
    prediction: float = 0.2,
    forgetting: float = 1.5,
    forgetting_offset: float = 2.0,
    gamma: float = 2.0,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      step: the factor on all steps.
      prediction: how much of a step the prediction moves.
      forgetting: of early errors; errors of before iteration t are multiplied by
        p / (p + forgetting_offset), p = (t - 1)^forgetting.
      forgetting_offset: what is added to p there; 0 forgets nothing.
      gamma: iteration t weighs t^gamma in the average.

    Raises:
      ArgumentError: one of the numbers is negative or not finite, or the step is 0.
      GameError: see `compile_game`.
    """
    compiled = compile_game(game)
    others: Averaged = "after"
    super().__init__(
      compiled,
      AdaptiveOptimisticDescent(step, prediction, forgetting, forgetting_offset),
      average_weights=gamma,
      averaged=(*[others] * (compiled.num_players - 1), "before"),
    )
