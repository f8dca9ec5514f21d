"""The interface of compiled games: text, copies, pickles, leaves, bounds, gradients."""

import copy
import pickle

import numpy as np
import poker_games
import pytest
import random_games

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr._numba.arrays import aligned_zeros
from spiel_cfr.evaluation import evaluate


def keep_two(state, actions):
  return actions[:2]


def _turn_endgame(**options):
  game = poker_games.random_endgame(1, 3, poker_games.TURN).load()
  return spiel_cfr.poker.compile_public_game(game, poker_games.check_or_pot, **options)


GAMES = {
  "leaf rows": lambda: spiel_cfr.compile_game("kuhn_poker(players=3)"),
  "typed patterns": lambda: spiel_cfr.compile_game("leduc_poker"),
  "filtered": lambda: spiel_cfr.compile_game("leduc_poker", action_filter=keep_two),
  "random": lambda: spiel_cfr.compile_game(random_games.random_game(3, zero_sum=False)),
  "vector form": lambda: spiel_cfr.poker.compile_public_game("leduc_poker", keep_two),
  "parts": lambda: spiel_cfr.poker.compile_public_game(
    "leduc_poker", partitioned=True, num_threads=2
  ),
  "endgame": lambda: _turn_endgame(partitioned=False),
  "endgame in parts": lambda: _turn_endgame(partitioned=True),
}
every_kind = pytest.mark.parametrize("game", GAMES, indirect=True)


@pytest.fixture(scope="module")
def made():
  return {}


@pytest.fixture
def game(request, made):
  if request.param not in made:
    made[request.param] = GAMES[request.param]()
  return made[request.param]


@every_kind
def test_it_is_shown_in_one_line(game):
  assert len(repr(game).splitlines()) == len(str(game).splitlines()) == 1
  assert len(repr(game)) < 220
  assert type(game).__name__ in repr(game)


@every_kind
def test_copies_are_the_game_itself_and_pickles_the_same_game(game):
  assert copy.copy(game) is game
  assert copy.deepcopy([game])[0] is game
  policies.uniform(game), game.table_rows  # What was made on demand is left behind.
  again = pickle.loads(pickle.dumps(game))
  assert type(again) is type(game)
  assert again.digest == game.digest
  assert again.infostates == game.infostates
  assert (again.partition is None) == (game.partition is None)


def test_a_pickled_game_that_open_spiel_cannot_load_again_says_so_when_asked_for_it():
  game = spiel_cfr.compile_game(random_games.random_game(1))
  again = pickle.loads(pickle.dumps(game))
  solver = spiel_cfr.CFRSolver(again)
  solver.run(10)
  assert solver.nash_conv() == pytest.approx(
    spiel_cfr.nash_conv(game, solver.average_policy_dict())
  )
  with pytest.raises(errors.GameError):
    _ = again.game


def _random_sequence_form(game, seed):
  rng = np.random.default_rng(seed)
  return policies.sequence_form(game, policies.behavioral_form(game, rng.random(game.end)))


@every_kind
def test_gradients_are_sums_over_leaves(game):
  sequence_form = _random_sequence_form(game, 0)
  for player, tree in enumerate(game.treeplexes):
    own, others, values = game.payoff.leaves(player)
    assert (np.abs(values) > 0).all()
    assert len(np.unique(np.vstack([own, others]), axis=1).T) == len(own)
    expected = np.zeros(game.end)
    np.add.at(expected, own, values * sequence_form[others].prod(axis=0))
    utility = aligned_zeros(game.end)
    game.payoff.gradient_into(player, sequence_form, utility)
    sequences = np.unique(own)
    np.testing.assert_allclose(utility[sequences], expected[sequences], atol=1e-10)
    played = slice(tree.root, tree.end)
    assert utility[played] @ sequence_form[played] == pytest.approx(
      evaluate.evaluate(game, sequence_form).expected_values[player], abs=1e-9
    )


@every_kind
def test_bounds_hold_for_all_strategies(game):
  rng = np.random.default_rng(0)
  for player, tree in enumerate(game.treeplexes):
    found = game.payoff.infoset_bounds(game.treeplexes, player)
    assert found.shape == (tree.num_infosets,)
    for _ in range(8):
      # Pure strategies, nearly: they come closest.
      strategy = policies.behavioral_form(game, rng.random(game.end) ** 30)
      utility = aligned_zeros(game.end)
      game.payoff.gradient_into(player, policies.sequence_form(game, strategy), utility)
      for sequences, infosets in reversed(list(tree.infoset_groups())):
        best = utility[sequences].max(axis=0)
        np.add.at(utility, tree.parent[infosets], best)
        assert (np.abs(utility[sequences]).max(axis=0) <= found[infosets] + 1e-9).all()
    if game.num_players == 2 and game.end < 500:
      own, others, values = game.payoff.leaves(player)
      matrix = np.zeros((game.end, game.end))
      matrix[own, others[0]] = values
      norm = np.linalg.norm(matrix, ord=2)
      assert norm <= game.payoff.sensitivity(game.treeplexes, player) * (1 + 1e-9)


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_evaluation_takes_multiples_and_parts_alike(dtype):
  """Whatever a player's sequence form is multiplied by, and however the game is gone through."""
  values = []
  whole = _turn_endgame(partitioned=False)
  drawn = policies.behavioral_form(whole, _random_sequence_form(whole, 1))
  for game in (whole, _turn_endgame(partitioned=True)):
    sums = policies.sequence_form(game, game.from_actions(whole.to_actions(drawn)))
    for factor, tree in zip((3.0, 0.25), game.treeplexes, strict=True):
      sums[tree.root : tree.end] *= factor
    found = evaluate.evaluate(game, sums.astype(dtype), responses=True)
    values.append((found.expected_values, found.best_response_values))
    response = policies.sequence_form(game, found.best_responses)
    for player, tree in enumerate(game.treeplexes):
      mixed = policies.sequence_form(game, policies.behavioral_form(game, sums))
      mixed[tree.root : tree.end] = response[tree.root : tree.end]
      played = evaluate.evaluate(game, mixed).expected_values[player]
      assert played == pytest.approx(found.best_response_values[player], rel=1e-5, abs=1e-9)
  np.testing.assert_allclose(values[0], values[1], rtol=1e-9, atol=1e-9)
