"""The value of a two-player constant-sum game and optimal strategies, from one linear program.

    maximize q_0  over x >= 0 and q, such that  E x = e  and  F' q <= A' x

x is player 0's strategy and A its payoffs, e = (1, 0, ..., 0), E and F the constraints of the two players
(`sequence_form_matrices`); q bounds what player 1's best response leaves, infoset by infoset. The duals of the
inequalities are an optimal strategy of player 1. Koller, Megiddo and von Stengel, "Fast algorithms for finding
randomized strategies in game trees" (1994). It has as many rows as player 1 has sequences and player 0 has infosets.
"""

import dataclasses
import time
from typing import Any, Literal

import numpy as np
import scipy  # its parts are imported when they are used

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.evaluation import evaluate
from spiel_cfr.evaluation.sequence_form_matrices import constraint_matrix, payoff_matrix, sequences
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.payoffs.utility_bounds import check_payoffs
from spiel_cfr.policies import forms
from spiel_cfr.policies.solved_policy import SolvedPolicy

Method = Literal["simplex", "interior"]
_SCIPY = {"simplex": "highs-ds", "interior": "highs-ipm"}
# The smallest that HiGHS takes.
_FEASIBLE = 1e-10


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LPSolution(SolvedPolicy):
  """What `solve_lp` has found.

  Attributes:
    compiled_game: the game as arrays.
    value: the program's: what player 0 gets for certain, and player 1 can keep it to.
    sequence_form: optimal strategies of both players, shape (sequences,).
    nash_conv: what the players would gain by best responses to them, all together: the certified gap. How far `value`
      is from the game's own is at most this.
    seconds: how long the program took, building it included, compiling the game not.
    method: how it was solved.
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
    """Returns one line."""
    return (
      f"<LPSolution of {self.compiled_game.name}: value {self.value:z.12g}, NashConv {self.nash_conv:z.1e}, "
      f"{self.seconds:z.3g} s by {self.method!r}>"
    )


def solve_lp(game: AnyGame, method: Method = "simplex") -> LPSolution:
  """Solves a two-player constant-sum game exactly, by linear programming with HiGHS.

      solve_lp("leduc_poker").value  # -0.0856064240780

  Args:
    game: a compiled game, or what `compile_game` takes. Up to some ten thousand sequences a player this takes seconds,
      and no solver that iterates is as exact; beyond that, see `solve`.
    method: "simplex" (dual simplex, exact to rounding), or "interior" (interior point, then simplex from there).

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players.
    AbstractionError: infosets of the game are shared.
    ArgumentError: there is no such method.
    InvalidPayoffError: the payoffs are too large or too small to compute with.
    NoSolutionError: HiGHS gives up, as it does on payoffs of very different sizes.
    GameError: see `compile_game`.
  """
  arguments.one_of(method, "method", list(_SCIPY))
  compiled = compile_game(game)
  evaluate.check_two_player_constant_sum(compiled)
  if compiled.shared_infosets is not None:
    raise errors.AbstractionError(
      f"In {compiled} infosets are shared (imperfect recall), and no linear program says so. Take buckets that "
      "remember the player's own actions, or CFRSolver."
    )
  check_payoffs(compiled.name, compiled.payoff_range)
  start = time.perf_counter()
  # HiGHS measures feasibility in absolute numbers.
  scale = max(map(abs, compiled.payoff_range)) or 1.0
  payoffs = payoff_matrix(compiled) / scale
  own, theirs = (constraint_matrix(compiled, player) for player in (0, 1))
  found = solve_program(payoffs, own, theirs, method)
  # The program minimizes; duals of its inequalities are at most 0.
  x, y = found.x[: own.shape[1]], -found.ineqlin.marginals
  sums = np.zeros(compiled.end)
  for player, strategy in enumerate((x, y)):
    # Rounding leaves negative numbers near 0.
    sums[sequences(compiled, player)] = np.maximum(strategy, 0.0)
  sequence_form = forms.sequence_form(compiled, forms.behavioral_form(compiled, sums))
  seconds = time.perf_counter() - start
  judged = evaluate.evaluate(compiled, sequence_form)
  # Not the program's own value, which loses what is small beside the largest payoff.
  value = float(judged.expected_values[0]) + 0.0
  return LPSolution(compiled, value, sequence_form, judged.nash_conv, seconds, method)


def solve_program(
  payoffs: Any, own: Any, theirs: Any, method: Method, lowest: Float64s | None = None
) -> Any:
  """Solves the program above, maximizing q_0 over x >= 0 and q >= lowest.

  Args:
    payoffs: A, a sparse matrix of shape (sequences of player 0, sequences of player 1).
    own: E, a sparse matrix of shape (1 + infosets, sequences) of player 0.
    theirs: F, the same of player 1.
    method: see `solve_lp`.
    lowest: float64 (1 + infosets of player 1,). The least q of each; by default none.

  Returns:
    SciPy's result, of a program that minimizes -q_0 over (x, q).

  Raises:
    NoSolutionError: HiGHS gives up, or no strategy leaves as much as `lowest`.
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
  found = scipy.optimize.linprog(
    costs,
    A_ub=scipy.sparse.hstack([-payoffs.T, theirs.T]).tocsc(),
    b_ub=np.zeros(theirs.shape[1]),
    A_eq=scipy.sparse.hstack([own, empty]).tocsc(),
    b_eq=right,
    bounds=np.stack([least, np.full_like(least, np.inf)], axis=1),
    method=_SCIPY[method],
    options={"primal_feasibility_tolerance": _FEASIBLE, "dual_feasibility_tolerance": _FEASIBLE},
  )
  if found.status != 0:
    raise errors.NoSolutionError(
      f"HiGHS has not solved the program: {found.message} Scale the payoffs, or take another method or `solve`."
    )
  return found
