"""Gaps of correlated play, against OpenSpiel's on explicit mixtures, and against regrets."""

import copy

import numpy as np
import pyspiel
import pytest
import random_games
from composition.forms import FORMS

import spiel_cfr
from spiel_cfr import RegretMatching, errors

GAMES = {
  "kuhn, 3 players": lambda: pyspiel.load_game("kuhn_poker(players=3)"),
  "random, 3 players, general-sum": lambda: random_games.random_game(
    6, num_players=3, zero_sum=False, max_histories=150
  ),
  "sheriff": lambda: pyspiel.load_game(
    "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=2,max_items=3,num_rounds=1,sheriff_penalty=1.0)"
  ),
}


def tracked(game, minimizer=None, power=0.0):
  return spiel_cfr.FullWidthSolver(
    game,
    minimizer or RegretMatching(),
    alternating_updates=False,
    averaging=spiel_cfr.Averaging(power, correlated=True),
  )


@pytest.mark.parametrize("power", [0.0, 2.0])
@pytest.mark.parametrize("name", GAMES)
def test_the_gap_is_that_of_the_mixture_of_all_iterates(name, power):
  source = GAMES[name]()
  solver = tracked(source, RegretMatching.plus(), power)
  mixture, weights = [], [float(t) ** power for t in range(1, 8)]
  for weight in weights:
    mixture.append((weight / sum(weights), solver.tabular_current_policy()))
    solver.run(1)
  found = spiel_cfr.correlated.coarse_correlated_gap(solver)
  expected = pyspiel.cce_dist(source, mixture)
  np.testing.assert_allclose(
    np.maximum(found.player_improvements, 0), expected.deviation_incentives, atol=1e-12
  )
  assert found.gap == pytest.approx(expected.dist_value, abs=1e-12)
  np.testing.assert_allclose(found.expected_values, expected.on_policy_values, atol=1e-12)
  assert "CorrelatedGap" in repr(found)
  assert found.gap > 1e-3


@pytest.mark.parametrize("form", [form for form in FORMS if not form.is_large], ids=str)
def test_forms_of_games(form):
  if form.loses:
    with pytest.raises(errors.AbstractionError, match="a lossless abstraction"):
      tracked(form.compiled)
    return
  solver = tracked(form.compiled)
  solver.run(20)
  found = spiel_cfr.correlated.coarse_correlated_gap(solver)
  listed = tracked(form.enumerated)
  listed.run(20)
  expected = spiel_cfr.correlated.coarse_correlated_gap(listed)
  tolerance = 100 * form.tolerance * form.scale
  np.testing.assert_allclose(
    found.player_improvements, expected.player_improvements, atol=tolerance
  )
  if form.enumerated.is_two_player_constant_sum:
    assert sum(found.player_improvements) == pytest.approx(solver.nash_conv(), abs=tolerance)
  duplicate = copy.copy(solver)
  duplicate.run(5)
  solver.run(5)
  again = spiel_cfr.correlated.coarse_correlated_gap(duplicate)
  assert again.gap == spiel_cfr.correlated.coarse_correlated_gap(solver).gap


def test_it_falls_where_nash_conv_of_the_product_does_not():
  """Shapley's game, slightly off its symmetry: play cycles and stays away from the only equilibrium."""
  solver = tracked(
    pyspiel.create_matrix_game(
      [[0.0, 1.1, 0.0], [0, 0, 1], [1, 0, 0]], [[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]
    )
  )
  solver.run(10_000)
  assert spiel_cfr.correlated.coarse_correlated_gap(solver).gap < 0.002
  assert solver.nash_conv() > 0.2


@pytest.mark.parametrize(("alternating", "counted"), [(True, "before"), (False, "after")])
def test_play_that_has_no_correlation(alternating, counted):
  averaging = spiel_cfr.Averaging(counted=counted, correlated=True)
  with pytest.raises(errors.ArgumentError, match="alternating_updates=False"):
    spiel_cfr.FullWidthSolver(
      "kuhn_poker", RegretMatching(), alternating_updates=alternating, averaging=averaging
    )


def test_solvers_that_keep_nothing():
  for solver in (
    spiel_cfr.CFRSolver("kuhn_poker"),
    spiel_cfr.first_order.KOMWUSolver("kuhn_poker"),
  ):
    with pytest.raises(errors.ArgumentError, match="correlated=True"):
      spiel_cfr.correlated.coarse_correlated_gap(solver)
  with pytest.raises(errors.ArgumentError, match="Run it first"):
    spiel_cfr.correlated.coarse_correlated_gap(tracked("kuhn_poker"))
