"""Runs: stopping rules and reports."""

import io
import itertools
import math
import os
import signal
import sys
import threading
import time
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import spiel_cfr
from spiel_cfr import catalogue, errors
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.runs import run_progress
from spiel_cfr.runs.run_progress import Progress


@pytest.fixture(scope="module")
def leduc() -> spiel_cfr.CompiledGame:
  return spiel_cfr.compile_game("leduc_poker")


def run(solver: Any, *arguments: Any, **settings: Any) -> spiel_cfr.runs.RunResult:
  return spiel_cfr.run(solver, *arguments, progress=False, **settings)


def press_ctrl_c_after(seconds: float) -> None:
  threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


def assert_same_as_fresh(solver: spiel_cfr.FullWidthSolver) -> None:
  """Checks that a solver is what another one is after as many iterations."""
  fresh = spiel_cfr.FullWidthSolver(solver.compiled_game, **solver.constructor_arguments())
  if solver.iteration:
    fresh.run(solver.iteration)
  np.testing.assert_array_equal(solver.average_probabilities(), fresh.average_probabilities())
  np.testing.assert_array_equal(solver.current_probabilities(), fresh.current_probabilities())


def test_stops_at_an_iteration_and_evaluates_the_final_policy(leduc: Any) -> None:
  solver = spiel_cfr.CFRPlusSolver(leduc)
  result = run(solver, 100)
  assert result.reason == "iterations"
  assert [row.iteration for row in result.rows] == [1, 2, 4, 8, 16, 32, 64, 100]
  assert solver.iteration == 100
  nash_conv = spiel_cfr.nash_conv(leduc, solver.average_policy_dict())
  assert result.last.nash_conv == pytest.approx(nash_conv, abs=1e-12)
  assert result.last.exploitability == result.last.nash_conv / 2
  assert_same_as_fresh(solver)


def test_goes_on_from_where_the_solver_is(leduc: Any) -> None:
  solver = spiel_cfr.CFRSolver(leduc)
  solver.run(5)
  assert [row.iteration for row in run(solver, 20).rows] == [8, 16, 20]
  again = run(solver, 20)
  assert (again.reason, [row.iteration for row in again.rows]) == ("iterations", [20])


def test_stops_at_the_first_evaluation_that_reaches_the_target(leduc: Any) -> None:
  result = run(
    spiel_cfr.CFRPlusSolver(leduc), target_exploitability=0.01, evaluate_at=spiel_cfr.runs.Every(10)
  )
  assert result.reason == "target"
  *before, last = [row.exploitability for row in result.rows]
  assert last <= 0.01 < min(before)
  same = run(
    spiel_cfr.CFRPlusSolver(leduc), target_nash_conv=0.02, evaluate_at=spiel_cfr.runs.Every(10)
  )
  assert same.last.iteration == result.last.iteration


def test_the_looser_of_two_targets_stops(leduc: Any) -> None:
  solver = spiel_cfr.CFRPlusSolver(leduc)
  result = run(solver, target_exploitability=0.1, target_nash_conv=1e-9)
  assert 1e-9 < result.last.nash_conv <= 0.2


def test_stops_when_time_is_up(leduc: Any) -> None:
  start = time.perf_counter()
  result = run(spiel_cfr.CFRSolver(leduc), seconds=0.3)
  elapsed = time.perf_counter() - start
  assert result.reason == "seconds"
  assert elapsed >= 0.3
  assert result.last.solver_seconds + result.last.evaluation_seconds <= elapsed


class SlowToEvaluate(spiel_cfr.FullWidthSolver):
  """A solver whose evaluations take a known time."""

  def __init__(self, game: Any) -> None:
    super().__init__(game, spiel_cfr.RegretMatching())

  def nash_conv(self) -> float:
    time.sleep(0.05)
    return super().nash_conv()


def test_time_of_evaluations_is_kept_apart(leduc: Any) -> None:
  result = run(SlowToEvaluate(leduc), 4, evaluate_at=spiel_cfr.runs.Every(1))
  assert result.last.evaluation_seconds >= 4 * 0.05
  assert result.last.solver_seconds < 0.05
  assert (
    run(SlowToEvaluate(leduc), seconds=0.1, evaluate_at=spiel_cfr.runs.Every(1)).last.iteration <= 3
  )


def test_ctrl_c_ends_the_run_with_a_whole_number_of_iterations(leduc: Any) -> None:
  solver = spiel_cfr.CFRSolver(leduc)
  press_ctrl_c_after(0.2)
  result = run(solver, seconds=math.inf)
  assert result.reason == "interrupt"
  assert result.last.iteration == solver.iteration > 0
  assert_same_as_fresh(solver)
  assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_a_plain_run_leaves_a_whole_number_of_iterations(leduc: Any) -> None:
  for delay in (0.02, 0.1, 0.15):
    solver = spiel_cfr.CFRSolver(leduc)
    press_ctrl_c_after(delay)
    with pytest.raises(KeyboardInterrupt):
      solver.run(10**9)
    assert_same_as_fresh(solver)


def test_second_ctrl_c_acts_at_once() -> None:
  seen = []
  with pytest.raises(KeyboardInterrupt), DeferredInterrupt(swallow=True) as interrupt:
    signal.raise_signal(signal.SIGINT)
    seen.append(interrupt.requested)
    signal.raise_signal(signal.SIGINT)
    seen.append("swallowed too")
  assert seen == [True]
  assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.quick(except_for=["egt_as"])
@pytest.mark.parametrize("name", ["efr", "komwu", "egt_as", "cfr_br", "restarted_adaptive"])
def test_a_second_ctrl_c_leaves_a_whole_number_of_iterations(name: str) -> None:
  game = spiel_cfr.compile_game("kuhn_poker")
  # Whatever is compiled, is compiled before.
  catalogue.make(name, game, 400).run(30)
  torn = []
  for moment in range(0, 400, 9):
    solver, calls = catalogue.make(name, game, 400), iter(range(-moment, 10**6))

    def press(frame: Any, event: str, argument: Any, calls: Any = calls) -> None:
      if event == "call" and next(calls) == 0:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    try:
      sys.setprofile(press)
      for _ in range(30):
        solver.evaluate_and_update_policy()
    except KeyboardInterrupt:
      pass
    finally:
      sys.setprofile(None)
    fresh = catalogue.make(name, game, 400)
    if solver.iteration:
      fresh.run(int(solver.iteration))
    wanted, found = fresh.state_dict(), solver.state_dict()
    if not all(np.array_equal(wanted[each], found[each], equal_nan=False) for each in wanted):
      torn.append(moment)
  assert not torn
  assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_every_second_ctrl_c_waits_for_critical_sections() -> None:
  seen = []
  with DeferredInterrupt(swallow=True), pytest.raises(KeyboardInterrupt):
    with DeferredInterrupt(whole=True):
      for _ in range(2):
        signal.raise_signal(signal.SIGINT)
      seen.append("whole")
    seen.append("not at once")
  assert seen == ["whole"]


def test_runs_in_other_threads(leduc: Any) -> None:
  solvers = [spiel_cfr.CFRSolver(leduc) for _ in range(3)]
  threads = [threading.Thread(target=run, args=(solver, 200)) for solver in solvers]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  for solver in solvers:
    assert solver.iteration == 200
    assert_same_as_fresh(solver)


def test_exploitability_only_where_it_is_defined() -> None:
  solver = spiel_cfr.CFRSolver("kuhn_poker(players=3)")
  assert run(solver, 3).last.exploitability is None
  with pytest.raises(errors.UnsupportedGameError, match="nash_conv"):
    run(solver, target_exploitability=0.1)


def test_nodes_touched(leduc: Any) -> None:
  alternating = spiel_cfr.CFRSolver(leduc)
  simultaneous = spiel_cfr.TabularCFRSolver(leduc, alternating_updates=False)
  for solver in (alternating, simultaneous):
    assert solver.nodes_touched == 0
    solver.run(3)
  assert simultaneous.nodes_touched == 3 * leduc.num_states
  assert alternating.nodes_touched == 6 * leduc.num_states


@pytest.mark.parametrize(
  "settings",
  [
    {},
    {"iterations": 0},
    {"iterations": 2.5},
    {"iterations": True},
    {"seconds": -1.0},
    {"seconds": math.nan},
    {"seconds": "1"},
    {"target_nash_conv": -1e-9},
    {"target_exploitability": math.nan},
    {"iterations": 3, "evaluate_at": abs},
  ],
  ids=str,
)
def test_refuses_rules_that_make_no_sense(leduc: Any, settings: dict[str, Any]) -> None:
  with pytest.raises(errors.ArgumentError):
    run(spiel_cfr.CFRSolver(leduc), **settings)


@pytest.mark.parametrize("number", [0, -1, 1.5, True, math.nan])
def test_refuses_schedules_that_make_no_sense(number: Any) -> None:
  with pytest.raises(errors.ArgumentError):
    spiel_cfr.runs.Every(number)
  if number != 1.5:
    with pytest.raises(errors.ArgumentError):
      spiel_cfr.runs.Powers(number)


def walk_schedule(schedule: Any, first: int, count: int) -> list[int]:
  steps = itertools.accumulate(
    range(count), lambda iteration, _: schedule(iteration), initial=first
  )
  return list(steps)[1:]


def test_schedules() -> None:
  assert walk_schedule(spiel_cfr.runs.Every(7), 0, 4) == [7, 14, 21, 28]
  assert walk_schedule(spiel_cfr.runs.Every(7), 8, 2) == [14, 21]
  assert walk_schedule(spiel_cfr.runs.Powers(2), 0, 6) == [1, 2, 4, 8, 16, 32]
  assert walk_schedule(spiel_cfr.runs.Powers(10), 11, 2) == [100, 1000]
  assert walk_schedule(spiel_cfr.runs.Powers(1.5), 0, 6) == [1, 2, 3, 4, 6, 8]


@hypothesis.given(
  schedule=st.integers(1, 1000).map(spiel_cfr.runs.Every)
  | st.floats(1.001, 100).map(spiel_cfr.runs.Powers),
  iteration=st.integers(0, 10**9),
)
def test_schedules_move_on_and_forget_the_past(schedule: Any, iteration: int) -> None:
  due = schedule(iteration)
  assert due > iteration
  assert schedule(due - 1) == due


def test_slices_sum_to_the_request() -> None:
  for iterations in (1, 2, 63, 10**6):
    assert sum(Slices()(iterations)) == iterations


def test_slices_take_about_a_tenth_of_a_second() -> None:
  longest = 0
  for count in Slices()(2000):
    longest = max(longest, count)
    time.sleep(count * 1e-3 / 4)
  assert 100 <= longest <= 400


def test_progress_is_few_lines_in_a_file(leduc: Any, capsys: Any, monkeypatch: Any) -> None:
  clock = iter([0.0, 0.0, 4.0, 5.0, 5.0, 6.0, 7.0])
  monkeypatch.setattr(run_progress.time, "monotonic", lambda: next(clock))
  spiel_cfr.run(spiel_cfr.CFRSolver(leduc), 8)
  lines = capsys.readouterr().err.splitlines()
  # Evaluations 1, 2, 4 and 8 come after 0, 4, 5 and 6 seconds.
  assert [line.split(",")[0] for line in lines] == [
    "CFRSolver: iteration 1",
    "CFRSolver: iteration 4",
    "CFRSolver: iteration 8",
  ]
  assert all("exploitability" in line and "evaluation" in line for line in lines)


@pytest.mark.parametrize("place", ["terminal", "notebook"])
def test_progress_is_a_bar_on_a_terminal(place: str, monkeypatch: Any) -> None:
  stream = io.StringIO()
  monkeypatch.setattr(stream, "isatty", lambda: place == "terminal", raising=False)
  monkeypatch.setattr(sys, "stderr", stream)
  if place == "notebook":
    monkeypatch.setitem(sys.modules, "ipykernel", np)
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(200)
  bar = Progress(1000)
  bar.start(solver)
  bar.write(spiel_cfr.runs.Row(300, 5.0, 1.0, 0, 0.5, 0.25))
  time.sleep(0.2)
  bar.update(400)
  bar.write(spiel_cfr.runs.Row(600, 70.0, 1.0, 0, 0.5, None))
  bar.close()
  shown = stream.getvalue()
  assert "| 400/1000 [" in shown
  assert "exploitability 0.25" in shown
  # The bar is gone.
  assert shown.split("\r")[-1] == (
    "CFRSolver: iteration 600, NashConv 0.5, solver 70 s, evaluation 1 s\n"
  )
