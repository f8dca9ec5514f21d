"""A game without what cannot matter for a while, in the same layout, so that the same kernels run on it.

Where a sequence is pruned, its owner does not play it, and neither what follows it nor the leaves that it has a part in
matter to anybody. What is left of the game is built anew: dropped are pruned sequences, the owner's infosets below
them, those of others that nothing can lead to any more, and the leaves of which a player's sequence is dropped.
Infosets of the same depth are then grouped by how many actions they have left. Those with one have nothing to decide,
and are left out too: see `games.compiled.forced_moves`. In vector form that is done hand by hand; for the terminals see
`poker.left_hands`.

In partial pruning owners go on: only others take it that a pruned sequence is not played, so that its owner still sees
what it is worth, and keeps all of its infosets to which it plays, or at which it is worth anything.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import (
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
  borrowed,
)
from spiel_cfr._numba.kernels import kernel
from spiel_cfr.cfr.pruning.kept import KEPT, NOWHERE, Kept, find_kept, list_kept
from spiel_cfr.cfr.pruning.taking import Prunable, TakenLeaves, Whole
from spiel_cfr.games.compiled.forced_moves import Decisions
from spiel_cfr.games.payoffs.leaf_rows import LeafRows
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.typed_patterns import TypedPatterns
from spiel_cfr.games.sequence_form.treeplex import ACTIONS, COLUMNS, COUNT, DEPTH, Treeplex
from spiel_cfr.poker.hand_payoff import PokerTerminals
from spiel_cfr.poker.left_hands import LeftHands
from spiel_cfr.poker.taken_hands import TAKING, TakenHands, take_hands

# What takes as long as so many leaves that are looked at one by one: a vector of typed patterns, a sequence in sweeps.
# Counts of work, not of time: runs are the same on all machines.
_LEAVES_A_VECTOR, _LEAVES_A_SEQUENCE = 5, 2
# The same for a window: calls of Python's, a sequence, a leaf, of which many are not looked at one by one.
_LEAVES_AN_OPENING, _LEAVES_A_SEQUENCE_OPENED, _LEAVES_A_LEAF_OPENED = 1_200_000, 28, 16
# Again for an iteration of both players: a hand at a vector of poker terminals, the same where some hands are left.
_LEAVES_A_LINE, _LEAVES_A_LINE_LEFT = 12, 10
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_LINE = np.uint64(LINE)


@kernel(types.uint64(INDICES, INDEX_TABLE, FLOATS, KEPT, INDICES, COUNTS, INDEX_TABLE, FLOATS))
def take_leaves(
  rows: Uint32s,
  others: Uint32s,
  values: Float64s,
  kept: Kept,
  seen: Uint32s,
  counts: Uint64s,
  left: Uint32s,
  left_values: Float64s,
) -> np.uint64:
  """Copies the leaves of which all sequences are left.

  Args:
    rows: of the whole game, see `LeafRows`.
    others: likewise, the other players' sequences.
    values: likewise.
    kept: of each owner.
    seen: `Kept.place` of what others take to be kept.
    counts: filled with how many leaves each kept sequence has.
    left: filled with the places of the other players' sequences, longer by 1 than all that may be left.
    left_values: filled with the payoffs, likewise.

  Returns:
    How many there are.
  """
  kept, to, others_left = borrowed(kept), _ZERO, np.uint64(others.shape[0])
  for each in range(np.uint64(counts.shape[0])):
    own, first = np.uint64(kept.sequences[each]), to
    begin, end = np.uint64(rows[own]), np.uint64(rows[own + _ONE])
    # Without branches that nobody can foresee; a loop over one other player would take three times as long.
    if others_left == _ONE:
      for leaf in range(begin, end):
        other = others[0, leaf]
        left[0, to], left_values[to] = kept.place[other], values[leaf]
        to += np.uint64(seen[other] != NOWHERE)
    else:
      for leaf in range(begin, end):
        alive = _ONE
        for player in range(others_left):
          left[player, to] = kept.place[others[player, leaf]]
          alive &= np.uint64(seen[others[player, leaf]] != NOWHERE)
        left_values[to] = values[leaf]
        to += alive
    counts[each] = to - first
  return to


@kernel(types.void(KEPT, COUNTS, COUNTS))
def count_left(kept: Kept, counts: Uint64s, live: Uint64s) -> None:
  """Adds to each kept sequence's leaves those that follow it.

  Args:
    kept: what is kept.
    counts: of each kept sequence; brought up to date.
    live: filled with how many actions are left at each infoset in the list, 0 if no leaf follows it.
  """
  kept, groups = borrowed(kept), np.uint64(kept.groups.shape[0])
  totals = np.zeros(live.shape[0], np.uint64)
  live[:] = _ZERO
  for back in range(groups):
    group = groups - _ONE - back
    for each in range(kept.groups[group, 0], kept.groups[group, 1]):
      totals[kept.owner[each]] += counts[each]
      live[kept.owner[each]] += _ONE
    for each in range(kept.groups[group, 2], kept.groups[group, 3]):
      counts[kept.above[each]] += totals[each]
      live[each] = live[each] if totals[each] > _ZERO else _ZERO


@kernel(
  types.void(
    COUNT_TABLE, KEPT, COUNTS, types.uint64, COUNTS, INDICES, COUNT_TABLE, *[INDICES] * 4, COUNTS
  )
)
def lay_out(
  groups: Uint64s,
  kept: Kept,
  levels: Uint64s,
  least: int,
  live: Uint64s,
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
    groups: of one player, in the numbering of all.
    kept: what is kept; `groups` of that player.
    levels: of each group; those of the same one, next to each other, are put together.
    least: infosets with fewer actions left are left out, and their sequence is the one above.
    live: see `count_left`.
    place: filled with the new number of each kept sequence that is left.
    new_groups: filled.
    new_parent: filled.
    left: filled with the old numbers of the infosets that are left.
    sequences: filled with the old numbers of the sequences that are left.
    places: filled with the new ones.
    numbers: the end of the sequences so far, infosets so far, new groups, sequences listed; brought up to date.
  """
  kept, number, most, group = borrowed(kept), np.uint64(groups.shape[0]), _ZERO, _ZERO
  for each in range(number):
    most = max(most, groups[each, 3])
  # Of each number of actions, how many infosets there are, where the next one goes, and its first row.
  alive, to, row_at = np.zeros((3, most + _ONE), np.uint64)
  # Of each infoset, where the next of its sequences goes.
  next_row = np.empty(live.shape[0], np.uint64)
  while group < number:
    after = group
    alive[:] = 0
    while after < number and levels[after] == levels[group]:
      after += _ONE
    for each in range(kept.groups[group, 2], kept.groups[after - _ONE, 3]):
      alive[live[each]] += _ONE
    for many in range(least, most + _ONE):
      if alive[many] == _ZERO:
        continue
      new, count = numbers[2], alive[many]
      row_at[many] = (numbers[0] + _LINE - _ONE) // _LINE * _LINE
      # From now on, from one row to the next.
      alive[many] = (count + _LINE - _ONE) // _LINE * _LINE
      to[many] = numbers[1]
      new_groups[new, 0], new_groups[new, 1], new_groups[new, 2] = row_at[many], alive[many], count
      new_groups[new, 3], new_groups[new, 4] = many, to[many]
      new_groups[new, 5] = groups[group, 5]
      numbers[0], numbers[2] = row_at[many] + many * alive[many], new + _ONE
      numbers[1] += count
    for each in range(kept.groups[group, 2], kept.groups[after - _ONE, 3]):
      many = live[each]
      if many >= least:
        left[to[many]], new_parent[to[many]] = kept.infosets[each], place[kept.above[each]]
        next_row[each] = row_at[many]
        to[many] += _ONE
        row_at[many] += _ONE
    listed = numbers[3]
    for each in range(kept.groups[group, 0], kept.groups[after - _ONE, 1]):
      infoset = np.uint64(kept.owner[each])
      if live[infoset] >= least:
        place[each] = np.uint32(next_row[infoset])
        sequences[listed], places[listed] = kept.sequences[each], place[each]
        next_row[infoset] += alive[live[infoset]]
        listed += _ONE
      else:
        place[each] = place[kept.above[infoset]]
    numbers[3] = listed
    group = after


# All of them, for those who load them before they need them.
COMPACTING = (list_kept, take_leaves, count_left, lay_out, *TAKING)


class Compacted(NamedTuple):
  """A game of which some is left.

  Attributes:
    game: what is left.
    sequences: of the whole game, those that are left, shape (left,).
    places: what they are in `game`, shape (left,).
    infosets: of the whole game, those that are left, in the order of `game`.
    kept: what owners still play to.
    live: how many actions are left at each of `kept.infosets`, none where no leaf follows; what has one to play is left
      out of `game` too.
    share: what part of the leaves is left.
  """

  game: Prunable
  sequences: Uint32s
  places: Uint32s
  infosets: Uint32s
  kept: Kept
  live: Uint64s
  share: float


def compact(game: Prunable, payoff: Whole, pruned: Bools, owners_go_on: bool = False) -> Compacted:
  """Builds what is left of a game.

  Args:
    game: the whole game.
    payoff: its payoffs as rows of leaves; those of `all_leaves`, unless owners go on. Or in vector form, its own.
    pruned: which sequences are pruned, shape (sequences,).
    owners_go_on: whether their owners go on below what is pruned, see the module's docstring.
  """
  seen = find_kept(game, pruned)
  kept = find_kept(game, np.zeros(game.end, bool)) if owners_go_on else seen
  number = len(kept.sequences)
  live = np.empty(len(kept.infosets), np.uint64)
  if isinstance(payoff, PokerTerminals):
    taken: TakenHands | TakenLeaves = take_hands(payoff, kept.place, number)
  else:
    begins = [int(kept.place[tree.root]) for tree in game.treeplexes]
    bounds = list(zip(begins, [*begins[1:], number], strict=True))
    taken = _take_rows(payoff, kept, seen.place, bounds)
  below = taken.counts.copy()
  if owners_go_on:
    below += seen.place[kept.sequences] != NOWHERE
  count_left.unchecked(kept, below, live)
  place, sequences, places = np.zeros((3, number), np.uint32)
  parent, left = np.zeros((2, len(live)), np.uint32)
  least = 1 if owners_go_on else 2
  # The end of the sequences, infosets, groups, sequences listed.
  numbers = np.zeros(4, np.uint64)
  treeplexes: list[Treeplex] = []
  for begin, end, whole_root, _ in game.decisions.players.tolist():
    root, first_infoset = int(numbers[0]), int(numbers[1])
    place[kept.place[whole_root]] = places[int(numbers[3])] = root
    sequences[int(numbers[3])] = whole_root
    numbers[0], numbers[2], numbers[3] = root + 1, 0, numbers[3] + _ONE
    whole = game.decisions.groups[begin:end]
    # Where owners go on, utilities are to be summed in the order in which they were, at all infosets.
    levels = np.arange(end - begin, dtype=np.uint64) if owners_go_on else whole[:, DEPTH].copy()
    groups = np.zeros((int(whole[:, ACTIONS].sum()), COLUMNS), np.uint64)
    lay_out.unchecked(
      whole,
      kept._replace(groups=kept.groups[begin:end]),
      levels,
      least,
      live,
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
    kept=kept,
    live=live,
    share=taken.share,
  )


def _take_rows(
  payoff: LeafRows, kept: Kept, seen: Uint32s, bounds: list[tuple[int, int]]
) -> TakenLeaves:
  """Returns the leaves of which all sequences are left; see `take_leaves` and `TakenLeaves`."""
  _, rows, others, values = payoff.arrays
  counts = np.empty(len(kept.sequences), np.uint64)
  left_others = np.empty((len(others), len(values) + 1), np.uint32)
  left_values = np.empty(len(values) + 1)
  number = take_leaves.unchecked(rows, others, values, kept, seen, counts, left_others, left_values)
  share = number / max(1, len(values))
  return TakenLeaves(counts, left_others[:, :number], left_values[:number], bounds, share)


def iteration_work(decisions: Decisions) -> int:
  """Returns how long an iteration takes, roughly: as long as to look at so many leaves, one by one."""
  groups = decisions.groups
  return _gradient_work(decisions.payoff) + _LEAVES_A_SEQUENCE * int(
    (groups[:, COUNT] * groups[:, ACTIONS]).sum()
  )


def opening_work(game: Prunable) -> int:
  """Returns how long it takes to decide what is left, and to build it; like `iteration_work`."""
  leaves = _LEAVES_A_LEAF_OPENED * _gradient_work(game.decisions.payoff)
  return _LEAVES_AN_OPENING + _LEAVES_A_SEQUENCE_OPENED * game.end + leaves


def _gradient_work(payoff: Payoff) -> int:
  """Returns how long all players' gradients take, likewise."""
  if isinstance(payoff, TypedPatterns):
    return _LEAVES_A_VECTOR * len(payoff.arrays.others)
  if isinstance(payoff, PokerTerminals):
    return _LEAVES_A_LINE * payoff.num_lines
  if isinstance(payoff, LeftHands):
    return _LEAVES_A_LINE_LEFT * payoff.num_lines + payoff.num_fetched
  return len(payoff.arrays.values)
