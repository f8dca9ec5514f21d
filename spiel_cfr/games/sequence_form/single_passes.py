"""Single passes for callers that do not iterate: backward passes, and conversions to sequence form and back."""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Uint16s
from spiel_cfr._numba.records import Line
from spiel_cfr._numba.steps import Step, StepKernel, step
from spiel_cfr.games.sequence_form.blocks import (
  CHUNK,
  Block,
  Scratch,
  block_kernel_address,
  new_scratch,
)
from spiel_cfr.games.sequence_form.tree_passes import (
  Backward,
  Tree,
  backward_pass,
  group_at,
)

_ZERO, _CHUNK = np.uint64(0), np.uint64(CHUNK)
_NO_SCALE, _NO_STATE, _NO_NUMBERS = np.zeros(0, np.uint16), np.zeros((0, 0)), np.zeros(0)


class Reach(NamedTuple):
  """The arguments of `reach_pass` and `adopt_pass`.

  Attributes:
    tree: Tree. The infosets.
    strategy: float array (sequences,). The probability of each action at its infoset.
    sequence_form: float array (sequences,). The reach probability of each sequence by its player's actions.
    reach: float array (`CHUNK`,). Workspace.
  """

  tree: Tree
  strategy: Line
  sequence_form: Line
  reach: Line


@step(Reach)
def reach_pass(record: Reach) -> None:
  """Converts behavioral strategies to sequence form; `sequence_form` must have the probability of each root."""
  groups, parent, reach = record.tree.groups, record.tree.parent, record.reach
  strategy, sequence_form = record.strategy, record.sequence_form
  for group in range(np.uint64(groups.shape[0])):
    first, stride, num_infosets, actions, infoset = group_at(groups, group)
    for start in range(_ZERO, num_infosets, _CHUNK):
      count = min(_CHUNK, num_infosets - start)
      for i in range(count):
        reach[i] = sequence_form[parent[infoset + start + i]]
      for action in range(actions):
        row = first + start + action * stride
        for i in range(count):
          sequence_form[row + i] = reach[i] * strategy[row + i]


@step(Reach)
def adopt_pass(record: Reach) -> None:
  """Converts sequence form to behavioral strategies. Infosets with reach probability 0 keep their strategy."""
  groups, parent = record.tree.groups, record.tree.parent
  strategy, sequence_form = record.strategy, record.sequence_form
  for group in range(np.uint64(groups.shape[0])):
    first, stride, num_infosets, actions, infoset = group_at(groups, group)
    for action in range(actions):
      row = first + action * stride
      for i in range(num_infosets):
        reach = sequence_form[parent[infoset + i]]
        if reach > 0.0:
          strategy[row + i] = sequence_form[row + i] / reach


def reach(tree: Tree, strategy: AnyFloats, sequence_form: AnyFloats, scratch: Scratch) -> Step:
  """Returns the step that converts behavioral strategies to sequence form; both have shape (sequences,)."""
  return reach_pass.on(Reach(tree, strategy, sequence_form, scratch.value), strategy.dtype)


def backward(
  kernel: StepKernel,
  tree: Tree,
  utility: AnyFloats,
  *,
  strategy: AnyFloats | None = None,
  action_state: AnyFloats | None = None,
  infoset_state: Float64s | None = None,
  parameters: Float64s | None = None,
  scale: Uint16s = _NO_SCALE,
  scratch: Scratch | None = None,
) -> Step:
  """Returns the step of a backward pass.

  An argument that is left out must not be read by the kernel.

  Args:
    kernel: the block kernel.
    tree: the infosets.
    utility: shape (sequences,). The values of infosets are added to it on the way up.
    strategy: as of `blocks.Block`.
    action_state: as of `blocks.Block`.
    infoset_state: as of `blocks.Block`.
    parameters: as of `blocks.Block`.
    scale: as of `blocks.Block`.
    scratch: the workspace; by default, a new one.
  """
  dtype = utility.dtype
  value, lines = scratch or new_scratch(dtype)
  block = Block(
    strategy=value if strategy is None else strategy,
    utility=utility,
    action_state=lines if action_state is None else action_state,
    infoset_state=_NO_STATE if infoset_state is None else infoset_state,
    scale=scale,
    value=value,
    scratch=lines,
    parameters=_NO_NUMBERS if parameters is None else parameters,
  )
  return backward_pass.on(Backward(tree, block_kernel_address(kernel, dtype), block), dtype)
