"""Kernels of best responses and expected values: the work at infosets and sequences that `Evaluator` puts together.

`take_best` computes the values of a best response, and `choose_best` its strategy too.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.records import Doubles, Line
from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr._numba.steps import step
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel, sequence, vector_starts
from spiel_cfr.games.sequence_form.tree_passes import Tree, group_at


@block_kernel
def take_best(block: Block) -> None:
  """Computes the value of a best response at each infoset: value = max_a utility."""
  for i in vector_starts(block):
    best = full(-np.inf)
    for action in range(block.actions):
      worth = load(block.utility, sequence(block, action, i))
      best = where_greater(worth, best, worth, best)
    store(block.value, i, best)


@block_kernel
def choose_best(block: Block) -> None:
  """Computes the values of a best response like `take_best`, and its strategy.

  The first action whose utility equals the value has probability 1, all others 0.
  """
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


class Expectation(NamedTuple):
  """The arguments of `expect_value`.

  Attributes:
    utility: float array (sequences,). A player's gradient.
    sequence_form: float array (sequences,). The player's strategy.
    value: float64 (1,). The expected payoff, which the kernel writes.
  """

  utility: Line
  sequence_form: Line
  value: Doubles


@step(Expectation)
def expect_value(record: Expectation) -> None:
  """Computes the expected payoff of a player's strategy: value = <utility, sequence_form>."""
  utility, sequence_form, value = record.utility, record.sequence_form, 0.0
  for i in range(np.uint64(utility.shape[0])):
    value += utility[i] * sequence_form[i]
  record.value[0] = value


class Normalize(NamedTuple):
  """The arguments of `normalize_actions`.

  Attributes:
    tree: `Tree`. The infosets of a player.
    sequence_form: float array (sequences,). The player's strategy, which the kernel changes.
  """

  tree: Tree
  sequence_form: Line


@step(Normalize)
def normalize_actions(record: Normalize) -> None:
  """Rescales the actions of each infoset so that they sum exactly to the sequence above, removing rounding errors."""
  groups, parent, sequence_form = record.tree.groups, record.tree.parent, record.sequence_form
  for group in range(np.uint64(groups.shape[0])):
    first, stride, count, actions, infoset = group_at(groups, group)
    for i in range(first, first + count):
      total = 0.0
      for action in range(actions):
        total += sequence_form[i + action * stride]
      scale = sequence_form[parent[infoset + i - first]] / total if total > 0.0 else 0.0
      for action in range(actions):
        sequence_form[i + action * stride] *= scale
