"""Vector form equals the list of leaves, and games of another kind are refused by name."""

import copy
import functools
import multiprocessing
import os
import pickle
import signal
import threading
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
import typed_games
from rotation import rotated

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr.games import compile_vector_game
from spiel_cfr.games.compiled import enumerated_game
from spiel_cfr.games.vector import deals, vector_game, walk_in_processes

_SMALL_POKER = (
  "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 2,firstPlayer=1 1,numSuits=1,"
  "numRanks=4,numHoleCards=1,numBoardCards=0 1,raiseSize=2 2,maxRaises=1 1)"
)
_GAMES = {
  "Kuhn": "kuhn_poker",
  "Leduc": "leduc_poker",
  "small poker": _SMALL_POKER,
  "dice": "liars_dice(dice_sides=4)",
  "two dice": "liars_dice(numdice=2,dice_sides=2)",
  # Not zero-sum.
  "bridge": "tiny_bridge_2p",
}
# After how many iterations they are compared. In DCFR and PCFR+ rounding grows where two actions are almost as good:
# after a hundred iterations, any two forms of Leduc poker are 1e-5 apart in DCFR.
_SOLVERS = {
  "CFR": (spiel_cfr.CFRSolver, (1, 10, 100)),
  "CFR+": (spiel_cfr.CFRPlusSolver, (1, 10, 100)),
  "DCFR": (spiel_cfr.DCFRSolver, (1, 10, 25)),
  "PCFR+": (spiel_cfr.PCFRPlusSolver, (1, 10, 25)),
}


@functools.cache
def _listed(game: str) -> Any:
  return spiel_cfr.compile_game(game, vector_form=False)


@functools.cache
def _vector(game: str) -> Any:
  return compile_vector_game(game)


def _assert_same_infosets(vector: Any, listed: Any) -> None:
  """Asserts that two forms have the same infosets and actions, in the same order, and the same facts."""
  assert vector.infostates == listed.infostates
  for name in ("actions", "num_actions"):
    for ours, theirs in zip(getattr(vector, name), getattr(listed, name), strict=True):
      np.testing.assert_array_equal(ours, theirs)
  assert vector.payoff_range == listed.payoff_range
  assert vector.constant_sum == pytest.approx(listed.constant_sum)


def _assert_same_iterates(
  vector: Any, listed: Any, solver: Any, iterations: Any, tolerance: float = 1e-9
) -> None:
  """Asserts that a solver comes to the same averages in sequence form, and to the same NashConv."""
  ours, theirs = solver(vector), solver(listed)
  for iteration in iterations:
    ours.run(iteration - ours.iteration)
    theirs.run(iteration - theirs.iteration)
    # In sequence form, because where a player hardly ever plays to, rounding decides.
    found, expected = (
      game.to_actions(each.average_sequence_form())
      for game, each in ((vector, ours), (listed, theirs))
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    assert ours.nash_conv() == pytest.approx(theirs.nash_conv(), abs=100 * tolerance)


@pytest.mark.parametrize("game", _GAMES.values(), ids=_GAMES)
def test_infosets_are_those_of_the_list_in_the_same_order(game):
  _assert_same_infosets(_vector(game), _listed(game))


@rotated("game,solver,iterations,partitioned", _GAMES, _SOLVERS, [False, True])
def test_iterates_are_those_of_the_list(game, solver, iterations, partitioned):
  vector = _vector(game)
  if partitioned and vector.num_infosets < 100:
    return
  vector = compile_vector_game(vector, partitioned=partitioned)
  # Suits don't matter in Leduc poker, and rounding decides between them.
  tolerance = 1e-8 if game == "leduc_poker" else 1e-9
  _assert_same_iterates(vector, _listed(game), solver, iterations, tolerance)


@rotated("game,partitioned", _GAMES, [False, True])
def test_single_precision(game, partitioned):
  """float32 rounds to 6e-8, and regrets are sums of differences: an error of 1e-4 after 10 iterations."""
  vector = _vector(game)
  if partitioned and vector.num_infosets < 100:
    return
  vector = compile_vector_game(vector, partitioned=partitioned, dtype=np.float32)
  assert vector.dtype == np.float32
  _assert_same_iterates(vector, _listed(game), spiel_cfr.CFRPlusSolver, (1, 10), 1e-4)


def test_memory_of_restarts():
  """Nine numbers a sequence, another for strategies that are looked at, and what in larger games is less."""
  game = compile_vector_game("liars_dice(dice_sides=6)", dtype="float32", partitioned=True)

  def solve() -> Any:
    solver = spiel_cfr.Restarted(spiel_cfr.DCFRSolver(game), first_attempt=20)
    solver.prepare()
    solver.run(40)
    assert solver.num_attempts and solver.average_sequence_form().dtype == np.float32
    return solver

  solve()
  tracemalloc.start()
  try:
    solver = solve()
    peak = tracemalloc.get_traced_memory()[1]
  finally:
    tracemalloc.stop()
  assert peak < 20 * solver.state.best.nbytes
  # Nor does it need what is above each infoset in the numbering of the whole game.
  assert not any("parent" in vars(tree) for tree in game.treeplexes)


@rotated("game,dtype", [*_GAMES.values()][1:], ["float64", "float32"])
def test_threads_don_t_matter(game, dtype):
  states = []
  for num_threads in (1, 2):
    compiled = compile_vector_game(
      _vector(game), partitioned=True, dtype=dtype, num_threads=num_threads
    )
    solver = spiel_cfr.PCFRPlusSolver(compiled)
    # Interrupted, so that workspaces are new ones in between.
    for iterations in (5, 8) if num_threads == 1 else (13,):
      solver.run(iterations)
    states.append(solver.state_dict())
  for name, value in states[0].items():
    assert np.asarray(value).tobytes() == np.asarray(states[1][name]).tobytes(), name


@pytest.mark.parametrize("game", ["leduc_poker", "liars_dice(dice_sides=4)"])
def test_processes_don_t_matter(game):
  for num_processes in (2, 3):
    assert compile_vector_game(game, num_processes=num_processes).digest == _vector(game).digest


# Random games.


def _random_game(seed: int, flaw: str = "") -> typed_games.TypedGame:
  return typed_games.TypedGame(seed, flaw, max_depth=3 + seed % 4, zero_sum=seed % 3 > 0)


_SEEDS = [pytest.param(seed, marks=pytest.mark.slow if seed % 10 else ()) for seed in range(60)]


@pytest.mark.quick("0", "20", "30")
@pytest.mark.parametrize("seed", _SEEDS)
def test_random_games(seed):
  game = _random_game(seed)
  listed = spiel_cfr.compile_game(game, vector_form=False)
  vector = spiel_cfr.compile_game(game, vector_form=True)
  assert isinstance(vector, vector_game.VectorGame)
  assert compile_vector_game(game, num_processes=1 + seed % 3).digest == vector.digest
  _assert_same_infosets(vector, listed)
  solver, iterations = [*_SOLVERS.values()][seed // 10 % 4]
  _assert_same_iterates(vector, listed, solver, iterations)
  try:
    parts = compile_vector_game(vector, partitioned=True, num_threads=1 + seed % 2)
  except errors.ArgumentError as error:
    assert "no subtrees" in str(error)
  else:
    _assert_same_iterates(parts, listed, solver, iterations[:2])


def test_random_games_are_odd():
  """They have what `typed_games` says, so that what is compared above is not all the same."""
  games = [_random_game(seed) for seed in range(30)]
  assert len({len(game.deals) for game in games}) > 10
  assert any(weight == 0 for game in games for *_, weight in game.deals)
  assert any(len({deal[:2] for deal in game.deals}) < len(game.deals) for game in games)
  compiled = [compile_vector_game(game) for game in games[:10]]
  assert any((game.tree.weights == deals.RULED_OUT).any() for game in compiled)
  assert any((game.tree.weights[1:] == 0).any() for game in compiled)
  assert any((game.tree.player[1:] < 0).any() for game in compiled)
  assert any((game.tree.num_actions == 1).any() for game in compiled)
  assert {game.constant_sum for game in compiled} == {0.0, None}


_FLAWS = [
  pytest.param(seed, flaw, marks=pytest.mark.slow if seed else ())
  for flaw in typed_games.FLAWS
  for seed in range(10)
]


@pytest.mark.parametrize(("seed", "flaw"), _FLAWS)
def test_games_that_almost_are(seed, flaw, monkeypatch):
  monkeypatch.setattr(vector_game, "WORTHWHILE", 0)
  game = _random_game(seed, flaw)
  with pytest.raises(
    errors.UnsupportedGameError, match=r"after the history \[\d.*vector_form=False"
  ):
    spiel_cfr.compile_game(game, vector_form=True)
  found = spiel_cfr.compile_game(game)
  assert isinstance(found, enumerated_game.EnumeratedGame)
  assert found.digest == spiel_cfr.compile_game(game, vector_form=False).digest


def test_small_games_are_tried_where_that_pays(monkeypatch):
  assert not isinstance(spiel_cfr.compile_game(_random_game(0)), vector_game.VectorGame)
  monkeypatch.setattr(vector_game, "WORTHWHILE", 0)
  assert isinstance(spiel_cfr.compile_game(_random_game(0)), vector_game.VectorGame)


# Games that break their word.


class _Broken(typed_games.TypedGame):
  """A random game whose states do something else, in the way of a function that is given them and a method's name."""

  def __init__(self, seed: int, broken: Any) -> None:
    super().__init__(seed, max_depth=5)
    self.broken = broken

  def new_initial_state(self) -> Any:
    return _BrokenState(self)


class _BrokenState(typed_games.TypedState):
  def _answer(self, name: str, *arguments: Any) -> Any:
    answer = getattr(super(), name)(*arguments)
    return (
      self._game.broken[name](self, answer)
      if name in self._game.broken and self._is_broken()
      else answer
    )

  def _is_broken(self) -> bool:
    # Deep enough for the trial games of `load_game` to miss it, most of the time.
    return not self._dealing and len(self._moves) > 1 and self._deal[0] == 0

  def legal_actions(self, player: Any = None) -> Any:
    return self._answer("legal_actions", player)

  def chance_outcomes(self) -> Any:
    return self._answer("chance_outcomes")

  def returns(self) -> Any:
    return self._answer("returns")

  def information_state_string(self, player: Any = None) -> Any:
    return self._answer("information_state_string", player)


class _Alike(_Broken):
  """A random game where deals of the same types are alike, unless the second of them is broken."""

  def __init__(self, seed: int, broken: Any) -> None:
    super().__init__(seed, broken)
    self.deals = [(*deal[:2], deal[2] / 2) for deal in self.deals for _ in range(2)]

    def make_alike(node: Any) -> None:
      node.chances = [node.chances[0] for _ in self.deals] if node.chances else []
      for child in node.children:
        make_alike(child)

    make_alike(self.root)

  def new_initial_state(self) -> Any:
    return _AlikeState(self)


class _AlikeState(_BrokenState):
  def _is_broken(self) -> bool:
    return not self._dealing and len(self._moves) > 2 and self._left[0] % 2 == 1

  def _payoff_key(self) -> Any:
    return self._deal[:2], self._moves


def _fail(state: Any, answer: Any) -> Any:
  raise LookupError("no such card")


@pytest.mark.parametrize(
  ("method", "broken", "error", "message"),
  [
    ("information_state_string", _fail, errors.UnsupportedGameError, r"history \[\d.*no such card"),
    ("returns", _fail, errors.UnsupportedGameError, r"history \[\d.*no such card"),
    ("returns", lambda _, was: [np.nan, 0.0], errors.InvalidPayoffError, r"history \[\d.*nan"),
    ("returns", lambda _, was: [1.0, 2.0, 3.0], errors.SpielCFRError, r"history \[\d"),
    ("returns", lambda _, was: "many", errors.SpielCFRError, r"history \[\d"),
    ("chance_outcomes", lambda _, was: was + was, errors.GameError, r"history \[\d.*sum to 2"),
    (
      "chance_outcomes",
      lambda _, was: [(a, p / 2) for a, p in was + was],
      errors.UnsupportedGameError,
      r"twice after the history \[\d",
    ),
  ],
)
def test_faults_of_games_are_named(method, broken, error, message):
  # Seed 1 has chance deep down.
  with pytest.raises(error, match=message):
    compile_vector_game(_Broken(1, {method: broken}))


def test_the_other_player_s_infostate_may_be_unknown():
  def infostate(state, player):
    if player != state.current_player():
      raise ValueError("not your turn")
    return str(state)

  with pytest.raises(errors.UnsupportedGameError, match=r"history \[.*not your turn"):
    compile_vector_game("kuhn_poker", infostate=infostate)


class _Endless(typed_games.TypedGame):
  def new_initial_state(self) -> Any:
    return _EndlessState(self)


class _EndlessState(typed_games.TypedState):
  def _apply_action(self, action: int) -> None:
    if self._dealing:
      super()._apply_action(action)
    else:
      self._seen = [f"{seen}{action}, " for seen in self._seen]


def test_games_without_end():
  """Games without end are refused instead of walked for ever."""
  view = spiel_cfr.games.openspiel.game_view.GameView(_Endless(0))
  dealt, states = deals.find_deals(view)
  with pytest.raises(errors.UnsupportedGameError, match="more than 1,000 moves"):
    deals.try_out(view, dealt, states)
  with pytest.raises(errors.UnsupportedGameError, match="more than 1,000 moves"):
    deals.count_nodes(view, states[0], 10**6)


def test_indistinguishable_deals_are_compared(monkeypatch):
  """Large games walk one deal of each pair of types; random histories find differences of the others."""
  dice = compile_vector_game("liars_dice(numdice=2,dice_sides=2)")
  monkeypatch.setattr(vector_game, "MOST_STATES", 0)
  fewer = compile_vector_game("liars_dice(numdice=2,dice_sides=2)")
  assert (fewer.tree.weights < 0).any()
  assert not (dice.tree.weights < 0).any()
  _assert_same_infosets(fewer, dice)
  _assert_same_iterates(fewer, dice, spiel_cfr.CFRPlusSolver, (10,))
  # In random games payoffs depend on the deal.
  with pytest.raises(errors.UnsupportedGameError, match=r"differ.* after the history \[\d"):
    compile_vector_game(_random_game(1))


@pytest.mark.parametrize("method", ["returns", "chance_outcomes", "legal_actions"])
def test_the_walk_compares_deals_too(method, monkeypatch):
  """Rare flaws that random histories miss are found by one more deal in each subtree."""
  spoil = {
    "returns": lambda state, was: [was[0] + 1, was[1] - 1],
    "chance_outcomes": lambda state, was: [(a, 0.25 + k / 2) for k, (a, _) in enumerate(was)],
    "legal_actions": lambda state, was: was[:-1] if len(was) > 1 else was,
  }[method]
  monkeypatch.setattr(vector_game, "MOST_STATES", 0)
  monkeypatch.setattr(vector_game, "compare_alike", lambda *_: None)
  alike, spoiled = _Alike(1, {}), _Alike(1, {method: spoil})
  assert (compile_vector_game(alike).tree.weights < 0).any()
  with pytest.raises(errors.UnsupportedGameError, match=r"differ|depend"):
    compile_vector_game(spoiled)


# Files, copies, processes, limits.


def test_save_and_load(tmp_path):
  for partitioned in (False, True):
    compiled = compile_vector_game(_vector("leduc_poker"), partitioned=partitioned)
    compiled.save(tmp_path / "game.npz")
    loaded = spiel_cfr.load_compiled_game(tmp_path / "game.npz")
    assert loaded.digest == _vector("leduc_poker").digest
    again = compile_vector_game(loaded, partitioned=partitioned)
    assert again.digest == compiled.digest
    assert again.infostates == compiled.infostates
    _assert_same_iterates(again, compiled, spiel_cfr.CFRPlusSolver, (5,), 0.0)


def test_names_of_one_s_own_are_not_in_files(tmp_path):
  compiled = compile_vector_game("leduc_poker", infostate="history")
  with pytest.raises(errors.UnsupportedGameError, match="vector_form=False"):
    compiled.save(tmp_path / "game.npz")


def _forge(path: Any, changes: Any) -> None:
  header, arrays = files.read(path, enumerated_game.KIND, enumerated_game.FORMAT)
  changes(header, arrays)
  files.write(path, header.pop("kind"), header.pop("format"), header, arrays)


def _set(name: str, place: Any, value: Any) -> Any:
  def change(header: Any, arrays: Any) -> None:
    arrays[name][place] = value

  return change


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    (_set("child", 0, 0), "one edge above"),
    (_set("child", 0, 10**6), "one edge above"),
    (_set("child", -1, -(10**6)), "one edge above"),
    (_set("kind", 1, 99), "kinds are there"),
    (_set("matrix", 0, -1), "matrices are there"),
    (_set("matrices", (0, 0, 0), np.nan), "finite"),
    (_set("weights", (0, 0), np.nan), "finite"),
    (_set("weights", (0, 0), 2.0), "probabilities"),
    (_set("weights", (0, 0), -0.5), "probabilities"),
    (_set("weights", (0, slice(None)), deals.RULED_OUT), "possible"),
    (_set("player", 0, 2), "players"),
    (_set("action", 0, 10**6), "actions"),
    (_set("action", 0, -1), "actions"),
    (_set("action", slice(0, 2), 1), "different actions"),
    (_set("first_edge", 1, 0), "edges"),
    (_set("deals.types", (0, 0), 7), "types are numbered"),
    (_set("deals.paths", (0, 0), -2), "moves of chance"),
    (lambda header, arrays: arrays.update(child=arrays["child"][:-1]), "shape|edge"),
    (lambda header, arrays: arrays.update(weights=arrays["weights"].T.copy()), "weights"),
    (lambda header, arrays: arrays.pop("matrix"), "matrix"),
    (lambda header, arrays: header.update(game_string=3), "game"),
  ],
)
def test_forged_files(changes, message, tmp_path):
  path = tmp_path / "game.npz"
  _vector("liars_dice(dice_sides=4)").save(path)
  _forge(path, changes)
  with pytest.raises(errors.FileFormatError, match=message):
    spiel_cfr.load_compiled_game(path)


def test_nodes_in_a_circle(tmp_path):
  def change(header: Any, arrays: Any) -> None:
    """Makes two nodes each other's children."""
    child, first = arrays["child"], arrays["first_edge"]
    below = int(child[0])
    edge = next(k for k in range(first[below], first[below + 1]) if child[k] >= 0)
    child[0], child[edge] = child[edge], child[0]

  path = tmp_path / "game.npz"
  _vector("liars_dice(dice_sides=4)").save(path)
  _forge(path, change)
  with pytest.raises(errors.FileFormatError, match="below the root"):
    spiel_cfr.load_compiled_game(path)


@pytest.mark.parametrize("other", ["kuhn_poker()", "liars_dice(dice_sides=5)", "tic_tac_toe()"])
def test_a_tree_of_another_game(other, tmp_path):
  path = tmp_path / "game.npz"
  _vector("liars_dice(dice_sides=4)").save(path)
  _forge(path, lambda header, arrays: header.update(game_string=other))
  loaded = spiel_cfr.load_compiled_game(path)
  solver = spiel_cfr.CFRPlusSolver(loaded)
  solver.run(3)
  with pytest.raises(errors.FileFormatError, match="file or pickle is of"):
    solver.average_policy()


@pytest.mark.parametrize(
  "options", [{}, {"partitioned": True, "num_threads": 2, "dtype": "float32"}]
)
def test_copies(options):
  compiled = compile_vector_game(_vector("leduc_poker"), **options)
  assert copy.copy(compiled) is copy.deepcopy(compiled) is compiled
  twin = pickle.loads(pickle.dumps(compiled))
  assert (twin.digest, twin.dtype, twin.num_threads) == (
    compiled.digest,
    compiled.dtype,
    compiled.num_threads,
  )
  _assert_same_iterates(twin, compiled, spiel_cfr.CFRPlusSolver, (5,), 0.0)
  state = compiled.game.new_initial_state().child(0).child(3).child(1)
  assert twin.view.look_up(state) == compiled.view.look_up(state)


def test_games_that_stay_behind():
  game = _random_game(3)
  compiled = compile_vector_game(game)
  twin = pickle.loads(pickle.dumps(compiled))
  assert twin.digest == compiled.digest
  with pytest.raises(errors.NoStatesError):
    twin.view  # noqa: B018


def _slowly(monkeypatch: Any, during: Any) -> None:
  """Makes processes that walk a game do something at their first task."""

  def walk_pieces(*arguments: Any) -> Any:
    during()
    raise AssertionError

  monkeypatch.setattr(walk_in_processes, "walk_pieces", walk_pieces)


def test_ctrl_c_ends_all_processes(monkeypatch):
  _slowly(monkeypatch, lambda: threading.Event().wait(60))
  timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
  timer.start()
  with pytest.raises(KeyboardInterrupt):
    compile_vector_game("leduc_poker", num_processes=2)
  timer.join()
  assert not multiprocessing.active_children()


def test_a_process_that_dies_is_named(monkeypatch):
  _slowly(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGKILL))
  with pytest.raises(errors.GameError, match="num_processes=1"):
    compile_vector_game("leduc_poker", num_processes=2)
  assert not multiprocessing.active_children()


def test_trees_that_are_certainly_too_large_are_refused_soon():
  start = time.perf_counter()
  with pytest.raises(errors.GameTooLargeError, match="far too large"):
    compile_vector_game("nim", max_nodes=1_000_000)
  assert time.perf_counter() - start < 15.0


def test_more_processes_than_files_may_be_open_are_refused():
  with pytest.raises(errors.ArgumentError, match="num_processes must be an integer from 1 to 256"):
    compile_vector_game("kuhn_poker", num_processes=10**6)


@pytest.mark.parametrize("num_processes", [1, 2])
def test_limits(num_processes, monkeypatch):
  with pytest.raises(errors.GameTooLargeError, match="max_nodes=100"):
    compile_vector_game("leduc_poker", max_nodes=100, num_processes=num_processes)
  used = iter(range(0, 10**12, 10**9))
  monkeypatch.setattr(walk_in_processes.memory, "resident_bytes", lambda: next(used))
  with pytest.raises(errors.GameTooLargeError, match="max_bytes=1,000"):
    compile_vector_game("leduc_poker", max_bytes=1000, num_processes=num_processes)
  assert not multiprocessing.active_children()


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"num_processes": 0}, "num_processes"),
    ({"num_threads": 2, "partitioned": False}, "partitioned=True"),
    ({"dtype": "int8"}, "dtype"),
    ({"max_nodes": 0}, "max_nodes"),
    ({"max_bytes": "much"}, "max_bytes"),
  ],
)
def test_bad_arguments(options, message):
  with pytest.raises(errors.ArgumentError, match=message):
    compile_vector_game("kuhn_poker", **options)


@pytest.mark.parametrize("game", ["kuhn_poker(players=3)", "matrix_rps"])
def test_other_games_are_named(game):
  with pytest.raises(errors.UnsupportedGameError, match="private types"):
    compile_vector_game(game)


@pytest.mark.parametrize(
  "options",
  [{}, {"partitioned": True, "num_threads": 2}, {"partitioned": True, "dtype": "float32"}],
)
@pytest.mark.parametrize("game", ["leduc_poker", "liars_dice(dice_sides=4)"])
def test_locked_infosets(game, options):
  """Locking in vector form equals locking in the list of leaves."""
  solvers = []
  for compiled in (compile_vector_game(_vector(game), **options), _listed(game)):
    solver = spiel_cfr.CFRPlusSolver(compiled)
    uniform = {name: {} for name in compiled.infostates[0][:40]}
    solver.lock(solver.average_policy_dict(), uniform)
    solver.run(20)
    solvers.append(solver)
  ours, theirs = solvers
  found, expected = ours.average_policy_dict(), theirs.average_policy_dict()
  for name in _listed(game).infostates[0][:40]:
    assert found[name] == pytest.approx(expected[name], abs=1e-6)
  assert ours.nash_conv() == pytest.approx(theirs.nash_conv(), abs=1e-3)


def test_more_types_than_a_pattern_has_columns():
  """Rows of 18 types meet patterns of 16 and of 2, and the kernel adds as many columns of each."""
  game = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,numSuits=2,numRanks=9,"
    "numHoleCards=1,numBoardCards=0 1,raiseSize=2 4,maxRaises=1 1)"
  )
  hands = spiel_cfr.CFRPlusSolver(spiel_cfr.poker.compile_public_game(game))
  for dtype in ("float64", "float32"):
    compiled = compile_vector_game(game, dtype=dtype)
    assert compiled.tree.deals.num_types == (18, 18)
    solver = spiel_cfr.CFRPlusSolver(compiled)
    for each in (hands, solver):
      each.reset()
      each.run(2)
    assert solver.nash_conv() == pytest.approx(
      hands.nash_conv(), rel=1e-9 if dtype == "float64" else 1e-5
    )
