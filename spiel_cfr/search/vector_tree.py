"""The tree of public states for games in vector form: public states are the nodes of the public tree."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.openspiel import answers
from spiel_cfr.games.vector.public_tree import CHANCE
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.search.cut_outs import CutOut, Start
from spiel_cfr.search.forest_tree import ForestTree
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.private_forest import NONE
from spiel_cfr.search.search_tree import PublicState
from spiel_cfr.search.vector_cut_out import cut_out
from spiel_cfr.search.vector_rows import VectorRows

# The largest number of matrix elements in subgames that are solved as one game.
_MOST_NUMBERS = 4_000_000


class VectorTree(ForestTree):
  """All public states of a game in vector form, parents first; `public_states` makes one.

  Attributes:
    game: the compiled game.
    nodes: `VectorRows`. The nodes of the public tree, and both players' types there.
  """

  game: VectorGame

  def __init__(self, game: VectorGame) -> None:
    """Takes a constant-sum game."""
    self.game, self.nodes = game, VectorRows(game)
    self.above, self.forests = self.nodes.above, self.nodes.forests
    self.largest_payoff = self.nodes.largest_payoff
    self.first_length = int(np.count_nonzero(game.tree.deals.paths[0] >= 0))

  def rows(self, number: int, player: int) -> Int64s:
    return np.asarray(self.nodes.first_row[player][number] + self.nodes.types(number)[player])

  def counterfactual_reach_of_rows(self, player: int, reach: Float64s) -> Float64s:
    return self.nodes.counterfactual_reach_of_rows(player, reach)

  def ends(self, player: int, reach: Float64s) -> Float64s:
    return self.nodes.ends(player, reach)

  def end_pairs(self, numbers: Int64s) -> tuple[Int64s, Int64s, Float64s]:
    return self.nodes.ends_at(numbers)

  def movers(self) -> tuple[Int64s, Int64s]:
    return np.arange(len(self)), self.game.tree.player.astype(np.int64)

  def length(self, number: int) -> int:
    return self.first_length + int(self.nodes.depth[number])

  def names(self, number: int, player: int) -> list[str]:
    decides = self.game.tree.player[number] != CHANCE
    return self.nodes.names(number, player) if decides else []

  def states(self, number: int) -> list[Any]:
    return self.nodes.states(number)

  def pairs(self, number: int) -> tuple[Int64s, Int64s, Float64s]:
    tree = self.game.tree
    weights = tree.weights[tree.kind[number]]
    alive = weights >= 0
    first, second = (
      np.searchsorted(own, types[alive])
      for own, types in zip(self.nodes.types(number), tree.deals.types, strict=True)
    )
    return first, second, weights[alive]

  def counterfactual_reach(self, number: int, player: int, weights: Float64s) -> Float64s:
    chances = self.nodes.chances[self.game.tree.kind[number]]
    reach = self.nodes.spread(number, 1 - player, weights) @ (chances if player else chances.T)
    return np.asarray(reach[self.nodes.types(number)[player]])

  def described(self, number: int) -> str:
    counts = " x ".join(map(str, self.num_private_states(number)))
    moves = " ".join(map(str, self.game.tree.actions_above(number)))
    return f"[{moves}] after the deal, {counts} types"

  def public_state_of(self, state: Any) -> PublicState:
    """Returns the public state of a state of OpenSpiel.

    Raises:
      ArgumentError: the state is terminal, or does not belong to this game.
    """
    tree = self.game.tree
    state = self.game.view.own_state(state, max(0, answers.current_player(state)))
    moves = [(each.player, each.action) for each in state.full_history()]
    after = list(itertools.dropwhile(lambda move: move[0] == CHANCE, moves))
    deal = np.full(tree.deals.paths.shape[1], NONE)
    dealt = [action for _, action in moves[: len(moves) - len(after)]][: len(deal)]
    deal[: len(dealt)] = dealt
    node = 0 if (tree.deals.paths == deal).all(axis=1).any() else NONE
    for _, action in after if node == 0 else []:
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

  def cut_out(self, starts: Sequence[Start], gadget: Gadget, *, program: bool = False) -> CutOut:
    return cut_out(self.nodes, starts, gadget)

  def batches(self, starts: Iterable[Start], *, alone: bool) -> Iterator[list[Start]]:
    batch: list[Start] = []
    numbers = 0
    for start in starts:
      # An upper bound: one matrix for each terminal and player, with the opponent's types twice.
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
    return f"<VectorTree of {self.game.name}: {len(self):,} public states>"
