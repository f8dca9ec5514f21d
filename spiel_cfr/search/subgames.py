"""Subgames from ranges: a public belief state as a game, its strategies, and the values of its private states.

    state = public_states("leduc_poker").natural_cut()[0]
    ranges = [np.ones(len(state.private_states(player))) for player in range(2)]
    solution = Subgame(state, ranges).solve()
    solution.values  # of each private state of both players

Ranges are how likely each player plays to its private states; chance's probabilities come from the game. All that
follows depends on them and on nothing else above (DeepStack, Moravčík et al. 2017; ReBeL, Brown et al. 2020).
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
from spiel_cfr.search.cut_outs import Pair, Start, SubgameSolver
from spiel_cfr.search.gadgets import GADGETS, Gadget, find_gadget
from spiel_cfr.search.lookahead import Front, LeafValues, Lookahead, check_leaf_values
from spiel_cfr.search.search_tree import PublicState


@dataclasses.dataclass(frozen=True, eq=False)
class Bounds:
  """The most that a searcher's opponent may get in a subgame, which makes solving it again safe.

  Attributes:
    searcher: the player who is solved again.
    limits: float64 (the opponent's private states,). The largest counterfactual values, such as those of
      `Solution.values`, in the scale of the searcher's range.
    gifts: float64 (the opponent's private states,). An increase of the limits for gadgets whose `reach` is true; 0 by
      default.
    gadget: one of `GADGETS`, or a `Gadget`; by default "safe" for a linear program, "follow" for a solver that iterates
      and in vector form.
  """

  searcher: int
  limits: npt.ArrayLike
  gadget: str | Gadget | None = None
  gifts: npt.ArrayLike = 0.0

  def __post_init__(self) -> None:
    """Checks the player.

    Raises:
      ArgumentError: there is no such player.
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

    The gifts g(J) are in the same scale.

    Args:
      public_state: one of `public_states(game)`.
      policy: a policy of both players.
      searcher: the player who is solved again.
      gadget: see above.

    Raises:
      ArgumentError: there is no such player or gadget.
      PolicyError: the policy does not know the game's infosets.
    """
    tree, number = public_state.tree, public_state.number
    searcher = arguments.integer(searcher, "searcher", 0, 1)
    blueprint = tree.blueprint(tree.entries(policy), searcher)
    gifts: npt.ArrayLike = 0.0
    # Without a gadget, the solver chooses it, and so whether gifts count.
    if find_gadget(gadget, picks=tree.picks).reach:
      own = blueprint.ranges(number)[searcher]
      gifts = blueprint.gifts(number) * tree.counterfactual_reach(number, 1 - searcher, own)
    return cls(searcher, blueprint.values(number), gadget, gifts)


@dataclasses.dataclass(frozen=True, eq=False)
class Solution:
  """The solution of a subgame.

  Attributes:
    strategies: float64 (sequences,). Behavioural form of the whole game, uniform where a player does not play to; NaN
      outside of the subgame, and with bounds at the opponent's infosets.
    values: by player, float64 (private states,). What each private state expects, times the probability that chance
      and the other player's range come there; less half of what the players' returns sum to. Each player plays a best
      response to the other's strategy; with bounds, the searcher plays its strategy.
  """

  strategies: Float64s
  values: Pair


class Subgame:
  """All that follows a public state, from ranges of both players."""

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
      ranges: of each player, float64 (private states,), in the order of `private_states`: how likely it plays to each.
        They need not sum to 1, and may have zeros. Where chance moves, as at the first public state, a player has the
        private states of the move before.
      bounds: what the opponent of one player may get at most; without, both players are solved.
      leaf_values: the values of private states at the leaves, where the subgame stops, see `LeafValues`; without, it
        goes on to the end.
      depth: the number of moves, chance's included, from the first decision on. Leaves are the first decisions after
        these.

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
    """Returns the gadget, by default one that suits a linear program or a solver that iterates, and its limits."""
    bounds = self._bounds
    if bounds is None:
      return GADGETS["unsafe"], np.zeros(len(self.ranges[1 - self._searcher]))
    picks = self._tree.picks and self._leaf_values is None
    gadget = find_gadget(bounds.gadget, picks=picks, iterates=iterates)
    limits = np.asarray(bounds.limits, np.float64)
    return gadget, limits + np.asarray(bounds.gifts, np.float64) if gadget.reach else limits

  def _begin(self, gadget: Gadget, limits: Float64s) -> Start:
    """Returns the beginning of the subgame."""
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
    """The subgame as a game, with its gadget in front, as a linear program takes it; for any solver and evaluation.

    Player numbers are those of the whole game. Infosets have the names that they have there, but for those of the
    gadget, and the opponent's below it. Returns sum to 0.
    """
    gadget, limits = self._gadget(iterates=False)
    return self._tree.cut_out([self._begin(gadget, limits)], gadget).game

  def solve(self, solver: str | None = None, iterations: int = 1000) -> Solution:
    """Solves the subgame.

    Args:
      solver: "lp" for a linear program, or a name in `catalogue.SOLVERS`; by default "lp" for listed histories, "dcfr"
        in vector form. With leaf values it is PCFR+.
      iterations: the number of iterations of a solver that iterates.

    Raises:
      ArgumentError: an argument is not as above.
      NoSolutionError: a linear program was not solved.
    """
    arguments.positive_integer(iterations, "iterations")
    tree = self._tree
    if self._leaf_values is not None:
      return self._solve_to_leaves(self._leaf_values, iterations)
    if solver is None:
      solver = "lp" if tree.picks else "dcfr"
    arguments.one_of(solver, "solver", ["lp", *catalogue.SOLVERS])
    solves = SubgameSolver(solver, iterations)
    gadget, limits = self._gadget(iterates=not solves.is_program)
    start = self._begin(gadget, limits)
    with_bounds = gadget.is_safe
    cut = tree.cut_out([start], gadget, program=solves.is_program and with_bounds)
    both = solves.is_program and not with_bounds
    found = solve_lp(cut.game).sequence_form if both else solves.solve(cut)
    strategies, uniform = np.full(len(tree.owned(0)), np.nan), tree.uniform()
    for player in (self._searcher,) if with_bounds else (0, 1):
      strategies[cut.there[player]] = uniform[cut.there[player]]
      cut.write(found, strategies, player)
    values = self._values(strategies, with_bounds)
    return Solution(tree.behavioral_form(strategies), values)

  def _solve_to_leaves(self, leaf_values: LeafValues, iterations: int) -> Solution:
    """Returns the solution of what is above the leaves; values are averages of all iterations."""
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
    return Solution(self._tree.behavioral_form(strategies), values)

  def _values(self, strategies: Float64s, with_bounds: bool) -> Pair:
    """Returns the values of both players' private states; with bounds only the searcher has a strategy."""
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
      mine = tree.owned(searcher)
      both = np.where(mine, played, tree.normalized(response, tree.uniform()))
      expected = tree.blueprint(both, 1 - searcher, begins).expected(searcher)
      values[searcher] = expected.values(number)
    return values[0], values[1]


def _checked(state: PublicState, ranges: Sequence[npt.ArrayLike]) -> Pair:
  """Returns ranges as arrays."""
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
