"""Subgames of listed histories, with a gadget in front, as games of arrays: cut out without another walk.

The game has the searcher's infosets once. It has the opponent's once for each way to enter them, a *copy*: after the
gadget's choice, and where chance deals J. A leaf is a pair of last sequences; the opponent's is one of a copy.

Kuhn poker after player 0's pass, solved again by player 1, in front "pick" with mixed=0.9:

    opponent's infosets    pick: where to be      J = 0, 1, 2: sequences 1, 2, 3, each pays its bound
                           0pb, 1pb, 2pb          below sequences 1, 2, 3: sequences 4 to 9
                           dealt: 0pb, ..., 2pb   below the empty sequence 0: sequences 10 to 15
    searcher's infosets    0p, 1p, 2p             sequences 1 to 6
    a leaf                 0pb-bet after 1p-bet   searcher's sequence 4 with 5, and with 11 for the dealt copy
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, spread
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.from_arrays import game_of_parts
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.search.cut_outs import Bonus, CutOut, Pair, Start
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.listed_rows import ListedRows
from spiel_cfr.search.private_forest import NONE


class Roots(NamedTuple):
  """The beginnings of subgames. J numbers the opponent's private states there, subgame by subgame.

  Attributes:
    subgame: int64 (J,). The subgame of each J.
    row: int64 (J,). The row of each J.
    mass: float64 (J,). w of each J.
    bound: float64 (J,). The most that the opponent may expect at each J.
    shares: float64 (ways, J). See `Gadget.shares`.
  """

  subgame: Int64s
  row: Int64s
  mass: Float64s
  bound: Float64s
  shares: Float64s


def _roots(tree: ListedRows, starts: Sequence[Start], gadget: Gadget) -> Roots:
  """Returns the beginnings of subgames, without private states of the opponent that are left out."""
  parts = []
  for number, start in enumerate(starts):
    kept = start.mass > 0
    parts.append(
      (
        np.full(np.count_nonzero(kept), number),
        tree.rows(start.number, 1 - start.searcher)[kept],
        start.mass[kept],
        start.bound[kept],
        gadget.shares(start.mass, start.dealt)[:, kept],
      )
    )
  return Roots(*(np.concatenate(own, axis=-1) for own in zip(*parts, strict=True)))


class Limit(NamedTuple):
  """The end of a subgame with limited depth: the opponent chooses among continuations at each public state of a cut.

  Brown, Sandholm and Amos, "Depth-Limited Solving for Imperfect-Information Games" (2018).

  Attributes:
    cut: int64 (public states,). Public states, none of which is below another.
    reach: of each continuation and player, float64 (rows,). The probability that it plays to each row below, from the
      cut on.
  """

  cut: Int64s
  reach: Sequence[Pair]


class _Rows:
  """One player's rows in subgames that end at some pairs of rows.

  Attributes:
    last: int64 (ends,). The row where the subgame ends: that of the game's end, or of the cut.
    root: int64 (rows of the whole,). The row at the beginning of each row's subgame; `NONE` outside.
    subgame: int64 (rows of the whole,). The subgame of each row at a beginning.
    weight: float64 (ends,). The player's weight at the beginning of each end's subgame.
  """

  def __init__(
    self, tree: ListedRows, player: int, starts: Sequence[Start], ends: Int64s, cut: Int64s
  ) -> None:
    """Finds the rows.

    Args:
      tree: the whole game.
      player: the player.
      starts: the beginnings.
      ends: int64 (ends,). The player's rows where the game ends.
      cut: public states where the subgame ends before that.
    """
    forest = tree.forests[player]
    self.root = forest.tops(tree.rows_of(np.array([start.number for start in starts]), player))
    self.last = ends
    if len(cut):
      stop = forest.tops(tree.rows_of(cut, player))
      self.last = np.where(stop[ends] != NONE, stop[ends], ends)
    self.subgame, weights = np.zeros(len(self.root), np.int64), np.zeros(len(self.root))
    for number, start in enumerate(starts):
      rows = tree.rows(start.number, player)
      self.subgame[rows], weights[rows] = number, start.weights[player]
    self.weight = weights[self.root[ends]]
    self._forest, self._tree, self._player = forest, tree, player

  def infosets(self, some: Bools) -> "_Infosets":
    """Returns the infosets above some of the ends, down from the beginnings."""
    above, inside = self._forest.above, np.zeros(len(self.root), bool)
    last = self.last[some]
    rows = np.unique(above[last[self.root[last] != last]])
    while len(rows):
      inside[rows] = True
      rows = np.unique(above[rows[self.root[rows] != rows]])
    return _Infosets(self._tree, self._player, np.flatnonzero(inside))


def cut_out(
  tree: ListedRows,
  starts: Sequence[Start],
  gadget: Gadget,
  *,
  limit: Limit | None = None,
  program: bool = False,
) -> CutOut:
  """Returns the subgames below some public states, with a gadget in front, as one game.

  Args:
    tree: the whole game.
    starts: the beginnings of the subgames.
    gadget: the gadget in front of each.
    limit: where a subgame ends early.
    program: whether a linear program is to solve it, which has the dealt copy of "pick" as a bonus, not as infosets.
  """
  found, roots = tree.histories, _roots(tree, starts, gadget)
  searcher = starts[0].searcher
  opponent, sign = 1 - searcher, 1 - 2 * searcher
  cut = np.zeros(0, np.int64) if limit is None else limit.cut
  slices = [tree.ends_below(start.number) for start in starts]
  end_rows = np.concatenate([tree.ends.rows[:, own] for own in slices], axis=1)
  payoffs = np.concatenate([tree.ends.payoffs[own] for own in slices])
  first, second = (_Rows(tree, player, starts, end_rows[player], cut) for player in (0, 1))
  weight = first.weight * second.weight
  alive = weight > 0
  end_rows, payoffs, weight = end_rows[:, alive], payoffs[alive], weight[alive]
  mine, theirs = (first, second)[:: 1 - 2 * searcher]
  own, other = mine.infosets(alive), theirs.infosets(alive)

  # Of each end, both players' last rows there, and the opponent's J.
  last_row = theirs.last[alive]
  own_last = own.sequences(tree.forests[searcher].last[mine.last[alive]], 0)
  place_of_row = np.full(len(theirs.root), NONE)
  place_of_row[roots.row] = np.arange(len(roots.row))
  place = place_of_row[theirs.root[end_rows[opponent]]]
  place_above = place_of_row[theirs.root[other.rows]]

  front = _Front(
    roots, gadget, [tree.private_name(opponent, row) for row in roots.row.tolist()], program
  )
  side = _Side(front.names, front.counts)
  rows, columns = [np.zeros(len(front.values), np.int64)], [front.sequences]
  values = [front.values]
  for copy in front.copies:
    begin = side.add(other.names(copy.label), other.counts, other.actions)
    side.parents.append(other.sequences(other.entry_above, copy.entry[place_above], begin))
    last = other.sequences(tree.forests[opponent].last[last_row], copy.entry[place], begin)
    outcomes = [(last, payoffs)]
    if limit is not None:
      stops = last_row != end_rows[opponent]
      worth = [
        _continued(payoffs, end_rows, stops, pair, k == 0) for k, pair in enumerate(limit.reach)
      ]
      outcomes = _outcomes(tree, opponent, last, last_row, stops, worth, side, copy.label)
    for sequences, gets in outcomes:
      rows.append(own_last)
      columns.append(sequences)
      values.append(sign * weight * copy.factor[place] * gets)
  own_side = _Side([], np.zeros(0, np.int64))
  own_side.add(own.names(""), own.counts, own.actions)
  own_side.parents.append(own.sequences(own.entry_above, 0))
  game = _game(
    found,
    searcher,
    own_side,
    side,
    np.stack([*map(np.concatenate, (rows, columns))]),
    np.concatenate(values),
  )
  # In the game, the actions of both players; the opponent's of the only copy, if there is no choice before it.
  actions = np.split(game.all_action_sequences, [len(game.actions[0])])
  theirs_here = actions[opponent][: len(other.entries) if gadget.front == "deal" else 0]
  here, there = (actions[searcher], theirs_here), (own.entries, other.entries[: len(theirs_here)])
  bonus = None
  if front.bonus is not None:
    infosets = game.infosets[opponent].position[: len(front.counts)].astype(np.int64)
    bonus = Bonus(actions[opponent][: len(front.bonus)], front.bonus, infosets)
  return CutOut(
    game,
    searcher,
    here if searcher == 0 else here[::-1],
    there if searcher == 0 else there[::-1],
    np.repeat(mine.subgame[mine.root[own.rows]], own.counts),
    bonus,
  )


def _continued(
  payoffs: Float64s, end_rows: Int64s, stops: Bools, reach: Pair, is_first: bool
) -> Float64s:
  """Returns payoffs times the probability that a continuation plays to ends below the cut.

  Ends above the cut are worth the same by all continuations, so the first has them all.
  """
  below = payoffs * reach[0][end_rows[0]] * reach[1][end_rows[1]]
  return np.where(stops, below, payoffs if is_first else 0.0)


def _outcomes(
  tree: ListedRows,
  opponent: int,
  last: Int64s,
  last_row: Int64s,
  stops: Bools,
  worth: Sequence[Float64s],
  side: "_Side",
  label: str,
) -> list[tuple[Int64s, Float64s]]:
  """Returns, for each continuation, the opponent's last sequences at ends, and what player 0 gets there."""
  number = len(worth)
  if number == 1:
    return [(last, worth[0])]
  rows, first, which = np.unique(last_row[stops], return_index=True, return_inverse=True)
  names = [f"{label}then: {tree.private_name(opponent, row)}" for row in rows.tolist()]
  counts = np.full(len(rows), number)
  begin = side.add(names, counts, spread(np.zeros_like(counts), counts))
  side.parents.append(last[stops][first])
  result = []
  for continuation, values in enumerate(worth):
    sequences = last.copy()
    sequences[stops] = begin + number * which + continuation
    result.append((sequences, values))
  return result


def _game(
  found: HistoryTree,
  searcher: int,
  own: "_Side",
  other: "_Side",
  pairs: Int64s,
  values: Float64s,
) -> EnumeratedGame:
  """Returns the game of two sides, pairs of last sequences, the searcher's first, and its payoffs there."""
  sides = (own, other) if searcher == 0 else (other, own)
  leaves, which = distinct_columns(list(pairs if searcher == 0 else pairs[::-1]))
  payoffs = (1 - 2 * searcher) * np.bincount(which, values, leaves.shape[1])
  largest = float(np.abs(payoffs).sum())
  num_actions = [np.concatenate(side.counts) for side in sides]
  facts = GameFacts(
    game_string=f"subgame of {found.view.game}",
    num_distinct_actions=max(
      found.view.game.num_distinct_actions(), *(int(each.max(initial=1)) for each in num_actions)
    ),
    payoff_range=(-largest, largest),
    constant_sum=0.0,
    num_states=pairs.shape[1] + sum(map(len, num_actions)),
    num_terminals=pairs.shape[1],
    open_spiel_version=None,
  )
  return game_of_parts(
    facts,
    [side.names for side in sides],
    [np.concatenate(side.actions) for side in sides],
    [np.concatenate(side.parents) for side in sides],
    num_actions,
    leaves.astype(np.uint32),
    np.stack([payoffs, -payoffs], axis=1),
  )


class _Side:
  """A player's infosets of a subgame, in the order of their sequences."""

  def __init__(self, names: list[str], counts: Int64s) -> None:
    """Begins with infosets that nothing is above."""
    self.names, self.counts = list(names), [counts]
    self.actions, self.parents = [spread(np.zeros_like(counts), counts)], [np.zeros_like(counts)]

  def add(self, names: list[str], counts: Int64s, actions: Int64s) -> int:
    """Adds infosets, whose parents the caller adds, and returns their first sequence."""
    start = 1 + sum(int(each.sum()) for each in self.counts)
    self.names += names
    self.counts.append(counts)
    self.actions.append(actions)
    return start


class _Infosets:
  """A player's infosets among those of the whole, ascending.

  Attributes:
    infosets: int64 (infosets,). Their numbers there.
    rows: int64 (infosets,). The row of each.
    counts: int64 (infosets,). The number of actions of each.
    entries: int64 (actions,). Their entries in the whole.
    actions: int64 (actions,). The actions, as OpenSpiel numbers them.
    entry_above: int64 (infosets,). The owner's last entry before each.
  """

  def __init__(self, tree: ListedRows, player: int, rows: Int64s) -> None:
    """Takes rows at which the player may decide."""
    self._found = found = tree.histories
    self.infosets, self.rows = tree.infosets(rows, player)
    self.counts = found.num_actions[self.infosets]
    self.entries = spread(found.first_entry[self.infosets], self.counts)
    self.actions = found.actions[player][self.entries - player * len(found.actions[0])]
    self.entry_above = tree.forests[player].last[self.rows]
    self._before = np.cumsum(self.counts) - self.counts

  def names(self, label: str) -> list[str]:
    """Returns their names, with something before each."""
    return [label + self._found.infostate(infoset) for infoset in self.infosets.tolist()]

  def sequences(self, entry: Int64s, otherwise: Any, start: int = 1) -> Int64s:
    """Returns the sequences of entries of the whole, the first infoset's action 0 being `start`; others' otherwise."""
    result = np.broadcast_to(np.asarray(otherwise, np.int64), entry.shape).copy()
    if len(self.infosets):
      infoset = self._found.infoset_of_entry[entry]
      place = np.minimum(np.searchsorted(self.infosets, infoset), len(self.infosets) - 1)
      inside = (entry >= 0) & (self.infosets[place] == infoset)
      number = start + self._before[place] + entry - self._found.first_entry[infoset]
      result[inside] = number[inside]
    return result


class _Copy(NamedTuple):
  """One way in which the opponent enters its infosets.

  Attributes:
    label: the first words of their names.
    entry: int64 (J,). The sequence by which it enters each J.
    factor: float64 (J,). The factor of all weights at each J.
  """

  label: str
  entry: Int64s
  factor: Float64s


class _Front:
  """The opponent's moves before the subgames.

  Attributes:
    names: of its infosets.
    counts: int64 (infosets,). The number of actions of each.
    sequences: int64 (leaves,). The opponent's sequences at the gadget's own leaves.
    values: float64 (leaves,). The searcher's payoffs there.
    copies: the copies of the opponent's infosets below.
    bonus: float64 (J,), or None. The weight of each pick in place of a dealt copy, see `Bonus`.
  """

  def __init__(self, roots: Roots, gadget: Gadget, names: list[str], program: bool) -> None:
    """Takes the beginnings of the subgames, and the names of all J."""
    number, ways = len(roots.mass), list(roots.shares)
    group, empty = np.arange(number), np.zeros(number, np.int64)
    enters, pays = empty, [share * roots.mass * roots.bound for share in ways]
    self.bonus: Float64s | None = None
    self.names: list[str] = []
    self.counts, self.sequences, self.values = empty[:0], empty[:0], np.zeros(0)
    if gadget.front == "pick":
      self.counts = np.bincount(roots.subgame)
      self.names = ["pick: where to be"] * len(self.counts)
      enters, self.sequences, self.values = 1 + group, 1 + group, pays[0]
      if program and len(ways) > 1:
        self.bonus = ways.pop() / ways[0]
      elif len(ways) > 1:
        self.sequences = np.append(self.sequences, 0)
        self.values = np.append(self.values, pays[1].sum())
    elif gadget.front == "choice":
      self.counts = np.full(number, 2)
      self.names = [f"choice: {name}" for name in names]
      enters, self.sequences, self.values = 2 + 2 * group, 1 + 2 * group, -pays[0]
    self.copies = [_Copy("", enters, ways[0])]
    self.copies += [_Copy("dealt: ", empty, share) for share in ways[1:]]
