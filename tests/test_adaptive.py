"""Adaptive optimistic CFR: certified averages and restarts."""

import numpy as np
import pytest
import random_games

import spiel_cfr
from spiel_cfr import errors


def _certified(game):
  return spiel_cfr.AdaptiveOptimisticCFRSolver(game, average="certified")


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "kuhn_poker(players=3)"])
def test_certified_strategies_are_no_worse_than_current_ones_and_averages(name):
  solver = _certified(name)
  seen = []
  for iterations in (3, 20, 100, 177):
    solver.run(iterations)
    current = spiel_cfr.nash_conv(solver.compiled_game, solver.current_policy())
    seen.append(current)
    assert solver.nash_conv() <= min(seen[-1], np.inf) + 1e-12
    by_policy = spiel_cfr.nash_conv(solver.compiled_game, solver.average_policy())
    assert by_policy == pytest.approx(solver.nash_conv(), abs=1e-12)


def test_what_was_certified_at_a_check_is_kept():
  solver = _certified("leduc_poker")
  best = np.inf
  for _ in range(300):
    solver.evaluate_and_update_policy()
    kept = float(solver._best_scores.sum())
    assert kept <= best
    best = kept
    assert solver.nash_conv() <= best + 1e-12


def test_each_player_keeps_its_own_best():
  """In constant-sum games a strategy's worst case has nothing to do with the other strategy."""
  solver = _certified("leduc_poker")
  solver.run(500)
  values = spiel_cfr.evaluate.evaluate(solver.compiled_game, solver._best).best_response_values
  assert values[::-1] == pytest.approx(solver._best_scores, abs=1e-12)


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
def test_one_run_is_many_steps(name):
  one, many = _certified(name), _certified(name)
  one.run(120)
  for _ in range(120):
    many.evaluate_and_update_policy()
    many.nash_conv()  # Looking must not change the run.
  assert (one.current_probabilities() == many.current_probabilities()).all()
  assert (one.average_probabilities() == many.average_probabilities()).all()


def test_restarts_make_convergence_linear():
  """Without them the average would be the bottleneck, at 1e-7 or so."""
  solver = _certified("liars_dice(dice_sides=4)")
  solver.run(400)
  assert solver.exploitability() < 1e-12
  assert solver._restart_iteration > 0


def test_restart_keeps_current_strategies_where_the_certified_ones_do_not_go():
  solver = _certified("kuhn_poker")
  solver.run(3)
  before = solver.current_probabilities()
  game = solver.compiled_game
  for player, tree in enumerate(game.treeplexes):
    solver._best[tree.root] = 1.0
    for sequences, infosets in tree.blocks():
      solver._best[sequences[-1]] = solver._best[tree.parent[infosets]]
      solver._best[sequences[:-1]] = 0.0
    solver._best_scores[player] = 1e-9
  solver._restart_if_better()
  after = solver.current_probabilities()
  untouched = 0
  for tree in game.treeplexes:
    for sequences, infosets in tree.blocks():
      reached = solver._best[tree.parent[infosets]] > 0
      assert (after[sequences[-1]][reached] == 1).all()
      assert (after[sequences][:, ~reached] == before[sequences][:, ~reached]).all()
      untouched += int((~reached).sum())
  assert untouched > 0


@pytest.mark.parametrize("seed", range(4))
def test_random_games_are_solved(seed):
  game = spiel_cfr.compile_game(random_games.random_game(seed))
  solver = _certified(game)
  solver.run(2000)
  assert solver.nash_conv() < 1e-5 * np.ptp(game.payoff_range)


def test_general_sum_games_run():
  solver = _certified(random_games.random_game(3, num_players=3, zero_sum=False))
  solver.run(100)
  uniform = _certified(solver.compiled_game).nash_conv()
  assert 0 <= solver.nash_conv() <= uniform


def test_unknown_average_is_named():
  with pytest.raises(errors.ArgumentError, match="'power', 'certified'"):
    spiel_cfr.AdaptiveOptimisticCFRSolver("kuhn_poker", average="best")


@pytest.mark.parametrize("average", ["power", "certified"])
def test_checkpoints_go_on_where_they_were(average, tmp_path):
  solver = spiel_cfr.AdaptiveOptimisticCFRSolver("kuhn_poker", average=average)
  solver.run(50)
  solver.save(tmp_path / "checkpoint.npz")
  loaded = spiel_cfr.AdaptiveOptimisticCFRSolver.load(tmp_path / "checkpoint.npz", "kuhn_poker")
  solver.run(60)
  loaded.run(60)
  assert (solver.current_probabilities() == loaded.current_probabilities()).all()
  assert (solver.average_probabilities() == loaded.average_probabilities()).all()
