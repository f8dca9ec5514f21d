"""What follows from the values of a policy and of the best responses to it."""

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame


class Evaluated:
  """A policy that has been evaluated.

  Attributes:
    compiled_game: the game as arrays.
    expected_values: what each player expects when all play the policy, shape (players,).
    best_response_values: what each would expect from a best response to the others, shape (players,).
  """

  compiled_game: CompiledGame
  expected_values: Float64s
  best_response_values: Float64s

  @property
  def nash_conv(self) -> float:
    """What the players would gain by best responses, all together."""
    return float((self.best_response_values - self.expected_values).sum())

  @property
  def exploitability(self) -> float:
    """NashConv / 2.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players.
    """
    evaluate.check_two_player_constant_sum(self.compiled_game)
    return self.nash_conv / 2

  @property
  def value_bounds(self) -> tuple[float, float]:
    """What player 0 gets for certain with its policy, and the most that it can get against the other's.

    The value of the game is between the two, and they are NashConv apart.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players, so that it need not have a value.
    """
    evaluate.check_two_player_constant_sum(self.compiled_game)
    assert self.compiled_game.constant_sum is not None
    first, second = self.best_response_values.tolist()
    return self.compiled_game.constant_sum - second, first
