"""Solving subgames from ranges: their beginnings, and the solvers of their gadget games.

`start_from_ranges` and `start_from_policy` make the beginning of a subgame. A `SubgameSolver` solves gadget games by
linear programs, or by iterations until a deadline. `SearchOptions` chooses the solver and gadget of a bot's subgame.
"""

import dataclasses
import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy  # its `sparse` is imported when it is used

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.evaluation.linear_program import Method, solve_lp, solve_program
from spiel_cfr.evaluation.sequence_form_matrices import constraint_matrix, payoff_matrix, sequences
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.search.gadget_games import Bonus, GadgetGame, PerPlayer, SubgameStart
from spiel_cfr.search.gadgets import GADGETS, Gadget, find_gadget
from spiel_cfr.search.trees.search_tree import EvaluatedPolicy, RangesByState, SearchTree

# HiGHS treats coefficients below _SMALLEST as 0. If payoffs times probabilities are that small, safe strategies could
# seem unsafe, and unsafe ones safe. The payoffs of these programs are therefore multiplied by _FACTOR.
_SMALLEST, _FACTOR = 1e-9, 1e4
# The largest number of sequences of a bot's linear program, the gadget's included. Larger subgames use iterations.
_LP_SEQUENCES = 5000
# A bot's iterative solver, unless the caller names one.
_SOLVER = "dcfr"
# The largest number of a bot's iterations, without and with a limit of seconds.
_ITERATIONS, _MOST_ITERATIONS = 1000, 1 << 30
# A subgame omits private states whose probability is below this part of the largest one, because counterfactual bounds
# are divided by the probability.
_UNLIKELY = 1e-12


def start_from_policy(
  evaluated: EvaluatedPolicy, index: int, gadget: Gadget
) -> SubgameStart | None:
  """Returns the beginning of the subgame at a public state; None if its probability is 0.

  The ranges are those of a policy. The bounds are the values of the opponent's best response to it.

  Args:
    evaluated: the policy.
    index: the index of the public state.
    gadget: the gadget.
  """
  ranges = evaluated.ranges(index)
  bound = np.zeros(len(ranges[1 - evaluated.searcher]))
  if gadget.has_bounds:
    bound += evaluated.expected_payoffs(index)
  if gadget.reach:
    bound += evaluated.gifts(index)
  return start_from_ranges(evaluated.tree, index, ranges, evaluated.searcher, gadget, bound)


def start_from_ranges(
  tree: SearchTree,
  index: int,
  ranges: PerPlayer,
  searcher: int,
  gadget: Gadget,
  bound: Float64s,
) -> SubgameStart | None:
  """Returns the beginning of the subgame at a public state; None if its probability is 0.

  Args:
    tree: the public states.
    index: the index of the public state.
    ranges: by player, float64 (private states,). Both players' ranges.
    searcher: the player whose strategy is re-solved.
    gadget: the gadget. If it has bounds, the opponent's range determines only `SubgameStart.r`.
    bound: float64 (J,). The largest expected payoff that the opponent may have at each J.
  """
  searcher_range, opponent_range = (
    np.where(range_ > _UNLIKELY * range_.max(), range_, 0.0)
    for range_ in _searcher_first(ranges, searcher)
  )
  opponent_weights = np.ones_like(opponent_range) if gadget.has_bounds else opponent_range
  w = tree.counterfactual_reach(index, 1 - searcher, searcher_range)
  reach = w * opponent_weights
  is_likely = reach > _UNLIKELY * reach.max()
  if not is_likely.any():
    return None
  total = reach[is_likely].sum()
  weights = (searcher_range / total, np.where(is_likely, opponent_weights, 0.0))
  return SubgameStart(
    index,
    searcher,
    _searcher_first(weights, searcher),
    float(total),
    np.where(is_likely, w / total, 0.0),
    ranges[1 - searcher],
    bound,
  )


def _searcher_first(pair: PerPlayer, searcher: int) -> PerPlayer:
  """Returns a pair with the searcher's array first. Applied twice, it returns the original order."""
  return pair if searcher == 0 else pair[::-1]


@dataclasses.dataclass(frozen=True)
class SubgameSolver:
  """A solver of subgames, with its number of iterations and its deadline.

  Attributes:
    name: str. "lp" for a linear program, or a name in `catalogue.SOLVERS`.
    iterations: int. The largest number of iterations of an iterative solver.
    deadline: float. The time, by `time.perf_counter`, at which an iterative solver stops early.
  """

  name: str
  iterations: int = 1000
  deadline: float = math.inf

  @property
  def is_linear_program(self) -> bool:
    """True if a linear program solves the subgames exactly."""
    return self.name == "lp"

  def solve(self, gadget_game: GadgetGame) -> Float64s:
    """Returns the searcher's strategy behind a gadget in sequence form, shape (sequences of the subgame,).

    Raises:
      NoSolutionError: the linear program could not be solved.
    """
    if self.is_linear_program:
      return maximin_strategy(gadget_game)
    return self._average(gadget_game.game)

  def equilibrium(self, game: CompiledGame) -> Float64s:
    """Returns both players' strategies in a game in sequence form, shape (sequences,).

    Raises:
      NoSolutionError: the linear program could not be solved.
    """
    return solve_lp(game).sequence_form if self.is_linear_program else self._average(game)

  def _average(self, game: CompiledGame) -> Float64s:
    """Returns both players' average strategies of an iterative solver, in sequence form."""
    solver = catalogue.make(self.name, game, self.iterations)
    for count in self._slices():
      solver.run(count)
    return solver.average_sequence_form()

  def _slices(self) -> Iterator[int]:
    """Yields numbers of iterations, at least 1, that take about a tenth of the time until the deadline."""
    left = self.iterations
    count = 1 if self.deadline < math.inf else left
    while left > 0:
      start = time.perf_counter()
      yield count
      left -= count
      now = time.perf_counter()
      if now >= self.deadline:
        return
      fits = min(1e9, (self.deadline - now) / 10 * count / max(now - start, 1e-9))
      count = max(1, min(2 * count, int(fits), left))


@dataclasses.dataclass(frozen=True)
class SearchOptions:
  """Options of a bot with a blueprint: how its subgames are solved, and how large they may be.

  Attributes:
    gadget: the gadget; None for the default of each solver.
    solver: a name in `catalogue.SOLVERS`, which solves all subgames; None for linear programs where they are possible,
      and otherwise "dcfr".
    iterations: the largest number of iterations; None for the default.
    seconds: the time for a decision; infinity without a limit.
    max_histories: the largest number of histories of a subgame.
  """

  gadget: Gadget | None
  solver: str | None
  iterations: int | None
  seconds: float
  max_histories: int

  def deadline(self) -> float:
    """Returns the time, by `time.perf_counter`, by which a decision that begins now should be made."""
    return time.perf_counter() + self.seconds

  def gadget_for(self, *, can_pick: bool = True, is_linear_program: bool = True) -> Gadget:
    """Returns the gadget of a subgame; the default replaces a gadget that the subgame cannot have.

    Args:
      can_pick: see `find_gadget`.
      is_linear_program: see `find_gadget`.
    """
    is_possible = self.gadget is None or can_pick or self.gadget.front != "pick"
    gadget = self.gadget if is_possible else None
    return find_gadget(gadget, can_pick=can_pick, is_linear_program=is_linear_program)

  def iterative_solver(self, deadline: float) -> SubgameSolver:
    """Returns a solver that iterates until a deadline, by `time.perf_counter`."""
    most = _ITERATIONS if self.seconds == math.inf else _MOST_ITERATIONS
    return SubgameSolver(self.solver or _SOLVER, self.iterations or most, deadline)

  def choose(self, num_sequences: int, deadline: float) -> tuple[Gadget, SubgameSolver]:
    """Returns the gadget and the solver of a subgame.

    Args:
      num_sequences: the number of sequences of the subgame's linear program.
      deadline: the time, by `time.perf_counter`, at which iterations stop.
    """
    solver = self.iterative_solver(deadline)
    is_default = self.solver is None and self.iterations is None and self.seconds == math.inf
    if is_default and num_sequences <= _LP_SEQUENCES:
      solver = SubgameSolver("lp")
    return self.gadget_for(is_linear_program=solver.is_linear_program), solver


def solve_unsafe(
  tree: SearchTree,
  ranges: RangesByState,
  solver: SubgameSolver,
  policy: Float64s,
) -> GadgetGame | None:
  """Solves subgames for both players from their ranges, without bounds, and writes both strategies into a policy.

  Subgames with probability 0 are left out.

  Args:
    tree: the public states.
    ranges: by the index of a public state, both players' ranges there. No public state is below another.
    solver: the solver.
    policy: float64 (slots,). The policy to write to.

  Returns:
    The subgames as one game; None if all have probability 0.

  Raises:
    NoSolutionError: the linear program could not be solved.
  """
  unsafe = GADGETS["unsafe"]
  # Without bounds, both players are treated alike: either can be the searcher.
  starts = [
    start_from_ranges(tree, index, pair, 0, unsafe, np.zeros(len(pair[1])))
    for index, pair in ranges.items()
  ]
  possible = [start for start in starts if start is not None]
  if not possible:
    return None
  gadget_game = tree.builder.build(possible, unsafe)
  solution = solver.equilibrium(gadget_game.game)
  for player in (0, 1):
    gadget_game.write(solution, policy, player)
  return gadget_game


def maximin_strategy(gadget_game: GadgetGame) -> Float64s:
  """Returns the searcher's strategy that maximizes its guaranteed payoff plus the bonus, by a linear program.

  `evaluation.linear_program` describes the program.

  Returns:
    Sequence form, shape (sequences,), 0 at the other player's sequences, exact up to rounding.

  Raises:
    NoSolutionError: HiGHS fails, or no strategy satisfies the constraints of the bonus.
  """
  game, player = gadget_game.game, gadget_game.searcher
  payoffs = payoff_matrix(game, player) / (max(map(abs, game.payoff_range)) or 1.0)
  own_constraints, constraints = (constraint_matrix(game, who) for who in (player, 1 - player))
  payoffs = payoffs.T if player else payoffs
  lowest: Float64s | None = None
  if gadget_game.bonus is not None:
    columns = sequences(game, 1 - player)
    payoffs, constraints, lowest = _with_bonus(payoffs, constraints, columns, gadget_game.bonus)
  numbers = np.abs(payoffs.data[payoffs.data != 0])
  factors = (1.0, _FACTOR) if numbers.min(initial=1.0) >= _SMALLEST else (_FACTOR, 1.0)
  methods: tuple[Method, ...] = ("simplex", "interior")
  attempts = list(itertools.product(factors, methods))
  for number, (factor, method) in enumerate(attempts, 1):
    try:
      solution = solve_program(factor * payoffs, own_constraints, constraints, method, lowest)
      break
    except errors.NoSolutionError:
      if number == len(attempts):
        raise
  result = np.zeros(game.end)
  result[sequences(game, player)] = np.maximum(solution.x[: own_constraints.shape[1]], 0.0)
  return result


def _with_bonus(
  payoffs: Any, constraints: Any, columns: Int64s, bonus: Bonus
) -> tuple[Any, Any, Float64s]:
  """Adds a bonus to a linear program.

  Args:
    payoffs: sparse (the searcher's sequences, the opponent's sequences). The searcher's payoffs.
    constraints: sparse (1 + the opponent's infosets, the opponent's sequences). See `constraint_matrix`.
    columns: int64 (the opponent's sequences,). The sequence of each column.
    bonus: the bonus.

  Returns:
    The new payoffs, the new constraints, and the smallest value that the program allows at each row of the constraints.
  """
  weights = np.zeros(payoffs.shape[1])
  weights[np.searchsorted(columns, bonus.picks)] = bonus.weights
  # The value of a pick is its payoffs plus the values of the infosets below it. The bonus adds both to the column of
  # the empty sequence.
  below = constraints.minimum(0.0) @ weights
  first = scipy.sparse.csr_matrix(([1.0], ([0], [0])), (1, len(weights)))
  new_constraints = constraints + scipy.sparse.csr_matrix(below[:, None]) @ first
  new_payoffs = payoffs + scipy.sparse.csr_matrix((payoffs @ weights)[:, None]) @ first
  lowest = np.full(constraints.shape[0], -np.inf)
  lowest[1 + bonus.infosets] = 0.0
  return new_payoffs, new_constraints, lowest
