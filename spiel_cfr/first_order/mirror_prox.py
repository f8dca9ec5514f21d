"""Mirror prox: two proximal steps an iteration, the second with the gradient at the first's result; a rate of 1 / T.

With F the players' gradients, D a distance that weighs player p's with 1 / (2 O_p), O_p the diameter, and eta the step,

    w = argmax  eta <F(z), x> - D(x, z),      z' = argmax  eta <F(w), x> - D(x, z)

and the average of the w, weighed by eta, has NashConv <= 1 / (sum of eta) as long as

    eta <F(w), z' - w> <= D(z', z)

which eta = 1 / (2 L sqrt(O_0 O_1)) guarantees, L the coupling. Both sides are known after z': what player p's second
step has left at its root is max <F_p, x_p> - D_p / eta, and <F_0, w_0> + <F_1, w_1> is what the returns sum to.
Nemirovski, "Prox-method with rate of convergence O(1/t) for variational inequalities" (2004), whose adaptive steps
these are: where the inequality fails, w = z' is tried once more, then a smaller eta.
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

# After a step that took no correction eta is multiplied by the one, before another attempt divided by the other.
_LARGER, _SMALLER, _MOST_ATTEMPTS = 1.2, 2.0, 50


@dataclasses.dataclass(kw_only=True)
class MirrorProxState(AveragedState):
  """All that changes from one iteration to the next. `point` is z, and `cumulative` sums eta w.

  Attributes:
    center: z as `Step.center` has it, shape (sequences,).
    eta: the step that the next iteration tries first.
  """

  center: Float64s
  eta: float


class MirrorProxSolver(GradientSolver[MirrorProxState]):
  """Mirror prox for constant-sum games of two players: NashConv of the average <= `bound` = O(1 / T).

  Steps stay 1 / (2 L sqrt(O_0 O_1)); `aggressive=True` lets them grow by a fifth while two proximal steps suffice.

  Attributes:
    aggressive: as given.
    distance: of each player's strategies.
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
    """Upper bound of the average's NashConv: 1 / (sum of the steps); infinite before the first iteration."""
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
    """Steps from z with the gradients at a point."""
    diameters = self.distance.diameters
    scales = 1.0 / (2.0 * np.where(diameters > 0.0, diameters, 1.0) * eta)
    return self.distance.step(self._gradients(point), self.state.center, scales)

  def _fits(self, following: Step) -> bool:
    """Whether the inequality holds."""
    return float(following.values.sum()) <= self._sum.total + self._sum.rounding

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(0 < state["eta"] < math.inf, "steps are positive")
