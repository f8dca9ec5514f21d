"""Asymmetric predictive regret matching+: the weight of the prediction depends on errors of predictions so far.

Meng, Yang, Zhang, Ge and Gao, "Faster Game Solving via Asymmetry of Step Sizes" (2025), equation 3 for APCFR+ and
appendix C for APDCFR+. At an infoset, with r^t the regrets of iteration t, r^0 = R^1 = 0 and [.]+ the positive part,

    R^{t+1} = [R^t + w_t r^t]+
    a_{t+1} = min(largest_asymmetry, sqrt(sum of |r^s - r^{s-1}|^2 / sum of |R^{s+1} - R^s|^2)), the sums over s <= t
    x^{t+1} proportional to [w_{t+1} R^{t+1} + r^t / (1 + a_{t+1})]+, uniform where that is 0

with w_t = 1 in APCFR+ and 20 t^1.5 / (500 + t^1.5) in APDCFR+. The asymmetry a grows with the changes of r from one
iteration to the next, compared to the changes of R. The larger it is, the less the prediction counts.
"""

import dataclasses
import sys

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  normalize,
  sequence,
  tolerance,
  vector_starts,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, parameter_rows
from spiel_cfr.regret_minimizers.resume_matching import resume_regret_matching
from spiel_cfr.regret_minimizers.schedules import NumberOrSchedule, checked, evaluated

# Columns of `Block.parameters` after the tie tolerance: w_t, w_{t+1}, and the largest asymmetry.
_WEIGHT, _NEXT_WEIGHT, _LARGEST_ASYMMETRY = range(1, 4)
# Lines of `Block.scratch`, for each infoset: the squared changes of r and of R, and the weight of the prediction.
_ERRORS, _MOVES, _PREDICTION_WEIGHTS = 0, 1, 2


@block_kernel
def observe_asymmetric(block: Block) -> None:
  """Updates regrets and strategies by the three equations in the docstring of the module."""
  regret, last_added, scratch = block.action_state[0], block.action_state[1], block.scratch
  zero, largest = full(0.0), block.parameters[_LARGEST_ASYMMETRY]
  weight, next_weight = full(block.parameters[_WEIGHT]), full(block.parameters[_NEXT_WEIGHT])
  for i in vector_starts(block):
    value, tie = expected_value(block, i), tolerance(block, i)
    squared_error = squared_move = zero
    for action in range(block.actions):
      at = sequence(block, action, i)
      before, added = load(regret, at), load(block.utility, at) - value
      updated = before + weight * added
      updated = where_greater(updated, tie, updated, zero)
      error, move = added - load(last_added, at), updated - before
      squared_error = squared_error + error * error
      squared_move = squared_move + move * move
      store(regret, at, updated)
      store(last_added, at, added)
    store(scratch[_ERRORS], i, squared_error)
    store(scratch[_MOVES], i, squared_move)
  for i in range(block.size):
    infoset = block.infoset + i
    errors = block.infoset_state[0, infoset] + scratch[_ERRORS, i]
    moves = block.infoset_state[1, infoset] + scratch[_MOVES, i]
    block.infoset_state[0, infoset], block.infoset_state[1, infoset] = errors, moves
    asymmetry = np.sqrt(errors / moves) if errors < largest * largest * moves else largest
    scratch[_PREDICTION_WEIGHTS, i] = 1.0 / (1.0 + asymmetry)
  for i in vector_starts(block):
    prediction_weight = load(scratch[_PREDICTION_WEIGHTS], i)
    tie, total = tolerance(block, i), zero
    for action in range(block.actions):
      at = sequence(block, action, i)
      score = next_weight * load(regret, at) + prediction_weight * load(last_added, at)
      score = where_greater(score, tie, score, zero)
      store(block.strategy, at, score)
      total = total + score
    normalize(block, i, total)


@dataclasses.dataclass(frozen=True)
class AsymmetricMatching(RegretMinimizer):
  """Asymmetric predictive regret matching+.

  The state of an action is R and r of the last iteration. The state of an infoset is the two sums in a_{t+1}.

  Attributes:
    weight: number or schedule, not negative. w_t, the factor on the regrets of an iteration.
    largest_asymmetry: the upper bound on a_{t+1}, positive.
  """

  weight: NumberOrSchedule = 1.0
  largest_asymmetry: float = 5.0
  observe = observe_asymmetric
  resume = resume_regret_matching
  action_lines = 2
  infoset_lines = 2

  def __post_init__(self) -> None:
    checked(self.weight, "weight", 0.0, sys.float_info.max)
    largest = arguments.positive_number(self.largest_asymmetry, "largest_asymmetry")
    # The kernel squares it, which must not overflow.
    arguments.real_number(largest, "largest_asymmetry", 0.0, 1e100)

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the tie tolerance, w_t, w_{t+1} and the largest asymmetry."""
    next_weights = evaluated(self.weight, iterations + 1)
    return parameter_rows(iterations, game, self.weight, next_weights, self.largest_asymmetry)
