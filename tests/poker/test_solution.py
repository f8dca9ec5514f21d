"""Files of solutions: what is saved comes back, without compiling, and nothing else is read."""

import numpy as np
import poker_games
import pytest

import spiel_cfr
from spiel_cfr import errors, poker
from spiel_cfr._util import files
from spiel_cfr.explorer import hand_report
from spiel_cfr.poker import public_game, solution

_THREE_ROUNDS = (
  "universal_poker(numPlayers=2,numSuits=2,betting=limit,numRounds=3,blind=1 2,firstPlayer=1 1 1,"
  "numRanks=4,numHoleCards=1,numBoardCards=0 1 1,raiseSize=2 2 2,maxRaises=1 1 1)"
)


def _turn(**options):
  endgame = poker_games.random_endgame(22, 6, poker_games.TURN, pot=200, stack=500)
  return poker.compile_public_game(endgame, poker.bet_sizes("50%, a", "a"), **options)


GAMES = {
  "three rounds": lambda: poker.compile_public_game(_THREE_ROUNDS),
  "merged suits": lambda: poker.compile_public_game(_THREE_ROUNDS, merge_suits=True),
  "rake": lambda: poker.compile_public_game(_THREE_ROUNDS, rake=poker.Rake(0.1, cap=1)),
  "in parts, float32": lambda: _turn(partitioned=True, dtype="float32"),
}


@pytest.mark.parametrize("name", GAMES)
def test_what_is_saved_comes_back(name, tmp_path, monkeypatch):
  game = GAMES[name]()
  solver = spiel_cfr.DCFRSolver(game)
  solver.run(20)
  saved = poker.save_solution(solver, tmp_path / "a.solution")
  for walk in ("walk_betting_tree", "check_random_deals", "list_boards"):
    monkeypatch.setattr(public_game, walk, None)
  found = poker.load_solution(tmp_path / "a.solution")
  again = found.compiled_game
  # The whole game, which names the infosets of a game with merged suits, is not saved.
  assert (again.digest == game.digest) == (game.original is game)
  assert (again.dtype, again.num_threads) == (game.dtype, game.num_threads)
  assert found.source == saved.source == "average policy of DCFRSolver after 20 iterations"
  np.testing.assert_array_equal(found.values.probabilities, saved.values.probabilities)
  # Values at chance nodes are float32.
  np.testing.assert_allclose(found.expected_values, saved.expected_values, rtol=1e-5)
  np.testing.assert_allclose(found.best_response_values, saved.best_response_values, rtol=1e-5)
  assert found.nash_conv == pytest.approx(solver.nash_conv(), rel=2e-3)
  # It is a policy, and the game is one to go on with.
  assert spiel_cfr.nash_conv(again, found) == pytest.approx(saved.nash_conv, rel=1e-6)
  found.save(tmp_path / "b.solution")
  assert (tmp_path / "b.solution").read_bytes() == (tmp_path / "a.solution").read_bytes()
  if game.original is not game:
    return
  assert spiel_cfr.nash_conv(game, found) == pytest.approx(saved.nash_conv, rel=1e-6)
  assert spiel_cfr.nash_conv(again, solver) == pytest.approx(solver.nash_conv(), rel=1e-6)
  solver.save(tmp_path / "a.checkpoint")
  other = spiel_cfr.DCFRSolver(again)
  other.restore(tmp_path / "a.checkpoint")
  for each in (solver, other):
    each.run(3)
  np.testing.assert_array_equal(other.average_sequence_form(), solver.average_sequence_form())


def test_a_loaded_game_keeps_the_actions(tmp_path):
  solver = spiel_cfr.DCFRSolver(_turn())
  solver.run(1)
  poker.save_solution(solver, tmp_path / "a.solution")
  view, kept = (
    each.view
    for each in (
      solver.compiled_game,
      poker.load_solution(tmp_path / "a.solution").compiled_game,
    )
  )
  tree, rng = solver.compiled_game.tree, np.random.default_rng(1)
  hands = [tree.deal.hands[own] for own in tree.boards[0].hands]
  first = hands[0][0]
  second = next(hand for hand in hands[1] if not set(hand) & set(first))
  for _ in range(20):
    state = view.new_initial_state()
    for action in tree.deal.actions(first, second):
      state.apply_action(action)
    while not state.is_terminal():
      actions = state.legal_actions()
      if not state.is_chance_node():
        actions = view.legal_actions(state)
        assert kept.legal_actions(state) == actions
      state.apply_action(int(rng.choice(actions)))


@pytest.fixture
def saved(tmp_path):
  """The path of a solution of one iteration, and its solver."""
  path = tmp_path / "a.solution"
  solver = spiel_cfr.DCFRSolver(GAMES["three rounds"]())
  solver.run(1)
  poker.save_solution(solver, path)
  return path, solver


def _contents(path):
  header, arrays = files.read(path, solution.KIND, solution.FORMAT)
  return {name: header[name] for name in header if name not in ("kind", "format")}, arrays


def test_files_that_are_no_solutions(saved):
  path, solver = saved
  whole = path.read_bytes()
  path.write_bytes(whole[:-100])
  with pytest.raises(errors.DamagedFileError):
    poker.load_solution(path)
  solver.save(path)
  with pytest.raises(errors.FileFormatError, match="checkpoint"):
    poker.load_solution(path)


_FORGERIES = {
  "missing": None,
  "cut": lambda array: array[:-1],
  "not finite": lambda array: array.astype(np.float32) + np.nan,
  "other numbers": lambda array: array.ravel()[::-1] + 77,
}


@pytest.mark.quick("other numbers")
@pytest.mark.parametrize("forgery", _FORGERIES)
def test_forged_arrays_are_refused(forgery, saved):
  path, _ = saved
  header, arrays = _contents(path)
  forge = _FORGERIES[forgery]
  for name, array in arrays.items():
    changed = {key: value for key, value in arrays.items() if key != name}
    if forge is not None:
      changed[name] = np.ascontiguousarray(forge(array))
    files.write(path, solution.KIND, solution.FORMAT, header, changed)
    try:
      found = poker.load_solution(path)
    except errors.FileFormatError:
      continue
    # Other numbers of the right kind: nothing but other values.
    assert name in ("probabilities", "board.probability", "board.copies", "board.strengths") or (
      name.endswith(("wins", "values"))
    ), name
    found.expected_values  # noqa: B018


def test_forged_headers_are_refused(saved):
  path, _ = saved
  header, arrays = _contents(path)
  for name in header:
    files.write(path, solution.KIND, solution.FORMAT, header | {name: [1]}, arrays)
    if name not in ("source", "versions"):
      with pytest.raises(errors.FileFormatError):
        poker.load_solution(path)


def test_only_poker_in_vector_form(tmp_path):
  with pytest.raises(errors.UnsupportedGameError, match="compile_public_game"):
    poker.save_solution(spiel_cfr.CFRSolver("kuhn_poker"), tmp_path / "a")
  with pytest.raises(errors.ArgumentError, match="solver must be"):
    poker.save_solution({}, tmp_path / "a")
  assert not list(tmp_path.iterdir())


def test_report():
  solver = spiel_cfr.DCFRSolver(_turn())
  solver.run(30)
  found = poker.PokerSolution.of(solver)
  oop, ip = hand_report(found), hand_report(found, [1])
  assert (oop.player, ip.player, oop.board) == ("OOP", "IP", "9h9c7sTc")
  assert oop.actions == ["Check", "Bet 100 (half the pot)", "All-in 400"]
  whole = oop.classes[0]
  assert (whole.kind, whole.name) == ("range", "all")
  # The EVs of both players add up to the pot.
  assert whole.ev == pytest.approx(found.expected_values[0] + 100, abs=1e-9)
  assert whole.combos == pytest.approx(found.values.tree.boards[0].reaches[0].sum())
  for report in (oop, ip):
    for kind in ("made hand", "ranks"):
      classes = [each for each in report.classes if each.kind == kind]
      assert sum(each.combos for each in classes) == pytest.approx(report.classes[0].combos)
    for line in report.classes:
      assert line.frequencies.sum() == pytest.approx(1, abs=1e-9)
      assert 0 <= line.equity <= 1
    assert len(str(report).splitlines()) == 1 + len(report.classes)
  # A fold wins nothing, and an all-in is called or folded.
  after = hand_report(found, [1, 500])
  assert after.player == "OOP"
  assert after.actions == ["Fold", "Call 400"]
  for moves in ([7], [1, 1], [1, 500, 0]):
    with pytest.raises(errors.ArgumentError):
      hand_report(found, moves)
