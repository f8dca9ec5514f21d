"""Shared infosets: infosets with one strategy and one set of regrets, for abstractions of imperfect recall.

The game itself has perfect recall. A *bucket* is a set of its infosets that their owner does not tell apart in the
abstraction. See Waugh et al., "A Practical Use of Imperfect Recall" (2009), and Lanctot et al., "No-Regret Learning in
Extensive-Form Games with Imperfect Recall" (2012). The counterfactual utility of an action of bucket B is the sum over
its infosets, under the strategies of this iteration:

    U(B, a) = sum over I in B of u(I, a)

The backward pass computes the utilities u, adds them up within buckets, and calls the block kernel on the sums. The
kernel therefore computes the same strategy at all infosets of a bucket. Arrays keep the numbering of the game.

Values of infosets depend on the strategies of this iteration, not on the block kernel. The pass that computes them
(`value_backward_pass`) therefore calls no block kernel, which saves time.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba import arrays
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, Uint64s, aligned_zeros
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, CountTable, Indices, Line
from spiel_cfr._numba.simd import load, number_for, store, width
from spiel_cfr._numba.steps import Step, step
from spiel_cfr.games.sequence_form.blocks import CHUNK
from spiel_cfr.games.sequence_form.tree_passes import Backward, Tree, group_at, run_groups
from spiel_cfr.games.sequence_form.treeplex import DEPTH, group_sequences

_ZERO, _ONE, _TWO, _CHUNK = (np.uint64(number) for number in (0, 1, 2, CHUNK))
# Columns of `SharedInfosets.levels`.
_FIRST_GROUP, _END_GROUP, _FIRST_SET, _END_SET = range(4)


class SharedInfosets(NamedTuple):
  """Sets of sequences that share their strategy and regrets. Each set is an action of a bucket.

  A backward pass goes through *levels*, the infosets of one player and one depth, from the deepest up. A set belongs to
  the level of its deepest member, where the utilities of all members are complete.

  Attributes:
    members: uint32 (members,). The sequences, set by set; sets are in the order of their levels.
    starts: uint32 (sets + 1,). The first member of each set, then the number of members.
    levels: uint64 (levels, 4). The first group of each level, one past its last group, its first set, one past its last
      set.
    players: uint64 (players, 2). The first level of each player, one past its last level.
  """

  members: Indices
  starts: Indices
  levels: CountTable
  players: CountTable

  def __reduce__(self) -> tuple[Any, ...]:
    return arrays.unpickled, (SharedInfosets, *self)


def build_shared_infosets(groups: Sequence[Uint64s], bucket: Int64s) -> SharedInfosets:
  """Builds the sets of sequences that share.

  Args:
    groups: for each player, uint64 (groups, 6). `Treeplex.groups`, or the groups of a part of the treeplex.
    bucket: int64 (sequences,). Sequences of one player with the same number share; negative numbers do not.
  """
  levels: list[tuple[int, int, int, int]] = []
  players: list[tuple[int, int]] = []
  members: list[Int64s] = [np.zeros(0, np.int64)]
  lengths: list[Int64s] = [np.zeros(1, np.int64)]
  first_group = num_shared = 0
  for player_groups in groups:
    sequences, depths = _sequences(player_groups.astype(np.int64))
    shares = bucket[sequences] >= 0
    sequences, depths = sequences[shares], depths[shares]
    _, set_of, counts = np.unique(bucket[sequences], return_inverse=True, return_counts=True)
    # A set of one sequence shares nothing.
    is_member = counts[set_of] > 1
    sequences, depths, set_of = sequences[is_member], depths[is_member], set_of[is_member]
    deepest = np.zeros(len(counts), np.int64)
    np.maximum.at(deepest, set_of, depths)
    order = np.lexsort((sequences, set_of, deepest[set_of]))
    starts = np.flatnonzero(np.diff(set_of[order], prepend=-1))
    members.append(sequences[order])
    lengths.append(np.diff(np.append(starts, len(order))))
    set_depths = deepest[set_of[order][starts]]
    group_depths = player_groups[:, DEPTH].astype(np.int64)
    first_level = len(levels)
    for depth in np.unique(group_depths).tolist():
      begin, end = np.searchsorted(group_depths, [depth, depth + 1]).tolist()
      first, last = np.searchsorted(set_depths, [depth, depth + 1]).tolist()
      levels.append((first_group + begin, first_group + end, num_shared + first, num_shared + last))
    players.append((first_level, len(levels)))
    first_group += len(player_groups)
    num_shared += len(starts)
  return SharedInfosets(
    np.concatenate(members).astype(np.uint32),
    np.cumsum(np.concatenate(lengths)).astype(np.uint32),
    np.array(levels, np.uint64).reshape(-1, 4),
    np.array(players, np.uint64).reshape(-1, 2),
  )


def spans_depths(shared_infosets: SharedInfosets, groups: Uint64s) -> bool:
  """Returns whether a set has sequences at different depths of their owner."""
  sequences, depths = _sequences(groups.astype(np.int64))
  depth = np.zeros(int(sequences.max(initial=0)) + 1, np.int64)
  depth[sequences] = depths
  starts = shared_infosets.starts.astype(np.int64)
  first = np.repeat(shared_infosets.members[starts[:-1]], np.diff(starts))
  return bool((depth[shared_infosets.members] != depth[first]).any())


def _sequences(groups: Int64s) -> tuple[Int64s, Int64s]:
  """Returns the sequences of groups, group by group, and the depth of each sequence."""
  sequences, depths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
  for group in groups:
    sequences.append(group_sequences(group).ravel())
    depths.append(np.full(len(sequences[-1]), group[DEPTH]))
  return np.concatenate(sequences), np.concatenate(depths)


def pooled(shared_infosets: SharedInfosets, sequence_form: Float64s) -> Float64s:
  """Returns a copy of numbers over sequences in which each shared sequence has the sum over its set."""
  result = sequence_form.copy()
  if len(shared_infosets.members):
    starts = shared_infosets.starts.astype(np.int64)
    sums = np.add.reduceat(sequence_form[shared_infosets.members], starts[:-1])
    result[shared_infosets.members] = np.repeat(sums, np.diff(starts))
  return result


@inlined
def value_backward_pass(
  begin: int, end: int, tree: Tree, strategy: AnyFloats, utility: AnyFloats, value: AnyFloats
) -> None:
  """Adds the value of each infoset under its strategy to the sequence above, without a block kernel.

  Goes through the groups from `end - 1` down to `begin`. `value` is a workspace of shape (`CHUNK`,).
  """
  groups, parent = tree.groups, tree.parent
  for back in range(end - begin):
    group = end - _ONE - back
    first, stride, num_infosets, actions, infoset = group_at(groups, group)
    for start in range(_ZERO, num_infosets, _CHUNK):
      count = min(_CHUNK, num_infosets - start)
      for i in range(_ZERO, count, width(strategy)):
        at = first + start + i
        total = load(strategy, at) * load(utility, at)
        for _ in range(_ONE, actions):
          at += stride
          total = total + load(strategy, at) * load(utility, at)
        store(value, i, total)
      for i in range(count):
        utility[parent[infoset + start + i]] += value[i]


@inlined
def pool(
  begin: int, end: int, shared_infosets: SharedInfosets, utility: AnyFloats, shared: AnyFloats
) -> None:
  """Writes the sum of the utilities of each set to its members in `shared`, for the levels from `begin` to `end`."""
  members, starts = shared_infosets.members, shared_infosets.starts
  for number in range(
    shared_infosets.levels[begin, _FIRST_SET], shared_infosets.levels[end - _ONE, _END_SET]
  ):
    first, last = np.uint64(starts[number]), np.uint64(starts[number + _ONE])
    if last - first == _TWO:
      # Most sets are pairs. Setting up a loop would take longer.
      one, other = members[first], members[first + _ONE]
      shared[one] = shared[other] = utility[one] + utility[other]
      continue
    total = number_for(utility, 0.0)
    for index in range(first, last):
      total += utility[members[index]]
    for index in range(first, last):
      shared[members[index]] = total


class SharedBackward(NamedTuple):
  """The arguments of a player's backward pass in a game with shared infosets.

  Attributes:
    backward: Backward. The arguments of the pass; its `block.utility` is the array `pooled`.
    shared_infosets: SharedInfosets. The sequences that share.
    player: int. The player.
    utility: float array (sequences,). Utilities, to which the pass adds the values of the infosets below.
    pooled: float array (sequences,). Utilities summed over sets; may be the same array as `utility`.
  """

  backward: Backward
  shared_infosets: SharedInfosets
  player: Count
  utility: Line
  pooled: Line


@inlined
def _carry_up(record: SharedBackward, begin: int, end: int) -> None:
  """Adds the values of the infosets of a range of groups, under their strategies, to the sequences above."""
  block = record.backward.block
  value_backward_pass(begin, end, record.backward.tree, block.strategy, record.utility, block.value)


@step(SharedBackward)
def _observe_shared(record: SharedBackward) -> None:
  """Backward pass under the strategies of this iteration, then the block kernel on the pooled utilities."""
  shared, player = record.shared_infosets, record.player
  first, last = shared.players[player, _ZERO], shared.players[player, _ONE]
  if last == first:
    return
  begin, end = shared.levels[first, _FIRST_GROUP], shared.levels[last - _ONE, _END_GROUP]
  _carry_up(record, begin, end)
  pool(first, last, shared, record.utility, record.pooled)
  run_groups(record.backward, begin, end, False)


@step(SharedBackward)
def _predict_shared(record: SharedBackward) -> None:
  """Backward pass under the strategies that the block kernel chooses, level by level from the deepest."""
  shared, player, groups = record.shared_infosets, record.player, record.backward.tree.groups
  utility, pooled_utility = record.utility, record.pooled
  first, last = shared.players[player, _ZERO], shared.players[player, _ONE]
  for back in range(last - first):
    level = last - _ONE - back
    begin, end = shared.levels[level, _FIRST_GROUP], shared.levels[level, _END_GROUP]
    for group in range(begin, end):
      start, stride, _, actions, _ = group_at(groups, group)
      for i in range(start, start + stride * actions):
        pooled_utility[i] = utility[i]
    pool(level, level + _ONE, shared, utility, pooled_utility)
    run_groups(record.backward, begin, end, False)
    _carry_up(record, begin, end)


def shared_backward_pass(
  backward: Backward, shared_infosets: SharedInfosets, player: int, predicts: bool
) -> Step:
  """Returns the step of a player's backward pass in a game with shared infosets.

  Args:
    backward: the arguments of the pass without sharing. Its tree has the infosets of all players.
    shared_infosets: the sequences that share.
    player: the player.
    predicts: whether the block kernel chooses strategies for predicted utilities.
  """
  block = backward.block
  if not predicts:
    record = SharedBackward(backward, shared_infosets, player, block.utility, block.utility)
    return _observe_shared.on(record)
  pooled_utility = aligned_zeros(len(block.utility))
  pooled_backward = backward._replace(block=block._replace(utility=pooled_utility))
  record = SharedBackward(pooled_backward, shared_infosets, player, block.utility, pooled_utility)
  return _predict_shared.on(record)
