"""What infosets are worth to best responders: the block kernels with which policies are evaluated."""

import numpy as np

from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel, lanes, sequence


@block_kernel
def take_best(block: Block) -> None:
  """An infoset is worth its best action."""
  for i in lanes(block):
    best = full(-np.inf)
    for action in range(block.actions):
      worth = load(block.utility, sequence(block, action, i))
      best = where_greater(worth, best, worth, best)
    store(block.value, i, best)


@block_kernel
def respond(block: Block) -> None:
  """An infoset is worth its best action; `strategy` becomes the first of those."""
  value, chosen = block.value, block.scratch[0]
  for i in range(block.size):
    value[i] = block.utility[block.first + i]
    chosen[i] = 0.0
  for action in range(block.actions):
    row = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      value[i] = max(value[i], block.utility[row + i])
  for action in range(block.actions):
    row = sequence(block, action, np.uint64(0))
    for i in range(block.size):
      best = 1.0 - chosen[i] if block.utility[row + i] == value[i] else 0.0
      block.strategy[row + i] = best
      chosen[i] += best
