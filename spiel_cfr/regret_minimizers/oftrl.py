"""Optimistic follow-the-regularized-leader on the simplex, the minimizer of stable-predictive CFR, and Hedge.

    x^{t+1} = argmax over the simplex of  <x, m + sum of the utilities up to t> - R(x) / step

with m the utilities that are predicted for iteration t + 1. R is the negative entropy, which makes it softmax, or half
the squared Euclidean norm, which makes it a projection. Farina, Kroer, Brown and Sandholm, "Stable-Predictive
Optimistic Counterfactual Regret Minimization" (2019), equation 10; Syrgkanis et al., "Fast Convergence of Regularized
Learning in Games" (2015). Hedge (Freund and Schapire 1997) is the entropy without a prediction.

The entropy never plays an action with probability 0, unless small ones are dropped: see `thresholds`.

Neither regularizer notices when a constant is added to all utilities of an infoset, so the state is the cumulative
regret instead of the cumulative utility: it stays small where the utilities have a common drift.
"""

import dataclasses
import sys
from typing import Any, Literal, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba import simd
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s
from spiel_cfr._numba.kernels import Kernel, inlined
from spiel_cfr._numba.simd import add_multiple, full, load, store, where_greater
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  lanes,
  sequence,
)
from spiel_cfr.regret_minimizers.dynamic_thresholds import drop_smallest
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, relative_tie

Regularizer: TypeAlias = Literal["entropy", "euclidean"]
Prediction: TypeAlias = Literal["subtree", "last"]

# Adding this to a number below 2^51 leaves the nearest integer in its last bits; in float32, below 2^22.
_ROUND, _SINGLE_ROUND = 1.5 * 2.0**52, 1.5 * 2.0**23
_LOG2_E = 1.4426950408889634
# ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
_LN_2_HIGH = 6.93147180369123816490e-01
_LN_2_LOW = 1.90821492927058770002e-10
_SINGLE_LN_2_HIGH = 0.693359375
_SINGLE_LN_2_LOW = -2.12194440054690583e-4
# e^-100 < 4e-44, in float32 e^-30 < 1e-13, stands for all smaller probabilities: products of a few of these are still
# normal numbers, and arithmetic with others is slow.
_LEAST_EXPONENT, _SINGLE_LEAST_EXPONENT = -100.0, -30.0


# The sum of t^(-3/2) over all t, rounded up.
_ZETA = 2.6123753487

# Lines of `Block.scratch`.
_STEPS, _UNUSED = 0, 1


@inlined
def exponential(x: Any) -> Any:
  """Returns e^x for a vector of numbers from -708 to 0, in float32 from -87.

  x = k ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor series, whose rest after r^13 is below 5e-18, after r^7 below
  6e-9.
  """
  one = full(1.0)
  if simd.is_single(x):
    shifted = add_multiple(full(_SINGLE_ROUND), x, _LOG2_E)
    k = shifted - full(_SINGLE_ROUND)
    r = add_multiple(add_multiple(x, k, -_SINGLE_LN_2_HIGH), k, -_SINGLE_LN_2_LOW)
    series = one
    for divisor in range(7, 0, -1):
      series = add_multiple(one, series * r, 1.0 / divisor)
  else:
    shifted = add_multiple(full(_ROUND), x, _LOG2_E)
    k = shifted - full(_ROUND)
    r = add_multiple(add_multiple(x, k, -_LN_2_HIGH), k, -_LN_2_LOW)
    series = one
    # Horner's rule: ... (1 + r / 11 (1 + r / 12 (1 + r / 13))).
    for divisor in range(13, 0, -1):
      series = add_multiple(one, series * r, 1.0 / divisor)
  return series * simd.power_of_two(shifted)


@inlined
def least_exponent(block: Block) -> float:
  """Returns the logarithm of what stands for all smaller probabilities."""
  return _SINGLE_LEAST_EXPONENT if simd.is_single(block.strategy) else _LEAST_EXPONENT


@inlined
def project(strategy: AnyFloats, first: int, stride: int, actions: int) -> None:
  """Projects a vector of y = `strategy` on the simplex, the largest entries 0 and the smallest at least -1.

  The projection is max(y - threshold, 0) for the threshold that makes the sum 1. Michelot (1986): take the threshold
  that would be right if all entries above the last one stayed positive, until none drops out any more.
  """
  zero, one = full(0.0), full(1.0)
  # An entry of -1, the least there is, is 0 under any threshold that is needed.
  threshold = full(-1.0)
  for _ in range(actions):
    total, positive = full(-1.0), zero
    for action in range(actions):
      entry = load(strategy, first + action * stride)
      total = total + where_greater(entry, threshold, entry, zero)
      positive = positive + where_greater(entry, threshold, one, zero)
    updated = total / positive
    raised = simd.any_greater(updated, threshold)
    threshold = updated
    if not raised:
      break
  for action in range(actions):
    row = first + action * stride
    left = load(strategy, row) - threshold
    store(strategy, row, where_greater(left, zero, left, zero))


@inlined
def normalize_exponentials(block: Block, i: int) -> Any:
  """Strategy = exp(strategy) / sum of exp(strategy), for a vector of entries between -708 and 0; returns its value."""
  total = value = full(0.0)
  for action in range(block.actions):
    row = sequence(block, action, i)
    weight = exponential(load(block.strategy, row))
    store(block.strategy, row, weight)
    total = total + weight
    value = value + weight * load(block.utility, row)
  share = full(1.0) / total
  for action in range(block.actions):
    row = sequence(block, action, i)
    store(block.strategy, row, load(block.strategy, row) * share)
  return value * share


@inlined
def add_regrets(block: Block) -> None:
  """Value = <strategy, utility>;  regret += utility - value."""
  regret = block.state[0]
  for i in lanes(block):
    value = expected_value(block, i)
    for action in range(block.actions):
      row = sequence(block, action, i)
      store(regret, row, load(regret, row) + load(block.utility, row) - value)


@inlined
def respond(
  block: Block,
  value: AnyFloats,
  steps: AnyFloats,
  factor: float,
  weight: float,
  euclidean: bool,
  centered: bool,
) -> None:
  """Strategy = argmax of <x, regret + weight * utility> - R(x) / step, and leaves its value in `value`.

  Where it is centered, R is the Bregman divergence from a center, whose gradient of R is the third line of the state.

  Args:
    block: the infosets; the first line of its state is the cumulative regret.
    value: where the values go.
    steps: step sizes.
    factor: what they are multiplied by.
    weight: of the prediction, which is in `block.utility`.
    euclidean: whether R is half the squared Euclidean norm, or else the negative entropy.
    centered: whether there are centers.
  """
  regret, strategy, multiple, zero = block.state[0], block.strategy, full(factor), full(0.0)
  # Below this less than the largest score, an action is not played by the one, and next to never by the other.
  least = full(-1.0 if euclidean else least_exponent(block))
  for i in lanes(block):
    top, step = full(-np.inf), load(steps, i) * multiple
    for action in range(block.actions):
      row = sequence(block, action, i)
      score = add_multiple(load(regret, row), load(block.utility, row), weight)
      if centered:
        # Without a step the center is left out as well.
        inverse = where_greater(step, zero, full(1.0) / step, zero)
        score = score + load(block.state[2], row) * inverse
      store(strategy, row, score)
      top = where_greater(score, top, score, top)
    for action in range(block.actions):
      row = sequence(block, action, i)
      score = step * (load(strategy, row) - top)
      store(strategy, row, where_greater(score, least, score, least))
    if euclidean:
      project(strategy, block.first + i, block.stride, block.actions)
      total = full(0.0)
      for action in range(block.actions):
        row = sequence(block, action, i)
        total = total + load(strategy, row) * load(block.utility, row)
    else:
      total = normalize_exponentials(block, i)
    store(value, i, total)


@inlined
def choose(block: Block, value: AnyFloats) -> None:
  """Takes the next strategy, and leaves its value in `value`; parameters as in `LastLossOFTRL.parameters`."""
  weight, factor = block.parameters[1], block.parameters[2]
  euclidean = block.parameters[3] != 0.0
  steps = block.scratch[_STEPS]
  for i in range(block.size):
    steps[i] = block.local[0, block.infoset + i]
  respond(block, value, steps, factor, weight, euclidean, False)


@block_kernel
def observe_only(block: Block) -> None:
  """Regret += utility - value; the next strategy has to wait for the prediction."""
  add_regrets(block)


@block_kernel
def predict_oftrl(block: Block) -> None:
  """Strategy = argmax of <x, regret + prediction> - R(x) / step."""
  choose(block, block.value)


@block_kernel
def observe_and_choose(block: Block) -> None:
  """Regret += utility - value;  strategy = argmax of <x, regret + weight * utility> - R(x) / step."""
  add_regrets(block)
  choose(block, block.scratch[_UNUSED])


@block_kernel
def observe_choose_and_drop(block: Block) -> None:
  """As `observe_and_choose`, and drops the smallest probabilities, up to parameter 4 times sqrt(log(actions))."""
  add_regrets(block)
  choose(block, block.scratch[_UNUSED])
  drop_smallest(block, block.parameters[4] * np.sqrt(np.log(float(block.actions))))


@block_kernel
def observe_choose_and_drop_some(block: Block) -> None:
  """As `observe_and_choose`, and drops the smallest probabilities, up to parameter 4."""
  add_regrets(block)
  choose(block, block.scratch[_UNUSED])
  drop_smallest(block, block.parameters[4])


@block_kernel
def predict_and_drop_some(block: Block) -> None:
  """As `predict_oftrl`, and drops the smallest probabilities, up to parameter 4."""
  choose(block, block.scratch[_UNUSED])
  drop_smallest(block, block.parameters[4])
  for i in lanes(block):
    expected_value(block, i)


@inlined
def gradient_at(played: float, euclidean: bool, least: float) -> float:
  """Returns the gradient of R at a probability: itself, or its logarithm, no less than what stands for 0."""
  if euclidean:
    return played
  return max(np.log(played), least) if played > 0.0 else least


@block_kernel
def resume_oftrl(block: Block) -> None:
  """Regret = gradient of R(strategy) / step, which makes that strategy the argmax without a prediction.

  The gradient is log(strategy), no less than what stands for 0, or the strategy itself. Without steps it stays.
  """
  regret, least = block.state[0], least_exponent(block)
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      played, step = block.strategy[first + i], block.local[0, block.infoset + i]
      step *= block.parameters[2]
      if step > 0.0:
        regret[first + i] = gradient_at(played, block.parameters[3] != 0.0, least) / step


@dataclasses.dataclass(frozen=True, eq=False)
class LastLossOFTRL(RegretMinimizer):
  """OFTRL that predicts the last counterfactual utilities. Its state is the cumulative regret.

  Dropping M_t = threshold / (zeta(3/2) t^(3/2)) in iteration t keeps fast rates: all of it sums to the threshold at
  most, and the regret of an infoset grows by no more than that times the range of its utilities.

  Attributes:
    steps: the step size of each infoset of all players, shape (infosets,); 0 keeps an infoset uniform.
    regularizer: "entropy" or "euclidean".
    threshold: how much probability all iterations drop together at most; 0 drops none.
  """

  steps: Float64s
  regularizer: Regularizer = "entropy"
  threshold: float = 0.0
  resume = resume_oftrl
  local_lines = 1

  def __post_init__(self) -> None:
    """Raises ArgumentError where the threshold is negative or not finite, or there is one without entropy."""
    arguments.real_number(self.threshold, "threshold", 0.0, sys.float_info.max)
    if self.threshold and self.regularizer != "entropy":
      raise errors.ArgumentError(
        "A projection plays the worst actions with probability 0 already: a threshold is for regularizer='entropy'."
      )

  @property
  def observe(self) -> Kernel:
    """The faster kernel, if nothing is dropped."""
    return observe_choose_and_drop_some if self.threshold else observe_and_choose

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns tie tolerance, weight of the prediction, factor on the steps, regularizer, M_t; (iterations, 5)."""
    row = [relative_tie(game), 1.0, 1.0, float(self.regularizer == "euclidean"), 0.0]
    result = np.tile(row, (len(iterations), 1))
    # The strategy that is chosen at iteration t is that of t + 1.
    result[:, 4] = self.threshold / _ZETA * (iterations + 1.0) ** -1.5
    return result

  def initial_local(self, game: CompiledGame) -> Float64s:
    """Returns the step sizes, shape (1, infosets)."""
    return self.steps[None]


@dataclasses.dataclass(frozen=True, eq=False)
class SubtreeOFTRL(LastLossOFTRL):
  """OFTRL that predicts the last gradient carried up with the new strategies below (Farina et al. 2019, (17))."""

  observe = observe_only

  @property
  def predict(self) -> Kernel:
    """The faster kernel, if nothing is dropped."""
    return predict_and_drop_some if self.threshold else predict_oftrl


@dataclasses.dataclass(frozen=True)
class Hedge(RegretMinimizer):
  """Multiplicative weights, each iteration with the step that is best for a horizon ending there.

      step^t = rate * sqrt(8 log(actions) / t) / payoff range

  which bounds the regret of an infoset of any reach by the range of its utilities times

      sqrt(2 T log(actions)) + sqrt(log(actions) / 8)

  (Cesa-Bianchi and Lugosi 2006, theorem 2.3). With a threshold C the first term grows by a factor of C at most, and
  iteration t drops the smallest probabilities, M_t = (C - 1) sqrt(log(actions) / (2 t)) in all: the sum of these up to
  T is no more than (C - 1) sqrt(2 T log(actions)).

  Attributes:
    rate: a factor on the steps.
    threshold: C, at least 1, which drops nothing.
  """

  rate: float = 1.0
  threshold: float = 1.0
  resume = resume_oftrl
  local_lines = 1

  def __post_init__(self) -> None:
    """Raises ArgumentError where the rate is not positive and finite, or the threshold is below 1 or not finite."""
    arguments.positive_number(self.rate, "rate")
    arguments.real_number(self.threshold, "threshold", 1.0, sys.float_info.max)

  @property
  def observe(self) -> Kernel:
    """The faster kernel, if nothing is dropped."""
    return observe_and_choose if self.threshold == 1.0 else observe_choose_and_drop

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns tie tolerance, no prediction, 1 / sqrt(t), entropy, M_t / sqrt(log(actions)); shape (iterations, 5)."""
    result = np.zeros((len(iterations), 5))
    result[:, 0] = relative_tie(game)
    # The strategy that is chosen at iteration t is that of t + 1, but has seen t utilities.
    result[:, 2] = 1.0 / np.sqrt(iterations)
    result[:, 4] = (self.threshold - 1.0) / np.sqrt(2.0 * (iterations + 1.0))
    return result

  def initial_local(self, game: CompiledGame) -> Float64s:
    """Returns the steps of the first iteration, shape (1, infosets)."""
    low, high = game.payoff_range
    scale = self.rate / (high - low) if high > low else 0.0
    actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
    return np.asarray(scale * np.sqrt(8.0 * np.log(actions)))[None]
