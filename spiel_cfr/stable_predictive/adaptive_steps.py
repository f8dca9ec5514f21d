"""Adaptive step sizes of stable-predictive CFR, and the bounds of their theorem before and after a run.

The step of an infoset depends on the errors of its predictions so far: step^t = scale sqrt(L / V^(t-1)), with V^t = S^t
+ floor t^(2 power + 1/2) and S^t the weighted sum of squared errors. `regret_minimizers.adaptive_oftrl` defines them.
Errors are measured in |.|, the dual of the norm in which the regularizer is 1-strongly convex:

    regularizer   norm   L, range of the    d, diameter of the     largest |e| if the
                         regularizer        simplex in the norm    entries of e are within D
    entropy       l1     log n              2                      D
    euclidean     l2     (1 - 1/n) / 2      sqrt 2                 sqrt(n) D

D bounds the counterfactual utilities of the infoset, and n is its number of actions. docs/theory/stable_predictive.md
has the theorem and its proof. Numbers such as (ii) refer to it; it calls `scale` c, `power` q and `norm_factor` sigma.
"""

import dataclasses
import math

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.regret_minimizers.adaptive_oftrl import SCALES, AdaptiveOFTRL, error_floors
from spiel_cfr.regret_minimizers.regularizers import Regularizer, regularizer_range
from spiel_cfr.stable_predictive.regret_composition import infosets_of, largest_plan_sum

_ALL_INFOSETS = slice(None)


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptiveSteps:
  """Constants of adaptive steps for a game. Arrays have one entry for each infoset of all players.

  Attributes:
    game: the game.
    regularizer: "entropy" or "euclidean".
    power: the power of t in the weight t^power of iteration t.
    delta: the size of the floor, relative to D.
    scale: the factor of the steps.
    simplex_diameter: d, the largest distance of two local strategies.
    loss_norm: float64 (infosets,). D, a bound on the counterfactual utilities.
    norm_factor: float64 (infosets,). n for the Euclidean regularizer, 1 for the entropy. The squared dual norm of
      utilities is at most norm_factor * D^2.
    regularizer_range: float64 (infosets,). L, the range of the regularizer on the infoset's simplex.
    floor: float64 (infosets,). The floor of V is floor * t^(2 power + 1/2), with floor = norm_factor (delta D)^2.
    regret_factor: float64 (infosets,). K of the theorem: the local regret is at most K sqrt(V).
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
    """Returns the regret minimizer with these steps."""
    return AdaptiveOFTRL(self.loss_norm, self.delta, self.power, self.regularizer)

  def error_totals(
    self, squared_errors: Float64s, iteration: int, infosets: slice = _ALL_INFOSETS
  ) -> Float64s:
    """Returns V^t of a slice of infosets after an iteration, given S^t, their weighted sums of squared errors."""
    growth = float(iteration) ** (2 * self.power + 0.5)
    return np.asarray(squared_errors + self.floor[infosets] * growth)

  def steps_after(self, error_totals: Float64s, infosets: slice = _ALL_INFOSETS) -> Float64s:
    """Returns the steps of a slice of infosets in the next iteration, given V^t; 0 where V^t is 0."""
    ranges = self.regularizer_range[infosets]
    ratio = np.divide(ranges, error_totals, out=np.zeros(len(ranges)), where=error_totals > 0)
    return np.asarray(self.scale * np.sqrt(ratio))

  def largest_error_totals(self, iteration: int) -> Float64s:
    """Returns the bound (ii) on V^T of each infoset, which holds for any utilities.

    norm_factor D^2 (4 sum of t^(2 power) + delta^2 T^(2 power + 1/2))
    """
    squared_weights = np.arange(1.0, iteration + 1.0) ** (2 * self.power)
    growth = float(iteration) ** (2 * self.power + 0.5)
    return np.asarray(
      self.norm_factor * self.loss_norm**2 * (4 * squared_weights.sum() + self.delta**2 * growth)
    )

  def settled_error_totals(self, iteration: int) -> Float64s:
    """Returns the bound (iii) on V^T of each infoset: O(T^(2 power + 1/2)), as strategies move ever more slowly.

        norm_factor D^2 (1 + delta^2 T^(2 power + 1/2)
                    + N^2 (4 * 4^power + 2 A L* T^(2 power + 1/2) / delta^2 + B L* T^(2 power) (1 + ln T)))

    N is the number of levels of the other players' decisions, L* the largest norm_factor * L of their infosets.
    """
    game, total, power = self.game, float(iteration), self.power
    growth = total ** (2 * power + 0.5)
    factor_a, factor_b = self._movement_factors
    result = np.zeros(game.num_infosets)
    for player, tree in enumerate(game.treeplexes):
      others = [other for number, other in enumerate(game.treeplexes) if number != player]
      levels = sum(other.depth for other in others)
      largest_range = max(self._largest_range(other) for other in others)
      movement = (
        4.0 * 4.0**power
        + 2 * factor_a * largest_range * growth / self.delta**2
        + factor_b * largest_range * total ** (2 * power) * (1 + math.log(total))
      )
      result[infosets_of(tree)] = 1 + self.delta**2 * growth + levels**2 * movement
    return np.asarray(self.norm_factor * self.loss_norm**2 * result)

  def _largest_range(self, tree: Treeplex) -> float:
    """Returns L*, the largest norm_factor * L of a player's infosets."""
    ranges = self.norm_factor * self.regularizer_range
    return float(ranges[infosets_of(tree)].max(initial=0.0))

  @property
  def _movement_factors(self) -> tuple[float, float]:
    """A and B of the theorem, which bound the movement of a local strategy.

    With s = t - 1 >= 1, ||x^(t+1) - x^t||_1^2 <= norm_factor L (A / (delta^2 sqrt s) + B / s).
    """
    power = self.power
    utilities = 2 * 2.0**power + 3.0**power
    growth = 0.25 if power == 0 else (2.0 ** (2 * power + 0.5) - 1) / 2
    return 2 * (self.scale**2 * utilities**2 + 2 * 4.0**power), 2 * growth

  def guarantee(self, iterations: int, alternating: bool) -> float:
    """Returns a bound on the sum of all players' regrets divided by the sum of the weights, known before the run.

    Args:
      iterations: the number of iterations.
      alternating: whether two players update in turn. The bound then includes the losses by the first player's updates.
    """
    totals = np.minimum(
      self.largest_error_totals(iterations), self.settled_error_totals(iterations)
    )
    local_regrets = self.regret_factor * np.sqrt(totals)
    weights = np.arange(1.0, iterations + 1.0) ** self.power
    trees = self.game.treeplexes
    regrets = sum(largest_plan_sum(tree, local_regrets[infosets_of(tree)]) for tree in trees)
    losses = self._update_losses(iterations) if alternating else 0.0
    return float((regrets + losses) / weights.sum())

  def _update_losses(self, iterations: int) -> float:
    """Returns a bound on the sum of w_t <u^t, x^t - x^(t+1)> of the first of two players that update in turn.

    By (4), the loss of iteration t is at most the largest sum of D sqrt(norm_factor L) along a pure plan, times a
    number that depends on t alone. It is also at most w_t times the range of the payoffs.
    """
    first, second = self.game.treeplexes
    root_terms = self.loss_norm * np.sqrt(self.norm_factor * self.regularizer_range)
    largest_sum = largest_plan_sum(first, root_terms[infosets_of(first)])
    low, high = self.game.payoff_range
    t = np.arange(2.0, iterations + 1.0)
    later_losses = largest_sum * self._relative_update_losses(t, second)
    return float(
      min(largest_sum * self.scale / 4, high - low)
      + np.minimum(later_losses, t**self.power * (high - low)).sum()
    )

  def _relative_update_losses(self, t: Float64s, opponent: Treeplex) -> Float64s:
    """Returns the loss (4) of an update in each iteration t >= 2, in units of reach * D sqrt(norm_factor L).

    |e^t| is at most sqrt(norm_factor) D M^t by (1). M^t, the movement of the opponent, is bounded as in (iii), and V^t
    by its floor from below.
    """
    factor_a, factor_b = self._movement_factors
    largest_range = self._largest_range(opponent)
    since = np.maximum(t - 2, 1)
    movement = largest_range * (factor_a / (self.delta**2 * np.sqrt(since)) + factor_b / since)
    movement = opponent.depth**2 * np.where(t == 2, 4.0, np.minimum(movement, 4.0))
    squared_errors = t ** (2 * self.power) * movement
    power = 2 * self.power + 0.5
    growth = squared_errors + self.delta**2 * (t**power - (t - 1) ** power)
    losses = self.scale * squared_errors / 4 + growth / (2 * self.scale)
    losses *= (t / (t + 1)) ** self.power / (self.delta * (t - 1) ** (self.power + 0.25))
    return np.asarray(losses)


def adaptive_steps(
  game: CompiledGame, regularizer: Regularizer, delta: float, power: float
) -> AdaptiveSteps:
  """Returns the constants of adaptive steps for a game; see `AdaptiveSteps` for the arguments."""
  actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
  is_entropy = regularizer == "entropy"
  scale, diameter = SCALES[regularizer], 2.0 if is_entropy else math.sqrt(2.0)
  ranges = regularizer_range(regularizer, actions)
  root = np.sqrt(ranges)
  return AdaptiveSteps(
    game=game,
    regularizer=regularizer,
    power=power,
    delta=delta,
    scale=scale,
    simplex_diameter=diameter,
    loss_norm=game.loss_bounds,
    norm_factor=np.ones(len(actions)) if is_entropy else actions.astype(np.float64),
    regularizer_range=ranges,
    floor=error_floors(regularizer, game.loss_bounds, actions, delta),
    regret_factor=root / scale
    + (scale * root + np.sqrt((scale * root) ** 2 + 4 * diameter**2)) / 2,
  )
