"""Content of a page for a game of private types in vector form, such as liar's dice.

The public states are the nodes and the terminals of the public tree. Let x_i(t) be player i's reach of a public state
with type t, and c(t, s) chance's probability of a pair of types and of its moves on the way. The value of type t is

    v_i(t) = V_i(t) / sum over the opponent's types s of c(t, s) x_-i(s)

V_i is the counterfactual value, computed from the terminals up. At player i's decisions it is the average by its
strategy; at other nodes it is the sum, because c and x_-i include the probabilities.
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
  HandRange,
  PublicState,
  number_name,
)
from spiel_cfr.explorer.public_states import PublicStates
from spiel_cfr.games.openspiel.history_list import CHANCE, NONE, TERMINAL
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.policies import forms


class _PlayedTree:
  """Reach and values in a public tree, under a policy. A place is a node, or terminal k at the number of nodes + k.

  Attributes:
    game: `VectorGame`. The game.
    tree: `PublicTree`. Its public tree.
    child: int64 (edges,). The place below each edge.
    order: int64 (places,). The places: parents come first, and the children of a node are adjacent.
    parent: int64 (places,). By position in `order`, the position of the parent; 0 for the root.
    edge: int64 (places,). By position in `order`, the edge above; `NONE` for the root.
    reach: one float64 (places, types) a player. The player's reach x.
    opponent_weight: one float64 (places, types) a player. The sum over the opponent's types of c x_-i.
    sums: one float64 (places, types) a player. The counterfactual values V.
    mass: float64 (places,). The probability of each place.
  """

  def __init__(self, game: VectorGame, behavioral: Float64s) -> None:
    """Computes the weights and values of all types at all places."""
    self.game, self.tree = game, game.tree
    tree = game.tree
    self.child = np.where(tree.child >= 0, tree.child, tree.num_nodes - 1 - tree.child)
    num_places = tree.num_nodes + tree.num_terminals
    shapes = [(num_places, count) for count in tree.num_types]
    self.reach, self.opponent_weight = (
      [np.ones(shape) for shape in shapes],
      [np.zeros(shape) for shape in shapes],
    )
    self.sums = [np.zeros(shape) for shape in shapes]
    cells, played = game.layout.cells(game.end), np.append(behavioral, 1.0)
    levels = [
      concatenated_ranges(tree.first_edge[nodes], tree.num_actions[nodes])
      for nodes in tree.levels()
    ]
    edges = np.concatenate(levels)
    self.edge = np.append(NONE, edges)
    self.order = np.append(0, self.child[edges])
    position = np.empty(num_places, np.int64)
    position[self.order] = np.arange(num_places)
    self.parent = np.append(0, position[tree.node_of_edge[edges]])

    def strategy(player: int, edges: Int64s) -> Float64s:
      moves = tree.player[tree.node_of_edge[edges]] == player
      return np.where(moves[:, None], played[cells[edges, : tree.num_types[player]]], 1.0)

    for edges in levels:
      for player, reach in enumerate(self.reach):
        reach[self.child[edges]] = reach[tree.node_of_edge[edges]] * strategy(player, edges)
    self._compute_weights()
    for matrix, ends in enumerate(_grouped(tree.matrix, len(tree.matrices))):
      first, second = tree.matrices[matrix]
      ends = tree.num_nodes + ends
      self.sums[0][ends] = self.reach[1][ends] @ first.T
      self.sums[1][ends] = self.reach[0][ends] @ second
    for edges in reversed(levels):
      parents = tree.node_of_edge[edges]
      begins = np.flatnonzero(np.diff(parents, prepend=NONE))
      for player, sums in enumerate(self.sums):
        below = strategy(player, edges) * sums[self.child[edges]]
        sums[parents[begins]] = np.add.reduceat(below, begins, axis=0)

  def _compute_weights(self) -> None:
    """Computes `opponent_weight` and `mass`."""
    tree = self.tree
    kinds = np.concatenate([tree.kind, tree.terminal_kind])
    for kind, places in enumerate(_grouped(kinds, len(tree.weights))):
      chances = self._chances(np.maximum(tree.weights[kind], 0.0))
      self.opponent_weight[0][places] = self.reach[1][places] @ chances.T
      self.opponent_weight[1][places] = self.reach[0][places] @ chances
    # A terminal has the kind of the node above, which lacks a last move of chance.
    for edge in np.flatnonzero(
      (tree.child < 0) & (tree.player[tree.node_of_edge] == CHANCE)
    ).tolist():
      node, place = int(tree.node_of_edge[edge]), self.child[edge]
      weights = np.maximum(tree.weights[tree.kind[node]], 0.0)
      for deal in np.flatnonzero(weights).tolist():
        outcomes = dict(self.game.view.chance_outcomes(self.state(node, deal)))
        weights[deal] *= outcomes.get(int(tree.action[edge]), 0.0)
      chances = self._chances(weights)
      self.opponent_weight[0][place] = chances @ self.reach[1][place]
      self.opponent_weight[1][place] = self.reach[0][place] @ chances
    self.mass = np.asarray((self.reach[0] * self.opponent_weight[0]).sum(axis=1))

  def _chances(self, weights: Float64s) -> Float64s:
    """Returns c, shape (types of player 0, types of player 1), given the weights of deals."""
    result = np.zeros(self.tree.num_types)
    np.add.at(result, tuple(self.tree.deals.types), weights)
    return result

  def expected_values(self) -> Float64s:
    """Returns each player's expected value at each place, shape (places, players); NaN where the mass is 0."""
    sums = [(reach * value).sum(axis=1) for reach, value in zip(self.reach, self.sums, strict=True)]
    return _quotient(np.stack(sums, axis=1), self.mass[:, None])

  def state(self, node: int, deal: int | None = None) -> Any:
    """Returns OpenSpiel's state at a node after a deal; by default the first one that is possible there."""
    path = self._first_paths[self.tree.kind[node]] if deal is None else self.tree.deals.paths[deal]
    state = self.game.view.new_initial_state()
    for action in [*path[path >= 0].tolist(), *self.tree.actions_above(node)]:
      state.apply_action(action)
    return state

  @functools.cached_property
  def _first_paths(self) -> Int64s:
    return np.asarray(self.tree.deals.paths[(self.tree.weights >= 0).argmax(axis=1)])


def describe(
  game: VectorGame, behavioral: Float64s, *, max_infosets: int, max_nodes: int
) -> Content:
  """Returns the content of a page; its header names the parts left out.

  Args:
    game: the game.
    behavioral: the policy in behavioral form, shape (sequences,).
    max_infosets: the most types of all public states on the page; the likeliest states are shown.
    max_nodes: the most public states of the game.

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
  states = PublicStates(
    parent=played.parent,
    mover=mover.astype(np.int64),
    num_infosets=sizes,
    weight=played.mass[played.order],
    values=played.expected_values()[played.order],
    group=np.zeros(len(mover), np.int64),
  )
  names, namer = {"": 0}, MoveNames(game.game)
  type_names, grid = type_grid(game)
  numbers = [np.array(of_player) for of_player in type_names]

  @functools.cache
  def moves(node: int) -> list[int]:
    state = played.state(node)
    edges = range(int(tree.first_edge[node]), int(tree.first_edge[node + 1]))
    return [number_name(names, namer.name(state, int(tree.action[edge]))) for edge in edges]

  def move(position: int) -> int:
    edge = int(played.edge[position])
    node = int(tree.node_of_edge[edge])
    return moves(node)[edge - int(tree.first_edge[node])]

  def describe_state(position: int) -> PublicState | None:
    node = int(played.order[position])
    if node >= tree.num_nodes:
      return None
    of_player = moves(node) if mover[position] >= 0 else []
    return _public_state(played, node, of_player, behavioral, responses, numbers)

  return states.content(max_infosets, names, move, describe_state, grid)


def _public_state(
  played: _PlayedTree,
  node: int,
  moves: list[int],
  behavioral: Float64s,
  responses: Float64s,
  numbers: Sequence[Int64s],
) -> PublicState:
  tree, mover = played.tree, int(played.tree.player[node])
  types = tree.types[int(tree.kind[node])]
  ranges = [
    HandRange(
      hands=numbers[player][own],
      weight=played.reach[player][node, own],
      opponent_weight=played.opponent_weight[player][node, own],
      value=_quotient(played.sums[player][node, own], played.opponent_weight[player][node, own]),
      equity=np.full(len(own), np.nan),
    )
    for player, own in enumerate(types)
  ]
  probability = action_value = np.zeros((0, 0))
  is_best = probability > 0
  if moves:
    sequences = played.game.layout.sequences(node)
    children = played.child[tree.first_edge[node] : tree.first_edge[node + 1]]
    probability, is_best = behavioral[sequences], responses[sequences] > 0
    below = played.sums[mover][np.ix_(children, types[mover])]
    action_value = _quotient(below, ranges[mover].opponent_weight)
  return PublicState([], (ranges[0], ranges[1]), moves, probability, action_value, is_best)


def type_grid(game: VectorGame) -> tuple[list[list[int]], dict[str, Any]]:
  """Returns each player's types as indices of the grid's names, and `Content.grid`.

  The name of a type is its information state string at the root, without the words with which all types of the player
  begin and end.
  """
  tree = game.tree
  found = []
  for player in PLAYERS:
    first = np.unique(tree.deals.types[player], return_index=True)[1]
    states = []
    for path in tree.deals.paths[first]:
      states.append(game.view.new_initial_state())
      for action in path[path >= 0].tolist():
        states[-1].apply_action(action)
    found.append(_shortened([str(game.view.named(state, player)) for state in states]))
  names = sorted({name for of_player in found for name in of_player})
  place = {name: number for number, name in enumerate(names)}
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
  return [[place[name] for name in of_player] for of_player in found], grid


def _shortened(names: list[str]) -> list[str]:
  """Returns names without the words with which all begin and end."""
  words = [re.findall(r"\w+|\W", name) for name in names]
  before = _num_common(words)
  after = _num_common([each[before:][::-1] for each in words])
  return ["".join(each[before : len(each) - after]) or "".join(each) for each in words]


def _num_common(words: list[list[str]]) -> int:
  """Returns the number of words with which all lists begin."""
  columns = zip(*words, strict=False)
  return sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, columns))


def _grouped(numbers: Any, count: int) -> list[Int64s]:
  """Returns the indices of each number from 0 to `count` - 1."""
  order = np.argsort(numbers, kind="stable")
  return np.split(order, np.cumsum(np.bincount(numbers, minlength=count))[:-1])


def _quotient(sums: Float64s, mass: Float64s) -> Float64s:
  """Returns sums / mass; NaN if the mass is 0."""
  with np.errstate(invalid="ignore", divide="ignore"):
    return np.where(mass > 0, sums / mass, np.nan)
