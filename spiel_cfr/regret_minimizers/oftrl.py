"""Optimistic follow-the-regularized-leader (OFTRL), the minimizer of stable-predictive CFR.

    x^{t+1} = argmax over the simplex of  <x, m^{t+1} + sum over s <= t of u^s> - R(x) / step

u^s are the counterfactual utilities of iteration s, m^{t+1} those predicted for iteration t + 1, and R is one of the
`regularizers`. This is equation (10) of Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual
Regret Minimization" (2019), with utilities instead of losses. See also Syrgkanis et al., "Fast Convergence of
Regularized Learning in Games" (2015).

The kernels keep the cumulative regret instead of the cumulative utility. The argmax is the same, because it does not
change when a constant is added to all utilities of an infoset. And regrets stay small when all utilities grow together.
"""

import dataclasses

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.simd import load, store
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  sequence,
  vector_starts,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, parameter_rows
from spiel_cfr.regret_minimizers.regularizers import (
  Regularizer,
  gradient_at,
  least_exponent,
  play_regularized_leader,
)

# Columns of `Block.parameters` after the tie tolerance: the weight of the prediction, the factor of the steps, and the
# regularizer, 1 for Euclidean or 0 for entropy. `hedge` adds a column.
WEIGHT, FACTOR, EUCLIDEAN = range(1, 4)
# The line of `Block.scratch` with step sizes.
_STEPS = 0


@inlined
def add_regrets(block: Block) -> None:
  """Adds the regrets of a block: value = <strategy, utility>;  regret += utility - value."""
  regret = block.action_state[0]
  for i in vector_starts(block):
    value = expected_value(block, i)
    for action in range(block.actions):
      at = sequence(block, action, i)
      store(regret, at, load(regret, at) + load(block.utility, at) - value)


@inlined
def choose(block: Block, value: AnyFloats) -> None:
  """Chooses the strategy: argmax of <x, regret + weight * utility> - R(x) / step;  value = <strategy, utility>."""
  steps, euclidean = block.scratch[_STEPS], block.parameters[EUCLIDEAN] != 0.0
  for i in range(block.size):
    steps[i] = block.infoset_state[0, block.infoset + i]
  weight, factor = block.parameters[WEIGHT], block.parameters[FACTOR]
  play_regularized_leader(block, value, steps, factor, weight, euclidean, False)


@block_kernel
def observe_oftrl(block: Block) -> None:
  """Adds the regrets: regret += utility - value. `predict_oftrl` then chooses the next strategy."""
  add_regrets(block)


@block_kernel
def predict_oftrl(block: Block) -> None:
  """Chooses the strategy: argmax of <x, regret + prediction> - R(x) / step."""
  choose(block, block.value)


@block_kernel
def resume_oftrl(block: Block) -> None:
  """Sets regrets with which the strategy is the argmax without a prediction: regret = gradient of R there / step.

  The gradient is log(strategy), cut at `least_exponent`, or the strategy itself. Where the step is 0, regrets stay.
  """
  regret, least = block.action_state[0], least_exponent(block)
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      probability = block.strategy[first + i]
      step = block.infoset_state[0, block.infoset + i] * block.parameters[FACTOR]
      if step > 0.0:
        gradient = gradient_at(probability, block.parameters[EUCLIDEAN] != 0.0, least)
        regret[first + i] = gradient / step


@dataclasses.dataclass(frozen=True, eq=False)
class OFTRL(RegretMinimizer):
  """OFTRL with constant steps; the state is the cumulative regret.

  The prediction is the last gradient, propagated up the tree with the next strategies of the infosets below (Farina et
  al. 2019, equation 17).

  Attributes:
    steps: float64 (infosets of all players,). The step sizes; an infoset with step 0 stays uniform.
    regularizer: "entropy" or "euclidean".
  """

  steps: Float64s
  regularizer: Regularizer = "entropy"
  observe = observe_oftrl
  predict = predict_oftrl
  resume = resume_oftrl
  infoset_lines = 1

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns rows with the columns of this module: predictions have weight 1, and steps are constant."""
    return parameter_rows(iterations, game, 1.0, 1.0, float(self.regularizer == "euclidean"))

  @typed
  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    """Returns the step sizes, shape (1, infosets)."""
    return self.steps[None]
