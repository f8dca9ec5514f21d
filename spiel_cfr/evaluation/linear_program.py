"""Linear program of a two-player constant-sum game: its value and optimal strategies.

    maximize q_0  over x >= 0 and q, such that  E x = e  and  F' q <= A' x

Here x is the strategy of player 0, A its payoff matrix, and e = (1, 0, ..., 0). E and F are the constraint matrices of
players 0 and 1 (`sequence_form_matrices`). The variable q of an infoset of player 1 is the counterfactual payoff of
player 0 below it, against a best response. The duals of the inequalities are an optimal strategy of player 1. The
program has a row for each sequence of player 1 and each infoset of player 0. Source: Koller, Megiddo and von Stengel,
"Fast algorithms for finding randomized strategies in game trees" (1994).
"""

import dataclasses
import time
from typing import Any, Literal

import numpy as np
import scipy  # Python imports its submodules at their first use.

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import interruptible
from spiel_cfr.evaluation import evaluate
from spiel_cfr.evaluation.sequence_form_matrices import (
  StrategyConstraints,
  constraint_matrix,
  payoff_matrix,
  sequences,
  strategy_constraints,
)
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.policies import forms
from spiel_cfr.policies.solved_policy import SolvedPolicy

Method = Literal["simplex", "interior"]
_SCIPY_METHODS = {"simplex": "highs-ds", "interior": "highs-ipm"}
# The smallest feasibility tolerance that HiGHS accepts.
_TOLERANCE = 1e-10
# The status of a program whose constraints contradict each other.
_INFEASIBLE = 2


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LPSolution(SolvedPolicy):
  """Optimal strategies of a two-player constant-sum game and its value, from `solve_lp`.

  Attributes:
    compiled_game: `CompiledGame`. The game.
    value: float. The value of the game for player 0: the payoff that player 0 can guarantee, and that player 1 can
      limit it to.
    sequence_form: float64 (sequences,). Optimal strategies of both players.
    nash_conv: float. The NashConv of the strategies. `value` differs from the exact value of the game by at most this.
    seconds: float. The time to build and solve the program, without compiling the game.
    method: "simplex" or "interior". The method of `solve_lp`.
  """

  compiled_game: CompiledGame
  value: float
  sequence_form: Float64s
  nash_conv: float
  seconds: float
  method: Method

  @property
  def exploitability(self) -> float:
    """NashConv / 2."""
    return self.nash_conv / 2

  def __repr__(self) -> str:
    """Returns one line with the game, the value and NashConv."""
    return (
      f"<LPSolution of {self.compiled_game.name}: value {self.value:z.12g}, NashConv {self.nash_conv:z.1e}, "
      f"{self.seconds:z.3g} s by {self.method!r}>"
    )


def solve_lp(game: AnyGame, method: Method = "simplex") -> LPSolution:
  """Solves a two-player constant-sum game exactly, by linear programming with HiGHS.

      solve_lp("leduc_poker").value  # -0.0856064240780

  Args:
    game: a compiled game, or an argument of `compile_game`. With up to about ten thousand sequences a player,
      this takes seconds and is more exact than any iterative solver. For larger games, see `solve`.
    method: "simplex" for the dual simplex method, exact up to rounding; "interior" for an interior-point method whose
      result a simplex method refines.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players.
    AbstractionError: infosets of the game are shared.
    ArgumentError: `method` is unknown.
    InvalidPayoffError: the payoffs are too large or too small to compute with.
    NoSolutionError: HiGHS gives up, for example if payoffs have very different sizes.
    GameError: see `compile_game`.
  """
  arguments.one_of(method, "method", list(_SCIPY_METHODS))
  compiled = compile_game(game)
  evaluate.check_two_player_constant_sum(compiled)
  if compiled.shared_infosets is not None:
    raise errors.AbstractionError(
      f"In {compiled} infosets are shared (imperfect recall), which a linear program can't express. Use buckets that "
      "remember the player's own actions, or CFRSolver."
    )
  check_payoffs(compiled.name, compiled.payoff_range)
  start = time.perf_counter()
  # HiGHS measures feasibility in absolute numbers.
  scale = max(map(abs, compiled.payoff_range)) or 1.0
  payoffs = payoff_matrix(compiled) / scale
  first, second = (constraint_matrix(compiled, player) for player in (0, 1))
  result = solve_program(payoffs, first, second, method)
  # The program minimizes, so the duals of its inequalities are at most 0.
  x, y = result.x[: first.shape[1]], -result.ineqlin.marginals
  sums = np.zeros(compiled.end)
  for player, strategy in enumerate((x, y)):
    # Rounding can make entries slightly negative.
    sums[sequences(compiled, player)] = np.maximum(strategy, 0.0)
  sequence_form = forms.sequence_form(compiled, forms.behavioral_form(compiled, sums))
  seconds = time.perf_counter() - start
  evaluation = evaluate.evaluate(compiled, sequence_form)
  # This is more exact than the optimum of the program, whose error is relative to the largest payoff.
  value = float(evaluation.expected_values[0]) + 0.0
  return LPSolution(compiled, value, sequence_form, evaluation.nash_conv, seconds, method)


def solve_program(
  payoffs: Any, first: Any, second: Any, method: Method, lower_bounds: Float64s | None = None
) -> Any:
  """Solves the linear program of this module: maximizes q_0 over x >= 0 and q >= `lower_bounds`.

  Args:
    payoffs: A, a sparse matrix of shape (sequences of player 0, sequences of player 1).
    first: E, the sparse constraint matrix of player 0, shape (1 + infosets, sequences).
    second: F, the sparse constraint matrix of player 1, shape (1 + infosets, sequences).
    method: see `solve_lp`.
    lower_bounds: float64 (1 + infosets of player 1,). Lower bounds of q; None for no bounds.

  Returns:
    The result of `scipy.optimize.linprog`, which minimizes -q_0 over the vector (x, q).

  Raises:
    InfeasibleError: no strategy satisfies the lower bounds.
    NoSolutionError: HiGHS gives up.
  """
  num_sequences, num_values = first.shape[1], second.shape[0]
  costs = np.zeros(num_sequences + num_values)
  costs[num_sequences] = -1.0
  constraints = strategy_constraints(first, num_values)
  if lower_bounds is not None:
    constraints.lowest[num_sequences:] = lower_bounds
  return minimize(costs, scipy.sparse.hstack([-payoffs.T, second.T]), constraints, method)


def largest(numbers: Float64s) -> float:
  """Returns the largest absolute value, or 1 if all are 0: the unit of numbers for the absolute tolerances of HiGHS."""
  return float(np.abs(numbers).max(initial=0.0)) or 1.0


def minimize(
  costs: Float64s,
  inequalities: Any,
  constraints: StrategyConstraints,
  method: Method = "simplex",
) -> Any:
  """Minimizes a linear function with HiGHS. Ctrl-C acts at once.

  Args:
    costs: float64 (variables,). The coefficients of the function.
    inequalities: a sparse matrix A of shape (inequalities, variables). The constraints are A x <= 0.
    constraints: the equalities, and the lower bounds of variables.
    method: see `solve_lp`.

  Returns:
    The result of `scipy.optimize.linprog`.

  Raises:
    InfeasibleError: no variables satisfy the constraints.
    NoSolutionError: HiGHS gives up.
  """
  lowest = constraints.lowest
  num_constraints = len(constraints.right) + inequalities.shape[0]
  result: Any = interruptible(
    lambda: scipy.optimize.linprog(
      costs,
      A_ub=inequalities.tocsc(),
      b_ub=np.zeros(inequalities.shape[0]),
      A_eq=constraints.matrix,
      b_eq=constraints.right,
      bounds=np.stack([lowest, np.full_like(lowest, np.inf)], axis=1),
      method=_SCIPY_METHODS[method],
      options={
        "primal_feasibility_tolerance": _TOLERANCE,
        "dual_feasibility_tolerance": _TOLERANCE,
      },
    ),
    f"linear program of {len(costs):,} variables and {num_constraints:,} constraints",
  )
  if result.status == _INFEASIBLE:
    raise errors.InfeasibleError(f"No variables satisfy the constraints: {result.message}")
  if result.status != 0:
    raise errors.NoSolutionError(
      f"HiGHS has not solved the program: {result.message} Scale the payoffs, or use a smaller game or another method."
    )
  return result
