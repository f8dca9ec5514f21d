"""Adaptive steps of stable-predictive CFR, and their bounds before and after a run.

Step sizes depend on the run: step^t = scale sqrt(L / V^(t-1)), V^t = S^t + floor t^(2 power + 1/2), with S^t the sum of
the squared errors of predictions so far; see `regret_minimizers.adaptive_oftrl`. Errors are measured in |.|, the dual
of the norm in which the regularizer is 1-strongly convex. L is its range, d the diameter of the simplex in that norm,
and D a bound on counterfactual utilities. docs/theory/stable_predictive.md has the proofs and numbers of the bounds.

    regularizer   norm   L               d        dual norm of entries within D
    entropy       l1     log n           2        D
    euclidean     l2     (1 - 1/n) / 2   sqrt 2   sqrt(n) D
"""

import dataclasses
import math

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.adaptive_oftrl import SCALES, AdaptiveOFTRL, error_floors
from spiel_cfr.regret_minimizers.regularizers import Regularizer, regularizer_range
from spiel_cfr.stable_predictive.paper_steps import infosets_of, largest_sum

_EVERY = slice(None)


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptiveSteps:
  """The constants of adaptive steps. Arrays have the shape (infosets of all players,).

  Attributes:
    game: the game.
    regularizer: "entropy" or "euclidean".
    power: the power of t in the weight t^power of iteration t.
    delta: the size of the floor, relative to D.
    scale: the factor of the steps.
    simplex_diameter: d.
    loss_norm: float64 array. D.
    norm_factor: float64 array. n for the Euclidean regularizer, 1 for the entropy; squared dual norms are at most
      norm_factor * D^2.
    regularizer_range: float64 array. L.
    floor: float64 array. norm_factor (delta D)^2.
    regret_factor: float64 array. K: the regret of an infoset is at most K sqrt(V).
  """

  game: CompiledGame
  regularizer: Regularizer
  power: float
  delta: float
  scale: float
  simplex_diameter: float
  loss_norm: Float64s
  norm_factor: Float64s
  regularizer_range: Float64s
  floor: Float64s
  regret_factor: Float64s

  def minimizer(self) -> AdaptiveOFTRL:
    """Returns the minimizer with these steps."""
    return AdaptiveOFTRL(self.loss_norm, self.delta, self.power, self.regularizer)

  def squared_errors(self, squares: Float64s, iteration: int, infosets: slice = _EVERY) -> Float64s:
    """Returns V^t of some infosets, given their S^t."""
    return np.asarray(squares + self.floor[infosets] * float(iteration) ** (2 * self.power + 0.5))

  def steps_after(self, squared_errors: Float64s, infosets: slice = _EVERY) -> Float64s:
    """Returns the steps of the next iteration at some infosets, given their V^t; 0 where V^t is 0."""
    ranges = self.regularizer_range[infosets]
    ratio = np.divide(ranges, squared_errors, out=np.zeros(len(ranges)), where=squared_errors > 0)
    return np.asarray(self.scale * np.sqrt(ratio))

  def largest_errors(self, iteration: int) -> Float64s:
    """(ii): bounds V^T by norm_factor D^2 (4 sum of t^(2 power) + delta^2 T^(2 power + 1/2))."""
    weights = np.arange(1.0, iteration + 1.0) ** (2 * self.power)
    growth = float(iteration) ** (2 * self.power + 0.5)
    return np.asarray(
      self.norm_factor * self.loss_norm**2 * (4 * weights.sum() + self.delta**2 * growth)
    )

  def settled_errors(self, iteration: int) -> Float64s:
    """(iii): bounds V^T by O(T^(2 power + 1/2)), since strategies move more and more slowly.

        norm_factor D^2 (1 + delta^2 T^(2 power + 1/2)
                    + N^2 (4 * 4^power + 2 A L* T^(2 power + 1/2) / delta^2 + B L* T^(2 power) (1 + ln T)))

    N is the number of levels of the other players, L* their largest norm_factor * L.
    """
    game, total, power = self.game, float(iteration), self.power
    growth = total ** (2 * power + 0.5)
    change, drift = self._movement_constants
    result = np.zeros(game.num_infosets)
    for player, tree in enumerate(game.treeplexes):
      others = [other for number, other in enumerate(game.treeplexes) if number != player]
      levels = sum(other.depth for other in others)
      largest = max(
        float((self.norm_factor * self.regularizer_range)[infosets_of(other)].max(initial=0.0))
        for other in others
      )
      moved = (
        4.0 * 4.0**power
        + 2 * change * largest * growth / self.delta**2
        + drift * largest * total ** (2 * power) * (1 + math.log(total))
      )
      result[infosets_of(tree)] = 1 + self.delta**2 * growth + levels**2 * moved
    return np.asarray(self.norm_factor * self.loss_norm**2 * result)

  @property
  def _movement_constants(self) -> tuple[float, float]:
    """A and B: with s = t - 1 >= 1, ||x^(t+1) - x^t||_1^2 <= norm_factor L (A / (delta^2 sqrt s) + B / s)."""
    power = self.power
    terms = 2 * 2.0**power + 3.0**power
    growth = 0.25 if power == 0 else (2.0 ** (2 * power + 0.5) - 1) / 2
    return 2 * (self.scale**2 * terms**2 + 2 * 4.0**power), 2 * growth

  def guarantee(self, iterations: int, alternating: bool) -> float:
    """Bounds the sum of all regrets over the sum of the weights, before the run.

    With alternating updates of two players, the losses by the updates of the first are added.
    """
    errors = np.minimum(self.largest_errors(iterations), self.settled_errors(iterations))
    bounds = self.regret_factor * np.sqrt(errors)
    weights = np.arange(1.0, iterations + 1.0) ** self.power
    trees = self.game.treeplexes
    total = sum(largest_sum(tree, bounds[infosets_of(tree)]) for tree in trees)
    lost = self._update_losses(iterations) if alternating else 0.0
    return float((total + lost) / weights.sum())

  def _update_losses(self, iterations: int) -> float:
    """Bounds the sum of w_t <u^t, x^t - x^(t+1)> of the first of two players that update in turn.

    It is the largest sum of D sqrt(norm_factor L) along a pure plan times a sum over iterations, that of (4) with |e^t|
    <= sqrt(norm_factor) D M^t, M^t bounded as in (iii), and V^t >= floor t^(2 power + 1/2). No iteration loses more
    than the range of the payoffs.
    """
    change, drift = self._movement_constants
    first, second = self.game.treeplexes
    levels, theirs = second.depth, infosets_of(second)
    largest = float((self.norm_factor * self.regularizer_range)[theirs].max(initial=0.0))
    t = np.arange(2.0, iterations + 1.0)
    since = np.maximum(t - 2, 1)
    moved = largest * (change / (self.delta**2 * np.sqrt(since)) + drift / since)
    moved = levels**2 * np.where(t == 2, 4.0, np.minimum(moved, 4.0))
    squares = t ** (2 * self.power) * moved
    power = 2 * self.power + 0.5
    grown = squares + self.delta**2 * (t**power - (t - 1) ** power)
    losses = self.scale * squares / 4 + grown / (2 * self.scale)
    losses *= (t / (t + 1)) ** self.power / (self.delta * (t - 1) ** (self.power + 0.25))
    terms = self.loss_norm * np.sqrt(self.norm_factor * self.regularizer_range)
    total = largest_sum(first, terms[infosets_of(first)])
    low, high = self.game.payoff_range
    return float(
      min(total * self.scale / 4, high - low)
      + np.minimum(total * losses, t**self.power * (high - low)).sum()
    )


def adaptive_steps(
  game: CompiledGame, regularizer: Regularizer, delta: float, power: float
) -> AdaptiveSteps:
  """Returns the constants of adaptive steps; `AdaptiveSteps` explains the arguments."""
  actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
  entropy = regularizer == "entropy"
  floor = error_floors(regularizer, game.loss_bounds, actions, delta)
  ranges = regularizer_range(regularizer, actions)
  scale, root, diameter = SCALES[regularizer], np.sqrt(ranges), 2.0 if entropy else math.sqrt(2.0)
  return AdaptiveSteps(
    game=game,
    regularizer=regularizer,
    power=power,
    delta=delta,
    scale=scale,
    simplex_diameter=diameter,
    loss_norm=game.loss_bounds,
    norm_factor=np.ones(len(actions)) if entropy else actions.astype(np.float64),
    regularizer_range=ranges,
    floor=floor,
    regret_factor=root / scale
    + (scale * root + np.sqrt((scale * root) ** 2 + 4 * diameter**2)) / 2,
  )
