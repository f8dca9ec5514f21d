"""What is done at one infoset is done to a block of them at once: the contract of block kernels, and help with them.

A block is infosets with the same number of actions, independent of each other. A block kernel takes one argument, a
`Block`, and decides what they do. With

    row = block.first + action * block.stride

element `row + i` of `strategy`, of `utility` and of each line of `action_state` belongs to infoset i of the block, i
from 0 to `size - 1`; element `block.infoset + i` of each line of `infoset_state` does too, and element i of `value`.

Eight infosets fit in a vector of `_numba.simd`, sixteen in float32, and regret matching, say, reads

    @block_kernel
    def regret_matching(block):
      regret = block.action_state[0]
      for i in lanes(block):
        value, tie, total = expected_value(block, i), tolerance(block, i), full(0.0)
        for action in range(block.actions):
          row = sequence(block, action, i)
          updated = load(regret, row) + load(block.utility, row) - value
          positive = where_greater(updated, tie, updated, full(0.0))
          store(regret, row, updated)
          store(block.strategy, row, positive)
          total = total + positive
        normalize(block, i, total)

A kernel may also loop over single infosets; the compiler makes vectors of such loops where it can. `first`, `stride`
and the length of `value` and `scratch` are multiples of a vector, so that in `strategy`, `utility`, `action_state`,
`value` and `scratch` a kernel may go beyond `size` up to the next multiple. What it finds there is finite, and what it
leaves is of no consequence. In `infoset_state` it may only read there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  COUNT,
  FLOAT_TABLE,
  FLOATS,
  SHORTS,
  AnyFloats,
  Float64s,
  Uint16s,
  floats,
  tuple_type,
)
from spiel_cfr._numba.kernels import Kernel, inlined
from spiel_cfr._numba.simd import MOST_LANES, full, load, load_short, store, where_greater, width

# Infosets that a block kernel is given at a time: enough to hide the call, few enough for the level-1 cache.
CHUNK = 256
# Lines of `Block.scratch`.
SCRATCH_LINES = 5


class Block(NamedTuple):
  """Infosets with the same number of actions, and all that a kernel may know of them.

  Attributes:
    strategy: probability of each action at its infoset, shape (sequences,).
    utility: counterfactual utility of each sequence, shape (sequences,).
    action_state: what a minimizer keeps for each action, shape (lines, sequences).
    infoset_state: what it keeps for each infoset, shape (lines, infosets).
    scale: how large utilities can be at each infoset, roughly, as the first quarter of a double; shape (infosets,).
    value: where a kernel leaves what each infoset is worth to what is above, shape (`CHUNK`,).
    scratch: free to use, shape (`SCRATCH_LINES`, `CHUNK`).
    parameters: what the minimizer's kernels are told in this iteration, shape (numbers,).
    first: the sequence of action 0 at the first infoset.
    stride: from there to the sequence of the next action.
    infoset: the first infoset.
    size: how many infosets there are.
    actions: how many actions each has.
  """

  strategy: AnyFloats
  utility: AnyFloats
  action_state: AnyFloats
  infoset_state: Float64s
  scale: Uint16s
  value: AnyFloats
  scratch: AnyFloats
  parameters: Float64s
  first: int
  stride: int
  infoset: int
  size: int
  actions: int


def block_type(number: Any) -> Any:
  """Returns the numba type of blocks in a precision; `infoset_state` and `parameters` are float64 in any case."""
  line, table = floats(number), floats(number, 2)
  return tuple_type(
    Block, line, line, table, FLOAT_TABLE, SHORTS, line, table, FLOATS, *[COUNT] * 5
  )


def block_signature(number: Any) -> Any:
  """Returns the signature of block kernels in a precision."""
  return types.void(block_type(number))


_ZERO = np.uint64(0)


def block_kernel(function: Callable[[Any], None]) -> Kernel:
  """Decorator that compiles a block kernel, here or in a user's own file; in the precision of what it is given."""
  return Kernel(function, block_signature, python_calls=False, passed=True)


def as_scale(values: Float64s) -> Uint16s:
  """Returns what `Block.scale` is made of, given numbers that are not negative, with room for a vector at the end."""
  quarters = np.ascontiguousarray(values, np.float64).view(np.uint64) >> np.uint64(48)
  return np.pad(quarters.astype(np.uint16), (0, MOST_LANES))


@inlined
def lanes(block: Block) -> Any:
  """Returns the first infoset of each vector of a block."""
  return range(_ZERO, block.size, width(block.strategy))


@inlined
def sequence(block: Block, action: int, i: int) -> int:
  """Returns the sequence of an action at infoset i of a block."""
  return block.first + action * block.stride + i


@inlined
def tolerance(block: Block, i: int) -> Any:
  """Returns below what a difference of utilities is rounding, for vector i: `scale` times the first parameter."""
  return load_short(block.scale, block.infoset + i, block.strategy) * full(block.parameters[0])


@inlined
def expected_value(block: Block, i: int) -> Any:
  """Returns what each infoset of vector i is worth under its strategy, and leaves it in `value`."""
  value = full(0.0)
  for action in range(block.actions):
    row = sequence(block, action, i)
    value = value + load(block.strategy, row) * load(block.utility, row)
  store(block.value, i, value)
  return value


@inlined
def normalize(block: Block, i: int, total: Any) -> None:
  """Divides the strategies of vector i, which sum to `total`, by that; uniform where it is not positive."""
  zero, one = full(0.0), full(1.0)
  none = where_greater(total, zero, zero, one)
  share, rest = one / (total + none), none * full(1.0 / block.actions)
  for action in range(block.actions):
    row = sequence(block, action, i)
    store(block.strategy, row, load(block.strategy, row) * share + rest)
