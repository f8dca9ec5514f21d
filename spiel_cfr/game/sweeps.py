"""The two passes over a treeplex of which every algorithm here is made: from the leaves up, and from the root down."""

from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr.game.blocks import BLOCK_KERNEL, CHUNK, SCRATCH_LINES, Block
from spiel_cfr.kernels.arrays import (
  COUNT_TABLE,
  FLOAT_TABLE,
  FLOATS,
  INDICES,
  Float64s,
  Uint32s,
  Uint64s,
  aligned_zeros,
  borrowed,
  tuple_type,
)
from spiel_cfr.kernels.compile import Kernel, inlined, kernel

_ZERO, _ONE, _CHUNK = np.uint64(0), np.uint64(1), np.uint64(CHUNK)


class Tree(NamedTuple):
  """What a sweep has to know of treeplexes, one or several.

  Attributes:
    groups: see `treeplex.Treeplex`.
    parent: see there.
  """

  groups: Uint64s
  parent: Uint32s


class Memory(NamedTuple):
  """What a solver remembers from one iteration to the next.

  Attributes:
    strategy: probability of each sequence's action at its infoset, shape (sequences,).
    cumulative: weighted sum of the sequence forms of the iterations, shape (sequences,).
    state: the minimizer's, shape (lines, sequences).
    local: the minimizer's, shape (lines, infosets).
  """

  strategy: Float64s
  cumulative: Float64s
  state: Float64s
  local: Float64s


class Scratch(NamedTuple):
  """What block kernels work on, see `blocks.Block`.

  Attributes:
    value: shape (`CHUNK`,).
    lines: shape (`SCRATCH_LINES`, `CHUNK`).
  """

  value: Float64s
  lines: Float64s


TREE = tuple_type(Tree, COUNT_TABLE, INDICES)
MEMORY = tuple_type(Memory, FLOATS, FLOATS, FLOAT_TABLE, FLOAT_TABLE)
SCRATCH = tuple_type(Scratch, FLOATS, FLOAT_TABLE)


def new_scratch() -> Scratch:
  """Returns scratch for one thread."""
  return Scratch(aligned_zeros(CHUNK), aligned_zeros(SCRATCH_LINES, CHUNK))


@inlined
def sweep_up(
  kernel: Kernel,
  begin: int,
  end: int,
  tree: Tree,
  strategy: Float64s,
  utility: Float64s,
  state: Float64s,
  local: Float64s,
  parameters: Float64s,
  scratch: Scratch,
) -> None:
  """Runs a block kernel over the groups from `end - 1` down to `begin`, and adds their values to what is above."""
  groups, parent, value = tree.groups, tree.parent, scratch.value
  strategy, state, local = borrowed(strategy), borrowed(state), borrowed(local)
  gains, worth, lines = borrowed(utility), borrowed(value), borrowed(scratch.lines)
  numbers = borrowed(parameters)
  for back in range(end - begin):
    group = end - _ONE - back
    first, stride, total = groups[group, 0], groups[group, 1], groups[group, 2]
    actions, infoset = groups[group, 3], groups[group, 4]
    for start in range(_ZERO, total, _CHUNK):
      count = min(_CHUNK, total - start)
      kernel(
        Block(
          strategy,
          gains,
          state,
          local,
          worth,
          lines,
          numbers,
          first + start,
          stride,
          infoset + start,
          count,
          actions,
        )
      )
      for i in range(count):
        utility[parent[infoset + start + i]] += value[i]


@inlined
def sweep_down(
  begin: int,
  end: int,
  tree: Tree,
  strategy: Float64s,
  sequence_form: Float64s,
  cumulative: Float64s,
  scratch: Scratch,
  weight_before: float,
  weight_after: float,
) -> None:
  """Brings `sequence_form` up to date, and adds both what it was and what it becomes to `cumulative`."""
  groups, parent, reach = tree.groups, tree.parent, scratch.value
  for group in range(begin, end):
    first, stride, total = groups[group, 0], groups[group, 1], groups[group, 2]
    actions, infoset = groups[group, 3], groups[group, 4]
    for start in range(_ZERO, total, _CHUNK):
      count = min(_CHUNK, total - start)
      for i in range(count):
        reach[i] = sequence_form[parent[infoset + start + i]]
      for action in range(actions):
        row = first + start + action * stride
        for i in range(count):
          updated = reach[i] * strategy[row + i]
          cumulative[row + i] += weight_before * sequence_form[row + i] + weight_after * updated
          sequence_form[row + i] = updated


@kernel(
  types.void(
    types.FunctionType(BLOCK_KERNEL),
    TREE,
    FLOATS,
    FLOATS,
    FLOAT_TABLE,
    FLOAT_TABLE,
    FLOATS,
    SCRATCH,
  )
)
def tree_up(
  block_kernel: Kernel,
  tree: Tree,
  strategy: Float64s,
  utility: Float64s,
  state: Float64s,
  local: Float64s,
  parameters: Float64s,
  scratch: Scratch,
) -> None:
  """`sweep_up` over all groups."""
  groups = np.uint64(tree.groups.shape[0])
  sweep_up(block_kernel, _ZERO, groups, tree, strategy, utility, state, local, parameters, scratch)


@kernel(types.void(TREE, FLOATS, FLOATS, FLOATS, SCRATCH, types.float64, types.float64))
def tree_down(
  tree: Tree,
  strategy: Float64s,
  sequence_form: Float64s,
  cumulative: Float64s,
  scratch: Scratch,
  weight_before: float,
  weight_after: float,
) -> None:
  """`sweep_down` over all groups."""
  groups = np.uint64(tree.groups.shape[0])
  sweep_down(
    _ZERO, groups, tree, strategy, sequence_form, cumulative, scratch, weight_before, weight_after
  )


@inlined
def sweep_reach(
  begin: int,
  end: int,
  tree: Tree,
  strategy: Float64s,
  sequence_form: Float64s,
  scratch: Scratch,
) -> None:
  """Turns local strategies into sequence form, nothing more."""
  groups, parent, reach = tree.groups, tree.parent, scratch.value
  for group in range(begin, end):
    first, stride, total = groups[group, 0], groups[group, 1], groups[group, 2]
    actions, infoset = groups[group, 3], groups[group, 4]
    for start in range(_ZERO, total, _CHUNK):
      count = min(_CHUNK, total - start)
      for i in range(count):
        reach[i] = sequence_form[parent[infoset + start + i]]
      for action in range(actions):
        row = first + start + action * stride
        for i in range(count):
          sequence_form[row + i] = reach[i] * strategy[row + i]


@kernel(types.void(TREE, FLOATS, FLOATS, SCRATCH))
def tree_reach(tree: Tree, strategy: Float64s, sequence_form: Float64s, scratch: Scratch) -> None:
  """`sweep_reach` over all groups."""
  sweep_reach(_ZERO, np.uint64(tree.groups.shape[0]), tree, strategy, sequence_form, scratch)


@kernel(types.void(TREE, FLOATS, FLOATS))
def tree_adopt(tree: Tree, sequence_form: Float64s, strategy: Float64s) -> None:
  """Turns sequence form into local strategies; where an owner does not play to, they stay as they are."""
  groups, parent = tree.groups, tree.parent
  for group in range(np.uint64(groups.shape[0])):
    first, stride, total = groups[group, 0], groups[group, 1], groups[group, 2]
    actions, infoset = groups[group, 3], groups[group, 4]
    for action in range(actions):
      row = first + action * stride
      for i in range(total):
        reach = sequence_form[parent[infoset + i]]
        if reach > 0.0:
          strategy[row + i] = sequence_form[row + i] / reach
