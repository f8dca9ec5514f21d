"""Adaptive optimistic mirror descent: step sizes from the errors of the predictions so far.

At an infoset, let u^t be the counterfactual utilities of iteration t. Let h^t be the predicted utilities of iteration t
+ 1: the gradient of iteration t, propagated up the tree with the next strategies of the infosets below. P subtracts the
mean over the actions. The run begins with h^0 = 0, V_0 = 0, and uniform z^1 = x^1:

    d_t     = (t - 1)^forgetting / ((t - 1)^forgetting + forgetting_offset)
    V_t     = d_t^2 V_{t-1} + ||P(u^t - h^{t-1})||^2
    step_t  = step / sqrt(V_t), or 0 while V_t is 0
    z^{t+1} = projection of z^t + step_t u^t on the simplex
    x^{t+1} = projection of z^{t+1} + prediction step_t h^t on the simplex

z is the center of mirror descent, and x the strategy to play. d_t is the part of old errors that is remembered. The
iterates depend neither on the unit of the payoffs nor on the length of the run.
"""

import dataclasses
import sys

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  sequence,
  tolerance,
  vector_starts,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, parameter_rows
from spiel_cfr.regret_minimizers.regularizers import project_shifted

# Columns of `Block.parameters` after the tie tolerance: d_t^2, `step`, and `prediction`.
_REMEMBERED, _FACTOR, _PREDICTION = range(1, 4)
# Lines of `Block.action_state`: z, and the last prediction.
_CENTER, _PREDICTIONS = 0, 1
# Lines of `Block.scratch`.
_STEPS, _SQUARES, _TOLERANCES = 0, 1, 2

# With a larger power, t - 1 would overflow in long runs.
_MOST_FORGETTING = 16.0


@inlined
def step_from(block: Block, center: AnyFloats, target: AnyFloats, rate: float) -> None:
  """Takes a step from a center in all infosets of a block: target = projection of center + rate / sqrt(V) * utility."""
  steps, tolerances = block.scratch[_STEPS], block.scratch[_TOLERANCES]
  for i in vector_starts(block):
    store(tolerances, i, tolerance(block, i))
  for i in range(block.size):
    root_error = np.sqrt(block.infoset_state[0, block.infoset + i])
    # Rounding errors must not set the scale of the steps.
    steps[i] = rate / root_error if root_error > tolerances[i] else 0.0
  for i in vector_starts(block):
    step, top = load(steps, i), full(-np.inf)
    for action in range(block.actions):
      at = sequence(block, action, i)
      score = load(center, at) + step * load(block.utility, at)
      store(target, at, score)
      top = where_greater(score, top, score, top)
    project_shifted(block, i, target, top)


@block_kernel
def observe_adaptive_descent(block: Block) -> None:
  """Updates V and z: V = d_t^2 V + ||P(utility - predicted)||^2;  z = projection of z + step_t * utility."""
  center, predicted = block.action_state[_CENTER], block.action_state[_PREDICTIONS]
  squares, share = block.scratch[_SQUARES], full(1.0 / block.actions)
  for i in vector_starts(block):
    expected_value(block, i)
    mean = square = full(0.0)
    for action in range(block.actions):
      at = sequence(block, action, i)
      mean = mean + (load(block.utility, at) - load(predicted, at))
    mean = mean * share
    for action in range(block.actions):
      at = sequence(block, action, i)
      error = load(block.utility, at) - load(predicted, at) - mean
      square = square + error * error
    store(squares, i, square)
  for i in range(block.size):
    infoset = block.infoset + i
    block.infoset_state[0, infoset] = (
      block.infoset_state[0, infoset] * block.parameters[_REMEMBERED] + squares[i]
    )
  step_from(block, center, center, block.parameters[_FACTOR])


@block_kernel
def predict_adaptive_descent(block: Block) -> None:
  """Chooses the next strategy: strategy = projection of z + prediction * step_t * utility;  predicted = utility."""
  center, predicted = block.action_state[_CENTER], block.action_state[_PREDICTIONS]
  rate = block.parameters[_FACTOR] * block.parameters[_PREDICTION]
  step_from(block, center, block.strategy, rate)
  for i in vector_starts(block):
    expected_value(block, i)
    for action in range(block.actions):
      at = sequence(block, action, i)
      store(predicted, at, load(block.utility, at))


@block_kernel
def resume_adaptive_descent(block: Block) -> None:
  """Makes the strategy the center: z = strategy. V and the last prediction stay."""
  center = block.action_state[_CENTER]
  for i in vector_starts(block):
    for action in range(block.actions):
      at = sequence(block, action, i)
      store(center, at, load(block.strategy, at))


@dataclasses.dataclass(frozen=True)
class AdaptiveOptimisticDescent(RegretMinimizer):
  """Adaptive optimistic mirror descent. The state of an action is z and its last prediction, that of an infoset is V.

  Attributes:
    step: the factor on all steps, positive.
    prediction: the fraction of a step by which the prediction moves the strategy, from 0 to 1.
    forgetting: the power of t - 1 in d_t, from 0 to 16.
    forgetting_offset: the number added in the denominator of d_t, not negative. With 0, no error is forgotten.
  """

  step: float = 0.25
  prediction: float = 0.2
  forgetting: float = 1.5
  forgetting_offset: float = 2.0
  observe = observe_adaptive_descent
  predict = predict_adaptive_descent
  resume = resume_adaptive_descent
  action_lines = 2
  keeps_regrets = False
  infoset_lines = 1

  def __post_init__(self) -> None:
    arguments.positive_number(self.step, "step")
    for name in ("prediction", "forgetting_offset"):
      arguments.real_number(getattr(self, name), name, 0.0, sys.float_info.max)
    arguments.real_number(self.forgetting, "forgetting", 0.0, _MOST_FORGETTING)

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the tie tolerance, d_t^2, `step` and `prediction`."""
    power = (iterations - 1.0) ** self.forgetting
    total = power + self.forgetting_offset
    remembered = np.divide(power, total, out=np.zeros(len(iterations)), where=total > 0)
    return parameter_rows(iterations, game, remembered**2, self.step, self.prediction)
