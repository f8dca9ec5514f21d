"""The public tree of a game in vector form as arrays for search: levels, chance's probabilities, payoffs, types."""

import functools
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, spread
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.search.history_walk import NONE
from spiel_cfr.search.public_trees import Pair, Pairs


class Level(NamedTuple):
  """The nodes at one depth of a public tree.

  Attributes:
    nodes: these.
    edges: below them, end to end.
    starts: where those of each node begin.
    inner: which of them lead to nodes.
    children: to which.
  """

  nodes: Int64s
  edges: Int64s
  starts: Int64s
  inner: Int64s
  children: Int64s


class PublicNodes:
  """The nodes of a public tree.

  Attributes:
    game: the compiled game.
    above: int64 (nodes,). The node before the last move, `NONE` of the first.
    levels: the nodes by their number of moves after the deal.
    depth: int64 (nodes,). That number.
    owner: int8 (edges,). The player who takes each edge.
    cells: int64 (edges, types). See `Layout.cells`.
    chances: float64 (kinds, types of player 0, types of player 1). Chance's probability of each pair of types and of
      all its moves on the way.
    payoffs: float64 (matrices, types of player 0, types of player 1). Player 0's payoffs times chance's probability.
    num_ends: int64 (nodes,). The number of terminals below each node.
    largest_payoff: the largest absolute payoff.
  """

  def __init__(self, game: VectorGame) -> None:
    """Takes a constant-sum game."""
    self.game, found = game, game.tree
    self.above = np.where(found.edge_above >= 0, found.node_of_edge[found.edge_above], NONE)
    self.depth = np.zeros(found.num_nodes, np.int64)
    self.levels = []
    for depth, nodes in enumerate(found.levels()):
      self.depth[nodes] = depth
      counts = found.num_actions[nodes].astype(np.int64)
      edges = spread(found.first_edge[nodes], counts)
      inner = edges[found.child[edges] >= 0]
      children = found.child[inner].astype(np.int64)
      self.levels.append(Level(nodes, edges, np.cumsum(counts) - counts, inner, children))
    self.owner = found.player[found.node_of_edge]
    self.cells = game.layout.cells(game.end)
    shape = found.deals.num_types
    pair = found.deals.types[0] * shape[1] + found.deals.types[1]
    self.chances = np.zeros((len(found.weights), *shape))
    for kind, weights in enumerate(found.weights):
      sums = np.bincount(pair, np.maximum(weights, 0.0), shape[0] * shape[1])
      self.chances[kind] = sums.reshape(shape)
    self.payoffs: Float64s = (found.matrices[:, 0] - found.matrices[:, 1]) / 2
    middle = (game.constant_sum or 0.0) / 2
    self.largest_payoff = max(abs(each - middle) for each in game.payoff_range)

  @functools.cached_property
  def num_ends(self) -> Int64s:
    """See above."""
    found = self.game.tree
    result = np.bincount(found.node_of_edge[found.child < 0], minlength=found.num_nodes)
    for level in reversed(self.levels[1:]):
      np.add.at(result, self.above[level.nodes], result[level.nodes])
    return result

  def types(self, number: int) -> tuple[Int64s, Int64s]:
    """Returns each player's types at a node, which are its private states there."""
    found = self.game.tree
    return found.types[int(found.kind[number])]

  def spread(self, number: int, player: int, numbers: Float64s) -> Float64s:
    """Returns numbers of a player's private states as numbers of all its types, 0 of those that are ruled out."""
    count = self.game.tree.deals.num_types[player]
    if len(numbers) == count:
      return numbers
    result = np.zeros(count)
    result[self.types(number)[player]] = numbers
    return result

  def reach(self, made: Float64s, begins: Pairs | None = None) -> Pair:
    """Returns the probability that each player plays to each node by its type, two arrays of shape (nodes, types).

    Args:
      made: float64 (edges, types). The probability of each edge by its player's type.
      begins: ranges that replace those of some nodes.
    """
    found = self.game.tree
    result = [np.ones((found.num_nodes, count)) for count in found.deals.num_types]
    for depth, level in enumerate(self.levels):
      for player, own in enumerate(result):
        for number, ranges in (begins or {}).items():
          if self.depth[number] == depth:
            own[number] = self.spread(number, player, ranges[player])
        above = found.node_of_edge[level.inner]
        mine = (self.owner[level.inner] == player)[:, None]
        own[level.children] = own[above] * np.where(mine, made[level.inner, : own.shape[1]], 1.0)
    return result[0], result[1]

  def states(self, number: int, chosen: Any = slice(None)) -> list[Any]:
    """Returns OpenSpiel's states at a node, one for each deal that is possible, or for some of these."""
    game = self.game
    alive = game.tree.weights[game.tree.kind[number]] >= 0
    result = []
    for path in game.tree.deals.paths[alive][chosen]:
      result.append(game.view.new_initial_state())
      for action in [*path[path >= 0].tolist(), *game.tree.actions_above(number)]:
        result[-1].apply_action(action)
    return result

  def names(self, number: int, player: int) -> list[str]:
    """Returns the information state strings of a player's types at a node."""
    found = self.game.tree
    alive = found.weights[found.kind[number]] >= 0
    first = np.unique(found.deals.types[player, alive], return_index=True)[1]
    return [self.game.view.named(state, player) for state in self.states(number, first)]
