"""Regret matching, plain or plus, that also notes what pruning needs to know.

Regret matching+ forgets how negative a regret has become, and with that for how long an action can be left alone. So
where it would forget, this keeps a ledger (Brown and Sandholm 2015):

    R = r if R <= 0 < r, else R + r;        a negative R is first multiplied by w_{t-1} / w_t

whose positive part is that of regret matching+, bit for bit. Plain regret matching has R + r. Both also sum up the
values of each infoset, Z(j) = sum of w_t v^t(j), with w_t the weight of iteration t.
"""

import dataclasses

import numpy as np

from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.game.blocks import (
  Block,
  block_kernel,
  expected_value,
  lanes,
  normalize,
  sequence,
  tolerance,
)
from spiel_cfr.kernels.arrays import Float64s, Int64s
from spiel_cfr.kernels.simd import full, load, store, where_greater
from spiel_cfr.minimizers.base import LocalMinimizer, relative_tie
from spiel_cfr.minimizers.schedules import Schedule, evaluated


@block_kernel
def match_and_note(block: Block) -> None:
  """See the module's docstring."""
  regret, zero = block.state[0], full(0.0)
  # The least of which regrets are added to: 0 forgets negative ones.
  least, fading = full(block.parameters[2]), full(block.parameters[3])
  for i in lanes(block):
    value, tie, total = expected_value(block, i), tolerance(block, i), zero
    for action in range(block.actions):
      row = sequence(block, action, i)
      before, utility = load(regret, row), load(block.utility, row)
      # As regret matching+ adds, so that nothing is rounded in another way.
      updated = where_greater(before, least, before, least) + utility - value
      kept = before * where_greater(before, zero, full(1.0), fading) + utility - value
      kept = where_greater(kept, zero, where_greater(least, full(-1.0), zero, kept), kept)
      positive = where_greater(updated, tie, updated, zero)
      store(regret, row, where_greater(updated, tie, updated, kept))
      store(block.strategy, row, positive)
      total = total + positive
    normalize(block, i, total)
  weight = block.parameters[1]
  for i in range(block.size):
    block.local[0, block.infoset + i] += weight * block.value[i]


@dataclasses.dataclass(frozen=True)
class NotedMatching(LocalMinimizer):
  """Regret matching that notes; see the module's docstring. Its state is R; for each infoset it keeps Z.

  Attributes:
    weights: of iterations, w_t.
    plus: whether it is regret matching+, with a ledger of what that forgets.
  """

  weights: Schedule
  plus: bool
  observe = match_and_note
  local_lines = 1

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns tie tolerance, w_t, the least regret that is added to, w_{t-1} / w_t; shape (iterations, 4)."""
    weights = evaluated(self.weights, iterations)
    before = evaluated(self.weights, np.maximum(iterations - 1, 1))
    least, fading = (0.0, before / weights) if self.plus else (-np.inf, np.ones(len(weights)))
    columns = (relative_tie(game), weights, least, fading)
    return np.ascontiguousarray(np.stack(np.broadcast_arrays(*columns), axis=1))
