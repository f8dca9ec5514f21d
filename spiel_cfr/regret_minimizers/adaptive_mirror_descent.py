"""Adaptive optimistic mirror descent: steps that come from the errors of the predictions seen so far.

At an infoset, with u^t the counterfactual utilities of iteration t, h^t the same gradient carried up with the new
strategies below, h^0 = 0, V_0 = 0, P subtracting the mean over the actions, z^1 = x^1 uniform,

    d_t     = (t - 1)^forgetting / ((t - 1)^forgetting + forgetting_offset)
    V_t     = d_t^2 V_{t-1} + ||P(u^t - h^{t-1})||^2
    step_t  = step / sqrt(V_t), or 0 while V_t is 0
    z^{t+1} = projection of z^t + step_t u^t on the simplex
    x^{t+1} = projection of z^{t+1} + prediction step_t h^t on the simplex

Neither the unit of the payoffs nor the number of iterations enters.
"""

import dataclasses
import sys

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  lanes,
  sequence,
  tolerance,
)
from spiel_cfr.regret_minimizers.oftrl import project
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, relative_tie

# Lines of `Block.scratch`: the steps, squared errors and positive regrets, tolerances.
_STEPS, _SQUARES, _TOLERANCES = 0, 1, 2
# Regrets that pass their limit by this factor or less have reached it, but for rounding.
_JUST_AS_MUCH = 1 + 1e-9


@inlined
def step_from(block: Block, center: AnyFloats, target: AnyFloats) -> None:
  """Target = projection of center + step * utility on the simplex, with the steps in scratch."""
  least = full(-1.0)
  for i in lanes(block):
    step, top = load(block.scratch[_STEPS], i), full(-np.inf)
    for action in range(block.actions):
      row = sequence(block, action, i)
      moved = load(center, row) + step * load(block.utility, row)
      store(target, row, moved)
      top = where_greater(moved, top, moved, top)
    for action in range(block.actions):
      row = sequence(block, action, i)
      below = load(target, row) - top
      store(target, row, where_greater(below, least, below, least))
    project(target, block.first + i, block.stride, block.actions)


@inlined
def set_steps(block: Block, rate: float) -> None:
  """Steps = rate / sqrt(V)."""
  for i in lanes(block):
    store(block.scratch[_TOLERANCES], i, tolerance(block, i))
  for i in range(block.size):
    error, smallest = np.sqrt(block.local[0, block.infoset + i]), block.scratch[_TOLERANCES, i]
    # Errors that are only rounding must not set the scale of the steps.
    block.scratch[_STEPS, i] = rate / error if error > smallest else 0.0


@inlined
def descend(block: Block) -> None:
  """Updates V and z, and leaves the value of the last strategy in `value`."""
  center, predicted, squares = block.state[0], block.state[1], block.scratch[_SQUARES]
  share = full(1.0 / block.actions)
  for i in lanes(block):
    expected_value(block, i)
    mean = square = full(0.0)
    for action in range(block.actions):
      row = sequence(block, action, i)
      mean = mean + (load(block.utility, row) - load(predicted, row))
    mean = mean * share
    for action in range(block.actions):
      row = sequence(block, action, i)
      error = load(block.utility, row) - load(predicted, row) - mean
      square = square + error * error
    store(squares, i, square)
  for i in range(block.size):
    infoset = block.infoset + i
    block.local[0, infoset] = block.local[0, infoset] * block.parameters[1] + squares[i]
  set_steps(block, block.parameters[2])
  step_from(block, center, center)


@inlined
def look_ahead(block: Block) -> None:
  """Chooses the next strategy, and keeps the prediction."""
  center, predicted = block.state[0], block.state[1]
  set_steps(block, block.parameters[2] * block.parameters[3])
  step_from(block, center, block.strategy)
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      predicted[first + i] = block.utility[first + i]


@inlined
def evaluate(block: Block) -> None:
  """Value = <strategy, utility>."""
  for i in lanes(block):
    expected_value(block, i)


@block_kernel
def observe_adaptive(block: Block) -> None:
  """Updates V and z; the next strategy has to wait for the prediction."""
  descend(block)


@block_kernel
def predict_adaptive(block: Block) -> None:
  """Chooses the next strategy."""
  look_ahead(block)
  evaluate(block)


@inlined
def follow_regret(block: Block) -> None:
  """Updates R and S with the utilities of strategies whose values are known, and hands over what is too high."""
  regret, value, positive = block.state[2], block.value, block.scratch[_SQUARES]
  ratio, limit = block.parameters[4], block.parameters[5]
  for i in range(block.size):
    positive[i] = 0.0
    block.local[1, block.infoset + i] *= ratio * ratio
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      added = block.utility[first + i] - value[i]
      updated = ratio * regret[first + i] + added
      regret[first + i] = updated
      block.local[1, block.infoset + i] += added * added
      positive[i] += updated * updated if updated > 0.0 else 0.0
  for i in range(block.size):
    infoset = block.infoset + i
    over = positive[i] > limit * limit * block.local[1, infoset] * _JUST_AS_MUCH
    block.local[2, infoset] = 1.0 if over else block.local[2, infoset]


@block_kernel
def observe_safeguarded(block: Block) -> None:
  """As `observe_adaptive`; follows the regret of the strategies before their update."""
  descend(block)
  if block.size > 0 and block.local[3, block.infoset] == 0.0:
    follow_regret(block)


@block_kernel
def predict_safeguarded(block: Block) -> None:
  """As `predict_adaptive`, and regret matching where that was handed over; follows the regret after the update."""
  look_ahead(block)
  regret, total, strategy = block.state[2], block.scratch[_SQUARES], block.strategy
  for i in range(block.size):
    total[i] = 0.0
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      total[i] += regret[first + i] if regret[first + i] > 0.0 else 0.0
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      row = first + i
      matched = regret[row] / total[i] if regret[row] > 0.0 else 0.0
      matched = matched if total[i] > 0.0 else 1.0 / block.actions
      strategy[row] = matched if block.local[2, block.infoset + i] != 0.0 else strategy[row]
  evaluate(block)
  if block.size > 0 and block.local[3, block.infoset] != 0.0:
    follow_regret(block)


@inlined
def center_on_strategy(block: Block) -> None:
  """Sets z = strategy; V and the last prediction stay."""
  center = block.state[0]
  for i in lanes(block):
    for action in range(block.actions):
      row = sequence(block, action, i)
      store(center, row, load(block.strategy, row))


@block_kernel
def resume_adaptive(block: Block) -> None:
  """Sets z = strategy; V and the last prediction stay."""
  center_on_strategy(block)


@block_kernel
def resume_safeguarded(block: Block) -> None:
  """Likewise, and takes infosets back from regret matching."""
  center_on_strategy(block)
  for i in range(block.size):
    block.local[2, block.infoset + i] = 0.0


@dataclasses.dataclass(frozen=True)
class AdaptiveOptimisticDescent(RegretMinimizer):
  """See the module's docstring. Its state is z and the last prediction; for each infoset it keeps V.

  Attributes:
    step: the factor on all steps.
    prediction: how much of a step the prediction moves, from 0 to 1.
    forgetting: how early errors are forgotten.
    forgetting_offset: likewise.
  """

  step: float = 0.25
  prediction: float = 0.2
  forgetting: float = 1.5
  forgetting_offset: float = 2.0
  observe = observe_adaptive
  predict = predict_adaptive
  resume = resume_adaptive
  state_lines = 2
  local_lines = 1

  def __post_init__(self) -> None:
    """Raises ArgumentError where a constant is outside its range."""
    arguments.positive_number(self.step, "step")
    for name in ("prediction", "forgetting", "forgetting_offset"):
      arguments.real_number(getattr(self, name), name, 0.0, sys.float_info.max)

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns tie tolerance, d_t^2, the factor on the steps, the factor of the prediction; (iterations, 4)."""
    power = (iterations - 1.0) ** self.forgetting
    total = power + self.forgetting_offset
    remembered = np.divide(power, total, out=np.zeros(len(iterations)), where=total > 0)
    columns = (relative_tie(game), remembered**2, self.step, self.prediction)
    return np.stack(np.broadcast_arrays(*columns), axis=1)


@dataclasses.dataclass(frozen=True)
class SafeguardedDescent(AdaptiveOptimisticDescent):
  """Adaptive optimistic mirror descent that hands an infoset to regret matching if its regret grows too high.

  With w_t the weight of iteration t in the average and r^t the regrets of its strategies,

      R_t = (w_{t-1} / w_t) R_{t-1} + r^t,    S_t = (w_{t-1} / w_t)^2 S_{t-1} + ||r^t||^2

  an infoset is handed over once ||max(R_t, 0)|| > limit sqrt(S_t), and from then on plays in proportion to max(R, 0).
  So ||max(R_t, 0)|| <= (limit + 1) sqrt(S_t) for ever, whatever the utilities are; docs/stable_predictive.md has the
  proof. The strategies that count are those that enter the average.

  Attributes:
    limit: at least 1, which regret matching itself never passes.
    after: for each player, whether the average takes the strategies after their update.
  """

  limit: float = 2.0
  after: tuple[bool, ...] = (True, False)
  observe = observe_safeguarded
  predict = predict_safeguarded
  resume = resume_safeguarded
  state_lines = 3
  local_lines = 4

  def __post_init__(self) -> None:
    """Raises ArgumentError where a constant is outside its range."""
    super().__post_init__()
    arguments.real_number(self.limit, "limit", 1.0, sys.float_info.max)

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns those of the base class, w_{t-1} / w_t, for the solver to fill in, and the limit; (iterations, 6)."""
    base = super().parameters(iterations, game)
    return np.column_stack([base, np.ones(len(base)), np.full(len(base), self.limit)])

  def initial_local(self, game: CompiledGame) -> Float64s:
    """Returns zeros, and in the last line which infosets' owners average after the update; (4, infosets)."""
    result = super().initial_local(game)
    for tree, after in zip(game.treeplexes, self.after, strict=True):
      result[3, tree.first_infoset : tree.first_infoset + tree.num_infosets] = after
    return result
