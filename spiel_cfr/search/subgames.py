"""Subgames from ranges: a public belief state as a game, its solution, and the values of its private states.

    state = public_states("leduc_poker").natural_cut()[0]
    ranges = [np.ones(len(state.private_states(player))) for player in range(2)]
    solution = Subgame(state, ranges).solve()
    solution.values  # of each private state of both players

A range has the probability with which its player plays to each of its private states. Chance's probabilities come from
the game. The subgame depends on the part of the game above it only through the two ranges (DeepStack, Moravčík et al.
2017; ReBeL, Brown et al. 2020).
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.evaluation.linear_program import solve_lp
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies.open_spiel import AnyPolicy
from spiel_cfr.search.cut_outs import Pair, Start
from spiel_cfr.search.gadgets import GADGETS, Gadget, find_gadget
from spiel_cfr.search.lookahead import Front, LeafValues, Lookahead, check_leaf_values
from spiel_cfr.search.search_tree import PublicState
from spiel_cfr.search.subgame_solver import SubgameSolver


@dataclasses.dataclass(frozen=True, eq=False)
class Bounds:
  """Upper bounds on the opponent's counterfactual values in a subgame, which make re-solving safe.

  Attributes:
    searcher: the player whose strategy is re-solved.
    limits: float64 (the opponent's private states,). The largest counterfactual values that the opponent may have, in
      the scale of the searcher's range. `SubgameSolution.values` of an earlier solution are an example.
    gifts: float64 (the opponent's private states,). Amounts added to the limits by gadgets whose `reach` is true; 0 by
      default.
    gadget: a name in `GADGETS`, or a `Gadget`. The default is "safe" for a linear program, and "follow" for an
      iterative solver.
  """

  searcher: int
  limits: npt.ArrayLike
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
      find_gadget(self.gadget, picks=True)

  @classmethod
  @typed
  def from_policy(
    cls,
    public_state: PublicState,
    policy: AnyPolicy,
    searcher: int,
    gadget: str | Gadget | None = None,
  ) -> "Bounds":
    """Returns the opponent's counterfactual values by a best response to a policy: v(J) times the probability of J.

    The gifts are g(J) times the probability of J. That probability is the product of chance's and the searcher's.

    Args:
      public_state: one of `public_states(game)`.
      policy: a policy of both players.
      searcher: the player whose strategy is re-solved.
      gadget: a name in `GADGETS`, or a `Gadget`.

    Raises:
      ArgumentError: there is no such player or gadget.
      PolicyError: the policy does not know the game's infosets.
    """
    tree, number = public_state.tree, public_state.number
    searcher = arguments.integer(searcher, "searcher", 0, 1)
    blueprint = tree.blueprint(tree.entries(policy), searcher)
    gifts: npt.ArrayLike = 0.0
    # If gadget is None, the solver determines the gadget, and the gadget determines whether gifts count.
    if find_gadget(gadget, picks=tree.picks).reach:
      own = blueprint.ranges(number)[searcher]
      gifts = blueprint.gifts(number) * tree.counterfactual_reach(number, 1 - searcher, own)
    return cls(searcher, blueprint.values(number), gadget, gifts)


@dataclasses.dataclass(frozen=True, eq=False)
class SubgameSolution:
  """The solution of a subgame.

  Attributes:
    strategies: float64 (sequences,). Behavioural form of the whole game. It is uniform at infosets to which their owner
      does not play, and NaN outside the subgame. With bounds, it is also NaN at the opponent's infosets.
    values: by player, float64 (private states,). The counterfactual value of each private state: the expected payoff,
      less half of the constant to which returns sum, times the probability that chance and the other player's range
      lead there. Each player plays a best response to the other's strategy. With bounds, the searcher plays its own
      strategy. With leaf values, these are averages over all iterations.
  """

  strategies: Float64s
  values: Pair


class Subgame:
  """The rest of the game after a public state, with given ranges of both players."""

  def __init__(
    self,
    public_state: PublicState,
    ranges: Sequence[npt.ArrayLike],
    bounds: Bounds | None = None,
    leaf_values: LeafValues | None = None,
    *,
    depth: int = 2,
  ) -> None:
    """Takes a public belief state.

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
    if bounds is not None:
      arguments.of_type(bounds, "bounds", Bounds)
    if leaf_values is not None:
      check_leaf_values(leaf_values)
    self.public_state, self._tree = public_state, public_state.tree
    self.ranges = _checked(public_state, ranges)
    self._bounds, self._leaf_values, self._searcher = bounds, leaf_values, 0
    self._depth = arguments.positive_integer(depth, "depth")
    if bounds is not None:
      self._searcher = bounds.searcher
      opponent = 1 - self._searcher
      shape = self.ranges[opponent].shape
      for name, numbers, shapes in (
        ("limits", bounds.limits, [shape]),
        ("gifts", bounds.gifts, [shape, ()]),
      ):
        if (
          np.shape(numbers) not in shapes or not np.isfinite(np.asarray(numbers, np.float64)).all()
        ):
          raise errors.ArgumentError(
            f"{name} must be {shape[0]} finite numbers, one for each private state of player {opponent}, not "
            f"{arguments.shortened(numbers)}."
          )
    self._begin(*self._gadget(iterates=False))

  def _gadget(self, iterates: bool) -> tuple[Gadget, Float64s]:
    """Returns the gadget and its limits; the default gadget depends on whether the solver is iterative."""
    bounds = self._bounds
    if bounds is None:
      return GADGETS["unsafe"], np.zeros(len(self.ranges[1 - self._searcher]))
    picks = self._tree.picks and self._leaf_values is None
    gadget = find_gadget(bounds.gadget, picks=picks, iterates=iterates)
    limits = np.asarray(bounds.limits, np.float64)
    return gadget, limits + np.asarray(bounds.gifts, np.float64) if gadget.reach else limits

  def _begin(self, gadget: Gadget, limits: Float64s) -> Start:
    """Returns the beginning of the subgame for a gadget and its limits."""
    tree, number, searcher = self._tree, self.public_state.number, self._searcher
    reach = tree.counterfactual_reach(number, 1 - searcher, self.ranges[searcher])
    bound = np.divide(limits, reach, out=np.zeros_like(reach), where=reach > 0)
    start = tree.start(number, self.ranges, searcher, gadget, bound)
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
    """
    gadget, limits = self._gadget(iterates=False)
    return self._tree.cut_out([self._begin(gadget, limits)], gadget).game

  def solve(self, solver: str | None = None, iterations: int = 1000) -> SubgameSolution:
    """Solves the subgame. Margins are not checked; `resolve` and the bots check them.

    Args:
      solver: "lp" for a linear program, or a name in `catalogue.SOLVERS`. The default is "lp" for listed histories and
        "dcfr" in vector form. None with leaf values, where the solver is always PCFR+.
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
          f"With leaf_values the solver is always PCFR+: leave solver out, which is {arguments.shortened(solver)}."
        )
      return self._solve_to_leaves(self._leaf_values, iterations)
    if solver is None:
      solver = tree.solver
    arguments.one_of(solver, "solver", ["lp", *catalogue.SOLVERS])
    subgame_solver = SubgameSolver(solver, iterations)
    is_program = subgame_solver.is_linear_program
    gadget, limits = self._gadget(iterates=not is_program)
    start = self._begin(gadget, limits)
    with_bounds = gadget.is_safe
    cut = tree.cut_out([start], gadget, program=is_program and with_bounds)
    solves_both = is_program and not with_bounds
    found = solve_lp(cut.game).sequence_form if solves_both else subgame_solver.solve(cut)
    strategies, uniform = np.full(len(tree.owned(0)), np.nan), tree.uniform()
    for player in (self._searcher,) if with_bounds else (0, 1):
      strategies[cut.there[player]] = uniform[cut.there[player]]
      cut.write(found, strategies, player)
    values = self._values(strategies, with_bounds)
    return SubgameSolution(tree.behavioral_form(strategies), values)

  def _solve_to_leaves(self, leaf_values: LeafValues, iterations: int) -> SubgameSolution:
    """Returns the solution of the subgame above the leaves; its values are averages over all iterations."""
    lookahead, front, searcher = Lookahead(self.public_state, self._depth), None, self._searcher
    gadget, limits = self._gadget(iterates=True)
    if gadget.is_safe:
      follows = gadget.follows(self.ranges[1 - searcher])
      front = Front(searcher, limits[:, None], follows[:, None])
    columns = self.ranges[0][:, None], self.ranges[1][:, None]
    found = lookahead.solve(columns, leaf_values, iterations, front)
    strategies = np.full(len(self._tree.owned(0)), np.nan)
    for player in (0, 1) if front is None else (searcher,):
      strategies[lookahead.sides[player].entries] = found.strategies[player][:, 0]
    values = found.values[0][:, 0], found.values[1][:, 0]
    return SubgameSolution(self._tree.behavioral_form(strategies), values)

  def _values(self, strategies: Float64s, with_bounds: bool) -> Pair:
    """Returns the counterfactual values of both players; with bounds, only the searcher has a strategy."""
    tree, number, begins = (
      self._tree,
      self.public_state.number,
      {self.public_state.number: self.ranges},
    )
    played = np.where(np.isnan(strategies), tree.uniform(), strategies)
    faced = [tree.blueprint(played, searcher, begins) for searcher in (0, 1)]
    values = [faced[1 - player].values(number) for player in (0, 1)]
    if with_bounds:
      searcher = self._searcher
      utilities = faced[searcher].action_values()
      response = (utilities == tree.per_infoset(utilities, np.maximum)).astype(np.float64)
      is_searchers = tree.owned(searcher)
      policy = np.where(is_searchers, played, tree.normalized(response, tree.uniform()))
      expected = tree.blueprint(policy, 1 - searcher, begins).expected(searcher)
      values[searcher] = expected.values(number)
    return values[0], values[1]


def _checked(state: PublicState, ranges: Sequence[npt.ArrayLike]) -> Pair:
  """Returns ranges as arrays, or raises ArgumentError."""
  counts = state.tree.num_private_states(state.number)
  try:
    found = [np.asarray(own, np.float64) for own in ranges]
  except (TypeError, ValueError):
    found = []
  if [own.shape for own in found] != [(count,) for count in counts] or not all(
    np.isfinite(own).all() and (own >= 0).all() for own in found
  ):
    raise errors.ArgumentError(
      f"ranges must be {counts[0]} and {counts[1]} numbers of at least 0, one for each private state of {state!r}, not "
      f"{arguments.shortened(ranges)}."
    )
  return found[0], found[1]
