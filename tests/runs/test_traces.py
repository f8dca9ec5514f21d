"""Traces: their contents, damaged files, and foreign files."""

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.runs import trace


@pytest.fixture(scope="module")
def kuhn() -> spiel_cfr.CompiledGame:
  return spiel_cfr.compile_game("kuhn_poker")


def run(solver: Any, iterations: int, *paths: pathlib.Path) -> list[spiel_cfr.runs.Row]:
  traces = [spiel_cfr.runs.TraceFile(path) for path in paths]
  return spiel_cfr.run(solver, iterations, traces=traces, progress=False).rows


@pytest.mark.parametrize("game", ["kuhn_poker", "kuhn_poker(players=3)"])
def test_rows_come_back_bit_for_bit(game: str, tmp_path: pathlib.Path) -> None:
  path = tmp_path / "folder" / "trace.csv"
  rows = run(spiel_cfr.CFRPlusSolver(game), 50, path)
  header, read = spiel_cfr.runs.read_trace(path)
  assert read == rows
  assert header["game"].startswith("kuhn_poker")
  assert header["solver"] == {"class": "CFRPlusSolver", "arguments": {}}
  assert set(header["versions"]) >= {"python", "spiel_cfr", "open_spiel", "numpy", "numba"}
  assert set(header["machine"]) == {"system", "processor", "cores"}
  assert list(path.parent.iterdir()) == [path]


def test_files_are_plain(kuhn: Any, tmp_path: pathlib.Path) -> None:
  csv = tmp_path / "trace.csv"
  rows = run(spiel_cfr.CFRSolver(kuhn), 4, csv)
  comment, names, *cells = csv.read_text().splitlines()
  assert json.loads(comment.removeprefix("# "))["kind"] == "trace of spiel_cfr"
  assert names.split(",") == [field.name for field in dataclasses.fields(spiel_cfr.runs.Row)][:-1]
  assert [[float(cell) if cell else None for cell in line.split(",")] for line in cells] == [
    list(row.columns().values()) for row in rows
  ]
  table = np.genfromtxt(csv, delimiter=",", names=True, skip_header=1)
  np.testing.assert_array_equal(table["nash_conv"], [row.nash_conv for row in rows])


def test_the_last_iterate_is_a_column_where_it_is_asked_for(
  kuhn: Any, tmp_path: pathlib.Path
) -> None:
  path, solver = tmp_path / "trace.csv", spiel_cfr.CFRPlusSolver(kuhn)
  traces = [spiel_cfr.runs.TraceFile(path)]
  result = spiel_cfr.run(solver, 50, traces=traces, progress=False, evaluate_current=True)
  assert result.last.current_nash_conv == spiel_cfr.nash_conv(kuhn, solver.current_policy())
  assert result.last.current_nash_conv != result.last.nash_conv
  assert spiel_cfr.runs.read_trace(path).rows == result.rows
  assert run(spiel_cfr.CFRPlusSolver(kuhn), 5)[-1].current_nash_conv is None


def test_a_resumed_run_goes_on_in_the_same_trace(kuhn: Any, tmp_path: pathlib.Path) -> None:
  path = tmp_path / "trace.csv"
  solver = spiel_cfr.CFRSolver(kuhn)
  first = run(solver, 16, path)
  kept = solver.state_dict()
  run(solver, 40, path)
  with open(path, "a") as file:
    file.write("half a li")
  assert len(spiel_cfr.runs.read_trace(path).rows) == 7

  resumed = spiel_cfr.CFRSolver(kuhn)
  resumed.load_state_dict(kept)
  second = run(resumed, 32, path)
  header, rows = spiel_cfr.runs.read_trace(path)
  assert rows == first + second
  assert [row.iteration for row in rows] == [1, 2, 4, 8, 16, 32]
  for column in ("solver_seconds", "evaluation_seconds"):
    times = [getattr(row, column) for row in rows]
    assert times == sorted(times)
  assert header["iteration"] == 0
  assert [again["iteration"] for again in header["resumed"]] == [16, 16]


def test_a_run_with_nothing_left_to_do_adds_nothing(kuhn: Any, tmp_path: pathlib.Path) -> None:
  path = tmp_path / "trace.csv"
  solver = spiel_cfr.CFRSolver(kuhn)
  rows = run(solver, 10, path)
  for _ in range(2):
    assert run(solver, 10, path)[-1].nash_conv == rows[-1].nash_conv
    assert spiel_cfr.runs.read_trace(path).rows == rows
  run(solver, 11, path)
  assert [row.iteration for row in spiel_cfr.runs.read_trace(path).rows[-2:]] == [10, 11]


def test_a_new_run_begins_a_new_trace(kuhn: Any, tmp_path: pathlib.Path) -> None:
  path = tmp_path / "trace.csv"
  run(spiel_cfr.CFRSolver(kuhn), 16, path)
  run(spiel_cfr.CFRSolver(kuhn), 4, path)
  header, rows = spiel_cfr.runs.read_trace(path)
  assert "resumed" not in header
  assert [row.iteration for row in rows] == [1, 2, 4]


def test_a_new_run_of_something_else_leaves_the_trace_alone(
  kuhn: Any, tmp_path: pathlib.Path
) -> None:
  path = tmp_path / "trace.csv"
  run(spiel_cfr.CFRSolver(kuhn), 16, path)
  before = path.read_bytes()
  for solver in (spiel_cfr.CFRPlusSolver(kuhn), spiel_cfr.CFRSolver("kuhn_poker(players=3)")):
    with pytest.raises(errors.CheckpointMismatchError, match="another name"):
      run(solver, 4, path)
  assert path.read_bytes() == before


def test_rows_of_another_run_are_not_mixed_in(kuhn: Any, tmp_path: pathlib.Path) -> None:
  path = tmp_path / "trace.csv"
  run(spiel_cfr.CFRSolver(kuhn), 4, path)
  before = path.read_bytes()
  for solver in (spiel_cfr.CFRPlusSolver(kuhn), spiel_cfr.CFRSolver("kuhn_poker(players=3)")):
    solver.run(4)
    with pytest.raises(errors.CheckpointMismatchError, match="another name"):
      run(solver, 8, path)
  assert path.read_bytes() == before


def test_files_that_are_no_traces_are_left_alone(kuhn: Any, tmp_path: pathlib.Path) -> None:
  path = tmp_path / "accounts.csv"
  path.write_text("name,amount\nrent,1200\n")
  with pytest.raises(errors.FileFormatError, match="accounts"):
    run(spiel_cfr.CFRSolver(kuhn), 4, path)
  assert path.read_text() == "name,amount\nrent,1200\n"


class Broken(spiel_cfr.FullWidthSolver):
  """A solver that fails."""

  def __init__(self, game: Any) -> None:
    super().__init__(game, spiel_cfr.RegretMatching())

  def run(self, iterations: int) -> None:
    if self.iteration > 3:
      raise ZeroDivisionError
    super().run(iterations)


def test_traces_are_closed_when_the_run_fails(kuhn: Any, tmp_path: pathlib.Path) -> None:
  closed = []

  class Listener(spiel_cfr.runs.Trace):
    def start(self, solver: Any) -> None:
      assert solver.iteration == 0

    def write(self, row: Any) -> None:
      closed.append(row.iteration)

    def close(self) -> None:
      closed.append("closed")

  with pytest.raises(ZeroDivisionError):
    spiel_cfr.run(Broken(kuhn), 100, traces=[Listener(), Listener()], progress=False)
  assert closed == [1, 1, 2, 2, 4, 4, "closed", "closed"]


def test_other_formats_are_refused(kuhn: Any, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
  path = tmp_path / "trace.csv"
  with monkeypatch.context() as patch:
    patch.setattr(trace, "_FORMAT", trace._FORMAT + 1)
    run(spiel_cfr.CFRSolver(kuhn), 4, path)
  with pytest.raises(errors.FileFormatError, match="format"):
    spiel_cfr.runs.read_trace(path)


class Talkative(spiel_cfr.FullWidthSolver):
  """A solver with columns of its own."""

  def __init__(self, game: Any) -> None:
    super().__init__(game, spiel_cfr.RegretMatching())

  def trace_columns(self) -> dict[str, float]:
    return {"count": self.iteration, "share": 1 / (1 + self.iteration)}


def test_solvers_have_columns_of_their_own(kuhn: Any, tmp_path: pathlib.Path) -> None:
  path = tmp_path / "trace.csv"
  solver = Talkative(kuhn)
  first = run(solver, 8, path)
  assert first[-1].extra_columns == {"count": 8, "share": 1 / 9}
  second = run(solver, 16, path)
  assert spiel_cfr.runs.read_trace(path).rows == first + second


def test_a_trace_that_was_cut_anywhere_keeps_its_whole_rows(
  kuhn: Any, tmp_path: pathlib.Path
) -> None:
  path = tmp_path / "trace.csv"
  rows = run(spiel_cfr.CFRSolver(kuhn), 8, path)
  content = path.read_bytes()
  header_end = content.index(b"\n")
  for length in [*range(0, header_end, 60), *range(header_end, len(content))]:
    path.write_bytes(content[:length])
    if length <= header_end:
      with pytest.raises(errors.FileFormatError):
        spiel_cfr.runs.read_trace(path)
    else:
      whole = max(0, content[:length].count(b"\n") - 2)
      assert spiel_cfr.runs.read_trace(path).rows == rows[:whole]
