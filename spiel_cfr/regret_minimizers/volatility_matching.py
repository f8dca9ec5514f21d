"""Volatility-adaptive discounted regret matching: it forgets faster where regrets are large.

Of Li, Schultz, Hennes and Lanctot, "Discovering Multiagent Learning Algorithms with Large Language Models" (2026),
listing 5. At an infoset, with r^t the regrets of iteration t and m_t the largest of their absolute values,

    e_t     = m_t / 10 + 9 e_{t-1} / 10, e_1 = m_1
    v_t     = min(1, e_t / (2 unit))
    D(R)    = R t^a / (t^a + 1), with a = 1.5 - v_t / 2 where R >= 0 and a = -0.1 - v_t / 2 elsewhere
    b^t     = 1.1 r^t where r^t > 0, r^t elsewhere
    R_t     = max(D(R_{t-1}) + b^t, -20 unit)
    x^{t+1} proportional to [D(R_t) + (1 - v_t / 2) / (1 + (t - 1) / 100) b^t]+^1.5, uniform where that is 0

The paper's program keeps one e for all infosets, whose value depends on the order in which the tree is walked; here
each infoset has its own. Its unit is 1, whatever the unit of the payoffs is.
"""

import dataclasses

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.kernels import inlined
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
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, relative_tie

# Columns of `Block.parameters` after the tie tolerance.
_LOGARITHM, _IS_FIRST, _MOST_OPTIMISM, _UNIT = 1, 2, 3, 4
# Lines of `Block.scratch`. What is summed up is no longer needed where the largest regrets are.
_LARGEST, _OF_POSITIVE, _OF_NEGATIVE, _OPTIMISM, _TOTAL = 0, 1, 2, 3, 0

_DECAY, _LARGE, _LEAST, _BOOST, _UNTIL = 0.1, 2.0, -20.0, 1.1, 100.0


@inlined
def set_discounts(block: Block) -> None:
  """Leaves, in scratch, the two factors of D and what the last regrets are multiplied by."""
  scratch, zero = block.scratch, full(0.0)
  for i in lanes(block):
    value, largest = expected_value(block, i), zero
    for action in range(block.actions):
      added = load(block.utility, sequence(block, action, i)) - value
      size = where_greater(added, zero, added, zero - added)
      largest = where_greater(size, largest, size, largest)
    store(scratch[_LARGEST], i, largest)
  logarithm, is_first = block.parameters[_LOGARITHM], block.parameters[_IS_FIRST] != 0.0
  for i in range(block.size):
    largest_now = scratch[_LARGEST, i]
    mean = (1.0 - _DECAY) * block.local[0, block.infoset + i] + _DECAY * largest_now
    mean = largest_now if is_first else mean
    block.local[0, block.infoset + i] = mean
    volatility = min(1.0, mean / (_LARGE * block.parameters[_UNIT]))
    scratch[_OF_POSITIVE, i] = 1.0 / (1.0 + np.exp(-(1.5 - 0.5 * volatility) * logarithm))
    scratch[_OF_NEGATIVE, i] = 1.0 / (1.0 + np.exp((0.1 + 0.5 * volatility) * logarithm))
    scratch[_OPTIMISM, i] = block.parameters[_MOST_OPTIMISM] * (1.0 - 0.5 * volatility)


@inlined
def normalize_powers(block: Block) -> None:
  """Strategy = strategy^1.5 / sum of strategy^1.5."""
  total = block.scratch[_TOTAL]
  for i in range(block.size):
    total[i] = 0.0
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      score = block.strategy[first + i]
      weight = score * np.sqrt(score)
      block.strategy[first + i] = weight
      total[i] += weight
  for i in lanes(block):
    normalize(block, i, load(total, i))


@block_kernel
def match_volatile_regrets(block: Block) -> None:
  """All that the module's docstring says."""
  regret, scratch, zero = block.state[0], block.scratch, full(0.0)
  boost, least = full(_BOOST), full(_LEAST * block.parameters[_UNIT])
  set_discounts(block)
  for i in lanes(block):
    value, tie, trust = load(block.value, i), tolerance(block, i), load(scratch[_OPTIMISM], i)
    of_positive, of_negative = load(scratch[_OF_POSITIVE], i), load(scratch[_OF_NEGATIVE], i)
    for action in range(block.actions):
      row = sequence(block, action, i)
      before, added = load(regret, row), load(block.utility, row) - value
      added = where_greater(added, zero, added * boost, added)
      updated = before * where_greater(before, tie, of_positive, of_negative) + added
      updated = where_greater(updated, least, updated, least)
      store(regret, row, updated)
      score = updated * where_greater(updated, tie, of_positive, of_negative) + trust * added
      store(block.strategy, row, where_greater(score, tie, score, zero))
  normalize_powers(block)


@block_kernel
def resume_volatile(block: Block) -> None:
  """Regrets that would be played so, with the sum that they had; negative ones stay where nothing is played."""
  regret, strategy, scratch = block.state[0], block.strategy, block.scratch
  for i in range(block.size):
    scratch[0, i] = scratch[1, i] = 0.0
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      before = regret[first + i]
      scratch[0, i] += before if before > 0.0 else 0.0
      scratch[1, i] += np.cbrt(strategy[first + i]) ** 2
  for action in range(block.actions):
    first = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      share, before = np.cbrt(strategy[first + i]) ** 2 / scratch[1, i], regret[first + i]
      regret[first + i] = share * scratch[0, i] if share > 0.0 else min(before, 0.0)


@dataclasses.dataclass(frozen=True)
class VolatilityAdaptiveMatching(RegretMinimizer):
  """See the module's docstring. Its state is R; for each infoset it keeps e.

  Attributes:
    unit: of payoffs, in which the paper's constants are given; positive.
  """

  unit: float = 1.0
  observe = match_volatile_regrets
  resume = resume_volatile
  local_lines = 1

  def __post_init__(self) -> None:
    """Raises ArgumentError where the unit is not a positive number."""
    arguments.positive_number(self.unit, "unit")

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns tie tolerance, log t, whether t is 1, optimism where nothing is volatile, unit; (iterations, 5)."""
    columns = (
      relative_tie(game),
      np.log(iterations),
      iterations == 1,
      1.0 / (1.0 + (iterations - 1) / _UNTIL),
      self.unit,
    )
    return np.stack(np.broadcast_arrays(*columns), axis=1).astype(np.float64)
