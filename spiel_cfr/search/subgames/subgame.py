"""Subgames from ranges: a public state and both players' ranges as a game, its solution, and values of private states.

    state = public_states("leduc_poker").natural_cut()[0]
    ranges = [np.ones(count) for count in state.num_private_states]
    solution = Subgame(state, ranges).solve()
    solution.values  # of each private state of both players

A range is the probability with which a player plays to each of its private states. Chance's probabilities come from the
game. The subgame depends on the part of the game above it only through the two ranges (DeepStack, Moravčík et al. 2017;
ReBeL, Brown et al. 2020).
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies.open_spiel import AnyPolicy
from spiel_cfr.search.gadget_games import PerPlayer, SubgameStart
from spiel_cfr.search.gadgets import Gadget, find_gadget
from spiel_cfr.search.subgames.lookahead import (
  ChoiceFront,
  LeafValues,
  Lookahead,
  check_leaf_values,
)
from spiel_cfr.search.subgames.subgame_solver import SubgameSolver, solve_unsafe, start_from_ranges
from spiel_cfr.search.trees.search_tree import PublicState


@dataclasses.dataclass(frozen=True, eq=False)
class Bounds:
  """Upper bounds on the opponent's counterfactual values in a subgame, which make re-solving safe.

  Attributes:
    searcher: int. The player whose strategy is re-solved.
    values: float64 (the opponent's private states,). The largest counterfactual value that the opponent may have at
      each of its private states, in the scale of the searcher's range. Example: `SubgameSolution.values` of an earlier
      solution for the same ranges.
    gadget: str or `Gadget`. A name in `GADGETS`, or a gadget. The default is "safe" for a linear program, and "follow"
      for an iterative solver.
    gifts: float64 (the opponent's private states,). Amounts that are added to the values by gadgets whose `reach` is
      true; 0 by default.
  """

  searcher: int
  values: npt.ArrayLike
  gadget: str | Gadget | None = None
  gifts: npt.ArrayLike = 0.0

  def __post_init__(self) -> None:
    """Checks the arguments.

    Raises:
      ArgumentError: there is no such player or gadget.
    """
    searcher = arguments.integer(self.searcher, "searcher", 0, 1)
    object.__setattr__(self, "searcher", searcher)
    if self.gadget is not None:
      find_gadget(self.gadget)

  @classmethod
  @typed
  def from_policy(
    cls,
    public_state: PublicState,
    policy: AnyPolicy,
    searcher: int,
    gadget: str | Gadget | None = None,
  ) -> "Bounds":
    """Returns the bounds of a policy: the opponent's counterfactual values by a best response to it, and its gifts.

    The value at J is v(J) w(J), and the gift is g(J) w(J), in the notation of `gadgets`.

    Args:
      public_state: one of `public_states(game)`.
      policy: a policy of both players.
      searcher: the player whose strategy is re-solved.
      gadget: a name in `GADGETS`, or a `Gadget`.

    Raises:
      ArgumentError: there is no such player or gadget.
      PolicyError: the policy does not know the game's infosets.
    """
    tree, index = public_state.tree, public_state.index
    searcher = arguments.integer(searcher, "searcher", 0, 1)
    evaluated = tree.evaluated(tree.policy_array(policy), searcher)
    gifts: npt.ArrayLike = 0.0
    # If `gadget` is None, the solver determines the gadget, and the gadget determines whether gifts count.
    if find_gadget(gadget).reach:
      w = tree.counterfactual_reach(index, 1 - searcher, evaluated.ranges(index)[searcher])
      gifts = evaluated.gifts(index) * w
    return cls(searcher, evaluated.opponent_values(index), gadget, gifts)


@dataclasses.dataclass(frozen=True, eq=False)
class SubgameSolution:
  """The solution of a subgame.

  Attributes:
    strategies: float64 (sequences,). Both strategies in behavioral form of the whole game: uniform at infosets to
      which the player itself does not play, NaN outside the subgame. With bounds, also NaN at the opponent's infosets.
    values: by player, float64 (private states,). The counterfactual value of each private state: the expected payoff,
      less half of the constant to which returns sum, times the probability that chance and the other player's range
      lead there. Each player plays a best response to the other's strategy. With bounds, the searcher plays its own
      strategy. With leaf values, these are averages over all iterations.
  """

  strategies: Float64s
  values: PerPlayer


class Subgame:
  """The rest of the game after a public state, with given ranges of both players.

  Attributes:
    public_state: `PublicState`. The public state.
    ranges: by player, float64 (private states,). The ranges.
  """

  def __init__(
    self,
    public_state: PublicState,
    ranges: Sequence[npt.ArrayLike],
    bounds: Bounds | None = None,
    leaf_values: LeafValues | None = None,
    *,
    depth: int = 2,
  ) -> None:
    """Takes a public state and ranges, which together are a public belief state.

    Args:
      public_state: one of `public_states(game)`.
      ranges: by player, float64 (private states,), in the order of `private_states`. The probability with which the
        player plays to each private state. The numbers need not sum to 1, and zeros are allowed. Where chance moves, as
        at the first public state, the private states are those before chance's move.
      bounds: the opponent's bounds; None solves the subgame for both players.
      leaf_values: the values of private states at the leaves, where the subgame stops, see `LeafValues`. With None, the
        subgame continues to the end of the game.
      depth: the number of moves from the first decision to the leaves, chance's included. Leaves are the first
        decisions after at least that many moves.

    Raises:
      ArgumentError: an argument is not as above, or no pair of private states has a positive probability.
    """
    if not isinstance(public_state, PublicState):
      raise errors.ArgumentError(
        f"public_state must be one of public_states(game), not {arguments.shortened(public_state)}."
      )
    if leaf_values is not None:
      check_leaf_values(leaf_values)
    self.public_state, self._tree = public_state, public_state.tree
    self.ranges = _checked_ranges(public_state, ranges)
    self._leaf_values, self._depth = leaf_values, arguments.positive_integer(depth, "depth")
    if bounds is None:
      # This gadget ignores its bounds, and both players' strategies are solved.
      bounds = Bounds(0, np.zeros(len(self.ranges[1])), "unsafe")
    arguments.of_type(bounds, "bounds", Bounds)
    self._searcher, self._gadget_of_bounds = bounds.searcher, bounds.gadget
    count, opponent = len(self.ranges[1 - self._searcher]), 1 - self._searcher
    self._bound_values = _checked_numbers("values", bounds.values, count, opponent)
    self._gifts = _checked_numbers("gifts", bounds.gifts, count, opponent, may_be_scalar=True)
    self._check_start()

  def __repr__(self) -> str:
    has_bounds = self._default_gadget.has_bounds
    options = f", player {self._searcher} with bounds" if has_bounds else ""
    if self._leaf_values is not None:
      options += f", leaf values at depth {self._depth}"
    return f"<Subgame of {self.public_state!r}{options}>"

  def _gadget(self, is_linear_program: bool) -> Gadget:
    """Returns the gadget; the default depends on whether a linear program solves the subgame."""
    can_pick = self._leaf_values is None
    return find_gadget(
      self._gadget_of_bounds, can_pick=can_pick, is_linear_program=is_linear_program
    )

  @property
  def _default_gadget(self) -> Gadget:
    """The gadget for the default solver."""
    return self._gadget(SubgameSolver(self._tree.default_solver).is_linear_program)

  def _check_start(self) -> None:
    """Raises ArgumentError if the gadget does not fit leaf values, or the probability of the public state is 0."""
    self._start(self._default_gadget)

  def _start(self, gadget: Gadget) -> SubgameStart:
    """Returns the beginning of the subgame behind a gadget."""
    index, searcher = self.public_state.index, self._searcher
    w = self._tree.counterfactual_reach(index, 1 - searcher, self.ranges[searcher])
    # Where w is tiny, a rounded value could be a bound far outside the payoffs of the game.
    largest = self._tree.largest_payoff * w
    values = np.clip(self._bound_values, -largest, largest) + (self._gifts if gadget.reach else 0)
    bound = np.divide(values, w, out=np.zeros_like(w), where=w > 0)
    start = start_from_ranges(self._tree, index, self.ranges, searcher, gadget, bound)
    if start is None:
      raise errors.ArgumentError(
        f"{self.public_state!r} has probability 0 with these ranges, so there is nothing to solve."
      )
    return start

  @functools.cached_property
  def game(self) -> CompiledGame:
    """The subgame as a game for any solver or evaluation, behind the gadget that a linear program uses.

    Player numbers are those of the whole game. Infosets have their names in the whole game, except those of the gadget
    and the opponent's infosets below it. Returns sum to 0.

    Raises:
      ArgumentError: the subgame has leaf values. It then has no end, and is no game. Or the subgame is a river, and the
        bounds name no gadget: linear programs use "safe" by default, which rivers do not have.
    """
    if self._leaf_values is not None:
      raise errors.ArgumentError(
        f"{self!r} stops at leaf values, so it is not a game: call solve, or leave out leaf_values and depth."
      )
    gadget = self._gadget(is_linear_program=True)
    return self._tree.builder.build([self._start(gadget)], gadget).game

  def solve(self, solver: str | None = None, iterations: int = 1000) -> SubgameSolution:
    """Solves the subgame. Margins are not checked; `resolve` and the bots check them.

    Args:
      solver: "lp" for a linear program, or a name in `catalogue.SOLVERS`. The default is "lp" for listed histories and
        "dcfr" in vector form. None with leaf values, where the solver is always SAPCFR+.
      iterations: the number of iterations of an iterative solver.

    Raises:
      ArgumentError: an argument is not as above.
      NoSolutionError: the linear program could not be solved.
    """
    arguments.positive_integer(iterations, "iterations")
    tree = self._tree
    if self._leaf_values is not None:
      if solver is not None:
        raise errors.ArgumentError(
          f"With leaf_values the solver is always SAPCFR+: leave solver out, which is {arguments.shortened(solver)}."
        )
      return self._solve_to_leaves(self._leaf_values, iterations)
    if solver is None:
      solver = tree.default_solver
    arguments.one_of(solver, "solver", ["lp", *catalogue.SOLVERS])
    subgame_solver = SubgameSolver(solver, iterations)
    is_linear_program = subgame_solver.is_linear_program
    gadget, policy = self._gadget(is_linear_program), tree.uniform()
    start = self._start(gadget)
    if gadget.has_bounds:
      gadget_game = tree.builder.build([start], gadget, is_linear_program=is_linear_program)
      gadget_game.write(subgame_solver.solve(gadget_game), policy, self._searcher)
      inside = gadget_game.slots[self._searcher]
    else:
      ranges = {self.public_state.index: self.ranges}
      both = solve_unsafe(tree, ranges, subgame_solver, policy)
      assert both is not None
      inside = np.concatenate(both.slots)
    strategies = np.full_like(policy, np.nan)
    strategies[inside] = policy[inside]
    values = self._values(policy, gadget.has_bounds)
    return SubgameSolution(tree.behavioral_form(strategies), values)

  def _solve_to_leaves(self, leaf_values: LeafValues, iterations: int) -> SubgameSolution:
    """Returns the solution of the subgame above the leaves; its values are averages over all iterations."""
    lookahead, searcher = Lookahead(self.public_state, self._depth), self._searcher
    gadget = self._gadget(is_linear_program=False)
    # These bounds are not clipped: the gadget pays them as they are, and they are not divided by w.
    bounds = self._bound_values + (self._gifts if gadget.reach else 0)
    front = ChoiceFront.of_gadget(
      self._tree, self.public_state.index, searcher, self.ranges, gadget, bounds
    )
    columns = self.ranges[0][:, None], self.ranges[1][:, None]
    solution = lookahead.solve(columns, leaf_values, iterations, front)
    strategies = np.full_like(self._tree.uniform(), np.nan)
    for player in (0, 1) if front is None else (searcher,):
      strategies[lookahead.sequences[player].slots] = solution.strategies[player][:, 0]
    values = solution.values[0][:, 0], solution.values[1][:, 0]
    return SubgameSolution(self._tree.behavioral_form(strategies), values)

  def _values(self, policy: Float64s, has_bounds: bool) -> PerPlayer:
    """Returns the counterfactual values of both players at the public state.

    Args:
      policy: float64 (slots,). The solution. If the gadget has bounds, only the searcher's part is used.
      has_bounds: whether the gadget has bounds. The searcher then plays the solution against the opponent's best
        response.
    """
    tree, index = self._tree, self.public_state.index
    given_ranges = {index: self.ranges}
    by_searcher = [tree.evaluated(policy, searcher, given_ranges) for searcher in (0, 1)]
    values = [by_searcher[1 - player].opponent_values(index) for player in (0, 1)]
    if has_bounds:
      searcher, opponent = self._searcher, 1 - self._searcher
      utilities = by_searcher[searcher].opponent_action_values()
      responses = tree.to_slots(_best_actions(tree.game, tree.behavioral_form(utilities)))
      played = np.where(tree.owned(searcher), policy, responses)
      both_play = tree.evaluated(played, opponent, given_ranges, responds=False)
      values[searcher] = both_play.opponent_values(index)
    return values[0], values[1]


def _best_actions(game: CompiledGame, values: Float64s) -> Float64s:
  """Returns the policy that plays all best actions of each infoset, equally likely.

  Args:
    game: the game.
    values: float64 (sequences,). The value of each action.

  Returns:
    Behavioral form, shape (sequences,).
  """
  result = np.zeros(game.end)
  for treeplex in game.treeplexes:
    for sequences, _ in treeplex.infoset_groups():
      is_best = values[sequences] == values[sequences].max(axis=0)
      result[sequences] = is_best / is_best.sum(axis=0)
  return result


def _checked_numbers(
  name: str, numbers: npt.ArrayLike, count: int, opponent: int, *, may_be_scalar: bool = False
) -> Float64s:
  """Returns numbers of the opponent's private states as an array, or raises ArgumentError."""
  try:
    array = np.asarray(numbers, np.float64)
  except (TypeError, ValueError):
    array = np.full(count, np.nan)
  if may_be_scalar and array.shape == ():
    array = np.full(count, array)
  if array.shape != (count,) or not np.isfinite(array).all():
    raise errors.ArgumentError(
      f"{name} must be {count} finite numbers, one for each private state of player {opponent}, not "
      f"{arguments.shortened(numbers)}."
    )
  return array


def _checked_ranges(state: PublicState, ranges: Sequence[npt.ArrayLike]) -> PerPlayer:
  """Returns ranges as arrays, or raises ArgumentError."""
  counts = state.num_private_states
  try:
    arrays = [np.asarray(range_, np.float64) for range_ in ranges]
  except (TypeError, ValueError):
    arrays = []
  if [array.shape for array in arrays] != [(count,) for count in counts] or not all(
    np.isfinite(array).all() and (array >= 0).all() for array in arrays
  ):
    raise errors.ArgumentError(
      f"ranges must be {counts[0]} and {counts[1]} numbers of at least 0, one for each private state of {state!r}, not "
      f"{arguments.shortened(ranges)}."
    )
  return arrays[0], arrays[1]
