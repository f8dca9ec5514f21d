"""Evaluation equals OpenSpiel's own for any policy, any number of players, zero-sum or not."""

import numpy as np
import poker_games
import pyspiel
import pytest
import random_games
from hypothesis import given, settings
from hypothesis import strategies as st
from open_spiel.python.algorithms import best_response, expected_game_score
from open_spiel.python.algorithms import exploitability as open_spiel

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr.evaluation import evaluate

NAMES = [
  "kuhn_poker",
  "kuhn_poker(players=3)",
  "leduc_poker",
  "tiny_hanabi",
  "matching_pennies_3p",
  "matrix_pd",
  "goofspiel(num_cards=3,imp_info=True)",
  "liars_dice(dice_sides=3)",
  "sheriff(max_items=2,max_bribe=2,num_rounds=1)",
  "first_sealed_auction(players=3,max_value=3)",
]


LEDUC_VALUE = -0.085606424078


def random_policy(compiled, seed, pure=0.5):
  """Returns a random policy that plays some infosets purely, so that others are never reached."""
  generator = np.random.default_rng(seed)
  mixed = policies.behavioral_form(compiled, generator.random(compiled.end))
  for treeplex in compiled.treeplexes:
    for sequences, _ in treeplex.infoset_groups():
      actions, infosets = sequences.shape
      chosen = generator.integers(actions, size=infosets)
      deterministic = np.arange(actions)[:, None] == chosen
      mixed[sequences] = np.where(
        generator.random(infosets) < pure, deterministic, mixed[sequences]
      )
  return policies.CompiledTabularPolicy(compiled, mixed)


def check(compiled, played):
  game = compiled.game
  expected = open_spiel.nash_conv(game, played, return_only_nash_conv=False)
  found = spiel_cfr.nash_conv(compiled, played, return_only_nash_conv=False)
  assert found.nash_conv == pytest.approx(expected.nash_conv, abs=1e-10)
  assert found.player_improvements == pytest.approx(expected.player_improvements, abs=1e-10)
  assert spiel_cfr.nash_conv(compiled, played) == found.nash_conv
  values = expected_game_score.policy_value(
    game.new_initial_state(), [played] * compiled.num_players
  )
  assert spiel_cfr.expected_values(compiled, played) == pytest.approx(values, abs=1e-10)
  for player in range(compiled.num_players):
    response = spiel_cfr.best_response(compiled, played, player)
    theirs = best_response.BestResponsePolicy(game, player, played)
    value = theirs.value(game.new_initial_state())
    assert response.value == pytest.approx(value, abs=1e-10)
    # The response must really get that value, whichever of several best actions it takes.
    table = policies.to_dict(compiled, policies.from_policy(compiled, played))
    own = {infostate: {action: 1.0} for infostate, action in response.policy.items()}
    assert list(own) == compiled.infostates[player]
    improved = spiel_cfr.expected_values(compiled, table | own)
    assert improved[player] == pytest.approx(response.value, abs=1e-10)


@pytest.mark.quick(except_for=["leduc_poker"])
@pytest.mark.parametrize("name", NAMES)
def test_games(name):
  compiled = spiel_cfr.compile_game(name)
  check(compiled, random_policy(compiled, seed=1))
  check(compiled, policies.CompiledTabularPolicy(compiled, policies.uniform(compiled)))


@given(random_games.games(zero_sum=st.booleans()), st.integers(0, 100))
@settings(max_examples=80)
def test_random_games(game, seed):
  compiled = spiel_cfr.compile_game(game)
  check(compiled, random_policy(compiled, seed))


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "liars_dice(dice_sides=3)"])
def test_exploitability(name):
  compiled = spiel_cfr.compile_game(name)
  played = random_policy(compiled, seed=2)
  expected = open_spiel.exploitability(compiled.game, played)
  assert spiel_cfr.exploitability(compiled, played) == pytest.approx(expected, abs=1e-10)
  assert spiel_cfr.exploitability(name, played) == pytest.approx(expected, abs=1e-10)
  in_cpp = pyspiel.exploitability(
    compiled.game, policies.to_pyspiel(compiled, policies.from_policy(compiled, played))
  )
  assert spiel_cfr.exploitability(compiled, played) == pytest.approx(in_cpp, abs=1e-10)


def test_constant_sum():
  game = pyspiel.load_efg_game(
    'EFG 2 R "constant" { "A" "B" } ""\n'
    'p "" 1 1 "" { "l" "r" } 0\n'
    'p "" 2 1 "" { "l" "r" } 0\nt "" 1 "" { 4 6 }\nt "" 2 "" { 9 1 }\n'
    'p "" 2 1 "" { "l" "r" } 0\nt "" 3 "" { 7 3 }\nt "" 4 "" { 0 10 }\n'
  )
  compiled = spiel_cfr.compile_game(game)
  assert compiled.constant_sum == 10
  played = policies.CompiledTabularPolicy(compiled, policies.uniform(compiled))
  assert spiel_cfr.exploitability(compiled, played) == pytest.approx(
    open_spiel.exploitability(game, played), abs=1e-12
  )


@pytest.mark.parametrize("name", ["kuhn_poker(players=3)", "matrix_pd", "tiny_hanabi"])
def test_exploitability_needs_two_players_and_constant_sum(name):
  compiled = spiel_cfr.compile_game(name)
  with pytest.raises(errors.UnsupportedGameError, match="nash_conv"):
    spiel_cfr.exploitability(
      compiled, policies.CompiledTabularPolicy(compiled, policies.uniform(compiled))
    )
  with pytest.raises(errors.UnsupportedGameError, match="nash_conv"):
    spiel_cfr.CFRSolver(compiled).exploitability()


@pytest.mark.parametrize("player", [-1, 2, 0.5, "first", None])
def test_best_response_of_a_player_without_moves(player):
  compiled = spiel_cfr.compile_game("kuhn_poker")
  with pytest.raises(errors.ArgumentError, match="player"):
    spiel_cfr.best_response(compiled, random_policy(compiled, 0), player)


def test_value_of_kuhn_poker():
  solver = spiel_cfr.CFRPlusSolver("kuhn_poker")
  solver.run(20_000)
  assert solver.exploitability() < 1e-5
  value = spiel_cfr.expected_values(solver.compiled_game, solver.average_policy())
  assert value == pytest.approx([-1 / 18, 1 / 18], abs=1e-5)


def test_value_of_leduc_poker():
  solver = spiel_cfr.CFRPlusSolver("leduc_poker")
  solver.run(20_000)
  exploitability = solver.exploitability()
  assert exploitability < 1e-5
  value = spiel_cfr.expected_values(solver.compiled_game, solver.average_policy())
  # The value by OpenSpiel's sequence_form_lp; an equilibrium is as far from it as a player can still gain.
  assert value == pytest.approx([LEDUC_VALUE, -LEDUC_VALUE], abs=2 * exploitability)


@pytest.mark.parametrize(
  "make",
  [
    lambda: spiel_cfr.compile_game("kuhn_poker"),
    lambda: spiel_cfr.poker.compile_public_game(poker_games.UNIVERSAL_POKER[0], partitioned=True),
  ],
)
def test_sums_with_rounding_errors_have_the_value_of_their_policy(make):
  """Sums of a million iterations: excess probability at an infoset counted as a gain or a loss."""
  solver = spiel_cfr.RestartedCFRSolver(make())
  solver.run(3000)
  game, exact = solver.compiled_game, solver.average_sequence_form()
  sums = 1e6 * exact * (1 + 1e-10 * np.random.default_rng(1).uniform(-1, 1, game.end))
  played = policies.forms.sequence_form(game, policies.behavioral_form(game, sums))
  expected = evaluate.evaluate(game, played).nash_conv
  for responses in (False, True):
    found = evaluate.evaluate(game, sums, responses=responses)
    assert found.nash_conv == pytest.approx(expected, abs=1e-14)
  assert abs(solver.nash_conv()) < 1e-14


def test_an_evaluation_that_failed_leaves_nothing_to_the_next():
  """Its arrays may hold numbers that are not finite, or belong to threads that still run."""
  game = spiel_cfr.games.compile_vector_game("liars_dice(dice_sides=3)", partitioned=True)
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(5)
  sums, expected = solver.sums(), solver.nash_conv()
  broken = sums.copy()
  broken[1:] = np.inf
  with pytest.raises(errors.NotFiniteError):
    evaluate.evaluate(game, broken)
  assert evaluate.evaluate(game, sums).nash_conv == expected


def test_an_interrupted_evaluation_leaves_nothing_to_the_next(monkeypatch):
  game = spiel_cfr.compile_game("kuhn_poker")
  uniform = spiel_cfr.policies.sequence_form(game, spiel_cfr.policies.uniform(game))
  expected = evaluate.evaluate(game, uniform)
  (idle,) = game.idle_evaluators

  def interrupted(*arguments):
    raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(type(idle), "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
      evaluate.evaluate(game, uniform)
  assert game.idle_evaluators == []
  assert evaluate.evaluate(game, uniform).nash_conv == expected.nash_conv
