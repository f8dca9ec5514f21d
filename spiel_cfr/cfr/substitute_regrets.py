"""Regrets of a warm start from a policy, as if a solver had played it for T iterations: theory and kernels.

Brown and Sandholm, "Strategy-Based Warm Starting for Regret Minimization in Games" (2016). Against the policy xbar the
counterfactual utilities u are carried up from values v(j) that are chosen freely. The regrets T (u - v) must meet two
conditions. They are at most those that T iterations may leave. And their history is consistent: the values at the roots
sum to the expected payoffs of xbar (see `games.compiled.counterfactual_values`). Two choices of v meet them:

    substitute:    sum_a max(u(ja) - v(j), 0)^2 = c D_j^2 |A_j|           regrets T (u - v)
    proportional:  v(j) = max_a (u(ja) - rho s_j xbar(a|j))               regrets T rho s_j xbar(a|j)

D_j is the best minus the worst value of infoset j to its owner against xbar, s_j = sqrt(D_j times the range of
payoffs), and c or rho is the root of the second condition. The first choice keeps the values of other actions against
xbar; the second goes on playing xbar. docs/theory/rewriting_history.md has proofs, and the reasons for the weights.
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

# The limit of t c* in CFR with simultaneous updates: after t iterations from scratch c* is about STEADY / t. As c* is
# about the square of NashConv, in solvers whose NashConv falls like 1 / t the limit of t^2 c* is about the same.
STEADY = 0.03
# The most iterations that a policy counts for, however good it is.
MOST = 10**6
# The scale of the proportional form, in multiples of the least scale, which is right at the roots. A larger scale is
# right too, and keeps infosets from forgetting their strategy.
AMPLE = 10.0
_LARGEST = 4.0
# The line of `Block.infoset_state` with the weights of infosets.
_WEIGHT = 0


@block_kernel
def add_best(block: Block) -> None:
  """Value = max_a utility;  weight += value."""
  for i in range(block.size):
    best = -np.inf
    for action in range(block.actions):
      best = max(best, block.utility[sequence(block, action, i)])
    block.value[i] = best
    block.infoset_state[_WEIGHT, block.infoset + i] += best


@block_kernel
def substitute(block: Block) -> None:
  """Value solves sum_a max(utility - value, 0)^2 = c weight^2 actions;  state = utility - value."""
  regret, c = block.action_state[0], block.parameters[0]
  for i in range(block.size):
    weight = block.infoset_state[_WEIGHT, block.infoset + i]
    wanted = c * weight * weight * block.actions
    top = -np.inf
    for action in range(block.actions):
      top = max(top, block.utility[sequence(block, action, i)])
    # At this value the best action alone makes the sum at least as large as wanted. The sum is convex and falls with
    # the value, so Newton's method rises to the root and never passes it.
    value = top - np.sqrt(wanted)
    for _ in range(64):
      total = square = 0.0
      for action in range(block.actions):
        over = max(block.utility[sequence(block, action, i)] - value, 0.0)
        total += over
        square += over * over
      if square <= wanted or total <= 0.0:
        break
      higher = value + (square - wanted) / (2.0 * total)
      if higher <= value:
        break
      value = higher
    block.value[i] = value
    for action in range(block.actions):
      row = sequence(block, action, i)
      regret[row] = block.utility[row] - value


@block_kernel
def proportional(block: Block) -> None:
  """Value = max_a (utility - rho sqrt(weight range) strategy);  state = rho sqrt(weight range) strategy."""
  rho, payoffs = block.parameters[0], block.parameters[1]
  for i in range(block.size):
    weight, value = (
      rho * np.sqrt(block.infoset_state[_WEIGHT, block.infoset + i] * payoffs),
      -np.inf,
    )
    for action in range(block.actions):
      row = sequence(block, action, i)
      block.action_state[0, row] = weight * block.strategy[row]
      value = max(value, block.utility[row] - block.action_state[0, row])
    block.value[i] = value


class PolicyValues(NamedTuple):
  """Values of a policy.

  Attributes:
    game: the game.
    probabilities: float64 (sequences,). The policy in behavioral form.
    sequence_form: float64 (sequences,). The policy in sequence form.
    gradient: float64 (sequences,). The value of each sequence against the policy.
    expected: the sum of the players' expected payoffs.
    weights: float64 (1, infosets). D_j.
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
    """Returns regrets at a scale, c or rho, shape (sequences,), and the excess of the values at the roots."""
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
    """Returns the least scale, c or rho, at which the values at the roots are not too large; always positive."""
    # c has the unit of rho squared.
    least = STEADY / MOST if block_kernel is substitute else math.sqrt(STEADY / MOST)
    return _root(lambda scale: self.regrets_at(block_kernel, scale)[1], least, _LARGEST)


def policy_values(
  game: CompiledGame, probabilities: Float64s, sequence_form: Float64s
) -> PolicyValues:
  """Returns the values of a policy: one gradient and two backward passes a player."""
  gradient = gradients(game, sequence_form)
  # Kernels may read whole vectors.
  weights = aligned_zeros(1, game.num_infosets + LANES)
  in_all = expected(game, gradient, sequence_form)
  # The worst value is minus the best value against the opposite gradient.
  backward_pass(game, add_best, aligned(-gradient), infoset_state=weights)
  nash_conv = (
    float(backward_pass(game, add_best, aligned(gradient), infoset_state=weights).sum()) - in_all
  )
  ranges = weights[0, : game.num_infosets]
  ranges[ranges < tie_tolerances(game)] = 0.0
  return PolicyValues(game, probabilities, sequence_form, gradient, in_all, weights, nash_conv)


class WarmStart(NamedTuple):
  """The result of a warm start.

  Attributes:
    form: "substitute" or "proportional".
    iterations: T, the number of iterations that the policy counts for.
    nash_conv: the NashConv of the policy.
    scale: the root c* or, for "proportional", rho.
  """

  form: str
  iterations: int
  nash_conv: float
  scale: float


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
  """Returns the least number from `low` to `high`, up to rounding, at which a falling function is not positive."""
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
