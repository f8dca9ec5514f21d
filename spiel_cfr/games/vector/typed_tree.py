"""The public tree of a game of private types: what everybody sees, with the types that are possible at each node.

Chance deals each of two players a private type (cards, dice, hands). Whatever is done afterwards, by players and by
chance, is seen by both. So a history is a pair of types and a node of the public tree, and whoever is to move at a node
has an infoset there for each of its types.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s, require, require_array, spread
from spiel_cfr._util import files
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.vector.deals import CHANCE, RULED_OUT, Deals

# What files of games say for their form.
PUBLIC_TREE = "public tree"


@dataclasses.dataclass(frozen=True, eq=False)
class PublicTree:
  """The nodes, edges and terminals of a public tree, or of a piece of one, its root first.

  Attributes:
    player: who is to move at each node, `CHANCE` or a player, shape (nodes,).
    kind: which deals are possible at each node, and how probable: a row of `TypedTree.weights`, shape (nodes,).
    first_edge: the first of the edges below each node; the whole tree has the end of all behind them.
    action: the action of each edge; those of a node are in the order of its legal actions, shape (edges,).
    child: the node below each edge, or -1 - k for terminal k, shape (edges,).
    matrix: which of `matrices` each terminal has, shape (terminals,).
  """

  player: Any
  kind: Int32s
  first_edge: Int64s
  action: Int32s
  child: Int32s
  matrix: Int32s


@dataclasses.dataclass(frozen=True, eq=False)
class TypedTree(PublicTree):
  """A public tree, and what there is to say of types.

  Attributes:
    deals: how chance deals types.
    weights: chance's probability of each deal and of all that it has done later, shape (kinds, deals);
      `RULED_OUT` of deals that are impossible, by a card on the table.
    matrices: what each player gets, times chance's probability of the pair of types and of all that it did on the way;
      shape (matrices, players, types of player 0, types of player 1).
    payoff_range: smallest and largest return of any player.
    constant_sum: what returns sum to, or None where they don't always sum to the same.
  """

  deals: Deals
  weights: Float64s
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
      (np.unique(self.deals.types[0, own >= 0]), np.unique(self.deals.types[1, own >= 0]))
      for own in self.weights
    ]

  def lanes(self, player: int, before: int, after: int) -> Int64s:
    """Returns where the types of a kind are among those of an earlier kind; -1 for the empty sequence, of all types."""
    own = self.types[after][player]
    return np.searchsorted(self.types[before][player], own) if before >= 0 else np.zeros_like(own)

  @functools.cached_property
  def num_actions(self) -> Int32s:
    """How many edges each node has."""
    return np.diff(self.first_edge).astype(np.int32)

  @functools.cached_property
  def edge_above(self) -> Int32s:
    """The edge that leads to each node, -1 for the root."""
    result = np.full(self.num_nodes, -1, np.int32)
    edges = np.flatnonzero(self.child >= 0)
    result[self.child[edges]] = edges
    return result

  @functools.cached_property
  def node_of_edge(self) -> Int32s:
    """The node above each edge."""
    return np.repeat(np.arange(self.num_nodes, dtype=np.int32), self.num_actions)

  @property
  def num_sequences(self) -> Int64s:
    """How many sequences begin at each node: one for each action and type of who is to move; none where chance is."""
    widths = np.array([[len(own) for own in types] for types in self.types])
    owner = np.maximum(self.player, 0)
    return np.where(self.player < 0, 0, self.num_actions * widths[self.kind, owner])

  def actions_above(self, node: int) -> list[int]:
    """Returns the actions on the way from the root to a node."""
    result: list[int] = []
    while (edge := int(self.edge_above[node])) >= 0:
      result.insert(0, int(self.action[edge]))
      node = int(self.node_of_edge[edge])
    return result

  def levels(self) -> list[Int64s]:
    """Returns the nodes by the number of edges above them."""
    levels, nodes = [], np.zeros(1, np.int64)
    while len(nodes):
      levels.append(nodes)
      below = self.child[spread(self.first_edge[nodes], self.num_actions[nodes])]
      nodes = below[below >= 0].astype(np.int64)
    return levels

  def saved(self) -> files.Arrays:
    """Returns what files keep of it."""
    deals = {f"deals.{name}": array for name, array in self.deals._asdict().items()}
    return deals | {name: getattr(self, name) for name in _SAVED}


_SAVED = "weights", "player", "kind", "first_edge", "action", "child", "matrix", "matrices"


def restored(arrays: Mapping[str, Any], facts: GameFacts) -> TypedTree:
  """Returns the tree of which a file has `saved` arrays.

  Raises:
    KeyError: an array is missing.
    ValueError: an array is not what `saved` returns; kernels take every index on trust.
  """
  found = {name.partition(".")[2]: arrays[name] for name in arrays if name.startswith("deals.")}
  deals = Deals(found["paths"], found["types"], found["weights"])
  tree = TypedTree(
    deals=deals,
    **{name: arrays[name] for name in _SAVED},
    payoff_range=facts.payoff_range,
    constant_sum=facts.constant_sum,
  )
  _check_deals(deals, tree)
  nodes, edges, terminals = len(tree.player), len(tree.child), len(tree.matrix)
  require_array(tree.player, "player", np.int8, -1)
  require_array(tree.kind, "kind", np.int32, nodes)
  require_array(tree.first_edge, "first_edge", np.int64, nodes + 1)
  require_array(tree.action, "action", np.int32, edges)
  require_array(tree.child, "child", np.int32, -1)
  require_array(tree.matrix, "matrix", np.int32, -1)
  require(nodes > 0, "there is a root")
  require((tree.player >= CHANCE) & (tree.player < 2), "nodes have players")
  require((tree.kind >= 0) & (tree.kind < len(tree.weights)), "kinds are there")
  require((tree.matrix >= 0) & (tree.matrix < len(tree.matrices)), "matrices are there")
  require(tree.first_edge[0] == 0 and tree.first_edge[-1] == edges, "edges are those of nodes")
  require(np.diff(tree.first_edge) > 0, "nodes have edges")
  require(tree.action >= 0, "actions are numbers of actions")
  different = np.unique(tree.node_of_edge.astype(np.int64) << 32 | tree.action)
  require(len(different) == edges, "nodes have different actions")
  decides = np.repeat(tree.player >= 0, tree.num_actions)
  require(tree.action[decides] < facts.num_distinct_actions, "actions are the game's")
  inner = tree.child >= 0
  below = np.sort(tree.child[inner])
  require(
    len(below) == nodes - 1 and (below == np.arange(1, nodes)).all(), "nodes have one edge above"
  )
  ends = np.sort(-1 - tree.child[~inner])
  require(
    len(ends) == terminals and (ends == np.arange(terminals)).all(), "terminals have one edge above"
  )
  require(sum(map(len, tree.levels())) == nodes, "nodes are below the root")
  parent = tree.kind[tree.node_of_edge[inner]]
  possible = tree.weights >= 0
  pairs = np.unique(np.stack([parent, tree.kind[tree.child[inner]]]), axis=1)
  require(possible[pairs[0]] | ~possible[pairs[1]], "what is ruled out stays so")
  return tree


def _check_deals(deals: Deals, tree: TypedTree) -> None:
  """Raises ValueError unless a file's deals, and what depends on them, are of one size."""
  require_array(deals.paths, "paths", np.int64, -1, -1)
  count = len(deals.paths)
  require_array(deals.types, "types", np.int64, 2, count)
  require_array(deals.weights, "deals.weights", np.float64, count)
  require(count > 0, "there are deals")
  require(deals.paths >= -1, "moves of chance are actions")
  for own in deals.types:
    require(own.min() == 0 and len(np.unique(own)) == own.max() + 1, "types are numbered")
  require_array(tree.weights, "weights", np.float64, -1, count)
  possible = tree.weights != RULED_OUT
  for weights in (deals.weights, tree.weights[possible]):
    require((weights >= 0) & (weights <= 1), "weights are probabilities")
  require(possible.any(axis=1), "some deal is possible")
  require_array(tree.matrices, "matrices", np.float64, -1, 2, *deals.num_types)
  require(np.isfinite(tree.matrices), "payoffs are finite")
