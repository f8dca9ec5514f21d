"""Regularizers of the simplex, entropy and Euclidean, and the strategies that maximize regularized scores.

With s the scores of an infoset's actions, such as their cumulative regrets:

    entropy      R(x) = sum x log x         argmax <x, s> - R(x) / step = softmax of step s
    euclidean    R(x) = ||x||_2^2 / 2       argmax <x, s> - R(x) / step = projection of step s on the simplex

Exponentials are computed in vector instructions, within two units in the last place. Projections use Michelot's
algorithm (1986).
"""

from typing import Any, Literal, TypeAlias

import numpy as np

from spiel_cfr._numba import simd
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.simd import add_multiple, full, load, store, where_greater
from spiel_cfr.games.sequence_form.blocks import Block, sequence, vector_starts

Regularizer: TypeAlias = Literal["entropy", "euclidean"]

# The sum of this constant and a number below 2^51 (2^22 in float32) has the nearest integer in its last bits.
_ROUND, _SINGLE_ROUND = 1.5 * 2.0**52, 1.5 * 2.0**23
_LOG2_E = 1.4426950408889634
# ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
_LN_2_HIGH = 6.93147180369123816490e-01
_LN_2_LOW = 1.90821492927058770002e-10
_SINGLE_LN_2_HIGH = 0.693359375
_SINGLE_LN_2_LOW = -2.12194440054690583e-4
# The logarithm of the smallest probability that is played: e^-100 < 4e-44, and e^-30 < 1e-13 in float32. Products of a
# few such probabilities are still normal numbers; arithmetic with subnormal numbers is slow.
LEAST_EXPONENT, _SINGLE_LEAST_EXPONENT = -100.0, -30.0


def regularizer_range(regularizer: Regularizer, actions: Int64s) -> Float64s:
  """Returns the range of R, max R - min R, on the simplex of n actions: log n, or (1 - 1/n) / 2.

  Args:
    regularizer: "entropy" or "euclidean".
    actions: int64 (infosets,). The number of actions n of each infoset.

  Returns:
    float64 (infosets,).
  """
  result: Float64s = np.log(actions) if regularizer == "entropy" else (1.0 - 1.0 / actions) / 2.0
  return result


@inlined
def exponential(x: Any) -> Any:
  """Returns e^x for a vector of numbers from -708 to 0 (from -87 in float32).

  With x = k ln 2 + r and |r| <= ln 2 / 2, e^x = 2^k e^r. The Taylor series of e^r ends at r^13, with an error below
  5e-18 (at r^7 in float32, with an error below 6e-9).
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
  """Returns the logarithm of the smallest probability that is played, in the precision of the block."""
  return _SINGLE_LEAST_EXPONENT if simd.is_single(block.strategy) else LEAST_EXPONENT


@inlined
def project(strategy: AnyFloats, first: int, stride: int, actions: int) -> None:
  """Projects the scores of a vector of infosets on the simplex, in place.

  The projection of scores y is max(y - threshold, 0), with the threshold that makes the sum 1. Michelot's algorithm
  (1986) begins with a low threshold. It assumes that all entries above the threshold stay positive, and computes the
  threshold that makes their sum 1. It repeats this until the threshold stops rising.

  Args:
    strategy: the scores, replaced by the projection. The largest score of an infoset must be 0, and none below -1.
    first: the entry of action 0 at the first infoset.
    stride: the distance from one action's entry to the next action's.
    actions: the number of actions.
  """
  zero, one = full(0.0), full(1.0)
  # The threshold is never below -1, the least entry.
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
    at = first + action * stride
    left = load(strategy, at) - threshold
    store(strategy, at, where_greater(left, zero, left, zero))


@inlined
def project_shifted(block: Block, i: int, scores: AnyFloats, top: Any) -> None:
  """Projects the scores of vector i on the simplex, in place.

  Args:
    block: the block.
    i: the first infoset of the vector.
    scores: float array (sequences,). The scores, replaced by the projection.
    top: the largest score of each infoset of the vector.
  """
  least = full(-1.0)
  for action in range(block.actions):
    at = sequence(block, action, i)
    shifted = load(scores, at) - top
    store(scores, at, where_greater(shifted, least, shifted, least))
  project(scores, block.first + i, block.stride, block.actions)


@inlined
def normalize_exponentials(block: Block, i: int) -> Any:
  """Normalizes vector i: strategy = exp(strategy) / its sum, with entries from -708 to 0. Returns the value."""
  total = value = full(0.0)
  for action in range(block.actions):
    at = sequence(block, action, i)
    weight = exponential(load(block.strategy, at))
    store(block.strategy, at, weight)
    total = total + weight
    value = value + weight * load(block.utility, at)
  share = full(1.0) / total
  for action in range(block.actions):
    at = sequence(block, action, i)
    store(block.strategy, at, load(block.strategy, at) * share)
  return value * share


@inlined
def play_regularized_leader(
  block: Block,
  value: AnyFloats,
  steps: AnyFloats,
  factor: float,
  weight: float,
  euclidean: bool,
  centered: bool,
) -> None:
  """Chooses the strategies of a block: argmax of <x, regret + weight * utility> - R(x) / step.

  If `centered`, the Bregman divergence of R from a center replaces R.

  Args:
    block: the infosets. The first line of `action_state` is the cumulative regret, `utility` has the prediction. If
      `centered`, the third line of `action_state` is the gradient of R at the center.
    value: shape (`CHUNK`,). Filled with the value of each infoset's new strategy under the prediction.
    steps: shape (`CHUNK`,). The step size of each infoset, without `factor`.
    factor: the factor on all step sizes.
    weight: the weight of the prediction.
    euclidean: True for the Euclidean regularizer, False for the entropy.
    centered: True if infosets have centers.
  """
  regret, strategy, multiple, zero = block.action_state[0], block.strategy, full(factor), full(0.0)
  # Scores this far below the largest, or farther, have probability 0 (euclidean) or almost 0 (entropy).
  least = full(-1.0 if euclidean else least_exponent(block))
  for i in vector_starts(block):
    top, step = full(-np.inf), load(steps, i) * multiple
    for action in range(block.actions):
      at = sequence(block, action, i)
      score = add_multiple(load(regret, at), load(block.utility, at), weight)
      if centered:
        # With a step of 0, all actions have the same score, whatever the center.
        inverse = where_greater(step, zero, full(1.0) / step, zero)
        score = score + load(block.action_state[2], at) * inverse
      store(strategy, at, score)
      top = where_greater(score, top, score, top)
    for action in range(block.actions):
      at = sequence(block, action, i)
      score = step * (load(strategy, at) - top)
      store(strategy, at, where_greater(score, least, score, least))
    if euclidean:
      project(strategy, block.first + i, block.stride, block.actions)
      total = full(0.0)
      for action in range(block.actions):
        at = sequence(block, action, i)
        total = total + load(strategy, at) * load(block.utility, at)
    else:
      total = normalize_exponentials(block, i)
    store(value, i, total)


@inlined
def gradient_at(probability: float, euclidean: bool, least: float) -> float:
  """Returns the derivative of R at an action's probability.

  It is the probability (euclidean), or its logarithm, cut at `least` (entropy, without the constant 1).
  """
  if euclidean:
    return probability
  return max(np.log(probability), least) if probability > 0.0 else least
