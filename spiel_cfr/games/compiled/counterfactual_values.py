"""Gradients and counterfactual values of a whole game, and the cost of regrets against other values.

Let g^t be player i's gradient in iteration t of weight w_t. Choose any number v^t(j) as the value of each infoset j.
Values are added to the utilities of the sequences above, and regrets are counted against them:

    u^t(ja) = g^t(ja) + sum of v^t(j') over infosets j' below ja,     r^t(ja) = u^t(ja) - v^t(j)

Then sum of x(ja) r^t(ja) = <g^t, x> - v^t(0) for every sequence form x, where v^t(0) is the value at the root. Let R =
sum of w_t r^t and W = sum of w_t, and let averages be of the strategies that the other players faced. Then

    W NashConv(average) = sum over players of max_x <R, x>  +  sum over t of w_t sum over players of (v^t(0) - u^t(x^t))

where u^t(x^t) is the player's expected utility; the utilities of all players sum to the game's constant. In CFR, v^t is
the value of the current strategy, and the last sum is 0 if all players update at once. For any other v^t, the last sum
is the cost of the choice. docs/theory/rewriting_history.md has the proof.
"""

import numpy as np

from spiel_cfr._numba.arrays import Float64s, aligned_zeros, dot
from spiel_cfr._numba.steps import Chain, StepKernel
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import PartSteps
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel, sequence
from spiel_cfr.games.sequence_form.single_passes import backward
from spiel_cfr.games.sequence_form.tree_passes import Tree


@block_kernel
def expect(block: Block) -> None:
  """Block kernel: writes the expected utility of each infoset's strategy as its value."""
  for i in range(block.size):
    value = 0.0
    for action in range(block.actions):
      at = sequence(block, action, i)
      value += block.strategy[at] * block.utility[at]
    block.value[i] = value


def gradients(game: CompiledGame, sequence_form: Float64s) -> Float64s:
  """Returns every player's gradient, in the game's units, against the other players' sequence form.

  Both arrays have shape (sequences,). The result is aligned and belongs to the caller.
  """
  result = aligned_zeros(game.end)
  if game.partition is None or any(True for _ in game.partition.forced()):
    for player in range(game.num_players):
      game.payoff.gradient_into(player, sequence_form.astype(np.float64, copy=False), result)
    return result
  parts = game.partition.parts
  part_steps = PartSteps(game.partition)
  for number, part in enumerate(parts):
    part_steps.load(
      number,
      part_steps.subtree_workspaces[0] if number else part_steps.workspace_of_part_0,
      sequence_form,
    )
    for visit in part_steps.visits(number):
      Chain([part_steps.gradient(visit)]).run()
      player, num_own = visit.player, part.own_length(visit.player)
      result[part.sequences[player]] += visit.utility[:num_own]
      trunk_sequences = parts[0].sequences[player].start + part.trunk_sequences[player]
      result[trunk_sequences] += visit.utility[num_own : part.length(player)]
  return result


def expected(game: CompiledGame, gradient: Float64s, sequence_form: Float64s) -> float:
  """Returns the sum of all players' expected utilities, given their gradients."""
  return float(
    sum(
      dot(gradient[tree.root : tree.end], sequence_form[tree.root : tree.end])
      for tree in game.treeplexes
    )
  )


def backward_pass(
  game: CompiledGame,
  block_kernel: StepKernel,
  gradient: Float64s,
  *,
  strategy: Float64s | None = None,
  state: Float64s | None = None,
  infoset_state: Float64s | None = None,
  parameters: Float64s | None = None,
  tree: Tree | None = None,
) -> Float64s:
  """Runs a backward pass over all players' trees, with a block kernel that writes the values of infosets.

  Args:
    game: the game.
    block_kernel: writes the value of each infoset to `value`; see `games.sequence_form.blocks`.
    gradient: shape (sequences,). Becomes u(ja), and v(0) at each root.
    strategy: shape (sequences,). `Block.strategy`. An array that the kernel does not read may be left out.
    state: shape (lines, sequences). `Block.action_state`; may be left out.
    infoset_state: shape (lines, infosets). `Block.infoset_state`; may be left out.
    parameters: shape (numbers,). `Block.parameters`; may be left out.
    tree: the infosets to visit, of all players; by default, all infosets.

  Returns:
    v(0) of each player, shape (players,).
  """
  step = backward(
    block_kernel,
    tree or Tree(game.groups, game.parent),
    gradient,
    strategy=strategy,
    action_state=state,
    infoset_state=infoset_state,
    parameters=parameters,
  )
  Chain([step]).run()
  return gradient[[tree.root for tree in game.treeplexes]]
