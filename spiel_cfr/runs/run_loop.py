"""Run of a solver until a stopping rule applies, with evaluations and checkpoints on a schedule."""

import contextlib
import copy
import dataclasses
import math
import pathlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.evaluation import evaluate
from spiel_cfr.policies import CompiledTabularPolicy
from spiel_cfr.runs.checkpoint_folder import Checkpoints
from spiel_cfr.runs.folder_lock import held_lock
from spiel_cfr.runs.run_progress import Progress
from spiel_cfr.runs.run_schedules import Powers, RunSchedule, next_due
from spiel_cfr.runs.trace import Row, Trace

# The number of iterations of a run that only time or Ctrl-C ends.
_MOST = (1 << 63) - 1

StopReason = Literal["iterations", "target", "seconds", "interrupt", "stop_when"]


@dataclasses.dataclass(frozen=True, repr=False)
class RunResult:
  """Result of a run.

  Attributes:
    reason: "iterations", "target", "seconds", "stop_when" or, after Ctrl-C, "interrupt". The rule that stopped the run.
    rows: list of `Row`. The evaluations. The last one is of the solver's final policy.
    best_policy: `CompiledTabularPolicy`. The best evaluated policy of a lossy abstraction, because policies of those do
      not improve steadily; None for other games.
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
    """The evaluation of the solver's final policy."""
    return self.rows[-1]

  def __repr__(self) -> str:
    last = self.last
    return (
      f"<RunResult: stopped by {self.reason!r}, iteration {last.iteration:,}, NashConv {last.nash_conv:z.6g}, "
      f"{len(self.rows)} rows>"
    )


@dataclasses.dataclass(frozen=True)
class StoppingRules:
  """Stopping rules of a run. The run ends when the first rule applies.

  Attributes:
    iterations: int. The iteration at which the run stops; None for no limit.
    target_nash_conv: float. The NashConv at which the run stops; None for no target.
    target_exploitability: float. The exploitability at which the run stops; None for no target.
    seconds: float. The wall-clock time after which the run stops; None for no limit.

  Raises:
    ArgumentError: all rules are None, or a rule is invalid.
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
    """The NashConv at which the run stops, the larger of both targets; -inf without a target."""
    nash_conv, exploitability = self.target_nash_conv, self.target_exploitability
    targets = nash_conv, None if exploitability is None else 2 * exploitability
    return max((target for target in targets if target is not None), default=-math.inf)


def run(
  solver: Solver,
  iterations: int | None = None,
  *,
  target_nash_conv: float | None = None,
  target_exploitability: float | None = None,
  seconds: float | None = None,
  stop_when: Callable[[Sequence[Row]], bool] | None = None,
  evaluate_at: RunSchedule = Powers(2),  # noqa: B008
  evaluate_current: bool = False,
  traces: Iterable[Trace] = (),
  checkpoints: Checkpoints | None = None,
  progress: bool = True,
) -> RunResult:
  """Runs a solver until a total number of iterations, another stopping rule, or Ctrl-C.

  `iterations` counts from the solver's first iteration. If the solver has done 20 iterations, `run(solver, 5)` only
  evaluates it, whereas `solver.run(5)` runs five more. The solver's policies are usable however the run ends.

      result = run(CFRPlusSolver("leduc_poker"), 10_000, target_exploitability=1e-4)
      print(result.reason, result.last.exploitability)

  The run evaluates the policy on a schedule, at every checkpoint and at the end. `Row.solver_seconds` does not include
  evaluations.

  Args:
    solver: any solver. It continues from its present iteration.
    iterations: the run stops when the solver's total number of iterations, including earlier runs, reaches this.
    target_nash_conv: the run stops at an evaluation with NashConv of at most this.
    target_exploitability: the run stops at an evaluation with exploitability of at most this.
    seconds: the run stops after this wall-clock time, including evaluations, to within a tenth of a second or one
      iteration; infinity for a run that Ctrl-C ends.
    stop_when: an additional rule: a function that takes the list of all evaluations so far, after each evaluation, and
      returns True to stop the run.
    evaluate_at: the schedule of evaluations: `Every(n)`, `Powers(base)`, or another function from an iteration to the
      next due iteration; infinity for never.
    evaluate_current: True to evaluate the current strategy, the last iterate, too: `Row.current_nash_conv`.
    traces: receivers of evaluations, such as `TraceFile`. They are closed when the run ends or fails.
    checkpoints: the folder and schedule of checkpoints. The run also saves one when it stops.
    progress: True to print progress to standard error: a changing line on a terminal; otherwise the first and the last
      evaluation, and between them at most one evaluation every five seconds.

  Raises:
    ArgumentError: there is no stopping rule, or an argument is invalid.
    UnsupportedGameError: `target_exploitability` is given for a game without exploitability; use `target_nash_conv`.
    FileFormatError: the file of a trace exists and is not a trace.
    CheckpointMismatchError: a trace belongs to another run, or checkpoints are of later iterations or another solver.
    FolderInUseError: another run uses the folder of the checkpoints.
    OSError: a trace or a checkpoint can't be written.
    KeyboardInterrupt: Ctrl-C was pressed a second time before the run ended.
  """
  arguments.boolean(evaluate_current, "evaluate_current")
  traces = _check_arguments(solver, traces, checkpoints)
  arguments.of_type(progress, "progress", int)
  if not (stop_when is None or callable(stop_when)):
    raise errors.ArgumentError(
      f"stop_when must be a function of the rows so far, not {arguments.shortened(stop_when)}."
    )
  rules = StoppingRules(iterations, target_nash_conv, target_exploitability, seconds)
  if target_exploitability is not None:
    evaluate.check_two_player_constant_sum(solver.compiled_game)
  bar = Progress(rules.iterations) if progress else None
  listeners: list[Trace] = [*traces, *([bar] if bar else [])]
  with contextlib.ExitStack() as stack:
    if checkpoints:
      stack.enter_context(held_lock(pathlib.Path(checkpoints.folder)))
      checkpoints.check(solver)
    solver.prepare()
    interrupt = stack.enter_context(DeferredInterrupt(swallow=True))
    evaluations = _Evaluations(solver, listeners, evaluate_current, stack)
    loop = _IterationLoop(solver, rules.seconds, interrupt, bar)
    reason: StopReason | None = None
    while reason is None:
      now = int(solver.iteration)
      evaluation_due = next_due(evaluate_at, now, "evaluate_at")
      checkpoint_due = next_due(checkpoints.schedule, now, "every") if checkpoints else math.inf
      due = min(evaluation_due, checkpoint_due, rules.iterations or math.inf)
      if math.isinf(due) and seconds is None:
        raise errors.ArgumentError(
          f"After iteration {now} evaluate_at is never due again, so the run would never stop. Give iterations or "
          "seconds."
        )
      evaluations.solver_seconds += loop.run_until(due)
      reason = loop.reason_to_stop(rules.iterations)
      if evaluations.add_if_new():
        if evaluations.rows[-1].nash_conv <= rules.target:
          reason = "target"
        elif reason is None and stop_when is not None and stop_when(evaluations.rows):
          reason = "stop_when"
      if checkpoints and (reason is not None or solver.iteration == checkpoint_due):
        checkpoints.save(solver)
  return RunResult(reason, evaluations.rows, evaluations.best_policy)


class _IterationLoop:
  """Iterations of a run up to a due iteration, a time limit or Ctrl-C."""

  def __init__(
    self,
    solver: Solver,
    seconds: float | None,
    interrupt: DeferredInterrupt,
    bar: Progress | None,
  ) -> None:
    """Starts the time of the run.

    Args:
      solver: the solver.
      seconds: the wall-clock time of the run; None for no limit.
      interrupt: the context in which the run's iterations are done.
      bar: the progress to update; None for no progress.
    """
    self._solver, self._seconds, self._interrupt, self._bar = solver, seconds, interrupt, bar
    self._slices = Slices()
    self._start = time.perf_counter()

  def _is_out_of_time(self) -> bool:
    return self._seconds is not None and time.perf_counter() - self._start >= self._seconds

  def run_until(self, due: float) -> float:
    """Runs until iteration `due`, or until time is up or Ctrl-C was pressed; returns the seconds in the solver."""
    solver_seconds = 0.0
    count = _MOST if math.isinf(due) else max(0, int(due) - int(self._solver.iteration))
    for iterations in self._slices(count):
      if self._interrupt.requested or self._is_out_of_time():
        break
      begin = time.perf_counter()
      self._solver.run(iterations)
      solver_seconds += time.perf_counter() - begin
      if self._bar:
        self._bar.update(int(self._solver.iteration))
    return solver_seconds

  def reason_to_stop(self, most_iterations: int | None) -> StopReason | None:
    """Returns the reason to stop that needs no evaluation; None if there is none."""
    if self._interrupt.requested:
      return "interrupt"
    if most_iterations is not None and self._solver.iteration >= most_iterations:
      return "iterations"
    return "seconds" if self._is_out_of_time() else None


class _Evaluations:
  """Evaluations of a run, which are sent to its listeners.

  Attributes:
    rows: list of `Row`. The evaluations so far.
    solver_seconds: float. The solver's time, including earlier runs in the listeners' traces.
    best_policy: `CompiledTabularPolicy`. The best evaluated policy of a lossy abstraction; None for other games.
  """

  def __init__(
    self,
    solver: Solver,
    listeners: Sequence[Trace],
    evaluate_current: bool,
    stack: contextlib.ExitStack,
  ) -> None:
    """Starts the listeners, which `stack` closes."""
    self._solver, self._listeners, self._evaluate_current = solver, listeners, evaluate_current
    self.rows: list[Row] = []
    self.best_policy: CompiledTabularPolicy | None = None
    self.solver_seconds = self._evaluation_seconds = 0.0
    for listener in listeners:
      stack.callback(listener.close)
      last = listener.start(solver)
      if last is not None:
        self.solver_seconds = max(self.solver_seconds, last.solver_seconds)
        self._evaluation_seconds = max(self._evaluation_seconds, last.evaluation_seconds)

  def add_if_new(self) -> bool:
    """Evaluates the solver; returns False if this iteration has been evaluated already."""
    if self.rows and self.rows[-1].iteration == self._solver.iteration:
      return False
    row = self._evaluate()
    self._evaluation_seconds = row.evaluation_seconds
    self.rows.append(row)
    for listener in self._listeners:
      listener.write(row)
    is_best = row.nash_conv <= min(earlier.nash_conv for earlier in self.rows)
    if is_best and not self._solver.compiled_game.is_exact:
      self.best_policy = copy.copy(self._solver.average_policy())
    return True

  def _evaluate(self) -> Row:
    begin, solver = time.perf_counter(), self._solver
    nash_conv, game = solver.nash_conv(), solver.compiled_game
    current_nash_conv = (
      evaluate.original_nash_conv(game, solver.current_sequence_form())
      if self._evaluate_current
      else None
    )
    return Row(
      # A plain integer: `iteration` of Monte Carlo solvers is callable, and refers to the solver.
      iteration=int(solver.iteration),
      solver_seconds=self.solver_seconds,
      evaluation_seconds=self._evaluation_seconds + time.perf_counter() - begin,
      nodes_touched=solver.nodes_touched,
      nash_conv=nash_conv,
      exploitability=nash_conv / 2 if game.is_two_player_constant_sum else None,
      current_nash_conv=current_nash_conv,
      extra_columns=solver.trace_columns(),
    )


def _check_arguments(solver: Any, traces: Any, checkpoints: Any) -> list[Trace]:
  """Returns the traces as a list.

  Raises:
    ArgumentError: an argument has a wrong type.
  """
  shortened = arguments.shortened
  if not isinstance(solver, Solver):
    raise errors.ArgumentError(
      f"run takes a solver, such as CFRPlusSolver(game), not {shortened(solver)}; solve takes a game."
    )
  is_iterable = isinstance(traces, Iterable) and getattr(traces, "ndim", 1) != 0
  result = list(traces) if is_iterable else None
  if result is None or not all(isinstance(trace, Trace) for trace in result):
    raise errors.ArgumentError(
      f"traces must be a list of traces, such as [runs.TraceFile('trace.csv')], not {shortened(traces)}."
    )
  if not isinstance(checkpoints, Checkpoints | None):
    raise errors.ArgumentError(
      f"checkpoints must be such as Checkpoints('folder', every=1_000), not {shortened(checkpoints)}."
    )
  return result
