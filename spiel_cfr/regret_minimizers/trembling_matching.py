"""Regret matching+ with a trembling hand: every action has a positive probability.

    x^t = (1 - epsilon_t) sigma^t + epsilon_t / n,    sigma^t proportional to R^{t-1}
    R^t = max(R^{t-1} + u^t - <sigma^t, u^t>, 0)

at an infoset with n actions. It is regret matching+ over the strategies that play each action with at least epsilon/n,
whose extreme points are (1 - epsilon) e_a + epsilon / n; their regrets are those above, times 1 - epsilon. Every
infoset is reached, so that play off the path is learned too. As trembles vanish, the average tends to an extensive-form
perfect equilibrium (Selten 1975; Farina, Kroer and Sandholm, "Regret Minimization in Behaviorally-Constrained Zero-Sum
Games", 2017).
"""

import dataclasses
import math

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  lanes,
  sequence,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, parameter_rows
from spiel_cfr.regret_minimizers.resume_matching import resume_regret_matching
from spiel_cfr.regret_minimizers.schedules import Numbers, checked, evaluated

# Entries of `Block.parameters`: the relative tie tolerance, epsilon of this iteration and of the next.
TOLERANCE, NOW, NEXT = range(3)


@block_kernel
def match_trembling(block: Block) -> None:
  """The two equations in the docstring of the module.

  Infosets that only trembles reach have tiny utilities. So ties are relative to the utilities of the iteration.
  """
  regret, zero = block.action_state[0], full(0.0)
  trembles, following = block.parameters[NOW], block.parameters[NEXT]
  steady = full(1.0 / (1.0 - trembles))
  share = full(1.0 / block.actions)
  for i in lanes(block):
    value, mean, largest = expected_value(block, i), zero, zero
    for action in range(block.actions):
      utility = load(block.utility, sequence(block, action, i))
      mean = mean + utility * share
      size = where_greater(utility, zero, utility, zero - utility)
      largest = where_greater(size, largest, size, largest)
    meant, tie = (
      (value - full(trembles) * mean) * steady,
      largest * full(block.parameters[TOLERANCE]),
    )
    total = zero
    for action in range(block.actions):
      row = sequence(block, action, i)
      updated = load(regret, row) + load(block.utility, row) - meant
      positive = where_greater(updated, tie, updated, zero)
      store(regret, row, positive)
      store(block.strategy, row, positive)
      total = total + positive
    none = where_greater(total, zero, zero, full(1.0))
    kept = full(1.0 - following) / (total + none)
    rest = full(following) * share + none * full(1.0 - following) * share
    for action in range(block.actions):
      row = sequence(block, action, i)
      store(block.strategy, row, load(block.strategy, row) * kept + rest)


@dataclasses.dataclass(frozen=True)
class TremblingMatching(RegretMinimizer):
  """Regret matching+ with a trembling hand. Its state is the cumulative regret.

  Attributes:
    trembles: number or schedule, below 1. Epsilon, the probability with which an infoset plays at random.
  """

  trembles: Numbers = 0.01
  observe = match_trembling
  resume = resume_regret_matching

  def __post_init__(self) -> None:
    checked(self.trembles, "trembles", 0.0, math.nextafter(1.0, 0.0))

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns rows of the relative tie tolerance, and epsilon of the iteration and of the next."""
    following = evaluated(self.trembles, iterations + 1)
    return parameter_rows(iterations, game, self.trembles, following)
