"""All histories below some states as arrays, with what each player knows at each: what search cuts subgames out of.

A sequence form has no histories, and no compiled game says what a player knows who is not to move. Both are asked of
OpenSpiel's states in one walk. The walk explores actions as `games.openspiel.walk` does, so that of a whole game
infosets have the numbers, and actions the entries, that the compiled game has.
"""

import array
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, spread
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import (
  cannot_be_walked,
  chance_outcomes,
  check_actions,
  inconsistent_actions,
  unknown_player,
)

CHANCE, TERMINAL = -1, -2
NONE = -1
_COLUMNS = ("parent", "action", "move", "mover", "infoset", "length", "first_knows", "second_knows")


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
    chance: float64 (nodes,), the product of chance's probabilities from where the walk has begun.
    payoff: float64 (nodes,), what player 0 gets at a terminal history, less half of what the players' returns sum to.
    levels: the histories by their number of moves from where the walk has begun, the first of these left out.
  """

  def __init__(self, view: GameView, roots: Sequence[Any], max_nodes: int) -> None:
    """Walks all histories below states of a game.

    Raises:
      GameTooLargeError: there are more histories than `max_nodes`.
      UnsupportedGameError: the game is not one of two players whose returns sum to a constant, or tells the player who
        is not to move nothing; or what `games.openspiel.walk` refuses.
    """
    self.view = view
    found = _Walk(view, max_nodes)
    for root in roots:
      found.visit(root)
    columns = dict(zip(_COLUMNS, found.arrays(), strict=True))
    self.parent, self.action, self.mover = columns["parent"], columns["action"], columns["mover"]
    self.length = columns["length"]
    self.knows = np.stack([columns["first_knows"], columns["second_knows"]], axis=1)
    self.known = list(found.known)
    # Infosets were numbered as they were met; now come player 0's, then player 1's.
    owner = np.array(found.owner, np.int64)
    order = np.argsort(owner, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    self.owner = owner[order]
    self.infoset = np.where(columns["infoset"] >= 0, place[columns["infoset"]], NONE)
    names, legal = list(found.infosets), found.legal
    self.names = [[names[i][1] for i in order if owner[i] == player] for player in (0, 1)]
    self.actions = [
      np.array([a for i in order if owner[i] == player for a in legal[i]], np.int64)
      for player in (0, 1)
    ]
    self.num_actions = np.array([len(legal[i]) for i in order], np.int64)
    self.first_entry = np.cumsum(self.num_actions) - self.num_actions
    self._move, self._chance_move = columns["move"], np.array(found.chances)
    self.end, self.levels = self._ends_and_levels()
    decided = np.flatnonzero((self.parent >= 0) & (self.mover[self.parent] >= 0))
    self._decided, above = decided, self.infoset[self.parent[decided]]
    # The entry that leads to each history, where a player has moved last.
    self.entry = np.full(len(self.parent), NONE)
    self.entry[decided] = self.first_entry[above] + self._move[decided]
    self.last = self._last_entries()
    self.chance = self._products(self._chance_move)
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
    return self._products(made)

  def values(self, entries: Float64s) -> Float64s:
    """Returns what player 0 gets from each history on, by probabilities of shape (entries,); less what `payoff` is."""
    return self.carried(entries, self.payoff)

  def carried(self, entries: Float64s, worth: Float64s) -> Float64s:
    """Returns the same where histories that nothing follows are worth something else, shape (nodes,)."""
    made, result = self._made(entries), worth.copy()
    for level in reversed(self.levels):
      result += np.bincount(self.parent[level], made[level] * result[level], len(result))
    return result

  def best_response_values(self, entries: Float64s, weights: Float64s, player: int) -> Float64s:
    """Returns what a player gets from each history on by a best response to what the other plays, shape (nodes,).

    Args:
      entries: the policy, shape (entries,).
      weights: how likely chance and the other come to each history, shape (nodes,).
      player: who responds.
    """
    made, result = self._made(entries), (1 - 2 * player) * self.payoff
    for level in reversed(self.levels):
      above = self.parent[level]
      own = level[self.mover[above] == player]
      gets = np.bincount(self.entry[own], weights[own] * result[own], self.num_entries)
      most = np.maximum.reduceat(gets, self.first_entry)[self.infoset_of_entry]
      made[own] = self.normalized((gets >= most).astype(np.float64), entries)[self.entry[own]]
      result += np.bincount(above, made[level] * result[level], len(result))
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
  def _knowledge(self) -> Int64s:
    """What each player has known last, and done since, as one number that means no more; shape (2, nodes)."""
    result = self.knows.T.copy()
    for level in self.levels:
      above = self.parent[level]
      result[:, level] = np.where(
        self.knows[level].T == NONE, result[:, above], self.knows[level].T
      )
    return result

  def known_to(self, player: int, nodes: Int64s) -> Int64s:
    """Returns numbers that are equal where a player can't tell histories of one public state apart.

    Where nobody decides, it knows what it knew last, and what it has done since.
    """
    result: Int64s = self._knowledge[player, nodes] + len(self.known) * (
      1 + np.where(self.knows[nodes, player] == NONE, self.last[player, nodes], NONE)
    )
    return result

  def known_as(self, number: int) -> str:
    """Returns the information state string of one of these numbers, the last that there was."""
    return self.known[number % len(self.known)][1]

  def history(self, node: int) -> list[int]:
    """Returns the moves that lead to a history from where the walk has begun."""
    moves: list[int] = []
    while self.parent[node] >= 0:
      moves.append(int(self.action[node]))
      node = int(self.parent[node])
    return moves[::-1]

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

  def _products(self, made: Float64s) -> Float64s:
    result = np.ones(len(self.parent))
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
    largest = float(np.abs(pairs).max(initial=0.0))
    apart = np.flatnonzero(np.abs(sums - sums[0]) > 1e-9 * largest) if len(sums) else sums[:0]
    if len(apart):
      state = self.view.new_initial_state()
      raise errors.UnsupportedGameError(
        f"Search is for games whose returns sum to a constant; in {state.get_game()} they sum to {sums[0]:g} and to "
        f"{sums[int(apart[0])]:g}."
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
        owner, name = self._name(int(infoset[int(np.flatnonzero(wrong)[0])]))
        raise errors.UnsupportedGameError(
          f"Player {owner} comes to infostate {name!r} {what}, so that histories have no public states. Search needs "
          'perfect recall, of how many moves there were too; compile_game(..., infostate="history") often has it.'
        )

  def _name(self, infoset: int) -> tuple[int, str]:
    player = int(self.owner[infoset])
    return player, self.names[player][infoset - (len(self.names[0]) if player else 0)]


class _Walk:
  """The walk: columns that grow by a row a history."""

  def __init__(self, view: GameView, max_nodes: int) -> None:
    self.view, self.max_nodes = view, max_nodes
    self.columns = {name: array.array("q") for name in _COLUMNS}
    self.chances, self.returns = array.array("d"), []  # type: ignore[var-annotated]
    self.known: dict[tuple[int, str], int] = {}
    self.infosets: dict[tuple[int, str], int] = {}
    self.owner: list[int] = []
    self.legal: list[list[int]] = []

  def arrays(self) -> list[Int64s]:
    return [np.array(self.columns[name], np.int64) for name in _COLUMNS]

  def visit(self, root: Any) -> None:
    """Adds a state and all that follows it."""
    state = root
    try:
      self._visit(root.clone())
    except (errors.SpielCFRError, MemoryError):
      raise
    except Exception as error:  # Games that are written in Python may raise anything.
      raise cannot_be_walked(state, error) from error

  def _visit(self, root: Any) -> None:
    view, columns = self.view, self.columns
    add = [columns[name].append for name in _COLUMNS]
    parents, chances = columns["parent"], self.chances.append
    stack = [(root, NONE, NONE, NONE, 1.0, len(root.history()))]
    while stack:
      state, parent, action, move, chance, length = stack.pop()
      node = len(parents)
      if node >= self.max_nodes:
        raise errors.GameTooLargeError(
          f"There are more than max_nodes={self.max_nodes:,} histories below this public state of {view.game}. Raise "
          "the limit, or search less deep."
        )
      player, infoset, first, second = state.current_player(), NONE, NONE, NONE
      chances(chance)
      if state.is_terminal():
        player = TERMINAL
        self.returns.append(view.returns(state))
      elif state.is_chance_node():
        player = CHANCE
        outcomes = chance_outcomes(view, state)
        outcomes.sort(key=lambda outcome: str(outcome[0]), reverse=True)
        for outcome, probability in outcomes:
          stack.append((state.child(outcome), node, outcome, NONE, probability, length + 1))
      elif player in (0, 1):
        first, second = (self._knowledge(state, each) for each in (0, 1))
        name = (player, view.infostate(state))
        legal = view.legal_actions(state)
        infoset = self.infosets.get(name, NONE)
        if infoset == NONE:
          check_actions(view, state, legal)
          infoset = self.infosets[name] = len(self.legal)
          self.legal.append(legal)
          self.owner.append(player)
        elif legal != self.legal[infoset]:
          raise inconsistent_actions(view, state, self.legal[infoset])
        moves = sorted(enumerate(legal), key=lambda each: str(each[1]), reverse=True)
        for place, each in moves:
          stack.append((state.child(each), node, each, place, 1.0, length + 1))
      else:
        raise unknown_player(state)
      for put, number in zip(
        add, (parent, action, move, player, infoset, length, first, second), strict=True
      ):
        put(number)

  def _knowledge(self, state: Any, player: int) -> int:
    key = (player, self.view.named(state, player))
    return self.known.setdefault(key, len(self.known))
