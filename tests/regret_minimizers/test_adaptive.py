"""Adaptive optimistic mirror descent in whole games."""

import numpy as np
import pytest
import random_games

import spiel_cfr


@pytest.mark.parametrize("seed", range(4))
def test_random_games_are_solved(seed):
  game = spiel_cfr.compile_game(random_games.random_game(seed))
  solver = spiel_cfr.AdaptiveOptimisticCFRSolver(game)
  solver.run(2000)
  assert solver.nash_conv() < 1e-5 * np.ptp(game.payoff_range)


def test_averages_are_of_strategies_that_the_other_player_faced():
  """Strategies of an iteration: the first player's after its update, the last player's before."""
  solver = spiel_cfr.AdaptiveOptimisticCFRSolver("leduc_poker", gamma=2.0)
  game, sums = solver.compiled_game, 0.0
  own = slice(game.treeplexes[1].root, None)
  for t in range(1, 31):
    before = solver.current_sequence_form()
    solver.run(1)
    played = solver.current_sequence_form()
    played[own] = before[own]
    sums = sums + t**2 * played
  np.testing.assert_allclose(solver.average_sequence_form(), sums / sums[0], atol=1e-12)


def test_checkpoints_go_on_where_they_were(tmp_path):
  solver = spiel_cfr.AdaptiveOptimisticCFRSolver("kuhn_poker")
  solver.run(50)
  solver.save(tmp_path / "checkpoint.npz")
  loaded = spiel_cfr.Solver.load(tmp_path / "checkpoint.npz", "kuhn_poker")
  solver.run(60)
  loaded.run(60)
  assert (solver.current_probabilities() == loaded.current_probabilities()).all()
  assert (solver.average_probabilities() == loaded.average_probabilities()).all()
