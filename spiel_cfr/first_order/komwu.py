"""Kernelized optimistic multiplicative weights: the weights of all pure strategies, without listing them.

Optimistic multiplicative weights over the pure strategies pi of a player, of which there are exponentially many, plays

    lambda^{t+1}(pi) proportional to  exp(eta <sum of g^s for s <= t, plus g^t once more, pi>)

A pure strategy's weight is a product over its sequences, so that the total weight of all strategies of a subtree is a
sum over actions of products over what follows, and one pass over the treeplex plays the average of them all. It is the
pass of a proximal step with the entropy, all weights 1, from a center whose numbers are all 1 instead of 1 / n.
Farina, Lee, Luo and Kroer, "Kernelized Multiplicative Weights for 0/1-Polyhedral Games" (2022).
"""

from typing import ClassVar

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.first_order.distances import DilatedDistance
from spiel_cfr.first_order.first_order_solver import FirstOrderSolver
from spiel_cfr.games.compiling import AnyGame


class KOMWUSolver(FirstOrderSolver):
  """Kernelized optimistic multiplicative weights, all players at once, for any number of players.

  It begins with the uniform mixture of pure strategies, which plays an action the more often, the more pure strategies
  follow it.

  Attributes:
    step: eta times the coupling.
  """

  state_names: ClassVar[tuple[str, ...]] = (
    *FirstOrderSolver.state_names,
    "_cumulative",
    "_utilities",
  )

  def __init__(self, game: AnyGame, step: float = 0.5) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      step: eta times the coupling, so that the unit of payoffs does not matter.

    Raises:
      ArgumentError: the step is not positive.
      GameError: see `compile_game`.
    """
    self.step = arguments.positive_number(step, "step")
    super().__init__(game)
    self._distance = DilatedDistance(self.compiled_game, "entropy", "one")
    self._start()

  def _start(self) -> None:
    super()._start()
    end = self.compiled_game.end
    self._cumulative, self._utilities = np.zeros(end), np.zeros(end)
    self._point = self._mixture(np.zeros(end))

  def _mixture(self, utilities: Float64s) -> Float64s:
    """Returns the average of all pure strategies, each weighed by exp(eta <utilities, pi>)."""
    step = self._distance.step(utilities, np.zeros(len(utilities)), self.coupling / self.step)
    self._values = step.values
    return step.point

  def _iterate(self) -> None:
    gradients = self._gradients(self._point)
    utilities = self._utilities + gradients
    following = self._mixture(utilities + gradients)
    self._cumulative += self._point
    self._utilities, self._point = utilities, following
    self.iteration += 1

  def _sums(self) -> Float64s:
    # Before any iteration, the first iterate.
    return self._cumulative if self._cumulative[0] else self._point
