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
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spiel_cfr import arguments
from spiel_cfr.kernels import Float64s, Int64s, Kernel, inlined
from spiel_cfr.minimizers.base import LocalMinimizer, block_kernel, tie_tolerance
from spiel_cfr.minimizers.oftrl import project

if TYPE_CHECKING:
  from spiel_cfr.game.compiled import CompiledGame


@inlined
def step_from(
  center: Float64s,
  direction: Float64s,
  step: Float64s,
  target: Float64s,
  scratch: Float64s,
  first: int,
  stride: int,
  count: int,
  actions: int,
) -> None:
  """Target = projection of center + step * direction on the simplex. Overwrites scratch[1] to scratch[3]."""
  top = scratch[1]
  for i in range(count):
    top[i] = -np.inf
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      moved = center[row + i] + step[i] * direction[row + i]
      target[row + i] = moved
      top[i] = moved if moved > top[i] else top[i]
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      below = target[row + i] - top[i]
      target[row + i] = below if below > -1.0 else -1.0
  project(target, scratch, first, stride, count, actions)


@block_kernel
def observe_adaptive(
  state: Float64s,
  local: Float64s,
  strategy: Float64s,
  utility: Float64s,
  scratch: Float64s,
  parameters: Float64s,
  first: int,
  stride: int,
  infoset: int,
  count: int,
  actions: int,
) -> None:
  """Updates V and z; the next strategy has to wait for the prediction."""
  center, predicted = state[0], state[1]
  value, mean, step = scratch[0], scratch[1], scratch[4]
  smallest, remembered, rate = parameters[0] * parameters[0], parameters[1], parameters[2]
  for i in range(count):
    value[i] = 0.0
    mean[i] = 0.0
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      value[i] += strategy[row + i] * utility[row + i]
      mean[i] += utility[row + i] - predicted[row + i]
  for i in range(count):
    mean[i] /= actions
    local[0, infoset + i] *= remembered
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      error = utility[row + i] - predicted[row + i] - mean[i]
      local[0, infoset + i] += error * error
  for i in range(count):
    errors_squared = local[0, infoset + i]
    # Errors that are only rounding must not set the scale of the steps.
    known = errors_squared > smallest
    step[i] = rate / np.sqrt(errors_squared) if known else 0.0
  step_from(center, utility, step, center, scratch, first, stride, count, actions)


@block_kernel
def predict_adaptive(
  state: Float64s,
  local: Float64s,
  strategy: Float64s,
  utility: Float64s,
  scratch: Float64s,
  parameters: Float64s,
  first: int,
  stride: int,
  infoset: int,
  count: int,
  actions: int,
) -> None:
  """Chooses the next strategy."""
  center, predicted = state[0], state[1]
  value, step = scratch[0], scratch[4]
  smallest, rate = parameters[0] * parameters[0], parameters[2] * parameters[3]
  for i in range(count):
    errors_squared = local[0, infoset + i]
    step[i] = rate / np.sqrt(errors_squared) if errors_squared > smallest else 0.0
    value[i] = 0.0
  step_from(center, utility, step, strategy, scratch, first, stride, count, actions)
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      predicted[row + i] = utility[row + i]
      value[i] += strategy[row + i] * utility[row + i]


@dataclasses.dataclass(frozen=True)
class AdaptiveOptimisticDescent(LocalMinimizer):
  """See the module's docstring. Its state is z and the last prediction; for each infoset it keeps V.

  Attributes:
    step: the factor on all steps.
    prediction: how much of a step the prediction moves, from 0 to 1.
    forgetting: how early errors are forgotten.
    forgetting_offset: likewise.
  """

  step: float = 0.25
  prediction: float = 0.2
  forgetting: float = 1.5
  forgetting_offset: float = 2.0
  observe: ClassVar[Kernel] = observe_adaptive
  predict: ClassVar[Kernel | None] = predict_adaptive
  state_lines: ClassVar[int] = 2
  local_lines: ClassVar[int] = 1

  def __post_init__(self) -> None:
    """Raises ArgumentError where a constant is outside its range."""
    arguments.positive_number(self.step, "step")
    for name in ("prediction", "forgetting", "forgetting_offset"):
      arguments.real_number(getattr(self, name), name, 0.0, sys.float_info.max)

  def parameters(self, iterations: Int64s, game: "CompiledGame") -> Float64s:
    """Returns tie tolerance, d_t^2, the factor on the steps, the factor of the prediction; (iterations, 4)."""
    power = (iterations - 1.0) ** self.forgetting
    total = power + self.forgetting_offset
    remembered = np.divide(power, total, out=np.zeros(len(iterations)), where=total > 0)
    columns = (tie_tolerance(game), remembered**2, self.step, self.prediction)
    return np.stack(np.broadcast_arrays(*columns), axis=1)
