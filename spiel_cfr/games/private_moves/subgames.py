"""Shared subgames: infosets and payoffs of a game that keeps one subgame for all histories in one world.

The *cut* divides the game after a number of moves, and histories up to the cut are the *trunk*. Histories at the cut
that are in one world have the same future, one *subgame*, which is walked once. An example: a, b and c are player 0's
sequences at the cut, d and e are player 1's. The table shows the subgame of each history at the cut.

        d   e
    a   0   1
    b   0   1
    c   1   2

- **Branch.** At sequence a, player 0 does not know whether the subgame is 0 or 1. Its infosets below a are the union
  of the infosets of both subgames, which is a branch. Infosets of two subgames are one infoset of the branch if all
  that the player has seen and done since the cut is the same:

      subgame 0      subgame 1      branch {0, 1}

      root           root           a
      └ X            ├ X            ├ X
        ├ l          │ ├ l          │ ├ l
        └ r          │ └ r          │ └ r
          └ Y        └ Z            │   └ Y
                                    └ Z

- **Copy.** Sequence b leads to the same subgames as a, and so it has the same branch: a is copy 0 of it, b is copy 1.
  Sequence c has another branch, {1, 2}.
- **Embedding.** A subgame as a part of a branch, that is, a map from the sequences of the subgame to those of the
  branch. Player 0 has four: of subgames 0 and 1 in branch {0, 1}, of 1 and 2 in {1, 2}.
- **Group.** Some sequences of player 0 and some of player 1, all pairs of which are histories of one subgame with one
  probability of chance. The groups are {a, b} x {d} in subgame 0, {a, b} x {e} and {c} x {d} in subgame 1, and
  {c} x {e} in subgame 2. These sequences are the *members* of a group. Members with the same branch are a *bundle*.

In the whole game, a player's infosets begin with those of the trunk. Those of its branches follow, each infoset with
all its copies.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Int32s, Int64s, pieces, taken
from spiel_cfr.games.private_moves.branches import PlayerBranches, SubgameInfosets
from spiel_cfr.games.private_moves.core_histories import CoreHistories
from spiel_cfr.games.private_moves.cores import Split
from spiel_cfr.games.private_moves.cut_groups import find_groups
from spiel_cfr.games.private_moves.infoset_states import PlayerInfosets
from spiel_cfr.games.private_moves.shared_rectangles import SharedRectangles
from spiel_cfr.games.private_moves.shared_sides import (
  SharedSides,
  group_members,
  paying_sequences,
  subgame_sides,
)
from spiel_cfr.games.private_moves.trunk import Cut
from spiel_cfr.games.sequence_form.treeplex import Placement


class _InfosetsBelowCut(NamedTuple):
  """One player's infosets below the cut, in the order of the whole game.

  Attributes:
    parent: int32 (infosets,). The sequence of the whole game above each infoset.
    legal: int32 (infosets,). The list of legal actions at each infoset.
    opponent_sequence: int32 (infosets,). A sequence of the opponent that, with the infoset, is a history.
    trunk_path: int32 (infosets,). The path of chance of that history up to the cut, or -1.
    subgame_path: int32 (infosets,). The path of chance of that history in its subgame, or -1.
  """

  parent: Int32s
  legal: Int32s
  opponent_sequence: Int32s
  trunk_path: Int32s
  subgame_path: Int32s


class _JoinedPaths(NamedTuple):
  """Paths of chance that go on below the cut, as paths of the whole game. They are numbered after those of the trunk.

  Attributes:
    subgame_path: int64 (paths,). The path in the subgame at whose end each path ends.
    before: int32 (paths,). The path of the whole game before the last action of each path, or -1.
    of_infoset: int32 (infosets,). The path of the whole game of each infoset, or -1.
  """

  subgame_path: Int64s
  before: Int32s
  of_infoset: Int32s


class SharedSubgames:
  """Infosets and payoffs of a game with shared subgames, before they are laid out.

  Attributes:
    history_counts: tuple of int (2,). The numbers of all histories and of terminal histories of the whole game.
  """

  def __init__(self, cut: Cut, split: Split, core_histories: CoreHistories) -> None:
    """Takes the cut, cores and sights, and the core histories of all subgames."""
    trunk = cut.trunk
    self._cut, self._legal, self._action_lists = cut, split.legal, split.action_lists
    self._starts = core_histories.starts
    self._chance_event = core_histories.chance_event
    self._chance_before = core_histories.chance_before
    self._walked = [sides.infosets for sides in core_histories.players]
    self._paying = [paying_sequences(core_histories, player) for player in (0, 1)]
    self._sides = [
      subgame_sides(core_histories, player, paying) for player, paying in enumerate(self._paying)
    ]
    payoff_of_leaf = core_histories.payoffs.shape[1] + np.arange(trunk.leaf_sequences.shape[1])
    self._payoff = np.concatenate(
      [core_histories.payoff, payoff_of_leaf], dtype=np.uint32, casting="unsafe"
    )
    self._payoffs = np.concatenate([core_histories.payoffs, trunk.leaf_payoffs], axis=1)
    times = np.bincount(cut.subgame_of_history)
    self.history_counts = (
      trunk.num_states + int((times * core_histories.num_states).sum()),
      trunk.leaf_sequences.shape[1] + int((times * core_histories.num_terminals).sum()),
    )

  def infosets(self, action_of_event: Int32s) -> tuple[list[PlayerInfosets], Int32s, Int32s]:
    """Returns each player's infosets, the last action of each path of chance, and the path before that action.

    The method is called once, before `payoff`. It makes the members of groups, too, and drops what only it needs.
    """
    trunk = self._cut.trunk
    below = self._infosets_below_cut()
    del self._walked
    paths = _join_paths(
      len(trunk.chance_before),
      self._chance_before,
      np.concatenate([infosets.trunk_path for infosets in below]),
      np.concatenate([infosets.subgame_path for infosets in below]),
    )
    path_of_infoset = np.split(paths.of_infoset, [len(below[0].parent)])
    result = []
    for above, infosets, path in zip(trunk.players, below, path_of_infoset, strict=True):
      columns = (
        (above.parent, infosets.parent),
        (above.legal, infosets.legal),
        (above.opponent_sequence, infosets.opponent_sequence),
        (above.chance_path, path),
      )
      result.append(
        PlayerInfosets(
          *(np.concatenate(column, dtype=np.int32, casting="same_kind") for column in columns)
        )
      )
    action = action_of_event[self._chance_event[paths.subgame_path]]
    return (
      result,
      np.concatenate([trunk.chance_action, action]).astype(np.int32),
      np.concatenate([trunk.chance_before, paths.before]).astype(np.int32),
    )

  def _infosets_below_cut(self) -> list[_InfosetsBelowCut]:
    """Returns each player's infosets below the cut, and makes the members of groups."""
    cut = self._cut
    branches = [self._player_branches(player) for player in (0, 1)]
    groups = find_groups(cut.trunk.at_cut, cut.subgame_of_history)
    self._subgame_of_group, self._reach_of_group = groups.subgame.astype(np.uint32), groups.reach
    self._members = [
      group_members(
        branches[player], groups, player, self._paying[player], sides.first_paying_of_subgame
      )
      for player, sides in enumerate(self._sides)
    ]
    del self._paying
    return [self._infosets_of(player, branches[player], branches[1 - player]) for player in (0, 1)]

  def _player_branches(self, player: int) -> PlayerBranches:
    walked, starts, trunk = self._walked[player], self._starts, self._cut.trunk
    num_actions = np.array([len(actions) for actions in self._action_lists], np.int32)
    return PlayerBranches(
      SubgameInfosets(
        walked,
        starts.infoset[player],
        starts.sequence[player],
        taken(num_actions[self._legal[player]], walked.seen),
      ),
      trunk.at_cut.sequences[player],
      self._cut.subgame_of_history,
      trunk.num_sequences[player],
    )

  def _infosets_of(
    self, player: int, branches: PlayerBranches, opponent_branches: PlayerBranches
  ) -> _InfosetsBelowCut:
    walked, subgame_of_history = self._walked[player], self._cut.subgame_of_history
    infosets, copies = branches.copied_infosets()
    first_history, histories = branches.histories()
    result = _InfosetsBelowCut(*np.empty((5, len(infosets)), np.int32))
    for piece in pieces(len(infosets)):
      infoset, copy = infosets[piece], copies[piece]
      history, witness = histories[first_history[infoset] + copy], branches.witness[infoset]
      result.parent[piece] = branches.parents(infoset, copy)
      result.legal[piece] = self._legal[player][walked.seen[witness]]
      result.opponent_sequence[piece] = opponent_branches.sequences_after(
        history, walked.opponent_sequence[witness], subgame_of_history[history]
      )
      result.trunk_path[piece] = self._cut.trunk.at_cut.chance_path[history]
      result.subgame_path[piece] = walked.chance_path[witness]
    return result

  def payoff(self, placements: list[Placement]) -> SharedRectangles:
    """Returns the payoffs, given the layout of both players' infosets."""
    first, second = (
      SharedSides(
        sides,
        sequences[leaves].astype(np.uint32),
        members._replace(
          root_of_member=sequences[members.root_of_member],
          positions=taken(sequences, members.positions),
        ),
      )
      for sides, members, leaves, (_, sequences, _) in zip(
        self._sides, self._members, self._cut.trunk.leaf_sequences, placements, strict=True
      )
    )
    return SharedRectangles(
      sides=(first, second),
      subgame_of_group=self._subgame_of_group,
      reach_of_group=self._reach_of_group,
      first_rectangle_of_subgame=self._starts.rectangle.astype(np.uint32),
      payoff=self._payoff,
      payoffs=self._payoffs,
      treeplexes=[placed.treeplex for placed in placements],
    )


def _join_paths(
  num_trunk_paths: int, before_in_subgame: Int32s, trunk_path: Int32s, subgame_path: Int32s
) -> _JoinedPaths:
  """Joins the two parts of paths of chance, before the cut and in a subgame.

  Args:
    num_trunk_paths: the number of paths before the cut.
    before_in_subgame: int32 (paths of subgames,). The path in its subgame before the last action of each path, or -1.
    trunk_path: int32 (infosets,). The first part of each infoset's path, or -1.
    subgame_path: int32 (infosets,). The second part of each infoset's path, or -1.
  """
  size = len(before_in_subgame) + 1

  def key(trunk_path: Int32s, subgame_path: Int32s) -> Int64s:
    return (1 + trunk_path.astype(np.int64)) * size + 1 + subgame_path

  goes_on = subgame_path >= 0
  new = keys = np.unique(key(trunk_path[goes_on], subgame_path[goes_on]))
  # All beginnings of a path are paths.
  while len(new):
    before = before_in_subgame[new % size - 1]
    new = np.setdiff1d((new // size * size + 1 + before)[before >= 0], keys)
    keys = np.union1d(keys, new)

  def number(trunk_path: Int32s, subgame_path: Int32s) -> Int32s:
    result, goes_on = trunk_path.copy(), subgame_path >= 0
    joined = key(trunk_path[goes_on], subgame_path[goes_on])
    result[goes_on] = num_trunk_paths + np.searchsorted(keys, joined)
    return result

  last = keys % size - 1
  trunk_path_of_key = (keys // size - 1).astype(np.int32)
  return _JoinedPaths(
    subgame_path=last,
    before=number(trunk_path_of_key, before_in_subgame[last]),
    of_infoset=number(trunk_path, subgame_path),
  )
