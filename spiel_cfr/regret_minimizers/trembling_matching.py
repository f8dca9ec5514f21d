"""Regret matching+ with a trembling hand: every action has a positive probability.

At an infoset with n actions, with u^t the counterfactual utilities of iteration t,

    x^t = (1 - epsilon_t) sigma^t + epsilon_t / n,    sigma^t proportional to R^{t-1}
    R^t = max(R^{t-1} + u^t - <sigma^t, u^t>, 0)

x^t is the strategy that is played, and sigma^t the strategy without trembles. This is regret matching+ over the
strategies that play every action with probability epsilon / n or more. The extreme points of this set are (1 - epsilon)
e_a + epsilon / n, one for each action a, and their regrets are 1 - epsilon times the regrets in R^t.

All infosets are reached, so that play off the path is learned too. As trembles vanish, the average tends to an
extensive-form perfect equilibrium (Selten 1975; Farina, Kroer and Sandholm, "Regret Minimization in
Behaviorally-Constrained Zero-Sum Games", 2017).
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
  sequence,
  vector_starts,
)
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, parameter_rows
from spiel_cfr.regret_minimizers.resume_matching import resume_regret_matching
from spiel_cfr.regret_minimizers.schedules import NumberOrSchedule, checked, evaluated

# Columns of `Block.parameters` after the tie tolerance: epsilon of this iteration and of the next.
TREMBLE, NEXT_TREMBLE = range(1, 3)


@block_kernel
def observe_trembling(block: Block) -> None:
  """Updates regrets and strategies by the equations in the docstring of the module.

  Infosets that only trembles reach have tiny utilities. So ties are relative to the utilities of the iteration.
  """
  regret, zero = block.action_state[0], full(0.0)
  tremble, next_tremble = block.parameters[TREMBLE], block.parameters[NEXT_TREMBLE]
  inverse_steady = full(1.0 / (1.0 - tremble))
  share = full(1.0 / block.actions)
  for i in vector_starts(block):
    value, mean, largest = expected_value(block, i), zero, zero
    for action in range(block.actions):
      utility = load(block.utility, sequence(block, action, i))
      mean = mean + utility * share
      size = where_greater(utility, zero, utility, zero - utility)
      largest = where_greater(size, largest, size, largest)
    # The value of sigma: that of x without the trembles.
    steady_value = (value - full(tremble) * mean) * inverse_steady
    tie, total = largest * full(block.parameters[0]), zero
    for action in range(block.actions):
      at = sequence(block, action, i)
      updated = load(regret, at) + load(block.utility, at) - steady_value
      positive = where_greater(updated, tie, updated, zero)
      store(regret, at, positive)
      store(block.strategy, at, positive)
      total = total + positive
    # 1 where no regret is positive, so that sigma is uniform; 0 elsewhere.
    is_uniform = where_greater(total, zero, zero, full(1.0))
    factor = full(1.0 - next_tremble) / (total + is_uniform)
    constant = full(next_tremble) * share + is_uniform * full(1.0 - next_tremble) * share
    for action in range(block.actions):
      at = sequence(block, action, i)
      store(block.strategy, at, load(block.strategy, at) * factor + constant)


@dataclasses.dataclass(frozen=True)
class TremblingMatching(RegretMinimizer):
  """Regret matching+ with a trembling hand; the state is the cumulative regret.

  Attributes:
    trembles: number or schedule, below 1. Epsilon, the probability with which an infoset plays at random.
  """

  trembles: NumberOrSchedule = 0.01
  observe = observe_trembling
  resume = resume_regret_matching

  def __post_init__(self) -> None:
    checked(self.trembles, "trembles", 0.0, math.nextafter(1.0, 0.0))

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the relative tie tolerance, and epsilon of the iteration and of the next."""
    next_trembles = evaluated(self.trembles, iterations + 1)
    return parameter_rows(iterations, game, self.trembles, next_trembles)
