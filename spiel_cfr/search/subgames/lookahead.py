"""Subgames of limited depth, from a public state down to its leaves, solved by SAPCFR+.

Leaves are public states. A function maps both players' ranges there to the values of the private states. SAPCFR+ (Meng
et al., "Faster Game Solving via Asymmetry of Step Sizes", 2025) calls the function in each iteration, with the ranges
of that iteration. CFR-D (Burch, Johanson and Bowling, "Solving Imperfect Information Games Using Decomposition", 2014),
DeepStack (Moravčík et al. 2017) and ReBeL (Brown et al. 2020) do the same. One run solves the subgame for many pairs of
ranges, the columns of all arrays.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy  # its `sparse` is imported when it is used

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments
from spiel_cfr.games.openspiel.checked_calls import CHANCE
from spiel_cfr.search.gadget_games import PerPlayer
from spiel_cfr.search.gadgets import Gadget
from spiel_cfr.search.subgames.lookahead_sequences import LookaheadSequences
from spiel_cfr.search.trees.forest_tree import ForestTree, forest_of
from spiel_cfr.search.trees.search_tree import PublicState, SearchTree

# A function of public states and ranges that returns counterfactual values. Ranges and values are float64 (public
# states, 2, private states). Beyond a player's last private state, ranges are 0, and values are ignored.
LeafValues: TypeAlias = Callable[[Sequence[PublicState], Float64s], npt.ArrayLike]
# The weight of the predicted regrets, by default also that of `cfr.SAPCFRPlusSolver`. Values at leaves jump from one
# iteration to the next, so that full predictions mislead; without leaves, predictions help.
_PREDICTION_WEIGHT = 1 / 3
_LARGEST_VALUE = 1e100


def check_leaf_values(leaf_values: Any) -> None:
  """Raises ArgumentError if leaf values are not a function."""
  if not callable(leaf_values):
    raise errors.ArgumentError(
      "leaf_values must be a function of public states and ranges, not "
      f"{arguments.shortened(leaf_values)}."
    )


class ChoiceFront(NamedTuple):
  """The front of a subgame: at each private state, the opponent takes its bound or plays on.

  `gadgets` lists the other two forms of fronts. Regrets of the choice determine the opponent's range at the root.

  Attributes:
    searcher: int. The player whose strategy is re-solved.
    bounds: float64 (the opponent's private states, columns). The opponent's counterfactual value of taking the bound.
    forced: float64 (the opponent's private states, columns). The probability with which the opponent must play on.
  """

  searcher: int
  bounds: Float64s
  forced: Float64s

  @classmethod
  def of_gadget(
    cls,
    tree: SearchTree,
    index: int,
    searcher: int,
    ranges: PerPlayer,
    gadget: Gadget,
    bounds: Float64s,
  ) -> "ChoiceFront | None":
    """Returns the front of a subgame, with one column; None if the gadget has no bounds.

    Args:
      tree: the public states.
      index: the index of the public state at the root of the subgame.
      searcher: the player whose strategy is re-solved.
      ranges: by player, float64 (private states,). The ranges at the root.
      gadget: the parameters of the gadget.
      bounds: float64 (the opponent's private states,). The bounds on the opponent's counterfactual values.
    """
    if not gadget.has_bounds:
      return None
    opponent = 1 - searcher
    w = tree.counterfactual_reach(index, opponent, ranges[searcher])
    forced = gadget.entrances(w, ranges[opponent]).forced
    return cls(searcher, bounds[:, None], forced[:, None])


class LookaheadSolution(NamedTuple):
  """The solution of a subgame of limited depth, with a column for each pair of ranges.

  Attributes:
    strategies: by player, float64 (actions, columns). The average strategies, in the order of
      `LookaheadSequences.slots`.
    values: by player, float64 (private states, columns). The average counterfactual values at the public state.
    leaf_ranges: float64 (leaves, 2, width, columns). The average ranges at the leaves.
    leaf_values: float64 (leaves, 2, width, columns). The average counterfactual values at the leaves.
    drawn_ranges: float64 (leaves, 2, width, columns). The ranges at the leaves in a single iteration, chosen for each
      column.
  """

  strategies: PerPlayer
  values: PerPlayer
  leaf_ranges: Float64s
  leaf_values: Float64s
  drawn_ranges: Float64s


class _Regrets:
  """Regrets of SAPCFR+, at all infosets and in all columns.

  The kernels of `regret_minimizers` have no columns. Leaf values are Python functions, which take all columns at once.
  One column without leaves has the iterates of `cfr.SAPCFRPlusSolver` with simultaneous updates.
  """

  def __init__(self, *shape: int) -> None:
    """Begins with regrets of 0; one for each action and column."""
    self._regrets, self._predicted = np.zeros(shape), np.zeros(shape)

  def weights(self) -> Float64s:
    """Returns the weights to which the next strategy is proportional."""
    return np.maximum(self._regrets + _PREDICTION_WEIGHT * self._predicted, 0.0)

  def update(self, regrets: Float64s) -> None:
    """Adds the regrets of an iteration, which also predict those of the next iteration."""
    self._predicted = regrets
    self._regrets = np.maximum(self._regrets + regrets, 0.0)


class _PlayerIterates:
  """One player's SAPCFR+ in a lookahead: the current strategy, regrets, and sums for averages.

  Attributes:
    value_sums: float64 (private states, columns). The weighted sum of the counterfactual values at the root.
  """

  def __init__(self, sequences: LookaheadSequences, columns: int) -> None:
    """Begins with regrets of 0."""
    self._sequences, size = sequences, (sequences.size, columns)
    self._regrets = _Regrets(*size)
    self._strategy, self._reach, self._strategy_sums = (np.zeros(size) for _ in range(3))
    self.value_sums = np.zeros((sequences.num_roots, columns))

  def play(self, root_range: Float64s) -> Float64s:
    """Computes the next strategy, and returns its reach probabilities; see `LookaheadSequences.reach`."""
    self._strategy = self._sequences.strategy(self._regrets.weights())
    self._reach = self._sequences.reach(root_range, self._strategy)
    return self._reach

  def update(self, utilities: Float64s, weight: int) -> Float64s:
    """Updates regrets and sums, and returns the counterfactual values at the root; shape (private states, columns).

    Args:
      utilities: float64 (sequences, columns). The utilities as `LookaheadSequences.regrets` takes and changes them.
      weight: the weight of the iteration in the averages.
    """
    self._regrets.update(self._sequences.regrets(utilities, self._strategy))
    self._strategy_sums += weight * self._reach[:-1]
    root_values = utilities[: self._sequences.num_roots]
    self.value_sums += weight * root_values
    return root_values

  def average_strategy(self) -> Float64s:
    """Returns the average strategy in behavioral form, shape (actions, columns)."""
    return self._sequences.strategy(self._strategy_sums)[self._sequences.num_roots :]


class _ChoiceRegrets:
  """The opponent's strategy in a `ChoiceFront`, by the regrets of SAPCFR+.

  Attributes:
    player: int. The opponent.
  """

  def __init__(self, front: ChoiceFront) -> None:
    """Begins with regrets of 0."""
    self.player, self._front = 1 - front.searcher, front
    self._regrets = _Regrets(2, *front.bounds.shape)
    self._plays_on = np.zeros_like(front.bounds)

  def range(self) -> Float64s:
    """Returns the opponent's range behind the choice in the next iteration."""
    plays_on, takes = self._regrets.weights()
    total = plays_on + takes
    self._plays_on = np.where(total > 0, plays_on / np.where(total > 0, total, 1.0), 0.5)
    return self._front.forced + (1 - self._front.forced) * self._plays_on

  def update(self, values: Float64s) -> None:
    """Updates the regrets with the counterfactual values of playing on."""
    bounds = self._front.bounds
    mean = self._plays_on * values + (1 - self._plays_on) * bounds
    self._regrets.update(np.stack([values - mean, bounds - mean]))


class Lookahead:
  """The subgame from a public state down to its leaves.

  Attributes:
    root: `PublicState`. The public state where the subgame begins.
    leaves: tuple of `PublicState`. The public states where the subgame stops.
    counts: int64 (leaves, 2). The number of private states of each player at the leaves.
    chances: float64 (leaves, width, width). Chance's probability of each pair of private states at the leaves.
    sequences: tuple of two `LookaheadSequences`. The sequences of each player.
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
    inside, leaves = _region(tree, root.index, depth)
    self.leaves = tuple(PublicState(root.tree, index) for index in leaves)
    self.counts = np.array([tree.num_private_states(leaf) for leaf in leaves], np.int64)
    self.counts = self.counts.reshape(-1, 2)
    *ends, payoffs = tree.end_pairs(inside)
    rows_at_leaves = [
      np.concatenate([np.zeros(0, np.int64), *(tree.rows(leaf, player) for leaf in leaves)])
      for player in (0, 1)
    ]
    first, second = (
      LookaheadSequences(
        tree.forests[player],
        tree.rows(root.index, player),
        np.concatenate([ends[player], rows_at_leaves[player]]),
      )
      for player in (0, 1)
    )
    self.sequences = first, second
    last_sequences = first.before(ends[0]), second.before(ends[1])
    self._payoffs = scipy.sparse.csr_matrix((payoffs, last_sequences), (first.size, second.size))
    self._payoffs_of_second = self._payoffs.T.tocsr()
    # By the number of columns: the leaves, repeated for each column.
    self._repeated_leaves: dict[int, tuple[PublicState, ...]] = {}
    shape = len(leaves), 2, int(self.counts.max(initial=1))
    self._is_private = np.arange(shape[2]) < self.counts[:, :, None]
    self._connect_leaves(rows_at_leaves)
    self.chances = np.zeros((shape[0], shape[2], shape[2]))
    for position, leaf in enumerate(leaves):
      first_state, second_state, chance = tree.pairs(leaf)
      np.add.at(self.chances[position], (first_state, second_state), chance)

  def _connect_leaves(self, rows: Sequence[Int64s]) -> None:
    """Finds the sequences before private states at the leaves.

    Args:
      rows: by player, int64 array. The rows of the private states at the leaves, leaf by leaf.
    """
    # The last sequence before each private state at the leaves. Beyond the last private state: the row of zeros of
    # `LookaheadSequences.reach`.
    self._sequence_before = np.empty(self._is_private.shape, np.int64)
    # By player, sparse (sequences, leaves times width): adds values at leaves to the last sequences before them.
    self._gather: list[Any] = []
    for player, side in enumerate(self.sequences):
      is_private, sequence_before = self._is_private[:, player], self._sequence_before[:, player]
      sequence_before[:] = side.size
      sequence_before[is_private] = side.before(rows[player])
      positions = np.flatnonzero(is_private.ravel())
      ones = np.ones(len(positions)), (sequence_before[is_private], positions)
      self._gather.append(scipy.sparse.csr_matrix(ones, (side.size, is_private.size)))

  def solve(
    self,
    ranges: PerPlayer,
    leaf_values: LeafValues,
    iterations: int,
    front: ChoiceFront | None = None,
    drawn_iterations: Int64s | None = None,
  ) -> LookaheadSolution:
    """Solves the subgame for pairs of ranges.

    Updates are simultaneous, because the proof of convergence needs leaf values for the strategies that both players
    play in the iteration.

    Args:
      ranges: by player, float64 (private states, columns). The ranges, in the order of `private_states`.
      leaf_values: the values at the leaves.
      iterations: the number of iterations.
      front: the front of the subgame; None without one.
      drawn_iterations: int64 (columns,). For each column, the iteration whose ranges at the leaves become
        `drawn_ranges`; the last by default.

    Raises:
      ArgumentError: `leaf_values` returns an array of a wrong shape, or numbers that are not finite.
    """
    columns = ranges[0].shape[1]
    root_ranges, iterates = (
      list(ranges),
      [_PlayerIterates(side, columns) for side in self.sequences],
    )
    sums_of_ranges, sums_of_values, drawn = np.zeros((3, *self._sequence_before.shape, columns))
    if drawn_iterations is None:
      drawn_iterations = np.full(columns, iterations)
    choice = None if front is None else _ChoiceRegrets(front)
    for iteration in range(1, iterations + 1):
      weight = iteration**2
      if choice is not None:
        root_ranges[choice.player] = choice.range()
      reach = [each.play(range_) for each, range_ in zip(iterates, root_ranges, strict=True)]
      leaf_ranges = np.stack(
        [reach[player][self._sequence_before[:, player]] for player in (0, 1)], axis=1
      )
      at_leaves = self._leaf_values(leaf_values, leaf_ranges)
      root_values = [
        each.update(utilities, weight)
        for each, utilities in zip(iterates, self._utilities(reach, at_leaves), strict=True)
      ]
      if choice is not None:
        choice.update(root_values[choice.player])
      sums_of_ranges += weight * leaf_ranges
      sums_of_values += weight * at_leaves
      is_drawn = drawn_iterations == iteration
      drawn[..., is_drawn] = leaf_ranges[..., is_drawn]
    total = iterations * (iterations + 1) * (2 * iterations + 1) / 6
    first, second = iterates
    return LookaheadSolution(
      (first.average_strategy(), second.average_strategy()),
      (first.value_sums / total, second.value_sums / total),
      sums_of_ranges / total,
      sums_of_values / total,
      drawn,
    )

  def _utilities(self, reach: list[Float64s], at_leaves: Float64s) -> tuple[Float64s, Float64s]:
    """Returns each player's utility of its sequences, without that of its later actions; shape (sequences, columns).

    Args:
      reach: by player, the result of `LookaheadSequences.reach`.
      at_leaves: float64 (leaves, 2, width, columns). The counterfactual values at the leaves.
    """
    columns = at_leaves.shape[3]
    first = self._payoffs @ reach[1][:-1]
    second = -(self._payoffs_of_second @ reach[0][:-1])
    first += self._gather[0] @ at_leaves[:, 0].reshape(-1, columns)
    second += self._gather[1] @ at_leaves[:, 1].reshape(-1, columns)
    return first, second

  def _leaf_values(self, leaf_values: LeafValues, ranges: Float64s) -> Float64s:
    """Returns the values at the leaves, shape (leaves, 2, width, columns), 0 beyond the last private state."""
    if not self.leaves:
      return ranges
    asked = np.moveaxis(ranges, 3, 0).reshape(-1, *ranges.shape[1:3])
    columns = ranges.shape[3]
    states = self._repeated_leaves.setdefault(columns, self.leaves * columns)
    returned = leaf_values(states, asked)
    try:
      result = np.zeros(0) if np.iscomplexobj(returned) else np.asarray(returned, np.float64)
    except (TypeError, ValueError):
      result = np.zeros(0)
    if result.shape != asked.shape:
      raise errors.ArgumentError(
        f"leaf_values must return an array of the shape of its ranges, {asked.shape}, not "
        f"{arguments.shortened(returned)}."
      )
    result = np.moveaxis(result.reshape(columns, *ranges.shape[:3]), 0, 3)
    result = np.where(self._is_private[..., None], result, 0.0)
    # Sums over iterations could overflow beyond this.
    if not (np.abs(result) <= _LARGEST_VALUE).all():
      raise errors.ArgumentError(
        f"leaf_values must return numbers of at most {_LARGEST_VALUE:zg}, without NaN or infinity."
      )
    return result


def _region(tree: ForestTree, root: int, depth: int) -> tuple[Int64s, list[int]]:
  """Returns the indices of the public states above the leaves, the root first, and the indices of the leaves."""
  inside, leaves, level = list[int](), list[int](), np.array([root])
  # The least depth at which a decision is a leaf; None until the first decision is found.
  leaf_depth: int | None = None
  while len(level):
    movers = {index: tree.players(index) for index in level.tolist()}
    if leaf_depth is None:
      depths = [tree.depth(index) for index, who in movers.items() if who != (CHANCE,)]
      leaf_depth = min(depths) + depth if depths else None
    goes_on = []
    for index, who in movers.items():
      if who == (CHANCE,) or leaf_depth is None or tree.depth(index) < leaf_depth:
        goes_on.append(index)
      elif CHANCE in who:
        raise errors.UnsupportedGameError(
          f"At {PublicState(tree, index)!r} either chance or a player may be to move, so search cannot stop there. "
          "Give another depth, or no leaf_values."
        )
      else:
        leaves.append(index)
    inside += goes_on
    level = np.flatnonzero(np.isin(tree.above, goes_on))
  return np.array(inside), leaves
