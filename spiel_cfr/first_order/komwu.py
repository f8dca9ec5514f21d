"""Kernelized optimistic multiplicative weights (KOMWU): multiplicative weights over all pure strategies of a player.

A player has exponentially many pure strategies pi. With g^s the player's gradient in iteration s and eta the step,
optimistic multiplicative weights gives them the probabilities

    lambda^{t+1}(pi) proportional to  exp(eta <sum of g^s for s <= t, plus g^t once more, pi>)

The weight of a pure strategy is a product over its sequences. So the total weight of the strategies of a subtree is a
sum over actions of products over the infosets that follow. One pass over the treeplex computes the average of all pure
strategies. It is the pass of a proximal step with the entropy and weights 1, from a center of ones instead of 1 / n.
Farina, Lee, Luo and Kroer, "Kernelized Multiplicative Weights for 0/1-Polyhedral Games" (2022).
"""

import dataclasses

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.gradient_solver import AveragedState, GradientSolver
from spiel_cfr.first_order.distances import DilatedDistance, ProximalPoint
from spiel_cfr.games.compiling import AnyGame


@dataclasses.dataclass(kw_only=True)
class KOMWUState(AveragedState):
  """The state of kernelized optimistic multiplicative weights.

  Attributes:
    utilities: float64 (sequences,). The sum of each player's gradients so far.
  """

  utilities: Float64s


class KOMWUSolver(GradientSolver[KOMWUState]):
  """Kernelized optimistic multiplicative weights for any number of players, who update simultaneously.

  The first strategy is the uniform mixture of pure strategies. It plays actions that more pure strategies continue with
  a higher probability.

  Attributes:
    step: float. eta times the coupling.
  """

  @typed
  def __init__(self, game: AnyGame, step: float = 0.5) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or an argument of `compile_game`.
      step: eta times the coupling, so that the iterates do not depend on the unit of payoffs.

    Raises:
      ArgumentError: `step` is not positive.
      GameError: see `compile_game`.
    """
    self.step = arguments.positive_number(step, "step")
    super().__init__(game)
    self._distance = DilatedDistance(self.compiled_game, "entropy", "one")
    self.reset()

  def _first_state(self) -> KOMWUState:
    cumulative, utilities = np.zeros((2, self.compiled_game.end))
    return KOMWUState(
      point=self._mixture(utilities).point, cumulative=cumulative, utilities=utilities
    )

  def _mixture(self, utilities: Float64s) -> ProximalPoint:
    """Returns the average of all pure strategies pi, with weights exp(eta <utilities, pi>)."""
    return self._distance.step(utilities, np.zeros(len(utilities)), self.coupling / self.step)

  def _iterate(self, state: KOMWUState) -> Float64s:
    gradients = self._gradients(state.point)
    state.utilities += gradients
    next_mixture = self._mixture(state.utilities + gradients)
    state.cumulative += state.point
    state.point = next_mixture.point
    return next_mixture.values
