"""A game without what cannot matter for a while, in the same layout, so that the same kernels run on it.

Where a sequence is pruned, its owner does not play it, and neither what follows it nor the leaves that it has a part in
matter to anybody. What is left of the game is built anew: dropped are pruned sequences, the owner's infosets below
them, those of others that nothing can lead to any more, and the leaves of which a player's sequence is dropped.
Infosets of the same depth are then grouped by how many actions they have left. Those with one have nothing to decide,
and are left out too: see `compiled.decisions`.

In partial pruning owners go on: only others take it that a pruned sequence is not played, so that its owner still sees
what it is worth, and keeps all of its infosets to which it plays, or at which it is worth anything.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr.compiled.decisions import Decisions
from spiel_cfr.compiled.enumerated import EnumeratedGame
from spiel_cfr.continuing.taking import Prunable, TakenLeaves, Whole
from spiel_cfr.game.sweeps import TREE, Tree
from spiel_cfr.game.treeplex import ACTIONS, COLUMNS, COUNT, DEPTH, Treeplex
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
  Uint8s,
  Uint32s,
  Uint64s,
)
from spiel_cfr.kernels.compile import kernel
from spiel_cfr.payoffs.leaf_rows import LeafRows
from spiel_cfr.payoffs.typed_patterns import TypedPatterns
from spiel_cfr.poker.left_hands import LeftHands
from spiel_cfr.poker.payoff import PokerTerminals
from spiel_cfr.poker.taken_hands import TAKING, take_hands
from spiel_cfr.policy import forms

# What takes as long as so many leaves that are looked at one by one: a vector of typed patterns, a sequence in sweeps,
# calls of Python's for a window. Counts of work, not of time: runs are the same on all machines.
_LEAVES_A_VECTOR, _LEAVES_A_SEQUENCE, _LEAVES_AN_OPENING = 5, 2, 1_500_000
# Likewise, for both players: a hand at a vector of poker terminals, the same where some hands are left.
_LEAVES_A_LINE, _LEAVES_A_LINE_LEFT = 12, 10
# What becomes of a sequence: its owner does not play to it, does not play it, may play it.
DROPPED, PRUNED, KEPT = np.uint8(0), np.uint8(1), np.uint8(2)
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


@kernel(
  types.void(
    TREE, COUNTS, types.uint64, COUNTS, BYTES, COUNTS, INDICES, COUNT_TABLE, *[INDICES] * 4, COUNTS
  )
)
def lay_out(
  tree: Tree,
  levels: Uint64s,
  least: int,
  counts: Uint64s,
  fate: Bools,
  actions_left: Uint64s,
  place: Uint32s,
  new_groups: Uint64s,
  new_parent: Uint32s,
  left: Uint32s,
  sequences: Uint32s,
  places: Uint32s,
  numbers: Uint64s,
) -> None:
  """Lays out what is left of a player, in groups of infosets with as many actions left.

  Args:
    tree: of one player, in the numbering of all.
    levels: of each group; those of the same one, next to each other, are put together.
    least: infosets with fewer actions left are left out, and their sequence is the one above.
    counts: how many leaves are left at and below each sequence.
    fate: of each sequence; infosets that nothing is left of are dropped.
    actions_left: filled with how many actions are left of each infoset.
    place: filled with the new number of each sequence that is left.
    new_groups: filled.
    new_parent: filled.
    left: filled with the old numbers of the infosets that are left.
    sequences: filled with the old numbers of the sequences that are left.
    places: filled with the new ones.
    numbers: the end of the sequences so far, infosets so far, new groups, sequences listed; brought up to date.
  """
  groups, most, group = np.uint64(tree.groups.shape[0]), _ZERO, _ZERO
  for each in range(groups):
    most = max(most, tree.groups[each, 3])
  # Of each number of actions, how many infosets there are, where the next one goes, and its first row.
  alive, to, row_at = np.zeros((3, most + _ONE), np.uint64)
  while group < groups:
    after = group
    alive[:] = 0
    while after < groups and levels[after] == levels[group]:
      first, stride, count = tree.groups[after, 0], tree.groups[after, 1], tree.groups[after, 2]
      actions, infoset = tree.groups[after, 3], tree.groups[after, 4]
      for i in range(count):
        total = live = _ZERO
        for action in range(actions):
          row = first + action * stride + i
          total += counts[row]
          live += np.uint64(fate[row] == KEPT)
        live = live if total > _ZERO else _ZERO
        actions_left[infoset + i] = live
        alive[live] += _ONE
      after += _ONE
    for many in range(least, most + _ONE):
      if alive[many] == _ZERO:
        continue
      new, number = numbers[2], alive[many]
      row_at[many] = (numbers[0] + _LINE - _ONE) // _LINE * _LINE
      # From now on, from one row to the next.
      alive[many] = (number + _LINE - _ONE) // _LINE * _LINE
      to[many] = numbers[1]
      new_groups[new, 0], new_groups[new, 1], new_groups[new, 2] = row_at[many], alive[many], number
      new_groups[new, 3], new_groups[new, 4] = many, to[many]
      new_groups[new, 5] = tree.groups[group, 5]
      numbers[0], numbers[2] = row_at[many] + many * alive[many], new + _ONE
      numbers[1] += number
    for old in range(group, after):
      first, stride, count = tree.groups[old, 0], tree.groups[old, 1], tree.groups[old, 2]
      actions, infoset = tree.groups[old, 3], tree.groups[old, 4]
      for i in range(count):
        live = actions_left[infoset + i]
        if live < least:
          if live != _ZERO:
            for action in range(actions):
              place[first + action * stride + i] = place[tree.parent[infoset + i]]
          continue
        left[to[live]] = np.uint32(infoset + i)
        new_parent[to[live]] = place[tree.parent[infoset + i]]
        to[live] += _ONE
        new_row, listed = row_at[live], numbers[3]
        row_at[live] += _ONE
        for action in range(actions):
          row = first + action * stride + i
          if fate[row] == KEPT:
            place[row] = np.uint32(new_row)
            sequences[listed], places[listed] = np.uint32(row), place[row]
            new_row += alive[live]
            listed += _ONE
        numbers[3] = listed
    group = after


# All of them, for those who load them before they need them.
COMPACTING = (decide_fates, take_leaves, count_below, lay_out, *TAKING)


class Compacted(NamedTuple):
  """A game of which some is left.

  Attributes:
    game: what is left.
    sequences: of the whole game, those that are left, shape (left,).
    places: what they are in `game`, shape (left,).
    infosets: of the whole game, those that are left, in the order of `game`.
    actions_left: at each infoset of the whole game, shape (infosets,); of those with one, nothing is left in `game`.
    looked_at: of the whole game, which infosets are left, shape (infosets,).
    share: what part of the leaves is left.
  """

  game: Prunable
  sequences: Uint32s
  places: Uint32s
  infosets: Uint32s
  actions_left: Uint64s
  looked_at: Bools
  share: float


def compact(game: Prunable, payoff: Whole, pruned: Bools, owners_go_on: bool = False) -> Compacted:
  """Builds what is left of a game.

  Args:
    game: the whole game.
    payoff: its payoffs as rows of leaves; those of `all_leaves`, unless owners go on. Or in vector form, its own.
    pruned: which sequences are pruned, shape (sequences,).
    owners_go_on: whether their owners go on below what is pruned, see the module's docstring.
  """
  seen = np.zeros(game.end, np.uint8)
  for tree in game.treeplexes:
    seen[tree.root] = KEPT
  every = Tree(game.decisions.groups, game.decisions.parent)
  decide_fates(every, pruned.view(np.uint8), seen)
  fate = np.full(game.end, KEPT) if owners_go_on else seen
  bounds = [(tree.root, tree.end) for tree in game.treeplexes]
  taken = (
    take_hands(payoff, seen == KEPT)
    if isinstance(payoff, PokerTerminals)
    else _take_rows(payoff, bounds, fate, seen)
  )
  below = taken.counts.copy()
  if owners_go_on:
    below += (seen == KEPT) & (forms.uniform(game) > 0)
  count_below(every, below)
  place, left = np.zeros(game.end, np.uint32), np.zeros(game.num_infosets, np.uint32)
  parent, actions_left = (
    np.zeros(game.num_infosets, np.uint32),
    np.zeros(game.num_infosets, np.uint64),
  )
  sequences, places = np.zeros((2, game.end), np.uint32)
  least = 1 if owners_go_on else 2
  # The end of the sequences, infosets, groups, sequences listed.
  numbers = np.zeros(4, np.uint64)
  treeplexes: list[Treeplex] = []
  for (begin, end, _, _), tree in zip(
    game.decisions.players.tolist(), game.treeplexes, strict=True
  ):
    root, first_infoset = int(numbers[0]), int(numbers[1])
    place[tree.root] = places[int(numbers[3])] = root
    sequences[int(numbers[3])] = tree.root
    numbers[[0, 3]] += np.uint64(1)
    numbers[2] = 0
    whole = every._replace(groups=every.groups[begin:end])
    # Where owners go on, utilities are to be summed in the order in which they were, at all infosets.
    levels = (
      np.arange(end - begin, dtype=np.uint64) if owners_go_on else whole.groups[:, DEPTH].copy()
    )
    groups = np.zeros((int(whole.groups[:, ACTIONS].sum()), COLUMNS), np.uint64)
    lay_out(
      whole,
      levels,
      least,
      below,
      fate,
      actions_left,
      place,
      groups,
      parent,
      left,
      sequences,
      places,
      numbers,
    )
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
  left_payoff = taken.payoff(place, [(tree.root, tree.end) for tree in treeplexes])
  return Compacted(
    game=game.with_payoff(left_payoff, treeplexes=tuple(treeplexes)),
    sequences=sequences[: int(numbers[3])],
    places=places[: int(numbers[3])],
    infosets=left[: int(numbers[1])],
    actions_left=actions_left,
    looked_at=actions_left >= least,
    share=taken.share,
  )


def _take_rows(
  payoff: LeafRows, bounds: list[tuple[int, int]], fate: Uint8s, seen: Uint8s
) -> TakenLeaves:
  """Returns the leaves of which each player's sequence has the fate that is left, the other players' in `seen`."""
  _, rows, others, values = payoff.arrays
  counts = np.zeros(len(seen), np.uint64)
  left_others = np.empty((len(others), len(values) + 1), np.uint32)
  left_values = np.empty(len(values) + 1)
  num_leaves = 0
  for own in bounds:
    begin = np.array([*own, num_leaves], np.uint64)
    num_leaves = take_leaves(
      rows, others, values, fate, seen, begin, counts, left_others, left_values
    )
  share = num_leaves / max(1, len(values))
  return TakenLeaves(counts, left_others[:, :num_leaves], left_values[:num_leaves], bounds, share)


def iteration_work(decisions: Decisions) -> int:
  """Returns how long an iteration takes, roughly: as long as to look at so many leaves, one by one."""
  payoff, groups = decisions.payoff, decisions.groups
  if isinstance(payoff, TypedPatterns):
    gradients = _LEAVES_A_VECTOR * len(payoff.arrays.others)
  elif isinstance(payoff, PokerTerminals):
    gradients = _LEAVES_A_LINE * payoff.num_lines
  elif isinstance(payoff, LeftHands):
    gradients = _LEAVES_A_LINE_LEFT * payoff.num_lines + payoff.num_fetched
  else:
    gradients = len(payoff.arrays.values)
  return gradients + _LEAVES_A_SEQUENCE * int((groups[:, COUNT] * groups[:, ACTIONS]).sum())


def opening_work(game: Prunable) -> int:
  """Returns how long it takes to decide what is left, and to build it; like `iteration_work`."""
  if isinstance(game, EnumeratedGame):
    leaves = game.num_players * game.num_leaves
  else:
    leaves = _LEAVES_A_LINE * game.payoff.num_lines
  return _LEAVES_AN_OPENING + 60 * game.end + 8 * leaves
