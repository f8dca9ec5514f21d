"""Optimistic mirror descent over a player's strategies in sequence form, with a dilated distance.

With g^t the player's gradient against the others' strategies in x^t, D the distance and eta the step,

    z^{t+1} = argmax over x of  eta <g^t, x> - D(x, z^t)
    x^{t+1} = argmax over x of  eta <g^t, x> - D(x, z^{t+1})

With the entropy, this is dilated optimistic multiplicative weights (DOMWU). With the Euclidean distance, it is dilated
optimistic gradient descent (DOGDA). For small steps the average has a gap of O(1 / T). The last iterate converges too,
linearly in many games: Lee, Kroer and Luo, "Last-iterate Convergence in Extensive-Form Games" (2021).
"""

import dataclasses

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.gradient_solver import AveragedState, GradientSolver
from spiel_cfr.first_order.distances import DilatedDistance, DistanceWeights
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.regularizers import Regularizer


@dataclasses.dataclass(kw_only=True)
class MirrorDescentState(AveragedState):
  """The state of optimistic mirror descent.

  Attributes:
    center: float64 (sequences,). z in the form of `ProximalPoint.center`.
  """

  center: Float64s


class OptimisticMirrorDescentSolver(GradientSolver[MirrorDescentState]):
  """Optimistic mirror descent with a dilated distance for any number of players, who update simultaneously.

  Attributes:
    step: float. eta times the coupling.
    distance: the dilated distance on each player's strategies.
  """

  @typed
  def __init__(
    self,
    game: AnyGame,
    step: float = 0.5,
    regularizer: Regularizer = "entropy",
    weights: DistanceWeights = "farina2021",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or an argument of `compile_game`.
      step: eta times the coupling, so that the iterates do not depend on the unit of payoffs.
      regularizer: "entropy" or "euclidean".
      weights: "kroer2017", "farina2021" or "one".

    Raises:
      ArgumentError: the step is not positive, or `regularizer` or `weights` is unknown.
      GameError: see `compile_game`.
    """
    self.step = arguments.positive_number(step, "step")
    super().__init__(game)
    self.distance = DilatedDistance(self.compiled_game, regularizer, weights)
    self.reset()

  def _first_state(self) -> MirrorDescentState:
    return MirrorDescentState(
      point=self._uniform(),
      cumulative=np.zeros(self.compiled_game.end),
      center=self.distance.uniform.copy(),
    )

  def _iterate(self, state: MirrorDescentState) -> Float64s:
    gradients, scale = self._gradients(state.point), self.coupling / self.step
    next_center = self.distance.step(gradients, state.center, scale)
    next_point = self.distance.step(gradients, next_center.center, scale)
    state.cumulative += state.point
    state.center, state.point = next_center.center, next_point.point
    return next_point.values
