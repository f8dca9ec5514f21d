"""A game without what cannot matter for a while, in the same layout, so that the same kernels run on it.

Where a sequence is pruned, its owner does not play it, and neither what follows it nor the leaves that it has a part in
matter to anybody. What is left of the game is built anew: columns of dead infosets are dropped, those of the owner
below pruned sequences and those of others that nothing can lead to any more; and the leaves of which both players'
sequences are left. A pruned action of an infoset that is left keeps its row, and one leaf that is terrible whatever the
other player does, so that no minimizer plays it.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr.compiled.enumerated import EnumeratedGame
from spiel_cfr.game.sweeps import TREE, Tree
from spiel_cfr.game.treeplex import COLUMNS, Treeplex
from spiel_cfr.kernels.arrays import (
  COUNT_TABLE,
  COUNTS,
  FLOATS,
  INDICES,
  Bools,
  Float64s,
  Int64s,
  Uint32s,
  Uint64s,
)
from spiel_cfr.kernels.compile import kernel
from spiel_cfr.payoffs.base import PayoffArrays
from spiel_cfr.payoffs.leaf_rows import LeafRows

# Flags and fates of sequences.
BYTES = types.Array(types.uint8, 1, "C")
# What becomes of a sequence: nothing is left of it, its row alone is left, all is left.
DROPPED, PRUNED, KEPT = np.uint8(0), np.uint8(1), np.uint8(2)
# What a pruned action of an infoset that is left is worth.
TERRIBLE = -1e30
_NOWHERE = np.uint32(0xFFFFFFFF)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_LINE = np.uint64(8)


@kernel(types.void(TREE, BYTES, BYTES))
def decide_fates(tree: Tree, pruned: Bools, fate: Bools) -> None:
  """Fate of each sequence, as far as its owner decides it; those of the empty ones are there already."""
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for i in range(count):
      reached = fate[tree.parent[infoset + i]] == KEPT
      for action in range(actions):
        row = first + action * stride + i
        fate[row] = DROPPED if not reached else (PRUNED if pruned[row] != 0 else KEPT)


@kernel(types.void(INDICES, INDICES, BYTES, COUNTS, COUNTS))
def count_leaves(
  rows: Uint32s, others: Uint32s, fate: Bools, limits: Uint64s, counts: Uint64s
) -> None:
  """Counts the leaves that are left of each of a player's sequences; their sum goes into `limits[2]`."""
  for own in range(limits[0], limits[1]):
    count = _ZERO
    if fate[own] == KEPT:
      for leaf in range(np.uint64(rows[own]), np.uint64(rows[own + _ONE])):
        if fate[others[leaf]] == KEPT:
          count += _ONE
    counts[own] = count
    limits[2] += count


@kernel(types.void(TREE, COUNTS))
def count_below(tree: Tree, counts: Uint64s) -> None:
  """Adds to each sequence's leaves those that follow it."""
  groups = np.uint64(tree.groups.shape[0])
  for back in range(groups):
    group = groups - _ONE - back
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for i in range(count):
      total = _ZERO
      for action in range(actions):
        total += counts[first + action * stride + i]
      counts[tree.parent[infoset + i]] += total


@kernel(types.void(TREE, COUNTS, BYTES, INDICES, COUNT_TABLE, INDICES, INDICES, COUNTS))
def lay_out(
  tree: Tree,
  counts: Uint64s,
  fate: Bools,
  place: Uint32s,
  new_groups: Uint64s,
  new_parent: Uint32s,
  left: Uint32s,
  numbers: Uint64s,
) -> None:
  """Lays out what is left of a player, group by group as it was.

  Args:
    tree: of one player, in the numbering of all.
    counts: how many leaves are left at and below each sequence.
    fate: of each sequence; infosets that nothing is left of are dropped.
    place: filled with the new number of each sequence.
    new_groups: filled.
    new_parent: filled.
    left: filled with the old numbers of the infosets that are left.
    numbers: the end of the sequences so far, infosets so far, new groups, pruned sequences that are left; brought up
      to date.
  """
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    begin, alive = numbers[1], _ZERO
    for i in range(count):
      total = _ZERO
      for action in range(actions):
        total += counts[first + action * stride + i]
      if total > _ZERO:
        left[begin + alive] = np.uint32(infoset + i)
        alive += _ONE
      else:
        for action in range(actions):
          fate[first + action * stride + i] = DROPPED
    if alive == _ZERO:
      continue
    new_first = (numbers[0] + _LINE - _ONE) // _LINE * _LINE
    length = (alive + _LINE - _ONE) // _LINE * _LINE
    for i in range(alive):
      old = np.uint64(left[begin + i]) - infoset
      new_parent[begin + i] = place[tree.parent[infoset + old]]
      for action in range(actions):
        row = first + action * stride + old
        place[row] = np.uint32(new_first + action * length + i)
        if fate[row] == PRUNED:
          numbers[3] += _ONE
    new = numbers[2]
    new_groups[new, 0], new_groups[new, 1], new_groups[new, 2] = new_first, length, alive
    new_groups[new, 3], new_groups[new, 4] = actions, begin
    new_groups[new, 5] = tree.groups[group, 5]
    numbers[0], numbers[1], numbers[2] = new_first + actions * length, begin + alive, new + _ONE


@kernel(types.void(INDICES, INDICES, FLOATS, BYTES, INDICES, COUNTS, INDICES, INDICES, FLOATS))
def take_leaves(
  rows: Uint32s,
  others: Uint32s,
  values: Float64s,
  fate: Bools,
  place: Uint32s,
  numbers: Uint64s,
  new_rows: Uint32s,
  new_others: Uint32s,
  new_values: Float64s,
) -> None:
  """Copies the leaves of a player that are left.

  Args:
    rows: of the whole game, see `LeafRows`.
    others: likewise, the other player's sequences.
    values: likewise.
    fate: of each sequence.
    place: its number in what is left.
    numbers: the player's root and end, the first of its leaves to be written, the other's new root, and the player's
      new root and end.
    new_rows: where the leaves of each new sequence begin.
    new_others: filled.
    new_values: filled.
  """
  leaf, row = numbers[2], numbers[4]
  for own in range(numbers[0], numbers[1]):
    if place[own] == _NOWHERE:
      continue
    # Rows of padding are empty.
    while row <= np.uint64(place[own]):
      new_rows[row] = np.uint32(leaf)
      row += _ONE
    if fate[own] == PRUNED:
      new_others[leaf] = np.uint32(numbers[3])
      new_values[leaf] = TERRIBLE
      leaf += _ONE
    else:
      for old in range(np.uint64(rows[own]), np.uint64(rows[own + _ONE])):
        if fate[others[old]] == KEPT:
          new_others[leaf] = place[others[old]]
          new_values[leaf] = values[old]
          leaf += _ONE
  while row <= numbers[5]:
    new_rows[row] = np.uint32(leaf)
    row += _ONE


class Compacted(NamedTuple):
  """A game of which some is left.

  Attributes:
    game: what is left.
    sequences: of the whole game, those that are left, shape (left,).
    places: what they are in `game`, shape (left,).
    infosets: of the whole game, those that are left, in the order of `game`.
    kept: of the whole game, which sequences are left, shape (sequences,).
    share: what part of the leaves is left.
  """

  game: EnumeratedGame
  sequences: Int64s
  places: Uint32s
  infosets: Uint32s
  kept: Bools
  share: float


def compact(game: EnumeratedGame, payoff: LeafRows, pruned: Bools) -> Compacted:
  """Builds what is left of a two-player game.

  Args:
    game: the whole game.
    payoff: its payoffs.
    pruned: which sequences are pruned, shape (sequences,).
  """
  _, rows, (others,), values = payoff.arrays
  fate, counts = np.zeros(game.end, np.uint8), np.zeros(game.end, np.uint64)
  for tree in game.treeplexes:
    fate[tree.root] = KEPT
  decide_fates(Tree(game.groups, game.parent), pruned.view(np.uint8), fate)
  place, left = np.full(game.end, _NOWHERE), np.zeros(game.num_infosets, np.uint32)
  parent = np.zeros(game.num_infosets, np.uint32)
  # The end of the sequences, infosets, groups, pruned sequences.
  numbers = np.zeros(4, np.uint64)
  treeplexes: list[Treeplex] = []
  num_leaves: list[int] = []
  limits = np.array([[tree.root, tree.end, 0] for tree in game.treeplexes], np.uint64)
  for own in limits:
    count_leaves(rows, others, fate, own, counts)
  count_below(Tree(game.groups, game.parent), counts)
  for (begin, end, _, _), tree, own in zip(
    game.players.tolist(), game.treeplexes, limits, strict=True
  ):
    root, first_infoset, num_pruned = (int(numbers[each]) for each in (0, 1, 3))
    place[tree.root] = root
    numbers[0], numbers[2] = root + 1, 0
    groups = np.zeros((end - begin, COLUMNS), np.uint64)
    whole = Tree(game.groups[begin:end], game.parent)
    lay_out(whole, counts, fate, place, groups, parent, left, numbers)
    numbers[0] = (int(numbers[0]) + 8) // 8 * 8
    treeplexes.append(
      Treeplex(
        root=root,
        end=int(numbers[0]),
        first_infoset=first_infoset,
        groups=groups[: int(numbers[2])].copy(),
        parent=parent[first_infoset : int(numbers[1])],
      )
    )
    num_leaves.append(int(own[2]) + int(numbers[3]) - num_pruned)
  new_rows = np.zeros(treeplexes[-1].end + 1, np.uint32)
  new_others, new_values = np.zeros((1, sum(num_leaves)), np.uint32), np.zeros(sum(num_leaves))
  table = np.zeros((2, 4), np.uint64)
  first = 0
  for player, (old, new) in enumerate(zip(game.treeplexes, treeplexes, strict=True)):
    other = treeplexes[1 - player].root
    bounds = np.array([old.root, old.end, first, other, new.root, new.end], np.uint64)
    take_leaves(rows, others, values, fate, place, bounds, new_rows, new_others[0], new_values)
    table[player] = new.root, new.end, new.root, num_leaves[player]
    first += num_leaves[player]
  kept = place != _NOWHERE
  sequences = np.flatnonzero(kept)
  return Compacted(
    game=game.with_payoff(
      LeafRows(PayoffArrays(table, new_rows, new_others, new_values)),
      treeplexes=tuple(treeplexes),
    ),
    sequences=sequences,
    places=place[sequences],
    infosets=left[: int(numbers[1])],
    kept=kept,
    share=float(limits[:, 2].sum()) / max(1, len(values)),
  )


def as_leaf_rows(game: EnumeratedGame) -> LeafRows:
  """Returns a two-player game's payoffs as rows of leaves, whatever form they have."""
  if isinstance(game.payoff, LeafRows):
    return game.payoff
  keys, payoffs = [], []
  for player in range(2):
    own, (others,), values = game.payoff.leaves(player)
    keys.append(np.stack([own, others][:: 1 - 2 * player], axis=1))
    payoffs.append(np.stack([values * (player == 0), values * (player == 1)], axis=1))
  unique, index = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
  summed = np.zeros((len(unique), 2))
  np.add.at(summed, index.ravel(), np.concatenate(payoffs))
  return LeafRows.build(unique.T.astype(np.uint32), summed, game.treeplexes)
