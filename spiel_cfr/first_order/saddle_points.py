"""Check that a game's equilibria are saddle points: that it is a constant-sum game of two players."""

from typing import NamedTuple

from spiel_cfr import errors
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# The largest rounding error of a sum of values, as a fraction of the range of payoffs.
_ROUNDING = 1e-13


class PayoffSum(NamedTuple):
  """The sum of the players' payoffs, and the tolerance of comparisons with it.

  Attributes:
    total: the sum of the players' payoffs.
    rounding: the largest rounding error of a sum of values.
  """

  total: float
  rounding: float


def payoff_sum(game: CompiledGame, solver: str) -> PayoffSum:
  """Returns the sum of the players' payoffs in a constant-sum game.

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
  return PayoffSum(game.constant_sum, _ROUNDING * (game.payoff_range[1] - game.payoff_range[0]))
