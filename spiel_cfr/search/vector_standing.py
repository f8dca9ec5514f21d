"""Where both players stand in a game in vector form: by node and type, what is played and what the opponent gets."""

import dataclasses
import functools

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.standing import UNLIKELY, AnyStanding
from spiel_cfr.search.vector_states import VectorPublicTree


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


class VectorStanding(AnyStanding):
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

  def _chances(self, kind: int) -> Float64s:
    """Returns chance's probability of pairs of types, the searcher's first."""
    chances: Float64s = self.tree.chances[kind]
    return chances.T if self.searcher else chances

  @functools.cached_property
  def mass(self) -> Float64s:
    """W of each node and type of the opponent, shape (nodes, types)."""
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
    kind = int(self.tree.game.tree.kind[node])
    mass = (self._chances(kind) * weights).sum(axis=0)
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
