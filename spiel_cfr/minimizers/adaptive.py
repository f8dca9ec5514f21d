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
from spiel_cfr.kernels import simd
from spiel_cfr.kernels.arrays import Float64s, Int64s
from spiel_cfr.kernels.compile import Kernel, inlined
from spiel_cfr.minimizers.base import LocalMinimizer, block_kernel, tie_tolerance
from spiel_cfr.minimizers.oftrl import project

if TYPE_CHECKING:
  from spiel_cfr.game.compiled import CompiledGame

_ZERO, _LANES = np.uint64(0), np.uint64(simd.LANES)


@inlined
def step_from(
  center: Float64s,
  direction: Float64s,
  target: Float64s,
  scratch: Float64s,
  first: int,
  stride: int,
  count: int,
  actions: int,
) -> None:
  """Target = projection of center + step * direction on the simplex, with the steps in scratch[4]."""
  least = simd.full(-1.0)
  for i in range(_ZERO, count, _LANES):
    step, top = simd.load(scratch[4], i), simd.full(-np.inf)
    for action in range(actions):
      row = first + action * stride + i
      moved = simd.load(center, row) + step * simd.load(direction, row)
      simd.store(target, row, moved)
      top = simd.where_greater(moved, top, moved, top)
    for action in range(actions):
      row = first + action * stride + i
      below = simd.load(target, row) - top
      simd.store(target, row, simd.where_greater(below, least, below, least))
    project(target, first + i, stride, actions)


@inlined
def set_steps(
  local: Float64s, scratch: Float64s, parameters: Float64s, rate: float, infoset: int, count: int
) -> None:
  """scratch[4] = rate / sqrt(V)."""
  smallest = parameters[0] * parameters[0]
  for i in range(count):
    squared_errors = local[0, infoset + i]
    # Errors that are only rounding must not set the scale of the steps.
    scratch[4, i] = rate / np.sqrt(squared_errors) if squared_errors > smallest else 0.0


@inlined
def descend(
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
  """Updates V and z, and leaves the value of the last strategy in scratch[0]."""
  center, predicted = state[0], state[1]
  zero, share = simd.full(0.0), simd.full(1.0 / actions)
  for i in range(_ZERO, count, _LANES):
    value = mean = squares = zero
    for action in range(actions):
      row = first + action * stride + i
      seen = simd.load(utility, row)
      value = value + simd.load(strategy, row) * seen
      mean = mean + (seen - simd.load(predicted, row))
    mean = mean * share
    for action in range(actions):
      row = first + action * stride + i
      error = simd.load(utility, row) - simd.load(predicted, row) - mean
      squares = squares + error * error
    simd.store(scratch[0], i, value)
    simd.store(scratch[1], i, squares)
  for i in range(count):
    local[0, infoset + i] = local[0, infoset + i] * parameters[1] + scratch[1, i]
  set_steps(local, scratch, parameters, parameters[2], infoset, count)
  step_from(center, utility, center, scratch, first, stride, count, actions)


@inlined
def look_ahead(
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
  """Chooses the next strategy, and keeps the prediction."""
  center, predicted = state[0], state[1]
  set_steps(local, scratch, parameters, parameters[2] * parameters[3], infoset, count)
  step_from(center, utility, strategy, scratch, first, stride, count, actions)
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      predicted[row + i] = utility[row + i]


@inlined
def evaluate_block(
  strategy: Float64s,
  utility: Float64s,
  value: Float64s,
  first: int,
  stride: int,
  count: int,
  actions: int,
) -> None:
  """Value = <strategy, utility>."""
  for i in range(_ZERO, count, _LANES):
    total = simd.full(0.0)
    for action in range(actions):
      row = first + action * stride + i
      total = total + simd.load(strategy, row) * simd.load(utility, row)
    simd.store(value, i, total)


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
  descend(
    state,
    local,
    strategy,
    utility,
    scratch,
    parameters,
    first,
    stride,
    infoset,
    count,
    actions,
  )


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
  look_ahead(
    state,
    local,
    strategy,
    utility,
    scratch,
    parameters,
    first,
    stride,
    infoset,
    count,
    actions,
  )
  evaluate_block(strategy, utility, scratch[0], first, stride, count, actions)


@inlined
def follow_regret(
  regret: Float64s,
  local: Float64s,
  utility: Float64s,
  scratch: Float64s,
  parameters: Float64s,
  first: int,
  stride: int,
  infoset: int,
  count: int,
  actions: int,
) -> None:
  """Updates R and S with the utilities of a strategy whose value is scratch[0], and hands over what is too high."""
  value, positive = scratch[0], scratch[1]
  ratio, limit = parameters[4], parameters[5]
  for i in range(count):
    positive[i] = 0.0
    local[1, infoset + i] *= ratio * ratio
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      added = utility[row + i] - value[i]
      updated = ratio * regret[row + i] + added
      regret[row + i] = updated
      local[1, infoset + i] += added * added
      positive[i] += updated * updated if updated > 0.0 else 0.0
  for i in range(count):
    over = positive[i] > limit * limit * local[1, infoset + i]
    local[2, infoset + i] = 1.0 if over else local[2, infoset + i]


@block_kernel
def observe_safeguarded(
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
  """As `observe_adaptive`; follows the regret of the strategies before their update."""
  descend(
    state,
    local,
    strategy,
    utility,
    scratch,
    parameters,
    first,
    stride,
    infoset,
    count,
    actions,
  )
  if count > 0 and local[3, infoset] == 0.0:
    follow_regret(
      state[2],
      local,
      utility,
      scratch,
      parameters,
      first,
      stride,
      infoset,
      count,
      actions,
    )


@block_kernel
def predict_safeguarded(
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
  """As `predict_adaptive`, and regret matching where that was handed over; follows the regret after the update."""
  look_ahead(
    state,
    local,
    strategy,
    utility,
    scratch,
    parameters,
    first,
    stride,
    infoset,
    count,
    actions,
  )
  regret, total = state[2], scratch[1]
  for i in range(count):
    total[i] = 0.0
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      total[i] += regret[row + i] if regret[row + i] > 0.0 else 0.0
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      matched = regret[row + i] / total[i] if regret[row + i] > 0.0 else 0.0
      matched = matched if total[i] > 0.0 else 1.0 / actions
      strategy[row + i] = matched if local[2, infoset + i] != 0.0 else strategy[row + i]
  evaluate_block(strategy, utility, scratch[0], first, stride, count, actions)
  if count > 0 and local[3, infoset] != 0.0:
    follow_regret(
      state[2],
      local,
      utility,
      scratch,
      parameters,
      first,
      stride,
      infoset,
      count,
      actions,
    )


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


@dataclasses.dataclass(frozen=True)
class SafeguardedDescent(AdaptiveOptimisticDescent):
  """Adaptive optimistic mirror descent that hands an infoset to regret matching if its regret grows too high.

  With w_t the weight of iteration t in the average and r^t the regrets of its strategies,

      R_t = (w_{t-1} / w_t) R_{t-1} + r^t,    S_t = (w_{t-1} / w_t)^2 S_{t-1} + ||r^t||^2

  an infoset is handed over once ||max(R_t, 0)|| > limit sqrt(S_t), and from then on plays in proportion to max(R, 0).
  So ||max(R_t, 0)|| <= (limit + 1) sqrt(S_t) for ever, whatever the utilities are; docs/stable_predictive.md has the
  proof. The strategies that count are those that enter the average.

  Attributes:
    limit: at least 1, which regret matching itself never passes.
    after: for each player, whether the average takes the strategies after their update.
  """

  limit: float = 2.0
  after: tuple[bool, ...] = (True, False)
  observe: ClassVar[Kernel] = observe_safeguarded
  predict: ClassVar[Kernel | None] = predict_safeguarded
  state_lines: ClassVar[int] = 3
  local_lines: ClassVar[int] = 4

  def __post_init__(self) -> None:
    """Raises ArgumentError where a constant is outside its range."""
    super().__post_init__()
    arguments.real_number(self.limit, "limit", 1.0, sys.float_info.max)

  def parameters(self, iterations: Int64s, game: "CompiledGame") -> Float64s:
    """Returns those of the base class, w_{t-1} / w_t, for the solver to fill in, and the limit; (iterations, 6)."""
    base = super().parameters(iterations, game)
    return np.column_stack([base, np.ones(len(base)), np.full(len(base), self.limit)])

  def initial_local(self, game: "CompiledGame") -> Float64s:
    """Returns zeros, and in the last line which infosets' owners average after the update; (4, infosets)."""
    result = super().initial_local(game)
    for tree, after in zip(game.treeplexes, self.after, strict=True):
      result[3, tree.first_infoset : tree.first_infoset + tree.num_infosets] = after
    return result
