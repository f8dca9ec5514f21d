"""Subgames with a gadget in front, as games of arrays: cut out of a tree of histories, without another walk."""

import dataclasses
import functools
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
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import open_spiel
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.history_walk import CHANCE
from spiel_cfr.search.public_states import PublicState

# Histories that are this unlikely beside the likeliest are left out, since bounds are divided by their probability.
_UNLIKELY = 1e-12


class Standing:
  """Where both players stand before subgames are solved again: what is played, and what the opponent makes of it.

  Attributes:
    histories: of the whole game, or of all that follows a public state.
    entries: the policy of both, shape (entries,).
    searcher: who is going to be solved again.
    begin: the number of moves from which on what the opponent gives away counts; 0, to be changed.
    weights: w, shape (histories,).
    opponent_reach: r, shape (histories,).
    values: what the opponent expects from each history on by a best response, shape (histories,).
  """

  def __init__(
    self,
    histories: HistoryTree,
    entries: Float64s,
    searcher: int,
    barred: Bools | None = None,
  ) -> None:
    """Evaluates a policy.

    Args:
      histories: of the game.
      entries: the policy of both players.
      searcher: the player who searches.
      barred: actions of the opponent to which there is no answer yet, shape (entries,): its best response leaves them
        out, and what follows them is worth to it what it had before.
    """
    opponent = 1 - searcher
    self.histories, self.entries, self.searcher = histories, entries, searcher
    self.barred, self.begin = barred, 0
    self.weights = histories.chance * histories.reach(entries, searcher)
    self.opponent_reach = histories.reach(entries, opponent)
    self.values = histories.response_values(self.weights, entries, opponent, barred)

  def playing(self, entries: Float64s) -> "Standing":
    """Returns where the players stand when they play otherwise."""
    return Standing(self.histories, entries, self.searcher, self.barred)

  def is_open(self, roots: Int64s) -> bool:
    """Returns whether there is no answer yet to what the opponent may do below histories, or has done above."""
    if self.barred is None:
      return False
    found = self.histories
    lost = np.zeros(len(found.parent), bool)
    for level in found.levels:
      entry = found.entry[level]
      lost[level] = lost[found.parent[level]] | ((entry >= 0) & self.barred[entry])
    return bool(lost[found.below(roots)].any())

  @property
  def opponent_gets(self) -> float:
    """What the opponent gets from a best response, less half of what the returns sum to."""
    roots = self.histories.parent < 0
    return float(self.values[roots] @ self.weights[roots])

  @functools.cached_property
  def gifts(self) -> Float64s:
    """g: what the opponent gives away on the way to each history, per unit of w; shape (histories,)."""
    found, opponent = self.histories, 1 - self.searcher
    decisions = np.flatnonzero(found.mover == opponent)
    infoset = found.infoset[decisions]
    mass = np.bincount(infoset, self.weights[decisions], len(found.owner))
    worth = np.bincount(infoset, self.weights[decisions] * self.values[decisions], len(found.owner))
    moved = np.flatnonzero(found.player_of_entry[found.entry] == opponent)
    moved = moved[found.entry[moved] >= 0]
    action = np.bincount(
      found.entry[moved], self.weights[moved] * self.values[moved], found.num_entries
    )
    known = mass[found.infoset_of_entry] > 0
    lost = np.zeros(found.num_entries)
    np.divide(
      (worth[found.infoset_of_entry] - action), mass[found.infoset_of_entry], out=lost, where=known
    )
    lost = np.maximum(lost, 0.0)
    result = np.zeros(len(found.parent))
    for level in found.levels:
      above, entry = found.parent[level], found.entry[level]
      mine = (found.mover[above] == opponent) & (found.length[above] >= self.begin)
      result[level] = result[above] + np.where(mine, lost[entry], 0.0)
    return result

  def bounds(self, roots: Int64s, gadget: Gadget) -> "Roots | None":
    """Returns the histories of a public state that count, with the bound at each J; None if there are none."""
    found = self.histories
    weights = self.weights[roots]
    if not gadget.is_safe:
      weights = weights * self.opponent_reach[roots]
    total = float(weights.sum())
    if not total > 0:
      return None
    kept = weights > _UNLIKELY * weights.max()
    roots, weights = roots[kept], weights[kept] / total
    known = found.known_to(1 - self.searcher, roots)
    names, place = np.unique(known, return_inverse=True)
    mass: Float64s = np.bincount(place, weights).astype(np.float64)
    value = np.bincount(place, weights * self.values[roots]) / mass
    if gadget.reach:
      value += np.bincount(place, weights * self.gifts[roots]) / mass
    dealt: Float64s = np.bincount(place, weights * self.opponent_reach[roots]).astype(np.float64)
    return Roots(roots, weights, place, names, mass, value, dealt)


@dataclasses.dataclass(frozen=True)
class Roots:
  """The histories at which a subgame begins; J numbers what the opponent knows there.

  Attributes:
    histories: int64 (roots,).
    weights: w, shape (roots,).
    place: J of each, shape (roots,).
    names: `HistoryTree.knows` of each J.
    mass: w of each J.
    bound: the bound of each J.
    dealt: w r of each J.
  """

  histories: Int64s
  weights: Float64s
  place: Int64s
  names: Int64s
  mass: Float64s
  bound: Float64s
  dealt: Float64s

  def only(self, kept: Bools) -> "Roots":
    """Returns some of the histories, all of those of each J that they belong to."""
    names, place = np.unique(self.place[kept], return_inverse=True)
    return Roots(
      self.histories[kept],
      self.weights[kept],
      place,
      self.names[names],
      self.mass[names],
      self.bound[names],
      self.dealt[names],
    )

  @property
  def mixture(self) -> Float64s:
    """With which probability the blueprint's opponent is at each J; by w alone where it never comes."""
    weights = self.dealt if self.dealt.sum() > 0 else self.mass
    result: Float64s = weights / weights.sum()
    return result


@dataclasses.dataclass(frozen=True)
class Subgame:
  """A subgame as a game, and where its infosets are in the whole.

  Attributes:
    game: the game, whose player numbers are those of the whole; its infosets have the names that they have there, what
      the gadget adds has names with a colon after its first word.
    searcher: the player who is solved again.
    infosets: which infosets of the whole are the searcher's here, ascending.
    floor: what the program that solves it must leave the searcher at least at the opponent's first infoset; None if no
      such thing is asked for.
  """

  game: EnumeratedGame
  searcher: int
  infosets: Int64s
  floor: float | None


def subgame(
  game: AnyGame,
  public_state: PublicState,
  blueprint: open_spiel.AnyPolicy,
  searcher: int,
  *,
  gadget: str | Gadget = "safe",
) -> CompiledGame:
  """Returns all that follows a public state as a game, with a gadget in front, for solvers, evaluation and pages.

  Player numbers are those of the whole game. The searcher's infosets have the names that they have there, so that its
  strategy can be taken over; the opponent's first one, or those of its choices, are the gadget's. Returns sum to 0, and
  are what the searcher expects for each unit of w.

  Args:
    game: the game, compiled, or what `compile_game` takes.
    public_state: one of `public_states(game)`.
    blueprint: a policy of both players.
    searcher: who is going to be solved again.
    gadget: one of `GADGETS`, see there what each promises, or a `Gadget`.

  Raises:
    ArgumentError: there is no such player or gadget, or the public state is of another game; or it is reached with
      probability 0 by chance and the searcher.
    PolicyError: the blueprint does not know the game's infosets.
    GameError: see `compile_game`.
  """
  tree = public_state.tree
  if compile_game(game).original.digest != tree.game.digest:
    raise errors.ArgumentError(f"{public_state!r} is a public state of {tree.game}, not of {game}.")
  searcher = arguments.integer(searcher, "searcher", 0, 1)
  chosen = find_gadget(gadget)
  if chosen.knowledge_limited:
    raise errors.ArgumentError(
      "A public state has a knowledge-limited subgame for each infoset of the searcher: call resolve."
    )
  standing = Standing(tree.histories, tree.entries(blueprint), searcher)
  roots = standing.bounds(public_state.histories, chosen)
  if roots is None:
    raise errors.ArgumentError(
      f"{public_state!r} has probability 0 under this blueprint: nobody would have to solve it again."
    )
  return cut_out(standing, roots, chosen).game


def cut_out(
  standing: Standing, roots: Roots, gadget: Gadget, free: Int64s | None = None
) -> Subgame:
  """Returns the subgame below some histories, with a gadget in front.

  Args:
    standing: what is played.
    roots: where it begins.
    gadget: what is in front.
    free: those of the roots below which the searcher may do as it likes; elsewhere it plays what it has played.
      By default, all.
  """
  found, searcher = standing.histories, standing.searcher
  opponent, num_roots = 1 - searcher, len(roots.histories)
  sizes = found.end[roots.histories] - roots.histories
  nodes, root_of = found.below(roots.histories), np.repeat(np.arange(num_roots), sizes)
  is_free = np.ones(num_roots, bool) if free is None else np.isin(np.arange(num_roots), free)

  # The searcher's infosets, and those of the opponent, as they are numbered in the whole.
  here: list[Int64s] = []
  group_of: Int64s = np.zeros(0, np.int64)
  for player in (0, 1):
    mine = found.mover[nodes] == player
    mine &= is_free[root_of] | (player == opponent)
    infosets, first = np.unique(found.infoset[nodes[mine]], return_index=True)
    here.append(infosets)
    if player == opponent:
      group_of = roots.place[root_of[mine][first]]

  # A front: gadget's infosets, then one copy or two of the opponent's, each with a weight and an entry for every J.
  front = _Front(roots, gadget, searcher, found)
  own = _Numbering(found, here[searcher])
  theirs = _Numbering(found, here[opponent])
  ends = np.flatnonzero(found.mover[nodes] < CHANCE)
  end_nodes, end_roots = nodes[ends], root_of[ends]
  begin = roots.histories[end_roots]
  weight = roots.weights[end_roots] * found.chance[end_nodes] / found.chance[begin]
  if free is not None:
    reach = found.reach(standing.entries, searcher)
    weight = weight * np.where(is_free[end_roots], 1.0, reach[end_nodes] / reach[begin])
  worth = weight * found.payoff[end_nodes] * (1 - 2 * searcher)
  searcher_last = own.sequence(found.last[searcher, end_nodes], 0)
  rows, columns, values = [np.zeros(len(front.values), np.int64)], [front.sequences], [front.values]
  parents, counts = [np.zeros(len(front.counts), np.int64)], [front.counts]
  names = list(front.names)
  known = found.names[opponent]
  shift = len(found.names[0]) if opponent else 0
  legal = [front.actions]
  start = 1 + int(front.counts.sum())
  for label, entry, factor in front.copies:
    columns.append(
      theirs.sequence(found.last[opponent, end_nodes], entry[roots.place[end_roots]], start)
    )
    rows.append(searcher_last)
    values.append(worth * factor[roots.place[end_roots]])
    parents.append(theirs.sequence(found.entry_above[here[opponent]], entry[group_of], start))
    counts.append(theirs.counts)
    names += [label + known[infoset - shift] for infoset in here[opponent].tolist()]
    legal.append(theirs.actions)
    start += int(theirs.counts.sum())
  their_side = (names, np.concatenate(legal), np.concatenate(parents), np.concatenate(counts))
  base = len(found.names[0]) if searcher else 0
  own_side = (
    [found.names[searcher][infoset - base] for infoset in here[searcher].tolist()],
    own.actions,
    own.sequence(found.entry_above[here[searcher]], 0),
    own.counts,
  )
  sides = (own_side, their_side) if searcher == 0 else (their_side, own_side)
  pair = [np.concatenate(rows), np.concatenate(columns)]
  leaves, which = distinct_columns(pair if searcher == 0 else pair[::-1])
  payoffs = np.bincount(which, np.concatenate(values), leaves.shape[1]) * (1 - 2 * searcher)
  largest = max(
    float(np.abs(found.payoff[end_nodes]).max(initial=0.0)), float(np.abs(roots.bound).max())
  )
  facts = GameFacts(
    game_string=f"subgame of {found.view.game}",
    num_distinct_actions=max(found.view.game.num_distinct_actions(), int(counts[0].max(initial=1))),
    payoff_range=(-2 * largest, 2 * largest),
    constant_sum=0.0,
    num_states=len(nodes) + 1 + len(roots.mass),
    num_terminals=len(ends),
    open_spiel_version=None,
  )
  compiled = game_of_parts(
    facts,
    [side[0] for side in sides],
    [side[1] for side in sides],
    [side[2] for side in sides],
    [side[3] for side in sides],
    leaves.astype(np.uint32),
    np.stack([payoffs, -payoffs], axis=1),
  )
  return Subgame(compiled, searcher, here[searcher], front.floor)


class _Numbering:
  """A player's infosets of a subgame, some of those of the whole, and their sequences."""

  def __init__(self, found: HistoryTree, infosets: Int64s) -> None:
    self.counts = found.num_actions[infosets]
    entries = spread(found.first_entry[infosets], self.counts)
    player = int(found.owner[infosets[0]]) if len(infosets) else 0
    begin = len(found.actions[0]) if player else 0
    self.actions = found.actions[player][entries - begin]
    self._infoset_of_entry, self._first_entry = found.infoset_of_entry, found.first_entry
    self._infosets, self._before = infosets, np.cumsum(self.counts) - self.counts

  def sequence(self, entry: Int64s, otherwise: Any, start: int = 1) -> Int64s:
    """Returns the sequences of entries of the whole, the first infoset's action 0 being `start`; others' otherwise."""
    result = np.broadcast_to(np.asarray(otherwise, np.int64), entry.shape).copy()
    if len(self._infosets):
      infoset = self._infoset_of_entry[entry]
      place = np.minimum(np.searchsorted(self._infosets, infoset), len(self._infosets) - 1)
      inside = (entry >= 0) & (self._infosets[place] == infoset)
      result[inside] = (start + self._before[place] + entry - self._first_entry[infoset])[inside]
    return result


class _Front:
  """What the opponent does before the subgame.

  Attributes:
    names: of its infosets.
    counts: their numbers of actions.
    actions: these, end to end.
    sequences: the opponent's sequences at leaves of the gadget's own.
    values: what they are worth to the searcher.
    copies: of the opponent's infosets: what stands before their names, the sequence by which each J is entered, and
      what the weight of J is multiplied by.
    floor: see `Subgame`.
  """

  def __init__(self, roots: Roots, gadget: Gadget, searcher: int, found: HistoryTree) -> None:
    number = len(roots.mass)
    group, none = np.arange(number), np.zeros(number, np.int64)
    mixed, self.floor = gadget.mixed, None
    if gadget.front == "deal":
      self.names, self.counts = [], none[:0]
      self.sequences, self.values = none[:0], np.zeros(0)
      self.copies = [("", none, np.ones(number))]
    elif gadget.front == "pick":
      mean = mixed * roots.mixture
      self.names, self.counts = ["pick: where to be"], np.array([number])
      self.sequences, self.values = 1 + group, (1 - mixed) * roots.bound
      self.copies = [("", 1 + group, (1 - mixed) / roots.mass)]
      if mixed:
        self.sequences = np.append(self.sequences, 0)
        self.values = np.append(self.values, mean @ roots.bound)
        self.copies.append(("dealt: ", none, mean / roots.mass))
        self.floor = 0.0
    else:
      likely = roots.dealt / roots.mass
      follows = mixed * likely / max(likely.max(), 1e-300)
      self.names = [f"choice: {found.known_as(name)}" for name in roots.names.tolist()]
      self.counts = np.full(number, 2)
      self.sequences, self.values = 1 + 2 * group, -(1 - follows) * roots.mass * roots.bound
      self.copies = [("", 2 + 2 * group, 1 - follows)]
      if mixed:
        self.copies.append(("dealt: ", none, follows))
    self.actions = spread(np.zeros_like(self.counts), self.counts)
