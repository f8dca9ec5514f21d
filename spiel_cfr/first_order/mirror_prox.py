"""Mirror prox: two proximal steps in each iteration, the second one with the gradient at the result of the first.

Let F(x) be the players' gradients at the strategies x, O_p the diameter of player p's strategies, D a distance in which
player p has the weight 1 / (2 O_p), and eta the step. An iteration goes from z to z':

    w = argmax  eta <F(z), x> - D(x, z),      z' = argmax  eta <F(w), x> - D(x, z)

The average of all w, with weights eta, has NashConv <= 1 / (sum of eta), a rate of 1 / T, if in every iteration

    eta <F(w), z' - w> <= D(z', z)

With L the coupling, steps of eta = 1 / (2 L sqrt(O_0 O_1)) guarantee this inequality. Longer steps need a check, which
costs nothing. The value at the root of player p's second step is max <F_p, x_p> - D_p / eta, and <F_0, w_0> + <F_1,
w_1> is the sum of the players' payoffs. If the check fails, the solver tries w = z', and then a smaller eta, as in
Nemirovski, "Prox-method with rate of convergence O(1/t) for variational inequalities" (2004).
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.gradient_solver import AveragedState, GradientSolver
from spiel_cfr.first_order.constant_sum import payoff_sum
from spiel_cfr.first_order.distances import DilatedDistance, DistanceWeights, ProximalPoint
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.regularizers import Regularizer

# The factor on eta if the first two proximal steps pass the check, the divisor after a failure, and the most attempts.
_SUCCESS_FACTOR, _FAILURE_DIVISOR, _MOST_ATTEMPTS = 1.2, 2.0, 50


@dataclasses.dataclass(kw_only=True)
class MirrorProxState(AveragedState):
  """The state of mirror prox: `point` is z, and `cumulative` is the sum of eta w.

  Attributes:
    center: float64 (sequences,). z in the form of `ProximalPoint.center`.
    eta: the first eta that the next iteration tries.
  """

  center: Float64s
  eta: float


class MirrorProxSolver(GradientSolver[MirrorProxState]):
  """Mirror prox for constant-sum games of two players: NashConv of the average <= `bound` = O(1 / T).

  Steps are eta = 1 / (2 L sqrt(O_0 O_1)). With `aggressive=True`, they grow by a fifth after every iteration in which
  two proximal steps suffice.

  Attributes:
    aggressive: bool. True if steps may grow.
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
      aggressive: True if steps may grow, False to take the proven steps.
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

  def _first_state(self) -> MirrorProxState:
    product = math.prod(diameter or 1.0 for diameter in self.distance.diameters.tolist())
    return MirrorProxState(
      point=self._uniform(),
      cumulative=np.zeros(self.compiled_game.end),
      center=self.distance.uniform.copy(),
      eta=1.0 / (2.0 * self.coupling * math.sqrt(product)),
    )

  @property
  def bound(self) -> float:
    """Upper bound of the average policy's NashConv: 1 / (sum of eta); infinite before the first iteration."""
    # The empty sequence has probability 1, so its sum is that of the weights.
    total_eta = float(self.state.cumulative[0])
    return 1.0 / total_eta if total_eta else math.inf

  def _iterate(self, state: MirrorProxState) -> Float64s:
    eta, growth = state.eta, 1.0
    for attempt in range(_MOST_ATTEMPTS):
      eta = state.eta / _FAILURE_DIVISOR**attempt
      first = self._step_with_gradients_at(state.point, eta)
      second = self._step_with_gradients_at(first.point, eta)
      if not self.aggressive:
        break
      if self._passes_check(second):
        growth = _SUCCESS_FACTOR
        break
      first, second = second, self._step_with_gradients_at(second.point, eta)
      if self._passes_check(second):
        break
    state.cumulative += eta * first.point
    state.center, state.point, state.eta = second.center, second.point, eta * growth
    return second.values

  def _step_with_gradients_at(self, point: Float64s, eta: float) -> ProximalPoint:
    """Returns the proximal step from z with the gradients at a point in sequence form."""
    diameters = self.distance.diameters
    scales = 1.0 / (2.0 * np.where(diameters > 0.0, diameters, 1.0) * eta)
    return self.distance.step(self._gradients(point), self.state.center, scales)

  def _passes_check(self, second: ProximalPoint) -> bool:
    """Returns whether the inequality in the docstring of the module holds for the second proximal step."""
    return float(second.values.sum()) <= self._payoff_sum + self._tolerance

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(0 < state["eta"] < math.inf, "eta is positive")
