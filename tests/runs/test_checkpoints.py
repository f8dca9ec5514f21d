"""A solver from a checkpoint continues exactly, and other files are refused."""

import dataclasses
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest
from all_solvers import SOLVERS, quick_if_representative

import spiel_cfr
from spiel_cfr import RegretMatching, errors
from spiel_cfr._util import files
from spiel_cfr.cfr import solver_files

GAME = "leduc_poker"


@pytest.fixture(scope="module")
def leduc() -> spiel_cfr.CompiledGame:
  return spiel_cfr.compile_game(GAME)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
  return tmp_path / "solver.npz"


def after(solver: Any, iterations: int) -> Any:
  solver.run(iterations)
  return solver


def saved(solver: Any, path: pathlib.Path) -> bytes:
  solver.save(path)
  return path.read_bytes()


every_solver = pytest.mark.parametrize("name", quick_if_representative(SOLVERS))


@every_solver
def test_every_solver_goes_on_bit_for_bit(name: str, leduc: Any, path: pathlib.Path) -> None:
  make, is_deep = SOLVERS[name], name.startswith("deep")
  game, stops = ("kuhn_poker", [0, 1, 3]) if is_deep else (leduc, [0, 1, 7, 20])
  whole = saved(after(make(game), stops[-1]), path)
  for begin, end in itertools.pairwise(stops):
    solver = spiel_cfr.Solver.load(path, game) if begin else make(game)
    assert solver.iteration == begin
    solver.run(end - begin)
    solver.save(path)
  assert path.read_bytes() == whole
  solver = make(game)
  solver.restore(path)
  assert saved(solver, path) == whole
  assert spiel_cfr.Solver.load(path, game).description() == solver.description()


@every_solver
def test_state_dict_is_a_copy_of_all_there_is(name: str, leduc: Any) -> None:
  make, is_deep = SOLVERS[name], name.startswith("deep")
  game, before, more = ("kuhn_poker", 1, 1) if is_deep else (leduc, 5, 3)
  solver, other = after(make(game), before), make(game)
  state = solver.state_dict()
  solver.run(more)
  other.load_state_dict(state)
  other.run(more)
  for name, value in solver.state_dict().items():
    np.testing.assert_array_equal(value, other.state_dict()[name])
  np.testing.assert_array_equal(solver.average_probabilities(), other.average_probabilities())


@dataclasses.dataclass
class SamplerState:
  """The state of CFR, a random generator and a number."""

  inner: Any
  rng: np.random.Generator
  temperature: float


class Sampler(spiel_cfr.Solver):
  """A user's randomized solver, a wrapper around another one."""

  def __init__(self, game: Any, seed: int, *numbers: float, bits: str = "PCG64") -> None:
    self.compiled_game, self.seed, self.numbers, self.bits = game, seed, numbers, bits
    self.reset()

  def reset(self) -> None:
    inner = spiel_cfr.CFRSolver(self.compiled_game)
    rng = np.random.Generator(getattr(np.random, self.bits)(self.seed))
    self._runtime = inner, SamplerState(inner.state, rng, 1.0)

  @property
  def state(self) -> SamplerState:
    return self._runtime[1]

  def refresh(self) -> None:
    super().refresh()
    self._runtime[0].refresh()

  @property
  def iteration(self) -> int:
    return self._runtime[0].iteration

  @property
  def nodes_touched(self) -> int:
    return self._runtime[0].nodes_touched

  def _advance(self, count: int) -> None:
    for _ in range(count):
      self._runtime[0].evaluate_and_update_policy()
      self.state.temperature *= self.state.rng.random()

  def current_probabilities(self) -> Any:
    return self._runtime[0].current_probabilities()

  def average_probabilities(self) -> Any:
    return self._runtime[0].average_probabilities()


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_random_generators_go_on_too(bits: str, leduc: Any, path: pathlib.Path) -> None:
  solver = Sampler(leduc, 3, 0.5, 0.25, bits=bits)
  for _ in range(5):
    solver.run(1)
  solver.save(path)
  loaded = spiel_cfr.Solver.load(path, leduc)
  assert loaded.numbers == (0.5, 0.25)
  for _ in range(5):
    solver.run(1)
    loaded.run(1)
  assert loaded.state.temperature == solver.state.temperature < 1
  assert loaded.state.rng.random() == solver.state.rng.random()
  other = "MT19937" if bits == "PCG64" else "PCG64"
  with pytest.raises(errors.CheckpointMismatchError, match="rng"):
    Sampler(leduc, 3, bits=other).load_state_dict(loaded.state_dict())


def test_games_are_told_apart(leduc: Any, path: pathlib.Path, tmp_path: pathlib.Path) -> None:
  text = 'EFG 2 R "" { "0" "1" } ""\np "" 1 1 "" { "a" "b" } 0\n'
  ends = 't "" 1 "" { 1 -1 }\nt "" 2 "" { PAYOFF }\n'
  efg = tmp_path / "game.efg"
  efg.write_text(text + ends.replace("PAYOFF", "2 -2"))
  spiel_cfr.CFRSolver(f"efg_game(filename={efg})").save(path)
  spiel_cfr.Solver.load(path, f"efg_game(filename={efg})")
  efg.write_text(text + ends.replace("PAYOFF", "3 -3"))
  for game in (f"efg_game(filename={efg})", leduc, "kuhn_poker"):
    with pytest.raises(errors.CheckpointMismatchError, match=r"game\.efg"):
      spiel_cfr.Solver.load(path, game)
  spiel_cfr.CFRSolver(leduc).save(path)
  spiel_cfr.Solver.load(path, "leduc_poker(players=2)")
  with pytest.raises(errors.CheckpointMismatchError, match="leduc_poker"):
    spiel_cfr.Solver.load(path, "leduc_poker(suit_isomorphism=true)")


def test_solvers_and_their_arguments_are_told_apart(leduc: Any, path: pathlib.Path) -> None:
  after(spiel_cfr.DCFRSolver(leduc, alpha=1.25), 3).save(path)
  others = [
    spiel_cfr.DCFRSolver(leduc),
    spiel_cfr.CFRPlusSolver(leduc),
    spiel_cfr.FullWidthSolver(
      leduc, RegretMatching.discounted(1.25), averaging=spiel_cfr.Averaging(2.0)
    ),
  ]
  for solver in others:
    with pytest.raises(errors.CheckpointMismatchError, match=r"alpha=1\.25"):
      solver.restore(path)
    assert solver.iteration == 0
  assert spiel_cfr.Solver.load(path, leduc).description() == {
    "class": "DCFRSolver",
    "arguments": {"alpha": 1.25, "beta": 0.0, "gamma": 2.0},
  }


def test_unknown_solvers_are_refused(leduc: Any, path: pathlib.Path) -> None:
  after(spiel_cfr.CFRSolver(leduc), 2).save(path)
  header, arrays = files.read(path, solver_files.KIND, solver_files.FORMAT)
  for solver in (
    {"class": "os.system", "arguments": {"command": "false"}},
    {"class": "CFRSolver", "arguments": {"unheard_of": 1}},
    {"class": "DCFRSolver", "arguments": {"alpha": -1.0}},
    {"class": "FullWidthSolver", "arguments": {"minimizer": {"class": "Popen", "args": "false"}}},
    {"class": []},
    [],
    None,
  ):
    files.write(path, solver_files.KIND, solver_files.FORMAT, header | {"solver": solver}, arrays)
    with pytest.raises(errors.CheckpointMismatchError):
      spiel_cfr.Solver.load(path, leduc)


def test_arguments_without_a_written_form_are_refused(leduc: Any, path: pathlib.Path) -> None:
  class Odd(spiel_cfr.FullWidthSolver):
    def __init__(self, game: Any, function: Any) -> None:
      super().__init__(game, spiel_cfr.RegretMatching())

  with pytest.raises(errors.ArgumentError, match="function"):
    Odd(leduc, print).save(path)
  assert not path.exists()


def test_state_of_another_shape_is_refused(leduc: Any) -> None:
  solver = after(spiel_cfr.CFRSolver(leduc), 2)
  state = solver.state_dict()
  before = solver.average_probabilities()
  for wrong in (
    {"cumulative": state["cumulative"][:-1]},
    {"cumulative": state["cumulative"].astype(np.float32)},
    {"cumulative": None},
    {"iteration": "3"},
    {"more": 1},
  ):
    with pytest.raises(errors.CheckpointMismatchError, match=next(iter(wrong))):
      solver.load_state_dict({**state, "iteration": 9} | wrong)
    assert solver.iteration == 2
  with pytest.raises(errors.CheckpointMismatchError):
    solver.load_state_dict({})
  np.testing.assert_array_equal(solver.average_probabilities(), before)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: Any) -> bytes:
  """The bytes of a small checkpoint."""
  solver = after(spiel_cfr.CFRSolver("kuhn_poker"), 10)
  return saved(solver, tmp_path_factory.mktemp("checkpoint") / "solver.npz")


@pytest.fixture(scope="module")
def kuhn() -> spiel_cfr.CompiledGame:
  return spiel_cfr.compile_game("kuhn_poker")


@pytest.mark.parametrize("step", [23, pytest.param(3, marks=pytest.mark.slow)])
def test_no_bit_may_flip(step: int, checkpoint: bytes, kuhn: Any, path: pathlib.Path) -> None:
  assert len(checkpoint) < 10_000
  for position in range(0, len(checkpoint), step):
    changed = bytearray(checkpoint)
    changed[position] ^= 1 << position // step % 8
    path.write_bytes(changed)
    with pytest.raises(errors.DamagedFileError, match="checksum"):
      spiel_cfr.Solver.load(path, kuhn)


def test_no_byte_may_be_missing(checkpoint: bytes, kuhn: Any, path: pathlib.Path) -> None:
  for length in [*range(0, len(checkpoint), 7), len(checkpoint) - 1]:
    path.write_bytes(checkpoint[:length])
    with pytest.raises(errors.DamagedFileError, match="checksum"):
      spiel_cfr.Solver.load(path, kuhn)


def test_foreign_files_are_refused(kuhn: Any, path: pathlib.Path) -> None:
  kuhn.save(path)
  with pytest.raises(errors.FileFormatError, match="compiled game"):
    spiel_cfr.Solver.load(path, kuhn)
  files.write(path, solver_files.KIND, solver_files.FORMAT + 1, {}, {})
  with pytest.raises(errors.FileFormatError, match="format 3"):
    spiel_cfr.Solver.load(path, kuhn)
  files.write(path, solver_files.KIND, solver_files.FORMAT, {}, {})
  with pytest.raises(errors.SpielCFRError):
    spiel_cfr.Solver.load(path, kuhn)
  np.savez(path, strategy=np.zeros(3))
  with pytest.raises(errors.DamagedFileError):
    spiel_cfr.Solver.load(path, kuhn)
  with pytest.raises(FileNotFoundError):
    spiel_cfr.Solver.load(path.with_name("nowhere.npz"), kuhn)


class Trap:
  """Unpickling this object would create a file."""

  def __reduce__(self) -> Any:
    return exec, ("from spiel_cfr import errors; errors.trapped = True",)


def test_pickles_are_not_opened(kuhn: Any, path: pathlib.Path) -> None:
  trap = np.array([Trap()], dtype=object)
  header: dict[str, Any] = {"solver": {"class": "CFRSolver", "arguments": {}}}
  files.write(path, solver_files.KIND, solver_files.FORMAT, header, {"cumulative": trap})
  with pytest.raises(errors.FileFormatError, match="array is of object"):
    spiel_cfr.Solver.load(path, kuhn)
  assert not hasattr(errors, "trapped")


def test_a_failed_write_leaves_the_old_file(
  kuhn: Any, path: pathlib.Path, monkeypatch: Any
) -> None:
  solver = after(spiel_cfr.CFRSolver(kuhn), 2)
  old = saved(solver, path)
  solver.run(1)

  def fail(*_: Any) -> None:
    raise OSError("disk full")

  for step in ("fsync", "replace"):
    with monkeypatch.context() as patch:
      patch.setattr(os, step, fail)
      with pytest.raises(OSError, match="disk full"):
        solver.save(path)
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]
  solver.save(path)
  assert spiel_cfr.Solver.load(path, kuhn).iteration == 3


def test_the_last_few_are_kept(kuhn: Any, tmp_path: pathlib.Path) -> None:
  folder = tmp_path / "new" / "folder"
  (tmp_path / "new").mkdir()
  checkpoints = spiel_cfr.Checkpoints(folder, every=10, keep=2)
  assert checkpoints.resume(spiel_cfr.CFRSolver(kuhn)) is None
  result = spiel_cfr.run(spiel_cfr.CFRSolver(kuhn), 45, checkpoints=checkpoints, progress=False)
  # Each checkpoint has its row in the trace, so that both agree on the time it took.
  assert [row.iteration for row in result.rows] == [1, 2, 4, 8, 10, 16, 20, 30, 32, 40, 45]
  assert [path.name for path in checkpoints.paths()] == [
    "iteration-000000000045.npz",
    "iteration-000000000040.npz",
  ]
  (folder / "iteration-notes.npz").touch()
  (folder / "iteration-000000000050.npz.0a1b2c3d.tmp").touch()
  solver = spiel_cfr.CFRSolver(kuhn)
  assert checkpoints.resume(solver) == folder / "iteration-000000000045.npz"
  assert solver.iteration == 45
  spiel_cfr.run(solver, 50, checkpoints=checkpoints, progress=False)
  assert sorted(path.name for path in folder.iterdir()) == [
    "iteration-000000000045.npz",
    "iteration-000000000050.npz",
    "iteration-notes.npz",
    "lock",
  ]


def test_resuming_passes_over_damaged_files(kuhn: Any, tmp_path: pathlib.Path) -> None:
  checkpoints = spiel_cfr.Checkpoints(tmp_path, every=spiel_cfr.runs.Powers(2), keep=3)
  spiel_cfr.run(spiel_cfr.CFRSolver(kuhn), 16, checkpoints=checkpoints, progress=False)
  newest, middle, oldest = checkpoints.paths()
  newest.write_bytes(newest.read_bytes()[:-1])
  solver = spiel_cfr.CFRSolver(kuhn)
  with pytest.warns(UserWarning, match="Skipped"):
    assert checkpoints.resume(solver) == middle
  assert solver.iteration == 8
  with pytest.raises(errors.CheckpointMismatchError):
    checkpoints.resume(spiel_cfr.CFRPlusSolver(kuhn))
  assert sorted(path.name for path in tmp_path.iterdir()) == [
    oldest.name,
    middle.name,
    f"{newest.name}.damaged",
    "lock",
  ]
  spiel_cfr.run(solver, 9, checkpoints=checkpoints, progress=False)
  for path in checkpoints.paths():
    path.write_bytes(b"")
  with pytest.raises(errors.DamagedFileError), pytest.warns(UserWarning):
    checkpoints.resume(solver)


def test_later_checkpoints_are_not_replaced(kuhn: Any, tmp_path: pathlib.Path) -> None:
  """A forgotten resume must not lose checkpoints or traces."""
  checkpoints = spiel_cfr.Checkpoints(tmp_path / "folder", every=10)
  trace = tmp_path / "trace.csv"

  def run(solver: Any) -> None:
    traces = [spiel_cfr.runs.TraceFile(trace)]
    spiel_cfr.run(solver, 40, checkpoints=checkpoints, traces=traces, progress=False)

  run(spiel_cfr.CFRSolver(kuhn))
  before = trace.read_bytes(), checkpoints.paths()
  with pytest.raises(errors.CheckpointMismatchError, match="another folder"):
    run(spiel_cfr.CFRSolver(kuhn))
  assert (trace.read_bytes(), checkpoints.paths()) == before
  solver = spiel_cfr.CFRSolver(kuhn)
  checkpoints.resume(solver)
  run(solver)


@pytest.mark.parametrize("settings", [{"every": 0}, {"every": 1, "keep": 0}], ids=str)
def test_refuses_numbers_that_make_no_sense(settings: Any) -> None:
  with pytest.raises(errors.ArgumentError):
    spiel_cfr.Checkpoints("folder", **settings)


_LONG_RUN = """
import sys
import spiel_cfr

folder, resume = sys.argv[1:]
solver = spiel_cfr.DCFRSolver("leduc_poker")
checkpoints = spiel_cfr.Checkpoints(folder, every=500)
if resume == "resume":
  checkpoints.resume(solver)
spiel_cfr.run(
  solver,
  20_000,
  checkpoints=checkpoints,
  traces=[spiel_cfr.runs.TraceFile(folder + ".csv")],
  progress=False,
)
"""


def _start(folder: pathlib.Path, *, resume: bool, threads: int = 1) -> "subprocess.Popen[bytes]":
  counts = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads)
  environment = os.environ | {name: str(count) for name, count in counts.items()}
  mode = "resume" if resume else "fresh"
  return subprocess.Popen([sys.executable, "-c", _LONG_RUN, str(folder), mode], env=environment)


def _results(folder: pathlib.Path) -> Any:
  """Returns the files of a run without times."""
  checkpoints = {path.name: path.read_bytes() for path in folder.glob("*.npz")}
  rows = spiel_cfr.runs.read_trace(f"{folder}.csv").rows
  return checkpoints, [(row.iteration, row.nodes_touched, row.nash_conv) for row in rows]


@pytest.mark.parametrize("most_kills", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_kill_9_at_any_moment_changes_nothing(most_kills: int, tmp_path: pathlib.Path) -> None:
  hunted, once = tmp_path / "hunted", tmp_path / "once"
  assert _start(once, resume=False, threads=2).wait(60) == 0

  rng = random.Random(1)
  checkpoints = spiel_cfr.Checkpoints(hunted, every=1)
  kills = 0
  while kills < most_kills:
    before = checkpoints.paths()[:1]
    process = _start(hunted, resume=True)
    while process.poll() is None and checkpoints.paths()[:1] == before:
      time.sleep(0.001)
    time.sleep(0.05 * rng.random())
    process.send_signal(signal.SIGKILL)
    if process.wait() != -signal.SIGKILL:
      break  # It was done before.
    kills += 1
  assert kills >= most_kills / 2
  assert _start(hunted, resume=True).wait(60) == 0
  assert _results(hunted) == _results(once)


def test_header_can_be_read_with_numpy_alone(checkpoint: bytes, path: pathlib.Path) -> None:
  path.write_bytes(checkpoint)
  with np.load(path) as archive:
    header = json.loads(archive["header"].tobytes())
    assert archive["cumulative"].dtype == np.float64
  assert header["game"] == "kuhn_poker()"
  assert header["state"] == {"average_start": 0, "warm_iterations": 0}
  assert set(header["versions"]) == {"python", "spiel_cfr", "open_spiel", "numpy", "numba"}


def test_copies_of_a_solver_can_be_saved(kuhn: Any, path: pathlib.Path) -> None:
  import copy

  solver = after(
    spiel_cfr.FullWidthSolver(kuhn, RegretMatching.plus(), averaging=spiel_cfr.Averaging(1.0)), 4
  )
  twin = copy.deepcopy(solver)
  assert saved(twin, path) == saved(solver, path)
