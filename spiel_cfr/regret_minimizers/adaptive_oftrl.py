"""Optimistic follow-the-regularized-leader with step sizes from the errors of its predictions.

At an infoset with n actions, let u^t be the counterfactual utilities of iteration t, m^t their prediction, m^1 = 0,
e^t = u^t - m^t, and w_t = t^power the weight of iteration t. Then

    S^t       = sum over s <= t of w_s^2 |e^s|^2
    V^t       = S^t + floor t^(2 power + 1/2)
    step^t    = scale sqrt(L / V^(t-1))
    x^t       = argmax over the simplex of  <x, sum over s < t of w_s u^s  +  w_t m^t> - R(x) / step^t;   x^1 uniform

where, with D the largest possible counterfactual utility of the infoset,

    regularizer   R                          L               |e|                            floor           scale
    entropy       sum x log x + log n        log n           (max e - min e) / 2            (delta D)^2     1
    euclidean     (||x||_2^2 - 1/n) / 2      (1 - 1/n) / 2   ||e - mean of e||_2            n (delta D)^2   sqrt 2

L is the range of R. |e| is the dual, on differences of strategies, of the norm (l1 or l2) in which R is 1-strongly
convex. The iterates depend neither on the unit of the payoffs nor on a number of iterations.
docs/theory/stable_predictive.md has the guarantees, with proofs.

In a solver with restarts, the Bregman divergence of R from a center takes the place of R. The first center is uniform,
where the divergence is R plus a constant. A restart makes a strategy the center, and sums of utilities begin anew.
(Sums with that strategy as their argmax would not keep it: as steps shrink, it would tend to the uniform strategy.)
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
  lanes,
  sequence,
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

# The factor of sqrt(L / V) in the step.
SCALES: dict[Regularizer, float] = {"entropy": 1.0, "euclidean": math.sqrt(2.0)}
# Lines of `Block.scratch`.
_SQUARES, _STEPS = 0, 1
# The line of `Block.action_state` in solvers with restarts: the gradient of R at the center.
_CENTERS = 2
# Lines of `Block.infoset_state`: S, the floor, and scale^2 L.
_ERRORS, _FLOORS, _RANGES = 0, 1, 2
# Columns of `Block.parameters` after the tie tolerance: w_t, w_(t+1), t^(2 power + 1/2), the regularizer.
_WEIGHT, _NEXT_WEIGHT, _GROWTH, _EUCLIDEAN = 1, 2, 3, 4


@block_kernel
def add_errors(block: Block) -> None:
  """S += (w |utility - prediction|)^2;  regret += w (utility - value)."""
  regret, predicted = block.action_state[0], block.action_state[1]
  weight, euclidean = full(block.parameters[_WEIGHT]), block.parameters[_EUCLIDEAN] != 0.0
  half, share = full(0.5), full(1.0 / block.actions)
  for i in lanes(block):
    value = expected_value(block, i)
    high, low, mean = full(-np.inf), full(np.inf), full(0.0)
    for action in range(block.actions):
      row = sequence(block, action, i)
      utility = load(block.utility, row)
      error = utility - load(predicted, row)
      high = where_greater(error, high, error, high)
      low = where_greater(error, low, low, error)
      mean = mean + error * share
      store(regret, row, load(regret, row) + weight * (utility - value))
    norm = (high - low) * half
    square = norm * norm
    if euclidean:
      square = full(0.0)
      for action in range(block.actions):
        row = sequence(block, action, i)
        error = load(block.utility, row) - load(predicted, row) - mean
        square = square + error * error
    store(block.scratch[_SQUARES], i, square)
  squared_weight = block.parameters[_WEIGHT] * block.parameters[_WEIGHT]
  for i in range(block.size):
    block.infoset_state[_ERRORS, block.infoset + i] += squared_weight * block.scratch[_SQUARES, i]


@block_kernel
def choose_and_keep(block: Block) -> None:
  """Strategy = argmax of <x, regret + w prediction> - R(x) / step; keeps the prediction."""
  steps, predicted = block.scratch[_STEPS], block.action_state[1]
  for i in range(block.size):
    infoset = block.infoset + i
    errors = (
      block.infoset_state[_ERRORS, infoset]
      + block.infoset_state[_FLOORS, infoset] * block.parameters[_GROWTH]
    )
    # Without errors and floor all utilities are 0.
    steps[i] = np.sqrt(block.infoset_state[_RANGES, infoset] / errors) if errors > 0.0 else 0.0
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      predicted[first + i] = block.utility[first + i]
  weight, euclidean = block.parameters[_NEXT_WEIGHT], block.parameters[_EUCLIDEAN] != 0.0
  centered = block.action_state.shape[0] > np.uint64(_CENTERS)
  play_regularized_leader(block, block.value, steps, 1.0, weight, euclidean, centered)


@block_kernel
def resume_at_center(block: Block) -> None:
  """Center = strategy;  regret = 0. The errors so far stay, and with them the step sizes."""
  regret, centers = block.action_state[0], block.action_state[_CENTERS]
  least, euclidean = least_exponent(block), block.parameters[_EUCLIDEAN] != 0.0
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      row = first + i
      centers[row] = gradient_at(block.strategy[row], euclidean, least)
      regret[row] = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptiveOFTRL(RegretMinimizer):
  """Optimistic follow-the-regularized-leader with adaptive steps.

  Its state is the cumulative weighted regret and the prediction, and for each infoset S, the floor and scale^2 L.

  Attributes:
    loss_bounds: float64 (infosets,). D of each infoset of all players.
    delta: the size of the floor relative to D, positive.
    power: the power of t in the weight of iteration t, not negative.
    regularizer: "entropy" or "euclidean".
    centered: whether it keeps a center, which is needed to go on from a given strategy.
  """

  loss_bounds: Float64s
  delta: float
  power: float = 1.0
  regularizer: Regularizer = "entropy"
  centered: bool = False
  observe = add_errors
  predict = choose_and_keep
  infoset_lines = 3

  def __post_init__(self) -> None:
    arguments.positive_number(self.delta, "delta")
    arguments.real_number(self.power, "power", 0.0, 100.0)

  @property
  def resume(self) -> StepKernel | None:
    return resume_at_center if self.centered else None

  @property
  def action_lines(self) -> int:
    return 3 if self.centered else 2

  @property
  def warm_forms(self) -> tuple[WarmForm, ...]:
    """No forms: without errors the step sizes are unknown."""
    return ()

  def resumable(self) -> RegretMinimizer:
    return dataclasses.replace(self, centered=True)

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns rows of the tie tolerance, w_t, w_(t+1), t^(2 power + 1/2) and the regularizer."""
    now, euclidean = np.asarray(iterations, np.float64), float(self.regularizer == "euclidean")
    weights, growth = (now**self.power, (now + 1.0) ** self.power), now ** (2.0 * self.power + 0.5)
    return parameter_rows(iterations, game, *weights, growth, euclidean)

  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    """Returns S = 0, the floors, and scale^2 L; shape (3, infosets)."""
    actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
    floors = error_floors(self.regularizer, self.loss_bounds, actions, self.delta)
    ranges = SCALES[self.regularizer] ** 2 * regularizer_range(self.regularizer, actions)
    return np.stack([np.zeros(len(actions)), floors, ranges])


def error_floors(
  regularizer: Regularizer, loss_bounds: Float64s, actions: Int64s, delta: float
) -> Float64s:
  """Returns the floors of infosets, given D and the numbers of actions; all of shape (infosets,)."""
  squares = (delta * loss_bounds) ** 2
  return squares if regularizer == "entropy" else squares * actions
