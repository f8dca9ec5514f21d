"""Two runs never write into one folder."""

import os
import pathlib
import subprocess
import sys
import warnings
from typing import Any

import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr.regret_minimizers.schedules import Schedule


@pytest.fixture(scope="module")
def kuhn() -> spiel_cfr.CompiledGame:
  return spiel_cfr.compile_game("kuhn_poker")


def run(solver: Any, iterations: int, checkpoints: Any, **settings: Any) -> Any:
  return spiel_cfr.run(solver, iterations, checkpoints=checkpoints, progress=False, **settings)


def names(folder: pathlib.Path) -> list[str]:
  return sorted(path.name for path in folder.iterdir())


_OTHER_RUN = """
import sys
import spiel_cfr

class Announced(spiel_cfr.FullWidthSolver):
  def __init__(self, game):
    super().__init__(game, spiel_cfr.RegretMatching())

  def run(self, iterations):
    super().run(iterations)
    # One checkpoint is there, and the folder stays as it is while others try.
    if self.iteration == 20:
      print(self.iteration, flush=True)
      sys.stdin.read()

spiel_cfr.run(
  Announced("kuhn_poker"),
  seconds=60,
  checkpoints=spiel_cfr.Checkpoints(sys.argv[1], every=10),
  progress=False,
)
"""


def test_a_second_process_is_told_at_its_start(kuhn: Any, tmp_path: pathlib.Path) -> None:
  folder = tmp_path / "deep" / "folder"
  command = [sys.executable, "-c", _OTHER_RUN, str(folder)]
  pipe = subprocess.PIPE
  with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
    assert process.stdout is not None
    assert process.stdout.readline() == "20\n"
    checkpoints = spiel_cfr.Checkpoints(folder, every=10)
    unfinished = folder / "iteration-000000000010.npz.0a1b2c3d.tmp"
    unfinished.touch()
    solver = spiel_cfr.CFRSolver(kuhn)
    with pytest.raises(errors.FolderInUseError, match=f"process {process.pid} on"):
      run(solver, 100, checkpoints)
    assert solver.iteration == 0
    assert unfinished.exists()
    process.kill()
  # The lock is gone, although it was never released.
  resumed = spiel_cfr.CFRSolver(kuhn)
  # It is of a class that is not known here.
  with pytest.raises(errors.CheckpointMismatchError):
    checkpoints.resume(resumed)
  for path in checkpoints.paths():
    path.unlink()
  run(resumed, resumed.iteration + 10, checkpoints)
  assert names(folder) == ["iteration-000000000010.npz", "lock"]


def test_a_second_run_of_the_same_process_is_told_too(kuhn: Any, tmp_path: pathlib.Path) -> None:
  told = []

  def evaluate_at(iteration: int) -> int:
    if iteration and not told:
      with pytest.raises(errors.FolderInUseError, match=f"process {os.getpid()}"):
        run(spiel_cfr.CFRSolver(kuhn), 5, spiel_cfr.Checkpoints(tmp_path, every=1))
      told.append(iteration)
    return iteration + 1

  checkpoints = spiel_cfr.Checkpoints(tmp_path, every=2)
  run(spiel_cfr.CFRSolver(kuhn), 4, checkpoints, evaluate_at=evaluate_at)
  assert told
  checkpoints.save(spiel_cfr.CFRSolver(kuhn))
  assert names(tmp_path) == [*(f"iteration-{number:012}.npz" for number in (0, 2, 4)), "lock"]


def test_checkpoints_of_another_solver_are_not_removed(kuhn: Any, tmp_path: pathlib.Path) -> None:
  run(spiel_cfr.CFRSolver(kuhn), 5, spiel_cfr.Checkpoints(tmp_path, every=1))
  before = names(tmp_path)
  other = spiel_cfr.CFRPlusSolver(kuhn)
  other.run(10)
  with pytest.raises(errors.CheckpointMismatchError, match="CFRSolver"):
    run(other, 20, spiel_cfr.Checkpoints(tmp_path, every=1))
  assert names(tmp_path) == before


def test_every_resume_says_that_all_is_damaged(kuhn: Any, tmp_path: pathlib.Path) -> None:
  checkpoints = spiel_cfr.Checkpoints(tmp_path, every=100)
  run(spiel_cfr.CFRSolver(kuhn), 5, checkpoints)
  (path,) = checkpoints.paths()
  path.write_bytes(path.read_bytes()[:-1])
  for _ in range(3):
    with warnings.catch_warnings(), pytest.raises(errors.DamagedFileError):
      warnings.simplefilter("ignore")
      checkpoints.resume(spiel_cfr.CFRSolver(kuhn))
  with pytest.raises(errors.CheckpointMismatchError):
    run(spiel_cfr.CFRSolver(kuhn), 5, checkpoints)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="asks Linux what is synced")
def test_new_folders_are_synced(kuhn: Any, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
  synced = set()
  sync = os.fsync

  def note(file: Any) -> None:
    number = file if isinstance(file, int) else file.fileno()
    synced.add(pathlib.Path(os.readlink(f"/proc/self/fd/{number}")))
    sync(number)

  monkeypatch.setattr(os, "fsync", note)
  run(spiel_cfr.CFRSolver(kuhn), 2, spiel_cfr.Checkpoints(tmp_path / "a" / "b", every=1))
  assert {tmp_path, tmp_path / "a", tmp_path / "a" / "b"} <= synced
  synced.clear()
  trace = spiel_cfr.runs.TraceFile(tmp_path / "e" / "trace.csv")
  run(spiel_cfr.CFRSolver(kuhn), 2, None, traces=[trace])
  assert {tmp_path, tmp_path / "e"} <= synced


def test_a_folder_that_is_a_file_is_found_at_the_start(kuhn: Any, tmp_path: pathlib.Path) -> None:
  path = tmp_path / "file"
  path.touch()
  solver = spiel_cfr.CFRSolver(kuhn)
  with pytest.raises(OSError, match="file"):
    run(solver, 10, spiel_cfr.Checkpoints(path / "folder", every=1))
  assert solver.iteration == 0
  with pytest.raises(OSError, match="file"):
    files.check_writable(path / "file")


class _Unwritable(Schedule):
  """A schedule that a file cannot store."""

  def __call__(self, iterations: Any) -> Any:
    return iterations.astype(float)


def test_unsavable_solvers_are_refused_before_the_run(kuhn: Any, tmp_path: pathlib.Path) -> None:
  solver = spiel_cfr.FullWidthSolver(
    kuhn, spiel_cfr.RegretMatching(), averaging=spiel_cfr.Averaging(_Unwritable())
  )
  with pytest.raises(errors.ArgumentError, match="kept in a checkpoint"):
    run(solver, 100, spiel_cfr.Checkpoints(tmp_path, every=10))
  assert solver.iteration == 0
