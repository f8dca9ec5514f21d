"""Subgames of listed histories, with a gadget in front, as games of arrays. Cutting one out needs no walk.

The searcher's infosets occur once in the game. The opponent's infosets occur once for each way to enter them, as a
*copy*: after the gadget's choice, and where chance deals J. A leaf is a pair of last sequences; the opponent's sequence
belongs to one copy.

Example: Kuhn poker after player 0's pass, re-solved for player 1, with the front "pick" and mixed=0.9:

    opponent's infosets    pick: where to be      J = 0, 1, 2: sequences 1, 2, 3, each pays its bound
                           0pb, 1pb, 2pb          below sequences 1, 2, 3: sequences 4 to 9
                           dealt: 0pb, ..., 2pb   below the empty sequence 0: sequences 10 to 15
    searcher's infosets    0p, 1p, 2p             sequences 1 to 6
    a leaf                 0pb-bet after 1p-bet   searcher's sequence 4 with 5, and with 11 for the dealt copy
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.from_arrays import game_of_parts
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.search.cut_outs import Bonus, CutOut, Start
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.listed_rows import ListedRows
from spiel_cfr.search.private_forest import NONE


class Roots(NamedTuple):
  """The beginnings of subgames. J is an index of the opponent's private states there, subgame by subgame.

  Attributes:
    subgame: int64 (J,). The position of each J's subgame.
    row: int64 (J,). The row of each J.
    w: float64 (J,). w of each J.
    bound: float64 (J,). The largest expected payoff that the opponent may have at each J.
    shares: float64 (ways, J). See `Gadget.shares`.
  """

  subgame: Int64s
  row: Int64s
  w: Float64s
  bound: Float64s
  shares: Float64s


def _roots(tree: ListedRows, starts: Sequence[Start], gadget: Gadget) -> Roots:
  """Returns the beginnings of subgames, without the opponent's private states that `Start.w` leaves out."""
  parts = []
  for place, start in enumerate(starts):
    is_included = start.w > 0
    parts.append(
      (
        np.full(np.count_nonzero(is_included), place),
        tree.rows(start.number, 1 - start.searcher)[is_included],
        start.w[is_included],
        start.bound[is_included],
        gadget.shares(start.w, start.r)[:, is_included],
      )
    )
  return Roots(*(np.concatenate(own, axis=-1) for own in zip(*parts, strict=True)))


class _Ends(NamedTuple):
  """Pairs of rows where the game ends in subgames, in the order of `ListedRows.ends`.

  Attributes:
    rows: int64 (2, ends). The row of each player.
    payoffs: float64 (ends,). The searcher's payoff times chance's probability.
    weights: float64 (ends,). The product of both players' weights at the beginning of the subgame; above 0.
  """

  rows: Int64s
  payoffs: Float64s
  weights: Float64s


def _ends(tree: ListedRows, starts: Sequence[Start], tops: Sequence[Int64s]) -> _Ends:
  slices = [tree.ends_below(start.number) for start in starts]
  rows = np.concatenate([tree.ends.rows[:, own] for own in slices], axis=1)
  payoffs = np.concatenate([tree.ends.payoffs[own] for own in slices])
  weights = np.ones(len(payoffs))
  for player, top in enumerate(tops):
    at_top = np.zeros(len(top))
    for start in starts:
      at_top[tree.rows(start.number, player)] = start.weights[player]
    weights *= at_top[top[rows[player]]]
  alive = weights > 0
  sign = 1 - 2 * starts[0].searcher
  return _Ends(rows[:, alive], sign * payoffs[alive], weights[alive])


def cut_out(
  tree: ListedRows,
  starts: Sequence[Start],
  gadget: Gadget,
  *,
  program: bool = False,
) -> CutOut:
  """Returns the subgames below some public states, with a gadget in front, as one game.

  Args:
    tree: the whole game.
    starts: the beginnings of the subgames.
    gadget: the gadget in front of each subgame.
    program: whether a linear program will solve the game. For "pick", the program then has a bonus in place of the
      infosets of the dealt copy.
  """
  searcher, players = starts[0].searcher, (0, 1)
  opponent, numbers = 1 - searcher, np.array([start.number for start in starts])
  # By player, int64 (rows,): the row at the beginning of each row's subgame, `NONE` outside.
  tops = [tree.forests[player].tops(tree.rows_of(numbers, player)) for player in players]
  ends = _ends(tree, starts, tops)
  searcher_infosets, opponent_infosets = (
    _Infosets(tree, player, tops[player], ends.rows[player]) for player in (searcher, opponent)
  )
  searcher_side = _Side([], np.zeros(0, np.int64))
  searcher_side.add_infosets(searcher_infosets, "", 0)
  searcher_last = searcher_infosets.sequences(tree.forests[searcher].last[ends.rows[searcher]], 0)
  roots = _roots(tree, starts, gadget)
  front = _Front(
    roots, gadget, [tree.private_name(opponent, row) for row in roots.row.tolist()], program
  )
  place = np.full(len(tops[opponent]), NONE)
  place[roots.row] = np.arange(len(roots.row))
  opponent_side, opponent_last, values = _leaves(
    tree, opponent, front, opponent_infosets, ends, place[tops[opponent]]
  )
  # Leaves of the gadget come first. The ends of the subgames follow, once for each copy.
  pairs = np.stack([np.zeros_like(opponent_last), opponent_last])
  pairs[0, len(front.values) :] = np.resize(searcher_last, len(values) - len(front.values))
  game = _game(tree.histories, searcher, searcher_side, opponent_side, pairs, values)
  subgame = np.zeros(len(tops[searcher]), np.int64)
  for number, start in enumerate(starts):
    subgame[tree.rows(start.number, searcher)] = number
  # With the front "deal", the opponent has one copy, without a choice before it, so its actions are those of the whole
  # game.
  counted = len(opponent_infosets.entries) if gadget.front == "deal" else 0
  actions = np.split(game.all_action_sequences, [len(game.actions[0])])
  here = actions[searcher], actions[opponent][:counted]
  there = searcher_infosets.entries, opponent_infosets.entries[:counted]
  return CutOut(
    game,
    searcher,
    here if searcher == 0 else here[::-1],
    there if searcher == 0 else there[::-1],
    np.repeat(subgame[tops[searcher][searcher_infosets.rows]], searcher_infosets.counts),
    front.bonus_in(game, opponent),
  )


def _leaves(
  tree: ListedRows,
  opponent: int,
  front: "_Front",
  infosets: "_Infosets",
  ends: _Ends,
  place: Int64s,
) -> tuple["_Side", Int64s, Float64s]:
  """Returns the opponent's infosets, its last sequence at each leaf, and the searcher's payoffs at the leaves.

  Leaves of the gadget come first. The ends of the subgames follow, once for each copy.

  Args:
    tree: the whole game.
    opponent: the opponent.
    front: the opponent's moves before the subgames.
    infosets: the opponent's infosets in the subgames.
    ends: the pairs of rows where the game ends.
    place: int64 (rows,). The J of each of the opponent's rows.
  """
  side = _Side(front.names, front.counts)
  sequences, values = [front.sequences], [front.values]
  last_entry, at_end = tree.forests[opponent].last[ends.rows[opponent]], place[ends.rows[opponent]]
  for copy in front.copies:
    begin = side.add_infosets(infosets, copy.label, copy.entry[place[infosets.rows]])
    sequences.append(infosets.sequences(last_entry, copy.entry[at_end], begin))
    values.append(ends.weights * copy.factor[at_end] * ends.payoffs)
  return side, np.concatenate(sequences), np.concatenate(values)


def _game(
  histories: HistoryTree,
  searcher: int,
  searcher_side: "_Side",
  opponent_side: "_Side",
  pairs: Int64s,
  values: Float64s,
) -> EnumeratedGame:
  """Returns the game of two sides.

  `pairs` has the last sequences at each leaf, the searcher's first. `values` has the searcher's payoffs.
  """
  sides = (searcher_side, opponent_side)[:: 1 - 2 * searcher]
  leaves, which = distinct_columns(list(pairs[:: 1 - 2 * searcher]))
  payoffs = (1 - 2 * searcher) * np.bincount(which, values, leaves.shape[1])
  largest = float(np.abs(payoffs).sum())
  num_actions = [np.concatenate(side.counts) for side in sides]
  facts = GameFacts(
    game_string=f"subgame of {histories.view.game}",
    num_distinct_actions=max(
      histories.view.game.num_distinct_actions(),
      *(int(each.max(initial=1)) for each in num_actions),
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
  """A player's infosets in a subgame, in the order of their sequences."""

  def __init__(self, names: list[str], counts: Int64s) -> None:
    """Begins with infosets that have no sequence above them."""
    self.names, self.counts = list(names), [counts]
    self.actions, self.parents = (
      [concatenated_ranges(np.zeros_like(counts), counts)],
      [np.zeros_like(counts)],
    )

  def add_infosets(self, infosets: "_Infosets", label: str, otherwise: Any) -> int:
    """Adds a copy of infosets of the whole game, and returns the first sequence of the copy.

    Args:
      infosets: the infosets.
      label: the beginning of their names.
      otherwise: the sequence above infosets that have no infoset of the copy above them.
    """
    start = 1 + sum(int(each.sum()) for each in self.counts)
    self.names += infosets.names(label)
    self.counts.append(infosets.counts)
    self.actions.append(infosets.actions)
    self.parents.append(infosets.sequences(infosets.entry_above, otherwise, start))
    return start


class _Infosets:
  """A player's infosets in the subgames, in ascending order.

  Attributes:
    infosets: int64 (infosets,). Their indices in the whole game.
    rows: int64 (infosets,). The row of each infoset.
    counts: int64 (infosets,). The number of actions of each infoset.
    entries: int64 (actions,). The entries of the actions in the whole game.
    actions: int64 (actions,). The actions of OpenSpiel.
    entry_above: int64 (infosets,). The player's last entry before each infoset.
  """

  def __init__(self, tree: ListedRows, player: int, tops: Int64s, ends: Int64s) -> None:
    """Finds the infosets from the beginnings of the subgames down to the rows where the game ends.

    Args:
      tree: the whole game.
      player: the player.
      tops: int64 (rows,). The row at the beginning of each row's subgame.
      ends: int64 (ends,). The player's rows where the game ends.
    """
    self._histories = histories = tree.histories
    above, inside = tree.forests[player].above, np.zeros(len(tops), bool)
    rows = np.unique(above[ends])
    while len(rows):
      inside[rows] = True
      rows = np.unique(above[rows[tops[rows] != rows]])
    self.infosets, self.rows = tree.infosets(np.flatnonzero(inside), player)
    self.counts = histories.num_actions[self.infosets]
    self.entries = concatenated_ranges(histories.first_entry[self.infosets], self.counts)
    self.actions = histories.actions[player][self.entries - player * len(histories.actions[0])]
    self.entry_above = tree.forests[player].last[self.rows]
    self._before = np.cumsum(self.counts) - self.counts

  def names(self, label: str) -> list[str]:
    """Returns the names of the infosets, with a label before each."""
    return [label + self._histories.infostate(infoset) for infoset in self.infosets.tolist()]

  def sequences(self, entry: Int64s, otherwise: Any, start: int = 1) -> Int64s:
    """Returns the sequence in the subgame of each entry of the whole game.

    Args:
      entry: int64 array. Entries of the whole game.
      otherwise: the sequence of entries outside the subgame.
      start: the sequence of the first infoset's first action.
    """
    result = np.broadcast_to(np.asarray(otherwise, np.int64), entry.shape).copy()
    if len(self.infosets):
      infoset = self._histories.infoset_of_entry[entry]
      place = np.minimum(np.searchsorted(self.infosets, infoset), len(self.infosets) - 1)
      inside = (entry >= 0) & (self.infosets[place] == infoset)
      number = start + self._before[place] + entry - self._histories.first_entry[infoset]
      result[inside] = number[inside]
    return result


class _Copy(NamedTuple):
  """One way in which the opponent enters its infosets.

  Attributes:
    label: the beginning of the infosets' names.
    entry: int64 (J,). The sequence by which the opponent enters each J.
    factor: float64 (J,). The factor of all weights at each J.
  """

  label: str
  entry: Int64s
  factor: Float64s


class _Front:
  """The opponent's moves before the subgames.

  Attributes:
    names: the names of the gadget's infosets.
    counts: int64 (infosets,). The number of actions of each of these infosets.
    sequences: int64 (leaves,). The opponent's sequences at the gadget's own leaves.
    values: float64 (leaves,). The searcher's payoffs at these leaves.
    copies: the copies of the opponent's infosets in the subgames.
  """

  def __init__(self, roots: Roots, gadget: Gadget, names: list[str], program: bool) -> None:
    """Takes the beginnings of the subgames, the gadget, and the names of all J."""
    number, ways = len(roots.w), list(roots.shares)
    group, empty = np.arange(number), np.zeros(number, np.int64)
    enters, pays = empty, [share * roots.w * roots.bound for share in ways]
    # The weight of each pick in place of a dealt copy, see `Bonus`.
    self._bonus: Float64s | None = None
    self.names: list[str] = []
    self.counts, self.sequences, self.values = empty[:0], empty[:0], np.zeros(0)
    if gadget.front == "pick":
      self.counts = np.bincount(roots.subgame)
      self.names = ["pick: where to be"] * len(self.counts)
      enters, self.sequences, self.values = 1 + group, 1 + group, pays[0]
      if program and len(ways) > 1:
        self._bonus = ways.pop() / ways[0]
      elif len(ways) > 1:
        self.sequences = np.append(self.sequences, 0)
        self.values = np.append(self.values, pays[1].sum())
    elif gadget.front == "choice":
      self.counts = np.full(number, 2)
      self.names = [f"choice: {name}" for name in names]
      enters, self.sequences, self.values = 2 + 2 * group, 1 + 2 * group, -pays[0]
    self.copies = [_Copy("", enters, ways[0])]
    self.copies += [_Copy("dealt: ", empty, share) for share in ways[1:]]

  def bonus_in(self, game: EnumeratedGame, opponent: int) -> Bonus | None:
    """Returns the bonus of a linear program; None without a bonus."""
    if self._bonus is None:
      return None
    infosets = game.infosets[opponent].position[: len(self.counts)].astype(np.int64)
    picks = game.all_action_sequences[len(game.actions[0]) * opponent :][: len(self._bonus)]
    return Bonus(picks, self._bonus, infosets)
