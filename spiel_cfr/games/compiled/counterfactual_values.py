"""Counterfactual values against what was faced, and the identity that prices any rewriting of a history by them.

With g^t player i's gradient against what it faced in iteration t of weight w_t, take any numbers v^t(j), one an
infoset, carry them up, and count regrets against them:

    u^t(ja) = g^t(ja) + sum of v^t(j') over infosets j' below ja,     r^t(ja) = u^t(ja) - v^t(j)

Then sum of x(ja) r^t(ja) = <g^t, x> - v^t(0) for every x in sequence form, v^t(0) what is carried to the root; so that,
with R = sum of w_t r^t, W = sum of w_t, and averages as the others faced them,

    W NashConv(average) = sum over players of max_x <R, x>  +  sum over t of w_t sum over players of (v^t(0) - u^t(x^t))

where u^t(x^t), what the player expected, sums to the game's constant. CFR's v is the value of its strategy, for which
the last sum is 0 if all update at once. Whoever puts other v's in has the second sum as the price.
docs/theory/rewriting_history.md has the proof.
"""

import numpy as np

from spiel_cfr._numba.arrays import Float64s, aligned_zeros, dot
from spiel_cfr._numba.steps import Chain, StepKernel
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.trunk_and_subtrees import PartWalk
from spiel_cfr.games.sequence_form.blocks import Block, block_kernel, sequence
from spiel_cfr.games.sequence_form.single_passes import backward
from spiel_cfr.games.sequence_form.tree_passes import Tree


@block_kernel
def expect(block: Block) -> None:
  """An infoset is worth what its strategy expects."""
  for i in range(block.size):
    value = 0.0
    for action in range(block.actions):
      row = sequence(block, action, i)
      value += block.strategy[row] * block.utility[row]
    block.value[i] = value


def gradients(game: CompiledGame, sequence_form: Float64s) -> Float64s:
  """Returns every player's gradient: what each sequence is worth, in the game's units, given how the others play.

  Both arrays have the shape (sequences,); the result is aligned, and the caller's.
  """
  result = aligned_zeros(game.end)
  if game.partition is None or any(True for _ in game.partition.forced()):
    for player in range(game.num_players):
      game.payoff.gradient_into(player, sequence_form.astype(np.float64, copy=False), result)
    return result
  parts = game.partition.parts
  walk = PartWalk(game.partition)
  for number, part in enumerate(parts):
    walk.load(number, walk.workspaces[0] if number else walk.trunk, sequence_form)
    for visit in walk.visits(number):
      Chain([walk.gradient(visit)]).run()
      player, own_length = visit.player, part.own_length(visit.player)
      result[part.sequences[player]] += visit.utility[:own_length]
      above = parts[0].sequences[player].start + part.entries[player]
      result[above] += visit.utility[own_length : part.length(player)]
  return result


def expected(game: CompiledGame, gradient: Float64s, sequence_form: Float64s) -> float:
  """Returns what all players together expect, given their gradients."""
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
  """Carries values up all players' trees at once; a block kernel says what an infoset is worth.

  Args:
    game: the game.
    block_kernel: leaves the worth of each infoset in `value`; see `games.sequence_form.blocks`.
    gradient: what is carried up, shape (sequences,); becomes u(ja), and at each root v(0).
    strategy: what the kernel finds there, like the next three; by default, nothing of any use.
    state: shape (lines, sequences).
    infoset_state: shape (lines, infosets).
    parameters: shape (numbers,).
    tree: of all players; by default, with all infosets.

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
