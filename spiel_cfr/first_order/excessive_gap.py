"""Excessive gap technique: saddle points at a rate of 1 / T, with a bound on the gap at every step.

With u_p player p's expected utility, d_p a distance from the uniform strategy and mu_p > 0,

    V_p(x) = max over x_p of  u_p(x_p, x_-p) - mu_p d_p(x_p)

is a smooth lower bound of a best response's value, at most mu_p O_p below it, with O_p the diameter. So strategies with

    excess = (the sum of the players' returns) - V_0 - V_1  >=  0

have NashConv <= mu_0 O_0 + mu_1 O_1 - excess. Each step multiplies one of the mu by 1 - tau and keeps the excess from
becoming negative. Nesterov, "Excessive gap technique in nonsmooth convex minimization" (2005); for games Hoda, Gilpin,
Peña and Sandholm (2010). The search for tau is from Kroer, Farina and Sandholm, "Solving Large Sequential Games with
the Excessive Gap Technique" (2018).
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr._util.doors import typed
from spiel_cfr.cfr.gradient_solver import GradientSolver, GradientState
from spiel_cfr.cfr.synchronization import synchronized
from spiel_cfr.first_order.distances import DilatedDistance, Step, Weights
from spiel_cfr.first_order.saddle_points import payoff_sum
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.regularizers import Regularizer

# The search for tau: its first value, its divisor after a failure, its factor after a step, the most trials.
_FIRST_TAU, _SMALLER, _LARGER, _MOST_TRIALS = 0.5, 2.0, 1.11, 50
# The first mu of aggressive solvers: the proven mu, divided by powers of 2 up to this one.
_MOST_HALVINGS = 20


@dataclasses.dataclass(kw_only=True)
class ExcessiveGapState(GradientState):
  """The state of the excessive gap technique.

  Attributes:
    smoothing: float64 (players,). mu of each player.
    tau: the first tau of the next search.
  """

  smoothing: Float64s
  tau: float = _FIRST_TAU


class ExcessiveGapSolver(GradientSolver[ExcessiveGapState]):
  """The excessive gap technique for constant-sum games of two players: NashConv <= `bound` = O(1 / T).

  There is no average: `current_policy` and `average_policy` are the same.

  With L the coupling, mu_0 begins at 2 L sqrt(O_1 / O_0) and mu_1 at L sqrt(O_0 / O_1). In step t = 0, 1, ... the mu_p
  with the larger mu_p O_p shrinks, with tau = 2 / (t + 3). After T steps

      NashConv <= L sqrt(O_0 O_1) (2 / (T + 1) + 2 / (T + 2))

  `aggressive=True` is EGT/AS: mu begins as small as the excess permits. In each step tau begins at 1.11 times the last
  tau, and is halved until the excess is not negative. The bound is then mu_0 O_0 + mu_1 O_1.

  Attributes:
    aggressive: whether it searches for the largest steps.
    distance: the distance on each player's strategies.
  """

  @typed
  def __init__(
    self,
    game: AnyGame,
    aggressive: bool = False,
    regularizer: Regularizer = "entropy",
    weights: Weights = "farina2021",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or an argument of `compile_game`.
      aggressive: whether it searches for the largest steps, or takes the proven ones.
      regularizer: "entropy" or "euclidean".
      weights: "kroer2017", "farina2021" or "one". The bound is proven for "kroer2017", for "farina2021" with the
        entropy, and in aggressive solvers for all.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players.
      ArgumentError: `regularizer` or `weights` is unknown.
      GameError: see `compile_game`.
    """
    self.aggressive = bool(aggressive)
    super().__init__(game)
    self._sum = payoff_sum(self.compiled_game, type(self).__name__)
    self.distance = DilatedDistance(self.compiled_game, regularizer, weights)
    self.reset()

  def _first_state(self) -> ExcessiveGapState:
    return ExcessiveGapState(point=self._uniform(), smoothing=self._first_smoothing(1.0))

  def _first_smoothing(self, factor: float) -> Float64s:
    first, second = (diameter or 1.0 for diameter in self.distance.diameters.tolist())
    ratio, scale = math.sqrt(second / first), self.coupling * factor
    return np.array([2.0 * scale * ratio, scale / ratio])

  @property
  def bound(self) -> float:
    """Upper bound of NashConv from the second iteration on: mu_0 O_0 + mu_1 O_1."""
    return float(self.state.smoothing @ self.distance.diameters)

  @synchronized
  def excess(self) -> float:
    """Returns the excess at the current strategies; not negative from the first iteration on, up to rounding."""
    state, counted = self.state, self.num_gradients
    result = self._excess(state.point, state.smoothing)
    state.num_gradients = counted
    return result

  def _smooth_response(self, player: int, point: Float64s, smoothing: Float64s) -> Step:
    """Returns V_p at the others' strategies, and the strategy that attains it."""
    gradient = self._gradients(point, [player])
    return self.distance.step(gradient, self.distance.uniform, smoothing, [player])

  def _excess(self, point: Float64s, smoothing: Float64s) -> float:
    first, second = (
      self._smooth_response(player, point, smoothing).values.item(player)
      for player in self._players
    )
    return self._sum.total - first - second

  def _begin(self, state: ExcessiveGapState) -> None:
    """Sets the first mu and strategies, whose excess is not negative.

    Player 1 responds smoothly to the uniform strategy, and player 0 to that response. The excess is not negative if
    mu_0 mu_1 is at least the coupling squared.
    """
    # The proven start comes last, and its excess is not checked.
    for halvings in range(_MOST_HALVINGS if self.aggressive else 0, -1, -1):
      state.smoothing, state.point = self._first_smoothing(2.0**-halvings), self._uniform()
      for player in (1, 0):
        sequences = self._sequences(player)
        response = self._smooth_response(player, state.point, state.smoothing)
        state.point[sequences] = response.point[sequences]
      if halvings and self._excess(state.point, state.smoothing) >= -self._sum.rounding:
        return

  def _sequences(self, player: int) -> slice:
    treeplex = self.compiled_game.treeplexes[player]
    return slice(treeplex.root, treeplex.end)

  def _iterate(self, state: ExcessiveGapState) -> Float64s:
    if not state.iteration:
      self._begin(state)
    point, smoothing = state.point, state.smoothing
    reach = smoothing * self.distance.diameters
    player = int(reach[0] < reach[1])
    answer = self._smooth_response(player, point, smoothing)
    tau = state.tau if self.aggressive else 2.0 / (state.iteration + 3.0)
    for _ in range(_MOST_TRIALS):
      moved, smaller, values = self._shrunk(player, answer, tau)
      if not self.aggressive:
        break
      if self._excess(moved, smaller) >= -self._sum.rounding:
        state.tau = min(_FIRST_TAU, _LARGER * tau)
        break
      tau /= _SMALLER
    else:
      # Rounding is larger than any further step: the strategies stay.
      moved, smaller, state.tau = point, smoothing, _FIRST_TAU
    state.point, state.smoothing = moved, smaller
    return values

  def _shrunk(self, player: int, answer: Step, tau: float) -> tuple[Float64s, Float64s, Float64s]:
    """Multiplies a player's mu by 1 - tau, and moves the strategies so that the excess stays.

    Args:
      player: the player.
      answer: the player's smooth response to the others.
      tau: the step.

    Returns:
      The new strategies in sequence form, the new mu, and the values of the players' empty sequences.
    """
    point, smoothing = self.state.point, self.state.smoothing
    moved, smaller = point.copy(), smoothing.copy()
    mine, others = self._sequences(player), self._sequences(1 - player)
    moved[mine] = (1.0 - tau) * point[mine] + tau * answer.point[mine]
    reply = self._smooth_response(1 - player, moved, smoothing)
    moved[others] = (1.0 - tau) * point[others] + tau * reply.point[others]
    scale = (1.0 - tau) * smaller[player] / tau
    gradient = self._gradients(reply.point, [player])
    trial = self.distance.step(gradient, answer.center, scale, [player])
    moved[mine] = (1.0 - tau) * point[mine] + tau * trial.point[mine]
    smaller[player] *= 1.0 - tau
    return moved, smaller, reply.values + trial.values

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(state["smoothing"] >= 0, "mu is not negative")
    require(0 <= state["tau"] <= 1, "tau is a share")
