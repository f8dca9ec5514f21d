"""Optimistic follow-the-regularized-leader on the simplex, the minimizer of stable-predictive CFR, and Hedge.

    x^{t+1} = argmax over the simplex of  <x, m + sum of the utilities up to t> - R(x) / step

with m the utilities that are predicted for iteration t + 1. R is the negative entropy, which makes it softmax, or half
the squared Euclidean norm, which makes it a projection. Farina, Kroer, Brown and Sandholm, "Stable-Predictive
Optimistic Counterfactual Regret Minimization" (2019), equation 10; Syrgkanis et al., "Fast Convergence of Regularized
Learning in Games" (2015). Hedge (Freund and Schapire 1997) is the entropy without a prediction.

Neither regularizer notices when a constant is added to all utilities of an infoset, so the state is the cumulative
regret instead of the cumulative utility: it stays small where the utilities have a common drift.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from spiel_cfr import arguments
from spiel_cfr.kernels import Float64s, Int64s, Kernel, inlined
from spiel_cfr.minimizers.base import LocalMinimizer, block_kernel, tie_tolerance

if TYPE_CHECKING:
  from spiel_cfr.game.compiled import CompiledGame

Regularizer: TypeAlias = Literal["entropy", "euclidean"]
Prediction: TypeAlias = Literal["subtree", "last"]

# Adding this to a number below 2^51 leaves the nearest integer in its last bits.
_ROUND = 1.5 * 2.0**52
_LOG2_E = 1.4426950408889634
# ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
_LN_2_HIGH = 6.93147180369123816490e-01
_LN_2_LOW = 1.90821492927058770002e-10
# Below this, 2^k is no normal number.
_LEAST_EXPONENT = -708.0


def _reinterpret(result: Any, llvm_type: ir.Type) -> Callable[..., Any]:
  """Makes a compiled function that gives the bits of its argument another type."""

  def typing(context: Any, bits: Any) -> tuple[Any, Callable[..., Any]]:
    return result(bits), lambda context, builder, signature, arguments: builder.bitcast(
      arguments[0], llvm_type
    )

  compiled: Callable[..., Any] = intrinsic(typing)
  return compiled


_bits_of = _reinterpret(types.int64, ir.IntType(64))
_float_of = _reinterpret(types.float64, ir.DoubleType())


@inlined
def exponential(x: float) -> float:
  """Returns e^x for -708 <= x <= 0, without branches, so that loops over it become vector instructions.

  x = k ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor series, whose rest after r^13 is below 5e-18.
  """
  rounded = x * _LOG2_E + _ROUND
  k = rounded - _ROUND
  r = (x - k * _LN_2_HIGH) - k * _LN_2_LOW
  series = 1.0 / 6227020800.0
  series = series * r + 1.0 / 479001600.0
  series = series * r + 1.0 / 39916800.0
  series = series * r + 1.0 / 3628800.0
  series = series * r + 1.0 / 362880.0
  series = series * r + 1.0 / 40320.0
  series = series * r + 1.0 / 5040.0
  series = series * r + 1.0 / 720.0
  series = series * r + 1.0 / 120.0
  series = series * r + 1.0 / 24.0
  series = series * r + 1.0 / 6.0
  series = series * r + 0.5
  series = series * r + 1.0
  series = series * r + 1.0
  return series * _float_of((_bits_of(rounded) + 1023) << 52)  # type: ignore[no-any-return]


@inlined
def accumulate(
  regret: Float64s,
  strategy: Float64s,
  utility: Float64s,
  value: Float64s,
  first: int,
  stride: int,
  count: int,
  actions: int,
) -> None:
  """Value = <strategy, utility>;  regret += utility - value."""
  for i in range(count):
    value[i] = 0.0
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      value[i] += strategy[row + i] * utility[row + i]
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      regret[row + i] += utility[row + i] - value[i]


@inlined
def project(
  strategy: Float64s, scratch: Float64s, first: int, stride: int, count: int, actions: int
) -> None:
  """Projects y = `strategy`, whose largest entries are 0 and smallest at least -1, on the simplex.

  The projection is max(y - threshold, 0) for the threshold that makes the sum 1. Michelot (1986): take the threshold
  that would be right if all entries above the last one stayed positive, until none drops out any more.
  """
  threshold, total, positive = scratch[1], scratch[2], scratch[3]
  for i in range(count):
    # An entry of -1, the least there is, is 0 under any threshold that is needed.
    threshold[i] = -1.0
  for _ in range(actions):
    for i in range(count):
      total[i] = -1.0
      positive[i] = 0.0
    for action in range(actions):
      row = first + action * stride
      for i in range(count):
        entry = strategy[row + i]
        above = entry > threshold[i]
        total[i] += entry if above else 0.0
        positive[i] += 1.0 if above else 0.0
    raised = 0.0
    for i in range(count):
      updated = total[i] / positive[i]
      raised += 1.0 if updated > threshold[i] else 0.0
      threshold[i] = updated
    if raised == 0.0:
      break
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      left = strategy[row + i] - threshold[i]
      strategy[row + i] = left if left > 0.0 else 0.0


@inlined
def normalize_exponentials(
  strategy: Float64s, total: Float64s, first: int, stride: int, count: int, actions: int
) -> None:
  """Strategy = exp(strategy) / sum of exp(strategy), for entries between -708 and 0."""
  for i in range(count):
    total[i] = 0.0
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      weight = exponential(strategy[row + i])
      strategy[row + i] = weight
      total[i] += weight
  for i in range(count):
    total[i] = 1.0 / total[i]
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      strategy[row + i] *= total[i]


@inlined
def choose(
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
  """Takes the next strategy; `parameters` are as in `OFTRL.parameters`."""
  regret, top, step = state[0], scratch[1], scratch[2]
  weight, factor, euclidean = parameters[1], parameters[2], parameters[3] != 0.0
  # Below this less than the largest score, an action is not played by the one, and next to never by the other.
  least = -1.0 if euclidean else _LEAST_EXPONENT
  for i in range(count):
    step[i] = local[0, infoset + i] * factor
    top[i] = -np.inf
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      score = regret[row + i] + weight * utility[row + i]
      strategy[row + i] = score
      top[i] = score if score > top[i] else top[i]
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      score = step[i] * (strategy[row + i] - top[i])
      strategy[row + i] = score if score > least else least
  if euclidean:
    project(strategy, scratch, first, stride, count, actions)
  else:
    normalize_exponentials(strategy, top, first, stride, count, actions)


@block_kernel
def observe_only(
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
  """Regret += utility - value; the next strategy has to wait for the prediction."""
  accumulate(state[0], strategy, utility, scratch[0], first, stride, count, actions)


@block_kernel
def predict_oftrl(
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
  """Strategy = argmax of <x, regret + prediction> - R(x) / step."""
  choose(
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
  value = scratch[0]
  for i in range(count):
    value[i] = 0.0
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      value[i] += strategy[row + i] * utility[row + i]


@block_kernel
def observe_and_choose(
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
  """Regret += utility - value;  strategy = argmax of <x, regret + weight * utility> - R(x) / step."""
  accumulate(state[0], strategy, utility, scratch[0], first, stride, count, actions)
  choose(
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


@dataclasses.dataclass(frozen=True, eq=False)
class LastLossOFTRL(LocalMinimizer):
  """OFTRL that predicts the last counterfactual utilities. Its state is the cumulative regret.

  Attributes:
    steps: the step size of each infoset of all players, shape (infosets,); 0 keeps an infoset uniform.
    regularizer: "entropy" or "euclidean".
  """

  steps: Float64s
  regularizer: Regularizer = "entropy"
  observe: ClassVar[Kernel] = observe_and_choose
  local_lines: ClassVar[int] = 1

  def parameters(self, iterations: Int64s, game: "CompiledGame") -> Float64s:
    """Returns tie tolerance, weight of the prediction, factor on the steps, regularizer; (iterations, 4)."""
    row = [tie_tolerance(game), 1.0, 1.0, float(self.regularizer == "euclidean")]
    return np.tile(row, (len(iterations), 1))

  def initial_local(self, game: "CompiledGame") -> Float64s:
    """Returns the step sizes, shape (1, infosets)."""
    return self.steps[None].copy()


@dataclasses.dataclass(frozen=True, eq=False)
class SubtreeOFTRL(LastLossOFTRL):
  """OFTRL that predicts the last gradient carried up with the new strategies below (Farina et al. 2019, (17))."""

  observe: ClassVar[Kernel] = observe_only
  predict: ClassVar[Kernel | None] = predict_oftrl


@dataclasses.dataclass(frozen=True)
class Hedge(LocalMinimizer):
  """Multiplicative weights, each iteration with the step that is best for a horizon ending there.

      step^t = rate * sqrt(8 log(actions) / t) / payoff range

  which bounds the regret of an infoset of any reach (Cesa-Bianchi and Lugosi 2006, theorem 2.3).

  Attributes:
    rate: a factor on the steps.
  """

  rate: float = 1.0
  observe: ClassVar[Kernel] = observe_and_choose
  local_lines: ClassVar[int] = 1

  def __post_init__(self) -> None:
    """Raises ArgumentError where the rate is not positive and finite."""
    arguments.positive_number(self.rate, "rate")

  def parameters(self, iterations: Int64s, game: "CompiledGame") -> Float64s:
    """Returns tie tolerance, no prediction, 1 / sqrt(t), entropy; shape (iterations, 4)."""
    result = np.zeros((len(iterations), 4))
    result[:, 0] = tie_tolerance(game)
    # The strategy that is chosen at iteration t is that of t + 1, but has seen t utilities.
    result[:, 2] = 1.0 / np.sqrt(iterations)
    return result

  def initial_local(self, game: "CompiledGame") -> Float64s:
    """Returns the steps of the first iteration, shape (1, infosets)."""
    low, high = game.payoff_range
    scale = self.rate / (high - low) if high > low else 0.0
    actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
    result: Float64s = scale * np.sqrt(8.0 * np.log(actions))[None]
    return result
