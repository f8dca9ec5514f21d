"""The trunk: all histories shorter than a cut, listed level by level.

Histories that are at the cut in the same world have the same subgame, which `subgames` walks once.
"""

import contextlib
import statistics
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.games.private_moves.core_histories import ROOT
from spiel_cfr.games.private_moves.cores import Split
from spiel_cfr.games.private_moves.size_estimate import check_size, sample_bytes
from spiel_cfr.games.private_moves.worlds import CHANCE, Worlds

# Estimated memory of rows, in bytes, from which on subgames are shared.
_MOST_UNSHARED = 1e9
# The largest number of histories at a cut.
_MOST_AT_CUT = 2_000_000


class TrunkInfosets(NamedTuple):
  """One player's infosets in the trunk.

  Attributes:
    parent: int64 (infosets,). The sequence above each infoset. Sequences are numbered infoset by infoset, from 0, the
      empty one.
    legal: int64 (infosets,). The list of legal actions of each, in `Worlds.action_lists`.
    opponent_sequence: int64 (infosets,). A sequence of the opponent that, with the infoset, is a history.
    chance_path: int64 (infosets,). The path of chance of that history.
  """

  parent: Int64s
  legal: Int64s
  opponent_sequence: Int64s
  chance_path: Int64s


class Trunk(NamedTuple):
  """Histories shorter than the cut, and those at the cut.

  Attributes:
    players: TrunkInfosets of each player.
    num_sequences: list of int (2,). The number of sequences of each player.
    chance_action: int64 (paths,). The last action of each path of chance.
    chance_before: int64 (paths,). The path before it, or -1.
    sequences: int64 (2, histories). Both players' sequences at each history at the cut.
    world: int64 (histories,). The world of each.
    reach: float64 (histories,). Chance's probability of each.
    path: int64 (histories,). The path of chance of each, or -1.
    leaves: int64 (2, leaves). Both players' sequences at each history that ends before the cut.
    leaf_payoffs: float64 (2, leaves). The return of each player, times chance's probability.
    num_states: int. The number of histories that end before the cut, or are shorter.
  """

  players: tuple[TrunkInfosets, TrunkInfosets]
  num_sequences: list[int]
  chance_action: Int64s
  chance_before: Int64s
  sequences: Int64s
  world: Int64s
  reach: Float64s
  path: Int64s
  leaves: Int64s
  leaf_payoffs: Float64s
  num_states: int


class _Infosets:
  """One player's infosets so far, with a number for each sequence and each value that the player sees after it."""

  def __init__(self, worlds: Worlds, player: int) -> None:
    self._seen, self._legal = worlds.seen_number[player], worlds.legal
    self._action_lists = worlds.action_lists
    self._first_sequence: dict[int, int] = {}
    self._lines: list[tuple[int, int, int, int]] = []
    self.num_sequences = 1

  def first_sequences(
    self, sequences: Int64s, worlds: Int64s, opponent_sequences: Int64s, paths: Int64s
  ) -> Int64s:
    """Returns the sequence of action 0 at the infoset of each of some histories, given their sequences and worlds."""
    keys = sequences * (1 + self._seen.max()) + self._seen[worlds]
    keys, place, infoset = np.unique(keys, return_index=True, return_inverse=True)
    result = np.zeros(len(keys), np.int64)
    for line, (key, first) in enumerate(zip(keys.tolist(), place.tolist(), strict=True)):
      if key not in self._first_sequence:
        self._first_sequence[key] = self.num_sequences
        legal = int(self._legal[worlds[first]])
        self._lines.append(
          (int(sequences[first]), legal, int(opponent_sequences[first]), int(paths[first]))
        )
        self.num_sequences += len(self._action_lists[legal])
      result[line] = self._first_sequence[key]
    return result[infoset]

  def result(self) -> TrunkInfosets:
    """Returns the infosets."""
    return TrunkInfosets(*np.array(self._lines, np.int64).reshape(-1, 4).T)


class Cut(NamedTuple):
  """The histories of one length, and the worlds that they are in.

  Attributes:
    trunk: Trunk. The histories.
    worlds: int64 (subgames,). The worlds, in order.
    starts: int64 (subgames, 3). The core and both players' sights in each world.
  """

  trunk: Trunk
  worlds: Int64s
  starts: Int64s


def choose_cut(worlds: Worlds, split: Split, max_bytes: int, depth: int | None) -> Cut | None:
  """Returns a cut after `depth` moves; by default, None if rows are short without one, or subgames can't be shared.

  Raises:
    GameTooLargeError: rows certainly take more memory than allowed.
    PrivateMovesError: see `walk_trunk`; only if `depth` is given.
  """
  if depth is not None:
    return _cut(worlds, split, max_bytes, depth)
  samples = sample_bytes(split, ROOT)
  if statistics.fmean(samples) > _MOST_UNSHARED:
    # Other games may be small enough without a cut.
    with contextlib.suppress(errors.PrivateMovesError):
      return _cut(worlds, split, max_bytes, _longest(worlds))
  check_size(samples, max_bytes)
  return None


def _cut(worlds: Worlds, split: Split, max_bytes: int, depth: int) -> Cut:
  trunk = walk_trunk(worlds, depth)
  subgames = np.unique(trunk.world)
  starts = np.column_stack([worlds.core[subgames], *split.sight[:, subgames]])
  check_size(sample_bytes(split, starts), max_bytes)
  return Cut(trunk, subgames, starts)


def _longest(worlds: Worlds) -> int:
  """Returns the largest length of which there are not too many histories, and not only histories that end."""
  inner = worlds.target >= 0
  source, target = worlds.source[inner], worlds.target[inner]
  numbers: Float64s = np.zeros(len(worlds.core))
  result = -1
  numbers[0] = 1.0
  while 0 < numbers.sum() <= _MOST_AT_CUT:
    result += 1
    numbers = np.bincount(target, numbers[source], len(numbers)).astype(np.float64)
  return result


def walk_trunk(worlds: Worlds, depth: int) -> Trunk:
  """Lists all histories with at most `depth` moves.

  Raises:
    PrivateMovesError: a player can be to move before and after the cut with the same sequence.
  """
  players = _Infosets(worlds, 0), _Infosets(worlds, 1)
  counts = np.array([len(actions) for actions in worlds.action_lists])
  sequences, world = np.zeros((2, 1), np.int64), np.zeros(1, np.int64)
  reach: Float64s = np.ones(1)
  path, num_states, paths = np.full(1, -1), 0, 0
  chance_action, chance_before = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
  leaves, leaf_payoffs = [np.zeros((2, 0), np.int64)], [np.zeros((2, 0))]
  for _ in range(depth):
    mover = worlds.mover[worlds.core[world]]
    edge_counts = counts[worlds.legal[world]]
    edges = concatenated_ranges(worlds.first_edge[world], edge_counts)
    before = np.repeat(np.arange(len(world)), edge_counts)
    after, path_after = sequences[:, before], path[before]
    for player, infosets in enumerate(players):
      moving = np.flatnonzero(mover == player)
      first = np.zeros(len(world), np.int64)
      first[moving] = infosets.first_sequences(
        sequences[player, moving], world[moving], sequences[1 - player, moving], path[moving]
      )
      moves = mover[before] == player
      after[player, moves] = first[before[moves]] + worlds.place[edges[moves]]
    drawn = np.flatnonzero(mover[before] == CHANCE)
    chance_action.append(worlds.action[edges[drawn]])
    chance_before.append(path_after[drawn])
    path_after[drawn] = paths + np.arange(len(drawn))
    paths += len(drawn)
    reach = reach[before] * worlds.probability[edges]
    target = worlds.target[edges]
    ends, goes_on = target < 0, target >= 0
    leaves.append(after[:, ends])
    leaf_payoffs.append(worlds.returns[-1 - target[ends]].T * reach[ends])
    num_states += len(world) + int(ends.sum())
    sequences, world = after[:, goes_on], target[goes_on]
    reach, path = reach[goes_on], path_after[goes_on]
  found = players[0].result(), players[1].result()
  for player, own in enumerate(found):
    if np.isin(own.parent, sequences[player]).any():
      raise errors.PrivateMovesError(
        f"Subgames can't be shared after {depth} moves: player {player} does not know whether it moves before or after."
      )
  return Trunk(
    players=found,
    num_sequences=[infosets.num_sequences for infosets in players],
    chance_action=np.concatenate(chance_action),
    chance_before=np.concatenate(chance_before),
    sequences=sequences,
    world=world,
    reach=reach,
    path=path,
    leaves=np.concatenate(leaves, axis=1),
    leaf_payoffs=np.concatenate(leaf_payoffs, axis=1),
    num_states=num_states,
  )
