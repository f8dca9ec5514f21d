"""Values and strategies of linear programs, against theory, best responses, and solvers that iterate."""

import numpy as np
import pyspiel
import pytest
import random_games
import scipy.sparse
import typed_games
from composition.forms import FORMS

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr.evaluation import linear_program
from spiel_cfr.evaluation.sequence_form_matrices import strategy_constraints
from spiel_cfr.games import compile_vector_game

GOOFSPIEL = "goofspiel(imp_info=True,num_cards=5,points_order=descending)"
BATTLESHIP = (
  "battleship(board_height=2,board_width=3,ship_sizes=[2],ship_values=[2],num_shots=2,"
  "allow_repeated_shots=False)"
)
# Kuhn's is theory, that of Leduc what Koller, Megiddo and von Stengel's program gives elsewhere.
VALUES = {
  "kuhn_poker": -1 / 18,
  "leduc_poker": -0.085606424078,
  "liars_dice(dice_sides=4)": 1 / 16,
  GOOFSPIEL: 0.0,
  BATTLESHIP: 2 / 49,
}


@pytest.mark.quick(except_for=["game4-interior"])
@pytest.mark.parametrize("method", ["simplex", "interior"])
@pytest.mark.parametrize("game", VALUES)
def test_values(game, method):
  found = spiel_cfr.solve_lp(game, method)
  assert found.value == pytest.approx(VALUES[game], abs=1e-12)
  assert -1e-14 < found.nash_conv < 1e-13
  assert spiel_cfr.nash_conv(game, found.policy) == pytest.approx(found.nash_conv, abs=1e-15)
  assert method in repr(found)


@pytest.mark.slow
def test_liars_dice_of_five_sides():
  assert spiel_cfr.solve_lp("liars_dice(dice_sides=5)").value == pytest.approx(1 / 125, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_random_games(seed):
  ties, chance = bool(seed % 3), bool(seed % 2)
  game = random_games.random_game(seed, payoff_ties=ties, chance_root=chance)
  found = spiel_cfr.solve_lp(game)
  scale = max(map(abs, found.compiled_game.payoff_range))
  assert found.nash_conv < 1e-12 * scale
  solution = spiel_cfr.solve(game, exploitability=1e-7 * scale, seconds=30)
  low, high = solution.value_bounds
  assert low - 1e-12 * scale < found.value < high + 1e-12 * scale


@pytest.mark.parametrize("factor", [1e-7, 1e7])
def test_units_do_not_matter(factor):
  rows = factor * np.array([[0.0, -1.0, 2.0], [1.0, 0.0, -1.0], [-2.0, 1.0, 0.0]])
  game = pyspiel.create_matrix_game(rows.tolist(), (-rows).tolist())
  found = spiel_cfr.solve_lp(game)
  assert found.value == pytest.approx(0, abs=1e-12 * factor)
  assert next(iter(found.policy_dict().values())) == pytest.approx({0: 0.25, 1: 0.5, 2: 0.25})


def test_constant_sums_that_are_not_zero():
  game = pyspiel.create_matrix_game([[3.0, 1.0], [0.0, 2.0]], [[2.0, 4.0], [5.0, 3.0]])
  found = spiel_cfr.solve_lp(game)
  assert found.value == pytest.approx(1.5)
  assert found.nash_conv < 1e-12


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_forms_of_games(form):
  if not form.enumerated.is_two_player_constant_sum:
    with pytest.raises(errors.UnsupportedGameError, match="Use nash_conv"):
      spiel_cfr.solve_lp(form.compiled)
    return
  if form.compiled.shared_infosets is not None:
    with pytest.raises(errors.AbstractionError, match="or CFRSolver"):
      spiel_cfr.solve_lp(form.compiled)
    return
  found = spiel_cfr.solve_lp(form.compiled)
  if form.loses:
    # It is the value of the abstraction, and says what it could be sure of there.
    assert found.nash_conv == pytest.approx(0, abs=1e-10 * form.scale)
    return
  expected = spiel_cfr.solve_lp(form.enumerated)
  assert found.value == pytest.approx(expected.value, abs=1e-10 * form.scale)
  on_enumerated = spiel_cfr.nash_conv(form.enumerated, found.policy_dict())
  assert on_enumerated == pytest.approx(0, abs=1e-10 * form.scale)


@pytest.mark.parametrize("seed", [3, 9])
def test_both_players_matrices_are_one_where_there_are_more_than_eight_types(seed):
  game = compile_vector_game(typed_games.TypedGame(seed))
  assert max(game.tree.deals.num_types) > 8
  own, other = (spiel_cfr.evaluation.payoff_matrix(game, player) for player in (0, 1))
  assert abs(own + other).max() <= 1e-12
  assert spiel_cfr.solve_lp(game).nash_conv <= 1e-9


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_matrices_equal_the_arrays(form):
  game, rng = form.compiled, np.random.default_rng(0)
  sums = rng.random(game.end)
  probabilities = policies.behavioral_form(game, sums)
  reach = policies.sequence_form(game, probabilities)
  strategies = []
  for player in range(game.num_players):
    matrix = spiel_cfr.evaluation.constraint_matrix(game, player)
    strategies.append(reach[spiel_cfr.evaluation.sequences(game, player)])
    right = matrix @ strategies[-1]
    assert matrix.shape == (1 + game.treeplexes[player].num_infosets, len(strategies[-1]))
    np.testing.assert_allclose(right, np.eye(len(right))[0], atol=1e-12)
  if game.num_players > 2:
    with pytest.raises(errors.UnsupportedGameError, match="are not a matrix"):
      spiel_cfr.evaluation.payoff_matrix(game)
    return
  expected = spiel_cfr.evaluation.evaluate.evaluate(game, reach).expected_values
  for player in (0, 1):
    payoffs = spiel_cfr.evaluation.payoff_matrix(game, player)
    found = strategies[0] @ payoffs @ strategies[1]
    assert found == pytest.approx(expected[player], abs=1e-12 * form.scale)


def test_methods_have_names():
  with pytest.raises(errors.ArgumentError, match="'simplex', 'interior'"):
    spiel_cfr.solve_lp("kuhn_poker", "ellipsoid")


def test_constraints_that_contradict_each_other_are_refused():
  one = scipy.sparse.csr_matrix([[1.0]])
  constraints = strategy_constraints(one, num_free=0)
  assert linear_program.minimize(np.ones(1), -one, constraints).x.tolist() == [1.0]
  with pytest.raises(errors.InfeasibleError, match="No variables"):
    linear_program.minimize(np.ones(1), one, constraints)
