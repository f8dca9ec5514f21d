"""The one loop that runs solvers: until one of several stopping rules says so, with evaluations on a schedule."""

import contextlib
import copy
import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.evaluation import evaluate
from spiel_cfr.policies import CompiledTabularPolicy
from spiel_cfr.runs.checkpoint_folder import Checkpoints
from spiel_cfr.runs.folder_lock import locked
from spiel_cfr.runs.run_progress import Progress
from spiel_cfr.runs.run_schedules import NextDue, Powers, next_due
from spiel_cfr.runs.trace import Row, Trace

# Iterations in a run that only time or Ctrl-C ends.
_MOST = (1 << 63) - 1

StopReason = Literal["iterations", "target", "seconds", "interrupt", "stop_when"]


@dataclasses.dataclass(frozen=True, repr=False)
class RunResult:
  """Result of a run.

  Attributes:
    reason: which rule stopped it: "iterations", "target", "seconds", "stop_when" or, after Ctrl-C, "interrupt".
    rows: its evaluations; the last is of the policy that the solver has now.
    best_policy: of an abstraction that may lose something, the best policy that was evaluated, since there policies do
      not get steadily better; None of other games.
  """

  reason: StopReason
  rows: list[Row]
  best_policy: CompiledTabularPolicy | None = None

  @property
  def best(self) -> Row:
    """The evaluation with the least NashConv."""
    return min(self.rows, key=lambda row: row.nash_conv)

  @property
  def last(self) -> Row:
    """The evaluation of the policy that the solver has now."""
    return self.rows[-1]

  def __repr__(self) -> str:
    last = self.last
    return (
      f"<RunResult: stopped by {self.reason!r}, iteration {last.iteration:,}, NashConv {last.nash_conv:z.6g}, "
      f"{len(self.rows)} rows>"
    )


@dataclasses.dataclass(frozen=True)
class StoppingRules:
  """Stopping rules of a run, of which the first to apply counts; see `run`.

  Raises:
    ArgumentError: there is none, or one that makes no sense.
  """

  iterations: int | None = None
  target_nash_conv: float | None = None
  target_exploitability: float | None = None
  seconds: float | None = None

  def __post_init__(self) -> None:
    if self.iterations is not None:
      iterations = arguments.positive_integer(self.iterations, "iterations")
      object.__setattr__(self, "iterations", iterations)
    for name in ("target_nash_conv", "target_exploitability", "seconds"):
      if getattr(self, name) is not None:
        arguments.real_number(getattr(self, name), name, 0.0, math.inf)
    if all(value is None for value in dataclasses.astuple(self)):
      raise errors.ArgumentError(
        "Say when to stop: give iterations, target_nash_conv, target_exploitability or seconds; "
        "seconds=math.inf runs until Ctrl-C."
      )

  @property
  def target(self) -> float:
    """The NashConv that is good enough: the larger one if there are two."""
    nash_conv, exploitability = self.target_nash_conv, self.target_exploitability
    targets = nash_conv, None if exploitability is None else 2 * exploitability
    return max((target for target in targets if target is not None), default=-math.inf)


@typed
def run(
  solver: Solver,
  iterations: int | None = None,
  *,
  target_nash_conv: float | None = None,
  target_exploitability: float | None = None,
  seconds: float | None = None,
  stop_when: Callable[[Sequence[Row]], bool] | None = None,
  evaluate_at: NextDue = Powers(2),  # noqa: B008
  evaluate_current: bool = False,
  traces: Iterable[Trace] = (),
  checkpoints: Checkpoints | None = None,
  progress: bool = True,
) -> RunResult:
  """Runs a solver until the first of these rules, or Ctrl-C, stops it; its policies are usable whichever it is.

      result = run(CFRPlusSolver("leduc_poker"), 10_000, target_exploitability=1e-4)
      print(result.reason, result.last.exploitability)

  The policy is evaluated on a schedule, at every checkpoint and when the run stops. Meanwhile the solver's clock stands
  still.

  Args:
    solver: any solver; one that has done iterations before goes on from there.
    iterations: stop when the solver has done this many in its life, those before this run included.
    target_nash_conv: stop at an evaluation that finds a NashConv of this or less.
    target_exploitability: stop at an evaluation that finds an exploitability of this or less.
    seconds: stop after this wall-clock time, evaluations included, to about a tenth of a second or one iteration;
      infinity leaves it to Ctrl-C.
    stop_when: one more rule, beside those above: asked after each evaluation, given all of them.
    evaluate_at: when to evaluate: `Every(n)`, `Powers(base)`, or another function from an iteration to the next one
      that is due; infinity is never.
    evaluate_current: whether each evaluation also measures the current strategy, the last iterate:
      `Row.current_nash_conv`.
    traces: such as `TraceFile`s; they are closed when the run ends, however it does.
    checkpoints: where to keep checkpoints, and when; one more is left when the run stops.
    progress: whether to write to standard error: a line that changes on a terminal; elsewhere the first and the last
      evaluation, and between them at most one in five seconds.

  Raises:
    ArgumentError: there is no stopping rule, or one that makes no sense; or an argument is of another kind.
    UnsupportedGameError: `target_exploitability` is given for a game without exploitability; use `target_nash_conv`.
    FileFormatError: there is a file in the place of a trace that is none.
    CheckpointMismatchError: there is a trace of another run, or there are checkpoints of later iterations or of another
      solver.
    FolderInUseError: another run uses the folder of the checkpoints.
    OSError: a trace or a checkpoint can't be written.
    KeyboardInterrupt: Ctrl-C was pressed a second time before the run had come to its end.
  """
  traces = _checked(solver, traces, checkpoints)
  rules = StoppingRules(iterations, target_nash_conv, target_exploitability, seconds)
  if target_exploitability is not None:
    evaluate.check_two_player_constant_sum(solver.compiled_game)
  bar = Progress(rules.iterations) if progress else None
  listeners: list[Trace] = [*traces, *([bar] if bar else [])]
  solver_seconds = evaluation_seconds = 0.0
  rows: list[Row] = []
  best_policy: CompiledTabularPolicy | None = None
  slices = Slices()
  reason: StopReason | None = None
  with contextlib.ExitStack() as stack:
    if checkpoints:
      stack.enter_context(locked(checkpoints.folder))
      checkpoints.check(solver)
    solver.prepare()
    interrupt = stack.enter_context(DeferredInterrupt(swallow=True))
    for listener in listeners:
      stack.callback(listener.close)
      last = listener.start(solver)
      if last is not None:
        solver_seconds = max(solver_seconds, last.solver_seconds)
        evaluation_seconds = max(evaluation_seconds, last.evaluation_seconds)
    start = time.perf_counter()

    def out_of_time() -> bool:
      return seconds is not None and time.perf_counter() - start >= seconds

    while reason is None:
      now = int(solver.iteration)
      due = next_due(evaluate_at, now, "evaluate_at")
      checkpoint_due = next_due(checkpoints.schedule, now, "every") if checkpoints else math.inf
      end = min(due, checkpoint_due, rules.iterations or math.inf)
      if math.isinf(end) and seconds is None:
        raise errors.ArgumentError(
          f"After iteration {now} evaluate_at is never due again, so that nothing would stop the run."
        )
      for count in slices(_MOST if math.isinf(end) else max(0, int(end) - now)):
        if interrupt.requested or out_of_time():
          break
        begin = time.perf_counter()
        solver.run(count)
        solver_seconds += time.perf_counter() - begin
        if bar:
          bar.update(int(solver.iteration))
      if interrupt.requested:
        reason = "interrupt"
      elif rules.iterations is not None and solver.iteration >= rules.iterations:
        reason = "iterations"
      elif out_of_time():
        reason = "seconds"

      if not rows or rows[-1].iteration != solver.iteration:
        row = _evaluate(solver, solver_seconds, evaluation_seconds, evaluate_current)
        evaluation_seconds = row.evaluation_seconds
        rows.append(row)
        for listener in listeners:
          listener.write(row)
        if not solver.compiled_game.is_exact and row.nash_conv <= min(
          each.nash_conv for each in rows
        ):
          best_policy = copy.copy(solver.average_policy())
        if row.nash_conv <= rules.target:
          reason = "target"
        elif reason is None and stop_when is not None and stop_when(rows):
          reason = "stop_when"
      if checkpoints and (reason is not None or solver.iteration == checkpoint_due):
        checkpoints.save(solver)
  return RunResult(reason, rows, best_policy)


def _checked(solver: Any, traces: Any, checkpoints: Any) -> list[Trace]:
  """Returns the traces as a list; raises ArgumentError where one of these is not what it should be."""
  given = arguments.shortened
  if not isinstance(solver, Solver):
    raise errors.ArgumentError(
      f"run takes a solver, such as CFRPlusSolver(game), not {given(solver)}; solve takes a game."
    )
  found = list(traces) if isinstance(traces, Iterable) else None
  if found is None or not all(isinstance(trace, Trace) for trace in found):
    raise errors.ArgumentError(
      f"traces must be a list of traces, such as [runs.TraceFile('trace.csv')], not {given(traces)}."
    )
  if not isinstance(checkpoints, Checkpoints | None):
    raise errors.ArgumentError(
      f"checkpoints must be such as Checkpoints('folder', every=1_000), not {given(checkpoints)}."
    )
  return found


def _evaluate(
  solver: Solver, solver_seconds: float, evaluation_seconds: float, evaluate_current: bool
) -> Row:
  """Evaluates a solver that has taken so long, after other evaluations that have."""
  begin = time.perf_counter()
  nash_conv, game = solver.nash_conv(), solver.compiled_game
  current = (
    evaluate.original_nash_conv(game, solver.current_sequence_form()) if evaluate_current else None
  )
  return Row(
    # Not what also answers calls, as OpenSpiel's samplers do, and has the solver with it.
    int(solver.iteration),
    solver_seconds,
    evaluation_seconds + time.perf_counter() - begin,
    solver.nodes_touched,
    nash_conv,
    nash_conv / 2 if game.is_two_player_constant_sum else None,
    current,
    solver.trace_columns(),
  )
