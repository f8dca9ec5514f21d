"""Optimistic follow-the-regularized-leader (OFTRL), the minimizer of stable-predictive CFR, and Hedge.

    x^{t+1} = argmax over the simplex of  <x, m^{t+1} + sum over s <= t of u^s> - R(x) / step

u^s are the counterfactual utilities of iteration s, m^{t+1} those predicted for iteration t + 1, and R is one of the
`regularizers`. This is equation (10) of Farina, Kroer, Brown and Sandholm, "Stable-Predictive Optimistic Counterfactual
Regret Minimization" (2019), with utilities instead of losses. See also Syrgkanis et al., "Fast Convergence of
Regularized Learning in Games" (2015). Hedge (Freund and Schapire 1997) has the entropy and no prediction.

The kernels keep the cumulative regret instead of the cumulative utility. The argmax is the same, because it does not
change when a constant is added to all utilities of an infoset. And regrets stay small when all utilities grow together.
"""

import dataclasses

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.simd import load, store
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  lanes,
  sequence,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, parameter_rows
from spiel_cfr.regret_minimizers.regularizers import (
  Regularizer,
  gradient_at,
  least_exponent,
  play_regularized_leader,
)

# Columns of `Block.parameters` after the tie tolerance: the weight of the prediction, the factor of the steps, the
# regularizer.
_WEIGHT, _FACTOR, _EUCLIDEAN = 1, 2, 3
# Lines of `Block.scratch`: step sizes, and values that no caller reads.
_STEPS, _IGNORED_VALUES = 0, 1


@inlined
def add_regrets(block: Block) -> None:
  """Value = <strategy, utility>;  regret += utility - value, for all infosets of a block."""
  regret = block.action_state[0]
  for i in lanes(block):
    value = expected_value(block, i)
    for action in range(block.actions):
      row = sequence(block, action, i)
      store(regret, row, load(regret, row) + load(block.utility, row) - value)


@inlined
def choose(block: Block, value: AnyFloats) -> None:
  """Strategy = argmax of <x, regret + weight * utility> - R(x) / step;  value = <strategy, utility>."""
  steps, euclidean = block.scratch[_STEPS], block.parameters[_EUCLIDEAN] != 0.0
  for i in range(block.size):
    steps[i] = block.infoset_state[0, block.infoset + i]
  weight, factor = block.parameters[_WEIGHT], block.parameters[_FACTOR]
  play_regularized_leader(block, value, steps, factor, weight, euclidean, False)


@block_kernel
def observe_only(block: Block) -> None:
  """Regret += utility - value. `predict_oftrl` then chooses the next strategy."""
  add_regrets(block)


@block_kernel
def predict_oftrl(block: Block) -> None:
  """Strategy = argmax of <x, regret + prediction> - R(x) / step."""
  choose(block, block.value)


@block_kernel
def observe_and_choose(block: Block) -> None:
  """Regret += utility - value;  strategy = argmax of <x, regret> - R(x) / step."""
  add_regrets(block)
  choose(block, block.scratch[_IGNORED_VALUES])


@block_kernel
def resume_oftrl(block: Block) -> None:
  """Regret = gradient of R at the strategy / step, so that the strategy is the argmax without a prediction.

  The gradient is log(strategy), cut at `least_exponent`, or the strategy itself. Where the step is 0, regrets stay.
  """
  regret, least = block.action_state[0], least_exponent(block)
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      probability = block.strategy[first + i]
      step = block.infoset_state[0, block.infoset + i] * block.parameters[_FACTOR]
      if step > 0.0:
        gradient = gradient_at(probability, block.parameters[_EUCLIDEAN] != 0.0, least)
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
  observe = observe_only
  predict = predict_oftrl
  resume = resume_oftrl
  infoset_lines = 1

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the tie tolerance, the weight of the prediction, the factor of the steps, and the regularizer."""
    return parameter_rows(iterations, game, 1.0, 1.0, float(self.regularizer == "euclidean"))

  @typed
  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    """Returns the step sizes, shape (1, infosets)."""
    return self.steps[None]


@dataclasses.dataclass(frozen=True)
class Hedge(RegretMinimizer):
  """Hedge, or multiplicative weights. The step of iteration t is the best one for a run of t iterations.

      step^t = rate * sqrt(8 log(actions) / t) / payoff range

  With rate 1, the regret of an infoset is at most the payoff range times

      sqrt(2 T log(actions)) + sqrt(log(actions) / 8)

  (Cesa-Bianchi and Lugosi 2006, theorem 2.3).

  Attributes:
    rate: the factor on the steps, positive.
  """

  rate: float = 1.0
  observe = observe_and_choose
  resume = resume_oftrl
  infoset_lines = 1

  def __post_init__(self) -> None:
    arguments.positive_number(self.rate, "rate")

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the tie tolerance, 0 for no prediction, 1 / sqrt(t), and 0 for the entropy."""
    # Iteration t chooses the strategy of t + 1, from the utilities of t iterations.
    return parameter_rows(iterations, game, 0.0, 1.0 / np.sqrt(iterations), 0.0)

  @typed
  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    """Returns the steps of the first iteration, shape (1, infosets)."""
    actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
    return np.asarray(self.scale(game.payoff_range) * np.sqrt(8.0 * np.log(actions)))[None]

  def scale(self, payoff_range: tuple[float, float]) -> float:
    """Returns rate / payoff range. If all payoffs are equal it is 0, so that all strategies stay uniform."""
    low, high = payoff_range
    return self.rate / (high - low) if high > low else 0.0
