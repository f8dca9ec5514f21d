"""Subgames of a game in vector form, with a gadget in front, as games in vector form: cut out of its public tree.

What chance and the searcher do on the way is inside the matrices at terminals, and what the opponent may take instead
of playing on is one more terminal: so solvers, evaluation and linear programs take them as any other game. Subgames
that do not follow each other can be one game, in which chance says which of them it is; a solver that iterates changes
each as if it were alone.

Where the opponent follows with some probability (`Gadget.mixed`), each of its types is there twice: one that chooses,
and one that would lose more by taking what is offered than anybody can in the game, and so goes on.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, Integers, spread
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS
from spiel_cfr.games.vector.deals import RULED_OUT, Deals
from spiel_cfr.games.vector.public_tree import CHANCE
from spiel_cfr.games.vector.typed_tree import TypedTree
from spiel_cfr.games.vector.vector_game import VectorGame
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.history_walk import NONE
from spiel_cfr.search.standing import PLAYED
from spiel_cfr.search.vector_states import VectorPublicTree, VectorRoots, VectorStanding

# What those lose who must not take what is offered, in units of the largest payoff.
_PENALTY = 3.0


class VectorSubgame(VectorGame):
  """Subgames that do not follow each other, as one game."""

  # It has no states, and no file would keep the names of its infosets.
  view = CompiledGame.view
  save = CompiledGame.save
  __reduce__ = CompiledGame.__reduce__  # type: ignore[assignment]

  def __init__(
    self,
    tree: TypedTree,
    public: VectorPublicTree,
    searcher: int,
    nodes: Int64s,
    subgame: Int64s,
  ) -> None:
    """Takes what has been cut out.

    Args:
      tree: a node for chance, where there is a choice one for it in each subgame, then nodes of the whole.
      public: the whole.
      searcher: the player who is solved again.
      nodes: which nodes of the whole the last ones are, ascending.
      subgame: of which subgame each is.
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
    super().__init__(facts, tree)
    self._public, self.searcher, self._nodes, self._subgame = public, searcher, nodes, subgame

  @property
  def _added(self) -> int:
    """How many nodes there are before those of the whole."""
    return self.tree.num_nodes - len(self._nodes)

  def write(self, solution: Float64s, played: Float64s) -> list[Int64s]:
    """Writes the searcher's solution into what is played, where it plays to.

    Args:
      solution: in sequence form, shape (sequences of this game,).
      played: behavioural form of the whole, shape (its sequences,).

    Returns:
      Of each subgame, the sequences of the searcher's infosets in the whole.
    """
    whole, own = self._public.game.tree, self.tree
    totals, end = np.zeros(self.end), self.end
    for sequences, _ in self.treeplexes[self.searcher].blocks():
      totals[sequences] = solution[sequences].sum(axis=0)
    mine = np.flatnonzero(whole.player[self._nodes] == self.searcher)
    counts = whole.num_actions[self._nodes[mine]].astype(np.int64)
    here = self.layout.cells(end)[spread(own.first_edge[self._added + mine], counts)]
    there = self._public.cells[spread(whole.first_edge[self._nodes[mine]], counts)]
    here = here[:, : there.shape[1]]
    alive = here < end
    here, there = here[alive], there[alive]
    plays = totals[here] > PLAYED
    played[there[plays]] = solution[here[plays]] / totals[here[plays]]
    subgame = np.repeat(np.repeat(self._subgame[mine], counts), alive.sum(axis=1))
    order = np.argsort(subgame, kind="stable")
    ends = np.searchsorted(subgame[order], np.arange(1, int(self._subgame.max()) + 1))
    return np.split(there[order], ends)

  @functools.cached_property
  def infosets(self) -> tuple[Infosets, ...]:
    """Those of the whole have the names that they have there, what the gadget adds has names with a colon."""
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
        told = public[node].private_states(player)
        labels = [f"choice: {told[lane]}" for lane in lanes.tolist()]
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


def cut_out(
  standing: VectorStanding, roots: Sequence[VectorRoots], gadget: Gadget
) -> VectorSubgame:
  """Returns the subgames below some nodes, none of which follows another, as one game.

  Args:
    standing: what is played.
    roots: how each begins.
    gadget: what is in front of each.
  """
  public, searcher, number = standing.tree, standing.searcher, len(roots)
  whole = public.game.tree
  offers = number if gadget.front == "choice" else 0
  begins = np.array([own.node for own in roots])
  # By subgame and type of the opponent; then what chance's probabilities of pairs of types are multiplied by.
  shares = np.array([_shares(own, gadget) for own in roots])
  copies = shares.shape[1]
  bounds = np.array([own.bound for own in roots])
  scales = np.tile([own.weights for own in roots], copies) * shares.reshape(number, 1, -1)

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
  begins, largest, first = place[begins], public.largest_payoff, 1 + offers
  tops, choices = begins, np.zeros(0, np.int64)
  if offers:
    largest = max(_PENALTY * largest, float(np.abs(bounds).max()))
    gets = np.concatenate([-bounds, np.full_like(bounds, largest)][:copies], axis=1)
    chances = copied(public.chances[whole.kind[[own.node for own in roots]]])
    payoffs = np.concatenate([chances * scales * gets[:, None], payoffs])
    tops = 1 + np.arange(number)
    choices = np.stack([-tops, begins], axis=1).reshape(-1)
  actions = np.bincount(owner, minlength=len(nodes))
  matrices = np.stack([turned(payoffs), -turned(payoffs)], axis=1)
  shape = matrices.shape[2:]
  tree = TypedTree(
    player=np.concatenate([[CHANCE], np.full(offers, 1 - searcher), whole.player[nodes]]).astype(
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
  return VectorSubgame(tree, public, searcher, nodes, inside[nodes])


def _shares(roots: VectorRoots, gadget: Gadget) -> Float64s:
  """Returns how much of each type of the opponent's chooses, and how much goes on anyway if any must; end to end."""
  if not gadget.mixed:
    return np.ones((1, len(roots.mass)))
  follows = gadget.follows(roots.dealt, roots.mass)
  return np.stack([1 - follows, follows])


def _inside(public: VectorPublicTree, begins: Int64s) -> Int64s:
  """Returns below which of some nodes each node is, -1 for none."""
  result = np.full(len(public), -1)
  result[begins] = np.arange(len(begins))
  for level in public.levels:
    above = result[public.above[level.children]]
    result[level.children] = np.where(above >= 0, above, result[level.children])
  return result


def _pairs(first: Integers, second: Integers) -> tuple[Int64s, Int64s]:
  """Returns the different pairs of two arrays, shape (2, pairs), and which each is."""
  pairs, which = np.unique(np.stack([first, second]), axis=1, return_inverse=True)
  return pairs.astype(np.int64), which.reshape(-1)
