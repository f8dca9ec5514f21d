"""Optimistic follow-the-regularized-leader on the simplex, the minimizer of stable-predictive CFR, and Hedge.

    x^{t+1} = argmax over the simplex of  <x, m + sum of the utilities up to t> - R(x) / step

with m the utilities predicted for iteration t + 1, and R one of the `regularizers`. Farina, Kroer, Brown and
Sandholm, "Stable-Predictive Optimistic Counterfactual Regret Minimization" (2019), equation 10; Syrgkanis et al., "Fast
Convergence of Regularized Learning in Games" (2015). Hedge (Freund and Schapire 1997) is the entropy without a
prediction.

The argmax does not change when a constant is added to all utilities of an infoset. So the state is the cumulative
regret, which stays small when all utilities grow together, instead of the cumulative utility.
"""

import dataclasses

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.simd import load, store
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
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
# Lines of `Block.scratch`.
_STEPS, _UNUSED = 0, 1


@inlined
def add_regrets(block: Block) -> None:
  """Value = <strategy, utility>;  regret += utility - value."""
  regret = block.action_state[0]
  for i in lanes(block):
    value = expected_value(block, i)
    for action in range(block.actions):
      row = sequence(block, action, i)
      store(regret, row, load(regret, row) + load(block.utility, row) - value)


@inlined
def choose(block: Block, value: AnyFloats) -> None:
  """Strategy = argmax of <x, regret + weight * utility> - R(x) / step; writes its value to `value`."""
  steps, euclidean = block.scratch[_STEPS], block.parameters[_EUCLIDEAN] != 0.0
  for i in range(block.size):
    steps[i] = block.infoset_state[0, block.infoset + i]
  weight, factor = block.parameters[_WEIGHT], block.parameters[_FACTOR]
  play_regularized_leader(block, value, steps, factor, weight, euclidean, False)


@block_kernel
def observe_only(block: Block) -> None:
  """Regret += utility - value. `predict_oftrl` chooses the next strategy."""
  add_regrets(block)


@block_kernel
def predict_oftrl(block: Block) -> None:
  """Strategy = argmax of <x, regret + prediction> - R(x) / step."""
  choose(block, block.value)


@block_kernel
def observe_and_choose(block: Block) -> None:
  """Regret += utility - value;  strategy = argmax of <x, regret> - R(x) / step."""
  add_regrets(block)
  choose(block, block.scratch[_UNUSED])


@block_kernel
def resume_oftrl(block: Block) -> None:
  """Regret = gradient of R(strategy) / step, which makes that strategy the argmax without a prediction.

  The gradient is log(strategy), at least `least_exponent`, or the strategy itself. Regrets stay if the step is 0.
  """
  regret, least = block.action_state[0], least_exponent(block)
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      played, step = block.strategy[first + i], block.infoset_state[0, block.infoset + i]
      step *= block.parameters[_FACTOR]
      if step > 0.0:
        regret[first + i] = gradient_at(played, block.parameters[_EUCLIDEAN] != 0.0, least) / step


@dataclasses.dataclass(frozen=True, eq=False)
class OFTRL(RegretMinimizer):
  """OFTRL with constant steps. Its state is the cumulative regret.

  The prediction is the last gradient, carried up with the new strategies below (Farina et al. 2019, equation 17).

  Attributes:
    steps: float64 (infosets,). The step size of each infoset of all players; 0 keeps an infoset uniform.
    regularizer: "entropy" or "euclidean".
  """

  steps: Float64s
  regularizer: Regularizer = "entropy"
  observe = observe_only
  predict = predict_oftrl
  resume = resume_oftrl
  infoset_lines = 1

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns rows of the tie tolerance, the weight of the prediction, the factor of the steps, and the regularizer."""
    return parameter_rows(iterations, game, 1.0, 1.0, float(self.regularizer == "euclidean"))

  @typed
  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    """Returns the step sizes, shape (1, infosets)."""
    return self.steps[None]


@dataclasses.dataclass(frozen=True)
class Hedge(RegretMinimizer):
  """Multiplicative weights. The step of each iteration is the best one for a horizon at that iteration.

      step^t = rate * sqrt(8 log(actions) / t) / payoff range

  The regret of an infoset of any reach is at most the range of its utilities times

      sqrt(2 T log(actions)) + sqrt(log(actions) / 8)

  (Cesa-Bianchi and Lugosi 2006, theorem 2.3).

  Attributes:
    rate: a factor of the steps, positive.
  """

  rate: float = 1.0
  observe = observe_and_choose
  resume = resume_oftrl
  infoset_lines = 1

  def __post_init__(self) -> None:
    arguments.positive_number(self.rate, "rate")

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns rows of the tie tolerance, 0 for no prediction, 1 / sqrt(t), and 0 for the entropy."""
    # Iteration t chooses the strategy of t + 1, from t utilities.
    return parameter_rows(iterations, game, 0.0, 1.0 / np.sqrt(iterations), 0.0)

  @typed
  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    """Returns the steps of the first iteration, shape (1, infosets)."""
    actions = np.concatenate([tree.infoset_actions for tree in game.treeplexes])
    return np.asarray(self.scale(game.payoff_range) * np.sqrt(8.0 * np.log(actions)))[None]

  def scale(self, payoff_range: tuple[float, float]) -> float:
    """Returns rate / payoff range; 0, which keeps all strategies uniform, if all payoffs are the same."""
    low, high = payoff_range
    return self.rate / (high - low) if high > low else 0.0
