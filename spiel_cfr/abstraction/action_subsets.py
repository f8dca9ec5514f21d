"""Smaller games that lack some actions of a whole game, in the two forms that `solve_refining` takes.

A subset of actions is a boolean array over the sequences of the whole game: True where the action is kept. Every
infoset keeps at least one action.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Int64s, Uint32s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.from_arrays import game_of_parts
from spiel_cfr.games.openspiel.game_view import ActionFilter
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.poker.betting_tree import BettingNode, Kind
from spiel_cfr.poker.hand_tree import first_deal, hand_tree
from spiel_cfr.poker.public_game import PublicGame

# The list of a poker game's nodes has this where a node is left out, so that the others keep their numbers.
_ABSENT = BettingNode(Kind.CHANCE, level=-1, path=())


class SmallerGame(NamedTuple):
  """A game with a subset of the actions, and how its strategies are played in the whole game.

  Attributes:
    game: the smaller game; the whole game itself if no action is missing.
    here: int64 (pairs,). Sequences of the smaller game.
    there: int64 (pairs,). The sequence of the whole game that is played like each of `here`.
    num_same: the first pairs, so many, are an infoset and itself; the others are infosets that only the whole game has.
  """

  game: CompiledGame
  here: Int64s
  there: Int64s
  num_same: int


class ListedSubsets:
  """Subsets of the actions of a game that lists its leaves: each action of each infoset is a unit.

  Attributes:
    whole: the whole game.
    unit: int64 (sequences,). Number of the unit of each action; the actions of a unit come in together.
  """

  def __init__(self, whole: EnumeratedGame) -> None:
    self.whole = whole
    self.unit = np.arange(whole.end)
    # Shapes (players, leaves) and (leaves, players).
    self._leaves, self._payoffs = merged_leaves(
      whole.payoff, whole.num_players, np.arange(whole.end, dtype=np.uint32), np.ones(whole.end)
    )

  def filtered(self, action_filter: ActionFilter) -> Bools:
    """Returns the subset that a filter keeps, shape (sequences,).

    The filter is asked at the first state of each infoset, or by the infoset's name if the game was made of arrays.
    """
    whole, kept = self.whole, np.ones(self.whole.end, np.bool_)
    named = whole.open_spiel_version is None
    states = [*itertools.chain(*whole.infostates)] if named else whole.first_states()
    ends = np.cumsum(np.concatenate(whole.num_actions))
    actions, cells = np.concatenate(whole.actions).tolist(), whole.all_action_sequences
    for state, begin, end in zip(states, [0, *ends.tolist()], ends.tolist(), strict=False):
      kept[cells[begin:end]] = _kept_by(action_filter, state, actions[begin:end])
    return kept

  def smaller(self, kept: Bools) -> SmallerGame:
    """Returns the game of the leaves to which all players come with kept actions, and of the infosets above these."""
    whole, cells = self.whole, self.whole.all_action_sequences
    if kept[cells].all():
      return SmallerGame(whole, cells, cells, len(cells))
    some = played_to(whole, kept)[self._leaves].all(axis=0)
    leaves, payoffs = self._leaves[:, some], self._payoffs[some]
    listed = _infosets_above(whole, leaves) & kept
    number = np.zeros(whole.end, np.uint32)
    names, actions, parents, counts, begin = [], [], [], [], 0
    for own, tree in zip(whole.infosets, whole.treeplexes, strict=True):
      entries = cells[begin : begin + len(own.actions)]
      begin += len(own.actions)
      # Sequences in the order of discovery, from 0, the empty one.
      number[entries[listed[entries]]] = 1 + np.arange(listed[entries].sum())
      infoset = np.repeat(np.arange(len(own.num_actions)), own.num_actions)
      here, count = np.unique(infoset[listed[entries]], return_counts=True)
      names.append([own.infostates[place] for place in here.tolist()])
      actions.append(own.actions[listed[entries]])
      parents.append(number[tree.parent[own.position[here]]].astype(np.int64))
      counts.append(count)
    facts = dataclasses.replace(
      whole.facts,
      num_states=sum(map(len, names)) + len(payoffs),
      num_terminals=len(payoffs),
      open_spiel_version=None,
    )
    game = game_of_parts(facts, names, actions, parents, counts, number[leaves], payoffs)
    same = cells[listed[cells]]
    return SmallerGame(game, game.all_action_sequences, same, len(same))


class PokerSubsets:
  """Subsets of the actions of poker in vector form: an action at a public state is a unit.

  An action comes at a public state for all hands, so that a player with other cards does not see what is missing.

  Attributes:
    whole: the whole game.
    unit: int64 (sequences,). Number of the unit of each action, of all hands.
  """

  def __init__(self, whole: PublicGame) -> None:
    self.whole = whole
    self.unit = np.zeros(whole.end, np.int64)
    # The sequences of each decision on all boards, shape (actions, hands), by the number of the public node.
    self._sequences: dict[int, Int64s] = {}
    units = 0
    for index, node in enumerate(whole.tree.nodes):
      if node.kind is Kind.DECISION:
        places = whole.tree.node_of[:, index]
        rows = [whole.layout.sequences(place) for place in places[places >= 0].tolist()]
        self._sequences[index] = np.hstack(rows)
        self.unit[self._sequences[index]] = units + np.arange(len(node.actions))[:, None]
        units += len(node.actions)

  def filtered(self, action_filter: ActionFilter) -> Bools:
    """Returns the subset that a filter keeps at a first state of each public state, shape (sequences,)."""
    tree, kept = self.whole.tree, np.ones(self.whole.end, np.bool_)
    levels = [board.level for board in tree.boards]
    for index, rows in self._sequences.items():
      node = tree.nodes[index]
      number = levels.index(node.level)
      board = tree.boards[number]
      state = self.whole.view.new_initial_state()
      deal = first_deal(tree.deal, board, node.player, int(board.hands[node.player][0]))
      for action in (*deal, *tree.actions_above(int(tree.node_of[number, index]))):
        state.apply_action(action)
      kept[rows] = _kept_by(action_filter, state, list(node.actions))[:, None]
    return kept

  def smaller(self, kept: Bools) -> SmallerGame:
    """Returns the game of the public nodes to which both players come with kept actions.

    While an action is missing, others answer it as they answer the kept action with the nearest number, with kept
    actions alone.
    """
    whole, tree = self.whole, self.whole.tree
    places = [list(range(len(node.children))) for node in tree.nodes]
    for index, rows in self._sequences.items():
      places[index] = np.flatnonzero(kept[rows[:, 0]]).tolist()
    like = _played_like(tree.nodes, places)
    nodes = [
      dataclasses.replace(
        node,
        actions=tuple(node.actions[place] for place in some if node.actions),
        children=[node.children[place] for place in some],
        last=tuple(own and (own[0], places[own[0]].index(own[1])) for own in node.last),
      )
      if like.get(index) == index
      else _ABSENT
      for index, (node, some) in enumerate(zip(tree.nodes, places, strict=True))
    ]
    small = self
    if _ABSENT in nodes:
      levels = {node.level for node in nodes}
      boards = [board for board in tree.boards if board.level in levels]
      cut = hand_tree(tree.deal, nodes, boards)
      small = PokerSubsets(PublicGame(whole.view, cut, whole.dtype, whole.num_threads))
    pairs: dict[bool, list[tuple[Int64s, Int64s]]] = {True: [], False: []}
    for index, other in like.items():
      if index in self._sequences:
        own = [tree.nodes[index].actions[place] for place in places[index]]
        answers = [places[index][_nearest(action, own)] for action in nodes[other].actions]
        there = self._sequences[index][answers]
        pairs[index == other].append((small._sequences[other].ravel(), there.ravel()))
    here, there = np.hstack(pairs[True] + pairs[False])
    return SmallerGame(small.whole, here, there, sum(len(own) for own, _ in pairs[True]))


def _infosets_above(game: CompiledGame, leaves: Uint32s) -> Bools:
  """Returns True at all actions of the infosets above some leaves, of shape (players, leaves); shape (sequences,)."""
  used = np.zeros(game.end, np.bool_)
  used[leaves] = True
  for tree in game.treeplexes:
    for rows, infosets in reversed(list(tree.infoset_groups())):
      some = used[rows].any(axis=0)
      used[rows] = some
      used[tree.parent[infosets][some]] = True
  return used


def _kept_by(action_filter: ActionFilter, state: Any, actions: list[int]) -> Bools:
  """Returns True at the actions that a filter keeps, shape (actions,); raises ArgumentError if there are none."""
  found: Any = action_filter(state, list(actions))
  kept = list(found) if isinstance(found, Iterable) else []
  result = np.array([action in kept for action in actions])
  if not result.any():
    where = f"At infoset {state!r}"
    if not isinstance(state, str):
      where = f"After the history [{state.history_str()}]"
    raise errors.ArgumentError(
      f"{where} the action filter keeps {found}, none of the game's {actions}."
    )
  return result


def played_to(game: CompiledGame, kept: Bools) -> Bools:
  """Returns True at the sequences that consist of kept actions, shape (sequences,)."""
  result = kept.copy()
  for tree in game.treeplexes:
    for rows, infosets in tree.infoset_groups():
      result[rows] &= result[tree.parent[infosets]]
  return result


def _played_like(nodes: Sequence[BettingNode], kept: Sequence[Sequence[int]]) -> dict[int, int]:
  """Returns the number of the kept node that each node is played like: itself, where it is kept.

  Below a missing action all go on as below the nearest that is kept, as long as it is the same player's turn.
  """
  result = {0: 0}
  for index, node in enumerate(nodes):
    if index not in result:
      continue
    other, places = nodes[result[index]], kept[result[index]]
    if (other.kind, other.player) != (node.kind, node.player):
      del result[index]
      continue
    actions = [other.actions[place] for place in places if other.actions]
    for place, child in enumerate(node.children):
      nearest = _nearest(node.actions[place], actions) if actions else place
      result[child] = other.children[places[nearest]]
  return result


def _nearest(action: int, actions: Sequence[int]) -> int:
  """Returns the place of the action with the nearest number."""
  return min(range(len(actions)), key=lambda place: (abs(actions[place] - action), actions[place]))
