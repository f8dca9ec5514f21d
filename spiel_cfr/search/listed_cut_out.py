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
from spiel_cfr.search.cut_outs import CutOut
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.history_walk import TERMINAL
from spiel_cfr.search.public_trees import Start


class Roots(NamedTuple):
  """The histories at which subgames begin. J numbers the opponent's private states there, subgame by subgame.

  Attributes:
    searcher: the player who is solved again.
    histories: int64 (roots,). Their numbers in `HistoryTree`.
    weights: float64 (roots,). w of each, times r where chance deals J.
    place: int64 (roots,). The J of each.
    subgame: int64 (J,). The subgame of each J.
    first: int64 (J,). A history of each J.
    mass: float64 (J,). w of each J.
    bound: float64 (J,). The most that the opponent may expect at each J.
    follows: float64 (J,). `Gadget.follows` of each J.
    mixture: float64 (J,). The probability of each J by `Start.mixture`.
  """

  searcher: int
  histories: Int64s
  weights: Float64s
  place: Int64s
  subgame: Int64s
  first: Int64s
  mass: Float64s
  bound: Float64s
  follows: Float64s
  mixture: Float64s


def roots_of(
  found: HistoryTree,
  starts: Sequence[Start],
  private: Sequence[tuple[Int64s, tuple[Int64s, Int64s], tuple[Int64s, Int64s]]],
  gadget: Gadget,
) -> Roots:
  """Returns the histories at which subgames begin.

  Args:
    found: all histories.
    starts: the beginnings.
    private: of each, its histories; by player, a history of each private state; and the place of each history's.
    gadget: the gadget in front of each.
  """
  parts = []
  count, opponent = 0, 1 - starts[0].searcher
  for number, (start, (histories, first, places)) in enumerate(zip(starts, private, strict=True)):
    weights = found.chance[histories] * start.weights[0][places[0]] * start.weights[1][places[1]]
    alive, kept = weights > 0, start.mass > 0
    renumbered = count - 1 + np.cumsum(kept)
    count += int(np.count_nonzero(kept))
    parts.append(
      (
        histories[alive],
        weights[alive],
        renumbered[places[opponent][alive]],
        np.full(np.count_nonzero(kept), number),
        first[opponent][kept],
        start.mass[kept],
        start.bound[kept],
        gadget.follows(start.dealt, start.mass)[kept],
        start.mixture[kept],
      )
    )
  return Roots(starts[0].searcher, *map(np.concatenate, zip(*parts, strict=True)))


class Limit(NamedTuple):
  """The end of a subgame with limited depth: the opponent chooses among continuations of each leaf.

  Brown, Sandholm and Amos, "Depth-Limited Solving for Imperfect-Information Games" (2018).

  Attributes:
    leaves: int64 (leaves,). Histories, none of which follows another.
    values: float64 (continuations, leaves). Player 0's payoffs, as in `HistoryTree.payoff`.
  """

  leaves: Int64s
  values: Float64s

  def reached(self, found: HistoryTree) -> Bools:
    """Returns which histories are before the limit or on it, shape (nodes,)."""
    edges = np.zeros(len(found.parent) + 1, np.int64)
    edges[self.leaves + 1] += 1
    np.subtract.at(edges, found.end[self.leaves], 1)
    result: Bools = np.cumsum(edges)[:-1] == 0
    return result


def cut_out(
  found: HistoryTree,
  roots: Roots,
  gadget: Gadget,
  *,
  limit: Limit | None = None,
  program: bool = False,
) -> CutOut:
  """Returns the subgames below some histories, with a gadget in front, as one game.

  Args:
    found: all histories.
    roots: the beginnings of the subgames.
    gadget: the gadget in front of each.
    limit: where a subgame ends early.
    program: whether a linear program is to solve it, which has the dealt copy of "pick" as a bonus, not as infosets.
  """
  searcher, opponent, sign = roots.searcher, 1 - roots.searcher, 1 - 2 * roots.searcher
  nodes = found.below(roots.histories)
  root_of = np.repeat(np.arange(len(roots.histories)), found.end[roots.histories] - roots.histories)
  stops = np.zeros(len(nodes), bool)
  if limit is not None:
    kept = limit.reached(found)[nodes]
    nodes, root_of = nodes[kept], root_of[kept]
    stops = np.isin(nodes, limit.leaves)
  decides = ~stops & (found.mover[nodes] >= 0)
  ends = stops | (found.mover[nodes] == TERMINAL)
  mine = decides & (found.mover[nodes] == searcher)
  own = _Infosets(found, searcher, nodes[mine])
  theirs = decides & (found.mover[nodes] == opponent)
  other = _Infosets(found, opponent, nodes[theirs])
  place_above = roots.place[root_of[theirs][other.first]]

  # Of each end, its weight, the searcher's last sequence, and the opponent's J.
  end, end_root = nodes[ends], root_of[ends]
  weight = roots.weights[end_root] * found.chance[end] / found.chance[roots.histories[end_root]]
  own_last, place = own.sequences(found.last[searcher, end], 0), roots.place[end_root]

  front = _Front(roots, gadget, found, program)
  side = _Side(front.names, front.counts)
  rows, columns = [np.zeros(len(front.values), np.int64)], [front.sequences]
  values = [front.values]
  for copy in front.copies:
    start = side.add(other.names(copy.label), other.counts, other.actions)
    side.parents.append(other.sequences(other.entry_above, copy.entry[place_above], start))
    last = other.sequences(found.last[opponent, end], copy.entry[place], start)
    scale = sign * weight * copy.factor[place]
    if limit is None:
      outcomes = [(last, found.payoff[end])]
    else:
      outcomes = _outcomes(found, opponent, end, last, limit, side, copy.label)
    for sequences, worth in outcomes:
      rows.append(own_last)
      columns.append(sequences)
      values.append(scale * worth)
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
  first = len(game.actions[0])
  actions = game.all_action_sequences[:first], game.all_action_sequences[first:]
  theirs_here = actions[opponent][: len(other.entries) if gadget.front == "deal" else 0]
  here, there = (actions[searcher], theirs_here), (own.entries, other.entries[: len(theirs_here)])
  bonus = None
  if front.bonus is not None:
    bonus = np.zeros(game.end)
    bonus[actions[opponent][: len(front.bonus)]] = front.bonus
  own_subgame = roots.subgame[roots.place[root_of[mine][own.first]]]
  return CutOut(
    game,
    searcher,
    here if searcher == 0 else here[::-1],
    there if searcher == 0 else there[::-1],
    np.repeat(own_subgame, own.counts),
    bonus,
  )


def _outcomes(
  found: HistoryTree,
  opponent: int,
  end: Int64s,
  last: Int64s,
  limit: Limit,
  side: "_Side",
  label: str,
) -> list[tuple[Int64s, Float64s]]:
  """Returns, for each continuation, the opponent's last sequences at ends, and what player 0 gets there."""
  order = np.argsort(limit.leaves)
  place = np.minimum(np.searchsorted(limit.leaves[order], end), len(order) - 1)
  is_leaf = limit.leaves[order][place] == end
  values = np.where(is_leaf, limit.values[:, order[place]], found.payoff[end])
  number = len(values)
  if number == 1:
    return [(last, values[0])]
  # Terminal histories are worth the same by all continuations, so the first has them all.
  values[1:, ~is_leaf] = 0.0
  private, first, which = np.unique(
    found.private_state[opponent, end[is_leaf]], return_index=True, return_inverse=True
  )
  names = [f"{label}then: {found.private_state_name(opponent, each)}" for each in private.tolist()]
  counts = np.full(len(private), number)
  start = side.add(names, counts, spread(np.zeros_like(counts), counts))
  side.parents.append(last[is_leaf][first])
  result = []
  for continuation in range(number):
    sequences = last.copy()
    sequences[is_leaf] = start + number * which + continuation
    result.append((sequences, values[continuation]))
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
    first: int64 (infosets,). The place of a history of each in `nodes`.
    counts: int64 (infosets,). The number of actions of each.
    entries: int64 (actions,). Their entries in the whole.
    actions: int64 (actions,). The actions, as OpenSpiel numbers them.
  """

  def __init__(self, found: HistoryTree, player: int, nodes: Int64s) -> None:
    """Takes histories at which the player decides."""
    self._found = found
    self.infosets, self.first = np.unique(found.infoset[nodes], return_index=True)
    self.counts = found.num_actions[self.infosets]
    self.entries = spread(found.first_entry[self.infosets], self.counts)
    self.actions = found.actions[player][self.entries - player * len(found.actions[0])]
    self._before = np.cumsum(self.counts) - self.counts

  @property
  def entry_above(self) -> Int64s:
    """The owner's last entry before each."""
    result: Int64s = self._found.entry_above[self.infosets]
    return result

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
    bonus: float64 (J,), or None. The weight of each pick in place of a dealt copy, see `maximin_strategy`.
  """

  def __init__(self, roots: Roots, gadget: Gadget, found: HistoryTree, program: bool) -> None:
    number, mixed, opponent = len(roots.mass), gadget.mixed, 1 - roots.searcher
    group, none = np.arange(number), np.zeros(number, np.int64)
    self.bonus: Float64s | None = None
    self.names: list[str] = []
    self.counts, self.sequences, self.values = none[:0], none[:0], np.zeros(0)
    if gadget.front == "deal":
      self.copies = [_Copy("", none, np.ones(number))]
    elif gadget.front == "pick":
      if program and mixed:
        self.bonus, mixed = mixed / (1 - mixed) * roots.mixture, 0.0
      self.counts = np.bincount(roots.subgame)
      self.names = ["pick: where to be"] * len(self.counts)
      self.sequences, self.values = 1 + group, (1 - mixed) * roots.bound
      self.copies = [_Copy("", 1 + group, (1 - mixed) / roots.mass)]
      if mixed:
        dealt = mixed * roots.mixture
        self.sequences = np.append(self.sequences, 0)
        self.values = np.append(self.values, dealt @ roots.bound)
        self.copies.append(_Copy("dealt: ", none, dealt / roots.mass))
    else:
      self.names = [
        f"choice: {found.private_state_name(opponent, first)}" for first in roots.first.tolist()
      ]
      self.counts = np.full(number, 2)
      self.sequences, self.values = 1 + 2 * group, -(1 - roots.follows) * roots.mass * roots.bound
      self.copies = [_Copy("", 2 + 2 * group, 1 - roots.follows)]
      if mixed:
        self.copies.append(_Copy("dealt: ", none, roots.follows))
