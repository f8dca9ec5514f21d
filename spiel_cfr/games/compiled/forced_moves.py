"""Decisions: the infosets with more than one action, which are all that iterations have to visit.

At an infoset with one action, that action is always played, and its sequence has the reach probability of the sequence
above. Leaves with that sequence are therefore counted at the sequence above, and infosets below it hang on that.
Nothing else depends on such infosets.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Uint32s, Uint64s
from spiel_cfr.games.payoffs.build_payoff import build_payoff, merged_leaves
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.private_types import public_states
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, Treeplex

_NONE = np.zeros(0, np.uint32)


class Decisions(NamedTuple):
  """Groups of infosets of all players. Sequences and infosets are numbered as in the game.

  Attributes:
    payoff: Payoff. `CompiledGame.payoff`, or one in a faster form; no leaf has a sequence that is left out.
    players: uint64 (players, 4). `CompiledGame.players`, for these groups.
    groups: uint64 (groups, 6). `CompiledGame.groups`, some of them left out.
    parent: uint32 (infosets,). `CompiledGame.parent`; below a forced move, the owner's last choice.
    forced: uint32 (forced,). The sequences that are left out.
    chosen: uint32 (forced,). The owner's last choice before each sequence that is left out.
  """

  payoff: Payoff
  players: Uint64s
  groups: Uint64s
  parent: Uint32s
  forced: Uint32s = _NONE
  chosen: Uint32s = _NONE


def without_forced_moves(every: Decisions, treeplexes: Sequence[Treeplex]) -> Decisions:
  """Returns the infosets with more than one action."""
  decides = every.groups[:, ACTIONS] > 1
  if decides.all():
    return every
  chosen = np.concatenate([tree.last_choices for tree in treeplexes])
  leaves, payoffs = merged_leaves(every.payoff, len(treeplexes), chosen, np.ones(len(chosen)))
  kept, states = [], []
  for player, tree in enumerate(treeplexes):
    groups = tree.groups[tree.groups[:, ACTIONS] > 1]
    kept.append(Treeplex(tree.root, tree.end, tree.first_infoset, groups, chosen[tree.parent]))
    owner = np.full(len(chosen), -1)
    for sequences, infosets in kept[-1].infoset_groups():
      owner[sequences] = np.arange(infosets.start, infosets.stop)
    states.append(public_states(leaves, player, owner, len(tree.parent)))
  ends = np.append(0, np.cumsum(decides))
  players = every.players.copy()
  players[:, :2] = ends[players[:, :2].astype(np.int64)]
  forced = np.flatnonzero(chosen != np.arange(len(chosen))).astype(np.uint32)
  return Decisions(
    payoff=build_payoff(leaves, payoffs, kept, states),
    players=players,
    groups=every.groups[decides],
    parent=chosen[every.parent],
    forced=forced,
    chosen=chosen[forced],
  )
