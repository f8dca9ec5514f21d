"""Decisions: infosets with more than one action. Iterations skip all others.

An infoset with one action is a forced move: its sequence has the reach probability of the sequence above. Leaves and
infosets that follow it are therefore attached to the sequence above. No strategy depends on forced moves.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Bools, Uint32s, Uint64s
from spiel_cfr.games.payoffs.build_payoff import build_payoff, merged_leaves
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.private_types import group_public_states
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, Treeplex

_NONE = np.zeros(0, np.uint32)


class Decisions(NamedTuple):
  """The infosets that iterations visit. Sequences and infosets are numbered as in the game.

  Attributes:
    payoff: Payoff. The payoffs, without leaves at forced sequences.
    player_bounds: uint64 (players, 4). The columns of `CompiledGame.player_bounds`, for `groups`.
    groups: uint64 (groups, 6). The lines of `CompiledGame.groups` whose infosets are visited.
    parent: uint32 (infosets,). The sequence above each infoset; if forced moves are left out, the owner's last choice.
    forced: uint32 (forced,). The sequences of infosets with one action.
    chosen: uint32 (forced,). The owner's last choice before each forced sequence.
  """

  payoff: Payoff
  player_bounds: Uint64s
  groups: Uint64s
  parent: Uint32s
  forced: Uint32s = _NONE
  chosen: Uint32s = _NONE

  def bounds_of_kept(self, is_kept: Bools) -> Uint64s:
    """Returns the `player_bounds` of the `groups` that are kept, given a flag for each group."""
    num_kept = np.append(0, np.cumsum(is_kept))
    bounds = self.player_bounds.copy()
    bounds[:, :2] = num_kept[bounds[:, :2].astype(np.int64)]
    return bounds


def without_forced_moves(every: Decisions, treeplexes: Sequence[Treeplex]) -> Decisions:
  """Returns the infosets with more than one action."""
  is_choice = every.groups[:, ACTIONS] > 1
  if is_choice.all():
    return every
  chosen = np.concatenate([tree.last_choices for tree in treeplexes])
  leaves, payoffs = merged_leaves(every.payoff, len(treeplexes), chosen, np.ones(len(chosen)))
  smaller_trees, states = [], []
  for player, tree in enumerate(treeplexes):
    groups = tree.groups[tree.groups[:, ACTIONS] > 1]
    smaller = Treeplex(tree.root, tree.end, tree.first_infoset, groups, chosen[tree.parent])
    smaller_trees.append(smaller)
    infoset_of_sequence = np.full(len(chosen), -1)
    for sequences, infosets in smaller.infoset_groups():
      infoset_of_sequence[sequences] = np.arange(infosets.start, infosets.stop)
    states.append(group_public_states(leaves, player, infoset_of_sequence, len(tree.parent)))
  forced = np.flatnonzero(chosen != np.arange(len(chosen))).astype(np.uint32)
  return Decisions(
    payoff=build_payoff(leaves, payoffs, smaller_trees, states),
    player_bounds=every.bounds_of_kept(is_choice),
    groups=every.groups[is_choice],
    parent=chosen[every.parent],
    forced=forced,
    chosen=chosen[forced],
  )
