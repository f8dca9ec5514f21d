"""Subgames of public trees that list private states, with a gadget in front, as games of arrays.

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
from typing import Any, NamedTuple, Protocol

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.from_arrays import game_of_parts
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.search.cut_outs import CutOut, Start
from spiel_cfr.search.gadget_front import GadgetFront, find_roots
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.private_forest import NONE, PrivateForest


class Forests(Protocol):
  """The part of a public tree from which subgames are cut out; `private_forest` explains rows.

  Attributes:
    name: the game's string.
    forests: by player, the forest of its private states.
  """

  name: str
  forests: tuple[PrivateForest, PrivateForest]

  @property
  def actions(self) -> Int64s:
    """The action of OpenSpiel of each entry, shape (entries,)."""

  def rows(self, number: int, player: int) -> Int64s:
    """Returns the rows of a player's private states at a public state, given its index."""

  def below(self, number: int) -> Int64s:
    """Returns the indices of the public states in the subgame of a public state."""

  def end_pairs(self, numbers: Int64s) -> tuple[Int64s, Int64s, Float64s]:
    """Returns the pairs of rows where the game ends right after some public states, and player 0's payoffs there."""

  def private_name(self, player: int, row: int) -> str:
    """Returns a player's last information state string at a row."""


class _SubgameEnds(NamedTuple):
  """Pairs of rows where the game ends in subgames, subgame by subgame.

  Attributes:
    rows: int64 (2, ends). The row of each player.
    payoffs: float64 (ends,). The searcher's payoff times chance's probability.
    weights: float64 (ends,). The product of both players' weights at the beginning of the subgame; above 0.
  """

  rows: Int64s
  payoffs: Float64s
  weights: Float64s


def _ends(tree: Forests, starts: Sequence[Start], tops: Sequence[Int64s]) -> _SubgameEnds:
  pairs = [tree.end_pairs(tree.below(start.number)) for start in starts]
  first, second, payoffs = (np.concatenate(own) for own in zip(*pairs, strict=True))
  rows = np.stack([first, second])
  weights = np.ones(len(payoffs))
  for player, top in enumerate(tops):
    at_top = np.zeros(len(top))
    for start in starts:
      at_top[tree.rows(start.number, player)] = start.weights[player]
    weights *= at_top[top[rows[player]]]
  alive = weights > 0
  sign = 1 - 2 * starts[0].searcher
  return _SubgameEnds(rows[:, alive], sign * payoffs[alive], weights[alive])


def cut_out(
  tree: Forests,
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
  searcher = starts[0].searcher
  opponent = 1 - searcher
  # By player, int64 (rows,): the row at the beginning of each row's subgame, `NONE` outside.
  tops = [
    forest.tops(np.concatenate([tree.rows(start.number, player) for start in starts]))
    for player, forest in enumerate(tree.forests)
  ]
  ends = _ends(tree, starts, tops)
  searcher_infosets, opponent_infosets = (
    _WholeInfosets(tree, player, tops[player], ends.rows[player]) for player in (searcher, opponent)
  )
  searcher_side = _BuiltInfosets(tree, searcher)
  searcher_side.add_infosets(searcher_infosets, "", 0)
  searcher_last = searcher_infosets.sequences(tree.forests[searcher].last[ends.rows[searcher]], 0)
  roots = find_roots(starts, [tree.rows(start.number, opponent) for start in starts], gadget)
  front = GadgetFront(roots, gadget, program)
  place = np.full(len(tops[opponent]), NONE)
  place[roots.row] = np.arange(len(roots.row))
  opponent_side, opponent_last, values = _leaves(
    tree, opponent, front, opponent_infosets, ends, place[tops[opponent]]
  )
  # Leaves of the gadget come first. The ends of the subgames follow, once for each copy.
  pairs = np.stack([np.zeros_like(opponent_last), opponent_last])
  pairs[0, len(front.values) :] = np.resize(searcher_last, len(values) - len(front.values))
  game = _game(tree.name, searcher, searcher_side, opponent_side, pairs, values)
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
  tree: Forests,
  opponent: int,
  front: GadgetFront,
  infosets: "_WholeInfosets",
  ends: _SubgameEnds,
  place: Int64s,
) -> tuple["_BuiltInfosets", Int64s, Float64s]:
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
  side = _BuiltInfosets(tree, opponent)
  side.add_front(front)
  sequences, values = [front.sequences], [front.values]
  last_entry, at_end = tree.forests[opponent].last[ends.rows[opponent]], place[ends.rows[opponent]]
  for copy in front.copies:
    begin = side.add_infosets(infosets, copy.label, copy.entry[place[infosets.rows]])
    sequences.append(infosets.sequences(last_entry, copy.entry[at_end], begin))
    values.append(ends.weights * copy.factor[at_end] * ends.payoffs)
  return side, np.concatenate(sequences), np.concatenate(values)


def _game(
  name: str,
  searcher: int,
  searcher_side: "_BuiltInfosets",
  opponent_side: "_BuiltInfosets",
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
  num_actions, actions = (
    [np.concatenate(getattr(side, name)) for side in sides] for name in ("counts", "actions")
  )
  facts = GameFacts(
    game_string=f"subgame of {name}",
    num_distinct_actions=1 + max(int(own.max(initial=0)) for own in actions),
    payoff_range=(-largest, largest),
    constant_sum=0.0,
    num_states=pairs.shape[1] + sum(map(len, num_actions)),
    num_terminals=pairs.shape[1],
    open_spiel_version=None,
  )
  return game_of_parts(
    facts,
    [side.names for side in sides],
    actions,
    [np.concatenate(side.parents) for side in sides],
    num_actions,
    leaves.astype(np.uint32),
    np.stack([payoffs, -payoffs], axis=1),
  )


class _Names(Sequence[str]):
  """Names of a player's infosets in a subgame, found when they are asked for: a label, and the name of a row."""

  def __init__(self, tree: Forests, player: int) -> None:
    """Begins without names."""
    self._tree, self._player = tree, player
    self._rows, self._labels = list[int](), list[str]()

  def add(self, label: str, rows: Int64s) -> None:
    """Adds a name for each row; for `NONE`, the label is the whole name."""
    self._rows += rows.tolist()
    self._labels += [label] * len(rows)

  def __len__(self) -> int:
    return len(self._rows)

  def __getitem__(self, place: Any) -> Any:
    if isinstance(place, slice):
      return [self[each] for each in range(len(self))[place]]
    row = self._rows[place]
    return self._labels[place] + ("" if row == NONE else self._tree.private_name(self._player, row))

  def __reduce__(self) -> tuple[Any, ...]:
    """Makes pickles and copies with all names, and without the tree."""
    return list, (list(self),)


class _BuiltInfosets:
  """A player's infosets in the game that is built, in the order of their sequences."""

  def __init__(self, tree: Forests, player: int) -> None:
    """Begins without infosets."""
    self.names = _Names(tree, player)
    self.counts, self.actions, self.parents = [list[Int64s]() for _ in range(3)]

  def add_front(self, front: GadgetFront) -> None:
    """Adds the infosets of a gadget, which have no sequence above them."""
    self.names.add(front.label, front.rows)
    self.counts.append(front.counts)
    self.actions.append(concatenated_ranges(np.zeros_like(front.counts), front.counts))
    self.parents.append(np.zeros_like(front.counts))

  def add_infosets(self, infosets: "_WholeInfosets", label: str, otherwise: Any) -> int:
    """Adds a copy of infosets of the whole game, and returns the first sequence of the copy.

    Args:
      infosets: the infosets.
      label: the beginning of their names.
      otherwise: the sequence above infosets that have no infoset of the copy above them.
    """
    start = 1 + sum(int(each.sum()) for each in self.counts)
    self.names.add(label, infosets.rows)
    self.counts.append(infosets.counts)
    self.actions.append(infosets.actions)
    self.parents.append(infosets.sequences(infosets.entry_above, otherwise, start))
    return start


class _WholeInfosets:
  """A player's infosets of the whole game that are in the subgames, in the order of their rows.

  Attributes:
    rows: int64 (infosets,). The row of each infoset.
    counts: int64 (infosets,). The number of actions of each infoset.
    entries: int64 (actions,). The entries of the actions in the whole game.
    actions: int64 (actions,). The actions of OpenSpiel.
    entry_above: int64 (infosets,). The player's last entry before each infoset.
  """

  def __init__(self, tree: Forests, player: int, tops: Int64s, ends: Int64s) -> None:
    """Finds the infosets from the beginnings of the subgames down to the rows where the game ends.

    Args:
      tree: the whole game.
      player: the player.
      tops: int64 (rows,). The row at the beginning of each row's subgame.
      ends: int64 (ends,). The player's rows where the game ends.
    """
    forest = tree.forests[player]
    inside = np.zeros(len(tops), bool)
    rows = np.unique(forest.above[ends])
    while len(rows):
      inside[rows] = True
      rows = np.unique(forest.above[rows[tops[rows] != rows]])
    own = forest.infosets
    chosen = np.flatnonzero(inside[own.rows])
    self.rows, self.counts = own.rows[chosen], own.counts[chosen]
    places = concatenated_ranges(own.begins[chosen], self.counts)
    self.entries = own.entries[places]
    self.actions = tree.actions[self.entries]
    self.entry_above = forest.last[self.rows]
    # The position in `places` of each entry is that in `entries`.
    self._places, self._place_of_entry = places, own.place

  def sequences(self, entry: Int64s, otherwise: Any, start: int = 1) -> Int64s:
    """Returns the sequence in the subgame of each entry of the whole game.

    Args:
      entry: int64 array. Entries of the whole game.
      otherwise: the sequence of entries outside the subgame.
      start: the sequence of the first infoset's first action.
    """
    result = np.broadcast_to(np.asarray(otherwise, np.int64), entry.shape).copy()
    if len(self._places):
      place = np.where(entry >= 0, self._place_of_entry[entry], NONE)
      number = np.minimum(np.searchsorted(self._places, place), len(self._places) - 1)
      inside = self._places[number] == place
      result[inside] = start + number[inside]
    return result
