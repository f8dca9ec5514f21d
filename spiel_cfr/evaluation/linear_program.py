"""Linear program of a two-player constant-sum game: its value and optimal strategies.

    maximize q_0  over x >= 0 and q, such that  E x = e  and  F' q <= A' x

x is the strategy of player 0, A its payoffs, e = (1, 0, ..., 0), and E and F are the constraints of the two players
(`sequence_form_matrices`). The variables q bound the payoff that player 1's best response leaves at each of its
infosets. The duals of the inequalities are an optimal strategy of player 1. The program has a row for each sequence of
player 1 and each infoset of player 0. Koller, Megiddo and von Stengel, "Fast algorithms for finding randomized
strategies in game trees" (1994).
"""

import dataclasses
import time
from typing import Any, Literal

import numpy as np
import scipy  # its parts are imported when they are used

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import interruptible
from spiel_cfr.evaluation import evaluate
from spiel_cfr.evaluation.sequence_form_matrices import constraint_matrix, payoff_matrix, sequences
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.policies import forms
from spiel_cfr.policies.solved_policy import SolvedPolicy

Method = Literal["simplex", "interior"]
_SCIPY = {"simplex": "highs-ds", "interior": "highs-ipm"}
# The smallest tolerance of feasibility that HiGHS takes.
_FEASIBLE = 1e-10


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LPSolution(SolvedPolicy):
  """The solution of a linear program, from `solve_lp`.

  Attributes:
    compiled_game: the game as arrays.
    value: the payoff that player 0 can guarantee, and to which player 1 can limit it.
    sequence_form: float64 (sequences,). Optimal strategies of both players.
    nash_conv: the NashConv of these strategies, which certifies them: `value` is at most this far from the value of the
      game.
    seconds: the time to build and solve the program, without compiling the game.
    method: the method of `solve_lp`.
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
    game: a compiled game, or an argument of `compile_game`. Up to some ten thousand sequences a player this takes
      seconds, and is more exact than any solver that iterates. For larger games, see `solve`.
    method: "simplex" (dual simplex, exact to rounding), or "interior" (interior point, then simplex from there).

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players.
    AbstractionError: infosets of the game are shared.
    ArgumentError: `method` is unknown.
    InvalidPayoffError: the payoffs are too large or too small to compute with.
    NoSolutionError: HiGHS gives up, as it does on payoffs of very different sizes.
    GameError: see `compile_game`.
  """
  arguments.one_of(method, "method", list(_SCIPY))
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
  constraints = [constraint_matrix(compiled, player) for player in (0, 1)]
  found = solve_program(payoffs, constraints[0], constraints[1], method)
  # The program minimizes; duals of its inequalities are at most 0.
  x, y = found.x[: constraints[0].shape[1]], -found.ineqlin.marginals
  sums = np.zeros(compiled.end)
  for player, strategy in enumerate((x, y)):
    # Rounding leaves negative numbers near 0.
    sums[sequences(compiled, player)] = np.maximum(strategy, 0.0)
  sequence_form = forms.sequence_form(compiled, forms.behavioral_form(compiled, sums))
  seconds = time.perf_counter() - start
  evaluation = evaluate.evaluate(compiled, sequence_form)
  # More exact than the value of the program, whose error is relative to the largest payoff.
  value = float(evaluation.expected_values[0]) + 0.0
  return LPSolution(compiled, value, sequence_form, evaluation.nash_conv, seconds, method)


def solve_program(
  payoffs: Any, own: Any, theirs: Any, method: Method, lowest: Float64s | None = None
) -> Any:
  """Solves the program above, maximizing q_0 over x >= 0 and q >= lowest.

  Args:
    payoffs: A, a sparse matrix of shape (sequences of player 0, sequences of player 1).
    own: E, a sparse matrix of shape (1 + infosets, sequences) of player 0.
    theirs: F, a sparse matrix of shape (1 + infosets, sequences) of player 1.
    method: see `solve_lp`.
    lowest: float64 (1 + infosets of player 1,). Lower bounds of q; by default none.

  Returns:
    SciPy's result, of a program that minimizes -q_0 over (x, q).

  Raises:
    NoSolutionError: HiGHS gives up, or no strategy satisfies the lower bounds.
  """
  num_infosets, num_sequences = own.shape
  costs = np.zeros(num_sequences + theirs.shape[0])
  costs[num_sequences] = -1.0
  if lowest is None:
    lowest = np.full(theirs.shape[0], -np.inf)
  least = np.append(np.zeros(num_sequences), lowest)
  right = np.zeros(num_infosets)
  right[0] = 1.0
  empty = scipy.sparse.csr_matrix((num_infosets, theirs.shape[0]))
  found: Any = interruptible(
    lambda: scipy.optimize.linprog(
      costs,
      A_ub=scipy.sparse.hstack([-payoffs.T, theirs.T]).tocsc(),
      b_ub=np.zeros(theirs.shape[1]),
      A_eq=scipy.sparse.hstack([own, empty]).tocsc(),
      b_eq=right,
      bounds=np.stack([least, np.full_like(least, np.inf)], axis=1),
      method=_SCIPY[method],
      options={"primal_feasibility_tolerance": _FEASIBLE, "dual_feasibility_tolerance": _FEASIBLE},
    ),
    f"linear program of {len(costs):,} variables and {num_infosets + theirs.shape[1]:,} constraints",
  )
  if found.status != 0:
    raise errors.NoSolutionError(
      f"HiGHS has not solved the program: {found.message} Scale the payoffs, or use another method or `solve`."
    )
  return found
