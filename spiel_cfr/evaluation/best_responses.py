"""The compiled code that finds best responses, with which policies are evaluated."""

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import COUNT_TABLE, FLOAT_TABLE, FLOATS, Float64s, Uint64s
from spiel_cfr._numba.kernels import Kernel, inlined, kernel
from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr.games.payoffs.payoff import PayoffArrays, gradient_signature, payoff_arrays_type
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  block_signature,
  lanes,
  sequence,
)
from spiel_cfr.games.sequence_form.tree_passes import (
  TREE,
  Scratch,
  Tree,
  backward_pass,
  group_at,
  groups_of,
  scratch_type,
  sequences_of,
)


@block_kernel
def take_best(block: Block) -> None:
  """An infoset is worth its best action."""
  for i in lanes(block):
    best = full(-np.inf)
    for action in range(block.actions):
      worth = load(block.utility, sequence(block, action, i))
      best = where_greater(worth, best, worth, best)
    store(block.value, i, best)


@block_kernel
def respond(block: Block) -> None:
  """An infoset is worth its best action; `strategy` becomes the first of those."""
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


@inlined
def play_to_the_end(tree: Tree, sequence_form: Float64s) -> None:
  """Scales what follows each sequence to sum to it again, of a sequence form that rounding has taken apart."""
  groups, parent = tree.groups, tree.parent
  for group in range(np.uint64(groups.shape[0])):
    first, stride, total, actions, infoset = group_at(groups, group)
    for i in range(first, first + total):
      played = 0.0
      for action in range(actions):
        played += sequence_form[i + action * stride]
      scale = sequence_form[parent[infoset + i - first]] / played if played > 0.0 else 0.0
      for action in range(actions):
        sequence_form[i + action * stride] *= scale


BEST_RESPONSES = types.void(
  types.FunctionType(gradient_signature(types.float64)),
  payoff_arrays_type(types.float64),
  types.FunctionType(block_signature(types.float64)),
  COUNT_TABLE,
  TREE,
  *[FLOATS] * 4,
  scratch_type(types.float64),
  types.float64,
  FLOAT_TABLE,
)


@kernel(BEST_RESPONSES)
def best_responses(
  gradient: Kernel,
  payoff: PayoffArrays,
  block_kernel: Kernel,
  players: Uint64s,
  tree: Tree,
  multiples: Float64s,
  responses: Float64s,
  sequence_form: Float64s,
  utility: Float64s,
  scratch: Scratch,
  close: float,
  values: Float64s,
) -> None:
  """Finds every player's best response.

  The sums of a long run are rounded in each iteration, so that what is played after a sequence does not quite sum to
  it. Best responses gain from that, or lose, about 1e-12 of the payoffs after a million iterations. So where they gain
  less than `close`, it is done again with what each infoset plays.

  Args:
    gradient: the payoff's kernel.
    payoff: its arrays.
    block_kernel: `respond`, or `take_best` where nobody wants the responses.
    players: see `CompiledGame.players`.
    tree: of all players.
    multiples: what is responded to, each player's sequence form times a positive number.
    responses: filled with the best responses in behavioural form, if `block_kernel` does.
    sequence_form: filled with what is responded to, shape (sequences,).
    utility: workspace, shape (sequences,).
    scratch: workspace.
    close: see above.
    values: filled with, a row per player, the expected utility and that of the best response.
  """
  for player in range(np.uint64(players.shape[0])):
    root, stop = sequences_of(players, player)
    total = multiples[root]
    for i in range(root, stop):
      sequence_form[i] = multiples[i] / total
  for _ in range(2):
    gained = 0.0
    for player in range(np.uint64(players.shape[0])):
      root, stop = sequences_of(players, player)
      begin, end = groups_of(players, player)
      gradient(player, payoff, sequence_form, utility)
      expected = 0.0
      for i in range(root, stop):
        expected += utility[i] * sequence_form[i]
      values[player, 0] = expected
      backward_pass(
        block_kernel,
        begin,
        end,
        tree,
        responses,
        utility,
        scratch.lines,
        scratch.lines,
        scratch.value,
        scratch,
      )
      values[player, 1] = utility[root]
      gained += utility[root] - expected
    if gained >= close:
      return
    play_to_the_end(tree, sequence_form)
