"""Infosets at which there is something to decide, which are all that iterations have to visit.

At the others, with one action, that action is played whatever happens, and its sequence is played to as often as the
one before it. So leaves with that sequence can count as leaves with the one before, and what comes below hang on that:
nothing that happens elsewhere depends on these infosets any more.
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
    payoff: as `CompiledGame.payoff`, or in a form that is read faster; no leaf has sequences that are left out.
    players: as `CompiledGame.players`, for these groups.
    groups: as `CompiledGame.groups`, some of them left out.
    parent: as `CompiledGame.parent`; below what is left out, what the owner has chosen last.
    forced: the sequences that are left out.
    chosen: of each of them, what its owner has chosen last.
  """

  payoff: Payoff
  players: Uint64s
  groups: Uint64s
  parent: Uint32s
  forced: Uint32s = _NONE
  chosen: Uint32s = _NONE


def without_forced_moves(every: Decisions, treeplexes: Sequence[Treeplex]) -> Decisions:
  """Leaves out the infosets with one action."""
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
