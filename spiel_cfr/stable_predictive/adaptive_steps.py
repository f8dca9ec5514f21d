"""Adaptive steps of stable-predictive CFR, and the bounds that hold for them.

Steps come from the run: step^t = scale sqrt(L / V^(t-1)), V^t = S^t + floor t^(2 power + 1/2), S^t the sum of the
squared errors of predictions so far; `regret_minimizers.adaptive_oftrl` takes them. With |.| the norm dual to that in
which the regularizer is 1-strongly convex, L its range, d the diameter of the simplex in that norm, and D a bound on
counterfactual utilities (docs/theory/stable_predictive.md has the proofs, and the numbers of the bounds):

    regularizer   norm   L               d
    entropy       l1     log n           2
    euclidean     l2     (1 - 1/n) / 2   sqrt 2
"""

import dataclasses
import math

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.adaptive_oftrl import SCALES, AdaptiveOFTRL, error_floors
from spiel_cfr.regret_minimizers.regularizers import Regularizer, regularizer_range

_EVERY = slice(None)


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptiveSteps:
  """What is known of every infoset under adaptive steps: arrays of shape (infosets of all players,).

  Attributes:
    regularizer: "entropy" or "euclidean".
    power: iteration t weighs t^power in regrets.
    delta: what the floor is made of.
    scale: the factor on steps.
    simplex_diameter: d.
    loss_norm: D.
    regularizer_range: L.
    floor: see above.
    regret_factor: K; an infoset's regret is at most K sqrt(V).
  """

  regularizer: Regularizer
  power: float
  delta: float
  scale: float
  simplex_diameter: float
  loss_norm: Float64s
  regularizer_range: Float64s
  floor: Float64s
  regret_factor: Float64s

  def minimizer(self) -> AdaptiveOFTRL:
    """Returns what plays with these steps."""
    return AdaptiveOFTRL(self.loss_norm, self.delta, self.power, self.regularizer)

  def squared_errors(self, squares: Float64s, iteration: int, own: slice = _EVERY) -> Float64s:
    """Returns V^t of some infosets, given their S^t."""
    return np.asarray(squares + self.floor[own] * float(iteration) ** (2 * self.power + 0.5))

  def steps_after(self, squared_errors: Float64s, own: slice = _EVERY) -> Float64s:
    """Returns the steps of the next iteration at some infosets, given their V^t; 0 where that is 0."""
    ranges = self.regularizer_range[own]
    ratio = np.divide(ranges, squared_errors, out=np.zeros(len(ranges)), where=squared_errors > 0)
    return np.asarray(self.scale * np.sqrt(ratio))


def adaptive_steps(
  game: CompiledGame, regularizer: Regularizer, delta: float, power: float
) -> AdaptiveSteps:
  """Returns the constants of adaptive steps; see `AdaptiveSteps` for the arguments."""
  actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
  entropy = regularizer == "entropy"
  floor = error_floors(regularizer, game.loss_bounds, actions, delta)
  ranges = regularizer_range(regularizer, actions)
  scale, root, diameter = SCALES[regularizer], np.sqrt(ranges), 2.0 if entropy else math.sqrt(2.0)
  return AdaptiveSteps(
    regularizer=regularizer,
    power=power,
    delta=delta,
    scale=scale,
    simplex_diameter=diameter,
    loss_norm=game.loss_bounds,
    regularizer_range=ranges,
    floor=floor,
    regret_factor=root / scale
    + (scale * root + np.sqrt((scale * root) ** 2 + 4 * diameter**2)) / 2,
  )
