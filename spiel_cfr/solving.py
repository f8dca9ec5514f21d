"""Solution of a game in one call: chooses a solver, runs it, and measures the result exactly."""

import bisect
import contextlib
import dataclasses
import math
import sys
import time
from collections.abc import Iterable, Sequence

from spiel_cfr import catalogue, errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.cfr.restarts import Restarted
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.correlated import CorrelatedGap, EFRSolver
from spiel_cfr.evaluation import evaluate
from spiel_cfr.evaluation.evaluate import Evaluated
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.games.openspiel.game_size import DEFAULT_MAX_NODES
from spiel_cfr.policies.open_spiel import is_same_game
from spiel_cfr.policies.solved_policy import SolvedPolicy
from spiel_cfr.runs.checkpoint_folder import Checkpoints
from spiel_cfr.runs.run_loop import RunResult, StopReason, run
from spiel_cfr.runs.run_schedules import Powers, RunSchedule
from spiel_cfr.runs.trace import Row, Trace

_REASONS: dict[StopReason, str] = {
  "target": "the target is reached",
  "seconds": "time is up",
  "iterations": "all iterations are done",
  "interrupt": "Ctrl-C was pressed",
  "stop_when": "the solver stalls",
}
# A run of at least this many iterations stalls if NashConv in the second half did not fall to this share.
_STALL_ITERATIONS, _STALL_SHARE = 10_000, 0.8
# The solver that takes over after a stall.
_AFTER_A_STALL = "adaptive"
# A NashConv of at most this share of the range of payoffs is rounding.
_ROUNDING = 1e-12


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Solution(SolvedPolicy, Evaluated):
  """The result of `solve`.

  Attributes:
    compiled_game: the game as arrays.
    sequence_form: float64 (sequences,). The policy.
    expected_values: float64 (players,). The expected payoff of each player if all play the policy.
    best_response_values: float64 (players,). The expected payoff of each player's best response to the others.
    iterations: the number of iterations, of both solvers if a second one took over.
    seconds: the time of the call, including the compilation of the game.
    reason: the reason to stop: "target", "seconds", "iterations" or "interrupt".
    solver: the last solver, which can run further.
    why: the reason for choosing this solver, in words.
    rows: the evaluations during the run.
    correlated_gap: the distance of the sequence of all iterates from a correlated equilibrium; None if the solver tends
      to a Nash equilibrium, or if the distance is unknown.
  """

  compiled_game: CompiledGame
  sequence_form: Float64s
  expected_values: Float64s
  best_response_values: Float64s
  iterations: int
  seconds: float
  reason: StopReason
  solver: Solver
  why: str
  rows: tuple[Row, ...]
  correlated_gap: CorrelatedGap | None = None

  @property
  def equilibrium(self) -> str:
    """The kind of equilibrium, in words.

    The policy is a Nash equilibrium up to `nash_conv`. If `correlated_gap` is given, the sequence of all iterates is a
    correlated equilibrium up to it; the average policy need not be one.
    """
    if self.correlated_gap is None:
      return "Nash equilibrium"
    return f"{self.correlated_gap.kind} correlated equilibrium"

  @property
  def value(self) -> float:
    """The value of the game to player 0: the middle of `value_bounds`, with an error of at most half their distance.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players.
    """
    return sum(self.value_bounds) / 2

  def _gap(self) -> str:
    if self.compiled_game.is_two_player_constant_sum:
      return f"exploitability {self.exploitability:z.2e}"
    if self.correlated_gap is not None:
      return f"{self.equilibrium} to {self.correlated_gap.gap:z.2e}"
    return f"NashConv {self.nash_conv:z.2e}"

  def __repr__(self) -> str:
    return (
      f"<Solution of {self.compiled_game.name}: {self._gap()} after {self.iterations:,} iterations of "
      f"{_name(self.solver)} and {self.seconds:z.3g} s>"
    )

  def __str__(self) -> str:
    game = self.compiled_game
    if game.is_two_player_constant_sum:
      low, high = self.value_bounds
      error = max(0.0, high - low) / 2
      text = f"{_certain_decimals(self.value, error)} for player 0, at most {error:z.1e} off"
      payoff_line = "value", text
    else:
      play = self if self.correlated_gap is None else self.correlated_gap
      text = ", ".join(f"{expected:z.6g}" for expected in play.expected_values)
      payoff_line = "payoffs", text
    lines = [
      ("game", str(game)),
      ("solver", f"{_name(self.solver)}: {self.why}"),
      (
        "stopped",
        f"{_REASONS[self.reason]}, after {self.iterations:,} iterations and {self.seconds:z.3g} s",
      ),
      ("measured", self._gap()),
      payoff_line,
    ]
    return "\n".join(f"{name:<10} {text}" for name, text in lines)


def _certain_decimals(value: float, error: float) -> str:
  """Returns a number with the decimals that are certain if its error is at most `error`, at most twelve."""
  if not error:
    return f"{value:z.12g}"
  decimals = min(12, math.ceil(-math.log10(error)))
  return f"{round(value, decimals):z.{max(0, decimals)}f}"


def _name(solver: Solver) -> str:
  """Returns the name of the class or function that made a solver; for a wrapper, also that of the inner solver."""
  inner = solver.recipe.arguments.get("solver")
  name = solver.recipe.name
  return f"{name}({inner.recipe.name})" if isinstance(inner, Solver) else name


def choose_solver(game: AnyGame) -> tuple[str, str]:
  """Returns the name of the best solver for a game, and the reason; docs/restarts.md has the measurements.

  Raises:
    GameError: see `compile_game`.
  """
  game = compile_game(game)
  if game.is_two_player_constant_sum:
    return "restarted", (
      "for constant-sum games of two players of any size; it measures each player's strategy separately, and "
      "converges linearly near the solution"
    )
  guarantee = (
    "no solver guarantees a Nash equilibrium here (`efr` guarantees a correlated one); this one"
  )
  if game.num_players == 2:
    return "restarted", f"{guarantee} returns the best policies it met"
  return "restarted_adaptive", (
    f"{guarantee} did best on three-player Kuhn and Leduc poker, and returns the best policies it met"
  )


def solve(
  game: AnyGame,
  *,
  exploitability: float = 1e-6,
  relative: bool = False,
  seconds: float = 60.0,
  iterations: int | None = None,
  solver: str | Solver | None = None,
  evaluate_at: RunSchedule | None = None,
  traces: Iterable[Trace] = (),
  checkpoints: Checkpoints | None = None,
  max_nodes: int = DEFAULT_MAX_NODES,
  progress: bool = True,
) -> Solution:
  """Solves a game.

      solution = solve("leduc_poker", exploitability=1e-9)
      print(solution)
      solution.policy

  Args:
    game: a compiled game, or an argument of `compile_game`.
    exploitability: the target, in the game's units: stop when the exploitability of the policy is at most this. If
      exploitability is undefined (more players or general sums), stop when NashConv is at most twice this.
    relative: whether the target is a share of the range of payoffs.
    seconds: the limit of time, including the compilation of the game.
    iterations: the limit of iterations; None for no limit.
    solver: a name in the catalogue; a solver of the game, which continues from its state; or None for the best one. If
      the best one stalls in a constant-sum game of two players, without `traces` and `checkpoints`, another solver
      takes over, and the result has each player's better strategy of both.
    evaluate_at: the iterations at which to evaluate the policy, see `run`. By default, powers of 2, later of 1.2; for a
      solver with restarts, its checks.
    traces: see `run`.
    checkpoints: see `run`.
    max_nodes: the largest number of states that the game may have, see `compile_game`.
    progress: whether to write progress to standard error, see `run`.

  Returns:
    The policy, its exactly measured values, the solver, and the reason to stop. For an abstraction, the policy is for
    the full game.

  Raises:
    ArgumentError: a number is invalid, the name of the solver is unknown, or the solver belongs to another game.
    GameError: see `compile_game`.
  """
  arguments.boolean(relative, "relative")
  start = time.perf_counter()
  arguments.real_number(exploitability, "exploitability", 0.0, math.inf)
  arguments.real_number(seconds, "seconds", 0.0, math.inf)
  if iterations is not None:
    iterations = arguments.positive_integer(iterations, "iterations")
  if not isinstance(solver, str | Solver | None):
    raise errors.ArgumentError(
      "solver must be a name in catalogue.SOLVERS, such as 'dcfr', or a solver of the game, such as "
      f"CFRPlusSolver(game), not {arguments.shortened(solver)}."
    )
  compiled = compile_game(game, max_nodes=max_nodes, progress=progress)
  least, most = compiled.payoff_range
  # Traces and checkpoints are of one solver.
  records_run = checkpoints is not None or not isinstance(traces, list | tuple) or bool(traces)
  may_switch = solver is None and compiled.is_two_player_constant_sum and not records_run
  first_solver, why = _solver_to_run(solver, compiled, iterations)

  def run_solver(solver: Solver, iterations: int | None, *, stop_at_stall: bool) -> RunResult:
    return run(
      solver,
      iterations,
      target_nash_conv=2 * exploitability * (most - least if relative else 1.0),
      seconds=max(0.0, seconds - (time.perf_counter() - start)),
      stop_when=(lambda rows: _stalls(rows, most - least)) if stop_at_stall else None,
      evaluate_at=_evaluation_schedule(solver) if evaluate_at is None else evaluate_at,
      traces=traces,
      checkpoints=checkpoints,
      progress=progress,
    )

  last_solver = first_solver
  result = run_solver(first_solver, iterations, stop_at_stall=may_switch)
  rows, done = list(result.rows), int(first_solver.iteration)
  sequence_form = compiled.to_original(first_solver.average_sequence_form())
  if result.reason == "stop_when":
    stalled = f"{_name(first_solver)} stalls after {done:,} iterations"
    if progress:
      print(f"{stalled}: {_AFTER_A_STALL!r} begins.", file=sys.stderr)
    why = f"{stalled}, so this solver takes over; of both, each player's better strategy is kept"
    last_solver = catalogue.make(_AFTER_A_STALL, compiled, 1)
    iterations_left = None if iterations is None else max(1, iterations - done)
    result = run_solver(last_solver, iterations_left, stop_at_stall=False)
    rows += _continued(result.rows, rows[-1])
    done += int(last_solver.iteration)
    second_form = compiled.to_original(last_solver.average_sequence_form())
    sequence_form = _better_strategies(compiled.original, sequence_form, second_form)
  evaluation = evaluate.evaluate(compiled.original, sequence_form)
  return Solution(
    compiled_game=compiled.original,
    sequence_form=sequence_form,
    expected_values=evaluation.expected_values,
    best_response_values=evaluation.best_response_values,
    iterations=done,
    seconds=time.perf_counter() - start,
    reason=result.reason,
    solver=last_solver,
    why=why,
    rows=tuple(rows),
    correlated_gap=_correlated_gap(last_solver),
  )


def _solver_to_run(
  solver: str | Solver | None, game: CompiledGame, iterations: int | None
) -> tuple[Solver, str]:
  """Returns the solver of a call of `solve`, and the reason for it in words.

  Raises:
    ArgumentError: the name of the solver is unknown, or the solver belongs to another game.
  """
  why = "as requested"
  if solver is None:
    solver, why = choose_solver(game)
  if isinstance(solver, str):
    # The horizon, for solvers that need one, is the whole run.
    return catalogue.make(solver, game, iterations or 1_000), why
  if not is_same_game(solver.compiled_game, game):
    raise errors.ArgumentError(f"{solver!r} is not a solver of {game.name}.")
  return solver, why


def _stalls(rows: Sequence[Row], payoff_range: float) -> bool:
  """Returns whether a run stalls: NashConv, if larger than rounding, has hardly fallen in the second half."""
  now = rows[-1]
  if now.iteration < _STALL_ITERATIONS or now.nash_conv <= _ROUNDING * payoff_range:
    return False
  rows_of_first_half = bisect.bisect_right(rows, now.iteration / 2, key=lambda row: row.iteration)
  if not rows_of_first_half:
    return False
  return now.nash_conv > _STALL_SHARE * rows[rows_of_first_half - 1].nash_conv


def _continued(rows: Sequence[Row], last: Row) -> list[Row]:
  """Returns the evaluations of a second run, counted on from `last`, the last evaluation of the first run."""
  return [
    dataclasses.replace(
      row,
      iteration=row.iteration + last.iteration,
      solver_seconds=row.solver_seconds + last.solver_seconds,
      evaluation_seconds=row.evaluation_seconds + last.evaluation_seconds,
      nodes_touched=row.nodes_touched + last.nodes_touched,
    )
    for row in rows
  ]


def _better_strategies(game: CompiledGame, first: Float64s, second: Float64s) -> Float64s:
  """Returns each player's better strategy of two policies in sequence form, in a constant-sum game of two players."""
  losses = [evaluate.losses(game, evaluate.evaluate(game, policy)) for policy in (first, second)]
  result = first.copy()
  for player, tree in enumerate(game.treeplexes):
    if losses[1][player] < losses[0][player]:
      result[tree.root : tree.end] = second[tree.root : tree.end]
  return result


def _correlated_gap(solver: Solver) -> CorrelatedGap | None:
  """Returns the distance of the iterates from a correlated equilibrium; None for other solvers, or if unknown."""
  if isinstance(solver, EFRSolver) and not solver.compiled_game.is_two_player_constant_sum:
    with contextlib.suppress(errors.ArgumentError, errors.AbstractionError):
      return solver.gap()
  return None


def _evaluation_schedule(solver: Solver) -> RunSchedule:
  """Returns the iterations to evaluate at: powers of 2, later of 1.2; or the checks of a solver with restarts."""
  early, late = Powers(2), Powers(1.2)

  def schedule(iteration: int) -> float:
    due = early(iteration) if iteration < 64 else late(iteration)
    if not isinstance(solver, Restarted):
      return due
    return solver.next_check if iteration >= solver.first_attempt else min(due, solver.next_check)

  return schedule
