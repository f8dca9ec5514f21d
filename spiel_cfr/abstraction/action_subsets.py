"""Subsets of a game's actions, and the smaller games that have only these actions.

A subset of actions is a boolean array over the sequences of the whole game, True at kept actions. Every infoset keeps
at least one action. `ListedSubsets` serves games that list their leaves, `PokerSubsets` poker in vector form.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Int64s, Uint32s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame, build_enumerated_game
from spiel_cfr.games.openspiel.game_view import ActionFilter
from spiel_cfr.games.openspiel.walk import DiscoveredInfosets
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.poker.betting_tree import BettingNode, NodeKind
from spiel_cfr.poker.hand_tree import first_deal, hand_tree
from spiel_cfr.poker.public_game import PublicGame

# Stands for a missing node in the list of a smaller poker game, so that the other nodes keep their numbers.
_ABSENT = BettingNode(NodeKind.CHANCE, level=-1, path=())


class ActionPairs(NamedTuple):
  """Pairs of actions by which strategies of a smaller game are played in the whole game.

  Both actions of a pair are played with the same probability. In the first `num_same` pairs, they are the same action
  of the same infoset. In the others, only the whole game has the second infoset.

  Attributes:
    small: int64 (pairs,). The sequence of the smaller game in each pair.
    whole: int64 (pairs,). The sequence of the whole game in each pair.
    num_same: int. The number of pairs with the same action of the same infoset.
  """

  small: Int64s
  whole: Int64s
  num_same: int


class ListedSubsets:
  """Subsets of the actions of a game that lists its leaves.

  A unit is a set of actions that are added together. Here every action of every infoset is a unit.

  Attributes:
    whole: `EnumeratedGame`. The whole game.
    unit: int64 (sequences,). The number of the unit of each action.
  """

  def __init__(self, whole: EnumeratedGame) -> None:
    """Lists the leaves of the whole game."""
    self.whole = whole
    self.unit = np.arange(whole.end)
    # The last sequences of leaves, shape (players, leaves), and payoffs, shape (leaves, players).
    self._leaves, self._payoffs = merged_leaves(
      whole.payoff, whole.num_players, np.arange(whole.end, dtype=np.uint32), np.ones(whole.end)
    )

  def filtered(self, action_filter: ActionFilter) -> Bools:
    """Returns the subset that an action filter keeps, shape (sequences,).

    The filter gets the first state of each infoset, or the infoset's name if the game was made of arrays.

    Raises:
      ArgumentError: the filter keeps no action of an infoset.
    """
    whole, kept = self.whole, np.ones(self.whole.end, np.bool_)
    is_made_of_arrays = whole.open_spiel_version is None
    names = itertools.chain(*whole.infostates)
    states = [*names] if is_made_of_arrays else whole.first_states()
    ends = np.cumsum(np.concatenate(whole.num_actions))
    actions, sequences = np.concatenate(whole.actions).tolist(), whole.all_action_sequences
    for state, begin, end in zip(states, [0, *ends.tolist()], ends.tolist(), strict=False):
      kept[sequences[begin:end]] = _kept_by(action_filter, state, actions[begin:end])
    return kept

  def smaller(self, kept: Bools) -> tuple[CompiledGame, ActionPairs]:
    """Returns the game of the leaves that kept actions lead to, and of the infosets above them; and its pairs."""
    whole, all_sequences = self.whole, self.whole.all_action_sequences
    if kept[all_sequences].all():
      return whole, ActionPairs(all_sequences, all_sequences, len(all_sequences))
    is_reached = played_to(whole, kept)[self._leaves].all(axis=0)
    leaves, payoffs = self._leaves[:, is_reached], self._payoffs[is_reached]
    is_listed = _actions_above(whole, leaves) & kept
    # Sequences of the smaller game are numbered in order of discovery; 0 is the empty sequence.
    number = np.zeros(whole.end, np.uint32)
    kept_of_players = []
    for infosets, tree in zip(whole.infosets, whole.treeplexes, strict=True):
      sequences = infosets.action_sequences
      number[sequences[is_listed[sequences]]] = 1 + np.arange(is_listed[sequences].sum())
      infoset_of_action = np.repeat(np.arange(len(infosets.num_actions)), infosets.num_actions)
      kept_infosets, count = np.unique(infoset_of_action[is_listed[sequences]], return_counts=True)
      kept_of_players.append(
        DiscoveredInfosets(
          infostates=[infosets.infostates[infoset] for infoset in kept_infosets.tolist()],
          actions=infosets.actions[is_listed[sequences]],
          num_actions=count,
          parents=number[tree.parent[infosets.position[kept_infosets]]].astype(np.int64),
        )
      )
    facts = dataclasses.replace(
      whole.facts,
      num_states=sum(len(infosets.parents) for infosets in kept_of_players) + len(payoffs),
      num_terminals=len(payoffs),
      open_spiel_version=None,
    )
    game = build_enumerated_game(facts, kept_of_players, number[leaves], payoffs)
    whole_sequences = all_sequences[is_listed[all_sequences]]
    return game, ActionPairs(game.all_action_sequences, whole_sequences, len(whole_sequences))


class PokerSubsets:
  """Subsets of the actions of poker in vector form.

  A unit is a set of actions that are added together. Here it is an action at a public node, for all hands: missing
  actions do not reveal cards.

  Attributes:
    whole: `PublicGame`. The whole game.
    unit: int64 (sequences,). The number of the unit of each action.
  """

  def __init__(self, whole: PublicGame) -> None:
    """Finds the sequences of each public node of the whole game."""
    self.whole = whole
    self.unit = np.zeros(whole.end, np.int64)
    # Number of a public node -> its sequences on all boards, shape (actions, hands of all boards).
    self._sequences: dict[int, Int64s] = {}
    num_units = 0
    for index, node in enumerate(whole.tree.nodes):
      if node.kind is NodeKind.DECISION:
        # The node on each board, -1 if it is not on the board.
        nodes_on_boards = whole.tree.node_of[:, index]
        on_boards = nodes_on_boards[nodes_on_boards >= 0].tolist()
        self._sequences[index] = np.hstack([whole.layout.sequences(node) for node in on_boards])
        self.unit[self._sequences[index]] = num_units + np.arange(len(node.actions))[:, None]
        num_units += len(node.actions)

  def filtered(self, action_filter: ActionFilter) -> Bools:
    """Returns the subset that an action filter keeps, shape (sequences,).

    The filter gets one state of each public node, with the first hand on its first board.

    Raises:
      ArgumentError: the filter keeps no action of a public node.
    """
    tree, kept = self.whole.tree, np.ones(self.whole.end, np.bool_)
    levels = [board.level for board in tree.boards]
    for index, sequences in self._sequences.items():
      node = tree.nodes[index]
      number = levels.index(node.level)
      board = tree.boards[number]
      state = self.whole.view.new_initial_state()
      deal = first_deal(tree.deal, board, node.player, int(board.hands[node.player][0]))
      for action in (*deal, *tree.actions_above(int(tree.node_of[number, index]))):
        state.apply_action(action)
      kept[sequences] = _kept_by(action_filter, state, list(node.actions))[:, None]
    return kept

  def smaller(self, kept: Bools) -> tuple[CompiledGame, ActionPairs]:
    """Returns the game of the public nodes that kept actions lead to, and its pairs.

    The answer to a missing action is the answer to the kept action with the nearest number, restricted to kept actions.
    """
    whole, tree = self.whole, self.whole.tree
    # For each public node, the indices of its kept actions.
    kept_actions = [list(range(len(node.children))) for node in tree.nodes]
    for index, sequences in self._sequences.items():
      kept_actions[index] = np.flatnonzero(kept[sequences[:, 0]]).tolist()
    model_of = _find_models(tree.nodes, kept_actions)
    nodes = [
      _without_missing_actions(tree.nodes, index, kept_actions)
      if model_of.get(index) == index
      else _ABSENT
      for index in range(len(tree.nodes))
    ]
    small = self
    if _ABSENT in nodes:
      levels = {node.level for node in nodes}
      boards = [board for board in tree.boards if board.level in levels]
      small_tree = hand_tree(tree.deal, nodes, boards)
      small = PokerSubsets(PublicGame(whole.view, small_tree, whole.dtype, whole.num_threads))
    # Pairs of sequences of the smaller and the whole game, by whether the node is its own model.
    pairs: dict[bool, list[tuple[Int64s, Int64s]]] = {True: [], False: []}
    for index, model in model_of.items():
      if index in self._sequences:
        kept_here = kept_actions[index]
        numbers = [tree.nodes[index].actions[action] for action in kept_here]
        answers = [kept_here[_nearest(number, numbers)] for number in nodes[model].actions]
        whole_sequences = self._sequences[index][answers]
        pairs[index == model].append((small._sequences[model].ravel(), whole_sequences.ravel()))
    small_sequences, whole_sequences = np.hstack(pairs[True] + pairs[False])
    num_same = sum(len(sequences) for sequences, _ in pairs[True])
    return small.whole, ActionPairs(small_sequences, whole_sequences, num_same)


def _without_missing_actions(
  nodes: Sequence[BettingNode], index: int, kept: Sequence[list[int]]
) -> BettingNode:
  """Returns a node of the smaller game, given the nodes of the whole game and the indices of their kept actions."""
  node = nodes[index]
  return dataclasses.replace(
    node,
    actions=tuple(node.actions[action] for action in kept[index] if node.actions),
    children=[node.children[action] for action in kept[index]],
    # The last decision of each player, if any: a node and the index of its action.
    last=tuple(last and (last[0], kept[last[0]].index(last[1])) for last in node.last),
  )


def _actions_above(game: CompiledGame, leaves: Uint32s) -> Bools:
  """Returns True at all actions of the infosets above leaves, shape (sequences,).

  Args:
    game: the game.
    leaves: shape (players, leaves). The last sequence of each player at each leaf.
  """
  result = np.zeros(game.end, np.bool_)
  result[leaves] = True
  for tree in game.treeplexes:
    for sequences, infosets in reversed(list(tree.infoset_groups())):
      is_above = result[sequences].any(axis=0)
      result[sequences] = is_above
      result[tree.parent[infosets][is_above]] = True
  return result


def _kept_by(action_filter: ActionFilter, state: Any, actions: list[int]) -> Bools:
  """Returns True at the actions that a filter keeps, shape (actions,); raises ArgumentError if it keeps none."""
  returned: Any = action_filter(state, list(actions))
  kept = list(returned) if isinstance(returned, Iterable) else []
  result = np.array([action in kept for action in actions])
  if not result.any():
    where = f"At infoset {state!r}"
    if not isinstance(state, str):
      where = f"After the history [{state.history_str()}]"
    raise errors.ArgumentError(
      f"{where} the action filter keeps {returned}, none of the game's {actions}."
    )
  return result


def played_to(game: CompiledGame, kept: Bools) -> Bools:
  """Returns True at the sequences of which all actions are kept, shape (sequences,)."""
  result = kept.copy()
  for tree in game.treeplexes:
    for sequences, infosets in tree.infoset_groups():
      result[sequences] &= result[tree.parent[infosets]]
  return result


def _find_models(nodes: Sequence[BettingNode], kept: Sequence[Sequence[int]]) -> dict[int, int]:
  """Returns the model of each public node: the node of the smaller game by which it is played.

  A node of the smaller game is its own model. Below a missing action, models are the nodes below the nearest kept
  action, as long as the same player moves. Nodes without a model are missing in the result.

  Args:
    nodes: the nodes of the whole game, parents first.
    kept: for each node, the indices of its kept actions.
  """
  result = {0: 0}
  for index, node in enumerate(nodes):
    if index not in result:
      continue
    model, kept_of_model = nodes[result[index]], kept[result[index]]
    if (model.kind, model.player) != (node.kind, node.player):
      del result[index]
      continue
    numbers = [model.actions[action] for action in kept_of_model if model.actions]
    for action, child in enumerate(node.children):
      nearest = _nearest(node.actions[action], numbers) if numbers else action
      result[child] = model.children[kept_of_model[nearest]]
  return result


def _nearest(number: int, numbers: Sequence[int]) -> int:
  """Returns the index of the nearest of several numbers; of two equally near ones, of the smaller."""
  return min(range(len(numbers)), key=lambda index: (abs(numbers[index] - number), numbers[index]))
