"""Trunk of a game with shared subgames: the choice of the cut, and all histories up to it, listed level by level.

`subgames` explains the terms with an example.
"""

import contextlib
import statistics
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.games.openspiel.checked_calls import CHANCE
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.games.private_moves.core_histories import GAME_START
from spiel_cfr.games.private_moves.cores import Split
from spiel_cfr.games.private_moves.size_estimate import check_size, sample_bytes
from spiel_cfr.games.private_moves.worlds import Worlds

# Estimated memory of the sides of rectangles, in bytes, from which on subgames are shared.
_MOST_UNSHARED = 1e9
# The largest number of histories at a cut.
_MOST_AT_CUT = 2_000_000


class TrunkInfosets(NamedTuple):
  """One player's infosets in the trunk, in order of discovery.

  Attributes:
    parent: int64 (infosets,). The sequence above each infoset. Sequences are numbered infoset by infoset, from 0, the
      empty one.
    legal: int64 (infosets,). The list of legal actions at each infoset, in `Worlds.action_lists`.
    opponent_sequence: int64 (infosets,). A sequence of the opponent that, with the infoset, is a history.
    chance_path: int64 (infosets,). The path of chance of that history.
  """

  parent: Int64s
  legal: Int64s
  opponent_sequence: Int64s
  chance_path: Int64s


class TrunkHistories(NamedTuple):
  """Histories of one length.

  Attributes:
    sequences: int64 (2, histories). The last sequence of each player.
    world: int64 (histories,). The world of each history.
    reach: float64 (histories,). Chance's probability of each history.
    chance_path: int64 (histories,). The path of chance of each history, or -1.
  """

  sequences: Int64s
  world: Int64s
  reach: Float64s
  chance_path: Int64s


class Trunk(NamedTuple):
  """Histories up to the cut.

  Attributes:
    players: TrunkInfosets of each player.
    num_sequences: list of int (2,). The number of sequences of each player.
    chance_action: int64 (paths,). The last action of each path of chance.
    chance_before: int64 (paths,). The path of chance before that action, or -1.
    at_cut: TrunkHistories. The histories at the cut that go on.
    leaf_sequences: int64 (2, leaves). The last sequence of each player at the histories that end before the cut.
    leaf_payoffs: float64 (2, leaves). The return of each player at them, times chance's probability.
    num_states: int. The number of histories that are shorter than the cut, or end there.
  """

  players: tuple[TrunkInfosets, TrunkInfosets]
  num_sequences: list[int]
  chance_action: Int64s
  chance_before: Int64s
  at_cut: TrunkHistories
  leaf_sequences: Int64s
  leaf_payoffs: Float64s
  num_states: int


class Cut(NamedTuple):
  """The trunk of a game, and the subgames below it, one for each world at the cut.

  Attributes:
    trunk: Trunk. The histories up to the cut.
    subgame_of_history: int64 (histories,). The subgame of each history of `Trunk.at_cut`.
    start_of_subgame: int64 (subgames, 3). The core and the sight of each player at which each subgame begins.
  """

  trunk: Trunk
  subgame_of_history: Int64s
  start_of_subgame: Int64s


def choose_cut(worlds: Worlds, split: Split, max_bytes: int, depth: int | None) -> Cut | None:
  """Returns a cut after `depth` moves.

  By default, the cut is as deep as possible. It is None if sides of rectangles are short without a cut, or if subgames
  can't be shared.

  Raises:
    GameTooLargeError: sides certainly take more memory than allowed.
    PrivateMovesError: see `walk_trunk`; only if `depth` is given.
  """
  if depth is not None:
    return _cut(worlds, split, max_bytes, depth)
  samples = sample_bytes(split, GAME_START)
  if statistics.fmean(samples) > _MOST_UNSHARED:
    # Other games may be small enough without a cut.
    with contextlib.suppress(errors.PrivateMovesError):
      return _cut(worlds, split, max_bytes, _deepest_cut(worlds))
  check_size(samples, max_bytes)
  return None


def _cut(worlds: Worlds, split: Split, max_bytes: int, depth: int) -> Cut:
  trunk = walk_trunk(worlds, depth)
  world_of_subgame, subgame_of_history = np.unique(trunk.at_cut.world, return_inverse=True)
  starts = np.column_stack([worlds.core[world_of_subgame], *split.sight[:, world_of_subgame]])
  check_size(sample_bytes(split, starts), max_bytes)
  return Cut(trunk, subgame_of_history, starts)


def _deepest_cut(worlds: Worlds) -> int:
  """Returns the largest number of moves after which some histories go on, but at most `_MOST_AT_CUT`."""
  goes_on = worlds.target >= 0
  source, target = worlds.source[goes_on], worlds.target[goes_on]
  num_histories: Float64s = np.zeros(len(worlds.core))
  depth = -1
  num_histories[0] = 1.0
  while 0 < num_histories.sum() <= _MOST_AT_CUT:
    depth += 1
    num_histories = np.bincount(target, num_histories[source], len(num_histories)).astype(
      np.float64
    )
  return depth


def walk_trunk(worlds: Worlds, depth: int) -> Trunk:
  """Lists all histories with at most `depth` moves.

  Raises:
    PrivateMovesError: a player can be to move before and after the cut with the same sequence.
  """
  walk = _TrunkWalk(worlds)
  for _ in range(depth):
    walk.advance()
  trunk = walk.result()
  for player, infosets in enumerate(trunk.players):
    if np.isin(infosets.parent, trunk.at_cut.sequences[player]).any():
      raise errors.PrivateMovesError(
        f"Subgames can't be shared after {depth} moves: player {player} does not know whether it moves before or after."
      )
  return trunk


class _TrunkWalk:
  """Breadth-first walk over the histories of the trunk: the histories of one length, and the results so far."""

  def __init__(self, worlds: Worlds) -> None:
    """Begins with the empty history."""
    self._worlds = worlds
    self._num_actions = np.array([len(actions) for actions in worlds.action_lists])
    self._infosets = _InfosetList(worlds, 0), _InfosetList(worlds, 1)
    self._current = TrunkHistories(
      sequences=np.zeros((2, 1), np.int64),
      world=np.zeros(1, np.int64),
      reach=np.ones(1),
      chance_path=np.full(1, NONE),
    )
    self._chance_action, self._chance_before = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    self._leaf_sequences, self._leaf_payoffs = [np.zeros((2, 0), np.int64)], [np.zeros((2, 0))]
    self._num_paths = self._num_states = 0

  def advance(self) -> None:
    """Replaces the current histories by those that are one move longer, and stores those that end."""
    worlds, before = self._worlds, self._current
    num_moves = self._num_actions[worlds.legal[before.world]]
    edge = concatenated_ranges(worlds.first_edge[before.world], num_moves)
    # For each edge, the history before it.
    source = np.repeat(np.arange(len(before.world)), num_moves)
    mover = worlds.mover[worlds.core[before.world]]
    sequences = self._sequences_after(before, mover, source, edge)
    path = self._paths_after(before, mover, source, edge)
    reach = before.reach[source] * worlds.probability[edge]
    target = worlds.target[edge]
    ends, goes_on = target < 0, target >= 0
    self._leaf_sequences.append(sequences[:, ends])
    self._leaf_payoffs.append(worlds.returns[-1 - target[ends]].T * reach[ends])
    self._num_states += len(before.world) + int(ends.sum())
    self._current = TrunkHistories(
      sequences[:, goes_on], target[goes_on], reach[goes_on], path[goes_on]
    )

  def _sequences_after(
    self, before: TrunkHistories, mover: Int64s, source: Int64s, edge: Int64s
  ) -> Int64s:
    """Returns the sequences of both players after each edge, shape (2, edges); adds the infosets of the movers."""
    result = before.sequences[:, source]
    for player, infosets in enumerate(self._infosets):
      moving = np.flatnonzero(mover == player)
      first_sequence = np.zeros(len(before.world), np.int64)
      first_sequence[moving] = infosets.first_sequences(
        before.sequences[player, moving],
        before.world[moving],
        before.sequences[1 - player, moving],
        before.chance_path[moving],
      )
      is_own_move = mover[source] == player
      action = self._worlds.place[edge[is_own_move]]
      result[player, is_own_move] = first_sequence[source[is_own_move]] + action
    return result

  def _paths_after(
    self, before: TrunkHistories, mover: Int64s, source: Int64s, edge: Int64s
  ) -> Int64s:
    """Returns the path of chance after each edge, shape (edges,); adds a path for each move of chance."""
    result = before.chance_path[source]
    drawn = np.flatnonzero(mover[source] == CHANCE)
    self._chance_action.append(self._worlds.action[edge[drawn]])
    self._chance_before.append(result[drawn])
    result[drawn] = self._num_paths + np.arange(len(drawn))
    self._num_paths += len(drawn)
    return result

  def result(self) -> Trunk:
    """Returns the trunk, with the cut at the current histories."""
    first, second = self._infosets
    return Trunk(
      players=(first.result(), second.result()),
      num_sequences=[first.num_sequences, second.num_sequences],
      chance_action=np.concatenate(self._chance_action),
      chance_before=np.concatenate(self._chance_before),
      at_cut=self._current,
      leaf_sequences=np.concatenate(self._leaf_sequences, axis=1),
      leaf_payoffs=np.concatenate(self._leaf_payoffs, axis=1),
      num_states=self._num_states,
    )


class _InfosetList:
  """One player's infosets so far. A sequence and what the player has seen after it identify an infoset.

  Attributes:
    num_sequences: int. The number of sequences, with the empty one.
  """

  def __init__(self, worlds: Worlds, player: int) -> None:
    """Begins with the empty sequence."""
    self._seen_in_world, self._legal_in_world = worlds.seen_number[player], worlds.legal
    self._action_lists = worlds.action_lists
    self._num_seen = 1 + int(self._seen_in_world.max())
    # From the key of an infoset to its first sequence.
    self._first_sequence: dict[int, int] = {}
    # The columns of `TrunkInfosets`, infoset by infoset.
    self._lines: list[tuple[int, int, int, int]] = []
    self.num_sequences = 1

  def first_sequences(
    self, sequences: Int64s, worlds: Int64s, opponent_sequences: Int64s, paths: Int64s
  ) -> Int64s:
    """Returns the sequence of action 0 at the infoset of each history; adds infosets that are new.

    Args:
      sequences: int64 (histories,). The player's last sequence.
      worlds: int64 (histories,). The world.
      opponent_sequences: int64 (histories,). The opponent's last sequence.
      paths: int64 (histories,). The path of chance.
    """
    keys = sequences * self._num_seen + self._seen_in_world[worlds]
    keys, history_of_key, key_of_history = np.unique(keys, return_index=True, return_inverse=True)
    first_sequence_of_key = np.zeros(len(keys), np.int64)
    for number, (key, history) in enumerate(
      zip(keys.tolist(), history_of_key.tolist(), strict=True)
    ):
      if key not in self._first_sequence:
        self._first_sequence[key] = self.num_sequences
        legal = int(self._legal_in_world[worlds[history]])
        self._lines.append(
          (
            int(sequences[history]),
            legal,
            int(opponent_sequences[history]),
            int(paths[history]),
          )
        )
        self.num_sequences += len(self._action_lists[legal])
      first_sequence_of_key[number] = self._first_sequence[key]
    return first_sequence_of_key[key_of_history]

  def result(self) -> TrunkInfosets:
    """Returns the infosets."""
    return TrunkInfosets(*np.array(self._lines, np.int64).reshape(-1, 4).T)
