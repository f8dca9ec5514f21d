"""All histories below some states as arrays, with what each player knows at each: what search cuts subgames out of.

A sequence form has no histories, and no compiled game says what a player knows who is not to move. Both are asked of
OpenSpiel's states in one walk. The walk explores actions as `games.openspiel.walk` does, so that of a whole game
infosets have the numbers, and actions the entries, that the compiled game has.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # its `sparse` is imported when it is used

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, spread
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import SUM_TOLERANCE
from spiel_cfr.search.history_walk import NONE, TERMINAL, Walk


class HistoryTree:
  """The histories of a two-player game from some states on, in preorder: a subtree is a slice.

  Entries number the actions of all infosets, player 0's first, those of an infoset in the order of its legal actions.

  Attributes:
    view: the game.
    names: of each player, the information state strings of its infosets, in order of discovery.
    actions: of each player, the legal actions, infoset by infoset.
    num_actions: int64 (infosets,), of all players.
    owner: int64 (infosets,), whose each is.
    first_entry: int64 (infosets,).
    parent: int64 (nodes,), the history before the last move, `NONE` where the walk has begun.
    end: int64 (nodes,), one past the last history of the subtree.
    action: int64 (nodes,), the last move, as OpenSpiel numbers it.
    mover: int64 (nodes,), who moves: a player, `CHANCE` or `TERMINAL`.
    infoset: int64 (nodes,), at which one, `NONE` where no player moves.
    length: int64 (nodes,), how many moves there were.
    knows: int64 (nodes, 2), equal where a player's information state strings are; `NONE` where nobody is to decide.
    known: what these numbers stand for: (player, information state string).
    last: int64 (2, nodes), the entry of each player's last action, `NONE` before the first.
    chance: float64 (nodes,), the product of chance's probabilities, that of where the walk has begun included.
    payoff: float64 (nodes,), what player 0 gets at a terminal history, less half of what the players' returns sum to.
    levels: the histories by their number of moves from where the walk has begun, the first of these left out.
  """

  def __init__(
    self,
    view: GameView,
    roots: Sequence[Any],
    max_nodes: int,
    probabilities: Float64s | None = None,
    deadline: float = math.inf,
  ) -> None:
    """Walks all histories below states of a game.

    Args:
      view: the game.
      roots: states of it, all after the same number of moves.
      max_nodes: how many histories there may be.
      probabilities: float64 (3, roots), of chance and of each player to have played to the roots; 1 by default.
      deadline: when to give up, by `time.perf_counter`.

    Raises:
      GameTooLargeError: there are more histories than `max_nodes`, or than can be walked until the deadline.
      UnsupportedGameError: returns do not sum to a constant, infosets span numbers of moves, a player forgets, the
        player who is not to move is told nothing; or what `games.openspiel.walk` refuses.
    """
    self.view = view
    self._begin = [root.history() for root in roots]
    found = Walk(view, max_nodes, deadline)
    for root in roots:
      found.visit(root)
    columns = found.columns()
    self.parent, self.action, self.mover = columns["parent"], columns["action"], columns["mover"]
    self.length = columns["length"]
    self.knows = np.stack([columns["first_knows"], columns["second_knows"]], axis=1)
    self.known = list(found.known)
    # Infosets were numbered as they were met; now come player 0's, then player 1's.
    owners, names = zip(*(self.known[told] for told in found.infosets), strict=True)
    owner = np.array(owners, np.int64)
    order = np.argsort(owner, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    self.owner = owner[order]
    self.infoset = np.where(columns["infoset"] >= 0, place[columns["infoset"]], NONE)
    legal = [each for _, each, _ in found.infosets.values()]
    self.names = [[names[i] for i in order if owner[i] == player] for player in (0, 1)]
    self.actions = [
      np.array([a for i in order if owner[i] == player for a in legal[i]], np.int64)
      for player in (0, 1)
    ]
    self.num_actions = np.array([len(legal[i]) for i in order], np.int64)
    self.first_entry = np.cumsum(self.num_actions) - self.num_actions
    self._move, self._chance_move = columns["move"], np.array(found.chances)
    self._roots = np.flatnonzero(self.parent == NONE)
    self._before = np.ones((3, len(roots))) if probabilities is None else probabilities
    self.end, self.levels = self._ends_and_levels()
    decided = np.flatnonzero((self.parent >= 0) & (self.mover[self.parent] >= 0))
    self._decided, above = decided, self.infoset[self.parent[decided]]
    # The entry that leads to each history, where a player has moved last.
    self.entry = np.full(len(self.parent), NONE)
    self.entry[decided] = self.first_entry[above] + self._move[decided]
    self.last = self._last_entries()
    self.chance = self._products(self._chance_move, self._before[0])
    self.payoff = self._payoffs(found.returns)
    self._check_recall()

  @property
  def num_entries(self) -> int:
    """How many actions all infosets have."""
    return int(self.num_actions.sum())

  @functools.cached_property
  def infoset_of_entry(self) -> Int64s:
    """Shape (entries,)."""
    return np.repeat(np.arange(len(self.num_actions)), self.num_actions)

  @functools.cached_property
  def player_of_entry(self) -> Int64s:
    """Shape (entries,)."""
    result: Int64s = self.owner[self.infoset_of_entry]
    return result

  @functools.cached_property
  def entry_above(self) -> Int64s:
    """The owner's last entry before each infoset, `NONE` where there is none; shape (infosets,)."""
    result = np.full(len(self.owner), NONE)
    decisions = np.flatnonzero(self.mover >= 0)
    result[self.infoset[decisions]] = self.last[self.mover[decisions], decisions]
    return result

  @functools.cached_property
  def terminals(self) -> Int64s:
    """The terminal histories."""
    return np.flatnonzero(self.mover == TERMINAL)

  def below(self, roots: Int64s) -> Int64s:
    """Returns the histories of the subtrees of some, these included, in preorder for roots in order."""
    return spread(roots, self.end[roots] - roots)

  def reach(self, entries: Float64s, player: int) -> Float64s:
    """Returns the probability that a player plays to each history, by probabilities of shape (entries,)."""
    made = np.ones(len(self.parent))
    own = self._decided[self.mover[self.parent[self._decided]] == player]
    made[own] = entries[self.entry[own]]
    return self._products(made, self._before[1 + player])

  def values(self, entries: Float64s) -> Float64s:
    """Returns what player 0 gets from each history on, by probabilities of shape (entries,); less what `payoff` is."""
    return self.carried(entries, self.payoff)

  def carried(self, entries: Float64s, worth: Float64s) -> Float64s:
    """Returns the same where histories that nothing follows are worth something else, shape (nodes,)."""
    made, result = self._made(entries), worth.copy()
    for level in reversed(self.levels):
      result += np.bincount(self.parent[level], made[level] * result[level], len(result))
    return result

  def _made(self, entries: Float64s) -> Float64s:
    """Returns the probability of the move that leads to each history."""
    result = self._chance_move.copy()
    result[self._decided] = entries[self.entry[self._decided]]
    return result

  def normalized(self, sums: Float64s, otherwise: Float64s) -> Float64s:
    """Returns sums of shape (entries,) as probabilities; where all of an infoset are 0, what there is otherwise."""
    totals = np.add.reduceat(sums, self.first_entry)[self.infoset_of_entry]
    return np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), otherwise)

  @functools.cached_property
  def _last_known(self) -> Int64s:
    """What each player was told last, and has done last, as a number; shape (2, nodes)."""
    result = self.knows.T.copy()
    for level in self.levels:
      above, told = self.parent[level], self.knows[level].T
      result[:, level] = np.where(told == NONE, result[:, above], told)
    numbers: Int64s = result + len(self.known) * (1 + self.last)
    return numbers

  def told(self, player: int) -> Int64s:
    """Returns what a player was told last, and has done last, as a number; shape (nodes,)."""
    result: Int64s = self._last_known[player]
    return result

  @functools.cached_property
  def _known(self) -> Int64s:
    """One of the histories that a player can't tell each from, the same for all of them; shape (2, nodes)."""
    result = np.empty_like(self.last)
    for player, told in enumerate(self._last_known):
      numbers = self.joined([told])
      # Terminal histories, which nobody asks about, have the number -1.
      _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
      result[player] = first[place]
    return result

  def known_to(self, player: int, nodes: Int64s) -> Int64s:
    """Returns numbers that are equal where a player can't tell histories of one public state apart, now or later.

    It knows what it was told last, and what it has done last. What a string says to a player who is not to move, and
    that of no infoset of its own later on, it does not know.
    """
    result: Int64s = self._known[player, nodes]
    return result

  def known_as(self, player: int, number: int) -> str:
    """Returns the information state string of one of these numbers, the last that there was."""
    name: str = self.known[int(self._last_known[player, number]) % len(self.known)][1]
    return name

  def joined(self, keys: Sequence[Int64s]) -> Int64s:
    """Joins histories of one length: those with equal keys, and those above joined ones; from the deepest up.

    Args:
      keys: int64 (nodes,) each, `NONE` where a history has none.

    Returns:
      A number a history, the same for joined ones, `NONE` of terminal ones; ascending by length, then by first history.
    """
    result = np.full(len(self.parent), NONE)
    count = 0
    # Histories of this length, and the numbers of what comes after them.
    below = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for level in [*reversed(self.levels), self._roots]:
      nodes = np.sort(level[self.mover[level] != TERMINAL])
      above, after = below
      rows, columns = [np.searchsorted(nodes, above)], [after]
      begin = int(after.max(initial=-1)) + 1
      for key in keys:
        here = np.flatnonzero(key[nodes] >= 0)
        rows.append(here)
        columns.append(begin + key[nodes[here]])
        begin += int(key.max(initial=-1)) + 1
      labels = sharing(len(nodes), np.concatenate(rows), np.concatenate(columns))
      result[nodes] = count + labels
      count += int(labels.max(initial=-1)) + 1
      going_on = nodes[self.parent[nodes] != NONE]
      below = self.parent[going_on], result[going_on]
    goes_on = np.flatnonzero(result != NONE)
    _, firsts, again = np.unique(result[goes_on], return_index=True, return_inverse=True)
    first_nodes = goes_on[firsts]
    order = np.lexsort((first_nodes, self.length[first_nodes]))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    result[goes_on] = rank[again]
    return result

  def infostate(self, infoset: int) -> str:
    """Returns the name of an infoset."""
    own, begin = int(self.owner[infoset]), len(self.names[0])
    name: str = self.names[own][infoset - begin * own]
    return name

  def history(self, node: int) -> list[int]:
    """Returns the moves that lead to a history."""
    moves: list[int] = []
    while self.parent[node] >= 0:
      moves.append(int(self.action[node]))
      node = int(self.parent[node])
    begin: list[int] = self._begin[int(np.searchsorted(self._roots, node))]
    return begin + moves[::-1]

  def state(self, node: int) -> Any:
    """Returns OpenSpiel's state of a history."""
    state = self.view.new_initial_state()
    for action in self.history(node):
      state.apply_action(action)
    return state

  def path(self, history: Sequence[int]) -> list[int]:
    """Returns the histories from where the walk has begun down to one that its moves give; empty if there is none."""
    before = len(self._begin[0])
    begin = list(history[:before])
    if begin not in self._begin:
      return []
    nodes = [int(self._roots[self._begin.index(begin)])]
    for action in history[before:]:
      node = nodes[-1]
      below = slice(node + 1, int(self.end[node]))
      match = np.flatnonzero((self.parent[below] == node) & (self.action[below] == action))
      if not len(match):
        return []
      nodes.append(node + 1 + int(match[0]))
    return nodes

  def response_values(
    self, weights: Float64s, entries: Float64s, player: int, barred: Bools | None = None
  ) -> Float64s:
    """Returns what a player gets from each history on by a best response, shape (nodes,); less what `payoff` is.

    Args:
      weights: chance's probability of each history, times that of the other to play there.
      entries: how the other plays, shape (entries,).
      player: who responds.
      barred: actions that it must not take, shape (entries,). Below one, all histories get what it expects where it
        would have taken it.
    """
    made, result = self._made(entries), (1 - 2 * player) * self.payoff
    instead = np.full(len(result), np.nan)
    for level in reversed(self.levels):
      above = self.parent[level]
      mine = level[self.mover[above] == player]
      if len(mine):
        entry = self.entry[mine]
        worth = np.bincount(entry, weights[mine] * result[mine], self.num_entries)
        if barred is not None:
          worth[barred] = -np.inf
        best = np.maximum.reduceat(worth, self.first_entry)[self.infoset_of_entry]
        chosen = (worth == best).astype(np.float64)
        chosen /= np.add.reduceat(chosen, self.first_entry)[self.infoset_of_entry]
        made[mine] = chosen[entry]
        if barred is not None:
          mass = np.bincount(entry, weights[mine], self.num_entries)
          mean = np.divide(best, mass, out=np.zeros_like(best), where=mass > 0)
          instead[mine] = np.where(barred[entry], mean[entry], np.nan)
      result += np.bincount(above, made[level] * result[level], len(result))
    if barred is None:
      return result
    for level in self.levels:
      above = self.parent[level]
      instead[level] = np.where(np.isnan(instead[above]), instead[level], instead[above])
    return np.where(np.isnan(instead), result, instead)

  def _ends_and_levels(self) -> tuple[Int64s, list[Int64s]]:
    """Returns `end` and `levels`."""
    starts = self.length[self.parent < 0][0] if len(self.parent) else 0
    by_length = np.argsort(self.length, kind="stable")
    cuts = np.flatnonzero(np.diff(self.length[by_length])) + 1
    levels = np.split(by_length, cuts)
    sizes = np.ones(len(self.parent), np.int64)
    for level in reversed(levels):
      above = self.parent[level]
      sizes += np.bincount(above[above >= 0], sizes[level][above >= 0], len(sizes)).astype(np.int64)
    deeper = [level for level in levels if self.length[level[0]] > starts]
    return np.arange(len(sizes)) + sizes, deeper

  def _products(self, made: Float64s, begin: Float64s) -> Float64s:
    result = np.empty(len(self.parent))
    result[self._roots] = begin
    for level in self.levels:
      result[level] = result[self.parent[level]] * made[level]
    return result

  def _last_entries(self) -> Int64s:
    result = np.full((2, len(self.parent)), NONE)
    for level in self.levels:
      above = self.parent[level]
      result[:, level] = result[:, above]
      mine = self.mover[above] >= 0
      result[self.mover[above[mine]], level[mine]] = self.entry[level[mine]]
    return result

  def _payoffs(self, returns: Sequence[Sequence[float]]) -> Float64s:
    result = np.zeros(len(self.parent))
    pairs = np.array(returns, np.float64).reshape(-1, 2)
    sums = pairs.sum(axis=1)
    apart = np.abs(sums - sums[:1]) > SUM_TOLERANCE * np.abs(pairs).max(initial=0.0)
    if apart.any():
      raise errors.UnsupportedGameError(
        f"Search is for games whose returns sum to a constant; in {self.view.game} they sum to {sums[0]:g} and to "
        f"{sums[apart][0]:g}."
      )
    result[self.terminals] = (pairs[:, 0] - pairs[:, 1]) / 2
    return result

  def _check_recall(self) -> None:
    """Refuses infosets that their owner reaches in several ways, or after several numbers of moves."""
    nodes = np.flatnonzero(self.mover >= 0)
    infoset = self.infoset[nodes]
    first = np.full(len(self.owner), len(self.parent))
    np.minimum.at(first, infoset, nodes)
    spans = self.length[nodes] != self.length[first[infoset]]
    player = self.mover[nodes]
    forgets = self.last[player, nodes] != self.last[player, first[infoset]]
    for wrong, what in ((spans, "after different numbers of moves"), (forgets, "in several ways")):
      if wrong.any():
        number = int(infoset[int(np.flatnonzero(wrong)[0])])
        owner, name = int(self.owner[number]), self.infostate(number)
        raise errors.UnsupportedGameError(
          f"Player {owner} comes to infostate {name!r} {what}, so that histories have no public states. Search needs "
          'perfect recall, of how many moves there were too; compile_game(..., infostate="history") often has it.'
        )


def sharing(count: int, things: Int64s, keys: Int64s) -> Int64s:
  """Numbers things from 0 on so that those have one number that share a key, or that a chain of such pairs joins.

  Things and keys are int64 (pairs,): a thing, and a key that it has.
  """
  _, columns = np.unique(keys, return_inverse=True)
  size = count + int(columns.max(initial=-1)) + 1
  graph = scipy.sparse.coo_matrix((np.ones(len(things)), (things, count + columns)), (size, size))
  labels = scipy.sparse.csgraph.connected_components(graph, directed=False)[1][:count]
  numbers: Int64s = np.unique(labels, return_inverse=True)[1]
  return numbers
