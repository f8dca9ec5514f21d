"""Sweeps: every combination runs once, failures are rows, also if processes are killed."""

import functools
import json
import math
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest
from executors import Here

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.runs import sweep_cells


@pytest.fixture(scope="module")
def kuhn() -> spiel_cfr.CompiledGame:
  return spiel_cfr.compile_game("kuhn_poker")


def sweep(grid: Any, folder: pathlib.Path, **settings: Any) -> spiel_cfr.runs.SweepTable:
  settings = {"iterations": 20, "executor": Here(), "progress": False, **settings}
  return spiel_cfr.sweep(grid, folder=folder, **settings)


def files(folder: pathlib.Path) -> dict[str, bytes]:
  return {
    str(path.relative_to(folder)): path.read_bytes()
    for path in sorted(folder.rglob("*"))
    if path.is_file()
  }


def test_every_combination_is_a_run(kuhn: Any, tmp_path: pathlib.Path) -> None:
  grids = [
    {"game": [kuhn, "kuhn_poker(players=3)"], "solver": ["cfr", spiel_cfr.DCFRSolver]},
    {"game": [kuhn], "solver": ["dcfr"], "gamma": [1.0, 3.0]},
    {"game": [kuhn], "solver": ["external_sampling"], "seed": [1, 2]},
  ]
  table = sweep(grids, tmp_path)
  assert [(row["game"], row["solver"]) for row in table.rows] == [
    ("kuhn_poker()", "cfr"),
    ("kuhn_poker()", "DCFRSolver"),
    ("kuhn_poker(players=3)", "cfr"),
    ("kuhn_poker(players=3)", "DCFRSolver"),
    *[("kuhn_poker()", "dcfr")] * 2,
    *[("kuhn_poker()", "external_sampling")] * 2,
  ]
  solvers = [
    *(
      make(game)
      for game in (kuhn, "kuhn_poker(players=3)")
      for make in (spiel_cfr.CFRSolver, spiel_cfr.DCFRSolver)
    ),
    *(spiel_cfr.DCFRSolver(kuhn, gamma=gamma) for gamma in (1.0, 3.0)),
    *(spiel_cfr.ExternalSamplingSolver(kuhn, seed=seed) for seed in (1, 2)),
  ]
  for row, solver in zip(table.rows, solvers, strict=True):
    solver.run(20)
    assert row["nash_conv"] == solver.nash_conv()
    assert row["iteration"] == 20
    assert row["reason"] == "iterations"
    assert table.trace(row).rows[-1].nash_conv == solver.nash_conv()
    again = table.solver(row, solver.compiled_game)
    assert again.average_probabilities().tobytes() == solver.average_probabilities().tobytes()
  assert len({row["folder"] for row in table.rows}) == len(table.rows)
  assert not table.failed
  # The games that processes shared are gone.
  assert {path.name for path in tmp_path.iterdir()} == {
    "lock",
    "table.csv",
    *(pathlib.Path(row["folder"]).name for row in table.rows),
  }


def test_tables(kuhn: Any, tmp_path: pathlib.Path) -> None:
  grid = {"game": [kuhn], "solver": ["dcfr", "cfr", "no such"], "gamma": [2]}
  table = sweep(grid, tmp_path)
  assert table.columns == ("game", "solver", "gamma", *sweep_cells.RESULTS, "folder")
  lines = (tmp_path / "table.csv").read_text().splitlines()
  assert lines[0] == ",".join(table.columns)
  assert len(lines) == 4
  assert [row["solver"] for row in table.failed] == ["cfr", "no such"]
  assert "gamma" in table.failed[0]["error"]
  assert "no such" in table.failed[1]["error"]
  assert repr(table) == "<SweepTable: 3 runs, 2 without a result>"
  with pytest.raises(errors.ArgumentError, match="no checkpoint"):
    table.solver(table.failed[0], kuhn)


def test_finished_work_is_not_repeated(kuhn: Any, tmp_path: pathlib.Path) -> None:
  grid = {"game": [kuhn], "solver": ["cfr", "cfr+"]}
  first = sweep(grid, tmp_path)
  before = files(tmp_path)
  again = sweep({"game": [kuhn], "solver": ["cfr", "cfr+", "dcfr"]}, tmp_path, executor=Here())
  assert list(again.rows[:2]) == list(first.rows)
  after = files(tmp_path)
  assert all(after[name] == content for name, content in before.items() if name != "table.csv")
  # Other rules are other runs.
  assert sweep(grid, tmp_path, iterations=21).rows[0]["folder"] != first.rows[0]["folder"]
  # A result that is not whole is not a result.
  folder = pathlib.Path(first.rows[0]["folder"])
  for content in (b"", b"{", b"[]", b'{"result": {}}', b'{"result": 3}'):
    (folder / "result.json").write_bytes(content)
    (row, _) = sweep(grid, tmp_path).rows
    assert (row["nash_conv"], row["error"]) == (first.rows[0]["nash_conv"], "")
    assert json.loads((folder / "result.json").read_bytes())


def _every(n: int, iteration: int) -> int:
  return iteration + n


def test_schedules_with_other_arguments_are_other_runs(kuhn: Any, tmp_path: pathlib.Path) -> None:
  grid = {"game": [kuhn], "solver": ["cfr"]}
  schedules = [functools.partial(_every, n) for n in (3, 7, 3)]
  folders = [sweep(grid, tmp_path, evaluate_at=each).rows[0]["folder"] for each in schedules]
  assert folders[0] == folders[2] != folders[1]
  (row,) = sweep(grid, tmp_path, evaluate_at=lambda iteration: iteration + 3).rows
  assert "can't be pickled" in row["error"]


def test_results_of_other_runs_are_none(kuhn: Any, tmp_path: pathlib.Path) -> None:
  grid = {"game": [kuhn], "solver": ["cfr", "cfr+"]}
  first = sweep(grid, tmp_path).rows
  one, other = (pathlib.Path(row["folder"]) / "result.json" for row in first)
  one.write_bytes(other.read_bytes())
  again = sweep(grid, tmp_path).rows
  assert [row["nash_conv"] for row in again] == [row["nash_conv"] for row in first]


def test_a_folder_of_ones_own_is_left_alone(kuhn: Any, tmp_path: pathlib.Path) -> None:
  (tmp_path / "games").mkdir()
  (tmp_path / "games" / "mine").write_text("x")
  sweep({"game": [kuhn], "solver": ["cfr"]}, tmp_path)
  assert (tmp_path / "games" / "mine").read_text() == "x"


def test_damaged_checkpoints_are_no_end(kuhn: Any, tmp_path: pathlib.Path) -> None:
  grid = {"game": [kuhn], "solver": ["cfr"]}
  (row,) = sweep(grid, tmp_path).rows
  folder = pathlib.Path(row["folder"])
  (folder / "result.json").unlink()
  for path in (folder / "checkpoints").glob("*.npz"):
    path.write_bytes(path.read_bytes()[:-1])
  with pytest.warns(UserWarning, match="Skipped a checkpoint"):
    (again,) = sweep(grid, tmp_path).rows
  assert again["nash_conv"] == row["nash_conv"]


def test_sampling_without_a_seed_is_the_same_every_time(kuhn: Any, tmp_path: pathlib.Path) -> None:
  grid = {"game": [kuhn], "solver": ["outcome_sampling"]}
  first, second = (sweep(grid, tmp_path / name).rows[0] for name in ("1", "2"))
  assert first["nash_conv"] == second["nash_conv"]
  # Numbers come back from other processes, and no solver hidden in one of them.
  assert type(first["iteration"]) is int


@pytest.mark.parametrize(
  ("grid", "settings", "message"),
  [
    ({"game": ["kuhn_poker"]}, {}, "A grid must map"),
    ({"solver": ["cfr"]}, {}, "A grid must map"),
    ([3], {}, "A grid must map"),
    ({"game": "kuhn_poker", "solver": ["cfr"]}, {}, "list of values for 'game'"),
    ({"game": ["kuhn_poker"], "solver": []}, {}, "list of values for 'solver'"),
    (None, {"iterations": None}, "Say when to stop"),
    (None, {"iterations": 0}, "iterations must be a positive integer"),
    (None, {"seconds": math.nan}, "seconds must be"),
    (None, {"checkpoint_every": 0}, "must be a positive integer"),
    (None, {"evaluate_at": 5}, "evaluate_at must be Every"),
    (None, {"evaluate_at": None}, "evaluate_at must be Every"),
    (None, {"executor": 3}, "executor must be"),
    (5, {}, "The grid must be a mapping"),
    ([], {}, "The grid must be a mapping"),
  ],
)
def test_refuses_invalid_arguments(
  grid: Any, settings: dict[str, Any], message: str, tmp_path: pathlib.Path
) -> None:
  if grid is None:
    grid = {"game": ["kuhn_poker"], "solver": ["cfr"]}
  with pytest.raises(errors.ArgumentError, match=message):
    sweep(grid, tmp_path, **settings)


def test_solvers_with_a_horizon_need_a_number(kuhn: Any, tmp_path: pathlib.Path) -> None:
  table = sweep({"game": [kuhn], "solver": ["hsdcfr"]}, tmp_path, iterations=None, seconds=1.0)
  assert "needs the number of iterations" in table.rows[0]["error"]


def test_one_sweep_a_folder(kuhn: Any, tmp_path: pathlib.Path) -> None:
  class Nested(Here):
    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
      with pytest.raises(errors.FolderInUseError):
        sweep(grid, tmp_path)
      return super().submit(fn, *args, **kwargs)

  grid = {"game": [kuhn], "solver": ["cfr"]}
  assert not sweep(grid, tmp_path, executor=Nested()).failed


class _Killed(spiel_cfr.FullWidthSolver):
  """A solver whose process dies at iteration 50, as often as a file has lines to lose."""

  def __init__(self, game: Any, lives: str) -> None:
    super().__init__(game, spiel_cfr.RegretMatching())
    self._lives = pathlib.Path(lives)

  def run(self, iterations: int) -> None:
    super().run(iterations)
    lives = self._lives.read_text().splitlines()
    if self.iteration >= 50 and lives:
      self._lives.write_text("\n".join(lives[1:]))
      os.kill(os.getpid(), signal.SIGKILL)


_PROGRAM = """
import sys
import spiel_cfr
from test_sweep import _Killed

if __name__ == "__main__":
  table = spiel_cfr.sweep(
    [
      {"game": ["kuhn_poker"], "solver": [_Killed], "lives": sys.argv[2:]},
      {"game": ["kuhn_poker"], "solver": ["cfr", "cfr+"]},
    ],
    folder=sys.argv[1],
    iterations=100,
    checkpoint_every=10,
    executor=spiel_cfr.runs.ProcessExecutor(2),
  )
  for row in table.rows:
    print(row["solver"], row["iteration"], row["nash_conv"], row["error"] or "-")
"""


def start(folder: pathlib.Path, *lives: pathlib.Path) -> "subprocess.Popen[str]":
  program = folder / "program.py"
  program.write_text(_PROGRAM)
  here = pathlib.Path(__file__).parent
  paths = [str(here), str(here.parent / "support"), os.environ.get("PYTHONPATH", "")]
  return subprocess.Popen(
    [sys.executable, str(program), str(folder / "sweep"), *map(str, lives)],
    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_processes_that_are_killed(kuhn: Any, tmp_path: pathlib.Path) -> None:
  """A run that dies twice continues from checkpoints; one that always dies is a row; others are unaffected."""
  twice, always = tmp_path / "twice", tmp_path / "always"
  twice.write_text("1\n2")
  always.write_text("\n".join("123456789"))
  with start(tmp_path, twice, always) as process:
    output, error = process.communicate(timeout=300)
  assert process.returncode == 0, error
  expected = {}
  for name in ("cfr", "cfr+"):
    solver = spiel_cfr.catalogue.make(name, kuhn, 100)
    solver.run(100)
    expected[name] = solver.nash_conv()
  lines = [line.split(maxsplit=3) for line in output.splitlines()]
  assert lines[0] == ["_Killed", "100", repr(expected["cfr"]), "-"]
  assert lines[1][:2] == ["_Killed", "0"]
  assert "BrokenProcessPool" in lines[1][3]
  assert lines[2] == ["cfr", "100", repr(expected["cfr"]), "-"]
  assert lines[3] == ["cfr+", "100", repr(expected["cfr+"]), "-"]
  assert "4/4" in error


_ENDLESS = """
import sys
import spiel_cfr

if __name__ == "__main__":
  spiel_cfr.sweep(
    {"game": ["kuhn_poker"], "solver": ["cfr", "cfr+"]}, folder=sys.argv[1], seconds=1e6
  )
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
@pytest.mark.parametrize("sent", [pytest.param("SIGINT", marks=pytest.mark.slow), "SIGKILL"])
def test_processes_end_with_the_sweep(sent: str, tmp_path: pathlib.Path) -> None:
  program = tmp_path / "program.py"
  program.write_text(_ENDLESS)
  command = [sys.executable, str(program), str(tmp_path / "sweep")]
  with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
    deadline = time.monotonic() + 120
    locks = []
    while len(locks) < 2 and time.monotonic() < deadline:
      time.sleep(0.1)
      locks = list((tmp_path / "sweep").glob("*/checkpoints/lock"))
      # Both runs are on their way.
      locks = [lock for lock in locks if list(lock.parent.glob("*.npz"))]
    workers = [int(lock.read_text().split()[1]) for lock in locks]
    assert len(workers) == 2
    process.send_signal(getattr(signal, sent))
    process.communicate(timeout=60)
  assert process.returncode != 0
  deadline = time.monotonic() + 30
  while any(map(_is_running, workers)) and time.monotonic() < deadline:
    time.sleep(0.05)
  assert not any(map(_is_running, workers))


def _is_running(pid: int) -> bool:
  try:
    os.kill(pid, 0)
    status = pathlib.Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] != "Z"
  except (ProcessLookupError, FileNotFoundError):
    return False


def test_a_process_that_waits_for_work_ends_without_a_word(capfd):
  """A sweep that Ctrl-C ends sends SIGINT to all its processes, to those without a run too."""
  with spiel_cfr.runs.ProcessExecutor(1) as executor:
    number = executor.submit(os.getpid).result()
    os.kill(number, signal.SIGINT)
    # Another process takes the next call.
    assert executor.submit(os.getpid).result() != number
    # In a call, the signal is the interrupt that it is elsewhere.
    with pytest.raises(KeyboardInterrupt):
      executor.submit(signal.raise_signal, signal.SIGINT).result()
  assert capfd.readouterr().err == ""


def test_only_the_executors_processes_are_interrupted():
  other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
  other.start()
  with spiel_cfr.runs.ProcessExecutor(1) as executor:
    number = executor.submit(os.getpid).result()
    call = executor.submit(time.sleep, 60)
    while not call.running():
      time.sleep(0.01)
    executor.interrupt()
    with pytest.raises((KeyboardInterrupt, BrokenProcessPool)):
      call.result(timeout=30)
  assert other.is_alive() and number != other.pid
  other.kill()
  other.join()
