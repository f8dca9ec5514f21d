"""Public states of a game in vector form, and policies evaluated over them: arrays by node of the public tree and type.

No histories are listed. A counterfactual value of one player's type is a sum over the types of the other player.
"""

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.vector.public_tree import CHANCE
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.policies import open_spiel
from spiel_cfr.search.cut_outs import CutOut
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.history_walk import NONE
from spiel_cfr.search.public_nodes import PublicNodes
from spiel_cfr.search.public_trees import (
  AnyPublicState,
  BehavioralTree,
  Blueprint,
  Pair,
  Pairs,
  Start,
)
from spiel_cfr.search.vector_cut_out import cut_out

# Numbers in the matrices of subgames that are solved as one game.
_MOST_NUMBERS = 4_000_000


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
    paths = self.tree.game.tree.deals.paths
    return int(np.count_nonzero(paths[0] >= 0) + self.tree.nodes.depth[self.number])

  @property
  def players(self) -> tuple[int, ...]:
    return (int(self.tree.game.tree.player[self.number]),)

  def private_states(self, player: int) -> list[str]:
    """Returns a player's types here, by their information state strings; empty where chance moves."""
    player = arguments.integer(player, "player", 0, 1)
    return [] if self.players == (CHANCE,) else self.tree.nodes.names(self.number, player)

  def states(self, chosen: Any = slice(None)) -> list[Any]:
    """Returns OpenSpiel's states here, one for each deal that is possible, or for some of these."""
    return self.tree.nodes.states(self.number, chosen)

  def beliefs(self, policy: open_spiel.AnyPolicy, player: int) -> dict[str, float]:
    """Returns how likely each private state of a player's is under a policy of both, given that play has come here.

    NaN where the policy never comes here.
    """
    arguments.integer(player, "player", 0, 1)
    ranges = self.tree.blueprint(self.tree.entries(policy), 0).ranges(self.number)
    likely = ranges[player] * self.tree.chance_mass(self.number, player, ranges[1 - player])
    names = self.private_states(player)
    shares = likely[: len(names)] / (likely.sum() or np.nan)
    return dict(zip(names, shares.tolist(), strict=True))

  reach, value, private_values = map(_of_histories, ("reach", "value", "private_values"))

  def __repr__(self) -> str:
    found = self.tree.game.tree
    known = " x ".join(str(len(own)) for own in found.types[found.kind[self.number]])
    moves = " ".join(map(str, found.actions_above(self.number)))
    return f"<VectorPublicState {self.number}: [{moves}] after the deal, {known} types>"


class VectorPublicTree(BehavioralTree[VectorPublicState]):
  """All public states of a game in vector form, parents first. Make one with `public_states`.

  Attributes:
    game: the compiled game.
    above: int64 (public states,). The public state before the last move, `NONE` of the first.
    nodes: the public tree as arrays.
  """

  game: VectorGame
  _kind = VectorPublicState

  def __init__(self, game: VectorGame) -> None:
    """Takes a constant-sum game."""
    self.game, self.nodes = game, PublicNodes(game)
    self.above, self.largest_payoff = self.nodes.above, self.nodes.largest_payoff

  def _deciding(self, player: int) -> Int64s:
    return np.flatnonzero(self.game.tree.player == player)

  def natural_cut(self) -> list[VectorPublicState]:
    """Returns where play first goes on after chance has moved again, or else after both have moved."""
    player = self.game.tree.player
    acted, after = np.zeros((len(self), 2), bool), np.zeros(len(self), bool)
    for level in self.nodes.levels[1:]:
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

  def num_private_states(self, number: int) -> tuple[int, int]:
    first, second = map(len, self.nodes.types(number))
    return first, second

  def chance_mass(self, number: int, player: int, weights: Float64s) -> Float64s:
    chances = self.nodes.chances[self.game.tree.kind[number]]
    mass = self.nodes.spread(number, 1 - player, weights) @ (chances if player else chances.T)
    return np.asarray(mass[self.nodes.types(number)[player]])

  def blueprint(
    self, entries: Float64s, searcher: int, begins: Pairs | None = None
  ) -> "VectorBlueprint":
    return VectorBlueprint(self, entries, searcher, begins)

  def sequence_form(self, entries: Float64s, begins: Pairs | None = None) -> Float64s:
    nodes, result = self.nodes, np.zeros(len(entries) + 1)
    made = np.append(entries, 0.0)[nodes.cells]
    for player, own in enumerate(nodes.reach(made, begins)):
      edges = np.flatnonzero(nodes.owner == player)
      cells = nodes.cells[edges, : own.shape[1]]
      result[cells] = own[self.game.tree.node_of_edge[edges]] * made[edges, : own.shape[1]]
    return result[:-1]

  def cut_out(self, starts: Sequence[Start], gadget: Gadget, *, program: bool = False) -> CutOut:
    return cut_out(self.nodes, starts, gadget)

  def batches(self, starts: Iterable[Start], *, alone: bool) -> Iterator[list[Start]]:
    batch: list[Start] = []
    numbers = 0
    for start in starts:
      # At most a square for each terminal and player, the opponent's types twice.
      more = (
        int(self.nodes.num_ends[start.number]) * 4 * len(start.weights[0]) * len(start.weights[1])
      )
      if batch and (alone or numbers + more > _MOST_NUMBERS):
        yield batch
        batch, numbers = [], 0
      batch.append(start)
      numbers += more
    if batch:
      yield batch

  def __repr__(self) -> str:
    return f"<VectorPublicTree of {self.game.name}: {len(self):,} public states>"


class VectorBlueprint(Blueprint):
  """A policy of both players in vector form, see `Blueprint`.

  Attributes:
    reach: by player, float64 (nodes, types). The probability that the player plays to each node.
  """

  tree: VectorPublicTree

  def __init__(
    self, tree: VectorPublicTree, entries: Float64s, searcher: int, begins: Pairs | None = None
  ) -> None:
    """Evaluates a policy in behavioural form; `begins` are ranges with which play comes to some public states."""
    self.tree, self.entries, self.searcher, self._begins = tree, entries, searcher, begins
    self._made = np.append(entries, 0.0)[tree.nodes.cells]
    self.reach = tree.nodes.reach(self._made, begins)

  @functools.cached_property
  def worth(self) -> Pair:
    """The opponent's counterfactual values by its type: of nodes and of edges, float64 (nodes or edges, types)."""
    found, nodes, opponent = self.tree.game.tree, self.tree.nodes, 1 - self.searcher
    count = found.deals.num_types[opponent]
    worth, action_worth = np.zeros((found.num_nodes, count)), np.zeros((len(found.child), count))
    self._add_ends(action_worth)
    for level in reversed(nodes.levels):
      action_worth[level.inner] = worth[level.children]
      below = action_worth[level.edges]
      mine = (found.player[level.nodes] == opponent)[:, None]
      sums = np.add.reduceat(below, level.starts, axis=0)
      if self.responds:
        own = np.maximum.reduceat(below, level.starts, axis=0)
      else:
        own = np.add.reduceat(self._made[level.edges, :count] * below, level.starts, axis=0)
      worth[level.nodes] = np.where(mine, own, sums)
      for number, values in self.leaves.items():
        if nodes.depth[number] == nodes.depth[level.nodes[0]]:
          worth[number] = nodes.spread(number, opponent, values)
    return worth, action_worth

  def _add_ends(self, action_worth: Float64s) -> None:
    """Writes the opponent's counterfactual values where the game ends."""
    found, searcher, nodes = self.tree.game.tree, self.searcher, self.tree.nodes
    ends = np.flatnonzero(found.child < 0)
    matrix = found.matrix[-1 - found.child[ends]]
    for number in range(len(found.matrices)):
      edges = ends[matrix == number]
      own = self.reach[searcher][found.node_of_edge[edges]]
      mine = (nodes.owner[edges] == searcher)[:, None]
      own = own * np.where(mine, self._made[edges, : own.shape[1]], 1.0)
      payoffs = nodes.payoffs[number]
      action_worth[edges] = own @ (payoffs.T if searcher else -payoffs)

  @property
  def opponent_gets(self) -> float:
    return float(self.worth[0][0].sum())

  def action_values(self) -> Float64s:
    nodes, opponent = self.tree.nodes, 1 - self.searcher
    edges = np.flatnonzero(nodes.owner == opponent)
    result = np.zeros(len(self.entries) + 1)
    values = self.worth[1][edges]
    result[nodes.cells[edges, : values.shape[1]]] = values
    return result[:-1]

  def playing(self, entries: Float64s, *, answered: bool = False) -> "VectorBlueprint":
    return VectorBlueprint(self.tree, entries, self.searcher, self._begins)

  def ranges(self, number: int) -> Pair:
    first, second = (
      own[number, types]
      for own, types in zip(self.reach, self.tree.nodes.types(number), strict=True)
    )
    return first, second

  def values(self, number: int) -> Float64s:
    return np.asarray(self.worth[0][number, self.tree.nodes.types(number)[1 - self.searcher]])

  def gifts(self, number: int) -> Float64s:
    return np.asarray(self._gifts[number, self.tree.nodes.types(number)[1 - self.searcher]])

  @functools.cached_property
  def _gifts(self) -> Float64s:
    """The opponent's gifts on the way to each node, by its type, per unit of w; shape (nodes, types)."""
    found, (worth, action_worth) = self.tree.game.tree, self.worth
    result, mass = np.zeros_like(worth), np.zeros_like(worth)
    for kind, chances in enumerate(self.tree.nodes.chances):
      here = found.kind == kind
      mass[here] = self.reach[self.searcher][here] @ (chances.T if self.searcher else chances)
    for level in self.tree.nodes.levels:
      above = found.node_of_edge[level.inner]
      lost = np.maximum(worth[above] - action_worth[level.inner], 0.0)
      mine = (found.player[above] == 1 - self.searcher)[:, None] & (mass[above] > 0)
      result[level.children] = result[above] + np.where(
        mine, lost / np.where(mass[above] > 0, mass[above], 1.0), 0.0
      )
    return result
