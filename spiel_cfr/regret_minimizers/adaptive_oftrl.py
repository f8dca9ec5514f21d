"""Optimistic follow-the-regularized-leader (OFTRL) with step sizes from the errors of its predictions.

At an infoset with n actions, let u^t be the counterfactual utilities of iteration t, m^t their prediction with m^1 = 0,
e^t = u^t - m^t the error, and w_t = t^power the weight of iteration t. Then

    S^t       = sum over s <= t of w_s^2 |e^s|^2
    V^t       = S^t + floor t^(2 power + 1/2)
    step^t    = scale sqrt(L / V^(t-1))
    x^t       = argmax over the simplex of  <x, sum over s < t of w_s u^s  +  w_t m^t> - R(x) / step^t;   x^1 uniform

Let D be the largest possible counterfactual utility of the infoset. The other letters depend on the regularizer:

    regularizer   R                          L               |e|                            floor           scale
    entropy       sum x log x + log n        log n           (max e - min e) / 2            (delta D)^2     1
    euclidean     (||x||_2^2 - 1/n) / 2      (1 - 1/n) / 2   ||e - mean of e||_2            n (delta D)^2   sqrt 2

L is the range of R. R is 1-strongly convex in a norm, l1 or l2, and |e| is the dual of this norm on differences of
strategies. The iterates depend neither on the unit of the payoffs nor on the length of the run.
docs/theory/stable_predictive.md has the guarantees, with proofs.

In a solver with restarts, the Bregman divergence of R from a center replaces R. The first center is the uniform
strategy, from which the divergence is R plus a constant. A restart makes the strategy to play the new center, and
begins the sum of utilities anew. (It would be simpler to set the sum so that the strategy is its argmax. But as steps
shrink, the argmax of such a sum tends to the uniform strategy.)
"""

import dataclasses
import math

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  sequence,
  vector_starts,
)
from spiel_cfr.regret_minimizers.regret_minimizer import (
  RegretMinimizer,
  WarmForm,
  parameter_rows,
)
from spiel_cfr.regret_minimizers.regularizers import (
  Regularizer,
  gradient_at,
  least_exponent,
  play_regularized_leader,
  regularizer_range,
)

# `scale` of the module's docstring: the factor of sqrt(L / V) in the step.
SCALES: dict[Regularizer, float] = {"entropy": 1.0, "euclidean": math.sqrt(2.0)}
# Lines of `Block.scratch`.
_SQUARES, _STEPS = 0, 1
# Lines of `Block.action_state`: the cumulative weighted regret, the prediction, and, in solvers with restarts, the
# gradient of R at the center.
_REGRETS, _PREDICTIONS, _CENTERS = 0, 1, 2
# Lines of `Block.infoset_state`: S, the floor, and scale^2 L.
_ERRORS, _FLOORS, _RANGES = 0, 1, 2
# Columns of `Block.parameters` after the tie tolerance: w_t, w_(t+1), t^(2 power + 1/2), the regularizer.
_WEIGHT, _NEXT_WEIGHT, _GROWTH, _EUCLIDEAN = range(1, 5)


@block_kernel
def observe_adaptive_oftrl(block: Block) -> None:
  """Adds errors and regrets: S += (w_t |utility - prediction|)^2;  regret += w_t (utility - value)."""
  regret, predicted = block.action_state[_REGRETS], block.action_state[_PREDICTIONS]
  weight, euclidean = full(block.parameters[_WEIGHT]), block.parameters[_EUCLIDEAN] != 0.0
  half, share = full(0.5), full(1.0 / block.actions)
  for i in vector_starts(block):
    value = expected_value(block, i)
    high, low, mean = full(-np.inf), full(np.inf), full(0.0)
    for action in range(block.actions):
      at = sequence(block, action, i)
      utility = load(block.utility, at)
      error = utility - load(predicted, at)
      high = where_greater(error, high, error, high)
      low = where_greater(error, low, low, error)
      mean = mean + error * share
      store(regret, at, load(regret, at) + weight * (utility - value))
    norm = (high - low) * half
    square = norm * norm
    if euclidean:
      square = full(0.0)
      for action in range(block.actions):
        at = sequence(block, action, i)
        error = load(block.utility, at) - load(predicted, at) - mean
        square = square + error * error
    store(block.scratch[_SQUARES], i, square)
  squared_weight = block.parameters[_WEIGHT] * block.parameters[_WEIGHT]
  for i in range(block.size):
    block.infoset_state[_ERRORS, block.infoset + i] += squared_weight * block.scratch[_SQUARES, i]


@block_kernel
def predict_adaptive_oftrl(block: Block) -> None:
  """Chooses the strategy: argmax of <x, regret + w_(t+1) utility> - R(x) / step;  prediction = utility."""
  steps, predicted = block.scratch[_STEPS], block.action_state[_PREDICTIONS]
  for i in range(block.size):
    infoset = block.infoset + i
    error_total = (
      block.infoset_state[_ERRORS, infoset]
      + block.infoset_state[_FLOORS, infoset] * block.parameters[_GROWTH]
    )
    # V = 0 means that all utilities are 0.
    if error_total > 0.0:
      steps[i] = np.sqrt(block.infoset_state[_RANGES, infoset] / error_total)
    else:
      steps[i] = 0.0
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      predicted[first + i] = block.utility[first + i]
  weight, euclidean = block.parameters[_NEXT_WEIGHT], block.parameters[_EUCLIDEAN] != 0.0
  centered = block.action_state.shape[0] > np.uint64(_CENTERS)
  play_regularized_leader(block, block.value, steps, 1.0, weight, euclidean, centered)


@block_kernel
def resume_adaptive_oftrl(block: Block) -> None:
  """Begins anew from the strategy: center = strategy;  regret = 0. S stays, and with it the step sizes."""
  regret, centers = block.action_state[_REGRETS], block.action_state[_CENTERS]
  least, euclidean = least_exponent(block), block.parameters[_EUCLIDEAN] != 0.0
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      at = first + i
      centers[at] = gradient_at(block.strategy[at], euclidean, least)
      regret[at] = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptiveOFTRL(RegretMinimizer):
  """Optimistic follow-the-regularized-leader with adaptive steps.

  The state of an action is its cumulative weighted regret and its prediction; with centers, also the gradient of R at
  the center. The state of an infoset is S, the floor and scale^2 L.

  Attributes:
    loss_bounds: float64 (infosets of all players,). D, the largest possible counterfactual utilities.
    delta: the size of the floor relative to D, positive.
    power: the power of t in the weight of iteration t, not negative.
    regularizer: "entropy" or "euclidean".
    centered: bool. True if infosets have centers, which restarts need.
  """

  loss_bounds: Float64s
  delta: float
  power: float = 1.0
  regularizer: Regularizer = "entropy"
  centered: bool = False
  observe = observe_adaptive_oftrl
  predict = predict_adaptive_oftrl
  infoset_lines = 3

  def __post_init__(self) -> None:
    arguments.positive_number(self.delta, "delta")
    arguments.real_number(self.power, "power", 0.0, 100.0)

  @property
  def resume(self) -> StepKernel | None:
    return resume_adaptive_oftrl if self.centered else None

  @property
  def action_lines(self) -> int:
    return 3 if self.centered else 2

  @property
  def warm_forms(self) -> tuple[WarmForm, ...]:
    """No forms: step sizes depend on errors of predictions, which a warm start does not have."""
    return ()

  def resumable(self) -> RegretMinimizer:
    return dataclasses.replace(self, centered=True)

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the tie tolerance, w_t, w_(t+1), t^(2 power + 1/2) and the regularizer."""
    t, power = np.asarray(iterations, np.float64), self.power
    return parameter_rows(
      iterations,
      game,
      t**power,
      (t + 1.0) ** power,
      t ** (2.0 * power + 0.5),
      float(self.regularizer == "euclidean"),
    )

  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    """Returns S = 0, the floor and scale^2 L of each infoset, shape (3, infosets)."""
    actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
    floors = error_floors(self.regularizer, self.loss_bounds, actions, self.delta)
    ranges = SCALES[self.regularizer] ** 2 * regularizer_range(self.regularizer, actions)
    return np.stack([np.zeros(len(actions)), floors, ranges])


def error_floors(
  regularizer: Regularizer, loss_bounds: Float64s, actions: Int64s, delta: float
) -> Float64s:
  """Returns the floor of each infoset; arguments and result have the shape (infosets,).

  Args:
    regularizer: "entropy" or "euclidean".
    loss_bounds: D, the largest possible counterfactual utilities.
    actions: the numbers of actions.
    delta: the size of the floor relative to D.
  """
  squares = (delta * loss_bounds) ** 2
  return squares if regularizer == "entropy" else squares * actions
