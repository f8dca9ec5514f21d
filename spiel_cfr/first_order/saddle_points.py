"""Games whose equilibria are saddle points: constant-sum games of two players."""

from typing import NamedTuple

from spiel_cfr import errors
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# The rounding error of sums of values, as a fraction of the range of payoffs.
_ROUNDING = 1e-13


class PayoffSum(NamedTuple):
  """The sum of the players' payoffs.

  Attributes:
    total: the sum.
    rounding: the largest rounding error of sums of values.
  """

  total: float
  rounding: float


def payoff_sum(game: CompiledGame, solver: str) -> PayoffSum:
  """Returns the sum of the players' payoffs in a constant-sum game.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players, which this solver needs.
  """
  if game.constant_sum is None or not game.is_two_player_constant_sum:
    raise errors.UnsupportedGameError(
      f"{solver} finds saddle points, which only constant-sum games of two players have; "
      f"{game.name} is not one. Use a solver that minimizes regret, such as CFRPlusSolver or "
      "OptimisticMirrorDescentSolver."
    )
  return PayoffSum(game.constant_sum, _ROUNDING * (game.payoff_range[1] - game.payoff_range[0]))
