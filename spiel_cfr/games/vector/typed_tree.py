"""The public tree of a game of private types: what everybody sees, with the types that are possible at each node.

Chance deals each of two players a private type (cards, dice, hands). Whatever is done afterwards, by players and by
chance, is seen by both. So a history is a pair of types and a node of the public tree, and whoever is to move at a node
has an infoset there for each of its types.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s, spread

CHANCE = -1


class Deals(NamedTuple):
  """How chance deals private types, in the order of histories sorted as strings.

  Attributes:
    paths: the actions of chance up to the first move of a player, shape (deals, moves), -1 behind shorter ones.
    types: the type that each player is dealt, numbered in order of discovery, shape (players, deals).
    weights: the probability of each deal, shape (deals,).
  """

  paths: Int64s
  types: Int64s
  weights: Float64s

  @property
  def num_types(self) -> tuple[int, int]:
    """How many types each player has."""
    own, other = (self.types.max(axis=1) + 1).tolist()
    return own, other


@dataclasses.dataclass(frozen=True, eq=False)
class TypedTree:
  """A public tree, its root first.

  Attributes:
    deals: how chance deals types.
    weights: chance's probability of each deal and of all that it has done later, shape (kinds, deals); 0 of deals that
      it has ruled out, by a card on the table.
    player: who is to move at each node, `CHANCE` or a player, shape (nodes,).
    kind: which row of `weights` each node has, shape (nodes,).
    first_edge: the first of the edges below each node, shape (nodes + 1,).
    action: the action of each edge; those of a node are in ascending order, shape (edges,).
    child: the node below each edge, or -1 - k for terminal k, shape (edges,).
    matrix: which of `matrices` each terminal has, shape (terminals,).
    matrices: what each player gets, times chance's probability of the pair of types and of all that it did on the way;
      shape (matrices, players, types of player 0, types of player 1).
    payoff_range: smallest and largest return of any player.
    constant_sum: what returns sum to, or None where they don't always sum to the same.
  """

  deals: Deals
  weights: Float64s
  player: Any
  kind: Int32s
  first_edge: Int64s
  action: Int32s
  child: Int32s
  matrix: Int32s
  matrices: Float64s
  payoff_range: tuple[float, float]
  constant_sum: float | None

  @property
  def num_nodes(self) -> int:
    """How many nodes there are, terminals not among them."""
    return len(self.player)

  @functools.cached_property
  def types(self) -> list[tuple[Int64s, Int64s]]:
    """By kind and player, the types that are possible, ascending."""
    return [
      (np.unique(self.deals.types[0, own > 0]), np.unique(self.deals.types[1, own > 0]))
      for own in self.weights
    ]

  def places(self, player: int, before: int, after: int) -> Int64s:
    """Returns where the types of a kind are among those of an earlier kind; -1 for the empty sequence, of all types."""
    own = self.types[after][player]
    return np.searchsorted(self.types[before][player], own) if before >= 0 else np.zeros_like(own)

  @functools.cached_property
  def num_actions(self) -> Int64s:
    """How many edges each node has."""
    return np.diff(self.first_edge)

  @functools.cached_property
  def edge_above(self) -> Int64s:
    """The edge that leads to each node, -1 for the root."""
    result = np.full(self.num_nodes, -1, np.int64)
    edges = np.flatnonzero(self.child >= 0)
    result[self.child[edges]] = edges
    return result

  @functools.cached_property
  def node_of_edge(self) -> Int64s:
    """The node above each edge."""
    return np.repeat(np.arange(self.num_nodes), self.num_actions)

  def levels(self) -> list[Int64s]:
    """Returns the nodes by the number of edges above them."""
    levels, nodes = [], np.zeros(1, np.int64)
    while len(nodes):
      levels.append(nodes)
      below = self.child[spread(self.first_edge[nodes], self.num_actions[nodes])]
      nodes = below[below >= 0].astype(np.int64)
    return levels
