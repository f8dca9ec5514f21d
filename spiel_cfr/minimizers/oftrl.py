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
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from spiel_cfr import arguments
from spiel_cfr.kernels import simd
from spiel_cfr.kernels.arrays import Float64s, Int64s
from spiel_cfr.kernels.compile import Kernel, inlined
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
# e^-100 < 4e-44 stands for all smaller probabilities: products of a few of these are still normal numbers, and
# arithmetic with others is slow.
_LEAST_EXPONENT = -100.0

_ZERO, _LANES = np.uint64(0), np.uint64(simd.LANES)


@inlined
def exponential(x: Any) -> Any:
  """Returns e^x for a vector of numbers from -708 to 0.

  x = k ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor series, whose rest after r^13 is below 5e-18.
  """
  one = simd.full(1.0)
  shifted = simd.add_multiple(simd.full(_ROUND), x, _LOG2_E)
  k = shifted - simd.full(_ROUND)
  r = simd.add_multiple(simd.add_multiple(x, k, -_LN_2_HIGH), k, -_LN_2_LOW)
  series = one
  # Horner's rule: ... (1 + r / 11 (1 + r / 12 (1 + r / 13))).
  for divisor in range(13, 0, -1):
    series = simd.add_multiple(one, series * r, 1.0 / divisor)
  return series * simd.power_of_two(shifted)


@inlined
def observe_block(
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
  for i in range(_ZERO, count, _LANES):
    total = simd.full(0.0)
    for action in range(actions):
      row = first + action * stride + i
      total = total + simd.load(strategy, row) * simd.load(utility, row)
    simd.store(value, i, total)
    for action in range(actions):
      row = first + action * stride + i
      simd.store(regret, row, simd.load(regret, row) + simd.load(utility, row) - total)


@inlined
def project(strategy: Float64s, first: int, stride: int, actions: int) -> None:
  """Projects a vector of y = `strategy` on the simplex, the largest entries 0 and the smallest at least -1.

  The projection is max(y - threshold, 0) for the threshold that makes the sum 1. Michelot (1986): take the threshold
  that would be right if all entries above the last one stayed positive, until none drops out any more.
  """
  zero, one = simd.full(0.0), simd.full(1.0)
  # An entry of -1, the least there is, is 0 under any threshold that is needed.
  threshold = simd.full(-1.0)
  for _ in range(actions):
    total, positive = simd.full(-1.0), zero
    for action in range(actions):
      entry = simd.load(strategy, first + action * stride)
      total = total + simd.where_greater(entry, threshold, entry, zero)
      positive = positive + simd.where_greater(entry, threshold, one, zero)
    updated = total / positive
    raised = simd.any_greater(updated, threshold)
    threshold = updated
    if not raised:
      break
  for action in range(actions):
    row = first + action * stride
    left = simd.load(strategy, row) - threshold
    simd.store(strategy, row, simd.where_greater(left, zero, left, zero))


@inlined
def normalize_exponentials(
  strategy: Float64s, utility: Float64s, first: int, stride: int, actions: int
) -> Any:
  """Strategy = exp(strategy) / sum of exp(strategy), for a vector of entries between -708 and 0; returns its value."""
  total = value = simd.full(0.0)
  for action in range(actions):
    row = first + action * stride
    weight = exponential(simd.load(strategy, row))
    simd.store(strategy, row, weight)
    total = total + weight
    value = value + weight * simd.load(utility, row)
  share = simd.full(1.0) / total
  for action in range(actions):
    row = first + action * stride
    simd.store(strategy, row, simd.load(strategy, row) * share)
  return value * share


@inlined
def choose(
  state: Float64s,
  local: Float64s,
  strategy: Float64s,
  utility: Float64s,
  value: Float64s,
  parameters: Float64s,
  first: int,
  stride: int,
  infoset: int,
  count: int,
  actions: int,
) -> None:
  """Takes the next strategy, and leaves its value in `value`; `parameters` are as in `LastLossOFTRL.parameters`."""
  regret = state[0]
  weight, factor, euclidean = parameters[1], simd.full(parameters[2]), parameters[3] != 0.0
  # Below this less than the largest score, an action is not played by the one, and next to never by the other.
  least = simd.full(-1.0 if euclidean else _LEAST_EXPONENT)
  for i in range(_ZERO, count, _LANES):
    top = simd.full(-np.inf)
    for action in range(actions):
      row = first + action * stride + i
      score = simd.add_multiple(simd.load(regret, row), simd.load(utility, row), weight)
      simd.store(strategy, row, score)
      top = simd.where_greater(score, top, score, top)
    step = simd.load(local[0], infoset + i) * factor
    for action in range(actions):
      row = first + action * stride + i
      score = step * (simd.load(strategy, row) - top)
      simd.store(strategy, row, simd.where_greater(score, least, score, least))
    if euclidean:
      project(strategy, first + i, stride, actions)
      total = simd.full(0.0)
      for action in range(actions):
        row = first + action * stride + i
        total = total + simd.load(strategy, row) * simd.load(utility, row)
    else:
      total = normalize_exponentials(strategy, utility, first + i, stride, actions)
    simd.store(value, i, total)


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
  observe_block(state[0], strategy, utility, scratch[0], first, stride, count, actions)


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
    scratch[0],
    parameters,
    first,
    stride,
    infoset,
    count,
    actions,
  )


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
  observe_block(state[0], strategy, utility, scratch[0], first, stride, count, actions)
  choose(
    state,
    local,
    strategy,
    utility,
    scratch[1],
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
    """Returns the step sizes, shape (1, infosets) and room for a vector at the end."""
    return padded(self.steps)


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
    """Returns the steps of the first iteration, shape (1, infosets) and room for a vector at the end."""
    low, high = game.payoff_range
    scale = self.rate / (high - low) if high > low else 0.0
    actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
    return padded(scale * np.sqrt(8.0 * np.log(actions)))


def padded(steps: Float64s) -> Float64s:
  """Returns a line of `local` that can be read in whole vectors."""
  return np.pad(steps, (0, simd.LANES))[None]
