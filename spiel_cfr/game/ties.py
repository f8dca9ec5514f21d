"""Infosets that share strategies and regrets though their owner came to them in different ways.

Where players forget (Waugh et al., "A Practical Use of Imperfect Recall", 2009; Lanctot et al., "No-Regret Learning in
Extensive-Form Games with Imperfect Recall", 2012), a bucket is several infosets of a game of perfect recall, tied
together. The counterfactual utility of an action of the bucket is the sum over them, under the strategies just played:

    U(B, a) = sum over I in B of u(I, a)

So a tied iteration carries utilities up as they are, pools them within buckets, and hands the pooled ones to the
minimizer, which so does the same at all infosets of a bucket. Everything stays in the order of the game.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types

from spiel_cfr.game.blocks import Block, block_kernel, block_signature, expected_value, lanes
from spiel_cfr.game.sweeps import TREE, Scratch, Tree, scratch_type, sweep_up
from spiel_cfr.game.treeplex import DEPTH
from spiel_cfr.kernels.arrays import (
  COUNT,
  COUNT_TABLE,
  FLOAT_TABLE,
  FLOATS,
  INDICES,
  AnyFloats,
  Float64s,
  Int64s,
  Uint32s,
  Uint64s,
  floats,
  tuple_type,
  unpickled,
)
from spiel_cfr.kernels.compile import Kernel, inlined, kernel

_ONE = np.uint64(1)
# Columns of `Ties.levels`.
_FIRST_GROUP, _END_GROUP, _FIRST_TIE, _END_TIE = range(4)


class Ties(NamedTuple):
  """Sequences that are tied to each other.

  Attributes:
    members: the tied sequences, tie by tie; the ties of a player together, in the order of its groups.
    starts: where each tie begins in `members`, and the end.
    levels: a row per depth of each player: first group, one past the last, first tie, one past the last.
    players: a row per player: its first level, one past the last.
    nowhere: for each infoset, padding in place of the sequence above: what is pooled is not carried up.
  """

  members: Uint32s
  starts: Uint32s
  levels: Uint64s
  players: Uint64s
  nowhere: Uint32s

  def __reduce__(self) -> tuple[Any, ...]:
    """Pickles as a call, see `arrays.unpickled`."""
    return unpickled, (Ties, *self)


TIES = tuple_type(Ties, INDICES, INDICES, COUNT_TABLE, COUNT_TABLE, INDICES)
NO_TIES = Ties(
  np.zeros(0, np.uint32),
  np.zeros(1, np.uint32),
  np.zeros((0, 4), np.uint64),
  np.zeros((0, 2), np.uint64),
  np.zeros(0, np.uint32),
)


def build_ties(groups: Sequence[Uint64s], bucket: Int64s, num_infosets: int, padding: int) -> Ties:
  """Ties sequences.

  Args:
    groups: each player's `Treeplex.groups`, or those of a part of it.
    bucket: shape (sequences,): tied are those of one player with the same number; negative ones are not.
    num_infosets: how many all players have.
    padding: a sequence that is none.
  """
  levels: list[tuple[int, int, int, int]] = []
  players: list[tuple[int, int]] = []
  members: list[Int64s] = [np.zeros(0, np.int64)]
  lengths: list[Int64s] = [np.zeros(1, np.int64)]
  first_group = num_ties = 0
  for own in groups:
    sequences, depths = _sequences(own.astype(np.int64))
    tied = bucket[sequences] >= 0
    sequences, depths = sequences[tied], depths[tied]
    _, tie, counts = np.unique(bucket[sequences], return_inverse=True, return_counts=True)
    several = counts[tie] > 1
    sequences, depths, tie = sequences[several], depths[several], tie[several]
    # Where a bucket spans depths, its last member counts: all are known when that is.
    deepest = np.zeros(len(counts), np.int64)
    np.maximum.at(deepest, tie, depths)
    order = np.lexsort((sequences, tie, deepest[tie]))
    starts = np.flatnonzero(np.diff(tie[order], prepend=-1))
    members.append(sequences[order])
    lengths.append(np.diff(np.append(starts, len(order))))
    at = deepest[tie[order][starts]]
    first_level = len(levels)
    of_group = own[:, DEPTH].astype(np.int64)
    for depth in np.unique(of_group).tolist():
      begin, end = np.searchsorted(of_group, [depth, depth + 1]).tolist()
      first, last = np.searchsorted(at, [depth, depth + 1]).tolist()
      levels.append((first_group + begin, first_group + end, num_ties + first, num_ties + last))
    players.append((first_level, len(levels)))
    first_group += len(own)
    num_ties += len(starts)
  return Ties(
    np.concatenate(members).astype(np.uint32),
    np.cumsum(np.concatenate(lengths)).astype(np.uint32),
    np.array(levels, np.uint64).reshape(-1, 4),
    np.array(players, np.uint64).reshape(-1, 2),
    np.full(num_infosets, padding, np.uint32),
  )


def spans_depths(ties: Ties, groups: Uint64s) -> bool:
  """Returns whether some tied sequences have more infosets of their owner above them than others of the same tie."""
  sequences, depths = _sequences(groups.astype(np.int64))
  depth = np.zeros(int(sequences.max(initial=0)) + 1, np.int64)
  depth[sequences] = depths
  starts = ties.starts.astype(np.int64)
  first = np.repeat(ties.members[starts[:-1]], np.diff(starts))
  return bool((depth[ties.members] != depth[first]).any())


def _sequences(groups: Int64s) -> tuple[Int64s, Int64s]:
  """Returns the sequences of some groups, and how many infosets of the owner lie above each one's."""
  sequences, depths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
  for first, stride, count, actions, _, depth in groups.tolist():
    own = (first + stride * np.arange(actions)[:, None] + np.arange(count)).ravel()
    sequences.append(own)
    depths.append(np.full(len(own), depth))
  return np.concatenate(sequences), np.concatenate(depths)


def pooled(ties: Ties, sequence_form: Float64s) -> Float64s:
  """Returns numbers over sequences with those of tied ones replaced by their sum."""
  result = sequence_form.copy()
  if len(ties.members):
    starts = ties.starts.astype(np.int64)
    sums = np.add.reduceat(sequence_form[ties.members], starts[:-1])
    result[ties.members] = np.repeat(sums, np.diff(starts))
  return result


@block_kernel
def find_worth(block: Block) -> None:
  """An infoset is worth what its strategy makes of its utilities; nothing is learned."""
  for i in lanes(block):
    expected_value(block, i)


@inlined
def pool(
  begin: int, end: int, ties: Ties, tree: Tree, utility: AnyFloats, shared: AnyFloats
) -> None:
  """Copies the utilities of some levels, those of tied sequences pooled, to `shared`."""
  groups, members, starts = tree.groups, ties.members, ties.starts
  for group in range(ties.levels[begin, _FIRST_GROUP], ties.levels[end - _ONE, _END_GROUP]):
    first = groups[group, 0]
    for i in range(first, first + groups[group, 1] * groups[group, 3]):
      shared[i] = utility[i]
  for tie in range(ties.levels[begin, _FIRST_TIE], ties.levels[end - _ONE, _END_TIE]):
    total = 0.0
    first, last = np.uint64(starts[tie]), np.uint64(starts[tie + _ONE])
    for place in range(first, last):
      total += utility[members[place]]
    for place in range(first, last):
      shared[members[place]] = total


def tied_sweep_up_signature(number: Any) -> Any:
  """Returns the signature of `tied_sweep_up` in a precision."""
  block_kernel = types.FunctionType(block_signature(number))
  return types.void(
    block_kernel,
    block_kernel,
    types.boolean,
    COUNT,
    TIES,
    TREE,
    *[floats(number)] * 3,
    floats(number, 2),
    FLOAT_TABLE,
    FLOATS,
    scratch_type(number),
  )


@kernel(tied_sweep_up_signature)
def tied_sweep_up(
  block_kernel: Kernel,
  worth: Kernel,
  chooses: bool,
  player: int,
  ties: Ties,
  tree: Tree,
  strategy: AnyFloats,
  utility: AnyFloats,
  shared: AnyFloats,
  state: AnyFloats,
  local: Float64s,
  parameters: Float64s,
  scratch: Scratch,
) -> None:
  """Does what `sweep_up` does, with pooled utilities for the block kernel.

  Args:
    block_kernel: what learns.
    worth: `find_worth`.
    chooses: whether infosets are worth what they are under the strategies that the kernel chooses, level by level from
      the deepest; or under those that it finds.
    player: whose groups.
    ties: see `Ties`.
    tree: see `sweep_up`, as for all others but `shared`.
    strategy: likewise.
    utility: likewise.
    shared: filled with the pooled utilities.
    state: likewise.
    local: likewise.
    parameters: likewise.
    scratch: likewise.
  """
  levels, alone = ties.levels, Tree(tree.groups, ties.nowhere, tree.scale)
  first, last = ties.players[player, 0], ties.players[player, 1]
  if last == first:
    return
  if ties.nowhere.shape[0]:
    shared[ties.nowhere[0]] = 0.0
  if not chooses:
    sweep_up(
      worth,
      levels[first, _FIRST_GROUP],
      levels[last - _ONE, _END_GROUP],
      tree,
      strategy,
      utility,
      state,
      local,
      parameters,
      scratch,
    )
    pool(first, last, ties, tree, utility, shared)
    sweep_up(
      block_kernel,
      levels[first, _FIRST_GROUP],
      levels[last - _ONE, _END_GROUP],
      alone,
      strategy,
      shared,
      state,
      local,
      parameters,
      scratch,
    )
    return
  for back in range(last - first):
    level = last - _ONE - back
    begin, end = levels[level, _FIRST_GROUP], levels[level, _END_GROUP]
    pool(level, level + _ONE, ties, tree, utility, shared)
    sweep_up(block_kernel, begin, end, alone, strategy, shared, state, local, parameters, scratch)
    sweep_up(worth, begin, end, tree, strategy, utility, state, local, parameters, scratch)
