"""Subgames with a gadget in front, as games of arrays: cut out of a tree of histories, without another walk."""

import dataclasses
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, spread
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.from_arrays import game_of_parts
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import open_spiel
from spiel_cfr.search import vector_subgames
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.history_walk import TERMINAL
from spiel_cfr.search.public_states import PublicState, check_game
from spiel_cfr.search.standing import PLAYED, Roots, Standing
from spiel_cfr.search.vector_states import VectorPublicState


@dataclasses.dataclass(frozen=True)
class Subgame:
  """A subgame as a game, and where its infosets are in the whole.

  Attributes:
    game: the game, whose player numbers are those of the whole; its infosets have the names that they have there, what
      the gadget adds has names with a colon after its first word.
    searcher: the player who is solved again.
    infosets: which infosets of the whole are the searcher's here, ascending.
    dealt: what `maximin_strategy` must know of a second copy of the opponent's infosets; None if there is none.
    histories: of the whole.
  """

  game: EnumeratedGame
  searcher: int
  infosets: Int64s
  dealt: Float64s | None
  histories: HistoryTree

  def write(self, solution: Float64s, played: Float64s) -> Int64s:
    """Writes the searcher's solution into what is played, where it plays to; returns the entries of its infosets."""
    found = self.histories
    counts = found.num_actions[self.infosets]
    entries = spread(found.first_entry[self.infosets], counts)
    if len(entries):
      totals = np.repeat(np.add.reduceat(solution, np.cumsum(counts) - counts), counts)
      plays = totals > PLAYED
      played[entries[plays]] = solution[plays] / totals[plays]
    return entries


def subgame(
  game: AnyGame,
  public_state: PublicState | VectorPublicState,
  blueprint: open_spiel.AnyPolicy,
  searcher: int,
  *,
  gadget: str | Gadget | None = None,
) -> CompiledGame:
  """Returns all that follows a public state as a game, with a gadget in front, for solvers and evaluation.

  Player numbers are those of the whole game. The searcher's infosets have the names that they have there, so that its
  strategy can be taken over; the opponent's first one, or those of its choices, are the gadget's. Returns sum to 0, and
  are what the searcher expects for each unit of w.

  Args:
    game: the game, compiled, or what `compile_game` takes.
    public_state: one of `public_states(game)`.
    blueprint: a policy of both players.
    searcher: who is going to be solved again.
    gadget: one of `GADGETS`, see there what each promises, or a `Gadget`; by default "safe", in vector form "follow".

  Raises:
    ArgumentError: there is no such player or gadget, or the public state is of another game; or it is reached with
      probability 0 by chance and the searcher.
    PolicyError: the blueprint does not know the game's infosets.
    GameError: see `compile_game`.
  """
  tree = public_state.tree
  check_game(game, public_state)
  searcher = arguments.integer(searcher, "searcher", 0, 1)
  chosen = find_gadget(gadget, vector_form=isinstance(public_state, VectorPublicState))
  if chosen.knowledge_limited:
    raise errors.ArgumentError(
      "A public state has a knowledge-limited subgame for each infoset of the searcher: call resolve."
    )
  standing: Any = tree.standing(tree.entries(blueprint), searcher)
  roots = standing.bounds(public_state.place, chosen)
  if roots is None:
    raise errors.ArgumentError(
      f"{public_state!r} has probability 0 under this blueprint: nobody would have to solve it again."
    )
  if isinstance(public_state, VectorPublicState):
    return vector_subgames.cut_out(standing, [roots], chosen)
  return cut_out(standing, roots, chosen).game


@dataclasses.dataclass(frozen=True)
class Limit:
  """Where a subgame ends early, and what it is worth there: as much as the opponent's choice among continuations.

  Brown, Sandholm and Amos, "Depth-Limited Solving for Imperfect-Information Games" (2018).

  Attributes:
    leaves: int64 (leaves,), histories that do not follow each other.
    values: what player 0 gets from each by each continuation, as `HistoryTree.payoff` has it; (continuations, leaves).
  """

  leaves: Int64s
  values: Float64s

  def reached(self, found: HistoryTree) -> Bools:
    """Returns which histories are before the limit or on it, shape (nodes,)."""
    edges = np.zeros(len(found.parent) + 1, np.int64)
    edges[self.leaves + 1] += 1
    np.subtract.at(edges, found.end[self.leaves], 1)
    result: Bools = np.cumsum(edges)[:-1] == 0
    return result


def cut_out(
  standing: Standing,
  roots: Roots,
  gadget: Gadget,
  *,
  free: Bools | None = None,
  limit: Limit | None = None,
) -> Subgame:
  """Returns the subgame below some histories, with a gadget in front.

  Args:
    standing: what is played.
    roots: where it begins.
    gadget: what is in front.
    free: below which of the roots the searcher may do as it likes; elsewhere it plays what it has played. By default,
      below all.
    limit: where it ends early.
  """
  found, searcher = standing.histories, standing.searcher
  opponent, sign = 1 - searcher, 1 - 2 * searcher
  is_free = np.ones(len(roots.histories), bool) if free is None else free
  nodes = found.below(roots.histories)
  root_of = np.repeat(np.arange(len(is_free)), found.end[roots.histories] - roots.histories)
  stops = np.zeros(len(nodes), bool)
  if limit is not None:
    kept = limit.reached(found)[nodes]
    nodes, root_of = nodes[kept], root_of[kept]
    stops = np.isin(nodes, limit.leaves)
  decides = ~stops & (found.mover[nodes] >= 0)
  ends = stops | (found.mover[nodes] == TERMINAL)
  mine = decides & (found.mover[nodes] == searcher) & is_free[root_of]
  own = _Infosets(found, searcher, nodes[mine])
  theirs = decides & (found.mover[nodes] == opponent)
  other = _Infosets(found, opponent, nodes[theirs])
  group_above = roots.place[root_of[theirs][other.first]]

  # What ends are worth to the searcher, and for each the sequence by which it comes there, and the opponent's J.
  end, end_root = nodes[ends], root_of[ends]
  begin = roots.histories[end_root]
  weight = roots.weights[end_root] * found.chance[end] / found.chance[begin]
  if free is not None:
    reach = found.reach(standing.entries, searcher)
    weight *= np.where(is_free[end_root], 1.0, reach[end] / reach[begin])
  own_last, group = own.sequences(found.last[searcher, end], 0), roots.place[end_root]

  front = _Front(roots, gadget, found, opponent)
  side = _Side(front.names, front.counts)
  rows, columns = [np.zeros(len(front.values), np.int64)], [front.sequences]
  values = [front.values]
  for label, entry, factor in front.copies:
    start = side.add(other.names(label), other.counts, other.actions)
    side.parents.append(other.sequences(other.entry_above, entry[group_above], start))
    last = other.sequences(found.last[opponent, end], entry[group], start)
    scale = sign * weight * factor[group]
    if limit is None:
      outcomes = [(last, found.payoff[end])]
    else:
      outcomes = _outcomes(found, opponent, end, last, limit, side, label)
    for sequences, worth in outcomes:
      rows.append(own_last)
      columns.append(sequences)
      values.append(scale * worth)
  own_side = _Side([], np.zeros(0, np.int64))
  own_side.add(own.names(""), own.counts, own.actions)
  own_side.parents.append(own.sequences(own.entry_above, 0))
  game = _game(
    found, searcher, own_side, side, np.stack([*map(np.concatenate, (rows, columns))]), values
  )
  return Subgame(game, searcher, own.infosets, front.dealt, found)


def _outcomes(
  found: HistoryTree,
  opponent: int,
  end: Int64s,
  last: Int64s,
  limit: Limit,
  side: "_Side",
  label: str,
) -> list[tuple[Int64s, Float64s]]:
  """Returns, for each continuation, the opponent's last sequences at ends, and what player 0 gets there."""
  order = np.argsort(limit.leaves)
  place = np.minimum(np.searchsorted(limit.leaves[order], end), len(order) - 1)
  is_leaf = limit.leaves[order][place] == end
  values = np.where(is_leaf, limit.values[:, order[place]], found.payoff[end])
  number = len(values)
  if number == 1:
    return [(last, values[0])]
  # Terminal histories are worth the same by all continuations, so the first has them all.
  values[1:, ~is_leaf] = 0.0
  known, first, which = np.unique(
    found.known_to(opponent, end[is_leaf]), return_index=True, return_inverse=True
  )
  names = [f"{label}then: {found.known_as(opponent, each)}" for each in known.tolist()]
  counts = np.full(len(known), number)
  start = side.add(names, counts, spread(np.zeros_like(counts), counts))
  side.parents.append(last[is_leaf][first])
  result = []
  for continuation in range(number):
    sequences = last.copy()
    sequences[is_leaf] = start + number * which + continuation
    result.append((sequences, values[continuation]))
  return result


def _game(
  found: HistoryTree,
  searcher: int,
  own: "_Side",
  other: "_Side",
  pairs: Int64s,
  values: list[Float64s],
) -> EnumeratedGame:
  """Returns the game of two sides, of pairs of last sequences, the searcher's first, and what these are worth to it."""
  sides = (own, other) if searcher == 0 else (other, own)
  leaves, which = distinct_columns(list(pairs if searcher == 0 else pairs[::-1]))
  payoffs = (1 - 2 * searcher) * np.bincount(which, np.concatenate(values), leaves.shape[1])
  largest = float(np.abs(payoffs).sum())
  num_actions = [np.concatenate(side.counts) for side in sides]
  facts = GameFacts(
    game_string=f"subgame of {found.view.game}",
    num_distinct_actions=max(
      found.view.game.num_distinct_actions(), *(int(each.max(initial=1)) for each in num_actions)
    ),
    payoff_range=(-largest, largest),
    constant_sum=0.0,
    num_states=pairs.shape[1] + sum(map(len, num_actions)),
    num_terminals=pairs.shape[1],
    open_spiel_version=None,
  )
  return game_of_parts(
    facts,
    [side.names for side in sides],
    [np.concatenate(side.actions) for side in sides],
    [np.concatenate(side.parents) for side in sides],
    num_actions,
    leaves.astype(np.uint32),
    np.stack([payoffs, -payoffs], axis=1),
  )


class _Side:
  """A player's infosets of a subgame, in the order of their sequences."""

  def __init__(self, names: list[str], counts: Int64s) -> None:
    """Begins with infosets that nothing is above."""
    self.names, self.counts = list(names), [counts]
    self.actions, self.parents = [spread(np.zeros_like(counts), counts)], [np.zeros_like(counts)]

  def add(self, names: list[str], counts: Int64s, actions: Int64s) -> int:
    """Adds infosets, whose parents the caller adds, and returns their first sequence."""
    start = 1 + sum(int(each.sum()) for each in self.counts)
    self.names += names
    self.counts.append(counts)
    self.actions.append(actions)
    return start


class _Infosets:
  """A player's infosets among those of the whole, ascending.

  Attributes:
    infosets: their numbers there.
    first: the place of a history of each in `nodes`.
    counts: how many actions each has.
    actions: these, end to end.
  """

  def __init__(self, found: HistoryTree, player: int, nodes: Int64s) -> None:
    """Takes histories at which the player decides."""
    self._found = found
    self.infosets, self.first = np.unique(found.infoset[nodes], return_index=True)
    self.counts = found.num_actions[self.infosets]
    entries = spread(found.first_entry[self.infosets], self.counts)
    self.actions = found.actions[player][entries - player * len(found.actions[0])]
    self._before = np.cumsum(self.counts) - self.counts

  @property
  def entry_above(self) -> Int64s:
    """The owner's last entry before each."""
    result: Int64s = self._found.entry_above[self.infosets]
    return result

  def names(self, label: str) -> list[str]:
    """Returns their names, with something before each."""
    return [label + self._found.infostate(infoset) for infoset in self.infosets.tolist()]

  def sequences(self, entry: Int64s, otherwise: Any, start: int = 1) -> Int64s:
    """Returns the sequences of entries of the whole, the first infoset's action 0 being `start`; others' otherwise."""
    result = np.broadcast_to(np.asarray(otherwise, np.int64), entry.shape).copy()
    if len(self.infosets):
      infoset = self._found.infoset_of_entry[entry]
      place = np.minimum(np.searchsorted(self.infosets, infoset), len(self.infosets) - 1)
      inside = (entry >= 0) & (self.infosets[place] == infoset)
      number = start + self._before[place] + entry - self._found.first_entry[infoset]
      result[inside] = number[inside]
    return result


class _Front:
  """What the opponent does before the subgame.

  Attributes:
    names: of its infosets.
    counts: their numbers of actions.
    sequences: the opponent's sequences at leaves of the gadget's own.
    values: what they are worth to the searcher.
    copies: of the opponent's infosets: what stands before their names, the sequence by which each J is entered, and
      what the weight of J is multiplied by.
    dealt: see `Subgame`.
  """

  def __init__(self, roots: Roots, gadget: Gadget, found: HistoryTree, opponent: int) -> None:
    number, mixed = len(roots.mass), gadget.mixed
    group, none = np.arange(number), np.zeros(number, np.int64)
    self.dealt: Float64s | None = None
    self.names: list[str] = []
    self.counts, self.sequences, self.values = none[:0], none[:0], np.zeros(0)
    if gadget.front == "deal":
      self.copies = [("", none, np.ones(number))]
    elif gadget.front == "pick":
      self.names, self.counts = ["pick: where to be"], np.array([number])
      self.sequences, self.values = 1 + group, (1 - mixed) * roots.bound
      self.copies = [("", 1 + group, (1 - mixed) / roots.mass)]
      if mixed:
        dealt = mixed * roots.mixture
        self.sequences = np.append(self.sequences, 0)
        self.values = np.append(self.values, dealt @ roots.bound)
        self.copies.append(("dealt: ", none, dealt / roots.mass))
        self.dealt = dealt / (1 - mixed)
    else:
      follows = gadget.follows(roots.dealt, roots.mass)
      self.names = [f"choice: {found.known_as(opponent, name)}" for name in roots.names.tolist()]
      self.counts = np.full(number, 2)
      self.sequences, self.values = 1 + 2 * group, -(1 - follows) * roots.mass * roots.bound
      self.copies = [("", 2 + 2 * group, 1 - follows)]
      if mixed:
        self.copies.append(("dealt: ", none, follows))
