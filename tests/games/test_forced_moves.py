"""Iterations without forced moves: the same numbers, and all infosets stay in policies."""

import numpy as np
import pyspiel
import pytest
import random_games
from hypothesis import given, settings

import spiel_cfr
from spiel_cfr import policies
from spiel_cfr._numba.arrays import aligned
from spiel_cfr.evaluation import evaluate

# Player A has no choice before, between and below two decisions, B none at all.
_CHAINS = """EFG 2 R "chains" { "A" "B" } ""
p "" 1 1 "" { "go" } 0
p "" 1 2 "" { "on" } 0
c "" 1 "" { "left" 1/4 "right" 3/4 } 0
p "" 2 1 "" { "wait" } 0
p "" 1 3 "" { "in" "out" } 0
p "" 1 4 "" { "stay" } 0
p "" 1 5 "" { "a" "b" "c" } 0
t "" 1 "" { 1 -1 }
t "" 2 "" { -2 2 }
t "" 3 "" { 5 -5 }
t "" 4 "" { 2 -2 }
p "" 1 6 "" { "only" } 0
p "" 2 2 "" { "shrug" } 0
t "" 5 "" { -7 7 }
"""
_SOLVERS = {
  "alternating": spiel_cfr.CFRPlusSolver,
  "simultaneous": lambda game: spiel_cfr.FullWidthSolver(
    game, spiel_cfr.RegretMatching(), alternating_updates=False
  ),
  "predictive": spiel_cfr.PCFRPlusSolver,
  "adaptive": spiel_cfr.AdaptiveOptimisticCFRSolver,
  "one player at a time": spiel_cfr.cfr.CFRBRSolver,
  "tapered": lambda game: spiel_cfr.FullWidthSolver(
    game, spiel_cfr.RegretMatching.discounted(), averaging=spiel_cfr.Averaging(2.0, tapered=True)
  ),
}


def check_forced(game, sequence_form):
  """Checks that sequence forms continue exactly through forced moves."""
  for tree in game.treeplexes:
    for sequences, infosets in tree.infoset_groups():
      above = sequence_form[tree.parent[infosets]]
      np.testing.assert_allclose(sequence_form[sequences].sum(axis=0), above, rtol=0, atol=1e-12)
      if len(sequences) == 1:
        np.testing.assert_array_equal(sequence_form[sequences[0]], above)


def check_same_numbers(game, make, iterations=3):
  ours, plain = make(game), make(random_games.visiting_all(game))
  for solver in (ours, plain):
    solver.run(iterations)
    solver.evaluate_and_update_policy()
  for name in ("average_sequence_form", "current_sequence_form"):
    found = getattr(ours, name)()
    np.testing.assert_allclose(found, getattr(plain, name)(), rtol=0, atol=1e-9)
    check_forced(game, found)
  np.testing.assert_allclose(
    ours.average_probabilities(), plain.average_probabilities(), rtol=0, atol=1e-9
  )
  assert ours.nash_conv() == pytest.approx(plain.nash_conv(), abs=1e-9)


@pytest.mark.parametrize("solver", _SOLVERS)
def test_chains_of_forced_moves(solver):
  game = spiel_cfr.compile_game(pyspiel.load_efg_game(_CHAINS))
  assert (len(game.decisions.groups), game.num_infosets) == (2, 8)
  check_same_numbers(game, _SOLVERS[solver], 5)


@pytest.mark.parametrize("solver", _SOLVERS)
@given(game=random_games.games(payoff_ties=False))
@settings(max_examples=12)
def test_random_games(solver, game):
  check_same_numbers(spiel_cfr.compile_game(game), _SOLVERS[solver])


@given(random_games.games())
@settings(max_examples=20)
def test_payoffs_are_those_of_the_game(game):
  compiled = spiel_cfr.compile_game(game)
  payoff, forced = compiled.decisions.payoff, compiled.decisions.forced
  counts = np.concatenate(compiled.num_actions)
  assert len(forced) == (counts == 1).sum()
  drawn = np.random.default_rng(len(counts)).random(compiled.end)
  played = policies.sequence_form(compiled, policies.behavioral_form(compiled, drawn))
  utility = np.zeros(compiled.end + 8)
  values = []
  for player, tree in enumerate(compiled.treeplexes):
    payoff.gradient_into(player, aligned(np.append(played, np.zeros(8))), utility)
    values.append(utility[tree.root : tree.end] @ played[tree.root : tree.end])
    assert not np.isin(payoff.leaves(player)[0], forced).any()
    assert not np.isin(payoff.leaves(player)[1], forced).any()
  assert values == pytest.approx(evaluate.evaluate(compiled, played).expected_values, abs=1e-12)


def test_filters_make_moves_forced_and_files_know_nothing_of_it(tmp_path):
  game = spiel_cfr.compile_game("leduc_poker", action_filter=call_in_the_end)
  assert len(game.decisions.forced) > 100
  check_same_numbers(game, spiel_cfr.DCFRSolver, 20)
  game.save(tmp_path / "game.npz")
  loaded = spiel_cfr.load_compiled_game(tmp_path / "game.npz")
  first, second = spiel_cfr.DCFRSolver(game), spiel_cfr.DCFRSolver(loaded)
  for solver in (first, second):
    solver.run(20)
  np.testing.assert_array_equal(first.average_probabilities(), second.average_probabilities())


def call_in_the_end(state, actions):
  return [1] if len(state.history()) > 5 else actions


def test_everybody_is_named():
  game = spiel_cfr.compile_game("liars_dice(dice_sides=3)")
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(10)
  forced = np.concatenate(game.num_actions) == 1
  assert forced.sum() == forced.size / 2 == len(game.decisions.forced)
  played = solver.average_policy().action_probability_array
  assert (played[forced].max(axis=1) == 1).all()
  for infostate, row in game.table_rows.items():
    if forced[row]:
      assert list(
        spiel_cfr.policies.open_spiel.to_dict(game, solver.average_probabilities())[
          infostate
        ].values()
      ) == [1.0]
