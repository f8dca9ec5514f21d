"""Public states of a game in vector form, and where both players stand there: by node of the public tree and type.

Nobody lists histories. What search asks of them are sums over the types of who is not asked about.
"""

import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, spread
from spiel_cfr._util import arguments
from spiel_cfr.games.vector.public_tree import CHANCE
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.policies import open_spiel
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.history_walk import NONE
from spiel_cfr.search.public_nodes import AnyPublicState, AnyPublicTree
from spiel_cfr.search.standing import UNLIKELY


def _of_histories(name: str) -> Any:
  """Returns a method that says that listed public states have it."""

  def refuse(self: "VectorPublicState", *_: Any, **__: Any) -> Any:
    """Raises UnsupportedGameError: listed public states have this."""
    raise errors.UnsupportedGameError(
      f"{self!r} lists no histories, and so has no {name}. Call public_states on what "
      "compile_game(game, vector_form=False) returns."
    )

  return refuse


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
    paths = self.tree.game.tree.deals.paths
    return int(np.count_nonzero(paths[0] >= 0) + self.tree.depth[self.number])

  @property
  def players(self) -> tuple[int, ...]:
    """Who is to move; chance is -1."""
    return (int(self.tree.game.tree.player[self.number]),)

  @property
  def place(self) -> int:
    """Its number."""
    return self.number

  def private_states(self, player: int) -> list[str]:
    """Returns what a player may know here: its information state strings, by type; empty where nobody decides."""
    game = self.tree.game
    deals, weights = game.tree.deals, game.tree.weights[game.tree.kind[self.number]]
    own = deals.types[arguments.integer(player, "player", 0, 1), weights >= 0]
    if self.players == (CHANCE,):
      return []
    states = self.states(np.unique(own, return_index=True)[1])
    return [game.view.named(state, player) for state in states]

  def states(self, chosen: Any = slice(None)) -> list[Any]:
    """Returns OpenSpiel's states here, one for each deal that is possible, or for some of these."""
    game = self.tree.game
    alive = game.tree.weights[game.tree.kind[self.number]] >= 0
    result = []
    for path in game.tree.deals.paths[alive][chosen]:
      result.append(game.view.new_initial_state())
      for action in [*path[path >= 0].tolist(), *game.tree.actions_above(self.number)]:
        result[-1].apply_action(action)
    return result

  def beliefs(self, policy: open_spiel.AnyPolicy, player: int) -> dict[str, float]:
    """Returns how likely each private state of a player's is under a policy of both, given that play has come here.

    NaN where the policy never comes here.
    """
    arguments.integer(player, "player", 0, 1)
    kind = int(self.tree.game.tree.kind[self.number])
    reach = [own[self.number] for own in self.tree.standing(self.tree.entries(policy), 0).reach]
    joint = reach[0][:, None] * self.tree.chances[kind] * reach[1]
    likely = joint.sum(axis=1 - player) / (joint.sum() or np.nan)
    names = self.private_states(player)
    types = self.tree.game.tree.types[kind][player][: len(names)]
    return dict(zip(names, likely[types].tolist(), strict=True))

  reach, value, private_values = map(_of_histories, ("reach", "value", "private_values"))

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
    cells: see `Layout.cells`.
    chances: chance's probability of each pair of types and all that it did on the way, shape (kinds, types of player 0,
      types of player 1).
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

  def entries(self, policy: open_spiel.AnyPolicy) -> Float64s:
    """Returns a policy in behavioural form.

    Raises:
      PolicyError: the policy is not one for this game.
    """
    return open_spiel.from_policy(self.game, policy)

  def behavioral_form(self, entries: Float64s) -> Float64s:
    """Returns the same."""
    return entries

  def standing(self, entries: Float64s, searcher: int) -> "VectorStanding":
    """Returns where both players stand when they play these, before one of them searches."""
    return VectorStanding(self, entries, arguments.integer(searcher, "searcher", 0, 1))

  def owned(self, player: int) -> Bools:
    """Returns which sequences are a player's."""
    second = np.arange(self.game.end) >= self.game.layout.roots[1]
    return np.asarray(second == arguments.integer(player, "player", 0, 1))

  def _deciding(self, player: int) -> Int64s:
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
    after = list(itertools.dropwhile(lambda move: move[0] == CHANCE, moves))
    deal = np.full(found.deals.paths.shape[1], NONE)
    dealt = [action for _, action in moves[: len(moves) - len(after)]][: len(deal)]
    deal[: len(dealt)] = dealt
    node = 0 if (found.deals.paths == deal).all(axis=1).any() else NONE
    for _, action in after if node == 0 else []:
      edges = np.arange(found.first_edge[node], found.first_edge[node + 1])
      edges = edges[found.action[edges] == action]
      node = int(found.child[edges[0]]) if len(edges) else NONE
      if node < 0:
        break
    mover = state.current_player()
    if (
      node < 0
      or mover != found.player[node]
      or (mover >= 0 and self.game.view.named(state, mover) not in self[node].private_states(mover))
    ):
      raise errors.ArgumentError(
        f"The history [{state.history_str()}] is none of {self.game}, or it has ended, or types are still to be dealt."
      )
    return self[node]  # type: ignore[no-any-return]

  def __repr__(self) -> str:
    return f"<VectorPublicTree of {self.game.name}: {len(self):,} public states>"


@dataclasses.dataclass(frozen=True)
class VectorRoots:
  """How a subgame begins; J are the opponent's types.

  Attributes:
    node: where.
    weights: what chance's probability of a pair of types is multiplied by there, shape (types of the searcher, types of
      the opponent): what the searcher plays, and in the gadget "unsafe" the opponent, to a sum of 1; 0 of types of the
      opponent that the searcher as good as never lets happen.
    mass: w of each J.
    bound: the bound of each J.
    dealt: w r of each J.
  """

  node: int
  weights: Float64s
  mass: Float64s
  bound: Float64s
  dealt: Float64s


class VectorStanding:
  """Where both players stand in a game in vector form.

  Attributes:
    tree: the public states.
    entries: the policy of both in behavioural form, shape (sequences,).
    searcher: who is going to be solved again.
    reach: what each player plays to each node, by its type: two of shape (nodes, types).
    action_values: what the opponent gets after each edge by a best response, by its type, times what chance and the
      searcher do on the way; shape (edges, types).
    values: the same of nodes.
  """

  def __init__(self, tree: VectorPublicTree, entries: Float64s, searcher: int) -> None:
    """Evaluates a policy."""
    self.tree, self.entries, self.searcher = tree, entries, searcher
    found, opponent = tree.game.tree, 1 - searcher
    made = np.append(entries, 0.0)[tree.cells]
    self.reach = [np.ones((found.num_nodes, count)) for count in found.deals.num_types]
    for level in tree.levels:
      above = found.node_of_edge[level.inner]
      for player, own in enumerate(self.reach):
        mine = (tree.owner[level.inner] == player)[:, None]
        own[level.children] = own[above] * np.where(mine, made[level.inner, : own.shape[1]], 1.0)
    self.action_values = np.zeros((len(found.child), found.deals.num_types[opponent]))
    self._add_ends(made)
    self.values = np.zeros((found.num_nodes, found.deals.num_types[opponent]))
    for level in reversed(tree.levels):
      self.action_values[level.inner] = self.values[level.children]
      worth = self.action_values[level.edges]
      sums = np.add.reduceat(worth, level.starts, axis=0)
      best = np.maximum.reduceat(worth, level.starts, axis=0)
      mine = (found.player[level.nodes] == opponent)[:, None]
      self.values[level.nodes] = np.where(mine, best, sums)

  def _add_ends(self, made: Float64s) -> None:
    """Writes what the opponent gets where the game ends."""
    found, searcher = self.tree.game.tree, self.searcher
    ends = np.flatnonzero(found.child < 0)
    matrix = found.matrix[-1 - found.child[ends]]
    for number in range(len(found.matrices)):
      edges = ends[matrix == number]
      own = self.reach[searcher][found.node_of_edge[edges]]
      mine = (self.tree.owner[edges] == searcher)[:, None]
      own = own * np.where(mine, made[edges, : own.shape[1]], 1.0)
      payoffs = self.tree.payoffs[number]
      self.action_values[edges] = own @ (payoffs.T if searcher else -payoffs)

  @property
  def opponent_gets(self) -> float:
    """What the opponent gets from a best response, less half of what the returns sum to."""
    return float(self.values[0].sum())

  @property
  def largest_payoff(self) -> float:
    """The largest that there is, of either sign."""
    return self.tree.largest_payoff

  def length(self, node: int) -> int:
    """Returns the number of moves before a node."""
    return int(self.tree[node].length)

  def playing(self, entries: Float64s, *, answered: bool = False) -> "VectorStanding":
    """Returns where the players stand when they play otherwise."""
    return VectorStanding(self.tree, entries, self.searcher)

  def is_open(self, node: int) -> bool:
    """Returns False: policies of a whole game have answers to all actions."""
    return False

  def _chances(self, kind: Any) -> Float64s:
    """Returns chance's probability of pairs of types, the searcher's first."""
    chances: Float64s = self.tree.chances[kind]
    return chances.T if self.searcher else chances

  @functools.cached_property
  def mass(self) -> Float64s:
    """How likely chance and the searcher make each node and type of the opponent (w), shape (nodes, types)."""
    kind = self.tree.game.tree.kind
    result = np.zeros_like(self.values)
    for number in range(len(self.tree.chances)):
      here = kind == number
      result[here] = self.reach[self.searcher][here] @ self._chances(number)
    return result

  @functools.cached_property
  def gifts(self) -> Float64s:
    """g: what the opponent gives away on the way to each node, by its type, per unit of w; shape (nodes, types)."""
    found, result = self.tree.game.tree, np.zeros_like(self.values)
    for level in self.tree.levels:
      above = found.node_of_edge[level.inner]
      mass = self.mass[above]
      lost = np.maximum(self.values[above] - self.action_values[level.inner], 0.0)
      mine = (found.player[above] == 1 - self.searcher)[:, None] & (mass > 0)
      result[level.children] = result[above] + np.where(
        mine, lost / np.where(mass > 0, mass, 1.0), 0.0
      )
    return result

  def bounds(self, node: int, gadget: Gadget) -> VectorRoots | None:
    """Returns how the subgame below a node begins; None if nobody comes there."""
    others = self.reach[1 - self.searcher][node]
    weights = np.repeat(self.reach[self.searcher][node][:, None], len(others), axis=1)
    if not gadget.is_safe:
      weights = weights * others
    mass = (self._chances(self.tree.game.tree.kind[node]) * weights).sum(axis=0)
    kept = mass > UNLIKELY * mass.max()
    if not kept.any():
      return None
    total = mass[kept].sum()
    mass = np.where(kept, mass, 0.0) / total
    bound = self._per_unit(node)
    if gadget.reach:
      bound = bound + self.gifts[node]
    return VectorRoots(node, np.where(kept, weights, 0.0) / total, mass, bound, mass * others)

  def _per_unit(self, node: int) -> Float64s:
    """Returns what the opponent expects at a node by its type, given that it is there; 0 where that never happens."""
    mass = self.mass[node]
    return np.asarray(np.divide(self.values[node], mass, out=0.0 * mass, where=mass > 0))

  def smallest_margin(self, roots: VectorRoots) -> float:
    """Returns the least by which the bounds are above what the opponent gets by what is played here."""
    return float((roots.bound - self._per_unit(roots.node))[roots.mass > 0].min())
