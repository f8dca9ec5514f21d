"""A game without what cannot matter for a while, in the same layout, so that the same kernels run on it.

Where a sequence is pruned, its owner does not play it, and neither what follows it nor the leaves that it has a part in
matter to anybody. What is left of the game is built anew: columns of dead infosets are dropped, those of the owner
below pruned sequences and those of others that nothing can lead to any more; and the leaves of which both players'
sequences are left. A pruned action of an infoset that is left keeps its row, and one leaf that is terrible whatever the
other player does, so that no minimizer plays it.

In partial pruning owners go on: only others take it that a pruned sequence is not played, so that its owner still sees
what it is worth, and keeps all of its infosets to which it plays, or at which it is worth anything.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr.compiled.enumerated import EnumeratedGame
from spiel_cfr.game.sweeps import TREE, Tree
from spiel_cfr.game.treeplex import COLUMNS, Treeplex
from spiel_cfr.kernels.arrays import (
  BYTES,
  COUNT_TABLE,
  COUNTS,
  FLOATS,
  INDEX_TABLE,
  INDICES,
  LINE,
  Bools,
  Float64s,
  Uint32s,
  Uint64s,
)
from spiel_cfr.kernels.compile import kernel
from spiel_cfr.payoffs.base import Payoff
from spiel_cfr.payoffs.leaf_rows import LeafRows, renumbered
from spiel_cfr.payoffs.merged import merged_leaves
from spiel_cfr.payoffs.sorted_rows import SortedRows
from spiel_cfr.policy import forms

# What becomes of a sequence: nothing is left of it, its row alone is left, all is left.
DROPPED, PRUNED, KEPT = np.uint8(0), np.uint8(1), np.uint8(2)
# What a pruned action of an infoset that is left is worth.
TERRIBLE = -1e30
_NOWHERE = np.uint32(0xFFFFFFFF)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_LINE = np.uint64(LINE)


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


@kernel(
  types.uint64(INDICES, INDEX_TABLE, FLOATS, BYTES, BYTES, COUNTS, COUNTS, INDEX_TABLE, FLOATS)
)
def take_leaves(
  rows: Uint32s,
  others: Uint32s,
  values: Float64s,
  fate: Bools,
  seen: Bools,
  numbers: Uint64s,
  counts: Uint64s,
  left: Uint32s,
  left_values: Float64s,
) -> np.uint64:
  """Copies a player's leaves of which all sequences are left.

  Args:
    rows: of the whole game, see `LeafRows`.
    others: likewise, the other players' sequences.
    values: likewise.
    fate: of each of its own sequences.
    seen: of each sequence of others.
    numbers: the player's root and end, and where its leaves go.
    counts: filled with how many leaves each of its sequences has.
    left: filled with the other players' sequences, longer by 1 than all that may be left.
    left_values: filled with the payoffs, likewise.

  Returns:
    Where the next player's leaves go.
  """
  to: np.uint64 = numbers[2]
  for own in range(numbers[0], numbers[1]):
    first = to
    if fate[own] == KEPT:
      for leaf in range(np.uint64(rows[own]), np.uint64(rows[own + _ONE])):
        # Without a branch that nobody can foresee.
        alive = _ONE
        for other in range(np.uint64(others.shape[0])):
          left[other, to] = others[other, leaf]
          alive &= np.uint64(seen[others[other, leaf]] == KEPT)
        left_values[to] = values[leaf]
        to += alive
    counts[own] = to - first
  return to


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
    numbers: the end of the sequences so far, infosets so far, new groups; brought up to date.
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
    new = numbers[2]
    new_groups[new, 0], new_groups[new, 1], new_groups[new, 2] = new_first, length, alive
    new_groups[new, 3], new_groups[new, 4] = actions, begin
    new_groups[new, 5] = tree.groups[group, 5]
    numbers[0], numbers[1], numbers[2] = new_first + actions * length, begin + alive, new + _ONE


@kernel(types.uint64(BYTES, INDICES, INDICES, INDICES))
def list_left(fate: Bools, place: Uint32s, sequences: Uint32s, places: Uint32s) -> np.uint64:
  """Lists what is left, those that can be played first; returns how many of these there are."""
  number = played = _ZERO
  for wanted in (KEPT, PRUNED):
    for row in range(np.uint64(fate.shape[0])):
      if fate[row] == wanted and place[row] != _NOWHERE:
        sequences[number], places[number] = np.uint32(row), place[row]
        number += _ONE
    played = number if wanted == KEPT else played
  return played


# All of them, for those who load them before they need them.
COMPACTING = (decide_fates, take_leaves, count_below, lay_out, list_left)


class Compacted(NamedTuple):
  """A game of which some is left.

  Attributes:
    game: what is left.
    sequences: of the whole game, those that are left, shape (left,), the pruned ones last.
    places: what they are in `game`, shape (left,).
    infosets: of the whole game, those that are left, in the order of `game`.
    num_played: how many of them are not pruned.
    kept: of the whole game, which sequences are left, shape (sequences,).
    share: what part of the leaves is left.
  """

  game: EnumeratedGame
  sequences: Uint32s
  places: Uint32s
  infosets: Uint32s
  num_played: int
  kept: Bools
  share: float


def compact(
  game: EnumeratedGame, payoff: LeafRows, pruned: Bools, owners_go_on: bool = False
) -> Compacted:
  """Builds what is left of a game.

  Args:
    game: the whole game.
    payoff: its payoffs as rows of leaves; those of `all_leaves`, unless owners go on.
    pruned: which sequences are pruned, shape (sequences,).
    owners_go_on: whether their owners go on below what is pruned, see the module's docstring.
  """
  _, rows, others, values = payoff.arrays
  seen, counts = np.zeros(game.end, np.uint8), np.zeros(game.end, np.uint64)
  for tree in game.treeplexes:
    seen[tree.root] = KEPT
  decide_fates(Tree(game.groups, game.parent), pruned.view(np.uint8), seen)
  fate = np.full(game.end, KEPT) if owners_go_on else seen
  bounds = [(tree.root, tree.end) for tree in game.treeplexes]
  left_others = np.empty((len(others), len(values) + 1), np.uint32)
  left_values = np.empty(len(values) + 1)
  num_leaves = 0
  for own in bounds:
    begin = np.array([*own, num_leaves], np.uint64)
    num_leaves = take_leaves(
      rows, others, values, fate, seen, begin, counts, left_others, left_values
    )
  below = counts.copy()
  if owners_go_on:
    below += (seen == KEPT) & (forms.uniform(game) > 0)
  count_below(Tree(game.groups, game.parent), below)
  place, left = np.full(game.end, _NOWHERE), np.zeros(game.num_infosets, np.uint32)
  parent = np.zeros(game.num_infosets, np.uint32)
  # The end of the sequences, infosets, groups.
  numbers = np.zeros(3, np.uint64)
  treeplexes: list[Treeplex] = []
  for (begin, end, _, _), tree in zip(game.players.tolist(), game.treeplexes, strict=True):
    root, first_infoset = int(numbers[0]), int(numbers[1])
    place[tree.root] = root
    numbers[0], numbers[2] = root + 1, 0
    groups = np.zeros((end - begin, COLUMNS), np.uint64)
    whole = Tree(game.groups[begin:end], game.parent)
    lay_out(whole, below, fate, place, groups, parent, left, numbers)
    numbers[0] = (int(numbers[0]) + LINE) // LINE * LINE
    treeplexes.append(
      Treeplex(
        root=root,
        end=int(numbers[0]),
        first_infoset=first_infoset,
        groups=groups[: int(numbers[2])].copy(),
        parent=parent[first_infoset : int(numbers[1])],
      )
    )
  kept = place != _NOWHERE
  sequences, places = np.zeros((2, np.count_nonzero(kept)), np.uint32)
  num_played = list_left(fate, place, sequences, places)
  besides = np.zeros(treeplexes[-1].end)
  besides[places[num_played:]] = TERRIBLE
  new_bounds = [(tree.root, tree.end) for tree in treeplexes]
  leaves = slice(num_leaves)
  left_payoff: Payoff = (
    SortedRows.build(
      counts, left_others[0, leaves], left_values[leaves], place, bounds, new_bounds, besides
    )
    if len(others) == 1
    else renumbered(counts, left_others[:, leaves], left_values[leaves], place, new_bounds)
  )
  return Compacted(
    game=game.with_payoff(left_payoff, treeplexes=tuple(treeplexes)),
    sequences=sequences,
    places=places,
    infosets=left[: int(numbers[1])],
    num_played=num_played,
    kept=kept,
    share=num_leaves / max(1, len(values)),
  )


def all_leaves(game: EnumeratedGame) -> LeafRows:
  """Returns a two-player game's payoffs as rows of leaves, with both players' leaves for each of them.

  A leaf that is worth nothing to its owner stays where it is worth something to the other: each player's rows then say
  of every infoset whether anything that follows it matters to anybody.
  """
  number = np.arange(game.end, dtype=np.uint32)
  leaves, payoffs = merged_leaves(game.payoff, game.num_players, number, np.ones(game.end))
  return LeafRows.build(leaves, payoffs, game.treeplexes, zeros=True)
