"""Subgames of a game in vector form, with a gadget in front, as games in vector form: cut out of its public tree.

Chance's and the searcher's probabilities of playing to the subgame are factors of the matrices at terminals. The
opponent's alternative to playing on is one more terminal. Solvers, evaluation and linear programs therefore treat a
subgame as any other game. Subgames that are not below each other can form one game, in which chance chooses among them.
An iterative solver changes the strategy of each as if it were alone.

If the opponent sometimes has to play on (`Gadget.mixed`), each of its types occurs twice. One of the two chooses. The
other has an offer that is worse than any outcome of the game, so it always plays on.
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

# The loss of a type that takes its offer although it has to play on, in units of the largest payoff.
_PENALTY = 3.0


class VectorSubgame(PublicTreeGame):
  """Subgames, none of which is below another, as one game."""

  tree: TypedTree
  # The game has no OpenSpiel states.
  view = CompiledGame.view

  def __init__(self, tree: TypedTree, public: VectorRows, nodes: Int64s) -> None:
    """Makes the game of a public tree.

    Args:
      tree: the public tree: chance's node, a node for the choice in each subgame if there is one, then nodes of the
        whole game.
      public: the nodes of the whole game.
      nodes: int64 (nodes,). The indices in the whole game of the last nodes of `tree`, ascending.
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
    """Returns a player's actions as three arrays.

    The arrays are their sequences in the subgames, those in the whole game, and the positions of their nodes in
    `nodes`.
    """
    whole, own, end = self._public.game.tree, self.tree, self.end
    own_nodes = np.flatnonzero(whole.player[self._nodes] == player)
    counts = whole.num_actions[self._nodes[own_nodes]].astype(np.int64)
    here = self.layout.cells(end)[
      concatenated_ranges(own.first_edge[self._added + own_nodes], counts)
    ]
    there = self._public.cells[
      concatenated_ranges(whole.first_edge[self._nodes[own_nodes]], counts)
    ]
    here = here[:, : there.shape[1]]
    alive = here < end
    return here[alive], there[alive], np.repeat(np.repeat(own_nodes, counts), alive.sum(axis=1))

  @functools.cached_property
  def infosets(self) -> tuple[Infosets, ...]:
    """Each player's infosets, named as in the whole game; the gadget's names contain a colon."""
    return tuple(map(self._named, PLAYERS))

  def _named(self, player: int) -> Infosets:
    public, whole, layout = self._public, self._public.game, self.layout
    infosets = whole.infosets[player]
    by_position = dict(zip(infosets.position.tolist(), infosets.infostates, strict=True))
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
  """Pairs of a type of the searcher and a type of the opponent; the opponent's types occur once for each way.

  Attributes:
    searcher: the player whose strategy is re-solved.
    factors: float64 (subgames, searcher's types, ways x opponent's types). The factors of chance's probabilities.
    bounds: float64 (subgames, opponent's types). The opponent's bounds.
  """

  searcher: int
  factors: Float64s
  bounds: Float64s

  @property
  def ways(self) -> int:
    """The number of ways in which the opponent comes to its types, see `Gadget.shares`."""
    return int(self.factors.shape[2] // self.bounds.shape[1])

  def turned(self, squares: Any) -> Any:
    """Returns matrices of players 0 and 1 as matrices of searcher and opponent, or back."""
    return squares.swapaxes(1, 2) if self.searcher else squares

  def weighed(self, squares: Float64s, subgames: Int64s) -> Float64s:
    """Returns matrices of players 0 and 1 in some subgames, times the factors, by searcher and opponent."""
    return np.asarray(np.tile(self.turned(squares), self.ways) * self.factors[subgames])


class _Part(NamedTuple):
  """The part of the public tree to which some pair of types in the subgames plays.

  Attributes:
    nodes: int64 (nodes,). The indices of the nodes in the whole game, ascending.
    subgame: int64 (nodes,). The position of each node's subgame.
    kind: int64 (nodes,). The position in `weights` of each node's weights.
    weights: float64 (kinds, searcher's types, opponent's types). The probabilities of pairs, or `RULED_OUT`.
    edges: int64 (edges,). The indices of the edges in the whole game.
    owner: int64 (edges,). The position in `nodes` of the node above each edge.
    child: int64 (edges,). The position in `nodes` of the node below each edge; `NONE` where the game ends.
  """

  nodes: Int64s
  subgame: Int64s
  kind: Int64s
  weights: Float64s
  edges: Int64s
  owner: Int64s
  child: Int64s


def cut_out(public: VectorRows, starts: Sequence[Start], gadget: Gadget) -> CutOut:
  """Returns the subgames below some nodes, none of which is below another, as one game.

  Args:
    public: the nodes of the whole game.
    starts: the beginnings of the subgames.
    gadget: the gadget in front of each subgame.
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
    # The opponent's strategy below a choice is not one of the whole game.
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
    """Returns arrays over a player's private states in each subgame as one array, shape (subgames, types)."""
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
  """Returns the nodes and edges below some nodes that have a positive probability for some pair of types."""
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
  possible = (whole.child[edges] < 0) | (child >= 0)
  edges, owner, child = edges[possible], owner[possible], child[possible]
  return _Part(nodes, subgame[nodes], kind, weights[reached], edges, owner, child)


def _offers(public: VectorRows, begins: Int64s, pairs: _TypePairs, penalty: float) -> Float64s:
  """Returns player 0's payoffs where the opponent takes its bound; dealt types pay the penalty there.

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
  """Returns chance's node, the opponent's choices if `front` has payoffs, and the part of the whole game, as a tree."""
  whole, number, offers = public.game.tree, len(begins), len(front)
  ends = part.child < 0
  cases, matrix = _distinct_pairs(
    part.subgame[part.owner[ends]], whole.matrix[-1 - whole.child[part.edges[ends]]]
  )
  payoffs = np.concatenate([front, pairs.weighed(public.payoffs[cases[1]], cases[0])])
  payoffs = pairs.turned(payoffs)
  # Chance's node comes first, then a choice for each offer. The terminals of the offers also come first.
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
  """Returns the position, in a list of nodes, of the one that each node is or is below; -1 if there is none."""
  result = np.full(len(public.above), -1)
  result[begins] = np.arange(len(begins))
  for nodes in list(public.game.tree.levels())[1:]:
    above = result[public.above[nodes]]
    result[nodes] = np.where(above >= 0, above, result[nodes])
  return result


def _distinct_pairs(first: Integers, second: Integers) -> tuple[Int64s, Int64s]:
  """Returns the distinct pairs of two arrays, shape (2, pairs), and the position of each element's pair."""
  pairs, which = np.unique(np.stack([first, second]), axis=1, return_inverse=True)
  return pairs.astype(np.int64), which.reshape(-1)
