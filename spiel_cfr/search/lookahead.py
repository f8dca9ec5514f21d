"""Subgames of limited depth: both players' sequences from a public state down to its leaves, solved by PCFR+.

Leaves are public states. A function maps both players' ranges there to the values of the private states. PCFR+ (Farina,
Kroer and Sandholm 2021) calls the function in each iteration, with the ranges of that iteration. Calling it in each
iteration follows CFR-D of Burch, Johanson and Bowling, "Solving Imperfect Information Games Using Decomposition"
(2014), DeepStack, Moravčík et al. (2017), and ReBeL, Brown et al. (2020). One run solves many pairs of ranges, one for
each column.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy  # its `sparse` is imported when it is used

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.search.cut_outs import Pair
from spiel_cfr.search.forest_tree import ForestTree, forest_of
from spiel_cfr.search.player_sequences import PlayerSequences
from spiel_cfr.search.private_forest import NONE
from spiel_cfr.search.search_tree import PublicState

# (public states, ranges) -> counterfactual values. Ranges and values are float64 (public states, 2, private states).
# Beyond a player's last private state, ranges are 0, and values are ignored.
LeafValues: TypeAlias = Callable[[Sequence[PublicState], Float64s], npt.ArrayLike]


def check_leaf_values(leaf_values: Any) -> None:
  """Raises ArgumentError if leaf values are not a function."""
  if not callable(leaf_values):
    raise errors.ArgumentError(
      "leaf_values must be a function of public states and ranges, not "
      f"{arguments.shortened(leaf_values)}."
    )


class Front(NamedTuple):
  """The gadget in front of a subgame: at each private state, the opponent plays on or takes its limit.

  Attributes:
    searcher: the player whose strategy is re-solved.
    limits: float64 (the opponent's private states, columns). The opponent's counterfactual value if it takes the limit.
    follows: float64 (the opponent's private states, columns). The probability with which the opponent has to play on.
  """

  searcher: int
  limits: Float64s
  follows: Float64s


class Found(NamedTuple):
  """The solution of a subgame of limited depth, with a column for each pair of ranges.

  Attributes:
    strategies: by player, float64 (actions, columns). The average strategies, in the order of
      `PlayerSequences.entries`.
    values: by player, float64 (private states, columns). The average counterfactual values at the public state.
    leaf_ranges: float64 (leaves, 2, width, columns). The average ranges at the leaves.
    leaf_values: float64 (leaves, 2, width, columns). The average counterfactual values at the leaves.
    drawn_ranges: float64 (leaves, 2, width, columns). The ranges at the leaves in one iteration of each column.
  """

  strategies: Pair
  values: Pair
  leaf_ranges: Float64s
  leaf_values: Float64s
  drawn_ranges: Float64s


class _Choice:
  """The opponent's choice in front of the subgame, by predictive regret matching+: to play on or to take the limit.

  Attributes:
    player: int. The opponent.
  """

  def __init__(self, front: Front) -> None:
    """Begins with regrets of 0."""
    self.player, self._front = 1 - front.searcher, front
    self._regrets, self._predicted = np.zeros((2, 2, *front.limits.shape))
    self._goes_on = np.zeros_like(front.limits)

  def range(self) -> Float64s:
    """Returns the opponent's range behind the choice in the next iteration."""
    on, off = np.maximum(self._regrets + self._predicted, 0.0)
    both = on + off
    self._goes_on = np.where(both > 0, on / np.where(both > 0, both, 1.0), 0.5)
    return self._front.follows + (1 - self._front.follows) * self._goes_on

  def update(self, values: Float64s) -> None:
    """Updates the regrets with the counterfactual values of playing on."""
    limits = self._front.limits
    mean = self._goes_on * values + (1 - self._goes_on) * limits
    self._predicted = np.stack([values - mean, limits - mean])
    self._regrets = np.maximum(self._regrets + self._predicted, 0.0)


class Lookahead:
  """The subgame from a public state down to its leaves.

  Attributes:
    root: the public state.
    leaves: tuple of `PublicState`. The public states where the subgame stops.
    counts: int64 (leaves, 2). The number of private states of each player at the leaves.
    chances: float64 (leaves, width, width). Chance's probability of each pair of private states at the leaves.
    sides: a pair of `PlayerSequences`. The sequences of each player.
  """

  def __init__(self, root: PublicState, depth: int) -> None:
    """Finds the leaves: the first decisions that come at least `depth` moves after the first decision.

    Moves of chance count.

    Raises:
      UnsupportedGameError: the game is over vectors of hands, where histories are not listed; or both a player and
        chance may be to move at one public state.
    """
    self._tree = tree = forest_of(root.tree)
    self.root = root
    inside, leaves = _region(tree, root.number, depth)
    self.leaves = tuple(PublicState(root.tree, number) for number in leaves)
    self.counts = np.array([tree.num_private_states(each) for each in leaves], np.int64)
    self.counts = self.counts.reshape(-1, 2)
    *ends, payoffs = tree.end_pairs(inside)
    at_leaves = [
      np.concatenate([np.zeros(0, np.int64), *(tree.rows(each, player) for each in leaves)])
      for player in (0, 1)
    ]
    first, second = (
      PlayerSequences(tree, player, inside, [ends[player], at_leaves[player]]) for player in (0, 1)
    )
    self.sides = first, second
    places = first.sequence[ends[0]], second.sequence[ends[1]]
    self._payoffs = scipy.sparse.csr_matrix((payoffs, places), (first.size, second.size))
    self._payoffs_of_second = self._payoffs.T.tocsr()
    # By the number of columns: the leaves, repeated for each column.
    self._states: dict[int, tuple[PublicState, ...]] = {}
    shape = len(leaves), 2, int(self.counts.max(initial=1))
    self._is_private = np.arange(shape[2]) < self.counts[:, :, None]
    # The sequence before each private state at the leaves. Beyond the last private state, the last row of
    # `PlayerSequences.reach`.
    self._before = np.empty(shape, np.int64)
    self._gather: list[Any] = []
    for player, side in enumerate(self.sides):
      own = self._is_private[:, player]
      self._before[:, player] = side.size
      self._before[:, player][own] = side.sequence[at_leaves[player]]
      positions = np.flatnonzero(own.ravel())
      numbers = np.ones(len(positions)), (self._before[:, player][own], positions)
      self._gather.append(scipy.sparse.csr_matrix(numbers, (side.size, own.size)))
    self.chances = np.zeros((shape[0], shape[2], shape[2]))
    for place, each in enumerate(leaves):
      one, other, chance = tree.pairs(each)
      np.add.at(self.chances[place], (one, other), chance)

  def solve(
    self,
    ranges: Pair,
    leaf_values: LeafValues,
    iterations: int,
    front: Front | None = None,
    moments: Int64s | None = None,
  ) -> Found:
    """Solves the subgame for pairs of ranges.

    Both players are updated at the same time, because the proof of convergence needs leaf values for the strategies
    that both play in the iteration.

    Args:
      ranges: by player, float64 (private states, columns). The ranges, in the order of `private_states`.
      leaf_values: the values at the leaves.
      iterations: the number of iterations.
      front: the gadget in front; None without a gadget.
      moments: int64 (columns,). The iteration of each column whose ranges at leaves are `drawn_ranges`; by default the
        last.

    Raises:
      ArgumentError: `leaf_values` returns an array of a wrong shape, or numbers that are not finite.
    """
    columns = ranges[0].shape[1]
    first, sizes = list(ranges), [(side.size, columns) for side in self.sides]
    # Cumulative regrets, predictions of the next regrets, and sums of strategies in sequence form.
    regrets, predicted, sums = ([np.zeros(size) for size in sizes] for _ in range(3))
    totals = [np.zeros_like(own) for own in ranges]
    at_leaves = np.zeros((3, *self._before.shape, columns))
    moments = np.full(columns, iterations) if moments is None else moments
    choice = None if front is None else _Choice(front)
    for iteration in range(1, iterations + 1):
      weight = iteration**2
      if choice is not None:
        first[choice.player] = choice.range()
      strategies = [
        side.strategy(np.maximum(own + next_one, 0.0))
        for side, own, next_one in zip(self.sides, regrets, predicted, strict=True)
      ]
      reach = [side.reach(*own) for side, *own in zip(self.sides, first, strategies, strict=True)]
      leaf_ranges = np.stack(
        [own[self._before[:, player]] for player, own in enumerate(reach)], axis=1
      )
      worth = self._worth(leaf_values, leaf_ranges)
      utilities = [
        self._payoffs @ reach[1][:-1],
        -(self._payoffs_of_second @ reach[0][:-1]),
      ]
      for player, side in enumerate(self.sides):
        own = utilities[player]
        own += self._gather[player] @ worth[:, player].reshape(-1, columns)
        predicted[player] = side.regrets(own, strategies[player])
        regrets[player] = np.maximum(regrets[player] + predicted[player], 0.0)
        sums[player] += weight * reach[player][:-1]
        totals[player] += weight * own[: side.num_roots]
      if choice is not None:
        choice.update(utilities[choice.player][: len(first[choice.player])])
      at_leaves[0] += weight * leaf_ranges
      at_leaves[1] += weight * worth
      now = moments == iteration
      at_leaves[2][..., now] = leaf_ranges[..., now]
    total = iterations * (iterations + 1) * (2 * iterations + 1) / 6
    average = [
      side.strategy(own)[side.num_roots :] for side, own in zip(self.sides, sums, strict=True)
    ]
    return Found(
      (average[0], average[1]),
      (totals[0] / total, totals[1] / total),
      at_leaves[0] / total,
      at_leaves[1] / total,
      at_leaves[2],
    )

  def _worth(self, leaf_values: LeafValues, ranges: Float64s) -> Float64s:
    """Returns the values at the leaves, shape (leaves, 2, width, columns), 0 beyond the last private state."""
    if not self.leaves:
      return ranges
    asked = np.moveaxis(ranges, 3, 0).reshape(-1, *ranges.shape[1:3])
    states = self._states.setdefault(ranges.shape[3], self.leaves * ranges.shape[3])
    found = leaf_values(states, asked)
    try:
      result = np.asarray(found, np.float64)
    except (TypeError, ValueError):
      result = np.zeros(0)
    if result.shape != asked.shape:
      raise errors.ArgumentError(
        f"leaf_values must return an array of the shape of its ranges, {asked.shape}, not "
        f"{arguments.shortened(found)}."
      )
    result = np.moveaxis(result.reshape(ranges.shape[3], *ranges.shape[:3]), 0, 3)
    result = np.where(self._is_private[..., None], result, 0.0)
    if not np.isfinite(result).all():
      raise errors.ArgumentError("leaf_values must return finite numbers, without NaN or infinity.")
    return result


def _region(tree: ForestTree, root: int, depth: int) -> tuple[Int64s, list[int]]:
  """Returns the indices of the public states above the leaves, the root first, and those of the leaves."""
  inside, leaves, level = list[int](), list[int](), np.array([root])
  end = NONE
  while len(level):
    movers = [tree.players(each) for each in level.tolist()]
    if end == NONE:
      lengths = [
        tree.length(each) for each, own in zip(level, movers, strict=True) if max(own) >= 0
      ]
      end = min(lengths) + depth if lengths else NONE
    goes_on = []
    for number, own in zip(level.tolist(), movers, strict=True):
      if end == NONE or tree.length(number) < end or max(own) < 0:
        goes_on.append(number)
      elif min(own) < 0:
        raise errors.UnsupportedGameError(
          f"At {PublicState(tree, number)!r} either chance or a player may be to move, so search cannot stop there. "
          "Give another depth, or no leaf_values."
        )
      else:
        leaves.append(number)
    inside += goes_on
    level = np.flatnonzero(np.isin(tree.above, goes_on))
  return np.array(inside), leaves
