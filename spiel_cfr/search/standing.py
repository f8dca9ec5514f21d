"""Where both players stand before a subgame is solved again: what is played, and what the opponent can make of it."""

import copy
import dataclasses
import functools

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.history_tree import HistoryTree

# Histories that are this unlikely beside the likeliest are left out, since bounds are divided by their probability.
UNLIKELY = 1e-12
# What rounding leaves of a strategy that is not played is less.
PLAYED = 1e-9


class Standing:
  """Where both players stand before subgames are solved again: what is played, and what the opponent makes of it.

  Attributes:
    histories: of the whole game, or of all that follows a public state.
    entries: the policy of both, shape (entries,).
    searcher: who is going to be solved again.
    begin: the number of moves from which on what the opponent gives away counts.
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
    begin: int = 0,
  ) -> None:
    """Evaluates a policy.

    Args:
      histories: of the game.
      entries: the policy of both players.
      searcher: the player who searches.
      barred: actions of the opponent to which there is no answer yet, shape (entries,): its best response leaves them
        out, and what follows them is worth to it what it had before.
      begin: see above.
    """
    opponent = 1 - searcher
    self.histories, self.entries, self.searcher = histories, entries, searcher
    self.barred, self.begin = barred, begin
    self.weights = histories.chance * histories.reach(entries, searcher)
    self.opponent_reach = histories.reach(entries, opponent)
    self.values = histories.response_values(self.weights, entries, opponent, barred)

  @property
  def largest_payoff(self) -> float:
    """The largest that there is, of either sign."""
    return float(np.abs(self.histories.payoff).max())

  def length(self, roots: Int64s) -> int:
    """Returns the number of moves before histories of one public state."""
    return int(self.histories.length[roots[0]])

  def playing(self, entries: Float64s, *, answered: bool = False) -> "Standing":
    """Returns where the players stand when they play otherwise."""
    barred = None if answered else self.barred
    return Standing(self.histories, entries, self.searcher, barred, self.begin)

  def judged(self, *, begin: int | None = None, values: Float64s | None = None) -> "Standing":
    """Returns the same standing, where gifts count from another move on, or the opponent expects something else."""
    result = copy.copy(self)
    result.begin = self.begin if begin is None else begin
    result.values = self.values if values is None else values
    result.__dict__.pop("gifts", None)
    return result

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
    kept = weights > UNLIKELY * weights.max()
    roots, weights = roots[kept], weights[kept] / total
    known = found.known_to(1 - self.searcher, roots)
    names, place = np.unique(known, return_inverse=True)
    mass: Float64s = np.bincount(place, weights).astype(np.float64)
    value = np.bincount(place, weights * self.values[roots]) / mass
    if gadget.reach:
      value += np.bincount(place, weights * self.gifts[roots]) / mass
    dealt: Float64s = np.bincount(place, weights * self.opponent_reach[roots]).astype(np.float64)
    return Roots(roots, weights, place, names, mass, value, dealt)

  def smallest_margin(self, roots: "Roots") -> float:
    """Returns the least by which the bounds are above what the opponent gets by what is played here."""
    worth = roots.weights * self.values[roots.histories]
    return float((roots.bound - np.bincount(roots.place, worth) / roots.mass).min())


@dataclasses.dataclass(frozen=True)
class Roots:
  """The histories at which a subgame begins; J numbers what the opponent knows there.

  Attributes:
    histories: int64 (roots,).
    weights: w, shape (roots,).
    place: J of each, shape (roots,).
    names: what `HistoryTree.known_to` calls each J.
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
