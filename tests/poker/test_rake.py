"""Raked poker in vector form is the same general-sum game as a list of raked leaves."""

import copy
import functools
import pickle
import re

import numpy as np
import poker_games
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cfr
from spiel_cfr import errors, poker
from spiel_cfr.explorer import hand_pages
from spiel_cfr.games.compiled.from_arrays import game_from_arrays
from spiel_cfr.poker import ranges
from spiel_cfr.poker.hand_values import HandValues

_START = "universal_poker(numPlayers=2,"
_GAMES = {
  "one deal": poker_games.UNIVERSAL_POKER[0],
  # Two cards at once, one suit, stacks that differ: the rest of an all-in bet is not raked.
  "stacks that differ": poker_games.UNIVERSAL_POKER[1],
  "two hole cards": poker_games.UNIVERSAL_POKER[2],
  "Rhode Island": _START
  + "betting=limit,numRounds=3,blind=1 1,firstPlayer=1 1 1,numSuits=2,numRanks=3,"
  "numHoleCards=1,numBoardCards=0 1 1,raiseSize=2 4 4,maxRaises=1 1 1)",
}
# A part of the pot without a limit; a limit that large pots reach; nothing but the limit.
_RAKES = {
  "5 percent": poker.Rake(0.05),
  "5 percent, at most .3": poker.Rake(0.05, 0.3),
  "half a chip": poker.Rake(1.0, cap=0.5),
}


def _raked(state, rake):
  """Returns the payoffs of a terminal state, from the chips that OpenSpiel says were spent."""
  spent = [int(chips) for chips in re.findall(r"P\d: (\d+)", str(state).partition("Spent:")[2])]
  pot, gain = 2 * min(spent), state.returns()[0]
  folded = state.history()[-1] == 0
  dealt = any(move.player < 0 for move in state.full_history()[_hole_cards(state) :])
  paid = min(rake.rate * pot, rake.cap) if dealt or not folded else 0.0
  assert abs(gain) in (0, pot / 2)
  shares = {0: (paid / 2, paid / 2), 1: (paid, 0.0), -1: (0.0, paid)}[int(np.sign(gain))]
  return np.subtract((gain, -gain), shares)


def _hole_cards(state):
  return 2 * state.get_game().get_parameters()["numHoleCards"]


def _list_of_leaves(game, rake, name):
  """Returns the game with all leaves, listed by OpenSpiel's states; `name` gives the names of infosets."""
  numbers, parents, counts, firsts = [{}, {}], [[], []], [[], []], [[], []]
  leaves, payoffs = [], []

  def visit(state, above, chance):
    if state.is_terminal():
      leaves.append(above)
      payoffs.append(chance * _raked(state, rake))
    elif state.is_chance_node():
      for action, probability in state.chance_outcomes():
        visit(state.child(action), above, chance * probability)
    else:
      player, actions = state.current_player(), state.legal_actions()
      infoset = numbers[player].setdefault(name(state), len(parents[player]))
      if infoset == len(parents[player]):
        firsts[player].append(1 + sum(counts[player]))
        parents[player].append(above[player])
        counts[player].append(len(actions))
      for place, action in enumerate(actions):
        after = list(above)
        after[player] = firsts[player][infoset] + place
        visit(state.child(action), tuple(after), chance)

  visit(game.new_initial_state(), (0, 0), 1.0)
  return game_from_arrays(
    parents, counts, np.transpose(leaves), np.array(payoffs), infostates=[[*own] for own in numbers]
  )


@functools.cache
def _pair(name, rake, **options):
  vector = poker.compile_public_game(_GAMES[name], rake=_RAKES[rake], **options)
  listed = _list_of_leaves(pyspiel.load_game(_GAMES[name]), _RAKES[rake], vector.view.infostate)
  return vector, listed


def _by_place(policy):
  return {name: [*probabilities.values()] for name, probabilities in policy.items()}


@pytest.mark.quick(
  "False-one deal-5 percent",
  "True-one deal-5 percent, at most .3",
  "True-stacks that differ-half a chip",
  "False-two hole cards-5 percent, at most .3",
  "False-Rhode Island-5 percent",
)
@pytest.mark.parametrize("rake", list(_RAKES))
@pytest.mark.parametrize("name", list(_GAMES))
@pytest.mark.parametrize("partitioned", [False, True])
def test_iterates_and_values_are_those_of_the_raked_leaves(name, rake, partitioned):
  vector, listed = _pair(name, rake, partitioned=partitioned)
  ours, theirs = (spiel_cfr.CFRPlusSolver(game) for game in (vector, listed))
  for count in (1, 19):
    for solver in (ours, theirs):
      solver.run(count)
    found, expected = (_by_place(solver.average_policy_dict()) for solver in (ours, theirs))
    assert found.keys() == expected.keys()
    for infostate, probabilities in expected.items():
      assert found[infostate] == pytest.approx(probabilities, abs=1e-9)
    values = [
      spiel_cfr.nash_conv(solver.compiled_game, solver.average_policy(), False)
      for solver in (ours, theirs)
    ]
    np.testing.assert_allclose(*(each.player_improvements for each in values), rtol=0, atol=1e-9)
    values = [
      spiel_cfr.expected_values(solver.compiled_game, solver.average_policy())
      for solver in (ours, theirs)
    ]
    np.testing.assert_allclose(*values, rtol=0, atol=1e-9)
  assert vector.constant_sum is None
  assert -1 < values[0].sum() < -0.01
  assert ours.nash_conv() == pytest.approx(theirs.nash_conv(), abs=1e-9)


def test_nash_conv_is_that_of_open_spiel():
  vector, _ = _pair("stacks that differ", "5 percent, at most .3", partitioned=False)
  solver = spiel_cfr.DCFRSolver(vector)
  solver.run(20)
  restricted = vector.view.open_spiel_game()
  expected = exploitability.nash_conv(restricted, solver.average_policy(), use_cpp_br=False)
  assert solver.nash_conv() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("make", [copy.deepcopy, lambda game: pickle.loads(pickle.dumps(game))])
def test_copies_are_raked(make):
  vector, _ = _pair("one deal", "5 percent", partitioned=False)
  again = make(vector)
  assert again.digest == vector.digest
  policy = spiel_cfr.CFRPlusSolver(vector).average_policy()
  for game in (again, spiel_cfr.compile_game(again)):
    np.testing.assert_array_equal(
      spiel_cfr.expected_values(game, policy), spiel_cfr.expected_values(vector, policy)
    )


def test_checkpoints_belong_to_a_rake(tmp_path):
  vector, _ = _pair("one deal", "5 percent", partitioned=False)
  solver = spiel_cfr.CFRPlusSolver(vector)
  solver.run(5)
  solver.save(tmp_path / "solver.npz")
  again = spiel_cfr.CFRPlusSolver(vector)
  again.restore(tmp_path / "solver.npz")
  assert again.nash_conv() == solver.nash_conv()
  spiel_cfr.save_policy(vector, solver, tmp_path / "policy.json")
  policy = spiel_cfr.load_policy(vector, tmp_path / "policy.json")
  assert spiel_cfr.nash_conv(vector, policy) == pytest.approx(solver.nash_conv(), abs=1e-9)
  without = poker.compile_public_game(_GAMES["one deal"])
  free = poker.compile_public_game(_GAMES["one deal"], rake=poker.Rake(0.05, cap=0))
  assert free.digest == without.digest != vector.digest
  assert free.constant_sum == 0
  with pytest.raises(errors.CheckpointMismatchError):
    spiel_cfr.CFRPlusSolver(without).restore(tmp_path / "solver.npz")


def _river(rake, **options):
  made = ranges.endgame("QQ+,AKs,T9s", "JJ,AQs,98s,KTs", board="7s9h9cTc2d", pot=200, stack=900)
  sizes = poker.bet_sizes("50%, a", "a")
  return poker.compile_public_game(made, sizes, rake=rake, **options)


def test_rake_of_an_endgame():
  game = _river(poker.Rake(0.05, cap=30))
  by_path = {node.path: node.rake for node in game.tree.nodes}
  # Check, check: 5 percent of 200. A bet that is folded to is not in the pot.
  assert by_path[1, 1] == by_path[200, 0] == pytest.approx(10)
  # Half the pot, called: 400 chips. All-in, called: 2,000 chips, of which 30 are the most.
  assert by_path[200, 1] == pytest.approx(20)
  assert by_path[1000, 1] == 30
  checked = {
    name: {1: 1.0} for name in game.table_rows if "|r" not in name.rpartition("Sequences")[2]
  }
  policy = {name: checked.get(name, {0: 1.0}) for name in game.table_rows}
  assert spiel_cfr.expected_values(game, policy).sum() == pytest.approx(-10)
  assert "with rake" in repr(game)


@pytest.mark.parametrize(
  ("first", "second", "board", "expected"),
  [
    # The winner gets 57 of 60 chips, of which 30 are its own.
    ("AA", "QQ", "AcAdKh7s3c", (27, -30)),
    ("QQ", "AA", "AcAdKh7s3c", (-30, 27)),
    # In a tie each player gets 28.5.
    ("AA", "AA", "2c6dTh7s3c", (-1.5, -1.5)),
  ],
)
def test_sure_results_are_those_of_postflop_solver(first, second, board, expected):
  """Pots, rakes and results of `always_win_raked`, `always_lose_raked` and `always_tie_raked` in its tests."""
  made = ranges.endgame(first, second, board=board, pot=60, stack=970)
  game = poker.compile_public_game(made, poker.bet_sizes({}, {}), rake=poker.Rake(0.05, cap=10))
  values = spiel_cfr.expected_values(game, spiel_cfr.CFRSolver(game))
  np.testing.assert_allclose(values, expected, atol=1e-9)


def test_float32_and_merged_suits_are_raked():
  rake = poker.Rake(0.05, cap=30)
  gains = []
  for options in ({}, {"merge_suits": True}, {"dtype": "float32"}):
    solver = spiel_cfr.CFRPlusSolver(_river(rake, **options))
    solver.run(100)
    gains.append(solver.nash_conv())
  assert gains[1] == pytest.approx(gains[0], abs=1e-8)
  assert gains[2] == pytest.approx(gains[0], abs=1e-2)


def test_explorer_pages_show_values_after_the_rake(tmp_path):
  vector, _ = _pair("one deal", "5 percent", partitioned=False)
  solver = spiel_cfr.CFRPlusSolver(vector)
  solver.run(50)
  behavioral = solver.average_probabilities()
  values = HandValues(vector.tree, vector.layout, behavioral)
  content = hand_pages.describe(vector, values, max_infosets=10_000)
  expected = spiel_cfr.expected_values(vector, solver.average_policy())
  np.testing.assert_allclose(content.tree.values[0], expected, atol=1e-9)
  spiel_cfr.explore(solver, tmp_path / "page.html")
  spiel_cfr.explore(solver.average_policy_dict(), tmp_path / "policy.html", game=vector)


def test_what_needs_a_constant_sum_refuses_a_rake():
  vector, _ = _pair("one deal", "5 percent", partitioned=False)
  solver = spiel_cfr.CFRPlusSolver(vector)
  solver.run(5)
  for refused in (
    solver.exploitability,
    lambda: spiel_cfr.solve_lp(vector),
    lambda: spiel_cfr.search.resolve(vector, solver),
    lambda: spiel_cfr.search.SearchBot(solver, 0),
  ):
    with pytest.raises(errors.UnsupportedGameError, match="constant"):
      refused()


def test_wrong_rakes():
  for wrong in ({"rate": -0.1}, {"rate": 1.1}, {"rate": "5%"}, {"rate": 0.05, "cap": -1}):
    with pytest.raises(errors.ArgumentError, match=[*wrong][-1]):
      poker.Rake(**wrong)
  with pytest.raises(errors.ArgumentError, match="rake"):
    poker.compile_public_game("leduc_poker", rake=0.05)
  tied = poker_games.random_endgame(1, 9, "ThJhQhKhAh").load()
  with pytest.raises(errors.UnsupportedGameError, match="without rake"):
    poker.compile_public_game(tied, poker_games.check_or_pot, rake=poker.Rake(0.05))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(spiel_cfr.catalogue.SOLVERS))
def test_every_solver_takes_a_rake(name):
  vector, listed = _pair("one deal", "5 percent", partitioned=False)
  try:
    solver = spiel_cfr.catalogue.make(name, vector, 3)
  except errors.UnsupportedGameError as error:
    is_pruned = name.endswith("_pruned")
    assert is_pruned or name in ("egt", "egt_as", "mirror_prox_as")
    assert ("no pruning" if is_pruned else "constant-sum") in str(error)
    return
  solver.run(3)
  policy = {
    infostate: dict(enumerate(probabilities))
    for infostate, probabilities in _by_place(solver.average_policy_dict()).items()
  }
  assert solver.nash_conv() == pytest.approx(spiel_cfr.nash_conv(listed, policy), abs=1e-9)
