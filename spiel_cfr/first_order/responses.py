"""Responses of a player to utilities: a block kernel from the leaves up, then the strategy in sequence form."""

from typing import NamedTuple

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._numba.steps import Chain, StepKernel
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import new_scratch
from spiel_cfr.games.sequence_form.single_passes import backward, reach
from spiel_cfr.games.sequence_form.tree_passes import Tree


class OwnTree(NamedTuple):
  """The infosets of one player.

  Attributes:
    tree: them.
    own: the player's sequences.
  """

  tree: Tree
  own: slice

  def respond(
    self,
    kernel: StepKernel,
    utility: Float64s,
    strategy: Float64s,
    action_state: Float64s,
    infoset_state: Float64s,
    parameters: Float64s,
    point: Float64s,
  ) -> float:
    """Runs a block kernel over all infosets, and returns what the empty sequence is then worth.

    Of the arrays that the kernel finds in its `Block`, `utility`, the player's gradient, is left alone. What is played
    then goes to `point` in sequence form, shape (sequences,).
    """
    values, scratch = utility.copy(), new_scratch()
    point[self.own.start] = 1.0
    steps = [
      backward(
        kernel,
        self.tree,
        values,
        strategy=strategy,
        action_state=action_state,
        infoset_state=infoset_state,
        parameters=parameters,
        scratch=scratch,
      ),
      reach(self.tree, strategy, point, scratch),
    ]
    Chain(steps).run()
    return float(values[self.own.start])


def own_trees(game: CompiledGame) -> list[OwnTree]:
  """Returns the infosets of each player."""
  _, players, groups, parent, *_ = game.every_infoset
  return [
    OwnTree(Tree(groups[begin:end], parent), slice(root, stop))
    for begin, end, root, stop in players.astype(int).tolist()
  ]
