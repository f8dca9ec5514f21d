"""What methods for saddle points share: a constant-sum game of two players, a dilated distance, two kinds of steps."""

from spiel_cfr import errors
from spiel_cfr.first_order.distances import DilatedDistance, Weights
from spiel_cfr.first_order.first_order_solver import FirstOrderSolver, S
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.regularizers import Regularizer

# Of sums of values, as a fraction of the range of payoffs.
_ROUNDING = 1e-13


class SaddlePointSolver(FirstOrderSolver[S]):
  """Base class of solvers with steps that are proven, and aggressive ones that are as long as what is proven holds.

  Attributes:
    aggressive: as given.
    distance: the distance.
  """

  def __init__(
    self,
    game: AnyGame,
    aggressive: bool = False,
    regularizer: Regularizer = "entropy",
    weights: Weights = "farina2021",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      aggressive: whether it searches for the largest steps.
      regularizer: "entropy" or "euclidean".
      weights: "kroer2017", "farina2021" or "one". The bound is proven for the first, and for the second with the
        entropy; of an aggressive solver for any.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players.
      ArgumentError: there is no such regularizer, or there are no such weights.
      GameError: see `compile_game`.
    """
    self.aggressive = bool(aggressive)
    super().__init__(game)
    compiled = self.compiled_game
    if compiled.constant_sum is None or not compiled.is_two_player_constant_sum:
      raise errors.UnsupportedGameError(
        f"{type(self).__name__} finds saddle points, which only constant-sum games of two players have; "
        f"{compiled.game_string} is not one. Take a solver that minimizes regret, such as CFRPlusSolver or "
        "OptimisticMirrorDescentSolver."
      )
    # What the players' returns sum to, and how far sums of values may be from that by rounding.
    self._total = compiled.constant_sum
    self._rounding = _ROUNDING * (compiled.payoff_range[1] - compiled.payoff_range[0])
    self.distance = DilatedDistance(compiled, regularizer, weights)
    self.reset()
