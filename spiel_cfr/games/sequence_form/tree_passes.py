"""Backward and forward passes over a player's infosets: from the deepest up, and from the root down.

A backward pass computes counterfactual values and calls a block kernel, which updates regrets and strategies. A forward
pass computes reach probabilities. Each pass is a step (`_numba.steps`): a kernel, and a record of the arrays that it
reads and writes. It visits one group of infosets (`treeplex`) after the other, in blocks of up to 256 infosets.
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba import arrays
from spiel_cfr._numba.arrays import Uint64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Address, CountTable, Indices, Line, call
from spiel_cfr._numba.simd import full, load, store, where_greater, width
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
  """The arguments of `forward_pass` and of `single_passes.adopt_pass`.

  Attributes:
    tree: the infosets.
    strategy: float array (sequences,). The probability of each action at its infoset.
    sequence_form: float array (sequences,). The product of `strategy` on the way to each sequence.
    reach: float array (`CHUNK`,). Workspace.
  """

  tree: Tree
  strategy: Line
  sequence_form: Line
  reach: Line


@step(Forward)
def forward_pass(record: Forward) -> None:
  """At every sequence s, from the root down: sequence_form[s] = sequence_form[above s] * strategy[s].

  The caller sets `sequence_form` at each root.
  """
  groups, parent, reach = record.tree.groups, record.tree.parent, record.reach
  strategy, sequence_form, zero = record.strategy, record.sequence_form, full(0.0)
  for group in range(np.uint64(groups.shape[0])):
    first, stride, num_infosets, actions, infoset = group_at(groups, group)
    for start in range(_ZERO, num_infosets, _CHUNK):
      count = min(_CHUNK, num_infosets - start)
      for i in range(count):
        reach[i] = sequence_form[parent[infoset + start + i]]
      # The padding of the last vector has reach 0.
      for i in range(count, count + (-count) % width(strategy)):
        reach[i] = 0.0
      for i in range(_ZERO, count, width(strategy)):
        above, row = load(reach, i), first + start + i
        for _ in range(actions):
          # Where `above` is 0, take 0: in padding, a block kernel may leave a strategy of NaN, and 0 * NaN is NaN.
          store(sequence_form, row, where_greater(above, zero, above * load(strategy, row), above))
          row += stride
