"""Public trees that list all private states of both players, with policies, values and gifts for every form of game.

Each form of game implements two computations: how chance pairs the players' private states, and the payoffs of such
pairs where the game ends. Both are linear in the other player's reach probabilities.
"""

import abc
import copy
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr.search.cut_outs import CutOut, Pair, Start
from spiel_cfr.search.forest_cut_out import cut_out
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.private_forest import NONE, PrivateForest, Values
from spiel_cfr.search.search_tree import Blueprint, Pairs, PublicState, SearchTree

# Bits of a mover: 1 and 2 for players 0 and 1, 4 for chance.
_BOTH, _CHANCE = 3, 4
# The largest number of pairs of rows where the game ends in subgames that are solved as one game.
_MOST_END_PAIRS = 500_000


class ForestTree(SearchTree):
  """All public states of a game, and both players' private states at each; `private_forest` explains rows.

  Attributes:
    name: the game's string.
    forests: by player, the forest of its private states.
    first_length: the number of moves before the first public state.
    first_reach: by player, the probability that the player plays to its first rows.
  """

  name: str
  forests: tuple[PrivateForest, PrivateForest]
  first_length: int
  first_reach: tuple[Float64s | float, Float64s | float] = (1.0, 1.0)

  @abc.abstractmethod
  def rows(self, number: int, player: int) -> Int64s:
    """Returns the rows of a player's private states at a public state, given its index."""

  @abc.abstractmethod
  def counterfactual_reach_of_rows(self, player: int, reach: Float64s) -> Float64s:
    """Returns the probability that chance and the other player lead to each of a player's rows; shape (rows,).

    Rows where the game ends may have 0, unless the form of game supports `Play.barred`.

    Args:
      player: the player.
      reach: float64 (the other player's rows,). The probability that the other player plays to each of its rows.
    """

  @abc.abstractmethod
  def ends(self, player: int, reach: Float64s) -> Float64s:
    """Returns a player's counterfactual values where the game ends, for the other player's `reach`; shape (rows,)."""

  @abc.abstractmethod
  def end_pairs(self, numbers: Int64s) -> tuple[Int64s, Int64s, Float64s]:
    """Returns the pairs of rows where the game ends right after some public states, and player 0's payoffs there.

    A payoff is the player's return less half of the constant to which returns sum, times chance's probability.

    Args:
      numbers: int64 (public states,). The indices of the public states.
    """

  @property
  @abc.abstractmethod
  def num_end_pairs(self) -> Int64s:
    """The number of pairs that `end_pairs` returns for each public state, shape (public states,)."""

  @property
  @abc.abstractmethod
  def actions(self) -> Int64s:
    """The action of OpenSpiel of each entry, shape (entries,)."""

  @abc.abstractmethod
  def private_name(self, player: int, row: int) -> str:
    """Returns a player's last information state string at a row."""

  @property
  @abc.abstractmethod
  def movers(self) -> tuple[Int64s, Int64s]:
    """The pairs of a public state's index and a player who may be to move there, ascending, as two arrays.

    Chance is -1.
    """

  def deciding(self, player: int) -> Int64s:
    numbers, movers = self.movers
    return np.unique(numbers[movers == player])

  def players(self, number: int) -> tuple[int, ...]:
    numbers, movers = self.movers
    begin, end = np.searchsorted(numbers, [number, number + 1])
    return tuple(movers[begin:end].tolist())

  def natural_cut(self) -> list[PublicState]:
    numbers, movers = self.movers
    moves = np.zeros(len(self), np.int64)
    np.bitwise_or.at(moves, numbers, 1 << (movers % 3))
    # By public state: the bits of the players who have moved above it, and whether chance has moved after one of them.
    acted, after = [0] * len(self), [False] * len(self)
    for number, (above, bits) in enumerate(
      zip(self.above.tolist(), moves[self.above].tolist(), strict=True)
    ):
      if above != NONE:
        acted[number] = acted[above] | bits & _BOTH
        after[number] = after[above] or (bits & _CHANCE > 0 and acted[above] > 0)
    decides = moves & _CHANCE == 0
    starts = np.array(after) & decides
    return self.first_of(starts if starts.any() else (np.array(acted) == _BOTH) & decides)

  @functools.cached_property
  def _preorder(self) -> tuple[Int64s, Int64s, Int64s]:
    """The public states in preorder; the position of each; and the number of public states in each subgame."""
    count, above = len(self.above), self.above.tolist()
    sizes, places = [1] * count, [0] * count
    for number in range(count - 1, 0, -1):
      if above[number] != NONE:
        sizes[above[number]] += sizes[number]
    # The next free position below each public state. The last element is for public states without a parent.
    free = [0] * (count + 1)
    for number in range(count):
      places[number] = free[above[number]]
      free[above[number]] += sizes[number]
      free[number] = places[number] + 1
    return np.argsort(places), np.array(places), np.array(sizes)

  def below(self, number: int) -> Int64s:
    """Returns the indices of the public states in the subgame of a public state, in preorder."""
    order, places, sizes = self._preorder
    return order[places[number] : places[number] + sizes[number]]

  def owned(self, player: int) -> Bools:
    return self.forests[player].deciding >= 0

  def per_infoset(self, numbers: Float64s, reduce: np.ufunc) -> Float64s:
    first, second = (forest.per_infoset(numbers, reduce) for forest in self.forests)
    return first + second

  def num_private_states(self, number: int) -> tuple[int, int]:
    return len(self.rows(number, 0)), len(self.rows(number, 1))

  def reach(self, entries: Float64s, begins: Pairs | None = None) -> Pair:
    """Returns the probability that each player plays to each of its rows; `begins` as in `blueprint`."""
    result = []
    for player, forest in enumerate(self.forests):
      given = np.full(len(forest.above), np.nan)
      given[: forest.begins[1]] = self.first_reach[player]
      for number, pair in (begins or {}).items():
        given[self.rows(number, player)] = pair[player]
      result.append(forest.reach(entries, given))
    return result[0], result[1]

  def blueprint(
    self, entries: Float64s, searcher: int, begins: Pairs | None = None
  ) -> "ForestBlueprint":
    return ForestBlueprint(self, entries, searcher, Play(self.reach(entries, begins), begins))

  def cut_out(self, starts: Sequence[Start], gadget: Gadget, *, program: bool = False) -> CutOut:
    return cut_out(self, starts, gadget, program=program)

  def batches(self, starts: Iterable[Start], *, alone: bool) -> Iterator[list[Start]]:
    batch: list[Start] = []
    pairs = 0
    for start in starts:
      more = int(self.num_end_pairs[self.below(start.number)].sum())
      if batch and (alone or pairs + more > _MOST_END_PAIRS):
        yield batch
        batch, pairs = [], 0
      batch.append(start)
      pairs += more
    if batch:
      yield batch


def forest_of(tree: SearchTree) -> ForestTree:
  """Returns a tree of public states, if it lists all private states.

  Raises:
    UnsupportedGameError: the game is over vectors of hands.
  """
  if not isinstance(tree, ForestTree):
    raise errors.UnsupportedGameError(
      "Over vectors of hands no histories are listed, and search cannot stop at a river. Use private_states, beliefs "
      "and private_values."
    )
  return tree


class Play(NamedTuple):
  """Play of a blueprint, and the opponent's best response to it.

  Attributes:
    reach: by player, float64 (rows,). The probability that the player plays to each row.
    begins: by the index of a public state, ranges that replace those of the policy.
    barred: bool (entries,), or None. Actions of the opponent to which the policy has no answer. The opponent's best
      response leaves them out. Below such an action, the opponent's expected payoff at each private state is that at
      the infoset of the action.
    gifts_from: the number of moves after which gifts count.
    responds: True if the opponent plays a best response, False if it plays the policy.
  """

  reach: Pair
  begins: Pairs | None = None
  barred: Bools | None = None
  gifts_from: int = 0
  responds: bool = True


class ForestBlueprint(Blueprint):
  """A policy of both players over private states, see `Blueprint`.

  Attributes:
    play: reach probabilities, and how the opponent responds.
  """

  tree: ForestTree

  def __init__(self, tree: ForestTree, entries: Float64s, searcher: int, play: Play) -> None:
    """Takes a policy; the arguments are the attributes."""
    self.tree, self.entries, self.searcher, self.play = tree, entries, searcher, play

  def expected(self, player: int) -> "ForestBlueprint":
    play = self.play._replace(barred=None, responds=False)
    return ForestBlueprint(self.tree, self.entries, 1 - player, play)

  def playing(self, entries: Float64s, *, answered: bool = False) -> "ForestBlueprint":
    reach = self.tree.reach(entries, self.play.begins)
    barred = None if answered else self.play.barred
    play = self.play._replace(reach=reach, barred=barred)
    return ForestBlueprint(self.tree, entries, self.searcher, play)

  def with_gifts_from(self, length: int) -> "ForestBlueprint":
    """Returns the same blueprint, with gifts that count only after a number of moves."""
    result = copy.copy(self)
    result.play = self.play._replace(gifts_from=length)
    result.__dict__.pop("_gifts", None)
    return result

  @property
  def _forest(self) -> PrivateForest:
    return self.tree.forests[1 - self.searcher]

  @functools.cached_property
  def w(self) -> Float64s:
    """The weight w of each of the opponent's rows, shape (rows,)."""
    return self.tree.counterfactual_reach_of_rows(1 - self.searcher, self.play.reach[self.searcher])

  @functools.cached_property
  def counterfactual_values(self) -> Values:
    """The opponent's counterfactual values."""
    opponent, play, forest = 1 - self.searcher, self.play, self._forest
    ends = self.tree.ends(opponent, play.reach[self.searcher])
    found = forest.values(ends, None if play.responds else self.entries, barred=play.barred)
    return found if play.barred is None else self._without_answers(found, play.barred)

  def _without_answers(self, found: Values, barred: Bools) -> Values:
    """Returns values in which the expected payoff below a barred action is that at the action's infoset."""
    forest = self._forest
    best = forest.per_infoset(np.where(barred, -np.inf, found.entries), np.maximum)
    w = self.w[forest.deciding]
    mean = np.divide(best, w, out=np.zeros_like(best), where=w > 0)
    # The index `NONE` selects the last element.
    mean = forest.down(np.append(np.where(barred, mean, np.nan), np.nan)[forest.entry])
    rows = np.where(np.isnan(mean), found.rows, mean * self.w)
    moved = forest.entry >= 0
    return Values(rows, np.bincount(forest.entry[moved], rows[moved], len(best)).astype(np.float64))

  @property
  def opponent_gets(self) -> float:
    return float(self.counterfactual_values.rows[: self._forest.begins[1]].sum())

  def action_values(self) -> Float64s:
    return self.counterfactual_values.entries

  def ranges(self, number: int) -> Pair:
    first, second = (self.play.reach[player][self.tree.rows(number, player)] for player in (0, 1))
    return first, second

  def values(self, number: int) -> Float64s:
    return self.counterfactual_values.rows[self.tree.rows(number, 1 - self.searcher)]

  def gifts(self, number: int) -> Float64s:
    return self._gifts[self.tree.rows(number, 1 - self.searcher)]

  @functools.cached_property
  def _gifts(self) -> Float64s:
    """The opponent's gifts on the way to each of its rows, per unit of w; shape (rows,)."""
    forest, (rows, entries) = self._forest, self.counterfactual_values
    rows_of_entries = forest.deciding
    moves = max(0, self.play.gifts_from - self.tree.first_length)
    late = forest.begins[min(moves, len(forest.levels) + 1)]
    w = self.w[rows_of_entries]
    counts = (rows_of_entries >= late) & (w > 0)
    lost = np.maximum(rows[rows_of_entries] - entries, 0.0)
    return forest.sums(np.divide(lost, w, out=np.zeros_like(lost), where=counts))

  def is_open(self, number: int) -> bool:
    if self.play.barred is None:
      return False
    forest = self._forest
    below = forest.tops(self.tree.rows(number, 1 - self.searcher)) != NONE
    return bool((forest.sums(self.play.barred.astype(np.float64))[below] > 0).any())
