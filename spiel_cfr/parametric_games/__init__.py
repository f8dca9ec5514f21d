"""Games whose payoffs depend on parameters, and the parameters that are best for a player."""

from spiel_cfr.parametric_games.linear_games import LinearGame, kuhn_bets, leduc_bets, linear_game
from spiel_cfr.parametric_games.parameter_optimization import optimize_parameters

__all__ = [
  "LinearGame",
  "kuhn_bets",
  "leduc_bets",
  "linear_game",
  "optimize_parameters",
]
