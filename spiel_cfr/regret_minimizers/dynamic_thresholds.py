"""Dynamic thresholding: Hedge that replaces its smallest probabilities by 0, so that subtrees can be pruned.

Brown, Kroer and Sandholm, "Dynamic Thresholding and Pruning for Regret Minimization" (2017). Here an infoset drops its
smallest probabilities up to a total mass M_t, and normalizes the rest. That costs a regret of at most M_t times the
range of utilities in iteration t. The cumulative regrets of Hedge are not changed, so the loss of T iterations is the
sum of these. The paper drops each probability up to M_t / actions^2: docs/theory/ours_and_theirs.md compares the two.
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
# Column of `Block.parameters`: the factor of the steps.
_FACTOR = 2
# Column of `Block.parameters` after those of Hedge: M_t / sqrt(log(actions)).
_DROPPED = 4
# Line of `Block.scratch` for values that are not used.
_UNUSED = 1


@inlined
def drop_smallest(block: Block, most: float) -> None:
  """Sets the smallest probabilities of each infoset to 0, up to a sum of `most`, and normalizes the rest."""
  for i in range(block.size):
    dropped = 0.0
    # The largest always stays.
    for _ in range(_ONE, block.actions):
      least, chosen = np.inf, sequence(block, np.uint64(0), i)
      for action in range(block.actions):
        row = sequence(block, action, i)
        probability = block.strategy[row]
        if 0.0 < probability < least:
          least, chosen = probability, row
      if dropped + least > most:
        break
      block.strategy[chosen] = 0.0
      dropped += least
    if dropped > 0.0:
      total = 0.0
      for action in range(block.actions):
        total += block.strategy[sequence(block, action, i)]
      for action in range(block.actions):
        block.strategy[sequence(block, action, i)] /= total


@block_kernel
def observe_choose_and_drop(block: Block) -> None:
  """Regret += utility - value; then the strategy of Hedge, without the smallest probabilities."""
  add_regrets(block)
  choose(block, block.scratch[_UNUSED])
  drop_smallest(block, block.parameters[_DROPPED] * np.sqrt(np.log(float(block.actions))))


@dataclasses.dataclass(frozen=True)
class ThresholdedHedge(RegretMinimizer):
  """Hedge with dynamic thresholding.

  Iteration t drops a mass of M_t = (C - 1) sqrt(log(actions) / (2 t)). The sum of these up to T is at most
  (C - 1) sqrt(2 T log(actions)), so the first term of the bound of `Hedge` grows by a factor of C at most.

  Attributes:
    threshold: C, at least 1; 1 drops nothing.
    rate: a factor of the steps, positive.
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
    """Returns rows of the parameters of Hedge and M_t / sqrt(log(actions))."""
    # Iteration t chooses the strategy of t + 1.
    dropped = (self.threshold - 1.0) / np.sqrt(2.0 * (iterations + 1.0))
    return np.column_stack([Hedge(self.rate).parameters(iterations, game), dropped])

  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    return Hedge(self.rate).initial_infoset_state(game)

  def gap(self, iteration: int, game: CompiledGame) -> Float64s:
    """Returns the difference from the largest regret at which Hedge plays an action with M / n^2, shape (infosets,).

    M is the mass of the iteration, n the number of actions. M / n^2 is the paper's threshold of a single action: all
    actions with larger differences together have a mass of at most M / n.
    """
    actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
    deciding = np.maximum(actions, 2)
    parameters = self.parameters(np.array([iteration]), game)[0]
    threshold = parameters[_DROPPED] * np.sqrt(np.log(deciding)) / deciding**2
    steps = self.initial_infoset_state(game)[0] * parameters[_FACTOR]
    with np.errstate(divide="ignore"):
      result: Float64s = np.maximum(-np.log(threshold), 0.0) / steps
    return np.where(actions > 1, result, np.inf)
