"""Dynamic thresholding: Hedge with its smallest probabilities replaced by 0, so that subtrees can be pruned.

Brown, Kroer and Sandholm, "Dynamic Thresholding and Pruning for Regret Minimization" (2017). Here an infoset drops its
smallest probabilities up to a total mass M_t, and normalizes the rest. In iteration t this costs a regret of at most
M_t times the range of utilities. The cumulative regrets of Hedge do not change, so the costs of all iterations add up.
The paper drops every probability up to M_t / actions^2; docs/theory/ours_and_theirs.md compares the two rules.
"""

import dataclasses
import sys

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel, sequence
from spiel_cfr.regret_minimizers.oftrl import Hedge, add_regrets, choose, resume_oftrl
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer

_ONE = np.uint64(1)
# Columns of `Block.parameters`: the factor of Hedge's steps, and after Hedge's columns M_t / sqrt(log(actions)).
_FACTOR, _DROPPED = 2, 4
# Line of `Block.scratch` for values that no caller reads.
_IGNORED_VALUES = 1


@inlined
def drop_smallest(block: Block, most: float) -> None:
  """Sets the smallest probabilities of each infoset to 0, up to a sum of `most`, and normalizes the rest."""
  for i in range(block.size):
    dropped = 0.0
    # One action fewer than there are, so that the largest probability stays.
    for _ in range(_ONE, block.actions):
      smallest, smallest_row = np.inf, sequence(block, np.uint64(0), i)
      for action in range(block.actions):
        row = sequence(block, action, i)
        probability = block.strategy[row]
        if 0.0 < probability < smallest:
          smallest, smallest_row = probability, row
      if dropped + smallest > most:
        break
      block.strategy[smallest_row] = 0.0
      dropped += smallest
    if dropped > 0.0:
      total = 0.0
      for action in range(block.actions):
        total += block.strategy[sequence(block, action, i)]
      for action in range(block.actions):
        block.strategy[sequence(block, action, i)] /= total


@block_kernel
def observe_choose_and_drop(block: Block) -> None:
  """Regret += utility - value;  strategy = that of Hedge, without the smallest probabilities."""
  add_regrets(block)
  choose(block, block.scratch[_IGNORED_VALUES])
  drop_smallest(block, block.parameters[_DROPPED] * np.sqrt(np.log(float(block.actions))))


@dataclasses.dataclass(frozen=True)
class ThresholdedHedge(RegretMinimizer):
  """Hedge with dynamic thresholding.

  The strategy of iteration t drops a mass of up to M_t = (C - 1) sqrt(log(actions) / (2 t)). The sum of M_t up to T is
  at most (C - 1) sqrt(2 T log(actions)). So the first term of the regret bound of `Hedge` grows by at most a factor C.

  Attributes:
    threshold: C, at least 1. With 1, nothing is dropped.
    rate: the factor on the steps, positive.
  """

  threshold: float = 2.0
  rate: float = 1.0
  observe = observe_choose_and_drop
  resume = resume_oftrl
  infoset_lines = 1

  def __post_init__(self) -> None:
    arguments.real_number(self.threshold, "threshold", 1.0, sys.float_info.max)
    arguments.positive_number(self.rate, "rate")

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the parameters of Hedge, and M / sqrt(log(actions)) for the next strategy."""
    # Iteration t chooses the strategy of t + 1.
    dropped = (self.threshold - 1.0) / np.sqrt(2.0 * (iterations + 1.0))
    return np.column_stack([Hedge(self.rate).parameters(iterations, game), dropped])

  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    return Hedge(self.rate).initial_infoset_state(game)

  def gap(self, iteration: int, game: CompiledGame) -> Float64s:
    """Returns how far below the largest regret of its infoset an action's regret must be to be dropped.

    At this distance, Hedge plays the action with probability M / n^2, with M the mass of the iteration and n the number
    of actions. That is the paper's threshold for a single action. All actions at larger distances together have a mass
    of at most M / n.

    Returns:
      float64 (infosets,). Infinity at infosets with a single action.
    """
    actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
    at_least_two = np.maximum(actions, 2)
    parameters = self.parameters(np.array([iteration]), game)[0]
    threshold = parameters[_DROPPED] * np.sqrt(np.log(at_least_two)) / at_least_two**2
    steps = self.initial_infoset_state(game)[0] * parameters[_FACTOR]
    with np.errstate(divide="ignore"):
      result: Float64s = np.maximum(-np.log(threshold), 0.0) / steps
    return np.where(actions > 1, result, np.inf)
