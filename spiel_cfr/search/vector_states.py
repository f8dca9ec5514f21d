"""Public states of a game in vector form: the nodes of its public tree, of which nobody lists the histories."""

import functools
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, spread
from spiel_cfr._util import arguments
from spiel_cfr.games.vector.deals import CHANCE
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.policies import open_spiel
from spiel_cfr.search.history_walk import NONE
from spiel_cfr.search.public_nodes import AnyPublicState, AnyPublicTree


class VectorPublicState(AnyPublicState):
  """A node of the public tree.

  Attributes:
    tree: all public states of the game.
    number: its place in `tree`, parents first.
  """

  tree: "VectorPublicTree"

  @property
  def length(self) -> int:
    """How many moves there were, chance's included."""
    dealt = np.count_nonzero(self.tree.game.tree.deals.paths[0] >= 0)
    return int(dealt + self.tree.depth[self.number])

  @property
  def place(self) -> int:
    """Its number."""
    return self.number

  @property
  def players(self) -> tuple[int, ...]:
    """Who is to move; chance is -1."""
    return (int(self.tree.game.tree.player[self.number]),)

  def private_states(self, player: int) -> list[str]:
    """Returns what a player may know here: its information state strings, by type; empty where nobody decides."""
    arguments.integer(player, "player", 0, 1)
    found, view = self.tree.game.tree, self.tree.game.view
    kind = found.kind[self.number]
    if self.players == (CHANCE,):
      return []
    alive = np.flatnonzero(found.weights[kind] >= 0)
    _, first = np.unique(found.deals.types[player, alive], return_index=True)
    return [view.named(self._state(deal), player) for deal in alive[first].tolist()]

  def states(self) -> Iterator[Any]:
    """Yields OpenSpiel's states of its histories; of deals that nobody tells apart perhaps one."""
    found = self.tree.game.tree
    yield from map(
      self._state, np.flatnonzero(found.weights[found.kind[self.number]] >= 0).tolist()
    )

  def _state(self, deal: int) -> Any:
    found, state = self.tree.game.tree, self.tree.game.view.new_initial_state()
    path = found.deals.paths[deal]
    for action in [*path[path >= 0].tolist(), *found.actions_above(self.number)]:
      state.apply_action(action)
    return state

  def __repr__(self) -> str:
    found = self.tree.game.tree
    known = " x ".join(str(len(own)) for own in found.types[found.kind[self.number]])
    moves = " ".join(map(str, found.actions_above(self.number)))
    return f"<VectorPublicState {self.number}: [{moves}] after the deal, {known} types>"


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


class VectorPublicTree(AnyPublicTree[VectorPublicState]):
  """All public states of a game in vector form, parents first. Make one with `public_states`.

  Attributes:
    game: the compiled game.
    above: int64 (public states,), the one before the last move, `NONE` of the first.
    levels: the nodes by their number of moves after the deal.
    depth: that number, shape (nodes,).
    owner: who moves to take each edge, shape (edges,).
    cells: see `cells_of`.
    chances: chance's probability of each pair of types and all that it did on the way, shape (kinds, types of player 0,
      types of player 1).
    possible: which of these are not ruled out.
    payoffs: what player 0 gets less half of what returns sum to, times chance's probability; of each matrix.
    largest_payoff: the largest that there is, of either sign.
    num_ends: the number of terminals below each node, shape (nodes,).
  """

  game: VectorGame
  _kind = VectorPublicState

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
    self.cells = cells_of(game)
    shape = found.deals.num_types
    pair = found.deals.types[0] * shape[1] + found.deals.types[1]
    self.chances = np.zeros((len(found.weights), *shape))
    self.possible = np.zeros((len(found.weights), *shape), bool)
    for kind, weights in enumerate(found.weights):
      sums = np.bincount(pair, np.maximum(weights, 0.0), shape[0] * shape[1])
      self.chances[kind] = sums.reshape(shape)
      self.possible[kind].flat[pair[weights >= 0]] = True
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

  def entries(self, policy: open_spiel.AnyPolicy) -> Float64s:
    """Returns a policy in behavioural form.

    Raises:
      PolicyError: the policy is not one for this game.
    """
    return open_spiel.from_policy(self.game, policy)

  def behavioral_form(self, entries: Float64s) -> Float64s:
    """Returns the same."""
    return entries

  def owned(self, player: int) -> Bools:
    """Returns which sequences are a player's."""
    begin, end = self.game.layout.roots[player : player + 2]
    places = np.arange(self.game.end)
    return (places >= begin) & (places < end)

  def deciding(self, player: int) -> Int64s:
    """Returns the nodes where a player is to move."""
    return np.flatnonzero(self.game.tree.player == player)

  def natural_cut(self) -> list[VectorPublicState]:
    """Returns where play first goes on after chance has moved again, or else after both have moved."""
    player = self.game.tree.player
    acted, after = np.zeros((len(self), 2), bool), np.zeros(len(self), bool)
    for level in self.levels[1:]:
      above = self.above[level.nodes]
      acted[level.nodes] = acted[above] | (player[above, None] == np.arange(2))
      after[level.nodes] = after[above] | ((player[above] == CHANCE) & acted[above].any(axis=1))
    starts = after & (player >= 0)
    return self.first_of(starts if starts.any() else acted.all(axis=1) & (player >= 0))

  def public_state_of(self, state: Any) -> VectorPublicState:
    """Returns the public state of one of OpenSpiel's states.

    Raises:
      ArgumentError: the state is terminal, or none of this game.
    """
    found = self.game.tree
    moves = [(each.player, each.action) for each in state.full_history()]
    node = 0
    for _, action in itertools.dropwhile(lambda move: move[0] == CHANCE, moves):
      edges = np.arange(found.first_edge[node], found.first_edge[node + 1])
      edges = edges[found.action[edges] == action]
      node = int(found.child[edges[0]]) if len(edges) else NONE
      if node < 0:
        break
    if node < 0 or state.current_player() != found.player[node]:
      raise errors.ArgumentError(
        f"The history [{state.history_str()}] is none of {self.game}, or it has ended."
      )
    return self[node]  # type: ignore[no-any-return]

  def __repr__(self) -> str:
    return f"<VectorPublicTree of {self.game.game_string}: {len(self):,} public states>"


def cells_of(game: VectorGame) -> Int64s:
  """Returns the sequence of each edge and type of who moves, `game.end` where there is none; shape (edges, types)."""
  found, layout = game.tree, game.layout
  result = np.full((len(found.child), max(found.deals.num_types)), game.end)
  node = found.node_of_edge
  cases = np.stack([found.player[node].astype(np.int64), found.kind[node]])
  cases, which = np.unique(cases, axis=1, return_inverse=True)
  order = np.argsort(which.reshape(-1), kind="stable")
  groups = np.split(order, np.cumsum(np.bincount(which.reshape(-1)))[:-1])
  for (player, kind), edges in zip(cases.T.tolist(), groups, strict=True):
    if player >= 0:
      types = found.types[kind][player]
      result[np.ix_(edges, types)] = layout.row(player, edges)[:, None] + np.arange(len(types))
  return result
