"""Excessive gap technique (EGT): saddle points at a rate of 1 / T, with a bound on the gap after every step.

Let u_p be player p's expected utility, d_p the distance of its strategy from the uniform one, O_p the largest d_p, and
mu_p > 0 a smoothing parameter. The value of a smoothed best response is

    V_p(x) = max over x_p of  u_p(x_p, x_-p) - mu_p d_p(x_p)

It is at most mu_p O_p below the value of a best response. Define

    excess = (the sum of the players' payoffs) - V_0 - V_1

Strategies with excess >= 0 have NashConv <= mu_0 O_0 + mu_1 O_1 - excess. In every step, the solver multiplies one mu
by 1 - tau, and moves the strategies so that the excess does not become negative. Nesterov, "Excessive gap technique in
nonsmooth convex minimization" (2005); for games Hoda, Gilpin, Peña and Sandholm (2010). The search for tau is from
Kroer, Farina and Sandholm, "Solving Large Sequential Games with the Excessive Gap Technique" (2018).
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.gradient_solver import GradientSolver, GradientState
from spiel_cfr.cfr.synchronization import synchronized
from spiel_cfr.first_order.constant_sum import payoff_sum
from spiel_cfr.first_order.distances import DilatedDistance, DistanceWeights, ProximalPoint
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.regularizers import Regularizer

# The search for tau: the first tau, the divisor after a failure, the factor after a step, and the most trials.
_FIRST_TAU, _FAILURE_DIVISOR, _SUCCESS_FACTOR, _MOST_TRIALS = 0.5, 2.0, 1.11, 50
# The most halvings of the proven first mu that an aggressive solver tries.
_MOST_HALVINGS = 20


@dataclasses.dataclass(kw_only=True)
class ExcessiveGapState(GradientState):
  """The state of the excessive gap technique.

  Attributes:
    smoothing: float64 (players,). The smoothing parameter mu of each player.
    tau: the first tau that the next search tries.
  """

  smoothing: Float64s
  tau: float = _FIRST_TAU


class ExcessiveGapSolver(GradientSolver[ExcessiveGapState]):
  """The excessive gap technique for constant-sum games of two players: NashConv <= `bound` = O(1 / T).

  The solver keeps no average: `current_policy` and `average_policy` are equal.

  With L the coupling, mu_0 begins at 2 L sqrt(O_1 / O_0) and mu_1 at L sqrt(O_0 / O_1). Step t = 0, 1, ... shrinks the
  mu of the player p with the larger mu_p O_p, with tau = 2 / (t + 3). After T steps

      NashConv <= L sqrt(O_0 O_1) (2 / (T + 1) + 2 / (T + 2))

  `aggressive=True` is EGT/AS. Here mu begins as small as the excess permits. Each step first tries 1.11 times the last
  tau, and halves tau until the excess is not negative. The bound is then mu_0 O_0 + mu_1 O_1.

  Attributes:
    aggressive: bool. True if the solver searches for the largest steps.
    distance: the dilated distance on each player's strategies.
  """

  @typed
  def __init__(
    self,
    game: AnyGame,
    aggressive: bool = False,
    regularizer: Regularizer = "entropy",
    weights: DistanceWeights = "farina2021",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or an argument of `compile_game`.
      aggressive: True to search for the largest steps, False to take the proven steps.
      regularizer: "entropy" or "euclidean".
      weights: "kroer2017", "farina2021" or "one". The bound is proven for "kroer2017", for "farina2021" with the
        entropy, and for all weights if `aggressive`.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players.
      ArgumentError: `aggressive` is not a boolean, or `regularizer` or `weights` is unknown.
      GameError: see `compile_game`.
    """
    self.aggressive = arguments.boolean(aggressive, "aggressive")
    super().__init__(game)
    self._payoff_sum, self._tolerance = payoff_sum(self.compiled_game, type(self).__name__)
    self.distance = DilatedDistance(self.compiled_game, regularizer, weights)
    self.reset()

  def _first_state(self) -> ExcessiveGapState:
    return ExcessiveGapState(point=self._uniform(), smoothing=self._first_smoothing(1.0))

  def _first_smoothing(self, factor: float) -> Float64s:
    """Returns `factor` times the proven first mu of each player."""
    first, second = (diameter or 1.0 for diameter in self.distance.diameters.tolist())
    ratio, scale = math.sqrt(second / first), self.coupling * factor
    return np.array([2.0 * scale * ratio, scale / ratio])

  @property
  def bound(self) -> float:
    """Upper bound of NashConv from the second iteration on: mu_0 O_0 + mu_1 O_1."""
    return float(self.state.smoothing @ self.distance.diameters)

  @synchronized
  def excess(self) -> float:
    """Returns the excess of the current strategies. From the first iteration on, it is not negative, up to rounding."""
    state, num_gradients = self.state, self.num_gradients
    result = self._excess(state.point, state.smoothing)
    # The gradients of this call do not count.
    state.num_gradients = num_gradients
    return result

  def _smooth_response(self, player: int, point: Float64s, smoothing: Float64s) -> ProximalPoint:
    """Returns V_p of a player against the opponent's strategy at `point`, and the strategy that attains it."""
    gradient = self._gradients(point, [player])
    return self.distance.step(gradient, self.distance.uniform, smoothing, [player])

  def _excess(self, point: Float64s, smoothing: Float64s) -> float:
    """Returns the excess of strategies in sequence form, with this mu of each player."""
    first, second = (
      self._smooth_response(player, point, smoothing).values.item(player)
      for player in self._players
    )
    return self._payoff_sum - first - second

  def _begin(self, state: ExcessiveGapState) -> None:
    """Sets the first mu, and first strategies whose excess is not negative.

    Player 1 plays its smoothed best response to the uniform strategy, and player 0 its smoothed best response to that.
    The excess is not negative if mu_0 mu_1 is at least the coupling squared.
    """
    # The last attempt is the proven mu, for which the excess needs no check.
    for halvings in range(_MOST_HALVINGS if self.aggressive else 0, -1, -1):
      state.smoothing, state.point = self._first_smoothing(2.0**-halvings), self._uniform()
      for player in (1, 0):
        sequences = self._sequences(player)
        response = self._smooth_response(player, state.point, state.smoothing)
        state.point[sequences] = response.point[sequences]
      if halvings and self._excess(state.point, state.smoothing) >= -self._tolerance:
        return

  def _sequences(self, player: int) -> slice:
    treeplex = self.compiled_game.treeplexes[player]
    return slice(treeplex.root, treeplex.end)

  def _iterate(self, state: ExcessiveGapState) -> Float64s:
    if not state.iteration:
      self._begin(state)
    point, smoothing = state.point, state.smoothing
    gap_bounds = smoothing * self.distance.diameters
    player = int(gap_bounds[0] < gap_bounds[1])
    response = self._smooth_response(player, point, smoothing)
    tau = state.tau if self.aggressive else 2.0 / (state.iteration + 3.0)
    for _ in range(_MOST_TRIALS):
      new_point, new_smoothing, values = self._shrunk(player, response, tau)
      if not self.aggressive:
        break
      if self._excess(new_point, new_smoothing) >= -self._tolerance:
        state.tau = min(_FIRST_TAU, _SUCCESS_FACTOR * tau)
        break
      tau /= _FAILURE_DIVISOR
    else:
      # Rounding is larger than any further step: the strategies stay.
      new_point, new_smoothing, state.tau = point, smoothing, _FIRST_TAU
    state.point, state.smoothing = new_point, new_smoothing
    return values

  def _shrunk(
    self, player: int, response: ProximalPoint, tau: float
  ) -> tuple[Float64s, Float64s, Float64s]:
    """Multiplies a player's mu by 1 - tau, and moves the strategies so that the excess does not become negative.

    Args:
      player: the player whose mu shrinks.
      response: the player's smoothed best response to the opponent.
      tau: the step.

    Returns:
      The new strategies in sequence form, the new mu, and the values of the players' empty sequences.
    """
    old, smoothing = self.state.point, self.state.smoothing
    point, new_smoothing = old.copy(), smoothing.copy()
    player_part, opponent_part = self._sequences(player), self._sequences(1 - player)
    point[player_part] = (1.0 - tau) * old[player_part] + tau * response.point[player_part]
    reply = self._smooth_response(1 - player, point, smoothing)
    point[opponent_part] = (1.0 - tau) * old[opponent_part] + tau * reply.point[opponent_part]
    scale = (1.0 - tau) * smoothing[player] / tau
    gradient = self._gradients(reply.point, [player])
    prox = self.distance.step(gradient, response.center, scale, [player])
    point[player_part] = (1.0 - tau) * old[player_part] + tau * prox.point[player_part]
    new_smoothing[player] *= 1.0 - tau
    return point, new_smoothing, reply.values + prox.values

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(state["smoothing"] >= 0, "mu is not negative")
    require(0 <= state["tau"] <= 1, "tau is from 0 to 1")
