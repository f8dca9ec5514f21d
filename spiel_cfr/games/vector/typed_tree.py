"""`TypedTree`, the public tree of a game in which chance deals private types before a player moves; and its files."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s, require, require_array
from spiel_cfr._util import files
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.openspiel.checked_calls import CHANCE
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.deals import RULED_OUT, Deals
from spiel_cfr.games.vector.public_tree import (
  IMPOSSIBLE,
  NOT_FIRST,
  PublicTree,
  wrong_game_error,
)

# The form of payoffs in the headers of files.
PUBLIC_TREE = "public tree"


@dataclasses.dataclass(frozen=True, eq=False)
class TypedTree(PublicTree):
  """A public tree with the payoffs of each pair of types at its terminals.

  Attributes:
    matrix: int32 (terminals,). The index in `matrices` of each terminal's payoffs.
    deals: Deals. The deals of types.
    weights: float64 (kinds, deals). Chance's reach probability of each deal at nodes of each kind; `RULED_OUT` for
      impossible deals, such as hands with a card on the table.
    matrices: float64 (matrices, players, types of player 0, types of player 1). The returns times chance's reach
      probability for each pair of types.
    payoff_range: two floats. The smallest and the largest return of any player.
    constant_sum: float. The sum of the returns; None if it varies.
  """

  matrix: Int32s
  deals: Deals
  weights: Float64s
  matrices: Float64s
  payoff_range: tuple[float, float]
  constant_sum: float | None

  @functools.cached_property
  def types(self) -> list[tuple[Int64s, Int64s]]:
    """For each kind and player, the possible types, ascending."""
    return [
      (np.unique(self.deals.types[0, chances >= 0]), np.unique(self.deals.types[1, chances >= 0]))
      for chances in self.weights
    ]

  @property
  def num_types(self) -> tuple[int, int]:
    return self.deals.num_types

  @property
  def num_terminals(self) -> int:
    return len(self.matrix)

  @functools.cached_property
  def terminal_kind(self) -> Int32s:
    """The kind of the node above each terminal."""
    return self.kind[self.node_of_terminal]

  def first_deals(self, view: GameView, player: int) -> Iterator[tuple[Any, Int64s]]:
    """Yields deals, see `PublicTree.first_deals`. `deals` are already in the order of histories."""
    types = self.deals.types[player]
    offsets = np.where(self.weights >= 0, NOT_FIRST, IMPOSSIBLE)
    for kind, of_deals in enumerate(offsets):
      possible = np.flatnonzero(of_deals != IMPOSSIBLE)
      # The first deal of each type, in the order of `self.types`.
      _, first = np.unique(types[possible], return_index=True)
      of_deals[possible[first]] = np.arange(len(self.types[kind][player]))
    for deal in np.flatnonzero((offsets >= 0).any(axis=0)).tolist():
      path = self.deals.paths[deal]
      state = view.new_initial_state()
      for action in path[path >= 0].tolist():
        if not state.is_chance_node() or action not in state.legal_actions():
          raise wrong_game_error(state)
        state.apply_action(action)
      yield state, offsets[:, deal]

  def saved(self) -> files.Arrays:
    """Returns the arrays of the tree's file."""
    deals = {f"deals.{name}": array for name, array in self.deals._asdict().items()}
    return deals | {name: getattr(self, name) for name in _SAVED}


_SAVED = "weights", "player", "kind", "first_edge", "action", "child", "matrix", "matrices"


def restored(arrays: Mapping[str, Any], facts: GameFacts) -> TypedTree:
  """Returns the tree of the `saved` arrays of a file.

  Raises:
    KeyError: an array is missing.
    ValueError: an array is not one that `saved` returns. Kernels take every index on trust.
  """
  deals = Deals(**{name: arrays[f"deals.{name}"] for name in Deals._fields})
  tree = TypedTree(
    deals=deals,
    **{name: arrays[name] for name in _SAVED},
    payoff_range=facts.payoff_range,
    constant_sum=facts.constant_sum,
  )
  _check_deals(deals, tree)
  _check_tree(tree, facts.num_distinct_actions)
  return tree


def _check_tree(tree: TypedTree, num_distinct_actions: int) -> None:
  """Raises ValueError unless nodes, edges and terminals of a file are those of a tree."""
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
  require(tree.action[decides] < num_distinct_actions, "actions are the game's")
  inner = tree.child >= 0
  children = np.sort(tree.child[inner])
  require(
    len(children) == nodes - 1 and (children == np.arange(1, nodes)).all(),
    "nodes have one edge above",
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


def _check_deals(deals: Deals, tree: TypedTree) -> None:
  """Raises ValueError unless the deals of a file, their weights and matrices have right sizes and values."""
  require_array(deals.paths, "paths", np.int64, -1, -1)
  count = len(deals.paths)
  require_array(deals.types, "types", np.int64, 2, count)
  require_array(deals.weights, "deals.weights", np.float64, count)
  require(count > 0, "there are deals")
  require(deals.paths >= -1, "moves of chance are actions")
  for types in deals.types:
    require(types.min() == 0 and len(np.unique(types)) == types.max() + 1, "types are numbered")
  require_array(tree.weights, "weights", np.float64, -1, count)
  possible = tree.weights != RULED_OUT
  for weights in (deals.weights, tree.weights[possible]):
    require((weights >= 0) & (weights <= 1), "weights are probabilities")
  require(possible.any(axis=1), "some deal is possible")
  require_array(tree.matrices, "matrices", np.float64, -1, 2, *deals.num_types)
  require(np.isfinite(tree.matrices), "payoffs are finite")
