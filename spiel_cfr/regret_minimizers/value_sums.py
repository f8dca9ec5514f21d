"""Regret minimizers that also sum the values of infosets.

Pruning skips subtrees and later catches up with the skipped iterations. It needs the sums of values for that.
"""

import dataclasses

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel
from spiel_cfr.regret_minimizers.hedge import observe_thresholded_hedge
from spiel_cfr.regret_minimizers.regret_matching import regret_matching, regret_matching_plus
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Power

# The three kernels are written out: numba keeps machine code on disk by the name of a function at the top level of a
# module. A function that made a kernel of two others would return a closure, which is compiled at every start.
_match, _match_plus = inlined(regret_matching.function), inlined(regret_matching_plus.function)
_choose_and_drop = inlined(observe_thresholded_hedge.function)


@inlined
def _add_value(block: Block) -> None:
  """Adds the values: Z += w_t * value. Z is the last line of `infoset_state`, w_t the last parameter."""
  line, column = block.infoset_state.shape[0] - 1, block.parameters.shape[0] - 1
  weight = block.parameters[column]
  for i in range(block.size):
    block.infoset_state[line, block.infoset + i] += weight * block.value[i]


@block_kernel
def regret_matching_with_sums(block: Block) -> None:
  """Runs `regret_matching`, and adds the values: Z += w_t * value."""
  _match(block)
  _add_value(block)


@block_kernel
def regret_matching_plus_with_sums(block: Block) -> None:
  """Runs `regret_matching_plus`, and adds the values: Z += w_t * value."""
  _match_plus(block)
  _add_value(block)


@block_kernel
def thresholded_hedge_with_sums(block: Block) -> None:
  """Runs `observe_thresholded_hedge`, and adds the values: Z += w_t * value."""
  _choose_and_drop(block)
  _add_value(block)


# From the kernel of a minimizer to the one that also sums values.
_SUMMING_KERNELS: dict[StepKernel, StepKernel] = {
  regret_matching: regret_matching_with_sums,
  regret_matching_plus: regret_matching_plus_with_sums,
  observe_thresholded_hedge: thresholded_hedge_with_sums,
}


@dataclasses.dataclass(frozen=True)
class WithValueSums(RegretMinimizer):
  """A minimizer that also sums the values v^t of each infoset: Z = sum of w_t v^t. It plays the same strategies.

  Attributes:
    minimizer: regret matching, regret matching+, or Hedge with dynamic thresholding.
    weights: w_t, the weight of iteration t in the average.
  """

  minimizer: RegretMinimizer
  weights: Power
  # An infoset with a single action has the value of the sequence above it.
  visits_forced = False

  @property
  def observe(self) -> StepKernel:
    return _SUMMING_KERNELS[self.minimizer.observe]

  @property
  def infoset_lines(self) -> int:
    return self.minimizer.infoset_lines + 1

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the minimizer's parameters and w_t."""
    return np.column_stack([self.minimizer.parameters(iterations, game), self.weights(iterations)])

  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    first = self.minimizer.initial_infoset_state(game)
    return np.vstack([first, np.zeros((1, game.num_infosets))])
