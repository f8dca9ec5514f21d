"""Backward and forward passes over a player's infosets: from the deepest up, and from the root down.

A backward pass computes counterfactual values and calls a block kernel, which updates regrets and strategies. A forward
pass computes reach probabilities and adds them to the average. Each pass is a step (`_numba.steps`): a kernel, and a
record of the arrays that it reads and writes. It visits one group of infosets (`treeplex`) after the other, in blocks
of up to 256 infosets.
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba import arrays
from spiel_cfr._numba.arrays import Uint64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Address, Count, CountTable, Doubles, Indices, Line, call
from spiel_cfr._numba.simd import (
  add_unbiased,
  full,
  is_single,
  load,
  number_for,
  store,
  where_greater,
  width,
)
from spiel_cfr._numba.steps import step
from spiel_cfr.games.sequence_form.blocks import CHUNK, Block
from spiel_cfr.games.sequence_form.treeplex import (
  ACTIONS,
  COUNT,
  FIRST_INFOSET,
  FIRST_SEQUENCE,
  STRIDE,
)

_ZERO, _ONE, _CHUNK = np.uint64(0), np.uint64(1), np.uint64(CHUNK)
# The golden ratio minus 1. The fractional parts of its multiples are very evenly distributed.
_GOLDEN = (5.0**0.5 - 1.0) / 2.0


class Tree(NamedTuple):
  """The infosets of one treeplex, or of several.

  Attributes:
    groups: uint64 (groups, 6). See `treeplex.Treeplex`.
    parent: uint32 (infosets,). The sequence above each infoset.
  """

  groups: CountTable
  parent: Indices

  def __reduce__(self) -> tuple[Any, ...]:
    return arrays.unpickled, (Tree, *self)


class Backward(NamedTuple):
  """The arguments of a backward pass.

  Attributes:
    tree: the infosets.
    kernel: the block kernel.
    block: the arrays of the block kernel.
  """

  tree: Tree
  kernel: Address
  block: Block


@step(Backward)
def backward_pass(record: Backward) -> None:
  """At every infoset, from the deepest up: value = kernel(infoset);  utility[parent] += value."""
  run_groups(record, _ZERO, np.uint64(record.tree.groups.shape[0]), True)


@inlined
def run_groups(record: Backward, begin: int, end: int, carries: bool) -> None:
  """Calls the block kernel on the groups from `end - 1` down to `begin`.

  If `carries`, the value of each infoset is added to the utility of the sequence above it.
  """
  groups, parent, kernel = record.tree.groups, record.tree.parent, record.kernel
  # Compiled code can assign to the fields of a record.
  block: Any = record.block
  utility, value = block.utility, block.value
  for back in range(end - begin):
    first, stride, num_infosets, actions, infoset = group_at(groups, end - _ONE - back)
    block.stride, block.actions = stride, actions
    for start in range(_ZERO, num_infosets, _CHUNK):
      count = min(_CHUNK, num_infosets - start)
      block.first, block.infoset, block.size = first + start, infoset + start, count
      call(kernel, block)
      if carries:
        for i in range(count):
          utility[parent[infoset + start + i]] += value[i]


@inlined
def group_at(groups: Uint64s, group: int) -> tuple[int, int, int, int, int]:
  """Returns a group's first sequence, stride between actions, infosets, actions of an infoset, and first infoset."""
  line = groups[group]
  return line[FIRST_SEQUENCE], line[STRIDE], line[COUNT], line[ACTIONS], line[FIRST_INFOSET]


class Forward(NamedTuple):
  """The arguments of a forward pass.

  Attributes:
    tree: the infosets.
    strategy: float array (sequences,). The probability of each action at its infoset.
    sequence_form: float array (sequences,). The product of `strategy` on the way to each sequence, which the pass
      updates.
    reach: float array (`CHUNK`,). Workspace.
    cumulative: float array (sequences,). The weighted sum of sequence forms, to which the pass adds; shape (0,) without
      an average.
    weight: float64 (1,). The weight of this iteration in `cumulative`.
    total: float array (1,). The sum of all weights so far.
    averages_after: int. 1 to add the sequence form after the pass, 0 to add that before it.
  """

  tree: Tree
  strategy: Line
  sequence_form: Line
  reach: Line
  cumulative: Line
  weight: Doubles
  total: Line
  averages_after: Count


@step(Forward)
def forward_pass(record: Forward) -> None:
  """At every sequence s, from the root down: sequence_form[s] = sequence_form[above s] * strategy[s].

  With an average, cumulative[s] += weight * sequence_form[s], before or after the pass. Both happen in one pass because
  both read and write every sequence. In float32, sums are dithered, see `simd.add_unbiased`.
  """
  groups, parent, reach = record.tree.groups, record.tree.parent, record.reach
  strategy, sequence_form, cumulative = record.strategy, record.sequence_form, record.cumulative
  is_averaged = cumulative.shape[0] > _ZERO
  weight_after = record.weight[0] * np.float64(record.averages_after)
  weight_before = record.weight[0] - weight_after
  before, after = number_for(cumulative, weight_before), number_for(cumulative, weight_after)
  dither = number_for(cumulative, dither_after(record.total[0]))
  for group in range(np.uint64(groups.shape[0])):
    first, stride, num_infosets, actions, infoset = group_at(groups, group)
    for start in range(_ZERO, num_infosets, _CHUNK):
      count = min(_CHUNK, num_infosets - start)
      for i in range(count):
        reach[i] = sequence_form[parent[infoset + start + i]]
      if is_single(strategy):
        for action in range(actions):
          at = first + start + action * stride
          for i in range(count):
            updated = reach[i] * strategy[at + i]
            if is_averaged:
              added = before * sequence_form[at + i] + after * updated
              cumulative[at + i] = add_unbiased(cumulative[at + i], added, dither)
            sequence_form[at + i] = updated
      else:
        # The padding of the last vector has reach 0.
        for i in range(count, count + (-count) % width(strategy)):
          reach[i] = 0.0
        for i in range(_ZERO, count, width(strategy)):
          above, zero = load(reach, i), full(0.0)
          at = first + start + i
          for _ in range(actions):
            # Where `above` is 0, take 0: in padding, a block kernel may leave a strategy of NaN, and 0 * NaN is NaN.
            played = where_greater(above, zero, above * load(strategy, at), above)
            if is_averaged:
              gained = full(weight_before) * load(sequence_form, at) + full(weight_after) * played
              store(cumulative, at, load(cumulative, at) + gained)
            store(sequence_form, at, played)
            at += stride


@inlined
def dither_after(total: float) -> float:
  """Returns the dither of an average: a number from -1/2 to 1/2 that depends on the sum of its weights so far.

  Weights are polynomials of the iteration, so the numbers of consecutive iterations are evenly distributed (Weyl 1916).
  """
  multiple = np.float64(total) * _GOLDEN
  whole: float = np.floor(multiple)
  return multiple - whole - 0.5
