"""Content of a page for a game of private types in vector form, such as liar's dice.

The public states are the nodes and the terminals of the public tree. Let x_i(t) be player i's reach of a public state
with type t, and c(t, s) chance's probability of the types t and s and of the public moves of chance on the way. The
value of type t is

    v_i(t) = V_i(t) / sum over the opponent's types s of c(t, s) x_-i(s)

V_i is the counterfactual value, computed from the terminals up. At player i's decisions it is the mean over actions by
the strategy; at other nodes it is the sum over actions, because c and x_-i include their probabilities.
"""

import functools
import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.evaluation import evaluate
from spiel_cfr.explorer.move_names import MoveNames
from spiel_cfr.explorer.page_content import (
  Content,
  PageState,
  PrivateRange,
  number_name,
)
from spiel_cfr.explorer.state_table import StateTable
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.policies import forms


class _PlayedTree:
  """Reach and values at all public states of a game, under a policy.

  `search.VectorTree` has these numbers for constant-sum games only, and lacks `opponent_weight` at terminals.

  The number of a public state is that of its node of the public tree, or the number of nodes + k for terminal k.

  Attributes:
    game: VectorGame. The game.
    tree: PublicTree. The public tree of the game.
    child: int64 (edges,). The public state below each edge.
    order: int64 (states,). The public states: parents come first, and the children of a node are adjacent.
    parent: int64 (states,). For each position in `order`, the position of the parent; 0 for the root.
    edge: int64 (states,). For each position in `order`, the edge above; `NONE` for the root.
    reach: one float64 (states, types) a player. The player's reach x.
    opponent_weight: one float64 (states, types) a player. The sum over the opponent's types of c x_-i.
    counterfactual_values: one float64 (states, types) a player. The counterfactual values V.
    mass: float64 (states,). The probability of each public state.
  """

  def __init__(self, game: VectorGame, behavioral: Float64s) -> None:
    """Computes the weights and values of all types at all public states."""
    self.game, self.tree = game, game.tree
    tree = game.tree
    self.child = np.where(tree.child >= 0, tree.child, tree.num_nodes - 1 - tree.child)
    # For each depth, the edges below its nodes.
    levels = [
      concatenated_ranges(tree.first_edge[nodes], tree.num_actions[nodes])
      for nodes in tree.levels()
    ]
    edges = np.concatenate(levels)
    num_states = tree.num_nodes + tree.num_terminals
    self.edge = np.append(NONE, edges)
    self.order = np.append(0, self.child[edges])
    position = np.empty(num_states, np.int64)
    position[self.order] = np.arange(num_states)
    self.parent = np.append(0, position[tree.node_of_edge[edges]])
    self._cells = game.layout.cells(game.end)
    # One more probability, for cells without a sequence.
    self._probabilities = np.append(behavioral, 1.0)
    self.reach = [np.ones((num_states, num_types)) for num_types in tree.num_types]
    for edges in levels:
      for player, reach in enumerate(self.reach):
        above = reach[tree.node_of_edge[edges]]
        reach[self.child[edges]] = above * self._strategy(player, edges)
    self.opponent_weight = [np.zeros_like(reach) for reach in self.reach]
    self._compute_weights()
    self.counterfactual_values = [np.zeros_like(reach) for reach in self.reach]
    self._compute_values(levels)

  def _strategy(self, player: int, edges: Int64s) -> Float64s:
    """Returns a player's probability of each edge with each of its types; 1 where the player does not move."""
    is_mover = self.tree.player[self.tree.node_of_edge[edges]] == player
    cells = self._cells[edges, : self.tree.num_types[player]]
    return np.where(is_mover[:, None], self._probabilities[cells], 1.0)

  def _compute_weights(self) -> None:
    """Computes `opponent_weight` and `mass`."""
    tree = self.tree
    kinds = np.concatenate([tree.kind, tree.terminal_kind])
    for kind, states in enumerate(_grouped(kinds, len(tree.weights))):
      chances = self._chances(np.maximum(tree.weights[kind], 0.0))
      self.opponent_weight[0][states] = self.reach[1][states] @ chances.T
      self.opponent_weight[1][states] = self.reach[0][states] @ chances
    # A terminal stores the kind of the node above; if chance moved last, its probability is missing there.
    for edge in np.flatnonzero(
      (tree.child < 0) & (tree.player[tree.node_of_edge] == CHANCE)
    ).tolist():
      node, state = int(tree.node_of_edge[edge]), self.child[edge]
      weights = np.maximum(tree.weights[tree.kind[node]], 0.0)
      for deal in np.flatnonzero(weights).tolist():
        outcomes = dict(self.game.view.chance_outcomes(self.open_spiel_state(node, deal)))
        weights[deal] *= outcomes.get(int(tree.action[edge]), 0.0)
      chances = self._chances(weights)
      self.opponent_weight[0][state] = chances @ self.reach[1][state]
      self.opponent_weight[1][state] = self.reach[0][state] @ chances
    self.mass = np.asarray((self.reach[0] * self.opponent_weight[0]).sum(axis=1))

  def _compute_values(self, levels: list[Int64s]) -> None:
    """Computes `counterfactual_values` from the terminals up, given the edges of each depth."""
    tree, (first_values, second_values) = self.tree, self.counterfactual_values
    for matrix, terminals in enumerate(_grouped(tree.matrix, len(tree.matrices))):
      first, second = tree.matrices[matrix]
      states = tree.num_nodes + terminals
      first_values[states] = self.reach[1][states] @ first.T
      second_values[states] = self.reach[0][states] @ second
    for edges in reversed(levels):
      nodes = tree.node_of_edge[edges]
      begins = np.flatnonzero(np.diff(nodes, prepend=NONE))
      for player, values in enumerate(self.counterfactual_values):
        weighted = self._strategy(player, edges) * values[self.child[edges]]
        values[nodes[begins]] = np.add.reduceat(weighted, begins, axis=0)

  def _chances(self, weights: Float64s) -> Float64s:
    """Returns c, float64 (types of player 0, types of player 1), given the weight of each deal."""
    result = np.zeros(self.tree.num_types)
    np.add.at(result, tuple(self.tree.deals.types), weights)
    return result

  def expected_values(self) -> Float64s:
    """Returns each player's expected payoff, float64 (states, players); NaN at unreachable states."""
    totals = [
      (reach * values).sum(axis=1)
      for reach, values in zip(self.reach, self.counterfactual_values, strict=True)
    ]
    return _quotient(np.stack(totals, axis=1), self.mass[:, None])

  def open_spiel_state(self, node: int, deal: int | None = None) -> Any:
    """Returns OpenSpiel's state at a node after a deal; by default, after the first deal that is possible there."""
    path = self._first_paths[self.tree.kind[node]] if deal is None else self.tree.deals.paths[deal]
    state = self.game.view.new_initial_state()
    for action in [*path[path >= 0].tolist(), *self.tree.actions_above(node)]:
      state.apply_action(action)
    return state

  @functools.cached_property
  def _first_paths(self) -> Int64s:
    """The actions of the first possible deal of each kind, int64 (kinds, moves)."""
    return np.asarray(self.tree.deals.paths[(self.tree.weights >= 0).argmax(axis=1)])


def describe(
  game: VectorGame, behavioral: Float64s, *, max_infosets: int, max_nodes: int
) -> Content:
  """Returns the content of a page; its header names the parts left out.

  Args:
    game: the game.
    behavioral: the policy in behavioral form, shape (sequences,).
    max_infosets: the largest number of types at all public states of the page together. If there are more, the
      likeliest states are shown.
    max_nodes: the largest number of public states that the game may have.

  Raises:
    GameTooLargeError: the game has more than `max_nodes` public states.
  """
  tree = game.tree
  if tree.num_nodes + tree.num_terminals > max_nodes:
    raise errors.GameTooLargeError(
      f"The game has {tree.num_nodes + tree.num_terminals:,} public states, more than max_nodes={max_nodes:,}. Raise "
      "max_nodes."
    )
  sequence_form = forms.sequence_form(game, behavioral)
  responses = evaluate.evaluate(game, sequence_form, responses=True).best_responses
  played = _PlayedTree(game, behavioral)
  mover = np.append(tree.player, np.full(tree.num_terminals, TERMINAL))[played.order]
  sizes = np.zeros(len(mover), np.int64)
  decides = mover >= 0
  sizes[decides] = tree.width[mover[decides], tree.kind[played.order[decides]]]
  states = StateTable(
    parent=played.parent,
    mover=mover.astype(np.int64),
    num_infosets=sizes,
    weight=played.mass[played.order],
    values=played.expected_values()[played.order],
    group=np.zeros(len(mover), np.int64),
  )
  names, namer = {"": 0}, MoveNames(game.game)
  name_indices, grid = type_grid(game)
  hands = [np.array(of_player) for of_player in name_indices]

  @functools.cache
  def moves(node: int) -> list[int]:
    """Returns the moves at a node of the public tree, as indices of `Content.names`."""
    state = played.open_spiel_state(node)
    edges = range(int(tree.first_edge[node]), int(tree.first_edge[node + 1]))
    return [number_name(names, namer.name(state, int(tree.action[edge]))) for edge in edges]

  def move(position: int) -> int:
    """Returns the move to a public state, as an index of `Content.names`, given its position in `played.order`."""
    edge = int(played.edge[position])
    node = int(tree.node_of_edge[edge])
    return moves(node)[edge - int(tree.first_edge[node])]

  def describe_state(position: int) -> PageState | None:
    """Returns a public state with its ranges, given its position in `played.order`; None for a terminal."""
    node = int(played.order[position])
    if node >= tree.num_nodes:
      return None
    moves_of_player = moves(node) if mover[position] >= 0 else []
    return _public_state(played, node, moves_of_player, behavioral, responses, hands)

  return states.content(max_infosets, names, move, describe_state, grid)


def _public_state(
  played: _PlayedTree,
  node: int,
  moves: list[int],
  behavioral: Float64s,
  responses: Float64s,
  hands: Sequence[Int64s],
) -> PageState:
  """Returns a node of the public tree with ranges, strategy and values.

  Args:
    played: the public tree with reach and values.
    node: the node.
    moves: the actions of the player to move, as indices of `Content.names`; empty at chance nodes.
    behavioral: the policy in behavioral form, shape (sequences,).
    responses: the best responses of both players, shape (sequences,).
    hands: one int64 (types,) a player. The index of each type in `Content.grid["names"]`.
  """
  tree, mover = played.tree, int(played.tree.player[node])
  types = tree.types[int(tree.kind[node])]
  ranges = [
    PrivateRange(
      hands=hands[player][possible],
      weight=played.reach[player][node, possible],
      opponent_weight=played.opponent_weight[player][node, possible],
      value=_quotient(
        played.counterfactual_values[player][node, possible],
        played.opponent_weight[player][node, possible],
      ),
      equity=np.full(len(possible), np.nan),
    )
    for player, possible in enumerate(types)
  ]
  probability = action_value = np.zeros((0, 0))
  is_best = probability > 0
  if moves:
    sequences = played.game.layout.sequences(node)
    children = played.child[tree.first_edge[node] : tree.first_edge[node + 1]]
    probability, is_best = behavioral[sequences], responses[sequences] > 0
    values = played.counterfactual_values[mover][np.ix_(children, types[mover])]
    action_value = _quotient(values, ranges[mover].opponent_weight)
  return PageState([], (ranges[0], ranges[1]), moves, probability, action_value, is_best)


def type_grid(game: VectorGame) -> tuple[list[list[int]], dict[str, Any]]:
  """Returns the index of each player's types in the names of the grid, and `Content.grid`.

  The name of a type is its information state string at the root, without the words with which all types of the player
  begin and end.
  """
  tree = game.tree
  names_of_players = []
  for player in PLAYERS:
    first_deals = np.unique(tree.deals.types[player], return_index=True)[1]
    infostates = []
    for path in tree.deals.paths[first_deals]:
      state = game.view.new_initial_state()
      for action in path[path >= 0].tolist():
        state.apply_action(action)
      infostates.append(str(game.view.named(state, player)))
    names_of_players.append(_shortened(infostates))
  names = sorted({name for names_of_player in names_of_players for name in names_of_player})
  index = {name: number for number, name in enumerate(names)}
  width = min(math.isqrt(len(names) - 1) + 1, 13)
  labels = [*names, *[""] * (-len(names) % width)]
  row, column = np.divmod(np.arange(len(names)), width)
  grid = {
    "unit": "type",
    "names": names,
    "row": row.tolist(),
    "column": column.tolist(),
    "labels": [labels[begin : begin + width] for begin in range(0, len(labels), width)],
  }
  return [[index[name] for name in names_of_player] for names_of_player in names_of_players], grid


def _shortened(names: list[str]) -> list[str]:
  """Returns names without the words with which all of them begin and end."""
  words_of_names = [re.findall(r"\w+|\W", name) for name in names]
  before = _num_common(words_of_names)
  after = _num_common([words[before:][::-1] for words in words_of_names])
  return ["".join(words[before : len(words) - after]) or "".join(words) for words in words_of_names]


def _num_common(lists: list[list[str]]) -> int:
  """Returns the number of words with which all lists begin."""
  columns = zip(*lists, strict=False)
  return sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, columns))


def _grouped(numbers: Any, count: int) -> list[Int64s]:
  """Returns, for each number from 0 to `count` - 1, the indices at which it occurs in `numbers`."""
  order = np.argsort(numbers, kind="stable")
  return np.split(order, np.cumsum(np.bincount(numbers, minlength=count))[:-1])


def _quotient(sums: Float64s, mass: Float64s) -> Float64s:
  """Returns sums / mass; NaN if the mass is 0."""
  with np.errstate(invalid="ignore", divide="ignore"):
    return np.where(mass > 0, sums / mass, np.nan)
