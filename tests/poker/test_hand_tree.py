"""Several deals of public cards in vector form: the same game as OpenSpiel's."""

import functools

import numpy as np
import poker_games
import pyspiel
import pytest
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python.algorithms import exploitability

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.evaluation.evaluate import evaluate
from spiel_cfr.poker import public_game, ranges
from spiel_cfr.poker.betting_tree import NodeKind
from spiel_cfr.poker.deal import find_deal
from spiel_cfr.poker.public_game import compile_public_game
from spiel_cfr.poker.street_names import StreetNames
from spiel_cfr.policies import forms

_START = "universal_poker(numPlayers=2,"
_GAMES = {
  # A card, then another one, from a deck of five.
  "one card": _START
  + "betting=limit,numRounds=3,blind=1 2,firstPlayer=1 1 1,numSuits=1,numRanks=5,numHoleCards=1,"
  "numBoardCards=0 1 1,raiseSize=2 2 2,maxRaises=1 1 1)",
  # Rhode Island hold'em with six cards.
  "Rhode Island": _START
  + "betting=limit,numRounds=3,blind=1 1,firstPlayer=1 1 1,numSuits=2,numRanks=3,"
  "numHoleCards=1,numBoardCards=0 1 1,raiseSize=2 4 4,maxRaises=1 1 1)",
  # All-in on every street, stacks that differ.
  "no limit": _START
  + "betting=nolimit,bettingAbstraction=fcpa,numRounds=3,blind=1 2,firstPlayer=2 1 1,numSuits=1,"
  "numRanks=6,numHoleCards=1,numBoardCards=0 1 1,stack=5 9)",
  "two cards": _START
  + "betting=nolimit,bettingAbstraction=fcpa,numRounds=3,blind=1 1,firstPlayer=1 1 1,numSuits=2,"
  "numRanks=3,numHoleCards=2,numBoardCards=0 1 1,stack=4 4)",
  "three suits": _START
  + "betting=limit,numRounds=3,blind=1 1,firstPlayer=1 1 1,numSuits=3,numRanks=3,numHoleCards=1,"
  "numBoardCards=0 1 1,raiseSize=2 4 4,maxRaises=1 1 1)",
  # Two cards at once, then one.
  "three at once": _START
  + "betting=limit,numRounds=3,blind=1 1,firstPlayer=1 1 1,numSuits=3,numRanks=2,"
  "numHoleCards=1,numBoardCards=0 2 1,raiseSize=2 4 4,maxRaises=1 1 1)",
  # Leduc poker with another card and another round.
  "Leduc of three rounds": _START
  + "betting=limit,numRounds=3,blind=1 1,firstPlayer=1 1 1,numSuits=2,numRanks=3,"
  "numHoleCards=1,numBoardCards=0 1 1,raiseSize=2 4 4,maxRaises=2 2 1)",
  # Limit hold'em of four rounds, with nine cards and a bet on the river.
  "hold'em of four rounds": _START
  + "betting=limit,numRounds=4,blind=1 1,firstPlayer=1 1 1 1,numSuits=3,numRanks=3,"
  "numHoleCards=2,numBoardCards=0 3 1 1,raiseSize=2 2 4 4,maxRaises=0 0 0 1)",
  # A round without a card between the deals, and two cards at once.
  "four rounds": _START
  + "betting=limit,numRounds=4,blind=1 2,firstPlayer=1 1 1 1,numSuits=1,numRanks=6,"
  "numHoleCards=1,numBoardCards=0 2 0 1,raiseSize=2 2 2 2,maxRaises=1 0 0 1)",
}


@functools.cache
def _listed(game, action_filter=None):
  loaded = pyspiel.load_game(game)
  names = StreetNames.of(find_deal(loaded))
  return spiel_cfr.compile_game(
    loaded, infostate=names, action_filter=action_filter, vector_form=False
  )


def _compare(vector, listed, iterations=20):
  """Compares iterates, values and best responses to 1e-9."""
  assert list(vector.table_rows) == list(listed.table_rows)
  ours, theirs = (spiel_cfr.CFRPlusSolver(game) for game in (vector, listed))
  for count in (1, 4, iterations - 5):
    for solver in (ours, theirs):
      solver.run(count)
    for name in ("average_sequence_form", "current_probabilities"):
      found, expected = (
        each.compiled_game.to_actions(getattr(each, name)()) for each in (ours, theirs)
      )
      np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    values = [spiel_cfr.expected_values(vector, each.average_policy()) for each in (ours, theirs)]
    np.testing.assert_allclose(*values, rtol=0, atol=1e-9)
    assert ours.nash_conv() == pytest.approx(theirs.nash_conv(), abs=1e-9)
  return ours


_LARGE = "Leduc of three rounds", "hold'em of four rounds"


@pytest.mark.quick("False-no limit", "False-one card", "True-four rounds")
@pytest.mark.parametrize("name", [name for name in _GAMES if name not in _LARGE])
@pytest.mark.parametrize("partitioned", [False, True])
def test_iterates_are_those_of_the_list(name, partitioned):
  game = _GAMES[name]
  vector = compile_public_game(game, partitioned=partitioned)
  solver = _compare(vector, _listed(game))
  if not partitioned and name == "one card":
    expected = exploitability.nash_conv(
      vector.view.open_spiel_game(), solver.average_policy(), use_cpp_br=False
    )
    assert solver.nash_conv() == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", _LARGE)
def test_iterates_of_large_games_are_those_of_the_list(name):
  _compare(compile_public_game(_GAMES[name], partitioned=True), _listed(_GAMES[name]), iterations=8)


def test_functions_for_one_deal_of_public_cards_refuse_several():
  game = compile_public_game(_GAMES["one card"])
  with pytest.raises(errors.UnsupportedGameError, match="several times"):
    spiel_cfr.abstraction.hand_equities(game, 0)


def test_boards_follow_boards():
  tree = compile_public_game(_GAMES["one card"]).tree
  assert [board.level for board in tree.boards] == [0] + 5 * [1] + 20 * [2]
  for board in tree.boards[1:]:
    before = tree.boards[board.parent]
    assert (board.cards[:-1], board.level - 1) == (before.cards, before.level)
  # Three cards are left for both hands, then two.
  assert tree.boards[1].probability == pytest.approx(1 / 3)
  assert tree.boards[-1].probability == pytest.approx(1 / 6)


def test_hands_are_found_on_all_boards_before():
  tree = compile_public_game(_GAMES["one card"]).tree
  last = len(tree.boards) - 1
  hands = tree.types[last][0]
  for before in (last, tree.boards[last].parent, 0):
    np.testing.assert_array_equal(
      tree.types[before][0][tree.infoset_offsets(0, before, last)], hands
    )
  assert not tree.infoset_offsets(0, -1, last).any()


def test_names_keep_the_order_of_streets():
  game = pyspiel.load_game(_GAMES["one card"])
  names = StreetNames.of(find_deal(game))
  assert StreetNames.of(find_deal(pyspiel.load_game("leduc_poker"))) is None

  def after(*public):
    state = game.new_initial_state()
    # Both hands; a call and a check; then a card and two checks.
    for action in (0, 1, 1, 1, public[0], *((1, 1, public[1]) if len(public) > 1 else ())):
      state.apply_action(action)
    return state

  turn, river, other = after(2), after(2, 3), after(3, 2)
  assert names(turn, 0) == turn.information_state_string(0)
  assert river.information_state_string(0) == other.information_state_string(0)
  assert names(river, 0) != names(other, 0)
  assert names(river, 0).endswith("[Dealt: 4c 5c]")


def test_a_policy_by_open_spiels_names_can_not_tell_two_rivers_apart():
  game = compile_public_game(_GAMES["one card"])
  uniform = spiel_cfr.policies.uniform(game)
  assert uniform.shape == (game.end,)
  known = {name.partition("[Dealt")[0]: [(1, 1.0)] for name in game.table_rows}
  with pytest.raises(errors.PolicyError, match=r"Dealt"):
    spiel_cfr.nash_conv(game, known)


def test_a_policy_of_open_spiels_states_is_read():
  game = compile_public_game(_GAMES["one card"])
  known = open_spiel_policy.UniformRandomPolicy(pyspiel.load_game(_GAMES["one card"]))
  expected = spiel_cfr.nash_conv(game, spiel_cfr.CFRSolver(game))
  assert spiel_cfr.nash_conv(game, known) == pytest.approx(expected, abs=1e-9)


def _locked(game, policy):
  """Returns a solver around a policy of player 1 at every third of its infosets, and what it has locked."""
  solver = spiel_cfr.CFRPlusSolver(game)
  names = sorted(game.infosets[1].infostates)[::3]
  solver.lock(policy, names)
  return solver, names


@pytest.mark.quick("True")
@pytest.mark.parametrize("partitioned", [False, True])
def test_locks_on_later_streets_are_those_of_the_list(partitioned):
  listed = _listed(_GAMES["Rhode Island"])
  rng = np.random.default_rng(0)
  policy = {name: dict.fromkeys(actions, 0.0) for name, actions in _legal_actions(listed).items()}
  for probabilities in policy.values():
    chances = rng.dirichlet(np.ones(len(probabilities)))
    probabilities.update(zip(probabilities, chances.tolist(), strict=True))
  vector = compile_public_game(_GAMES["Rhode Island"], partitioned=partitioned)
  (ours, names), (theirs, same) = (_locked(game, policy) for game in (vector, listed))
  assert names == same
  for solver in (ours, theirs):
    solver.run(20)
  found, expected = (solver.average_policy_dict() for solver in (ours, theirs))
  for name, probabilities in expected.items():
    assert found[name] == pytest.approx(probabilities, abs=1e-9)
  for name in names:
    assert found[name] == pytest.approx(policy[name], abs=1e-12)
  assert ours.nash_conv() == pytest.approx(theirs.nash_conv(), abs=1e-9)


def _legal_actions(game):
  return {
    name: [*probabilities]
    for name, probabilities in spiel_cfr.CFRSolver(game).average_policy_dict().items()
  }


def _bets_on(*streets):
  """An action filter that keeps one bet, of the pot, on some streets, by the number of public cards dealt before."""

  def action_filter(state, actions):
    dealt = sum(move.player < 0 for move in state.full_history()) - 1
    return poker_games.check_or_pot(state, actions) if dealt in streets else [1]

  return action_filter


@pytest.mark.slow
@pytest.mark.parametrize("streets", [(0,), (0, 2)])
def test_flops_of_hold_em_are_those_of_the_list(streets):
  endgame = poker_games.random_endgame(1, 2, "Td9d6h")
  action_filter = _bets_on(*streets)
  listed = _listed(endgame.game_string(), action_filter)
  _compare(compile_public_game(endgame.load(), action_filter), listed, iterations=8)


def _same_play(merged, whole, iterations=20):
  """Compares strategies of all hands before the first deal, values and NashConv to 1e-9."""
  assert merged.num_infosets < whole.num_infosets
  solvers = [spiel_cfr.CFRPlusSolver(game) for game in (merged, whole)]
  for solver in solvers:
    solver.run(iterations)
  sums = [solver.average_sequence_form() for solver in solvers]
  values = [evaluate(solver.compiled_game, own) for solver, own in zip(solvers, sums, strict=True)]
  np.testing.assert_allclose(
    values[0].best_response_values, values[1].best_response_values, rtol=0, atol=1e-9
  )
  np.testing.assert_allclose(
    values[0].expected_values, values[1].expected_values, rtol=0, atol=1e-9
  )
  for node in merged.tree.on_board(0, NodeKind.DECISION):
    found, expected = (
      forms.behavioral_form(solver.compiled_game, own)[
        solver.compiled_game.layout.sequences(solver.compiled_game.tree.node_at(0, node))
      ]
      for solver, own in zip(solvers, sums, strict=True)
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.quick("False-Rhode Island", "True-two cards")
@pytest.mark.parametrize("name", ["Rhode Island", "two cards", "three suits", "three at once"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_suits_that_are_equal_are_one(name, partitioned):
  whole = compile_public_game(_GAMES[name], partitioned=partitioned)
  merged = compile_public_game(_GAMES[name], partitioned=partitioned, merge_suits=True)
  _same_play(merged, whole)
  assert sum(board.copies for board in merged.tree.boards) == len(whole.tree.boards)


@pytest.mark.quick("Rhode Island")
@pytest.mark.parametrize("name", ["Rhode Island", "two cards"])
def test_policies_of_merged_and_whole_games_are_read_by_names(name):
  whole = compile_public_game(_GAMES[name])
  merged = compile_public_game(_GAMES[name], merge_suits=True)
  assert list(merged.table_rows) == list(whole.table_rows)
  solvers = [spiel_cfr.CFRPlusSolver(game) for game in (merged, whole)]
  for solver in solvers:
    solver.run(20)
  expected = solvers[0].nash_conv()
  for solver in solvers:
    policy = solver.average_policy_dict()
    for game in (merged, whole):
      assert spiel_cfr.nash_conv(game, policy) == pytest.approx(expected, abs=1e-9)
    behavioral = spiel_cfr.policies.from_policy(merged, policy)
    np.testing.assert_allclose(behavioral, solvers[0].average_probabilities(), atol=1e-9)


def test_locks_of_merged_suits_are_those_of_the_whole_game():
  whole = compile_public_game(_GAMES["Rhode Island"])
  merged = compile_public_game(_GAMES["Rhode Island"], merge_suits=True)
  names = [*whole.infosets[1].infostates]
  known = spiel_cfr.CFRPlusSolver(merged)
  known.run(3)
  policy = known.current_policy_dict()
  policies = []
  for game in (merged, whole):
    solver = spiel_cfr.CFRPlusSolver(game)
    solver.lock(policy, names)
    solver.run(20)
    policies.append(solver.average_policy_dict())
  for name, probabilities in policies[1].items():
    assert policies[0][name] == pytest.approx(probabilities, abs=1e-9)
  with pytest.raises(errors.LockError, match="merges a locked infoset"):
    spiel_cfr.CFRPlusSolver(merged).lock({names[0]: policy[names[0]]})


def test_games_with_many_infosets_have_no_names_if_suits_are_merged(monkeypatch):
  monkeypatch.setattr(public_game, "MOST_NAMES", 100)
  merged = compile_public_game(_GAMES["Rhode Island"], merge_suits=True)
  assert merged.original is merged
  for refused in (
    lambda: merged.table_rows,
    lambda: spiel_cfr.CFRPlusSolver(merged).lock({"a name": {0: 1.0}}),
    lambda: spiel_cfr.CFRPlusSolver(merged).average_policy_dict(),
  ):
    with pytest.raises(errors.UnsupportedGameError, match="merge_suits"):
      refused()


@pytest.mark.quick("float32")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_threads_do_not_change_the_merge(dtype):
  solvers = []
  for num_threads in (1, 2):
    game = compile_public_game(
      _GAMES["three suits"],
      partitioned=True,
      merge_suits=True,
      dtype=dtype,
      num_threads=num_threads,
    )
    solvers.append(spiel_cfr.DCFRSolver(game))
    solvers[-1].run(20)
  first, second = solvers
  np.testing.assert_array_equal(first.state.cumulative, second.state.cumulative)
  assert first.nash_conv() == second.nash_conv()


@pytest.mark.slow
@pytest.mark.parametrize(
  ("ranges_of", "board", "boards"),
  [
    # Clubs and spades; then they are told apart by the turn, or not.
    (("AA,KQs", "QQ,AKo"), "Td9d6h", 1 + 36 + 13 * 48 + 23 * 35),
    # Three suits; two where the turn is of one of them.
    (("AA", "KK"), "9d8d7d", 1 + 23 + 10 * 22 + 13 * 35),
    # A hand that is there in one suit only.
    (("AA,AcKc", "KK"), "Td9d6h", 1 + 49 + 49 * 48),
  ],
)
def test_flops_have_as_many_runouts_as_suits_let_differ(ranges_of, board, boards):
  game = ranges.endgame(*ranges_of, board=board, pot=200, stack=900).load()
  merged = compile_public_game(game, _bets_on(0), merge_suits=True)
  assert len(merged.tree.boards) == boards
  if boards < 2000 and board == "Td9d6h":
    _same_play(merged, compile_public_game(game, _bets_on(0)), iterations=5)


@pytest.mark.slow
@pytest.mark.parametrize(
  ("ranks", "suits", "bets", "value"), [(4, 1, 3, -1 / 30), (2, 3, 1, -1 / 320)]
)
def test_value_of_rhode_island(ranks, suits, bets, value):
  game = (
    f"{_START}betting=limit,numRounds=3,blind=1 1,firstPlayer=1 1 1,numSuits={suits},"
    f"numRanks={ranks},numHoleCards=1,numBoardCards=0 1 1,raiseSize=2 4 4,"
    f"maxRaises={bets} {bets} {bets})"
  )
  # The linear program of the whole game, then bounds from the merged one.
  assert spiel_cfr.solve_lp(compile_public_game(game)).value == pytest.approx(value, abs=1e-12)
  solver = spiel_cfr.DCFRSolver(compile_public_game(game, merge_suits=True))
  solver.run(500)
  bound = solver.nash_conv()
  assert bound < 2e-3
  (found, _) = evaluate(solver.compiled_game, solver.average_sequence_form()).expected_values
  assert abs(found - value) <= bound
