"""Public trees that list all private states of both players: ranges, values and gifts of policies.

Listed histories (`ListedTree`) and vector form (`VectorTree`) implement two computations: chance's probabilities of
pairs of private states, and payoffs at the ends of the game. Both are linear in the other player's reach probabilities.
This module computes all else from them, over the rows of `private_forest`.
"""

import abc
import copy
import dataclasses
import functools

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.openspiel.checked_calls import CHANCE
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.search.gadget_games import PerPlayer
from spiel_cfr.search.trees.private_forest import PrivateForest, Values
from spiel_cfr.search.trees.search_tree import (
  EvaluatedPolicy,
  PublicState,
  RangesByState,
  SearchTree,
)


class ForestTree(SearchTree):
  """All public states of a game, and both players' private states at each; `private_forest` explains rows.

  A form of game defines who moves (`movers`), and its rows and slots (`rows`, `private_name`, `actions`). It defines
  chance and payoffs twice. For the values of policies, they are maps of one player's reach probabilities
  (`counterfactual_reach_of_rows`, `values_at_ends`). For gadget games, they are lists of pairs of rows (`end_pairs`).

  Attributes:
    name: str. The game's string.
    forests: by player, the forest of its private states.
    first_length: int. The number of moves before the first public state.
    first_reach: by player, float64 (first rows,). The probability that the player plays to each of its first rows.
  """

  name: str
  forests: tuple[PrivateForest, PrivateForest]
  first_length: int
  first_reach: tuple[Float64s | float, Float64s | float] = (1.0, 1.0)

  @property
  @abc.abstractmethod
  def actions(self) -> Int64s:
    """The action of OpenSpiel of each slot, shape (slots,)."""

  @abc.abstractmethod
  def rows(self, index: int, player: int) -> Int64s:
    """Returns the rows of a player's private states at a public state, given its index."""

  @abc.abstractmethod
  def private_name(self, player: int, row: int) -> str:
    """Returns a player's last information state string at a row."""

  @abc.abstractmethod
  def end_pairs(self, indices: Int64s) -> tuple[Int64s, Int64s, Float64s]:
    """Returns the ends of the game right after some public states: rows of both players, and player 0's payoffs.

    A payoff is the player's return less half of the constant to which returns sum, times chance's probability.

    Args:
      indices: int64 (public states,). The indices of the public states.

    Returns:
      int64 (ends,), int64 (ends,) and float64 (ends,). Player 0's row, player 1's row, and the payoff at each end.
    """

  @abc.abstractmethod
  def counterfactual_reach_of_rows(self, player: int, reach: Float64s) -> Float64s:
    """Returns the probability that chance and the other player lead to each of a player's rows; shape (rows,).

    Rows where the game ends may be 0.

    Args:
      player: the player.
      reach: float64 (the other player's rows,). The probability that the other player plays to each of its rows.
    """

  @abc.abstractmethod
  def values_at_ends(self, player: int, reach: Float64s) -> Float64s:
    """Returns a player's counterfactual values at the ends of the game, 0 at other rows; shape (rows,).

    Args:
      player: the player.
      reach: float64 (the other player's rows,). The probability that the other player plays to each of its rows.
    """

  @property
  @abc.abstractmethod
  def movers(self) -> tuple[Int64s, Int64s]:
    """Two arrays: indices of public states, ascending, and a player who may be to move there; chance is -1.

    A public state at which different players may be to move occurs once for each of them.
    """

  def decision_states(self, player: int) -> Int64s:
    """Returns the indices of the public states where a player may be to move."""
    indices, movers = self.movers
    return np.unique(indices[movers == player])

  def decisions(self, player: int) -> list[list[PublicState]]:
    """Returns the public states where a player may be to move, a list for each number of moves before them."""
    levels: dict[int, list[PublicState]] = {}
    for index in self.decision_states(arguments.integer(player, "player", 0, 1)).tolist():
      levels.setdefault(self.depth(index), []).append(self[index])
    return [levels[depth] for depth in sorted(levels)]

  def names(self, index: int, player: int) -> list[str]:
    if self.players(index) == (CHANCE,):
      return []
    return [self.private_name(player, row) for row in self.rows(index, player).tolist()]

  def players(self, index: int) -> tuple[int, ...]:
    indices, movers = self.movers
    begin, end = np.searchsorted(indices, [index, index + 1])
    return tuple(movers[begin:end].tolist())

  def natural_cut(self) -> list[PublicState]:
    movers: list[set[int]] = [set() for _ in range(len(self))]
    for index, mover in zip(*(array.tolist() for array in self.movers), strict=True):
      movers[index].add(mover)
    # By public state: the players who have moved above it, and whether chance has moved after one of them.
    acted, chance_after = [set[int]()] * len(self), [False] * len(self)
    for index, above in enumerate(self.above.tolist()):
      if above != NONE:
        acted[index] = acted[above] | movers[above] - {CHANCE}
        chance_after[index] = chance_after[above] or (
          CHANCE in movers[above] and acted[above] != set()
        )
    decides = np.array([CHANCE not in each for each in movers])
    starts = np.array(chance_after) & decides
    have_both_acted = np.array([len(players) == 2 for players in acted])
    return self.first_of(starts if starts.any() else have_both_acted & decides)

  @functools.cached_property
  def _preorder(self) -> tuple[Int64s, Int64s, Int64s]:
    """The public states in preorder, the position of each in that order, and the size of each subgame."""
    count, above = len(self.above), self.above.tolist()
    sizes, positions = [1] * count, [0] * count
    for index in range(count - 1, 0, -1):
      if above[index] != NONE:
        sizes[above[index]] += sizes[index]
    # The next free position below each public state. The last element is for public states without a parent.
    free = [0] * (count + 1)
    for index in range(count):
      positions[index] = free[above[index]]
      free[above[index]] += sizes[index]
      free[index] = positions[index] + 1
    return np.argsort(positions), np.array(positions), np.array(sizes)

  def below(self, index: int) -> Int64s:
    """Returns the indices of the public states in the subgame of a public state, in preorder."""
    order, positions, sizes = self._preorder
    return order[positions[index] : positions[index] + sizes[index]]

  def num_private_states(self, index: int) -> tuple[int, int]:
    return len(self.rows(index, 0)), len(self.rows(index, 1))

  def reach(self, policy: Float64s, given_ranges: RangesByState | None = None) -> PerPlayer:
    """Returns the probability that each player plays to each of its rows; `given_ranges` as in `evaluated`."""
    result = []
    for player, forest in enumerate(self.forests):
      given = np.full(len(forest.above), np.nan)
      given[: forest.begins[1]] = self.first_reach[player]
      for index, ranges in (given_ranges or {}).items():
        given[self.rows(index, player)] = ranges[player]
      result.append(forest.reach(policy, given))
    return result[0], result[1]

  def evaluated(
    self,
    policy: Float64s,
    searcher: int,
    given_ranges: RangesByState | None = None,
    *,
    responds: bool = True,
  ) -> "EvaluatedForestPolicy":
    return EvaluatedForestPolicy(self, policy, searcher, responds, given_ranges)


def forest_of(tree: SearchTree) -> ForestTree:
  """Returns a search tree as the `ForestTree` that it is.

  Raises:
    UnsupportedGameError: the tree is a `RiverTree`, which lists no histories.
  """
  if not isinstance(tree, ForestTree):
    raise errors.UnsupportedGameError(
      "Over vectors of hands no histories are listed, and search cannot stop at a river. Use private_states, beliefs "
      "and private_values."
    )
  return tree


@dataclasses.dataclass(eq=False, repr=False)
class EvaluatedForestPolicy(EvaluatedPolicy):
  """A policy of both players over private states, see `EvaluatedPolicy`.

  Attributes:
    unanswered: bool (slots,), or None. Actions of the opponent to which the policy has no answer. The opponent's best
      response does not consider them. After such an action, the opponent keeps the expected payoff that it had where it
      chose the action. Only for a `ListedTree`: `w` must be defined where the game ends.
    gifts_from: int. The depth from which on the opponent's actions count as gifts.
  """

  tree: ForestTree
  policy: Float64s
  searcher: int
  responds: bool = True
  given_ranges: RangesByState | None = None
  unanswered: Bools | None = None
  gifts_from: int = 0

  def with_policy(self, policy: Float64s, *, answers_all: bool = False) -> "EvaluatedForestPolicy":
    unanswered = None if answers_all else self.unanswered
    return dataclasses.replace(self, policy=policy, unanswered=unanswered)

  def with_gifts_from(self, depth: int) -> "EvaluatedForestPolicy":
    """Returns the same policy with other gifts: only the opponent's actions from a depth on count."""
    # A copy keeps the values that have been computed.
    result = copy.copy(self)
    result.gifts_from = depth
    result.__dict__.pop("_gifts", None)
    return result

  @functools.cached_property
  def reach(self) -> PerPlayer:
    """By player, the probability that the player plays to each of its rows; shape (rows,)."""
    return self.tree.reach(self.policy, self.given_ranges)

  @property
  def _forest(self) -> PrivateForest:
    """The opponent's private states."""
    return self.tree.forests[1 - self.searcher]

  @functools.cached_property
  def w(self) -> Float64s:
    """The probability that chance and the searcher lead to each of the opponent's rows: w; shape (rows,)."""
    return self.tree.counterfactual_reach_of_rows(1 - self.searcher, self.reach[self.searcher])

  @functools.cached_property
  def counterfactual_values(self) -> Values:
    """The opponent's counterfactual values."""
    ends = self.tree.values_at_ends(1 - self.searcher, self.reach[self.searcher])
    policy = None if self.responds else self.policy
    values = self._forest.values(ends, policy, excluded=self.unanswered)
    if self.unanswered is None:
      return values
    return self._with_earlier_payoffs(values, self.unanswered)

  def _with_earlier_payoffs(self, values: Values, unanswered: Bools) -> Values:
    """Returns values in which the expected payoff below an unanswered action is that at the action's infoset."""
    forest = self._forest
    best = forest.per_infoset(np.where(unanswered, -np.inf, values.action_values), np.maximum)
    w = self.w[forest.row_of_slot]
    payoffs = np.divide(best, w, out=np.zeros_like(best), where=w > 0)
    # The index `NONE` selects the last element.
    payoffs = np.append(np.where(unanswered, payoffs, np.nan), np.nan)[forest.slot]
    payoffs = forest.inherited(payoffs)
    rows = np.where(np.isnan(payoffs), values.rows, payoffs * self.w)
    moved = forest.slot >= 0
    return Values(rows, np.bincount(forest.slot[moved], rows[moved], len(best)).astype(np.float64))

  def _value_of_game(self) -> float:
    return float(self.counterfactual_values.rows[: self._forest.begins[1]].sum())

  def opponent_action_values(self) -> Float64s:
    return self.counterfactual_values.action_values

  def ranges(self, index: int) -> PerPlayer:
    first, second = (self.reach[player][self.tree.rows(index, player)] for player in (0, 1))
    return first, second

  def opponent_values(self, index: int) -> Float64s:
    return self.counterfactual_values.rows[self.tree.rows(index, 1 - self.searcher)]

  def gifts(self, index: int) -> Float64s:
    return self._gifts[self.tree.rows(index, 1 - self.searcher)]

  @functools.cached_property
  def _gifts(self) -> Float64s:
    """The expected payoff that the opponent has lost on the way to each of its rows: g; shape (rows,)."""
    forest, (rows, action_values) = self._forest, self.counterfactual_values
    row_of_slot = forest.row_of_slot
    moves = max(0, self.gifts_from - self.tree.first_length)
    first_counted = forest.begins[min(moves, len(forest.levels) + 1)]
    w = self.w[row_of_slot]
    counts = (row_of_slot >= first_counted) & (w > 0)
    lost = np.maximum(rows[row_of_slot] - action_values, 0.0)
    return forest.path_sums(np.divide(lost, w, out=np.zeros_like(lost), where=counts))

  def has_unanswered(self, index: int) -> bool:
    if self.unanswered is None:
      return False
    forest = self._forest
    inside = forest.subtree_roots(self.tree.rows(index, 1 - self.searcher)) != NONE
    num_unanswered = forest.path_sums(self.unanswered.astype(np.float64))
    return bool((num_unanswered[inside] > 0).any())
