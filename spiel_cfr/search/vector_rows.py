"""Games in vector form as rows of private states: one for each type at each node and at each end of the public tree.

Histories are not listed. The counterfactual value of a type is a sum over the types of the other player.
"""

import functools
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.search.private_forest import NONE, PrivateForest


class VectorRows:
  """The nodes of a public tree, which are the public states, and each player's rows there.

  Attributes:
    game: the compiled game.
    above: int64 (nodes,). The node before the last move; `NONE` at the first.
    depth: int64 (nodes,). The number of moves after the deal.
    cells: int64 (edges, types). See `Layout.cells`.
    chances: float64 (kinds, types of player 0, types of player 1). Chance's probability of each pair of types, times
      the probabilities of chance's later moves.
    payoffs: float64 (matrices, types of player 0, types of player 1). Player 0's payoffs times chance's probability.
    forests: a pair of `PrivateForest`. The rows of each player.
    first_row: by player, int64 (nodes,). The row of the player's first type at each node.
    first_end: by player, int64 (edges,). The row of the player's first type where an edge ends the game; `NONE` at
      other edges.
    largest_payoff: float. The largest absolute payoff.
  """

  def __init__(self, game: VectorGame) -> None:
    """Takes a constant-sum game."""
    self.game, tree = game, game.tree
    self.above = np.where(tree.edge_above >= 0, tree.node_of_edge[tree.edge_above], NONE)
    self.depth = np.zeros(tree.num_nodes, np.int64)
    for depth, nodes in enumerate(tree.levels()):
      self.depth[nodes] = depth
    self.cells = game.layout.cells(NONE)
    shape = tree.deals.num_types
    pair = tree.deals.types[0] * shape[1] + tree.deals.types[1]
    self.chances = np.zeros((len(tree.weights), *shape))
    for kind, weights in enumerate(tree.weights):
      sums = np.bincount(pair, np.maximum(weights, 0.0), shape[0] * shape[1])
      self.chances[kind] = sums.reshape(shape)
    self.payoffs: Float64s = (tree.matrices[:, 0] - tree.matrices[:, 1]) / 2
    middle = (game.constant_sum or 0.0) / 2
    self.largest_payoff = max(abs(each - middle) for each in game.payoff_range)
    self._number_rows()
    self.forests = self._forest(0), self._forest(1)

  def _number_rows(self) -> None:
    """Orders nodes and ends by the number of moves before them; each has one row for each type."""
    tree = self.game.tree
    edge_of_end = np.flatnonzero(tree.child < 0)
    depth = np.concatenate([self.depth, 1 + self.depth[tree.node_of_edge[edge_of_end]]])
    order = np.argsort(depth, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    counts = tree.deals.num_types
    self._begins = np.searchsorted(depth[order], np.arange(depth[order[-1]] + 2))
    self.first_row = [place[: tree.num_nodes] * count for count in counts]
    self.first_end = [np.full(len(tree.child), NONE) for _ in counts]
    for own, count in zip(self.first_end, counts, strict=True):
      own[edge_of_end] = place[tree.num_nodes :] * count

  def _forest(self, player: int) -> PrivateForest:
    tree = self.game.tree
    count = tree.deals.num_types[player]
    types = np.arange(count)
    rows = np.where(
      tree.child < 0, self.first_end[player], self.first_row[player][np.maximum(tree.child, 0)]
    )
    above = np.full((int(self._begins[-1]), count), NONE)
    entry = np.full_like(above, NONE)
    above[rows // count] = self.first_row[player][tree.node_of_edge][:, None] + types
    is_own = tree.player[tree.node_of_edge] == player
    entry[rows[is_own] // count] = self.cells[is_own, :count]
    return PrivateForest(above.ravel(), entry.ravel(), self._begins * count, self.game.end)

  @functools.cached_property
  def num_ends(self) -> Int64s:
    """The number of terminals below each node, shape (nodes,)."""
    tree = self.game.tree
    result = np.bincount(tree.node_of_edge[tree.child < 0], minlength=tree.num_nodes)
    for nodes in reversed(list(tree.levels())[1:]):
      np.add.at(result, self.above[nodes], result[nodes])
    return result

  def types(self, number: int) -> tuple[Int64s, Int64s]:
    """Returns each player's types at a node, which are its private states there."""
    tree = self.game.tree
    return tree.types[int(tree.kind[number])]

  def spread(self, number: int, player: int, numbers: Float64s) -> Float64s:
    """Returns an array over a player's private states at a node as one over all its types, 0 at impossible types."""
    result = np.zeros(self.game.tree.deals.num_types[player])
    result[self.types(number)[player]] = numbers
    return result

  def counterfactual_reach_of_rows(self, player: int, reach: Float64s) -> Float64s:
    """Returns the probability that chance and the other player lead to each of a player's rows; 0 at ends."""
    tree = self.game.tree
    own, other = (np.arange(tree.deals.num_types[each]) for each in (player, 1 - player))
    result = np.zeros(len(self.forests[player].above))
    for kind, chances in enumerate(self.chances):
      nodes = np.flatnonzero(tree.kind == kind)
      others_reach = reach[self.first_row[1 - player][nodes, None] + other]
      result[self.first_row[player][nodes, None] + own] = others_reach @ (
        chances if player else chances.T
      )
    return result

  def ends(self, player: int, reach: Float64s) -> Float64s:
    """Returns a player's counterfactual values at ends, for the other player's `reach`; shape (rows,)."""
    tree = self.game.tree
    own, other = (np.arange(tree.deals.num_types[each]) for each in (player, 1 - player))
    result = np.zeros(len(self.forests[player].above))
    for matrix, payoffs in enumerate(self.payoffs):
      edges = self._ends_by_matrix[matrix]
      others_reach = reach[self.first_end[1 - player][edges, None] + other]
      gets = -payoffs if player else payoffs.T
      result[self.first_end[player][edges, None] + own] = others_reach @ gets
    return result

  def ends_at(self, numbers: Int64s) -> tuple[Int64s, Int64s, Float64s]:
    """Returns the pairs of rows where the game ends right after some nodes, and player 0's payoffs there."""
    tree = self.game.tree
    edges = concatenated_ranges(
      tree.first_edge[numbers], tree.num_actions[numbers].astype(np.int64)
    )
    edges = edges[tree.child[edges] < 0]
    payoffs = self.payoffs[tree.matrix[-1 - tree.child[edges]]]
    end, first, second = np.nonzero(payoffs)
    begins = [own[edges[end]] for own in self.first_end]
    return begins[0] + first, begins[1] + second, payoffs[end, first, second]

  @functools.cached_property
  def _ends_by_matrix(self) -> list[Int64s]:
    """The edges that end the game, by matrix of payoffs."""
    tree = self.game.tree
    edges = np.flatnonzero(tree.child < 0)
    matrix = tree.matrix[-1 - tree.child[edges]]
    order = np.argsort(matrix, kind="stable")
    counts = np.bincount(matrix, minlength=len(self.payoffs))
    return np.split(edges[order], np.cumsum(counts)[:-1])

  def states(self, number: int, deals: Any = slice(None)) -> list[Any]:
    """Returns OpenSpiel's states at a node, one for each possible deal, or for a choice of these deals."""
    game = self.game
    alive = game.tree.weights[game.tree.kind[number]] >= 0
    result = []
    for path in game.tree.deals.paths[alive][deals]:
      result.append(game.view.new_initial_state())
      for action in [*path[path >= 0].tolist(), *game.tree.actions_above(number)]:
        result[-1].apply_action(action)
    return result

  def names(self, number: int, player: int) -> list[str]:
    """Returns the information state strings of a player's types at a node."""
    tree = self.game.tree
    alive = tree.weights[tree.kind[number]] >= 0
    first = np.unique(tree.deals.types[player, alive], return_index=True)[1]
    return [self.game.view.named(state, player) for state in self.states(number, first)]
