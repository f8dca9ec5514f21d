"""Single passes for callers that do not iterate: backward passes, and conversions to sequence form and back."""

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Uint16s
from spiel_cfr._numba.steps import Step, StepKernel, step
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  Scratch,
  block_kernel_address,
  new_scratch,
)
from spiel_cfr.games.sequence_form.tree_passes import (
  Backward,
  Forward,
  Tree,
  backward_pass,
  forward_pass,
  group_at,
)

_NO_SCALE, _NO_STATE, _NO_NUMBERS = np.zeros(0, np.uint16), np.zeros((0, 0)), np.zeros(0)


@step(Forward)
def adopt_pass(record: Forward) -> None:
  """Converts sequence form to behavioral strategies. Infosets with reach probability 0 keep their strategy."""
  groups, parent = record.tree.groups, record.tree.parent
  strategy, sequence_form = record.strategy, record.sequence_form
  for group in range(np.uint64(groups.shape[0])):
    first, stride, num_infosets, actions, infoset = group_at(groups, group)
    for action in range(actions):
      at = first + action * stride
      for i in range(num_infosets):
        reach = sequence_form[parent[infoset + i]]
        if reach > 0.0:
          strategy[at + i] = sequence_form[at + i] / reach


def forward(tree: Tree, strategy: AnyFloats, sequence_form: AnyFloats, scratch: Scratch) -> Forward:
  """Returns the arguments of `adopt_pass`, and of a forward pass without an average."""
  none, zero = np.zeros(0, strategy.dtype), np.zeros(1, strategy.dtype)
  return Forward(tree, strategy, sequence_form, scratch.line, none, np.zeros(1), zero, 0)


def reach(tree: Tree, strategy: AnyFloats, sequence_form: AnyFloats, scratch: Scratch) -> Step:
  """Returns the forward pass, which converts behavioral strategies to sequence form; both have shape (sequences,)."""
  return forward_pass.on(forward(tree, strategy, sequence_form, scratch), strategy.dtype)


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
  line, lines = scratch or new_scratch(dtype)
  block = Block(
    strategy=line if strategy is None else strategy,
    utility=utility,
    action_state=lines if action_state is None else action_state,
    infoset_state=_NO_STATE if infoset_state is None else infoset_state,
    scale=scale,
    value=line,
    scratch=lines,
    parameters=_NO_NUMBERS if parameters is None else parameters,
  )
  return backward_pass.on(Backward(tree, block_kernel_address(kernel, dtype), block), dtype)
