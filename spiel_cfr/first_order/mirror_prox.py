"""Mirror prox: two proximal steps an iteration, the second with the gradient at the result of the first.

Let F be the players' gradients, D a distance in which player p has weight 1 / (2 O_p), O_p the diameter, eta the step:

    w = argmax  eta <F(z), x> - D(x, z),      z' = argmax  eta <F(w), x> - D(x, z)

The average of the w, with weights eta, has NashConv <= 1 / (sum of eta), a rate of 1 / T, as long as

    eta <F(w), z' - w> <= D(z', z)

With L the coupling, eta = 1 / (2 L sqrt(O_0 O_1)) guarantees that. Both sides are known after z': the value at the root
of player p's second step is max <F_p, x_p> - D_p / eta, and <F_0, w_0> + <F_1, w_1> is the sum of the returns. The
adaptive steps are those of Nemirovski, "Prox-method with rate of convergence O(1/t) for variational inequalities"
(2004): if the inequality fails, the solver tries w = z', then a smaller eta.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr.cfr.gradient_solver import AveragedState, GradientSolver
from spiel_cfr.first_order.distances import DilatedDistance, Step, Weights
from spiel_cfr.first_order.saddle_points import payoff_sum
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.regularizers import Regularizer

# The factor of eta after a step without corrections, its divisor before another attempt, and the most attempts.
_LARGER, _SMALLER, _MOST_ATTEMPTS = 1.2, 2.0, 50


@dataclasses.dataclass(kw_only=True)
class MirrorProxState(AveragedState):
  """The state of mirror prox: `point` is z, and `cumulative` is the sum of eta w.

  Attributes:
    center: float64 (sequences,). z in the form of `Step.center`.
    eta: the first step that the next iteration tries.
  """

  center: Float64s
  eta: float


class MirrorProxSolver(GradientSolver[MirrorProxState]):
  """Mirror prox for constant-sum games of two players: NashConv of the average <= `bound` = O(1 / T).

  Steps are 1 / (2 L sqrt(O_0 O_1)). With `aggressive=True` they grow by a fifth as long as two proximal steps suffice.

  Attributes:
    aggressive: whether steps grow.
    distance: the distance on each player's strategies.
  """

  def __init__(
    self,
    game: AnyGame,
    aggressive: bool = False,
    regularizer: Regularizer = "entropy",
    weights: Weights = "farina2021",
  ) -> None:
    """Makes the solver; for arguments and errors see `ExcessiveGapSolver`."""
    self.aggressive = bool(aggressive)
    super().__init__(game)
    self._sum = payoff_sum(self.compiled_game, type(self).__name__)
    self.distance = DilatedDistance(self.compiled_game, regularizer, weights)
    self.reset()

  def _first_state(self) -> MirrorProxState:
    area = math.prod(diameter or 1.0 for diameter in self.distance.diameters.tolist())
    return MirrorProxState(
      point=self._uniform(),
      cumulative=np.zeros(self.compiled_game.end),
      center=self.distance.uniform.copy(),
      eta=1.0 / (2.0 * self.coupling * math.sqrt(area)),
    )

  @property
  def bound(self) -> float:
    """The upper bound of the average's NashConv: 1 / (sum of the steps); infinite before the first iteration."""
    steps = float(self.state.cumulative[0])
    return 1.0 / steps if steps else math.inf

  def _iterate(self, state: MirrorProxState) -> Float64s:
    eta, growth = state.eta, 1.0
    for attempt in range(_MOST_ATTEMPTS):
      eta = state.eta / _SMALLER**attempt
      leader = self._step_with_gradients_at(state.point, eta)
      following = self._step_with_gradients_at(leader.point, eta)
      if not self.aggressive:
        break
      if self._fits(following):
        growth = _LARGER
        break
      leader, following = following, self._step_with_gradients_at(following.point, eta)
      if self._fits(following):
        break
    state.cumulative += eta * leader.point
    state.center, state.point, state.eta = following.center, following.point, eta * growth
    return following.values

  def _step_with_gradients_at(self, point: Float64s, eta: float) -> Step:
    """Returns the step from z with the gradients at a point."""
    diameters = self.distance.diameters
    scales = 1.0 / (2.0 * np.where(diameters > 0.0, diameters, 1.0) * eta)
    return self.distance.step(self._gradients(point), self.state.center, scales)

  def _fits(self, following: Step) -> bool:
    """Returns whether the inequality in the docstring of the module holds."""
    return float(following.values.sum()) <= self._sum.total + self._sum.rounding

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(0 < state["eta"] < math.inf, "steps are positive")
