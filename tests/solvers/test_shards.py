"""Subtrees shared by processes: the same bytes as in one process, however many there are and whoever is killed."""

import concurrent.futures
import contextlib
import functools
import gc
import os
import pathlib
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import poker_games
import pytest
from executors import Here

import spiel_cfr
from spiel_cfr import RegretMatching, errors
from spiel_cfr.compiled.shards import ShardedPartition
from spiel_cfr.solvers.loops.part_steps import PartSteps

_SOLVERS: dict[str, Any] = {
  "cfr": spiel_cfr.CFRSolver,
  "cfr+": spiel_cfr.CFRPlusSolver,
  "dcfr": spiel_cfr.DCFRSolver,
  "simultaneous": lambda game: spiel_cfr.Solver(
    game, RegretMatching.discounted(beta=0.5), alternating_updates=False, averaged="before"
  ),
  "predictive": spiel_cfr.PCFRPlusSolver,
  # With numbers of each infoset.
  "adaptive": functools.partial(spiel_cfr.catalogue.make, "adaptive", iterations=12),
  "tapered": lambda game: spiel_cfr.Solver(game, RegretMatching.plus(), tapered=True),
}


@functools.cache
def _game(**options: Any) -> spiel_cfr.PublicGame:
  endgame = poker_games.random_endgame(3, 12, poker_games.TURN)
  return spiel_cfr.compile_public_game(
    endgame.load(), poker_games.check_or_pot, partitioned=True, **options
  )


def _arrays(solver: Any) -> dict[str, bytes]:
  names = ("_strategy", "_cumulative", "_state", "_local", "_tapered", "_iteration")
  return {name: getattr(solver, name).tobytes() for name in names}


def _alike(solver: Any, other: Any) -> bool:
  return _arrays(solver) == _arrays(other) and solver.nash_conv() == other.nash_conv()


def _solved(game: Any, make: Any = spiel_cfr.CFRPlusSolver, iterations: int = 12) -> Any:
  solver = make(game)
  solver.run(iterations)
  return solver


@pytest.mark.parametrize("name", _SOLVERS)
def test_as_in_one_process(name: str, tmp_path: pathlib.Path) -> None:
  """For one, two and three shards, and for threads; single steps are shared too."""
  expected = _solved(_game(), _SOLVERS[name])
  assert _alike(_solved(_game(num_threads=2), _SOLVERS[name]), expected)
  for num_shards in (1, 2, 3, 100_000) if name == "cfr+" else (3,):
    game = spiel_cfr.shard(_game(), Here(), tmp_path, num_shards)
    solver = _solved(game, _SOLVERS[name], 5)
    # A slice of its own, and single steps.
    solver.run(4)
    for _ in range(3):
      solver.evaluate_and_update_policy()
    assert _alike(solver, expected), num_shards


def test_single_precision(tmp_path: pathlib.Path) -> None:
  game = _game(dtype="float32")
  assert _alike(_solved(spiel_cfr.shard(game, Here(), tmp_path, 2)), _solved(game))


def test_executors_that_call_in_threads(tmp_path: pathlib.Path) -> None:
  with concurrent.futures.ThreadPoolExecutor(3) as threads:
    assert _alike(_solved(spiel_cfr.shard(_game(), threads, tmp_path, 5)), _solved(_game()))


def test_several_solvers_at_a_time(tmp_path: pathlib.Path) -> None:
  """More than a process keeps, in turns."""
  game = spiel_cfr.shard(_game(), Here(), tmp_path, 2)
  solvers = [make(game) for make in _SOLVERS.values()]
  for solver in solvers * 2:
    solver.run(6)
  for solver, make in zip(solvers, _SOLVERS.values(), strict=True):
    assert _alike(solver, _solved(_game(), make))


def test_what_is_held_stays(tmp_path: pathlib.Path) -> None:
  solvers = [
    spiel_cfr.CFRPlusSolver(game)
    for game in (_game(), spiel_cfr.shard(_game(), Here(), tmp_path, 2))
  ]
  policy = _solved(_game(), iterations=2).average_policy()
  infostates = _game().infosets[0].infostates[::3]
  for solver in solvers:
    solver.hold(policy, infostates)
    solver.run(8)
  assert _alike(*solvers)


def test_checkpoints_are_of_either(tmp_path: pathlib.Path) -> None:
  sharded = spiel_cfr.shard(_game(), Here(), tmp_path / "shards", 2)
  assert sharded.digest == _game().digest
  for first, second in ((sharded, _game()), (_game(), sharded)):
    _solved(first, iterations=7).save(tmp_path / "checkpoint.npz")
    again = spiel_cfr.CFRPlusSolver(second)
    again.restore(tmp_path / "checkpoint.npz")
    again.run(5)
    assert _alike(again, _solved(_game()))


class _Torn(Here):
  """Calls that die in the middle of a subtree, at the second one of every third call, and are made again."""

  def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
    self.deaths = 0
    self._calls = 0
    self._left: int | None = None
    visit = PartSteps.visit

    def dying(steps: Any, *arguments: Any) -> None:
      visit(steps, *arguments)
      if self._left is not None:
        self._left -= 1
        if self._left == 0:
          raise SystemExit

    monkeypatch.setattr(PartSteps, "visit", dying)

  def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    self._calls += 1
    if self._calls % 3 == 0:
      self._left = 2
      with contextlib.suppress(SystemExit):
        super().submit(fn, *args, **kwargs)
      self.deaths += 1
    self._left = None
    return super().submit(fn, *args, **kwargs)


@pytest.mark.parametrize("name", ["cfr+", "simultaneous", "adaptive"])
def test_what_was_begun_is_done_again(
  name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  expected = _solved(_game(), _SOLVERS[name])
  torn = _Torn(monkeypatch)
  assert _alike(_solved(spiel_cfr.shard(_game(), torn, tmp_path, 2), _SOLVERS[name]), expected)
  assert torn.deaths >= 8


def _killing(executor: Any, times: int) -> Iterator[int]:
  """Kills one of the processes, again and again."""
  while times:
    time.sleep(0.1)
    for pool in list(executor._pools):
      for process in list((pool._processes or {}).values()):
        if times and process.pid is not None:
          os.kill(process.pid, signal.SIGKILL)
          times -= 1
          yield process.pid


def test_kill_9(tmp_path: pathlib.Path) -> None:
  """Processes, two of which are killed while they work."""
  expected = _solved(_game(), iterations=60)
  with spiel_cfr.ProcessExecutor(2) as executor:
    solver = spiel_cfr.CFRPlusSolver(spiel_cfr.shard(_game(), executor, tmp_path, 3))
    solver.run(5)
    killed: list[int] = []
    thread = threading.Thread(target=lambda: killed.extend(_killing(executor, 2)))
    thread.start()
    while thread.is_alive() and solver.iteration < 50:
      solver.run(1)
    thread.join()
    solver.run(60 - solver.iteration)
  assert len(killed) == 2
  assert _alike(solver, expected)


@pytest.mark.parametrize("iterations", [1, 6])
def test_executors_that_fail_for_good(iterations: int, tmp_path: pathlib.Path) -> None:
  """The iterations that were begun are finished here, and the solver can go on with another executor."""

  class Failing(Here):
    works = 9

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
      Failing.works -= 1
      future: concurrent.futures.Future[Any] = concurrent.futures.Future()
      if Failing.works > 0:
        return super().submit(fn, *args, **kwargs)
      if Failing.works == 0:
        future.set_exception(KeyboardInterrupt())
        return future
      raise RuntimeError("closed")

  solver = spiel_cfr.CFRPlusSolver(spiel_cfr.shard(_game(), Failing(), tmp_path, 2))
  failures = 0
  while solver.iteration < 12:
    before = solver.iteration
    try:
      solver.run(min(iterations, 12 - before))
    except errors.ShardError as error:
      failures += 1
      assert "RuntimeError" in str(error) or "KeyboardInterrupt" in str(error)
    assert solver.iteration > before
  assert failures >= 1
  assert _alike(solver, _solved(_game()))


def test_files_are_removed(tmp_path: pathlib.Path) -> None:
  game = spiel_cfr.shard(_game(), Here(), tmp_path, 2)
  solver = _solved(game, iterations=1)
  assert len(list(tmp_path.iterdir())) == 2
  policy = solver.average_policy()
  del solver, game
  gc.collect()
  assert len(list(tmp_path.iterdir())) <= 2
  del policy
  gc.collect()
  assert not list(tmp_path.iterdir())


def test_copies_have_no_executor(tmp_path: pathlib.Path) -> None:
  game = spiel_cfr.shard(_game(), Here(), tmp_path, 2)
  assert isinstance(game.partition, ShardedPartition)
  again = pickle.loads(pickle.dumps(game))
  assert not isinstance(again.partition, ShardedPartition)
  solver = _solved(game, iterations=7)
  copied = pickle.loads(pickle.dumps(solver))
  for each in (solver, copied):
    each.run(5)
    assert _alike(each, _solved(_game()))


class _Kept(RegretMatching):
  """A minimizer that can't be pickled."""

  def __reduce__(self) -> Any:
    raise TypeError("no")


def test_refusals(tmp_path: pathlib.Path) -> None:
  with pytest.raises(errors.UnsupportedGameError, match="partitioned=True"):
    spiel_cfr.shard(spiel_cfr.compile_game("kuhn_poker"), Here(), tmp_path)
  with pytest.raises(errors.ArgumentError, match="compiled"):
    spiel_cfr.shard("leduc_poker", Here(), tmp_path)  # type: ignore[arg-type]
  with pytest.raises(errors.ArgumentError, match="Executor"):
    spiel_cfr.shard(_game(), 2, tmp_path)  # type: ignore[arg-type]
  with pytest.raises(errors.ArgumentError, match="num_shards"):
    spiel_cfr.shard(_game(), Here(), tmp_path, 0)
  game = spiel_cfr.shard(_game(), Here(), tmp_path)
  with pytest.raises(errors.ShardError, match="_Kept can't be pickled"):
    spiel_cfr.Solver(game, _Kept.plus())


def test_other_files_are_refused(tmp_path: pathlib.Path) -> None:
  game = spiel_cfr.shard(_game(), Here(), tmp_path, 2)
  solver = spiel_cfr.CFRPlusSolver(game)
  path = next(tmp_path.glob("arrays-*"))
  path.unlink()
  path.write_bytes(bytes(100))
  with pytest.raises(errors.ShardError, match="DamagedFileError"):
    solver.run(12)
