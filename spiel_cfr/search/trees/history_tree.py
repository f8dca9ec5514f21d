"""Histories below some states of a game as arrays, with public states and private states of both players.

Compiled games have neither histories nor information states of the player who is not to move. One walk through
OpenSpiel's states finds both. The walk explores actions in the order of `games.openspiel.walk`, so that infosets and
entries of a whole game have the indices of the compiled game.
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
from spiel_cfr.games.openspiel.checked_calls import TERMINAL
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.history_list import NONE, ActionPair, HistoryList, in_order
from spiel_cfr.games.openspiel.state_checks import SUM_TOLERANCE, inconsistent_actions

_ADVICE, _ADVICE_WITH_DEADLINE = " Raise max_histories.", " Raise max_histories, or the time."
# Trees of whole games that are in use, for `tree_of`.
_TREES: "weakref.WeakKeyDictionary[GameView, weakref.ref[HistoryTree]]"
_TREES = weakref.WeakKeyDictionary()


class HistoryTree:
  """The histories of a two-player game below some states, in preorder: a subtree is a slice.

  An *entry* is the index of an action of an infoset. Player 0's entries come first. The entries of an infoset are in
  the order of its legal actions.

  Attributes:
    view: `GameView`. The game.
    names: by player, the information state strings of its infosets, in order of discovery.
    actions: by player, int64 (entries of the player,). The legal actions, infoset by infoset.
    num_actions: int64 (infosets,). The number of actions of each infoset of both players.
    owner: int64 (infosets,). The player to move at each infoset.
    first_entry: int64 (infosets,). The entry of each infoset's first action.
    parent: int64 (nodes,). The history before the last move; `NONE` at the first histories of the walk.
    end: int64 (nodes,). One past the last history of the subtree.
    action: int64 (nodes,). The last move as an action of OpenSpiel.
    mover: int64 (nodes,). The player to move, `CHANCE` or `TERMINAL`.
    infoset: int64 (nodes,). The infoset of each history; `NONE` at chance and terminal nodes, and where the walk ends.
    length: int64 (nodes,). The number of moves before each history.
    infostate_numbers: int64 (nodes, 2). Each player's index in `infostates`; `NONE` at chance and terminal nodes.
    infostates: list. The distinct pairs of a player and an information state string.
    entry: int64 (nodes,). The entry of the last move; `NONE` if chance made the move.
    last: int64 (2, nodes). The entry of each player's last action; `NONE` before its first action.
    chance: float64 (nodes,). The product of chance's probabilities, including those of the first histories.
    payoff: float64 (nodes,). Player 0's payoff at a terminal history, less half of the constant to which returns sum.
    levels: list. For each number of moves, int64 (histories,): the histories after it, without the first histories.
    probabilities: float64 (3, first histories). The probabilities with which chance, player 0 and player 1 play to each
      first history.
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
      roots: states of the game, all after the same number of moves.
      max_nodes: the largest number of histories.
      probabilities: float64 (3, roots). The probabilities with which chance, player 0 and player 1 play to each root; 1
        by default.
      deadline: the time, by `time.perf_counter`, at which the walk gives up.
      depth: the walk ends at decisions that come at least this many moves after the first decision. None walks all.

    Raises:
      GameTooLargeError: there are more histories than `max_nodes`, or more than can be walked until the deadline.
      UnsupportedGameError: returns do not sum to a constant; an infoset is reached after different numbers of moves; a
        player forgets; the player who is not to move has no information state; no player decides; or
        `games.openspiel.walk` refuses the game.
    """
    self.view = view
    self._first_histories = [root.history() for root in roots]
    infostates = _Infostates(view, depth)
    advice = _ADVICE if deadline == math.inf else _ADVICE_WITH_DEADLINE
    listed = HistoryList(view, max_nodes, infostates.decide, deadline, advice)
    for root in roots:
      listed.add(root)
    if not infostates.infosets:
      raise errors.UnsupportedGameError(
        f"Search is for games in which players decide; in {view.game} none does after "
        f"[{roots[0].history_str()}]. solve_lp(game).value is the value of the game."
      )
    columns = listed.columns()
    self.parent, self.action, self.mover = columns["parent"], columns["action"], columns["mover"]
    self.length = columns["length"]
    self.infostate_numbers = np.full((len(self.mover), 2), NONE)
    self.infostate_numbers[self.mover >= 0] = np.array(infostates.pairs, np.int64).reshape(-1, 2)
    self.infostates = list(infostates.numbers)
    number_of_discovered = self._number_infosets(infostates)
    discovered = columns["infoset"]
    self.infoset = np.where(discovered >= 0, number_of_discovered[discovered], NONE)
    self._roots = np.flatnonzero(self.parent == NONE)
    self.probabilities = np.ones((3, len(roots))) if probabilities is None else probabilities
    self.end, self.levels = self._ends_and_levels()
    decided = np.flatnonzero((self.parent >= 0) & (self.mover[self.parent] >= 0))
    self.entry = np.full(len(self.parent), NONE)
    self.entry[decided] = (
      self.first_entry[self.infoset[self.parent[decided]]] + columns["index"][decided]
    )
    self.last = self._last_entries()
    self.chance = self._chances(np.array(listed.chances))
    self.payoff = self._payoffs(listed.returns)
    self._check_recall()

  def _number_infosets(self, infostates: "_Infostates") -> Int64s:
    """Sets all attributes over infosets and entries.

    Player 0's infosets come first. The infosets of a player are in the order of discovery.

    Returns:
      int64 (infosets,). The number of each infoset, in the order of discovery.
    """
    owners, names = zip(*(self.infostates[number] for number in infostates.infosets), strict=True)
    legal = [actions for _, actions, _ in infostates.infosets.values()]
    owner = np.array(owners, np.int64)
    order = np.argsort(owner, kind="stable")
    self.owner = owner[order]
    self.names = [[names[i] for i in order if owner[i] == player] for player in (0, 1)]
    self.actions = [
      np.array([a for i in order if owner[i] == player for a in legal[i]], np.int64)
      for player in (0, 1)
    ]
    self.num_actions = np.array([len(legal[i]) for i in order], np.int64)
    self.first_entry = np.cumsum(self.num_actions) - self.num_actions
    result = np.empty_like(order)
    result[order] = np.arange(len(order))
    return result

  @property
  def num_entries(self) -> int:
    """The number of entries of both players."""
    return int(self.num_actions.sum())

  @functools.cached_property
  def infoset_of_entry(self) -> Int64s:
    """The infoset of each entry, shape (entries,)."""
    return np.repeat(np.arange(len(self.num_actions)), self.num_actions)

  @functools.cached_property
  def terminals(self) -> Int64s:
    """The indices of the terminal histories."""
    return np.flatnonzero(self.mover == TERMINAL)

  @functools.cached_property
  def _information(self) -> Int64s:
    """An index of each player's last information state string and last action together; shape (2, nodes)."""
    result = self.infostate_numbers.T.copy()
    for level in self.levels:
      above, numbers_here = self.parent[level], self.infostate_numbers[level].T
      result[:, level] = np.where(numbers_here == NONE, result[:, above], numbers_here)
    numbers: Int64s = result + len(self.infostates) * (1 + self.last)
    return numbers

  def number_private_states(self) -> tuple[Int64s, Int64s]:
    """Returns the index of each player's private state at each history; `NONE` at terminal histories.

    Both arrays have shape (nodes,). A private state is a set of histories of a public state that a player cannot tell
    apart, there or later. The player remembers its last information state string and its last action. Information that
    the player has while it is not to move does not count, unless its later infosets contain that information.
    """
    first, second = (self._joined([information]) for information in self._information)
    return first, second

  def information(self, player: int, node: int) -> str:
    """Returns a player's last information state string at a history, given the index of the history."""
    name: str = self.infostates[int(self._information[player, node]) % len(self.infostates)][1]
    return name

  def number_public_states(self) -> Int64s:
    """Returns the index of the public state of each history, shape (nodes,); `NONE` at terminal histories.

    Parents have smaller indices than their children.
    """
    # Information states of both players at all decisions. They may contain more than the players remember.
    decides = self.mover >= 0
    return self._joined([np.where(decides, information, NONE) for information in self._information])

  def _joined(self, keys: Sequence[Int64s]) -> Int64s:
    """Joins histories of one length into groups, from the deepest histories up.

    Two histories are joined if they have an equal key in one of the arrays, or if histories below them are joined.

    Args:
      keys: arrays of int64 (nodes,). A key of each history; `NONE` where a history has no key.

    Returns:
      int64 (nodes,). The index of each history's group; `NONE` at terminal histories. Groups are ordered by length,
      then by their first history.
    """
    result = np.full(len(self.parent), NONE)
    count = 0
    # The parents of the histories one move deeper, and the groups of these deeper histories.
    deeper = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for level in [*reversed(self.levels), self._roots]:
      nodes = np.sort(level[self.mover[level] != TERMINAL])
      parents, groups = deeper
      members, all_keys = [np.searchsorted(nodes, parents)], [groups]
      begin = int(groups.max(initial=-1)) + 1
      for key in keys:
        here = np.flatnonzero(key[nodes] >= 0)
        members.append(here)
        all_keys.append(begin + key[nodes[here]])
        begin += int(key.max(initial=-1)) + 1
      labels = connected_components(len(nodes), np.concatenate(members), np.concatenate(all_keys))
      result[nodes] = count + labels
      count += int(labels.max(initial=-1)) + 1
      with_parent = nodes[self.parent[nodes] != NONE]
      deeper = self.parent[with_parent], result[with_parent]
    in_group = np.flatnonzero(result != NONE)
    _, firsts, group = np.unique(result[in_group], return_index=True, return_inverse=True)
    first_nodes = in_group[firsts]
    order = np.lexsort((first_nodes, self.length[first_nodes]))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    result[in_group] = rank[group]
    return result

  def entries_of(self, infoset: int) -> slice:
    """Returns the entries of an infoset's actions."""
    begin = int(self.first_entry[infoset])
    return slice(begin, begin + int(self.num_actions[infoset]))

  def infostate(self, infoset: int) -> str:
    """Returns the information state string of an infoset."""
    owner = int(self.owner[infoset])
    name: str = self.names[owner][infoset - len(self.names[0]) * owner]
    return name

  def history(self, node: int) -> list[int]:
    """Returns the moves that lead to a history, given its index."""
    moves: list[int] = []
    while self.parent[node] >= 0:
      moves.append(int(self.action[node]))
      node = int(self.parent[node])
    first: list[int] = self._first_histories[int(np.searchsorted(self._roots, node))]
    return first + moves[::-1]

  def state(self, node: int) -> Any:
    """Returns OpenSpiel's state of a history, given its index."""
    state = self.view.new_initial_state()
    for action in self.history(node):
      state.apply_action(action)
    return state

  def path(self, history: Sequence[int]) -> list[int]:
    """Returns the listed histories along some moves, from a root of the walk down; empty if no root is on the way."""
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

  def _chances(self, last: Float64s) -> Float64s:
    """Returns `chance`, given chance's probability of the last move of each history."""
    result = np.ones(len(self.parent))
    result[self._roots] = self.probabilities[0]
    for level in self.levels:
      result[level] = result[self.parent[level]] * last[level]
    return result

  def _last_entries(self) -> Int64s:
    result = np.full((2, len(self.parent)), NONE)
    for level in self.levels:
      above = self.parent[level]
      result[:, level] = result[:, above]
      by_player = self.mover[above] >= 0
      result[self.mover[above[by_player]], level[by_player]] = self.entry[level[by_player]]
    return result

  def _payoffs(self, returns: Sequence[Sequence[float]]) -> Float64s:
    result = np.zeros(len(self.parent))
    pairs = np.array(returns, np.float64).reshape(-1, 2)
    sums = pairs.sum(axis=1)
    differs = np.abs(sums - sums[:1]) > SUM_TOLERANCE * np.abs(pairs).max(initial=0.0)
    if differs.any():
      raise errors.UnsupportedGameError(
        f"Search is for games whose returns sum to a constant; in {self.view.game} they sum to {sums[0]:zg} and to "
        f"{sums[differs][0]:zg}."
      )
    result[self.terminals] = (pairs[:, 0] - pairs[:, 1]) / 2
    return result

  def _check_recall(self) -> None:
    """Refuses infosets that are reached by different own actions, or after different numbers of moves."""
    nodes = np.flatnonzero(self.infoset >= 0)
    infoset = self.infoset[nodes]
    first = np.full(len(self.owner), len(self.parent))
    np.minimum.at(first, infoset, nodes)
    other_length = self.length[nodes] != self.length[first[infoset]]
    player = self.mover[nodes]
    forgets = self.last[player, nodes] != self.last[player, first[infoset]]
    problems = {"after different numbers of moves": other_length, "in several ways": forgets}
    for problem, is_wrong in problems.items():
      if is_wrong.any():
        number = int(infoset[int(np.flatnonzero(is_wrong)[0])])
        owner, name = int(self.owner[number]), self.infostate(number)
        raise errors.UnsupportedGameError(
          f"Player {owner} comes to infostate {name!r} {problem}. Search needs perfect recall, including the number of "
          'moves. compile_game(..., infostate="history") often provides it.'
        )


class _Infostates:
  """Information states of both players, and infosets, numbered in the order of discovery.

  Attributes:
    numbers: dict. The number of each pair of a player and an information state string.
    pairs: array of int64. Two numbers for each decision: player 0's information state, then player 1's.
    infosets: dict. By the number of an information state: the number of the infoset, its legal actions, and its moves
      in the order in which they are explored.
  """

  def __init__(self, view: GameView, depth: int | None) -> None:
    self._view, self.pairs = view, array.array("q")
    self._depth, self._end = depth, math.inf
    self.numbers: dict[tuple[int, str], int] = {}
    self.infosets: dict[int, tuple[int, list[int], list[ActionPair]]] = {}

  def decide(self, state: Any, player: int) -> tuple[int, list[ActionPair]]:
    """Returns the infoset of a state and its moves, for `HistoryList`."""
    view, numbers = self._view, self.numbers
    both = [numbers.setdefault((who, view.named(state, who)), len(numbers)) for who in (0, 1)]
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
  """Returns all histories of a game; callers share one tree. Arguments and errors are those of `HistoryTree`."""
  reference = _TREES.get(view)
  tree = None if reference is None else reference()
  if tree is None or len(tree.parent) > max_nodes:
    tree = HistoryTree(view, [view.new_initial_state()], max_nodes, deadline=deadline)
    _TREES[view] = weakref.ref(tree)
  return tree


def connected_components(count: int, members: Int64s, keys: Int64s) -> Int64s:
  """Returns the connected component of each member, numbered from 0. Members with a common key are connected.

  Args:
    count: the number of members.
    members: int64 (pairs,). The member of each pair of a member and a key.
    keys: int64 (pairs,). The key of each pair.
  """
  _, columns = np.unique(keys, return_inverse=True)
  size = count + int(columns.max(initial=-1)) + 1
  edges = np.ones(len(members)), (members, count + columns)
  graph = scipy.sparse.coo_matrix(edges, (size, size))
  labels = scipy.sparse.csgraph.connected_components(graph, directed=False)[1][:count]
  numbers: Int64s = np.unique(labels, return_inverse=True)[1]
  return numbers
