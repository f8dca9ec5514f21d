"""The two passes over a treeplex of which every algorithm here is made: from the leaves up, and from the root down."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from spiel_cfr._numba import arrays
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Uint16s, Uint32s, Uint64s, borrowed
from spiel_cfr._numba.kernels import Kernel, inlined, kernel
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
from spiel_cfr.games.sequence_form.blocks import CHUNK, SCRATCH_LINES, Block, block_signature
from spiel_cfr.games.sequence_form.treeplex import (
  ACTIONS,
  COUNT,
  FIRST_INFOSET,
  FIRST_SEQUENCE,
  STRIDE,
)

NO_SCALE = np.zeros(0, np.uint16)
_ZERO, _ONE, _CHUNK = np.uint64(0), np.uint64(1), np.uint64(CHUNK)
# The golden section: its multiples, less their integers, are spread as evenly as can be.
_GOLDEN = (5.0**0.5 - 1.0) / 2.0


class Tree(NamedTuple):
  """What a sweep has to know of treeplexes, one or several.

  Attributes:
    groups: see `treeplex.Treeplex`.
    parent: see there.
    scale: see `blocks.Block`; empty for sweeps with block kernels that don't read it.
  """

  groups: Uint64s
  parent: Uint32s
  scale: Uint16s = NO_SCALE

  def __reduce__(self) -> tuple[Any, ...]:
    return arrays.unpickled, (Tree, *self)


class Memory(NamedTuple):
  """What a solver remembers from one iteration to the next.

  Attributes:
    strategy: probability of each sequence's action at its infoset, shape (sequences,).
    cumulative: weighted sum of the sequence forms of the iterations, shape (sequences,).
    action_state: what the minimizer keeps for each action, shape (lines, sequences).
    infoset_state: what it keeps for each infoset, shape (lines, infosets).
  """

  strategy: AnyFloats
  cumulative: AnyFloats
  action_state: AnyFloats
  infoset_state: Float64s


class Scratch(NamedTuple):
  """What block kernels work on, see `blocks.Block`.

  Attributes:
    value: shape (`CHUNK`,).
    lines: shape (`SCRATCH_LINES`, `CHUNK`).
  """

  value: AnyFloats
  lines: AnyFloats


TREE = arrays.tuple_type(Tree, arrays.COUNT_TABLE, arrays.INDICES, arrays.SHORTS)


def memory_type(number: Any) -> Any:
  """Returns the numba type of memory in a precision; `infoset_state` is float64 in any case."""
  line = arrays.floats(number)
  return arrays.tuple_type(Memory, line, line, arrays.floats(number, 2), arrays.FLOAT_TABLE)


def scratch_type(number: Any) -> Any:
  """Returns the numba type of scratch in a precision."""
  return arrays.tuple_type(Scratch, arrays.floats(number), arrays.floats(number, 2))


def new_scratch(dtype: npt.DTypeLike = np.float64) -> Scratch:
  """Returns scratch for one thread."""
  return Scratch(
    arrays.aligned_zeros(CHUNK, dtype=dtype),
    arrays.aligned_zeros(SCRATCH_LINES, CHUNK, dtype=dtype),
  )


@inlined
def group_at(groups: Uint64s, group: int) -> tuple[int, int, int, int, int]:
  """Returns a group's first sequence, stride between actions, infosets, actions of each of these, first infoset."""
  line = groups[group]
  return line[FIRST_SEQUENCE], line[STRIDE], line[COUNT], line[ACTIONS], line[FIRST_INFOSET]


@inlined
def groups_of(players: Uint64s, player: int) -> tuple[int, int]:
  """Returns a player's first group and one past the last, from `CompiledGame.players`."""
  return players[player, 0], players[player, 1]


@inlined
def sequences_of(players: Uint64s, player: int) -> tuple[int, int]:
  """Returns a player's empty sequence and one past the last sequence, from `CompiledGame.players`."""
  return players[player, 2], players[player, 3]


@inlined
def backward_pass(
  kernel: Kernel,
  begin: int,
  end: int,
  tree: Tree,
  strategy: AnyFloats,
  utility: AnyFloats,
  action_state: AnyFloats,
  infoset_state: Float64s,
  parameters: Float64s,
  scratch: Scratch,
) -> None:
  """Runs a block kernel over the groups from `end - 1` down to `begin`, and adds their values to what is above.

  Where `tree.parent` is empty, values stay where they are.
  """
  groups, parent, value = tree.groups, tree.parent, scratch.value
  carries = parent.shape[0] != 0
  strategy, action_state, infoset_state = (
    borrowed(strategy),
    borrowed(action_state),
    borrowed(infoset_state),
  )
  gains, worth, lines = borrowed(utility), borrowed(value), borrowed(scratch.lines)
  numbers, scale = borrowed(parameters), borrowed(tree.scale)
  for back in range(end - begin):
    group = end - _ONE - back
    first, stride, total, actions, infoset = group_at(groups, group)
    for start in range(_ZERO, total, _CHUNK):
      count = min(_CHUNK, total - start)
      kernel(
        Block(
          strategy,
          gains,
          action_state,
          infoset_state,
          scale,
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
      if carries:
        for i in range(count):
          utility[parent[infoset + start + i]] += value[i]


@inlined
def dither_after(total: float) -> float:
  """Returns a number from -1/2 to 1/2 that depends on what the weights of an average sum to so far.

  The sums grow by the weights, polynomials of the iteration, and so these numbers are spread evenly (Weyl 1916).
  """
  turns = total * _GOLDEN
  below: float = np.floor(turns)
  return turns - below - 0.5


@inlined
def forward_pass(
  begin: int,
  end: int,
  tree: Tree,
  strategy: AnyFloats,
  sequence_form: AnyFloats,
  cumulative: AnyFloats,
  scratch: Scratch,
  weight_before: float,
  weight_after: float,
  dither: float,
) -> None:
  """Brings `sequence_form` up to date, and adds both what it was and what it becomes to `cumulative`.

  In float32 what is added is dithered, see `simd.add_unbiased`; `dither` is what `dither_after` returns.
  """
  groups, parent, reach = tree.groups, tree.parent, scratch.value
  before, after = number_for(cumulative, weight_before), number_for(cumulative, weight_after)
  dither = number_for(cumulative, dither)
  for group in range(begin, end):
    first, stride, total, actions, infoset = group_at(groups, group)
    for start in range(_ZERO, total, _CHUNK):
      count = min(_CHUNK, total - start)
      for i in range(count):
        reach[i] = sequence_form[parent[infoset + start + i]]
      if is_single(strategy):
        for action in range(actions):
          row = first + start + action * stride
          for i in range(count):
            updated = reach[i] * strategy[row + i]
            added = before * sequence_form[row + i] + after * updated
            cumulative[row + i] = add_unbiased(cumulative[row + i], added, dither)
            sequence_form[row + i] = updated
      else:
        # Nobody plays to padding.
        for i in range(count, count + (-count) % width(strategy)):
          reach[i] = 0.0
        for i in range(_ZERO, count, width(strategy)):
          share, none = load(reach, i), full(0.0)
          row = first + start + i
          for _ in range(actions):
            played = where_greater(share, none, share * load(strategy, row), share)
            gained = full(weight_before) * load(sequence_form, row) + full(weight_after) * played
            store(cumulative, row, load(cumulative, row) + gained)
            store(sequence_form, row, played)
            row += stride


def backward_signature(number: Any) -> Any:
  """Returns the signature of `tree_backward_pass`."""
  return types.void(
    types.FunctionType(block_signature(number)),
    TREE,
    arrays.floats(number),
    arrays.floats(number),
    arrays.floats(number, 2),
    arrays.FLOAT_TABLE,
    arrays.FLOATS,
    scratch_type(number),
  )


@kernel(backward_signature, passed=True)
def tree_backward_pass(
  block_kernel: Kernel,
  tree: Tree,
  strategy: AnyFloats,
  utility: AnyFloats,
  action_state: AnyFloats,
  infoset_state: Float64s,
  parameters: Float64s,
  scratch: Scratch,
) -> None:
  """`backward_pass` over all groups."""
  groups = np.uint64(tree.groups.shape[0])
  backward_pass(
    block_kernel,
    _ZERO,
    groups,
    tree,
    strategy,
    utility,
    action_state,
    infoset_state,
    parameters,
    scratch,
  )


def forward_signature(number: Any) -> Any:
  """Returns the signature of `tree_forward_pass`."""
  return types.void(TREE, *[arrays.floats(number)] * 3, scratch_type(number), *[types.float64] * 3)


@kernel(forward_signature, passed=True)
def tree_forward_pass(
  tree: Tree,
  strategy: AnyFloats,
  sequence_form: AnyFloats,
  cumulative: AnyFloats,
  scratch: Scratch,
  weight_before: float,
  weight_after: float,
  total: float,
) -> None:
  """`forward_pass` over all groups; the weights of the average sum to `total` so far."""
  groups = np.uint64(tree.groups.shape[0])
  forward_pass(
    _ZERO,
    groups,
    tree,
    strategy,
    sequence_form,
    cumulative,
    scratch,
    weight_before,
    weight_after,
    dither_after(total),
  )


def reach_signature(number: Any) -> Any:
  """Returns the signature of `tree_reach`."""
  return types.void(TREE, *[arrays.floats(number)] * 2, scratch_type(number))


@kernel(reach_signature, passed=True)
def tree_reach(tree: Tree, strategy: AnyFloats, sequence_form: AnyFloats, scratch: Scratch) -> None:
  """Turns local strategies into sequence form, nothing more."""
  groups, parent, reach = tree.groups, tree.parent, scratch.value
  for group in range(np.uint64(groups.shape[0])):
    first, stride, total, actions, infoset = group_at(groups, group)
    for start in range(_ZERO, total, _CHUNK):
      count = min(_CHUNK, total - start)
      for i in range(count):
        reach[i] = sequence_form[parent[infoset + start + i]]
      for action in range(actions):
        row = first + start + action * stride
        for i in range(count):
          sequence_form[row + i] = reach[i] * strategy[row + i]


@kernel(lambda number: types.void(TREE, *[arrays.floats(number)] * 2))
def tree_adopt(tree: Tree, sequence_form: AnyFloats, strategy: AnyFloats) -> None:
  """Turns sequence form into local strategies; where an owner does not play to, they stay as they are."""
  groups, parent = tree.groups, tree.parent
  for group in range(np.uint64(groups.shape[0])):
    first, stride, total, actions, infoset = group_at(groups, group)
    for action in range(actions):
      row = first + action * stride
      for i in range(total):
        reach = sequence_form[parent[infoset + i]]
        if reach > 0.0:
          strategy[row + i] = sequence_form[row + i] / reach
