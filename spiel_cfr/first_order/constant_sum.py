"""Check that a game is a constant-sum game of two players, whose equilibria are saddle points."""

from spiel_cfr import errors
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# The largest rounding error of a sum of values, as a fraction of the range of payoffs.
_ROUNDING = 1e-13


def payoff_sum(game: CompiledGame, solver: str) -> tuple[float, float]:
  """Returns the sum of the players' payoffs in a constant-sum game, and the tolerance of comparisons with it.

  The tolerance is the largest rounding error of a sum of values.

  Args:
    game: the game.
    solver: the name of the solver, for the error message.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players.
  """
  if game.constant_sum is None or not game.is_two_player_constant_sum:
    raise errors.UnsupportedGameError(
      f"{solver} finds saddle points, which only constant-sum games of two players have; "
      f"{game.name} is not one. Use a solver that minimizes regret, such as CFRPlusSolver or "
      "OptimisticMirrorDescentSolver."
    )
  low, high = game.payoff_range
  return game.constant_sum, _ROUNDING * (high - low)
