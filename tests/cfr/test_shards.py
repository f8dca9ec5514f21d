"""Shards: the same bytes as in one process, for any number of processes, also if some are killed."""

import concurrent.futures
import contextlib
import functools
import pathlib
import pickle
from typing import Any

import poker_games
import pytest
from executors import Here

import spiel_cfr
from spiel_cfr import RegretMatching, errors
from spiel_cfr._numba.steps import Chain
from spiel_cfr.cfr.loops import sharded_subtrees
from spiel_cfr.cfr.loops.partitioned_loop import PartitionedLoop

_SOLVERS: dict[str, Any] = {
  "cfr": spiel_cfr.CFRSolver,
  "cfr+": spiel_cfr.CFRPlusSolver,
  "dcfr": spiel_cfr.DCFRSolver,
  "simultaneous": lambda game: spiel_cfr.FullWidthSolver(
    game,
    RegretMatching.discounted(beta=0.5),
    alternating_updates=False,
    averaging=spiel_cfr.Averaging(counted="before"),
  ),
  "predictive": spiel_cfr.PCFRPlusSolver,
  # With numbers of each infoset.
  "adaptive": functools.partial(spiel_cfr.catalogue.make, "adaptive", iterations=12),
  "tapered": lambda game: spiel_cfr.FullWidthSolver(
    game, RegretMatching.plus(), averaging=spiel_cfr.Averaging(tapered=True)
  ),
}


@functools.cache
def _game(**options: Any) -> spiel_cfr.poker.PublicGame:
  return spiel_cfr.poker.compile_public_game(
    poker_games.UNIVERSAL_POKER[0], partitioned=True, **options
  )


@functools.cache
def _endgame(**options: Any) -> spiel_cfr.poker.PublicGame:
  """A game with an action filter and 48 subtrees."""
  endgame = poker_games.random_endgame(3, 12, poker_games.TURN)
  return spiel_cfr.poker.compile_public_game(
    endgame.load(), poker_games.check_or_pot, partitioned=True, **options
  )


@functools.cache
def _dice(**options: Any) -> spiel_cfr.games.VectorGame:
  """A game with forced moves, whose rows are shorter than vectors."""
  return spiel_cfr.games.compile_vector_game(
    "liars_dice(dice_sides=5)", partitioned=True, **options
  )


either = pytest.mark.parametrize("compiled", [_game, _dice])


@pytest.fixture(autouse=True)
def _few_between_barriers(monkeypatch: pytest.MonkeyPatch) -> None:
  """Seven updates are not a whole number of iterations."""
  monkeypatch.setattr(sharded_subtrees, "_BETWEEN_BARRIERS", 7)


def _arrays(solver: Any) -> dict[str, bytes]:
  names = ("strategy", "cumulative", "action_state", "infoset_state", "tapered", "counts")
  state = solver.complete_state()
  return {name: getattr(state, name).tobytes() for name in names}


def _alike(solver: Any, other: Any) -> bool:
  return _arrays(solver) == _arrays(other) and solver.nash_conv() == other.nash_conv()


def _solved(game: Any, make: Any = spiel_cfr.CFRPlusSolver, iterations: int = 12) -> Any:
  solver = make(game)
  solver.run(iterations)
  return solver


def _check_shards(
  expected: Any,
  plain: Any,
  num_shards: int,
  make: Any = spiel_cfr.CFRPlusSolver,
) -> None:
  """Checks 12 iterations."""
  game = spiel_cfr.games.shard(plain, Here(), num_shards)
  solver = _solved(game, make, 5)
  # A slice of its own, and single steps.
  solver.run(4)
  for _ in range(3):
    solver.evaluate_and_update_policy()
  assert _alike(solver, expected), num_shards


@pytest.mark.quick("cfr-_dice", "cfr+-_game", "adaptive-_game", "tapered-_dice")
@either
@pytest.mark.parametrize("name", _SOLVERS)
def test_as_in_one_process(name: str, compiled: Any) -> None:
  """Shards give the same bytes for one to three shards and for threads, also in single steps."""
  expected = _solved(compiled(), _SOLVERS[name])
  assert _alike(_solved(compiled(num_threads=2), _SOLVERS[name]), expected)
  for num_shards in (1, 2, 3, 100_000) if name == "cfr+" else (3,):
    _check_shards(expected, compiled(), num_shards, _SOLVERS[name])


def test_as_in_one_process_on_an_endgame() -> None:
  _check_shards(_solved(_endgame()), _endgame(), 3)


@pytest.mark.quick("_game")
@either
def test_single_precision(compiled: Any) -> None:
  game = compiled(dtype="float32")
  _check_shards(_solved(game), game, 2)


@pytest.mark.slow
def test_several_solvers_at_a_time() -> None:
  """A process keeps one solver at a time, and replaces it by another."""
  game = spiel_cfr.games.shard(_game(), Here(), 2)
  solvers = [make(game) for make in _SOLVERS.values()]
  for solver in solvers * 2:
    solver.run(6)
  for solver, make in zip(solvers, _SOLVERS.values(), strict=True):
    assert _alike(solver, _solved(_game(), make))


@either
def test_locked_infosets_keep_their_strategy(compiled: Any) -> None:
  solvers = [
    spiel_cfr.CFRPlusSolver(game)
    for game in (compiled(), spiel_cfr.games.shard(compiled(), Here(), 2))
  ]
  policy = _solved(compiled(), iterations=2).average_policy()
  infostates = compiled().infosets[0].infostates[::3]
  for solver in solvers:
    solver.lock(policy, infostates)
    solver.run(8)
  assert _alike(*solvers)
  assert _alike(
    *(
      spiel_cfr.FullWidthSolver(each.compiled_game, **each.constructor_arguments())
      for each in solvers
    )
  )


@either
def test_restarts_from_strategies(compiled: Any) -> None:
  """Shards continue from arrays changed in this process."""
  solvers = [
    _solved(game, iterations=5)
    for game in (compiled(), spiel_cfr.games.shard(compiled(), Here(), 2))
  ]
  for solver in solvers:
    solver.init_from_strategy(solver.average_sequence_form())
    solver.run(5)
  assert _alike(*solvers)


@pytest.mark.quick("_game")
@either
def test_checkpoints_are_of_either(compiled: Any, tmp_path: pathlib.Path) -> None:
  sharded = spiel_cfr.games.shard(compiled(), Here(), 2)
  assert sharded.digest == compiled().digest
  for first, second in ((sharded, compiled()), (compiled(), sharded)):
    _solved(first, iterations=7).save(tmp_path / "checkpoint.npz")
    again = spiel_cfr.CFRPlusSolver(second)
    again.restore(tmp_path / "checkpoint.npz")
    again.run(5)
    assert _alike(again, _solved(compiled()))


class _Torn(Here):
  """Calls that die in the middle of a subtree, at the second one of every third call, and are made again."""

  def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
    self.deaths = 0
    self._calls = 0
    self._left: int | None = None
    subtree = PartitionedLoop.subtree_chain

    def dying(loop: Any, *arguments: Any) -> Any:
      if self._left is not None:
        subtree(loop, *arguments).run()
        self._left -= 1
        if self._left == 0:
          raise SystemExit
        return Chain([])
      return subtree(loop, *arguments)

    monkeypatch.setattr(PartitionedLoop, "subtree_chain", dying)

  def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    self._calls += 1
    if self._calls % 3 == 0:
      self._left = 2
      with contextlib.suppress(SystemExit):
        super().submit(fn, *args, **kwargs)
      self.deaths += 1
    self._left = None
    return super().submit(fn, *args, **kwargs)


@pytest.mark.quick("adaptive")
@pytest.mark.parametrize("name", ["cfr+", "simultaneous", "adaptive"])
def test_begun_work_is_repeated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  expected = _solved(_game(), _SOLVERS[name])
  torn = _Torn(monkeypatch)
  monkeypatch.setattr(sharded_subtrees, "_BETWEEN_BARRIERS", 5)
  game = spiel_cfr.games.shard(_game(), torn, 2)
  assert _alike(_solved(game, _SOLVERS[name]), expected)
  assert torn.deaths >= 8


class _Forgetful(Here):
  """Calls every third of which meets a process that knows nothing, the first included."""

  calls = 0

  def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    if self.calls % 3 == 0:
      sharded_subtrees._SERVED.clear()
    self.calls += 1
    return super().submit(fn, *args, **kwargs)


@pytest.mark.parametrize(
  ("name", "barrier_every"),
  [
    pytest.param("cfr+", 1, marks=pytest.mark.slow),
    pytest.param("cfr+", 3, marks=pytest.mark.slow),
    ("simultaneous", 3),
    pytest.param("adaptive", 1000, marks=pytest.mark.slow),
    pytest.param("tapered", 1000, marks=pytest.mark.slow),
  ],
)
def test_processes_that_forget(
  name: str, barrier_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
  """A new process gets the last barrier and repeats the updates since."""
  monkeypatch.setattr(sharded_subtrees, "_BETWEEN_BARRIERS", barrier_every)
  executor = _Forgetful()
  game = spiel_cfr.games.shard(_game(), executor, num_shards=3)
  assert _alike(_solved(game, _SOLVERS[name]), _solved(_game(), _SOLVERS[name]))
  assert executor.calls > 60


def test_shards_are_sent_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
  """Living processes receive only reach probabilities, and send arrays only at barriers."""
  # How many visits, whether there is a barrier after them, and whether they are sent what they are to remember.
  orders: list[tuple[int, bool, bool]] = []

  class Noting(Here):
    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
      _, _, _, visits, barrier, arrays, source = args
      # A process that has never served the solver asks for the game first.
      if orders or source is not None:
        orders.append((len(visits), barrier, arrays is not None))
      return super().submit(fn, *args, **kwargs)

  monkeypatch.setattr(sharded_subtrees, "_BETWEEN_BARRIERS", 10)
  game = spiel_cfr.games.shard(_game(), Noting(), num_shards=1)
  solver = spiel_cfr.CFRPlusSolver(game)
  solver._advance(12)
  # Two updates an iteration.
  assert orders == [(1, number % 10 == 0, number == 1) for number in range(1, 25)]
  assert _alike(solver, _solved(_game()))
  assert orders[24:] == [(0, True, False)]
  # What has been looked at counts as changed; visits that the process has done are not done again.
  solver.run(1)
  assert orders[25:] == [(1, False, True), (1, False, False)]


@pytest.mark.quick("1")
@pytest.mark.parametrize("iterations", [1, 6])
def test_executors_that_fail_for_good(iterations: int) -> None:
  """This process finishes the current iterations; the solver can continue with another executor."""

  class Failing(Here):
    works = 11

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
      self.works -= 1
      future: concurrent.futures.Future[Any] = concurrent.futures.Future()
      if self.works > 0:
        return super().submit(fn, *args, **kwargs)
      if self.works == 0:
        future.set_exception(KeyboardInterrupt())
        return future
      raise RuntimeError("closed")

  executor = Failing()
  solver = spiel_cfr.CFRPlusSolver(spiel_cfr.games.shard(_game(), executor, 2))
  failures = 0
  while solver.iteration < 12:
    before = solver.iteration
    try:
      solver.run(min(iterations, 12 - before))
    except errors.ShardError as error:
      failures += 1
      assert "RuntimeError" in str(error) or "KeyboardInterrupt" in str(error)
    assert solver.iteration > before
    if failures == 2:
      # It works again.
      executor.works = 1000
  assert failures in (1, 2)
  assert _alike(solver, _solved(_game()))


@pytest.mark.slow
def test_looking_never_fails() -> None:
  """If processes cannot send their state, this process repeats their updates."""
  executor = _Forgetful()
  solver = _solved(spiel_cfr.games.shard(_game(), executor, num_shards=2), iterations=12)

  def closed(*_: Any) -> Any:
    raise RuntimeError("closed")

  executor.submit = closed  # type: ignore[method-assign]
  assert _alike(solver, _solved(_game()))


def test_barriers_that_fail_in_the_middle_of_a_run() -> None:
  """This process repeats the updates, and then continues."""

  class Keeping(Here):
    refused = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
      _, _, _, visits, barrier, _, _ = args
      if barrier and not visits:
        self.refused += 1
        raise RuntimeError("no")
      return super().submit(fn, *args, **kwargs)

  executor = Keeping()
  game = spiel_cfr.games.shard(_game(), executor, num_shards=2)
  solver = _SOLVERS["tapered"](game)
  solver._advance(12)
  assert executor.refused > 2
  solver._advance(1)
  expected = _solved(_game(), _SOLVERS["tapered"])
  expected._advance(1)
  assert _alike(solver, expected)


def test_a_process_keeps_one_solver() -> None:
  game = spiel_cfr.games.shard(_game(), Here(), num_shards=3)
  for _ in range(2):
    _solved(game, iterations=1)
    assert len(sharded_subtrees._SERVED) == 1


def test_copies_have_no_executor() -> None:
  game = spiel_cfr.games.shard(_game(), Here(), 2)
  again = pickle.loads(pickle.dumps(game))
  assert again.partition is not None
  assert again.partition.shards is None
  solver = _solved(game, iterations=7)
  copied = pickle.loads(pickle.dumps(solver))
  for each in (solver, copied):
    each.run(5)
    assert _alike(each, _solved(_game()))


class _Kept(RegretMatching):
  """A minimizer that can't be pickled."""

  def __reduce__(self) -> Any:
    raise TypeError("no")


def test_refusals() -> None:
  with pytest.raises(errors.UnsupportedGameError, match=r"kuhn_poker.*compile_vector_game"):
    spiel_cfr.games.shard(spiel_cfr.compile_game("kuhn_poker"), Here())
  with pytest.raises(errors.ArgumentError, match="CompiledGame"):
    spiel_cfr.games.shard("leduc_poker", Here())  # type: ignore[arg-type]
  with pytest.raises(errors.ArgumentError, match="num_shards"):
    spiel_cfr.games.shard(_game(), Here(), 0)
  with (
    concurrent.futures.ThreadPoolExecutor() as threads,
    pytest.raises(errors.ArgumentError, match="RayExecutor"),
  ):
    spiel_cfr.games.shard(_game(), threads)
  game = spiel_cfr.games.shard(_game(), Here())
  with pytest.raises(errors.ShardError, match="_Kept can't be pickled"):
    spiel_cfr.FullWidthSolver(game, _Kept.plus())
