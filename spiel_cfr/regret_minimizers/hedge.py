"""Hedge, and dynamic thresholding: Hedge with its smallest probabilities replaced by 0, so that subtrees can be pruned.

Hedge (Freund and Schapire 1997) is follow-the-regularized-leader with the entropy, without a prediction: see `oftrl`.
Dynamic thresholding is from Brown, Kroer and Sandholm, "Dynamic Thresholding and Pruning for Regret Minimization"
(2017). Here an infoset drops its smallest probabilities up to a total mass M_t, and normalizes the rest. In iteration t
this costs a regret of at most M_t times the range of utilities. The cumulative regrets of Hedge do not change, so the
costs of all iterations add up. The paper drops every probability up to M_t / actions^2; docs/theory/ours_and_theirs.md
compares the two rules.
"""

import dataclasses
import sys

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel, sequence
from spiel_cfr.regret_minimizers.oftrl import (
  EUCLIDEAN,
  FACTOR,
  add_regrets,
  choose,
  resume_oftrl,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, parameter_rows

_ONE = np.uint64(1)
# The column of `Block.parameters` after those of `oftrl`: M_t / sqrt(log(actions)).
_DROPPED = 1 + EUCLIDEAN
# The line of `Block.scratch` for values that no caller reads.
_IGNORED_LINE = 1


@inlined
def drop_smallest(block: Block, most: float) -> None:
  """Sets the smallest probabilities of each infoset to 0, up to a sum of `most`, and normalizes the rest."""
  for i in range(block.size):
    dropped = 0.0
    # One action fewer than there are, so that the largest probability stays.
    for _ in range(_ONE, block.actions):
      smallest, smallest_at = np.inf, sequence(block, np.uint64(0), i)
      for action in range(block.actions):
        at = sequence(block, action, i)
        probability = block.strategy[at]
        if 0.0 < probability < smallest:
          smallest, smallest_at = probability, at
      if dropped + smallest > most:
        break
      block.strategy[smallest_at] = 0.0
      dropped += smallest
    if dropped > 0.0:
      total = 0.0
      for action in range(block.actions):
        total += block.strategy[sequence(block, action, i)]
      for action in range(block.actions):
        block.strategy[sequence(block, action, i)] /= total


@block_kernel
def observe_hedge(block: Block) -> None:
  """Adds the regrets: regret += utility - value;  strategy = argmax of <x, regret> - R(x) / step."""
  add_regrets(block)
  choose(block, block.scratch[_IGNORED_LINE])


@block_kernel
def observe_thresholded_hedge(block: Block) -> None:
  """Adds the regrets: regret += utility - value;  strategy = that of Hedge, without the smallest probabilities."""
  add_regrets(block)
  choose(block, block.scratch[_IGNORED_LINE])
  drop_smallest(block, block.parameters[_DROPPED] * np.sqrt(np.log(float(block.actions))))


@dataclasses.dataclass(frozen=True)
class Hedge(RegretMinimizer):
  """Hedge, or multiplicative weights. The step of iteration t is the best one for a run of t iterations.

      step^t = rate * sqrt(8 log(actions) / t) / payoff range

  With rate 1 and threshold 1, the regret of an infoset is at most the payoff range times

      sqrt(2 T log(actions)) + sqrt(log(actions) / 8)

  (Cesa-Bianchi and Lugosi 2006, theorem 2.3). With a threshold C > 1, the strategy of iteration t drops a mass of up to
  M_t = (C - 1) sqrt(log(actions) / (2 t)). The sum of M_t up to T is at most (C - 1) sqrt(2 T log(actions)). So the
  first term of the bound grows by at most a factor C.

  Attributes:
    rate: the factor on the steps, positive.
    threshold: C, at least 1. With 1, nothing is dropped.
  """

  rate: float = 1.0
  threshold: float = 1.0
  resume = resume_oftrl
  infoset_lines = 1

  def __post_init__(self) -> None:
    arguments.positive_number(self.rate, "rate")
    arguments.real_number(self.threshold, "threshold", 1.0, sys.float_info.max)

  @property
  def observe(self) -> StepKernel:
    return observe_hedge if self.threshold == 1.0 else observe_thresholded_hedge

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the tie tolerance, 0 for no prediction, 1 / sqrt(t), 0 for the entropy, and M / sqrt(log(actions))."""
    # Iteration t chooses the strategy of t + 1, from the utilities of t iterations.
    dropped = (self.threshold - 1.0) / np.sqrt(2.0 * (iterations + 1.0))
    return parameter_rows(iterations, game, 0.0, 1.0 / np.sqrt(iterations), 0.0, dropped)

  @typed
  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    """Returns the steps of the first iteration, shape (1, infosets)."""
    actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
    return np.asarray(self.scale(game.payoff_range) * np.sqrt(8.0 * np.log(actions)))[None]

  def scale(self, payoff_range: tuple[float, float]) -> float:
    """Returns rate / payoff range. If all payoffs are equal it is 0, so that all strategies stay uniform."""
    low, high = payoff_range
    return self.rate / (high - low) if high > low else 0.0

  def gap(self, iteration: int, game: CompiledGame) -> Float64s:
    """Returns how far below the largest regret of its infoset an action's regret must be to be dropped.

    At this distance, Hedge plays the action with probability M / n^2, with M the mass of the iteration and n the number
    of actions. That is the paper's threshold for a single action. All actions at larger distances together have a mass
    of at most M / n.

    Returns:
      float64 (infosets,). Infinity at infosets with a single action.

    Raises:
      ArgumentError: `iteration` is not a positive integer.
    """
    iteration = arguments.positive_integer(iteration, "iteration")
    actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
    at_least_two = np.maximum(actions, 2)
    parameters = self.parameters(np.array([iteration]), game)[0]
    threshold = parameters[_DROPPED] * np.sqrt(np.log(at_least_two)) / at_least_two**2
    steps = self.initial_infoset_state(game)[0] * parameters[FACTOR]
    with np.errstate(divide="ignore"):
      result: Float64s = np.maximum(-np.log(threshold), 0.0) / steps
    return np.where(actions > 1, result, np.inf)
