"""Restart of regret matching and its variants from a given strategy."""

from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel, sequence, vector_starts


@block_kernel
def resume_regret_matching(block: Block) -> None:
  """Sets regrets that play the strategy: strategy * sum of max(regret, 0) where it is positive, else min(regret, 0).

  The sum of positive regrets stays, because it is the inverse of the step size. Regret matching from the regrets c x
  moves like mirror descent from x with steps of 1 / c, and c has grown until such steps are stable.
  """
  regret, zero = block.action_state[0], full(0.0)
  for i in vector_starts(block):
    total = zero
    for action in range(block.actions):
      before = load(regret, sequence(block, action, i))
      total = total + where_greater(before, zero, before, zero)
    for action in range(block.actions):
      at = sequence(block, action, i)
      before, played = load(regret, at), load(block.strategy, at)
      negative = where_greater(before, zero, zero, before)
      store(regret, at, where_greater(played, zero, played * total, negative))
