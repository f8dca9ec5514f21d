"""All histories below some states as arrays, with each player's private state at each history.

A sequence form has no histories, and a compiled game has no information states of a player who is not to move. One walk
asks OpenSpiel's states for both. It explores actions as `games.openspiel.walk` does, so that the infosets of a whole
game have the numbers, and its actions the entries, that the compiled game has.
"""

import array
import functools
import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # its `sparse` is imported when it is used

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.history_list import NONE, TERMINAL, HistoryList, Move, in_order
from spiel_cfr.games.openspiel.state_checks import SUM_TOLERANCE, inconsistent_actions

_ADVICE = " Raise max_histories, or the time."
# Trees of whole games, walked once for all who hold them at a time.
_HELD: "weakref.WeakKeyDictionary[GameView, weakref.ref[HistoryTree]]"
_HELD = weakref.WeakKeyDictionary()


class HistoryTree:
  """The histories of a two-player game from some states on, in preorder: a subtree is a slice.

  Entries number the actions of all infosets, player 0's first, those of an infoset in the order of its legal actions.

  Attributes:
    view: the game.
    names: of each player, the information state strings of its infosets, in order of discovery.
    actions: of each player, the legal actions, infoset by infoset.
    num_actions: int64 (infosets,), of all players.
    owner: int64 (infosets,). The player to move at each infoset.
    first_entry: int64 (infosets,). The entry of each infoset's first action.
    parent: int64 (nodes,). The history before the last move; `NONE` at the first histories of the walk.
    end: int64 (nodes,). One past the last history of the subtree.
    action: int64 (nodes,). The last move, as OpenSpiel numbers it.
    mover: int64 (nodes,). The player to move, `CHANCE` or `TERMINAL`.
    infoset: int64 (nodes,). The infoset of each history; `NONE` at chance and terminal nodes, and where the walk ends.
    length: int64 (nodes,). The number of moves before.
    infostate_numbers: int64 (nodes, 2). The number of each player's information state string; `NONE` where chance moves
      or the game has ended.
    infostates: list. The (player, information state string) of each such number.
    entry: int64 (nodes,). The entry of the last move; `NONE` if chance made it.
    last: int64 (2, nodes). The entry of each player's last action, `NONE` before the first.
    chance: float64 (nodes,). The product of chance's probabilities, those of the first histories included.
    payoff: float64 (nodes,). Player 0's payoff at a terminal history, less half of what the players' returns sum to.
    levels: for each level, int64 (histories,). The histories by number of moves, without the first ones of the walk.
    probabilities: float64 (3, first histories). The probabilities that chance and each player play to them.
  """

  def __init__(
    self,
    view: GameView,
    roots: Sequence[Any],
    max_nodes: int,
    probabilities: Float64s | None = None,
    deadline: float = math.inf,
    depth: int | None = None,
  ) -> None:
    """Walks the histories below states of a game.

    Args:
      view: the game.
      roots: states of it, all after the same number of moves.
      max_nodes: the most histories.
      probabilities: float64 (3, roots). The probabilities that chance and each player play to the roots; 1 by default.
      deadline: the time at which the walk gives up, by `time.perf_counter`.
      depth: the walk ends at decisions so many moves after the first decision, or more; None to walk all.

    Raises:
      GameTooLargeError: there are more histories than `max_nodes`, or than can be walked until the deadline.
      UnsupportedGameError: returns do not sum to a constant, infosets span numbers of moves, a player forgets, the
        player who is not to move is told nothing, no player decides; or what `games.openspiel.walk` refuses.
    """
    self.view = view
    self._first_histories = [root.history() for root in roots]
    found = _Infostates(view, depth)
    listed = HistoryList(view, max_nodes, found.decide, deadline, _ADVICE)
    for root in roots:
      listed.add(root)
    if not found.infosets:
      raise errors.UnsupportedGameError(
        f"Search is for games in which players decide; in {view.game} none does after "
        f"[{roots[0].history_str()}]. solve_lp(game).value is what players get."
      )
    columns = listed.columns()
    self.parent, self.action, self.mover = columns["parent"], columns["action"], columns["mover"]
    self.length = columns["length"]
    self.infostate_numbers = np.full((len(self.mover), 2), NONE)
    self.infostate_numbers[self.mover >= 0] = np.array(found.pairs, np.int64).reshape(-1, 2)
    self.infostates = list(found.numbers)
    # Infosets were numbered as they were met; now come player 0's, then player 1's.
    owners, names = zip(*(self.infostates[number] for number in found.infosets), strict=True)
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
    self._roots = np.flatnonzero(self.parent == NONE)
    self.probabilities = np.ones((3, len(roots))) if probabilities is None else probabilities
    self.end, self.levels = self._ends_and_levels()
    decided = np.flatnonzero((self.parent >= 0) & (self.mover[self.parent] >= 0))
    self.entry = np.full(len(self.parent), NONE)
    self.entry[decided] = (
      self.first_entry[self.infoset[self.parent[decided]]] + columns["move"][decided]
    )
    self.last = self._last_entries()
    self.chance = self._chances(np.array(listed.chances))
    self.payoff = self._payoffs(listed.returns)
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
  def terminals(self) -> Int64s:
    """The terminal histories."""
    return np.flatnonzero(self.mover == TERMINAL)

  @functools.cached_property
  def _information(self) -> Int64s:
    """A number for each player's last information state string and last action together; shape (2, nodes)."""
    result = self.infostate_numbers.T.copy()
    for level in self.levels:
      above, own = self.parent[level], self.infostate_numbers[level].T
      result[:, level] = np.where(own == NONE, result[:, above], own)
    numbers: Int64s = result + len(self.infostates) * (1 + self.last)
    return numbers

  def number_private_states(self) -> tuple[Int64s, Int64s]:
    """Returns the number of each player's private state at each history, `NONE` of terminal ones; shape (nodes,) each.

    Histories of a public state that a player can't tell apart, now or later, are one private state. The player knows
    its last information state string and its last action. Information that it gets while it is not to move, and that
    its own later infosets do not have, does not count.
    """
    first, second = (self.joined([own]) for own in self._information)
    return first, second

  def information(self, player: int, node: int) -> str:
    """Returns a player's last information state string at a history."""
    name: str = self.infostates[int(self._information[player, node]) % len(self.infostates)][1]
    return name

  def number_public_states(self) -> Int64s:
    """Returns the public state of each history, `NONE` of terminal ones; parents have smaller numbers."""
    # Information of both players, wherever one of them decides; it may be more than they remember.
    decides = self.mover >= 0
    return self.joined([np.where(decides, own, NONE) for own in self._information])

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
      labels = connected(len(nodes), np.concatenate(rows), np.concatenate(columns))
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
    first: list[int] = self._first_histories[int(np.searchsorted(self._roots, node))]
    return first + moves[::-1]

  def state(self, node: int) -> Any:
    """Returns OpenSpiel's state of a history."""
    state = self.view.new_initial_state()
    for action in self.history(node):
      state.apply_action(action)
    return state

  def path(self, history: Sequence[int]) -> list[int]:
    """Returns the listed histories on the way of some moves, from the first of the walk down, or none."""
    before = len(self._first_histories[0])
    first = list(history[:before])
    if first not in self._first_histories:
      return []
    nodes = [int(self._roots[self._first_histories.index(first)])]
    for action in history[before:]:
      node = nodes[-1]
      below = slice(node + 1, int(self.end[node]))
      match = np.flatnonzero((self.parent[below] == node) & (self.action[below] == action))
      if not len(match):
        break
      nodes.append(node + 1 + int(match[0]))
    return nodes

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

  def _chances(self, made: Float64s) -> Float64s:
    result = np.ones(len(self.parent))
    result[self._roots] = self.probabilities[0]
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
        f"Search is for games whose returns sum to a constant; in {self.view.game} they sum to {sums[0]:zg} and to "
        f"{sums[apart][0]:zg}."
      )
    result[self.terminals] = (pairs[:, 0] - pairs[:, 1]) / 2
    return result

  def _check_recall(self) -> None:
    """Refuses infosets that their owner reaches in several ways, or after several numbers of moves."""
    nodes = np.flatnonzero(self.infoset >= 0)
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


class _Infostates:
  """Information states of both players, and infosets, numbered as a walk meets them.

  Attributes:
    numbers: the number of each (player, information state string).
    pairs: the numbers of both players at each history where a player is to move, one after the other.
    infosets: by that number, each infoset's own number, legal actions, and moves as they are explored.
  """

  def __init__(self, view: GameView, depth: int | None) -> None:
    self._view, self.pairs = view, array.array("q")
    self._depth, self._end = depth, math.inf
    self.numbers: dict[tuple[int, str], int] = {}
    self.infosets: dict[int, tuple[int, list[int], list[Move]]] = {}

  def decide(self, state: Any, player: int) -> tuple[int, list[Move]]:
    """Returns the infoset of a state and its moves, for `HistoryList`."""
    view, numbers = self._view, self.numbers
    both = [numbers.setdefault((each, view.named(state, each)), len(numbers)) for each in (0, 1)]
    self.pairs.extend(both)
    if self._depth is not None:
      length = len(state.history())
      if not self.infosets:
        self._end = length + self._depth
      if length >= self._end:
        return NONE, []
    legal, number = view.legal_actions(state), both[player]
    infoset = self.infosets.get(number)
    if infoset is None:
      infoset = self.infosets[number] = len(self.infosets), legal, in_order(legal)
    elif legal != infoset[1]:
      raise inconsistent_actions(view, state, infoset[1])
    return infoset[0], infoset[2]


def tree_of(view: GameView, max_nodes: int, deadline: float = math.inf) -> HistoryTree:
  """Returns all histories of a game; arguments and errors are those of `HistoryTree`."""
  held = _HELD.get(view)
  found = None if held is None else held()
  if found is None or len(found.parent) > max_nodes:
    found = HistoryTree(view, [view.new_initial_state()], max_nodes, deadline=deadline)
    _HELD[view] = weakref.ref(found)
  return found


def connected(count: int, things: Int64s, keys: Int64s) -> Int64s:
  """Numbers things from 0 on so that those have one number that share a key, or that a chain of such pairs joins.

  Things and keys are int64 (pairs,): a thing, and a key that it has.
  """
  _, columns = np.unique(keys, return_inverse=True)
  size = count + int(columns.max(initial=-1)) + 1
  graph = scipy.sparse.coo_matrix((np.ones(len(things)), (things, count + columns)), (size, size))
  labels = scipy.sparse.csgraph.connected_components(graph, directed=False)[1][:count]
  numbers: Int64s = np.unique(labels, return_inverse=True)[1]
  return numbers
