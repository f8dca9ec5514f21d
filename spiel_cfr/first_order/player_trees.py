"""Treeplexes of single players for first-order methods: block kernels run over all infosets, from the leaves up."""

from typing import NamedTuple

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._numba.steps import Chain, StepKernel
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import new_scratch
from spiel_cfr.games.sequence_form.single_passes import backward, reach
from spiel_cfr.games.sequence_form.tree_passes import Tree


class PlayerTree(NamedTuple):
  """The infosets and sequences of one player.

  Attributes:
    tree: `Tree`. The player's infosets, as tree passes take them.
    sequences: `slice`. The player's sequences in arrays of all players' sequences.
  """

  tree: Tree
  sequences: slice

  def run(
    self,
    kernel: StepKernel,
    utility: Float64s,
    strategy: Float64s,
    action_state: Float64s,
    infoset_state: Float64s,
    parameters: Float64s,
    point: Float64s,
  ) -> float:
    """Runs a block kernel over all infosets, from the leaves up. Returns the value of the empty sequence.

    Args:
      kernel: the block kernel.
      utility: shape (sequences,). The player's gradient, which does not change.
      strategy: see `Block`.
      action_state: see `Block`.
      infoset_state: see `Block`.
      parameters: see `Block`.
      point: shape (sequences,). Filled with the new strategy in sequence form.
    """
    values, scratch = utility.copy(), new_scratch()
    point[self.sequences.start] = 1.0
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
    return float(values[self.sequences.start])


def player_trees(game: CompiledGame) -> list[PlayerTree]:
  """Returns the infosets and sequences of each player."""
  every = game.every_infoset
  return [
    PlayerTree(Tree(every.groups[begin:end], every.parent), slice(root, stop))
    for begin, end, root, stop in every.player_bounds.astype(int).tolist()
  ]
