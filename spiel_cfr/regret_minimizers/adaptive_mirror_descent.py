"""Adaptive optimistic mirror descent: steps that come from the errors of the predictions seen so far.

At an infoset, with u^t the counterfactual utilities of iteration t, h^t the same gradient carried up with the new
strategies below, h^0 = 0, V_0 = 0, P subtracting the mean over the actions, z^1 = x^1 uniform,

    d_t     = (t - 1)^forgetting / ((t - 1)^forgetting + forgetting_offset)
    V_t     = d_t^2 V_{t-1} + ||P(u^t - h^{t-1})||^2
    step_t  = step / sqrt(V_t), or 0 while V_t is 0
    z^{t+1} = projection of z^t + step_t u^t on the simplex
    x^{t+1} = projection of z^{t+1} + prediction step_t h^t on the simplex

Neither the unit of the payoffs nor the number of iterations enters.
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
  lanes,
  sequence,
  tolerance,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, parameter_rows
from spiel_cfr.regret_minimizers.regularizers import project_shifted

# Columns of `Block.parameters` after the tie tolerance: d_t^2, the factor on the steps, how much of one the prediction
# moves.
_REMEMBERED, _FACTOR, _PREDICTION = 1, 2, 3
# Lines of `Block.scratch`.
_STEPS, _SQUARES, _TOLERANCES = 0, 1, 2


@inlined
def step_from(block: Block, center: AnyFloats, target: AnyFloats, rate: float) -> None:
  """Target = projection of center + rate / sqrt(V) * utility on the simplex."""
  steps, tolerances = block.scratch[_STEPS], block.scratch[_TOLERANCES]
  for i in lanes(block):
    store(tolerances, i, tolerance(block, i))
  for i in range(block.size):
    error = np.sqrt(block.infoset_state[0, block.infoset + i])
    # Errors that are only rounding must not set the scale of the steps.
    steps[i] = rate / error if error > tolerances[i] else 0.0
  for i in lanes(block):
    step, top = load(steps, i), full(-np.inf)
    for action in range(block.actions):
      row = sequence(block, action, i)
      moved = load(center, row) + step * load(block.utility, row)
      store(target, row, moved)
      top = where_greater(moved, top, moved, top)
    project_shifted(block, i, target, top)


@block_kernel
def observe_adaptive(block: Block) -> None:
  """Updates V and z; the next strategy has to wait for the prediction."""
  center, predicted, squares = block.action_state[0], block.action_state[1], block.scratch[_SQUARES]
  share = full(1.0 / block.actions)
  for i in lanes(block):
    expected_value(block, i)
    mean = square = full(0.0)
    for action in range(block.actions):
      row = sequence(block, action, i)
      mean = mean + (load(block.utility, row) - load(predicted, row))
    mean = mean * share
    for action in range(block.actions):
      row = sequence(block, action, i)
      error = load(block.utility, row) - load(predicted, row) - mean
      square = square + error * error
    store(squares, i, square)
  for i in range(block.size):
    infoset = block.infoset + i
    block.infoset_state[0, infoset] = (
      block.infoset_state[0, infoset] * block.parameters[_REMEMBERED] + squares[i]
    )
  step_from(block, center, center, block.parameters[_FACTOR])


@block_kernel
def predict_adaptive(block: Block) -> None:
  """Chooses the next strategy, and keeps the prediction."""
  center, predicted = block.action_state[0], block.action_state[1]
  rate = block.parameters[_FACTOR] * block.parameters[_PREDICTION]
  step_from(block, center, block.strategy, rate)
  for i in lanes(block):
    expected_value(block, i)
    for action in range(block.actions):
      row = sequence(block, action, i)
      store(predicted, row, load(block.utility, row))


@block_kernel
def resume_adaptive(block: Block) -> None:
  """Sets z = strategy; V and the last prediction stay."""
  center = block.action_state[0]
  for i in lanes(block):
    for action in range(block.actions):
      row = sequence(block, action, i)
      store(center, row, load(block.strategy, row))


@dataclasses.dataclass(frozen=True)
class AdaptiveOptimisticDescent(RegretMinimizer):
  """See the module's docstring. Its state is z and the last prediction; for each infoset it keeps V.

  Attributes:
    step: the factor on all steps.
    prediction: how much of a step the prediction moves, from 0 to 1.
    forgetting: the power in d_t.
    forgetting_offset: what is added in its denominator; 0 forgets nothing.
  """

  step: float = 0.25
  prediction: float = 0.2
  forgetting: float = 1.5
  forgetting_offset: float = 2.0
  observe = observe_adaptive
  predict = predict_adaptive
  resume = resume_adaptive
  action_lines = 2
  keeps_regrets = False
  infoset_lines = 1

  def __post_init__(self) -> None:
    arguments.positive_number(self.step, "step")
    for name in ("prediction", "forgetting", "forgetting_offset"):
      arguments.real_number(getattr(self, name), name, 0.0, sys.float_info.max)

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns tie tolerance, d_t^2, the factor on the steps, the factor of the prediction; (iterations, 4)."""
    power = (iterations - 1.0) ** self.forgetting
    total = power + self.forgetting_offset
    remembered = np.divide(power, total, out=np.zeros(len(iterations)), where=total > 0)
    return parameter_rows(iterations, game, remembered**2, self.step, self.prediction)
