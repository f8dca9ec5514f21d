"""Poker in vector form is the same game as OpenSpiel's, whole, in parts and in threads."""

import functools
import itertools
import os
import signal
import threading

import numpy as np
import poker_games
import pyspiel
import pytest
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python.algorithms import exploitability
from rotation import rotated

import spiel_cfr
from spiel_cfr import FullWidthSolver, RegretMatching, errors, policies
from spiel_cfr.cfr.variants import TabularCFRSolver
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.poker import bet_filters, betting_tree, cards, deal
from spiel_cfr.poker.public_game import compile_public_game

_GAMES = ("kuhn_poker", "leduc_poker", *poker_games.UNIVERSAL_POKER)
_SOLVERS = {
  "CFR": spiel_cfr.CFRSolver,
  "CFR+": spiel_cfr.CFRPlusSolver,
  "DCFR": spiel_cfr.DCFRSolver,
  "predictive CFR+": spiel_cfr.PCFRPlusSolver,
  "simultaneous": lambda game: TabularCFRSolver(game, alternating_updates=False),
  # What infosets can lose at most is bounded in another way in each form.
  "OFTRL": lambda game: spiel_cfr.StablePredictiveCFRSolver(
    game, kappa=1000.0, steps="paper", loss_bounds="payoffs"
  ),
  "averages after": lambda game: FullWidthSolver(
    game, RegretMatching(), averaging=spiel_cfr.Averaging(counted="after")
  ),
}


@functools.cache
def _compile(game, **options):
  return compile_public_game(game, **options)


@functools.cache
def _enumerate(game):
  return spiel_cfr.compile_game(game, vector_form=False)


def _compare(vector_solver, solver, iterations=30, tolerance=1e-9):
  """Compares current and average policies in every infoset after a few numbers of iterations."""
  for count in (1, 4, iterations - 5):
    vector_solver.run(count)
    solver.run(count)
    for name in ("current_policy_dict", "average_policy_dict"):
      found, expected = getattr(vector_solver, name)(), getattr(solver, name)()
      assert found.keys() == expected.keys()
      for infostate, distribution in expected.items():
        assert found[infostate] == pytest.approx(distribution, abs=tolerance), infostate
  assert vector_solver.nash_conv() == pytest.approx(solver.nash_conv(), abs=tolerance * 100)


@pytest.mark.parametrize("game", _GAMES)
def test_infosets_are_those_of_open_spiel_in_the_same_order(game):
  compiled = _compile(game, partitioned=False)
  tabular = open_spiel_policy.TabularPolicy(pyspiel.load_game(game))
  assert list(compiled.table_rows) == list(tabular.state_lookup)
  np.testing.assert_array_equal(compiled.legal_actions_mask, tabular.legal_actions_mask)


@pytest.mark.slow
@pytest.mark.parametrize("board", [poker_games.RIVER, poker_games.TURN])
def test_infosets_of_endgames_are_in_the_order_of_their_first_histories(board):
  game = poker_games.random_endgame(1, 4, board).load()
  listed = spiel_cfr.compile_game(game, action_filter=poker_games.check_or_pot, vector_form=False)
  vector = compile_public_game(game, poker_games.check_or_pot)
  assert list(vector.table_rows) == list(listed.table_rows)


@rotated("game,name,partitioned", _GAMES, list(_SOLVERS), [False, True])
def test_iterates_are_those_of_the_enumerated_game(game, name, partitioned):
  if partitioned and game == "kuhn_poker":
    return
  vector = _compile(game, partitioned=partitioned)
  _compare(_SOLVERS[name](vector), _SOLVERS[name](_enumerate(game)))


@rotated("game,partitioned", ["leduc_poker", *poker_games.UNIVERSAL_POKER], [False, True])
def test_exploitability_is_that_of_open_spiel(game, partitioned):
  solver = spiel_cfr.CFRPlusSolver(_compile(game, partitioned=partitioned))
  loaded = pyspiel.load_game(game)
  for count in (0, 20):
    if count:
      solver.run(count)
    expected = exploitability.nash_conv(loaded, solver.average_policy())
    assert solver.nash_conv() == pytest.approx(expected, abs=1e-9)
    policy = solver.average_policy()
    assert spiel_cfr.nash_conv(solver.compiled_game, policy) == pytest.approx(expected, abs=1e-9)


@functools.cache
def _enumerated_endgame(board, num_hands, action_filter):
  """Shared by the tests that compare forms of this endgame."""
  game = poker_games.random_endgame(1, num_hands, board).load()
  return spiel_cfr.compile_game(game, action_filter=action_filter, vector_form=False)


def _endgame_pair(endgame, action_filter, **options):
  game = endgame.load()
  enumerated = spiel_cfr.compile_game(game, action_filter=action_filter, vector_form=False)
  return compile_public_game(game, action_filter, **options), enumerated


_ENDGAMES = [
  # Two vectors of hands.
  pytest.param(poker_games.RIVER, 9, bet_filters.few_bets, {}, id="river"),
  pytest.param(
    poker_games.TURN, 3, poker_games.check_or_pot, {}, id="turn", marks=pytest.mark.slow
  ),
  pytest.param(
    poker_games.TURN,
    3,
    poker_games.check_or_pot,
    {"partitioned": True},
    id="turn, partitioned",
    marks=pytest.mark.slow,
  ),
  pytest.param(
    poker_games.TURN,
    24,
    poker_games.check_or_pot,
    {"partitioned": True, "num_threads": 2},
    id="turn, many hands",
    marks=pytest.mark.slow,
  ),
]


@pytest.mark.parametrize(("board", "num_hands", "action_filter", "options"), _ENDGAMES)
def test_endgames_are_those_of_open_spiel(board, num_hands, action_filter, options):
  endgame = poker_games.random_endgame(1, num_hands, board)
  vector = compile_public_game(endgame.load(), action_filter, **options)
  enumerated = _enumerated_endgame(board, num_hands, action_filter)
  for name in ("CFR+", "simultaneous"):
    solver = _SOLVERS[name](vector)
    _compare(solver, _SOLVERS[name](enumerated), iterations=20)
  game = vector.view.open_spiel_game()
  expected = exploitability.nash_conv(game, solver.average_policy(), use_cpp_br=False)
  assert solver.nash_conv() == pytest.approx(expected, abs=1e-7)


def test_pot_is_paid_in_full():
  endgame = poker_games.random_endgame(2, 30)
  game = compile_public_game(endgame.load(), bet_filters.few_bets)
  by_path = {node.path: node for node in game.tree.nodes}
  # Check, check: the winner gets what the other has put in.
  assert by_path[1, 1].payoff == 200
  # A bet of the pot is 400, so calling it makes 600 to win; folding costs half the pot.
  assert by_path[2, 1].payoff == 600
  assert by_path[2, 0].payoff == 200
  # Half the pot, then the pot: 200 + 200 called, and 800 more.
  assert by_path[4, 2, 1].payoff == 1200
  assert by_path[3, 1].payoff == 1600


def test_the_papers_abstraction():
  game = compile_public_game(poker_games.random_endgame(2, 30).load(), bet_filters.few_bets)
  by_path = {node.path: node.actions for node in game.tree.nodes}
  assert by_path[()] == (1, 2, 3, 4)
  assert by_path[1,] == (1, 2, 3, 4)
  assert by_path[4,] == (0, 1, 2, 3)
  assert by_path[3,] == (0, 1)


@pytest.mark.parametrize("board", [poker_games.RIVER, poker_games.TURN])
def test_values_sum_to_zero(board):
  game = compile_public_game(
    poker_games.random_endgame(3, 16, board).load(), poker_games.check_or_pot
  )
  rng = np.random.default_rng(0)
  strategy = policies.behavioral_form(game, rng.random(game.end))
  result = evaluate.evaluate(game, policies.sequence_form(game, strategy))
  assert abs(result.expected_values.sum()) < 1e-10
  assert (result.best_response_values >= result.expected_values - 1e-10).all()


@pytest.mark.parametrize("partitioned", [pytest.param(False, marks=pytest.mark.slow), True])
def test_suits_don_t_matter(partitioned):
  """Renaming suits renames hands, and changes nothing else."""
  board = poker_games.TURN
  endgame = poker_games.random_endgame(4, 12, board)
  new_suit = dict(zip("cdhs", "hscd", strict=True))
  renamed = np.zeros_like(endgame.reaches)
  hands = cards.file_hands()
  suits = np.array(["cdhs".index(new_suit[suit]) for suit in "cdhs"])
  order = {tuple(hand): index for index, hand in enumerate(hands.tolist())}
  for index, hand in enumerate(hands):
    moved = tuple(sorted((hand // 4 * 4 + suits[hand % 4]).tolist()))
    renamed[:, order[moved]] = endgame.reaches[:, index]
  other = spiel_cfr.poker.Endgame(
    "".join(new_suit.get(character, character) for character in board),
    endgame.pot,
    renamed,
    endgame.starting_stack,
  )
  gaps = []
  for each in (endgame, other):
    game = compile_public_game(each.load(), poker_games.check_or_pot, partitioned=partitioned)
    solver = spiel_cfr.CFRPlusSolver(game)
    solver.run(50)
    gaps.append(solver.nash_conv())
  assert gaps[0] == pytest.approx(gaps[1], rel=1e-8)


def test_stakes_only_scale_payoffs():
  gaps, averages = [], []
  for scale in (1, 10):
    endgame = poker_games.random_endgame(
      5, 30, pot=400 * scale, starting_stack=1600 * scale, big_blind=100 * scale
    )
    solver = spiel_cfr.CFRPlusSolver(compile_public_game(endgame.load(), bet_filters.few_bets))
    solver.run(50)
    gaps.append(endgame.milli_big_blinds(solver.nash_conv()))
    averages.append(solver.average_probabilities())
  assert gaps[0] == pytest.approx(gaps[1], rel=1e-9)
  np.testing.assert_allclose(*averages, atol=1e-9)


def test_players_can_change_seats():
  template = (
    "universal_poker(betting=nolimit,bettingAbstraction=fcpa,numPlayers=2,numRounds=2,blind={},"
    "firstPlayer={},numSuits=2,numRanks=4,numHoleCards=2,numBoardCards=0 1,stack=6 6)"
  )
  values = []
  for blind, first in (("1 2", "1 2"), ("2 1", "2 1")):
    solver = spiel_cfr.CFRPlusSolver(compile_public_game(template.format(blind, first)))
    solver.run(1000)
    policy = solver.average_policy()
    values.append(spiel_cfr.expected_values(solver.compiled_game, policy))
    assert solver.nash_conv() < 2e-3
  np.testing.assert_allclose(values[0], values[1][::-1], atol=2e-3)


def test_threads():
  endgame = poker_games.random_endgame(6, 12, poker_games.TURN)
  game = endgame.load()
  solvers = {}
  for options in ({}, {"num_threads": 2}, {"num_threads": 3}):
    compiled = compile_public_game(game, poker_games.check_or_pot, partitioned=True, **options)
    solver = solvers[str(options)] = spiel_cfr.DCFRSolver(compiled)
    solver.run(40)
  one, two, three = solvers.values()
  for other in (two, three):
    np.testing.assert_array_equal(one.state.cumulative, other.state.cumulative)
    assert one.nash_conv() == other.nash_conv()


@pytest.mark.quick("CFR-float32", "averages after-float64")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["CFR", "averages after", "simultaneous"])
def test_single_steps_leave_the_same_average(name, dtype):
  """Parts add to averages early, but averages are complete at every read."""
  game = _compile(_GAMES[2], partitioned=True, dtype=dtype)
  at_once, in_steps = _SOLVERS[name](game), _SOLVERS[name](game)
  at_once.run(9)
  for count in (1, 3, 1, 4):
    in_steps.run(count)
  np.testing.assert_array_equal(at_once.state.cumulative, in_steps.state.cumulative)
  flat = _SOLVERS[name](_compile(_GAMES[2], partitioned=False, dtype=dtype))
  flat.run(9)
  tolerance = 1e-12 if dtype == "float64" else 1e-4
  found, expected = (
    each.compiled_game.to_actions(each.state.cumulative) for each in (at_once, flat)
  )
  np.testing.assert_allclose(found, expected, atol=tolerance)


def test_boards_on_which_every_showdown_ties():
  endgame = poker_games.random_endgame(1, 9, "ThJhQhKhAh")
  vector, enumerated = _endgame_pair(endgame, poker_games.check_or_pot)
  _compare(spiel_cfr.CFRPlusSolver(vector), spiel_cfr.CFRPlusSolver(enumerated))


def test_checkpoints_of_partitioned_games(tmp_path):
  endgame = poker_games.random_endgame(7, 10, poker_games.TURN)
  game = compile_public_game(endgame.load(), poker_games.check_or_pot, partitioned=True)
  solver = spiel_cfr.PCFRPlusSolver(game)
  solver.run(7)
  solver.save(tmp_path / "checkpoint.npz")
  again = spiel_cfr.PCFRPlusSolver(game)
  again.restore(tmp_path / "checkpoint.npz")
  for each in (solver, again):
    each.run(5)
  np.testing.assert_array_equal(solver.state.cumulative, again.state.cumulative)
  assert solver.nash_conv() == again.nash_conv()
  other = compile_public_game(endgame.load(), partitioned=False)
  with pytest.raises(errors.CheckpointMismatchError):
    spiel_cfr.PCFRPlusSolver(other).restore(tmp_path / "checkpoint.npz")


def test_ctrl_c_leaves_a_whole_number_of_iterations():
  endgame = poker_games.random_endgame(7, 24, poker_games.TURN)
  game = compile_public_game(endgame.load(), bet_filters.few_bets, partitioned=True)
  solver, undisturbed = (spiel_cfr.CFRPlusSolver(game) for _ in range(2))
  solver.run(1)
  timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
  timer.start()
  with pytest.raises(KeyboardInterrupt):
    solver.run(10**6)
  timer.join()
  assert 1 <= solver.iteration < 10**6
  undisturbed.run(solver.iteration)
  for name in ("action_state", "strategy", "cumulative"):
    np.testing.assert_array_equal(getattr(solver.state, name), getattr(undisturbed.state, name))


def test_hand_strengths_are_those_of_the_best_five_cards():
  rng = np.random.default_rng(0)
  seven = np.stack([rng.choice(52, 7, replace=False) for _ in range(2000)])
  five = np.max(
    [
      cards.hand_strengths(seven[:, list(chosen)], (), 4)
      for chosen in itertools.combinations(range(7), 5)
    ],
    axis=0,
  )
  np.testing.assert_array_equal(cards.hand_strengths(seven, (), 4), five)


def test_hand_strengths_are_those_of_eval7():
  eval7 = pytest.importorskip("eval7", reason="eval7 is not installed: pip install .[dev]")
  rng = np.random.default_rng(0)
  seven = np.stack([rng.choice(52, 7, replace=False) for _ in range(2000)])
  deck = [eval7.Card(cards.card_name(card)) for card in range(52)]
  theirs = [eval7.evaluate([deck[card] for card in hand]) for hand in seven.tolist()]
  ours = cards.hand_strengths(seven, (), 4)
  np.testing.assert_array_equal(
    *(np.unique(each, return_inverse=True)[1] for each in (ours, theirs))
  )


@pytest.mark.slow
def test_all_hands_of_five_cards():
  strengths = cards.hand_strengths(cards.all_hands(52, 5), (), 4)
  distinct, counts = np.unique(strengths, return_counts=True)
  # Published counts: 7,462 classes; straight flushes, fours, full houses, ..., high cards.
  assert len(distinct) == 7462
  by_category = np.bincount(distinct // 14**5, counts).astype(int).tolist()
  assert by_category[::-1] == [40, 624, 3744, 5108, 10200, 54912, 123552, 1098240, 1302540]


def test_a_wrong_evaluator_is_an_error(monkeypatch):
  right = cards.hand_strengths

  def without_straights(hands, board, num_suits):
    strengths = right(hands, board, num_suits)
    return np.where(strengths // 14**5 == 4, 0, strengths)

  game = poker_games.random_endgame(8, 60).load()
  monkeypatch.setattr(cards, "hand_strengths", without_straights)
  with pytest.raises(errors.UnsupportedGameError, match="OpenSpiel pays player 0"):
    compile_public_game(game)


def test_games_without_vector_form_are_named():
  for game in (
    "leduc_poker(players=3)",
    "leduc_poker(suit_isomorphism=True)",
    "liars_dice",
    "universal_poker(betting=limit,numPlayers=2,numHoleCards=3,numSuits=2,numRanks=6)",
  ):
    with pytest.raises(errors.UnsupportedGameError, match="vector form"):
      compile_public_game(game)


def test_two_deals_of_public_cards_are_imperfect_recall_by_open_spiels_names():
  game = poker_games.UNIVERSAL_POKER[0].replace("numRounds=2", "numRounds=3")
  game = game.replace("firstPlayer=1 1", "firstPlayer=1 1 1").replace("=0 1,", "=0 1 1,")
  with pytest.raises(errors.ImperfectRecallError):
    spiel_cfr.compile_game(game, vector_form=False)
  assert isinstance(spiel_cfr.compile_game(game), spiel_cfr.poker.PublicGame)


def test_games_that_are_too_large(monkeypatch):
  # All flops after a round of betting before them.
  game = (
    "universal_poker(betting=nolimit,bettingAbstraction=fchpa,numPlayers=2,numRounds=2,"
    "blind=100 50,firstPlayer=2 1,numSuits=4,numRanks=13,numHoleCards=2,numBoardCards=0 3,"
    "stack=20000 20000)"
  )
  with pytest.raises(errors.GameTooLargeError, match="sequences"):
    compile_public_game(pyspiel.load_game(game), bet_filters.few_bets)
  monkeypatch.setattr(betting_tree, "MOST_NODES", 20)
  with pytest.raises(errors.GameTooLargeError, match="public tree"):
    compile_public_game("leduc_poker")


def test_options_that_make_no_sense():
  for options in (
    {"dtype": "int32"},
    {"num_threads": 0},
    {"num_threads": 2, "partitioned": False},
  ):
    with pytest.raises(errors.ArgumentError):
      compile_public_game("leduc_poker", **options)
  with pytest.raises(errors.ArgumentError, match="no subtrees"):
    compile_public_game("kuhn_poker", partitioned=True)
  with pytest.raises(errors.UnsupportedGameError):
    compile_public_game("kuhn_poker").save("kuhn.npz")


@pytest.mark.parametrize("vector_form", [False, True])
def test_action_filters(vector_form):
  def compile_with(action_filter):
    return spiel_cfr.compile_game(
      "leduc_poker", action_filter=action_filter, vector_form=vector_form
    )

  game = compile_with(lambda state, actions: [action for action in actions if action != 2])
  assert set(np.concatenate(game.actions).tolist()) <= {0, 1}
  for bad in (
    lambda state, actions: [],
    lambda state, actions: [7],
    lambda state, actions: actions + actions,
  ):
    with pytest.raises(errors.ArgumentError, match="action filter"):
      compile_with(bad)


def test_action_filters_that_look_at_private_cards():
  """The ranks of a deal differ, so such a filter is detected for any deal of the walk."""

  def by_rank(state, actions):
    rank = int(state.information_state_string().partition("[Private: ")[2][0]) // 2
    return actions[:1] if rank == 0 else actions[-1:] if rank == 1 else actions

  with pytest.raises(errors.ArgumentError, match="private cards"):
    compile_public_game("leduc_poker", action_filter=by_rank)
  assert spiel_cfr.compile_game("leduc_poker", action_filter=by_rank).num_infosets


def test_filtered_games_are_the_same_in_both_forms():
  filters = {"action_filter": lambda state, actions: actions[-2:]}
  vector = compile_public_game("leduc_poker", **filters)
  enumerated = spiel_cfr.compile_game("leduc_poker", vector_form=False, **filters)
  assert list(vector.table_rows) == list(enumerated.table_rows)
  _compare(spiel_cfr.CFRPlusSolver(vector), spiel_cfr.CFRPlusSolver(enumerated))


def test_compile_game_chooses_the_vector_form_where_it_pays():
  assert isinstance(
    spiel_cfr.compile_game(poker_games.random_endgame(9, 30).load()), spiel_cfr.poker.PublicGame
  )
  for game in ("kuhn_poker", "leduc_poker", poker_games.UNIVERSAL_POKER[0]):
    assert not isinstance(spiel_cfr.compile_game(game), spiel_cfr.poker.PublicGame)


def test_the_betting_tree_is_compared_with_random_deals():
  game = pyspiel.load_game("leduc_poker")
  found = deal.find_deal(game)
  nodes = betting_tree.walk_betting_tree(GameView(game), found)
  rng = np.random.default_rng(0)
  betting_tree.check_random_deals(game, found, nodes, 100, rng)
  for node in nodes:
    if node.kind is betting_tree.NodeKind.SHOWDOWN:
      node.payoff += 1
  with pytest.raises(errors.UnsupportedGameError, match="pays player 0"):
    betting_tree.check_random_deals(game, found, nodes, 100, rng)
