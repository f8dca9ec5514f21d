"""Subgames of a game in vector form, with a gadget in front, as games in vector form: cut out of its public tree.

What chance and the searcher do on the way is inside the matrices at terminals, and what the opponent may take instead
of playing on is one more terminal: so solvers, evaluation and linear programs take them as any other game. Subgames
that do not follow each other can be one game, in which chance says which of them it is; a solver that iterates changes
each as if it were alone.

Where the opponent follows with some probability (`Gadget.mixed`), each of its types is there twice: one that chooses,
and one whose offer is worse than any outcome of the game, so that it always goes on.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s, Integers, Uint16s, spread
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.sequence_form.blocks import as_scale
from spiel_cfr.games.vector.deals import RULED_OUT, Deals
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.public_tree import CHANCE, PLAYERS
from spiel_cfr.games.vector.public_tree_game import PublicTreeGame
from spiel_cfr.games.vector.typed_terminals import TypedTerminals, loss_bounds
from spiel_cfr.games.vector.typed_tree import TypedTree
from spiel_cfr.search.cut_outs import CutOut, Start
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.private_forest import NONE
from spiel_cfr.search.vector_rows import VectorRows

# What those lose who must not take what is offered, in units of the largest payoff.
_PENALTY = 3.0


class VectorSubgame(PublicTreeGame):
  """Subgames, none of which follows another, as one game."""

  tree: TypedTree
  # It has no states.
  view = CompiledGame.view

  def __init__(self, tree: TypedTree, public: VectorRows, nodes: Int64s) -> None:
    """Takes a public tree.

    Args:
      tree: a node for chance, one for the choice in each subgame if there is one, then nodes of the whole.
      public: the nodes of the whole.
      nodes: int64 (nodes,). The numbers there of the last nodes of `tree`, ascending.
    """
    facts = GameFacts(
      game_string=f"subgame of {public.game.game_string}",
      num_distinct_actions=max(public.game.num_distinct_actions, 2),
      payoff_range=tree.payoff_range,
      constant_sum=tree.constant_sum,
      num_states=tree.num_nodes + len(tree.matrix),
      num_terminals=len(tree.matrix),
      open_spiel_version=None,
    )
    super().__init__(facts, tree, np.float64, None, None)
    self._public, self._nodes = public, nodes
    self._added = tree.num_nodes - len(nodes)

  def _builder(self, layout: Layout, above: Int32s) -> TypedTerminals:
    return TypedTerminals(self.tree, layout, above, self.dtype)

  @functools.cached_property
  def loss_bounds(self) -> Float64s:
    """See `VectorGame.loss_bounds`."""
    return loss_bounds(self.tree, self.layout)

  @functools.cached_property
  def scale(self) -> Uint16s:
    """See `VectorGame.scale`."""
    return as_scale(loss_bounds(self.tree, self.layout))

  def places(self, player: int) -> tuple[Int64s, Int64s, Int64s]:
    """Returns a player's actions: their sequences here and in the whole, and their nodes as places in `nodes`."""
    whole, own, end = self._public.game.tree, self.tree, self.end
    mine = np.flatnonzero(whole.player[self._nodes] == player)
    counts = whole.num_actions[self._nodes[mine]].astype(np.int64)
    here = self.layout.cells(end)[spread(own.first_edge[self._added + mine], counts)]
    there = self._public.cells[spread(whole.first_edge[self._nodes[mine]], counts)]
    here = here[:, : there.shape[1]]
    alive = here < end
    return here[alive], there[alive], np.repeat(np.repeat(mine, counts), alive.sum(axis=1))

  @functools.cached_property
  def infosets(self) -> tuple[Infosets, ...]:
    """Each player's infosets, named as in the whole; the gadget's have names with a colon."""
    return tuple(map(self._named, PLAYERS))

  def _named(self, player: int) -> Infosets:
    public, whole, layout = self._public, self._public.game, self.layout
    known = whole.infosets[player]
    by_position = dict(zip(known.position.tolist(), known.infostates, strict=True))
    begin = int(whole.layout.first_infosets[player, 0])
    width = whole.tree.deals.num_types[player]
    own = np.flatnonzero(self.tree.player == player)
    types = [self.tree.types[kind][player] for kind in self.tree.kind[own].tolist()]
    names: list[str] = []
    for number, here in zip(own.tolist(), types, strict=True):
      is_choice = number < self._added
      below = int(self.tree.child[self.tree.first_edge[number] + 1]) if is_choice else number
      node = int(self._nodes[below - self._added])
      lanes = np.searchsorted(whole.tree.types[whole.tree.kind[node]][player], here % width)
      if is_choice:
        private = public.names(node, player)
        labels = [f"choice: {private[lane]}" for lane in lanes.tolist()]
      else:
        first = int(whole.layout.infoset[node]) - begin
        labels = [by_position[first + lane] for lane in lanes.tolist()]
      names += ["dealt: " * int(t >= width) + name for t, name in zip(here, labels, strict=True)]
    counts = np.array([len(each) for each in types], np.int64)
    lane = spread(np.zeros_like(counts), counts)
    actions = np.repeat(self.tree.num_actions[own].astype(np.int64), counts)
    edges = spread(np.repeat(self.tree.first_edge[own], counts), actions)
    return Infosets(
      infostates=names,
      actions=self.tree.action[edges].astype(np.int64),
      num_actions=actions,
      position=(
        np.repeat(layout.infoset[own] - layout.first_infosets[player, 0], counts) + lane
      ).astype(np.uint32),
      first_sequence=(np.repeat(layout.first[own], counts) + lane).astype(np.uint32),
      stride=np.repeat(layout.stride[own], counts).astype(np.uint32),
    )


def cut_out(public: VectorRows, starts: Sequence[Start], gadget: Gadget) -> CutOut:
  """Returns the subgames below some nodes, none of which follows another, as one game.

  Args:
    public: the nodes of the whole.
    starts: the beginning of each subgame.
    gadget: the gadget in front of each.
  """
  searcher, number = starts[0].searcher, len(starts)
  opponent, whole = 1 - searcher, public.game.tree
  offers = number if gadget.front == "choice" else 0
  begins = np.array([start.number for start in starts])

  def all_types(player: int, numbers: Sequence[Float64s]) -> Float64s:
    """Returns numbers of a player's private states in each subgame, shape (subgames, types)."""
    return np.array(
      [public.spread(node, player, own) for node, own in zip(begins, numbers, strict=True)]
    )

  # By subgame, way and type of the opponent, see `Gadget.shares`.
  ways = [gadget.shares(each.mass, each.dealt) for each in starts]
  shares = np.stack([all_types(opponent, list(own)) for own in zip(*ways, strict=True)], axis=1)
  copies = shares.shape[1]
  bounds = all_types(opponent, [start.bound for start in starts])
  own, theirs = (
    all_types(player, [start.weights[player] for start in starts])
    for player in (searcher, opponent)
  )
  # The factors of chance's probabilities of pairs of types.
  scales = own[:, :, None] * np.tile(theirs, copies)[:, None] * shares.reshape(number, 1, -1)

  def turned(squares: Any) -> Any:
    """Turns squares of the players' types into those of the searcher's and the opponent's, or back."""
    return squares.swapaxes(1, 2) if searcher else squares

  def copied(squares: Any) -> Any:
    return np.tile(turned(squares), copies)

  inside = _inside(public, begins)
  nodes = np.flatnonzero(inside >= 0)
  cases, kind = _pairs(inside[nodes], whole.kind[nodes])
  weights = copied(public.chances[cases[1]]) * scales[cases[0]]
  weights[weights == 0] = RULED_OUT
  # What chance never does for the types that are left is left out.
  stays = (weights > 0).any(axis=(1, 2))
  nodes, kind = nodes[stays[kind]], (np.cumsum(stays) - 1)[kind[stays[kind]]]
  place = np.full(whole.num_nodes, -1)
  place[nodes] = 1 + offers + np.arange(len(nodes))

  counts = whole.num_actions[nodes]
  edges, owner = spread(whole.first_edge[nodes], counts), np.repeat(np.arange(len(nodes)), counts)
  child = np.where(whole.child[edges] >= 0, place[np.maximum(whole.child[edges], 0)], NONE)
  there = (whole.child[edges] < 0) | (child >= 0)
  edges, owner, child = edges[there], owner[there], child[there]
  ends = child < 0
  child[ends] = -1 - offers - np.arange(np.count_nonzero(ends))
  cases, matrix = _pairs(inside[nodes[owner[ends]]], whole.matrix[-1 - whole.child[edges[ends]]])
  # What the searcher gets.
  payoffs = (1 - 2 * searcher) * copied(public.payoffs[cases[1]]) * scales[cases[0]]
  begins_whole, begins = begins, place[begins]
  largest, first = public.largest_payoff, 1 + offers
  tops, choices = begins, np.zeros(0, np.int64)
  if offers:
    largest = max(_PENALTY * largest, float(np.abs(bounds).max()))
    gets = np.concatenate([-bounds, np.full_like(bounds, largest)][:copies], axis=1)
    chances = copied(public.chances[whole.kind[begins_whole]])
    payoffs = np.concatenate([chances * scales * gets[:, None], payoffs])
    tops = 1 + np.arange(number)
    choices = np.stack([-tops, begins], axis=1).reshape(-1)
  actions = np.bincount(owner, minlength=len(nodes))
  matrices = np.stack([turned(payoffs), -turned(payoffs)], axis=1)
  shape = matrices.shape[2:]
  tree = TypedTree(
    player=np.concatenate([[CHANCE], np.full(offers, opponent), whole.player[nodes]]).astype(
      np.int8
    ),
    kind=np.concatenate([[0], kind[begins - first][:offers], kind]).astype(np.int32),
    first_edge=np.cumsum(np.concatenate([[0, number], np.full(offers, 2), actions])),
    action=np.concatenate([np.arange(number), np.tile([0, 1], offers), whole.action[edges]]).astype(
      np.int32
    ),
    child=np.concatenate([tops, choices, child]).astype(np.int32),
    matrix=np.append(np.arange(offers), offers + matrix).astype(np.int32),
    deals=Deals(
      np.zeros((shape[0] * shape[1], 0), np.int64),
      np.indices(shape).reshape(2, -1),
      np.zeros(shape[0] * shape[1]),
    ),
    weights=turned(weights[stays]).reshape(np.count_nonzero(stays), -1),
    matrices=matrices if searcher == 0 else matrices[:, ::-1].copy(),
    payoff_range=(-largest, largest),
    constant_sum=0.0,
  )
  game = VectorSubgame(tree, public, nodes)
  # The opponent's strategy below a choice is none of the whole.
  places = [game.places(player) for player in PLAYERS]
  none = np.zeros(0, np.int64)
  if gadget.is_safe:
    places[opponent] = none, none, none
  (first_here, first_there, _), (second_here, second_there, _) = places
  return CutOut(
    game,
    searcher,
    (first_here, second_here),
    (first_there, second_there),
    inside[nodes][places[searcher][2]],
  )


def _inside(public: VectorRows, begins: Int64s) -> Int64s:
  """Returns below which of some nodes each node is, -1 for none."""
  result = np.full(len(public.above), -1)
  result[begins] = np.arange(len(begins))
  for nodes in list(public.game.tree.levels())[1:]:
    above = result[public.above[nodes]]
    result[nodes] = np.where(above >= 0, above, result[nodes])
  return result


def _pairs(first: Integers, second: Integers) -> tuple[Int64s, Int64s]:
  """Returns the different pairs of two arrays, shape (2, pairs), and which each is."""
  pairs, which = np.unique(np.stack([first, second]), axis=1, return_inverse=True)
  return pairs.astype(np.int64), which.reshape(-1)
