"""Public trees of games in vector form: public states are nodes, and private states are the possible types there.

Each type has a row at each node and at each end of the public tree. Histories are not listed: counterfactual reach
probabilities and values are products of a matrix over pairs of types with the other player's reach probabilities.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.games.openspiel import checked_calls
from spiel_cfr.games.openspiel.checked_calls import CHANCE
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.search.trees.forest_gadget_games import ForestGameBuilder
from spiel_cfr.search.trees.forest_tree import ForestTree
from spiel_cfr.search.trees.private_forest import PrivateForest
from spiel_cfr.search.trees.search_tree import PublicState


class VectorTree(ForestTree):
  """All public states of a game in vector form, parents first; `public_states` makes the tree.

  Attributes:
    game: `VectorGame`. The compiled game.
    depth_of_node: int64 (nodes,). The number of moves after the deal.
    cells: int64 (edges, types). The sequence of each edge's move for each type, see `Layout.cells`.
    chances: float64 (kinds, types of player 0, types of player 1). Chance's probability of each pair of types, times
      the probabilities of chance's later moves.
    payoffs: float64 (matrices, types of player 0, types of player 1). Player 0's payoffs times chance's probability.
    first_row: by player, int64 (nodes,). The row of the player's first type at each node.
    first_end: by player, int64 (edges,). The row of the player's first type where an edge ends the game; `NONE` at
      other edges.
  """

  game: VectorGame

  def __init__(self, game: VectorGame) -> None:
    """Takes a constant-sum game."""
    super().__init__()
    self.game, self.name, tree = game, game.game_string, game.tree
    self.first_length = int(np.count_nonzero(tree.deals.paths[0] >= 0))
    self.above = np.where(tree.edge_above >= 0, tree.node_of_edge[tree.edge_above], NONE)
    self.depth_of_node = np.zeros(tree.num_nodes, np.int64)
    for depth, nodes in enumerate(tree.levels()):
      self.depth_of_node[nodes] = depth
    self.cells = game.layout.cells(NONE)
    shape = tree.deals.num_types
    pair = tree.deals.types[0] * shape[1] + tree.deals.types[1]
    self.chances = np.zeros((len(tree.weights), *shape))
    for kind, weights in enumerate(tree.weights):
      sums = np.bincount(pair, np.maximum(weights, 0.0), shape[0] * shape[1])
      self.chances[kind] = sums.reshape(shape)
    self.payoffs: Float64s = (tree.matrices[:, 0] - tree.matrices[:, 1]) / 2
    self._number_rows()
    self.forests = self._forest(0), self._forest(1)

  def _number_rows(self) -> None:
    """Orders nodes and ends by the number of moves before them. Each has a block of rows, one for each type."""
    tree = self.game.tree
    edge_of_end = np.flatnonzero(tree.child < 0)
    depth = np.concatenate(
      [self.depth_of_node, 1 + self.depth_of_node[tree.node_of_edge[edge_of_end]]]
    )
    order = np.argsort(depth, kind="stable")
    # The position of each node's or end's block of rows.
    block = np.empty_like(order)
    block[order] = np.arange(len(order))
    counts = tree.deals.num_types
    self._begins = np.searchsorted(depth[order], np.arange(depth[order[-1]] + 2))
    self.first_row = [block[: tree.num_nodes] * count for count in counts]
    self.first_end = [np.full(len(tree.child), NONE) for _ in counts]
    for first_end, count in zip(self.first_end, counts, strict=True):
      first_end[edge_of_end] = block[tree.num_nodes :] * count

  def _forest(self, player: int) -> PrivateForest:
    tree = self.game.tree
    count = tree.deals.num_types[player]
    types = np.arange(count)
    rows = np.where(
      tree.child < 0, self.first_end[player], self.first_row[player][np.maximum(tree.child, 0)]
    )
    above = np.full((int(self._begins[-1]), count), NONE)
    slot = np.full_like(above, NONE)
    above[rows // count] = self.first_row[player][tree.node_of_edge][:, None] + types
    is_own = tree.player[tree.node_of_edge] == player
    slot[rows[is_own] // count] = self.cells[is_own, :count]
    return PrivateForest(above.ravel(), slot.ravel(), self._begins * count, self.game.end)

  @functools.cached_property
  def actions(self) -> Int64s:
    """See `ForestTree.actions`."""
    tree, result = self.game.tree, np.full(self.game.end, NONE)
    sequences = self.cells >= 0
    result[self.cells[sequences]] = np.repeat(tree.action, sequences.sum(axis=1))
    return result

  def types(self, index: int) -> tuple[Int64s, Int64s]:
    """Returns each player's types at a node, which are its private states there."""
    tree = self.game.tree
    return tree.types[int(tree.kind[index])]

  def rows(self, index: int, player: int) -> Int64s:
    return np.asarray(self.first_row[player][index] + self.types(index)[player])

  def counterfactual_reach_of_rows(self, player: int, reach: Float64s) -> Float64s:
    tree = self.game.tree
    types, other_types = (np.arange(tree.deals.num_types[who]) for who in (player, 1 - player))
    result = np.zeros(len(self.forests[player].above))
    for kind, chances in enumerate(self.chances):
      nodes = np.flatnonzero(tree.kind == kind)
      others_reach = reach[self.first_row[1 - player][nodes, None] + other_types]
      result[self.first_row[player][nodes, None] + types] = others_reach @ (
        chances if player else chances.T
      )
    return result

  def values_at_ends(self, player: int, reach: Float64s) -> Float64s:
    tree = self.game.tree
    types, other_types = (np.arange(tree.deals.num_types[who]) for who in (player, 1 - player))
    result = np.zeros(len(self.forests[player].above))
    for matrix, payoffs in enumerate(self.payoffs):
      edges = self._ends_by_matrix[matrix]
      others_reach = reach[self.first_end[1 - player][edges, None] + other_types]
      own_payoffs = -payoffs if player else payoffs.T
      result[self.first_end[player][edges, None] + types] = others_reach @ own_payoffs
    return result

  def end_pairs(self, indices: Int64s) -> tuple[Int64s, Int64s, Float64s]:
    tree = self.game.tree
    counts = tree.num_actions[indices].astype(np.int64)
    edges, nodes = concatenated_ranges(tree.first_edge[indices], counts), np.repeat(indices, counts)
    is_end = tree.child[edges] < 0
    edges = edges[is_end]
    end, first, second = np.nonzero(self.chances[tree.kind[nodes[is_end]]])
    payoffs = self.payoffs[tree.matrix[-1 - tree.child[edges]][end], first, second]
    first_rows = [first_end[edges[end]] for first_end in self.first_end]
    return first_rows[0] + first, first_rows[1] + second, payoffs

  @functools.cached_property
  def _ends_by_matrix(self) -> list[Int64s]:
    """For each matrix of payoffs, the edges that end the game with it."""
    tree = self.game.tree
    edges = np.flatnonzero(tree.child < 0)
    matrix = tree.matrix[-1 - tree.child[edges]]
    order = np.argsort(matrix, kind="stable")
    counts = np.bincount(matrix, minlength=len(self.payoffs))
    return np.split(edges[order], np.cumsum(counts)[:-1])

  @functools.cached_property
  def movers(self) -> tuple[Int64s, Int64s]:
    """See `ForestTree.movers`."""
    return np.arange(len(self)), self.game.tree.player.astype(np.int64)

  def depth(self, index: int) -> int:
    return self.first_length + int(self.depth_of_node[index])

  def private_name(self, player: int, row: int) -> str:
    tree = self.game.tree
    block, own_type = divmod(row, tree.deals.num_types[player])
    node = int(self._node_of_block[block])
    is_possible = tree.weights[tree.kind[node]] >= 0
    deals = np.flatnonzero(is_possible & (tree.deals.types[player] == own_type))
    return self.game.view.named(self._state(node, int(deals[0])), player)

  @functools.cached_property
  def _node_of_block(self) -> Int64s:
    """The node of each block of rows; `NONE` where the game ends."""
    result = np.full(int(self._begins[-1]), NONE)
    result[self.first_row[0] // self.game.tree.deals.num_types[0]] = np.arange(len(self))
    return result

  def states(self, index: int) -> Iterator[Any]:
    tree = self.game.tree
    for deal in np.flatnonzero(tree.weights[tree.kind[index]] >= 0).tolist():
      yield self._state(index, deal)

  def _state(self, index: int, deal: int) -> Any:
    """Returns OpenSpiel's state at a node after a deal."""
    path, result = self.game.tree.deals.paths[deal], self.game.view.new_initial_state()
    for action in [*path[path >= 0].tolist(), *self.game.tree.actions_above(index)]:
      result.apply_action(action)
    return result

  def pairs(self, index: int) -> tuple[Int64s, Int64s, Float64s]:
    tree = self.game.tree
    weights = tree.weights[tree.kind[index]]
    is_possible = weights >= 0
    first, second = (
      np.searchsorted(types, types_of_deals[is_possible])
      for types, types_of_deals in zip(self.types(index), tree.deals.types, strict=True)
    )
    return first, second, weights[is_possible]

  @property
  def builder(self) -> ForestGameBuilder:
    """See `SearchTree.builder`."""
    return ForestGameBuilder(self)

  def public_state_of(self, state: Any) -> PublicState:
    """Returns the public state of a state of OpenSpiel.

    Raises:
      ArgumentError: the state is terminal, or does not belong to this game.
    """
    tree = self.game.tree
    state = self.game.view.own_state(state, max(0, checked_calls.current_player(state)))
    moves = [(move.player, move.action) for move in state.full_history()]
    after_deal = list(itertools.dropwhile(lambda move: move[0] == CHANCE, moves))
    deal = np.full(tree.deals.paths.shape[1], NONE)
    dealt = [action for _, action in moves[: len(moves) - len(after_deal)]][: len(deal)]
    deal[: len(dealt)] = dealt
    node = 0 if (tree.deals.paths == deal).all(axis=1).any() else NONE
    for _, action in after_deal if node == 0 else []:
      edges = np.arange(tree.first_edge[node], tree.first_edge[node + 1])
      edges = edges[tree.action[edges] == action]
      node = int(tree.child[edges[0]]) if len(edges) else NONE
      if node < 0:
        break
    mover = state.current_player()
    if (
      node < 0
      or mover != tree.player[node]
      or (mover >= 0 and self.game.view.named(state, mover) not in self.names(node, mover))
    ):
      raise errors.ArgumentError(
        f"The history [{state.history_str()}] is none of {self.game}, or it has ended, or types are still to be dealt."
      )
    return PublicState(self, node)

  def __repr__(self) -> str:
    return f"<VectorTree of {self.game.name}: {len(self):,} public states>"
