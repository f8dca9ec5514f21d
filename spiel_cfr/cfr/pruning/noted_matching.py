"""Regret matching+ that also notes what infosets were worth, which best-response backfill goes by.

Beside its regrets, as `RegretMatching` has them bit for bit, it sums up the values of each infoset,

    Z(j) = sum of w_t v^t(j)

with w_t the weight of iteration t in averages.
"""

import dataclasses

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.simd import full, load, store, where_greater
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
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, relative_tie
from spiel_cfr.regret_minimizers.schedules import Schedule, evaluated

# Iterations at which schedules of weights are looked at.
_SAMPLE = np.append(np.arange(1, 200), np.geomspace(200, 1e6, 100).astype(np.int64))


@block_kernel
def match_and_note(block: Block) -> None:
  """Regret matching+, and Z += weight * value."""
  regret, zero, weight = block.state[0], full(0.0), block.parameters[1]
  for i in lanes(block):
    value, tie, total = expected_value(block, i), tolerance(block, i), zero
    for action in range(block.actions):
      row = sequence(block, action, i)
      updated = load(regret, row) + load(block.utility, row) - value
      positive = where_greater(updated, tie, updated, zero)
      store(regret, row, positive)
      store(block.strategy, row, positive)
      total = total + positive
    normalize(block, i, total)
  for i in range(block.size):
    block.local[0, block.infoset + i] += weight * block.value[i]


@dataclasses.dataclass(frozen=True)
class NotedMatching(RegretMinimizer):
  """Regret matching+ that notes; its state is the regrets, and for each infoset it keeps Z.

  Attributes:
    weights: of iterations, w_t.
  """

  weights: Schedule
  observe = match_and_note
  local_lines = 1
  # What is forced is worth what it leads to.
  visits_forced = False

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns tie tolerance and w_t, shape (iterations, 2)."""
    tie = np.full(len(iterations), relative_tie(game))
    return np.stack([tie, evaluated(self.weights, iterations)], axis=1)


def noted(minimizer: RegretMinimizer, weights: Schedule) -> NotedMatching:
  """Returns regret matching+ with notes.

  Args:
    minimizer: what is to be regret matching+.
    weights: of the iterations in averages.

  Raises:
    PruningError: it is another minimizer, or backfill would not be sound with these weights.
  """
  if minimizer == RegretMatching():
    raise errors.PruningError(
      "CFR can't be pruned: it does not make good what was pruned for too long. On Leduc poker with five sizes of bets "
      "its exploitability was three times as large after 10,000 iterations. Take Pruned(CFRPlusSolver(game))."
    )
  if minimizer != RegretMatching.plus():
    raise errors.PruningError(
      f"{minimizer} is not regret matching+, whose regrets a best response in hindsight can make anew. Take "
      "Pruned(CFRPlusSolver(game))."
    )
  sample = evaluated(weights, _SAMPLE)
  if not (sample > 0).all() or (np.diff(sample) < 0).any():
    raise errors.PruningError(
      f"With {weights} some iterations weigh nothing, or less than those before them: what a player has faced is then "
      "not in its average. Take Pruned(CFRPlusSolver(game))."
    )
  return NotedMatching(weights)
