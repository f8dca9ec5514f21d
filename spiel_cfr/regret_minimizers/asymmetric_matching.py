"""Asymmetric predictive regret matching+: the weight of the prediction depends on the errors of predictions so far.

Meng, Yang, Zhang, Ge and Gao, "Faster Game Solving via Asymmetry of Step Sizes" (2025), equation 3 for APCFR+ and
appendix C for APDCFR+. At an infoset, with r^t the regrets of iteration t, r^0 = R^1 = 0 and [.]+ the positive part,

    R^{t+1} = [R^t + w_t r^t]+
    a_{t+1} = min(most, sqrt(sum of |r^s - r^{s-1}|^2 / sum of |R^{s+1} - R^s|^2)), the sums over s <= t
    x^{t+1} proportional to [w_{t+1} R^{t+1} + r^t / (1 + a_{t+1})]+, uniform where that is 0

with w_t = 1 in APCFR+ and 20 t^1.5 / (500 + t^1.5) in APDCFR+. The prediction counts less, the more the regrets of
iterations have changed in comparison with cumulative regrets.
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
  lanes,
  normalize,
  sequence,
  tolerance,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, parameter_rows
from spiel_cfr.regret_minimizers.resume_matching import resume_regret_matching
from spiel_cfr.regret_minimizers.schedules import Numbers, checked, evaluated

# Columns of `Block.parameters` after the tie tolerance: w_t, w_{t+1}, and the largest asymmetry.
_WEIGHT, _NEXT_WEIGHT, _MOST = range(1, 4)
# Lines of `Block.scratch`: squared errors, squared moves, and the weight of the prediction.
_ERRORS, _MOVES, _TRUST = 0, 1, 2


@block_kernel
def match_asymmetrically(block: Block) -> None:
  """The three equations in the docstring of the module."""
  regret, last, scratch = block.action_state[0], block.action_state[1], block.scratch
  zero = full(0.0)
  weight, carried = full(block.parameters[_WEIGHT]), full(block.parameters[_NEXT_WEIGHT])
  most = block.parameters[_MOST]
  for i in lanes(block):
    value, tie, error, moved = expected_value(block, i), tolerance(block, i), zero, zero
    for action in range(block.actions):
      row = sequence(block, action, i)
      before, added = load(regret, row), load(block.utility, row) - value
      updated = before + weight * added
      updated = where_greater(updated, tie, updated, zero)
      change, step = added - load(last, row), updated - before
      error, moved = error + change * change, moved + step * step
      store(regret, row, updated)
      store(last, row, added)
    store(scratch[_ERRORS], i, error)
    store(scratch[_MOVES], i, moved)
  for i in range(block.size):
    infoset = block.infoset + i
    errors = block.infoset_state[0, infoset] + scratch[_ERRORS, i]
    moves = block.infoset_state[1, infoset] + scratch[_MOVES, i]
    block.infoset_state[0, infoset], block.infoset_state[1, infoset] = errors, moves
    asymmetry = np.sqrt(errors / moves) if errors < most * most * moves else most
    scratch[_TRUST, i] = 1.0 / (1.0 + asymmetry)
  for i in lanes(block):
    trust, tie, total = load(scratch[_TRUST], i), tolerance(block, i), zero
    for action in range(block.actions):
      row = sequence(block, action, i)
      score = carried * load(regret, row) + trust * load(last, row)
      score = where_greater(score, tie, score, zero)
      store(block.strategy, row, score)
      total = total + score
    normalize(block, i, total)


@dataclasses.dataclass(frozen=True)
class AsymmetricMatching(RegretMinimizer):
  """Asymmetric predictive regret matching+. Its state is R and the last regrets, and the two sums of each infoset.

  Attributes:
    weight: w_t, not negative.
    most: the largest asymmetry, positive.
  """

  weight: Numbers = 1.0
  most: float = 5.0
  observe = match_asymmetrically
  resume = resume_regret_matching
  action_lines = 2
  infoset_lines = 2

  def __post_init__(self) -> None:
    checked(self.weight, "weight", 0.0, sys.float_info.max)
    # The kernel computes its square.
    arguments.real_number(arguments.positive_number(self.most, "most"), "most", 0.0, 1e100)

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns rows of the tie tolerance, w_t, w_{t+1} and the largest asymmetry."""
    following = evaluated(self.weight, iterations + 1)
    return parameter_rows(iterations, game, self.weight, following, self.most)
