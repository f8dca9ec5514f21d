"""Subgames of a game in vector form, with a gadget in front, as games in vector form: cut out of its public tree.

The matrices at terminals include the moves of chance and of the searcher on the way. The opponent's alternative to
playing on is one more terminal. So solvers, evaluation and linear programs treat a subgame as any other game. Subgames
that do not follow each other can be one game, in which chance chooses among them; an iterating solver changes each as
if it were alone.

Where the opponent follows with some probability (`Gadget.mixed`), each of its types is there twice: one that chooses,
and one whose offer is worse than any outcome of the game, so that it always goes on.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s, Integers, Uint16s, concatenated_ranges
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
    here = self.layout.cells(end)[concatenated_ranges(own.first_edge[self._added + mine], counts)]
    there = self._public.cells[concatenated_ranges(whole.first_edge[self._nodes[mine]], counts)]
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
    lane = concatenated_ranges(np.zeros_like(counts), counts)
    actions = np.repeat(self.tree.num_actions[own].astype(np.int64), counts)
    edges = concatenated_ranges(np.repeat(self.tree.first_edge[own], counts), actions)
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


class _TypePairs(NamedTuple):
  """Pairs of a type of the searcher and a type of the opponent. Each way of the opponent has its types once.

  Attributes:
    searcher: the player who is solved again.
    factors: float64 (subgames, searcher's types, ways x opponent's types). The factors of chance's probabilities.
    bounds: float64 (subgames, opponent's types). The bounds of the opponent.
  """

  searcher: int
  factors: Float64s
  bounds: Float64s

  @property
  def ways(self) -> int:
    """The number of ways in which the opponent comes to its types, see `Gadget.shares`."""
    return int(self.factors.shape[2] // self.bounds.shape[1])

  def turned(self, squares: Any) -> Any:
    """Turns squares of players 0 and 1 into squares of searcher and opponent, or back."""
    return squares.swapaxes(1, 2) if self.searcher else squares

  def weighed(self, squares: Float64s, subgames: Int64s) -> Float64s:
    """Returns squares of players 0 and 1, of some subgames, times the factors; by searcher and opponent."""
    return np.asarray(np.tile(self.turned(squares), self.ways) * self.factors[subgames])


class _Part(NamedTuple):
  """The part of a public tree that subgames play to.

  Attributes:
    nodes: int64 (nodes,). The nodes in the whole, ascending.
    subgame: int64 (nodes,). The subgame of each node.
    kind: int64 (nodes,). The place of each node's weights.
    weights: float64 (kinds, searcher's types, opponent's types). The probabilities of pairs, or `RULED_OUT`.
    edges: int64 (edges,). The edges in the whole.
    owner: int64 (edges,). The place of the node above each edge.
    child: int64 (edges,). The place of the node below each edge; `NONE` where the game ends.
  """

  nodes: Int64s
  subgame: Int64s
  kind: Int64s
  weights: Float64s
  edges: Int64s
  owner: Int64s
  child: Int64s


def cut_out(public: VectorRows, starts: Sequence[Start], gadget: Gadget) -> CutOut:
  """Returns the subgames below some nodes, none of which follows another, as one game.

  Args:
    public: the nodes of the whole.
    starts: the beginning of each subgame.
    gadget: the gadget in front of each.
  """
  searcher, begins = starts[0].searcher, np.array([start.number for start in starts])
  pairs = _pair_weights(public, starts, gadget)
  part = _reached_part(public, begins, pairs)
  front, largest = pairs.factors[:0], public.largest_payoff
  if gadget.front == "choice":
    largest = max(_PENALTY * largest, float(np.abs(pairs.bounds).max()))
    front = _offers(public, begins, pairs, largest)
  game = VectorSubgame(_tree(public, begins, pairs, part, front, largest), public, part.nodes)
  places = [game.places(player) for player in PLAYERS]
  (first_here, first_there, _), (second_here, second_there, _) = (
    # The opponent's strategy below a choice is none of the whole.
    [numbers[:0] for numbers in found] if gadget.is_safe and player != searcher else found
    for player, found in enumerate(places)
  )
  return CutOut(
    game,
    searcher,
    (first_here, second_here),
    (first_there, second_there),
    part.subgame[places[searcher][2]],
  )


def _pair_weights(public: VectorRows, starts: Sequence[Start], gadget: Gadget) -> _TypePairs:
  """Returns the factors of pairs of types, and the opponent's bounds."""
  searcher = starts[0].searcher
  opponent = 1 - searcher

  def all_types(player: int, numbers: Iterable[Float64s]) -> Float64s:
    """Returns numbers of a player's private states in each subgame, shape (subgames, types)."""
    return np.array(
      [public.spread(start.number, player, own) for start, own in zip(starts, numbers, strict=True)]
    )

  by_way = zip(*(gadget.shares(start.w, start.r) for start in starts), strict=True)
  shares = np.stack([all_types(opponent, own) for own in by_way], axis=1)
  searchers, opponents = (
    all_types(player, [start.weights[player] for start in starts])
    for player in (searcher, opponent)
  )
  columns = np.tile(opponents, shares.shape[1])[:, None] * shares.reshape(len(starts), 1, -1)
  bounds = all_types(opponent, [start.bound for start in starts])
  return _TypePairs(searcher, searchers[:, :, None] * columns, bounds)


def _reached_part(public: VectorRows, begins: Int64s, pairs: _TypePairs) -> _Part:
  """Returns the part of the whole below some nodes that chance plays to with some pair of types."""
  whole, subgame = public.game.tree, _inside(public, begins)
  nodes = np.flatnonzero(subgame >= 0)
  cases, kind = _distinct_pairs(subgame[nodes], whole.kind[nodes])
  weights = pairs.weighed(public.chances[cases[1]], cases[0])
  weights[weights == 0] = RULED_OUT
  reached = np.asarray((weights > 0).any(axis=(1, 2)))
  nodes, kind = nodes[reached[kind]], (np.cumsum(reached) - 1)[kind[reached[kind]]]
  place = np.full(whole.num_nodes, NONE)
  place[nodes] = np.arange(len(nodes))
  counts = whole.num_actions[nodes]
  edges, owner = (
    concatenated_ranges(whole.first_edge[nodes], counts),
    np.repeat(np.arange(len(nodes)), counts),
  )
  child = np.where(whole.child[edges] >= 0, place[np.maximum(whole.child[edges], 0)], NONE)
  kept = (whole.child[edges] < 0) | (child >= 0)
  return _Part(nodes, subgame[nodes], kind, weights[reached], edges[kept], owner[kept], child[kept])


def _offers(public: VectorRows, begins: Int64s, pairs: _TypePairs, penalty: float) -> Float64s:
  """Returns player 0's payoffs where the opponent takes the bound; dealt types pay the penalty for that.

  Shape (subgames, searcher's types, ways x opponent's types).
  """
  by_way = [pairs.bounds, np.full_like(pairs.bounds, -penalty)][: pairs.ways]
  sign = -1 if pairs.searcher == 0 else 1
  chances = pairs.weighed(public.chances[public.game.tree.kind[begins]], np.arange(len(begins)))
  return np.asarray(chances * (sign * np.concatenate(by_way, axis=1))[:, None])


def _tree(
  public: VectorRows,
  begins: Int64s,
  pairs: _TypePairs,
  part: _Part,
  front: Float64s,
  largest: float,
) -> TypedTree:
  """Returns chance's node, the opponent's choices if there are payoffs in front, and the part of the whole."""
  whole, number, offers = public.game.tree, len(begins), len(front)
  ends = part.child < 0
  cases, matrix = _distinct_pairs(
    part.subgame[part.owner[ends]], whole.matrix[-1 - whole.child[part.edges[ends]]]
  )
  payoffs = np.concatenate([front, pairs.weighed(public.payoffs[cases[1]], cases[0])])
  payoffs = pairs.turned(payoffs)
  # Chance's node comes first, then a choice for each offer. Terminals are numbered from the offers on, too.
  begins_here = np.searchsorted(part.nodes, begins)
  tops, choices = 1 + offers + begins_here, np.zeros(0, np.int64)
  if offers:
    choices = np.stack([-1 - np.arange(number), tops], axis=1).reshape(-1)
    tops = 1 + np.arange(number)
  child = np.where(ends, -offers - np.cumsum(ends), 1 + offers + part.child)
  actions = np.bincount(part.owner, minlength=len(part.nodes))
  movers = [CHANCE], np.full(offers, 1 - pairs.searcher), whole.player[part.nodes]
  moves = np.arange(number), np.tile([0, 1], offers), whole.action[part.edges]
  shape = payoffs.shape[1:]
  return TypedTree(
    player=np.concatenate(movers).astype(np.int8),
    kind=np.concatenate([[0], part.kind[begins_here][:offers], part.kind]).astype(np.int32),
    first_edge=np.cumsum(np.concatenate([[0, number], np.full(offers, 2), actions])),
    action=np.concatenate(moves).astype(np.int32),
    child=np.concatenate([tops, choices, child]).astype(np.int32),
    matrix=np.append(np.arange(offers), offers + matrix).astype(np.int32),
    deals=Deals(
      np.zeros((shape[0] * shape[1], 0), np.int64),
      np.indices(shape).reshape(2, -1),
      np.zeros(shape[0] * shape[1]),
    ),
    weights=pairs.turned(part.weights).reshape(len(part.weights), -1),
    matrices=np.stack([payoffs, -payoffs], axis=1),
    payoff_range=(-largest, largest),
    constant_sum=0.0,
  )


def _inside(public: VectorRows, begins: Int64s) -> Int64s:
  """Returns below which of some nodes each node is, -1 for none."""
  result = np.full(len(public.above), -1)
  result[begins] = np.arange(len(begins))
  for nodes in list(public.game.tree.levels())[1:]:
    above = result[public.above[nodes]]
    result[nodes] = np.where(above >= 0, above, result[nodes])
  return result


def _distinct_pairs(first: Integers, second: Integers) -> tuple[Int64s, Int64s]:
  """Returns the different pairs of two arrays, shape (2, pairs), and which each is."""
  pairs, which = np.unique(np.stack([first, second]), axis=1, return_inverse=True)
  return pairs.astype(np.int64), which.reshape(-1)
