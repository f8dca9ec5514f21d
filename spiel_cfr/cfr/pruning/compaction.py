"""A game without what is pruned, in the same layout, so that the same kernels run on it.

Where a sequence is pruned, its owner does not play it, and neither what follows it nor the leaves that it has a part in
matter to anybody. Dropped are pruned sequences, the owner's infosets below them, those of others that nothing can lead
to any more, and the leaves of which a player's sequence is dropped. Infosets of the same depth are then grouped by how
many actions they have left. Those with one have nothing to decide, and are left out as well: see
`games.compiled.forced_moves`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
  BYTES,
  COUNT_TABLE,
  COUNTS,
  FLOATS,
  INDICES,
  LINE,
  Bools,
  Float64s,
  Uint8s,
  Uint32s,
  Uint64s,
  borrowed,
)
from spiel_cfr._numba.kernels import kernel
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.payoffs.leaf_rows import LeafRows, leaves_of
from spiel_cfr.games.payoffs.utility_bounds import Leaves
from spiel_cfr.games.sequence_form.tree_passes import TREE, Tree
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, COLUMNS, Treeplex

_ZERO, _ONE, _NO = np.uint64(0), np.uint64(1), np.uint8(0)
_LINE = np.uint64(LINE)


class LeafTable(NamedTuple):
  """A two-player game's leaves, sequence by sequence.

  Attributes:
    starts: where the leaves of each sequence begin, and the end, shape (sequences + 1,).
    others: the other player's sequence of each, shape (leaves,).
    values: what each is worth to the sequence's owner, shape (leaves,).
  """

  starts: Uint32s
  others: Uint32s
  values: Float64s

  def payoff(self, treeplexes: Sequence[Treeplex], wanted: Bools) -> LeafRows:
    """Returns the payoffs of some leaves; `wanted` is of shape (leaves,)."""
    own = np.repeat(np.arange(len(self.starts) - 1, dtype=np.uint32), np.diff(self.starts))
    leaves = []
    for tree in treeplexes:
      some = np.flatnonzero(wanted & (own >= tree.root) & (own < tree.end))
      leaves.append(Leaves(own[some], self.others[None, some], self.values[some]))
    return LeafRows.of_leaves(leaves, treeplexes)


def all_leaves(game: EnumeratedGame) -> LeafTable:
  """Returns a two-player game's leaves, both players' for each of them.

  A leaf that is worth nothing to its owner stays where it is worth something to the other: each player's rows then say
  of every infoset whether anything that follows it matters to anybody.
  """
  number = np.arange(game.end, dtype=np.uint32)
  number[game.decisions.forced] = game.decisions.chosen
  leaves, payoffs = merged_leaves(game.payoff, game.num_players, number, np.ones(game.end))
  every = np.ones(len(payoffs), bool)
  own, others, values = zip(
    *(leaves_of(player, leaves, payoffs, every) for player in range(2)), strict=True
  )
  counts = np.bincount(np.concatenate(own), minlength=game.end)
  starts = np.append(0, np.cumsum(counts)).astype(np.uint32)
  return LeafTable(starts, np.concatenate(others, axis=1)[0], np.concatenate(values))


@kernel(types.void(TREE, BYTES, BYTES))
def keep(tree: Tree, pruned: Uint8s, kept: Uint8s) -> None:
  """Finds the sequences that are neither pruned nor follow what their owner has pruned.

  Args:
    tree: all infosets.
    pruned: 1 at pruned sequences, shape (sequences,).
    kept: filled, likewise; 1 at empty sequences before.
  """
  tree = borrowed(tree)
  for group in range(np.uint64(tree.groups.shape[0])):
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for action in range(actions):
      for i in range(count):
        row = first + action * stride + i
        kept[row] = kept[tree.parent[infoset + i]] & np.uint8(pruned[row] == _NO)


@kernel(types.uint64(INDICES, INDICES, FLOATS, BYTES, COUNTS, INDICES, FLOATS))
def take_leaves(
  rows: Uint32s,
  others: Uint32s,
  values: Float64s,
  kept: Uint8s,
  counts: Uint64s,
  left: Uint32s,
  left_values: Float64s,
) -> np.uint64:
  """Copies the leaves of which both sequences are kept.

  Args:
    rows: of the whole game, see `LeafRows`.
    others: likewise, the other player's sequences.
    values: likewise.
    kept: 1 at what is kept, shape (sequences,).
    counts: filled with how many leaves each sequence has left, likewise.
    left: filled with the other player's sequences, longer by 1 than all that may be left.
    left_values: filled with the payoffs, likewise.

  Returns:
    How many there are.
  """
  to = _ZERO
  for own in range(np.uint64(counts.shape[0])):
    begin = to
    if kept[own] != _NO:
      # Without branches that nobody can foresee.
      for leaf in range(np.uint64(rows[own]), np.uint64(rows[own + _ONE])):
        left[to], left_values[to] = others[leaf], values[leaf]
        to += np.uint64(kept[others[leaf]])
    counts[own] = to - begin
  return to


@kernel(types.void(TREE, BYTES, COUNTS, COUNTS))
def count_live(tree: Tree, kept: Uint8s, below: Uint64s, live: Uint64s) -> None:
  """Counts the actions that are left at each infoset.

  Args:
    tree: all infosets.
    kept: 1 at what is kept, shape (sequences,).
    below: how many leaves each sequence has left, likewise; those that follow it are added.
    live: filled, 0 where no leaf follows; shape (infosets,).
  """
  tree, groups = borrowed(tree), np.uint64(tree.groups.shape[0])
  for back in range(groups):
    group = groups - _ONE - back
    first, stride, count = tree.groups[group, 0], tree.groups[group, 1], tree.groups[group, 2]
    actions, infoset = tree.groups[group, 3], tree.groups[group, 4]
    for j in range(infoset, infoset + count):
      row_0, total, number = first + j - infoset, _ZERO, _ZERO
      for row in range(row_0, row_0 + actions * stride, stride):
        total += below[row]
        number += np.uint64(kept[row])
      below[tree.parent[j]] += total
      live[j] = number if total > _ZERO else _ZERO


@kernel(types.void(TREE, BYTES, COUNTS, INDICES, COUNT_TABLE, *[INDICES] * 3, COUNTS))
def lay_out(
  tree: Tree,
  kept: Uint8s,
  live: Uint64s,
  place: Uint32s,
  new_groups: Uint64s,
  new_parent: Uint32s,
  left: Uint32s,
  sequences: Uint32s,
  numbers: Uint64s,
) -> None:
  """Lays out what is left of a player, in groups of infosets with as many actions left.

  Args:
    tree: the player's groups, in the numbering of all.
    kept: 1 at what is kept, shape (sequences,).
    live: see `count_live`.
    place: filled with the new number of each kept sequence; where there is nothing to decide, of the one above.
    new_groups: filled.
    new_parent: filled.
    left: filled with the old numbers of the infosets that are left.
    sequences: filled with the old numbers of the sequences that are left.
    numbers: the end of the sequences so far, infosets so far, new groups, sequences listed; brought up to date.
  """
  tree, number = borrowed(tree), np.uint64(tree.groups.shape[0])
  groups, most, group = tree.groups, _ZERO, _ZERO
  for each in range(number):
    most = max(most, groups[each, 3])
  # Of each number of actions: how many infosets there are, then from one row to the next; where the next infoset goes,
  # and its first row.
  alive, to, row_at = np.zeros((3, most + _ONE), np.uint64)
  while group < number:
    after = group
    alive[:] = 0
    while after < number and groups[after, 5] == groups[group, 5]:
      for j in range(groups[after, 4], groups[after, 4] + groups[after, 2]):
        alive[live[j]] += _ONE
      after += _ONE
    for many in range(np.uint64(2), most + _ONE):
      if alive[many] != _ZERO:
        new, count = numbers[2], alive[many]
        row_at[many] = (numbers[0] + _LINE - _ONE) // _LINE * _LINE
        alive[many] = (count + _LINE - _ONE) // _LINE * _LINE
        to[many] = numbers[1]
        new_groups[new, 0], new_groups[new, 1] = row_at[many], alive[many]
        new_groups[new, 2], new_groups[new, 3] = count, many
        new_groups[new, 4], new_groups[new, 5] = to[many], groups[group, 5]
        numbers[0], numbers[2] = row_at[many] + many * alive[many], new + _ONE
        numbers[1] += count
    for each in range(group, after):
      first, stride, count = groups[each, 0], groups[each, 1], groups[each, 2]
      actions, infoset = groups[each, 3], groups[each, 4]
      for j in range(infoset, infoset + count):
        many, above, row_0 = live[j], place[tree.parent[j]], first + j - infoset
        if many > _ONE:
          left[to[many]], new_parent[to[many]] = np.uint32(j), above
          new_row = row_at[many]
          to[many] += _ONE
          row_at[many] += _ONE
        for row in range(row_0, row_0 + actions * stride, stride):
          if many == _ONE:
            place[row] = above
          elif many > _ONE and kept[row] != _NO:
            place[row], sequences[numbers[3]] = np.uint32(new_row), np.uint32(row)
            new_row += alive[many]
            numbers[3] += _ONE
    group = after


# All of them, for those who load them before they need them.
COMPACTION = (keep, take_leaves, count_live, lay_out)


class Compacted(NamedTuple):
  """What is left of a game.

  Attributes:
    game: it, with sequences and infosets numbered anew.
    sequences: the sequences that are left, in the numbering of the whole game; shape (left,).
    places: the same ones, in that of `game`; likewise.
    infosets: the infosets that are left, in the order of `game`; shape (infosets left,).
    seen: 1 at these, shape (infosets,) of the whole game.
    share: what part of the leaves is left.
  """

  game: EnumeratedGame
  sequences: Uint32s
  places: Uint32s
  infosets: Uint32s
  seen: Uint8s
  share: float


def compact(game: EnumeratedGame, leaves: LeafTable, pruned: Bools) -> Compacted:
  """Returns what is left of a game.

  Args:
    game: the whole game.
    leaves: its payoffs, see `all_leaves`.
    pruned: which sequences are pruned, shape (sequences,).
  """
  decisions = game.decisions
  tree = Tree(decisions.groups, decisions.parent)
  kept, roots = np.zeros(game.end, np.uint8), [tree.root for tree in game.treeplexes]
  kept[roots] = 1
  keep.unchecked(tree, pruned.view(np.uint8), kept)
  rows, others, values = leaves
  counts, live = np.zeros(game.end, np.uint64), np.zeros(game.num_infosets, np.uint64)
  left_others, left_values = np.empty(len(values) + 1, np.uint32), np.empty(len(values) + 1)
  number = take_leaves.unchecked(rows, others, values, kept, counts, left_others, left_values)
  count_live.unchecked(tree, kept, counts.copy(), live)
  place, sequences = np.zeros((2, game.end), np.uint32)
  parent, infosets = np.zeros((2, game.num_infosets), np.uint32)
  numbers = np.zeros(4, np.uint64)
  treeplexes: list[Treeplex] = []
  for begin, end, whole_root, _ in decisions.players.tolist():
    root, first_infoset, _, listed = numbers.tolist()
    place[whole_root], sequences[listed] = root, whole_root
    numbers[:] = root + 1, first_infoset, 0, listed + 1
    own = decisions.groups[begin:end]
    groups = np.zeros((int(own[:, ACTIONS].sum()), COLUMNS), np.uint64)
    part = Tree(own, decisions.parent)
    lay_out.unchecked(part, kept, live, place, groups, parent, infosets, sequences, numbers)
    # Vectors may go beyond the last sequence, but not into the next treeplex.
    numbers[0] = (int(numbers[0]) + LINE) // LINE * LINE
    above = parent[first_infoset : int(numbers[1])]
    number_of_groups = int(numbers[2])
    treeplexes.append(
      Treeplex(root, int(numbers[0]), first_infoset, groups[:number_of_groups], above)
    )
  taken, first = [], 0
  for tree_of_player in game.treeplexes:
    places = slice(tree_of_player.root, tree_of_player.end)
    own_counts = counts[places].astype(np.int64)
    last = first + int(own_counts.sum())
    owners, of_others = np.repeat(place[places], own_counts), place[left_others[None, first:last]]
    taken.append(Leaves(owners, of_others, left_values[first:last]))
    first = last
  payoff = LeafRows.of_leaves(taken, treeplexes)
  sequences = sequences[: int(numbers[3])]
  return Compacted(
    game=game.with_payoff(payoff, treeplexes=tuple(treeplexes)),
    sequences=sequences,
    places=place[sequences],
    infosets=infosets[: int(numbers[1])],
    seen=(live > _ONE).astype(np.uint8),
    share=int(number) / max(1, len(values)),
  )
