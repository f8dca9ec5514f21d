"""Block kernels: functions that update up to 256 infosets in one call, such as regret matching; and helpers for them.

A block is a range of infosets of one group (`treeplex`). A block kernel takes one argument, a `Block`, and writes the
strategy and the value of each of its infosets. For i from 0 to `size - 1`, the data of infoset i of the block are

    sequence = block.first + action * block.stride + i
    strategy[sequence], utility[sequence], action_state[line, sequence]     for each action
    infoset_state[line, block.infoset + i], scale[block.infoset + i], value[i]

A vector of `_numba.simd` holds eight infosets, or sixteen in float32. `regret_minimizers.regret_matching` has the
simplest block kernel.

A kernel may also loop over single infosets; the compiler vectorizes such loops where it can. `first`, `stride` and the
length of `value` and `scratch` are multiples of a vector. A kernel may therefore read and write `strategy`, `utility`,
`action_state`, `value` and `scratch` beyond `size`, up to the next multiple: numbers in the padding are finite, and
results in it are ignored. Elements of `infoset_state` beyond `size` may be read, but not written.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Uint16s, aligned_zeros
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, Doubles, DoubleTable, Line, Shorts, Table
from spiel_cfr._numba.simd import MOST_LANES, full, load, load_short, store, where_greater, width
from spiel_cfr._numba.steps import StepKernel

# Largest size of a block: large enough to hide the cost of a call, small enough for the level-1 cache.
CHUNK = 256
# Number of lines of `Block.scratch`.
SCRATCH_LINES = 5


class Block(NamedTuple):
  """Infosets with the same number of actions, and the arrays of a block kernel.

  Attributes:
    strategy: float array (sequences,). The probability of each action at its infoset.
    utility: float array (sequences,). The counterfactual utility of each sequence.
    action_state: float array (lines, sequences). The numbers that a minimizer keeps for each action, such as regrets.
    infoset_state: float64 (lines, infosets). The numbers that a minimizer keeps for each infoset.
    scale: uint16 (infosets,). The upper 16 bits of a double that is about the largest utility at each infoset.
    value: float array (`CHUNK`,). The value of each infoset, written by the kernel and added to the sequence above.
    scratch: float array (`SCRATCH_LINES`, `CHUNK`). Workspace.
    parameters: float64 (numbers,). The numbers of this iteration, from `RegretMinimizer.parameters`.
    first: int. The sequence of action 0 at the first infoset.
    stride: int. The distance from one action's sequence to the next action's.
    infoset: int. The first infoset.
    size: int. The number of infosets.
    actions: int. The number of actions of each infoset.
  """

  strategy: Line
  utility: Line
  action_state: Table
  infoset_state: DoubleTable
  scale: Shorts
  value: Line
  scratch: Table
  parameters: Doubles
  first: Count = 0
  stride: Count = 0
  infoset: Count = 0
  size: Count = 0
  actions: Count = 0


class Scratch(NamedTuple):
  """The workspace of block kernels, one for each thread.

  Attributes:
    line: float array (`CHUNK`,). `Block.value`, or `Forward.reach`.
    lines: float array (`SCRATCH_LINES`, `CHUNK`). `Block.scratch`.
  """

  line: AnyFloats
  lines: AnyFloats


def new_scratch(dtype: npt.DTypeLike = np.float64) -> Scratch:
  """Returns the workspace of one thread."""
  return Scratch(
    aligned_zeros(CHUNK, dtype=dtype),
    aligned_zeros(SCRATCH_LINES, CHUNK, dtype=dtype),
  )


_ZERO = np.uint64(0)


def block_kernel(function: Any) -> StepKernel:
  """Decorator that compiles a function of a `Block` for float64 and float32, in this package or a user's file."""
  return StepKernel(function, Block)


def block_kernel_address(kernel: Any, dtype: npt.DTypeLike) -> int:
  """Returns the address of a block kernel's machine code for float64 or float32.

  Raises:
    ArgumentError: `kernel` is not a block kernel. Compiled code would misread another kernel's record as a block.
  """
  return _checked(kernel).of(dtype).address


def try_block_kernel(kernel: Any, block: Block, actions: int, minimizer: Any) -> None:
  """Runs a block kernel of a user's minimizer once, with checks of indices, on a small block.

  Args:
    kernel: the block kernel.
    block: the solver's arrays. The small block has the same numbers of lines, and the same parameters.
    actions: the number of actions of the infosets.
    minimizer: the minimizer, for error messages.

  Raises:
    ArgumentError: `kernel` is not a block kernel; numba can't compile it; an index is beyond an array; the kernel
      writes no distribution to `strategy`; or it is not `resume` and does not write `value`.
  """
  dtype, sequences = block.strategy.dtype, actions * MOST_LANES
  scratch = new_scratch(dtype)
  trial = Block(
    strategy=np.full(sequences, 1.0 / actions, dtype),
    utility=_trial_utilities(actions).astype(dtype),
    action_state=np.zeros((len(block.action_state), sequences), dtype),
    infoset_state=np.ones((len(block.infoset_state), 2 * MOST_LANES)),
    scale=as_scale(np.ones(MOST_LANES)),
    value=scratch.line,
    scratch=scratch.lines,
    parameters=block.parameters.copy(),
    stride=MOST_LANES,
    size=MOST_LANES,
    actions=actions,
  )
  scratch.line[:] = np.nan
  _checked(kernel).try_on(
    trial,
    f"{type(minimizer).__name__} has action_lines = {len(block.action_state)} (lines of `action_state`), "
    f"infoset_lines = {len(block.infoset_state)} (lines of `infoset_state`) and {len(block.parameters)} `parameters`; "
    "the kernel needs more of one of them, or uses another index beyond the block.",
  )
  if kernel is not minimizer.resume and np.isnan(scratch.line[:MOST_LANES]).any():
    raise errors.ArgumentError(
      f"{kernel.__qualname__} must write the value of each infoset to `value`: call expected_value(block, i)."
    )
  if not np.allclose(trial.strategy.reshape(actions, MOST_LANES).sum(axis=0), 1.0, atol=1e-3):
    raise errors.ArgumentError(
      f"{kernel.__qualname__} must write probabilities that sum to 1 to `strategy`, also for utilities of 0: call "
      "normalize(block, i, total)."
    )


def _trial_utilities(actions: int) -> Float64s:
  """Returns the utilities of a trial, shape (actions * MOST_LANES,): 0 at the first infoset, then -1, 0 and 1."""
  places = np.outer(np.arange(1, actions + 1), np.arange(MOST_LANES))
  return np.where(np.arange(MOST_LANES) > 0, places % 3 - 1.0, 0.0).ravel()


def _checked(kernel: Any) -> StepKernel:
  """Returns a block kernel; raises ArgumentError for anything else."""
  if not isinstance(kernel, StepKernel) or kernel.record is not Block:
    raise errors.ArgumentError(
      f"{getattr(kernel, '__qualname__', kernel)!s} is not a block kernel. Decorate a function of a Block with "
      "spiel_cfr.regret_minimizers.block_kernel."
    )
  return kernel


def as_scale(values: Float64s) -> Uint16s:
  """Converts non-negative numbers to `Block.scale`, with padding for a vector at the end."""
  quarters = np.ascontiguousarray(values, np.float64).view(np.uint64) >> np.uint64(48)
  return np.pad(quarters.astype(np.uint16), (0, MOST_LANES))


@inlined
def vector_starts(block: Block) -> Any:
  """Returns the first infoset of each vector of infosets, as an index i in the block: 0, 8, 16, ... in float64."""
  return range(_ZERO, block.size, width(block.strategy))


@inlined
def sequence(block: Block, action: int, i: int) -> int:
  """Returns the sequence of an action at infoset i of a block, an index in `strategy`, `utility` and `action_state`."""
  return block.first + action * block.stride + i


@inlined
def tolerance(block: Block, i: int) -> Any:
  """Returns the difference of utilities up to which two actions count as tied, for each infoset of the vector at i.

  It is the infoset's `scale` times the first parameter.
  """
  return load_short(block.scale, block.infoset + i, block.strategy) * full(block.parameters[0])


@inlined
def expected_value(block: Block, i: int) -> Any:
  """Writes the value of each infoset of the vector at i under its strategy to `block.value`, and returns it."""
  value = full(0.0)
  for action in range(block.actions):
    at = sequence(block, action, i)
    value = value + load(block.strategy, at) * load(block.utility, at)
  store(block.value, i, value)
  return value


@inlined
def normalize(block: Block, i: int, total: Any) -> None:
  """Divides strategies of the vector at i, none negative, by their sum `total`; makes them uniform where that is 0."""
  zero, one = full(0.0), full(1.0)
  # 1 where `total` is 0, so that no number is divided by 0.
  is_uniform = where_greater(total, zero, zero, one)
  factor, summand = one / (total + is_uniform), is_uniform * full(1.0 / block.actions)
  for action in range(block.actions):
    at = sequence(block, action, i)
    store(block.strategy, at, load(block.strategy, at) * factor + summand)
