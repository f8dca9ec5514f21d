"""Dynamic thresholding: the entropy never plays an action with probability 0, so that nothing can be left alone.

Brown, Kroer and Sandholm, "Dynamic Thresholding and Pruning for Regret Minimization" (2017), make small probabilities
0. Here the smallest ones of an infoset are dropped as long as all that is dropped is no more than a mass M_t. What is
left is normalized, which costs a regret of M_t times the range of utilities in iteration t, whatever the minimizer.
What follow-the-regularized-leader has seen stays what it was, and so does what it would choose next: all that is lost
in T iterations is the sum of these.
"""

import numpy as np

from spiel_cfr._numba.kernels import inlined
from spiel_cfr.games.sequence_form.blocks import Block, sequence

_ONE = np.uint64(1)


@inlined
def drop_smallest(block: Block, most: float) -> None:
  """Makes the smallest probabilities of each infoset 0, as long as they sum to no more than `most`."""
  for i in range(block.size):
    dropped = 0.0
    # Never the largest.
    for _ in range(_ONE, block.actions):
      least, chosen = np.inf, sequence(block, np.uint64(0), i)
      for action in range(block.actions):
        row = sequence(block, action, i)
        probability = block.strategy[row]
        if 0.0 < probability < least:
          least, chosen = probability, row
      if dropped + least > most:
        break
      block.strategy[chosen] = 0.0
      dropped += least
    if dropped > 0.0:
      total = 0.0
      for action in range(block.actions):
        total += block.strategy[sequence(block, action, i)]
      for action in range(block.actions):
        block.strategy[sequence(block, action, i)] /= total
