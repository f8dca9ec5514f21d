"""Regrets for a warm start from a policy, as if a solver had played it for T iterations: theory and kernels.

Brown and Sandholm, "Strategy-Based Warm Starting for Regret Minimization in Games" (2016). A backward pass computes the
counterfactual utilities u against the policy xbar, with freely chosen values v(j) of the infosets. Regrets T (u - v)
must meet two conditions. They are at most as large as T iterations may leave them. And some history of play explains
them: the values at the roots sum to the expected payoffs of xbar (see `games.compiled.counterfactual_values`). Two
choices of v meet both conditions:

    substitute:    sum_a max(u(ja) - v(j), 0)^2 = c D_j^2 |A_j|           regrets T (u - v)
    proportional:  v(j) = max_a (u(ja) - rho s_j xbar(a|j))               regrets T rho s_j xbar(a|j)

Here D_j is the best minus the worst value of infoset j to its owner against xbar, and s_j = sqrt(D_j times the range
of payoffs). The scale, c or rho, is the root c* or rho* of the second condition. "substitute" keeps the differences
between actions against xbar; after "proportional", the next strategy is xbar. docs/theory/rewriting_history.md has
proofs, and the reasons for the weights D_j.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy  # its `optimize` is imported when it is used

from spiel_cfr._numba.arrays import Float64s, aligned, aligned_zeros
from spiel_cfr._numba.simd import LANES
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expected, gradients
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel, sequence
from spiel_cfr.regret_minimizers.regret_minimizer import tie_tolerances

# After t iterations of CFR with simultaneous updates, c* is about STEADY / t. c* is about proportional to the square of
# NashConv. In solvers whose NashConv falls like 1 / t, c* is therefore about STEADY / t^2.
STEADY = 0.03
# The most iterations that a policy counts for, however good it is.
MOST = 10**6
# The scale of the proportional form in multiples of rho*. A larger scale meets the conditions too. It keeps infosets
# from forgetting their strategy at once.
AMPLE = 10.0
# The largest scale that the search for a root tries.
_LARGEST = 4.0
# The line of `Block.infoset_state` with the weights of infosets.
_WEIGHT = 0


@block_kernel
def add_best(block: Block) -> None:
  """Adds the best values: value = max_a utility;  weight += value."""
  for i in range(block.size):
    best = -np.inf
    for action in range(block.actions):
      best = max(best, block.utility[sequence(block, action, i)])
    block.value[i] = best
    block.infoset_state[_WEIGHT, block.infoset + i] += best


@block_kernel
def substitute(block: Block) -> None:
  """State = utility - value, where value solves sum_a max(utility - value, 0)^2 = c * weight^2 * actions."""
  regret, c = block.action_state[0], block.parameters[0]
  for i in range(block.size):
    weight = block.infoset_state[_WEIGHT, block.infoset + i]
    target = c * weight * weight * block.actions
    best = -np.inf
    for action in range(block.actions):
      best = max(best, block.utility[sequence(block, action, i)])
    # At this first value the best action alone makes the sum of squares at least the target. The sum is convex and
    # falls with the value, so Newton's method rises to the root and never passes it.
    value = best - np.sqrt(target)
    for _ in range(64):
      gain_sum = square_sum = 0.0
      for action in range(block.actions):
        gain = max(block.utility[sequence(block, action, i)] - value, 0.0)
        gain_sum += gain
        square_sum += gain * gain
      if square_sum <= target or gain_sum <= 0.0:
        break
      higher = value + (square_sum - target) / (2.0 * gain_sum)
      if higher <= value:
        break
      value = higher
    block.value[i] = value
    for action in range(block.actions):
      at = sequence(block, action, i)
      regret[at] = block.utility[at] - value


@block_kernel
def proportional(block: Block) -> None:
  """Writes the best value: max_a (utility - regret), regret = rho sqrt(weight * payoff range) strategy = state."""
  rho, payoff_range = block.parameters[0], block.parameters[1]
  for i in range(block.size):
    weight = rho * np.sqrt(block.infoset_state[_WEIGHT, block.infoset + i] * payoff_range)
    value = -np.inf
    for action in range(block.actions):
      at = sequence(block, action, i)
      block.action_state[0, at] = weight * block.strategy[at]
      value = max(value, block.utility[at] - block.action_state[0, at])
    block.value[i] = value


class PolicyValues(NamedTuple):
  """A policy, and its values to the players, which `regrets_at` turns into regrets.

  Attributes:
    game: the game.
    probabilities: float64 (sequences,). The policy in behavioral form.
    sequence_form: float64 (sequences,). The policy in sequence form.
    gradient: float64 (sequences,). The gradient of each player against the policy of the others.
    expected: the sum of the players' expected payoffs.
    weights: float64 (1, infosets + padding). D_j, see the module.
    nash_conv: the NashConv of the policy.
  """

  game: CompiledGame
  probabilities: Float64s
  sequence_form: Float64s
  gradient: Float64s
  expected: float
  weights: Float64s
  nash_conv: float

  def regrets_at(self, block_kernel: StepKernel, scale: float) -> tuple[Float64s, float]:
    """Returns regrets divided by T at a scale, c or rho, and the excess of the values at the roots.

    The regrets have the shape (sequences,). The excess is the sum of the values at the roots minus `expected`.
    """
    utility, regrets = aligned(self.gradient), aligned_zeros(1, self.game.end)
    low, high = self.game.payoff_range
    roots = backward_pass(
      self.game,
      block_kernel,
      utility,
      strategy=self.probabilities,
      state=regrets,
      infoset_state=self.weights,
      parameters=np.array([scale, high - low]),
    )
    return regrets[0], float(roots.sum()) - self.expected

  def least_scale(self, block_kernel: StepKernel) -> float:
    """Returns c* or rho*: the smallest scale, up to a positive lower bound, at which there is no excess."""
    # c scales like rho squared.
    least = STEADY / MOST if block_kernel is substitute else math.sqrt(STEADY / MOST)
    return _root(lambda scale: self.regrets_at(block_kernel, scale)[1], least, _LARGEST)


def policy_values(
  game: CompiledGame, probabilities: Float64s, sequence_form: Float64s
) -> PolicyValues:
  """Computes the values of a policy, with one gradient and two backward passes for each player."""
  gradient = gradients(game, sequence_form)
  # Kernels may read whole vectors.
  weights = aligned_zeros(1, game.num_infosets + LANES)
  payoff_sum = expected(game, gradient, sequence_form)
  # The worst value is minus the best value against the opposite gradient. So two passes sum to the difference D_j.
  backward_pass(game, add_best, aligned(-gradient), infoset_state=weights)
  best_values = backward_pass(game, add_best, aligned(gradient), infoset_state=weights)
  nash_conv = float(best_values.sum()) - payoff_sum
  differences = weights[0, : game.num_infosets]
  differences[differences < tie_tolerances(game)] = 0.0
  return PolicyValues(game, probabilities, sequence_form, gradient, payoff_sum, weights, nash_conv)


class WarmStart(NamedTuple):
  """A warm start, as planned by `warm_start.plan`.

  Attributes:
    form: "substitute" or "proportional", see `substitute_regrets`.
    iterations: T, the number of iterations that the policy counts for.
    nash_conv: the NashConv of the policy.
    scale: c* for "substitute", the scale rho for "proportional".
  """

  form: str
  iterations: int
  nash_conv: float
  scale: float


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
  """Returns the least number from `low` to `high`, up to rounding, at which a falling function is at most 0."""
  if excess(low) <= 0:
    return low
  if excess(high) > 0:
    return high
  precision = np.finfo(np.float64).eps
  logarithm = scipy.optimize.brentq(
    lambda logarithm: excess(math.exp(logarithm)),
    math.log(low),
    math.log(high),
    xtol=precision,
    rtol=4 * precision,
  )
  result, step = math.exp(logarithm), precision
  while excess(result) > 0:
    result, step = result * (1 + step), 2 * step
  return result
