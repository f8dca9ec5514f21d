"""Adaptive optimistic CFR: certified averages, restarts, the safeguard."""

import hypothesis
import numpy as np
import pytest
import random_games
from block_driver import run_kernel
from hypothesis import strategies as st

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr._numba.simd import LANES
from spiel_cfr.regret_minimizers import adaptive_mirror_descent


def _certified(game):
  return spiel_cfr.AdaptiveOptimisticCFRSolver(game, average="certified")


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "kuhn_poker(players=3)"])
def test_certified_strategies_are_no_worse_than_current_ones_and_averages(name):
  solver = _certified(name)
  for iterations in (3, 20, 100, 177):
    solver.run(iterations)
    current = spiel_cfr.nash_conv(solver.compiled_game, solver.current_policy())
    assert solver.nash_conv() <= current + 1e-12
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
  values = spiel_cfr.evaluation.evaluate.evaluate(
    solver.compiled_game, solver._best
  ).best_response_values
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
  assert solver._origin > 0


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
  loaded = spiel_cfr.Solver.load(tmp_path / "checkpoint.npz", "kuhn_poker")
  solver.run(60)
  loaded.run(60)
  assert (solver.current_probabilities() == loaded.current_probabilities()).all()
  assert (solver.average_probabilities() == loaded.average_probabilities()).all()


_ACTIONS = 3


def _face(minimizer, adversary, rounds, after):
  """Plays one infoset against an adversary that also makes the predictions.

  Args:
    minimizer: what plays.
    adversary: (round, strategy) -> (utilities, prediction).
    rounds: how many.
    after: whether the strategies after their update count, under the predictions, instead of those before.

  Returns:
    Of every round, the norm of the positive regrets, and the root of the sum of squared regrets.
  """
  game = spiel_cfr.compile_game("kuhn_poker")
  rows = minimizer.parameters(np.arange(1, rounds + 1), game)
  state = np.zeros((minimizer.state_lines, _ACTIONS * LANES))
  local = np.zeros((minimizer.local_lines, 1))
  if minimizer.local_lines == 4:
    local[3] = after
  strategy = np.full(_ACTIONS * LANES, 1 / _ACTIONS)
  regret, squares, result = np.zeros(_ACTIONS), 0.0, []
  for t in range(rounds):
    played = strategy[::LANES].copy()
    utility, prediction = (np.array(vector, float) for vector in adversary(t, played))
    for kernel, vector in ((minimizer.observe, utility), (minimizer.predict, prediction)):
      run_kernel(kernel, 1, strategy, np.repeat(vector, LANES), state, local, rows[t])
    assert strategy[::LANES].sum() == pytest.approx(1)
    seen = utility
    if after:
      seen, played = prediction, strategy[::LANES]
    added = seen - played @ seen
    regret += added
    squares += added @ added
    result.append((np.linalg.norm(np.maximum(regret, 0)), np.sqrt(squares)))
  return np.array(result)


def _deceiver(t, _):
  """Every prediction is right, so that nothing is ever learnt from errors."""
  best = np.array([1.0, 0.0, 0.0])
  return (best if t else 0 * best), best


def test_an_adversary_that_the_rule_alone_loses_to_triggers_the_safeguard():
  rounds = 400
  alone = _face(adaptive_mirror_descent.AdaptiveOptimisticDescent(), _deceiver, rounds, after=False)
  assert alone[-1, 0] > 0.6 * rounds
  limit = 2.0
  guarded = _face(
    adaptive_mirror_descent.SafeguardedDescent(limit=limit), _deceiver, rounds, after=False
  )
  assert (guarded[:, 0] <= (limit + 1) * guarded[:, 1]).all()
  assert guarded[-1, 0] < 0.05 * rounds


@hypothesis.given(
  st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([1.0, 2.0, 5.0]), st.floats(0.0, 1.0)
)
def test_regret_never_passes_the_bound_of_the_safeguard(seed, after, limit, spite):
  rng = np.random.default_rng(seed)

  def adversary(_, strategy):
    utility, prediction = rng.normal(size=(2, _ACTIONS)) * 10.0 ** rng.integers(-3, 4)
    if rng.random() < spite:
      utility = -strategy * 10.0 ** rng.integers(-3, 4)
    return utility, prediction

  regrets = _face(adaptive_mirror_descent.SafeguardedDescent(limit=limit), adversary, 60, after)
  assert (regrets[:, 0] <= (limit + 1) * regrets[:, 1] * (1 + 1e-9)).all()


def test_a_safeguard_that_is_never_needed_changes_nothing():
  for average in ("power", "certified"):
    plain, guarded = (
      spiel_cfr.AdaptiveOptimisticCFRSolver("leduc_poker", average=average, safeguard=limit)
      for limit in (None, 100.0)
    )
    plain.run(300)
    guarded.run(300)
    assert guarded.num_handed_over == 0
    assert (plain.current_probabilities() == guarded.current_probabilities()).all()


def test_safeguard_follows_the_weighted_regrets_of_the_average():
  """Root regrets of the weighted averages: what the gap is made of."""
  solver = spiel_cfr.AdaptiveOptimisticCFRSolver("kuhn_poker", safeguard=100.0)
  rounds = 30
  game = solver.compiled_game
  expected = np.zeros(game.end)
  for t in range(1, rounds + 1):
    before = solver.current_probabilities(), solver.current_sequence_form()
    solver.evaluate_and_update_policy()
    after = solver.current_probabilities(), solver.current_sequence_form()
    expected *= ((t - 1) / t) ** 2
    for player, tree in enumerate(game.treeplexes):
      # Player 0 sees player 1's strategy before its update, player 1 sees player 0's after it.
      strategy, seen = (after[0], before[1]) if player == 0 else (before[0], after[1])
      utility = np.zeros(game.end)
      game.payoff.gradient_into(player, seen, utility)
      for sequences, infosets in reversed(list(tree.blocks())):
        value = (strategy[sequences] * utility[sequences]).sum(axis=0)
        np.add.at(utility, tree.parent[infosets], value)
        expected[sequences] += utility[sequences] - value
  assert solver.state.regrets[2] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("limit", [0.5, -1.0, float("nan"), float("inf")])
def test_safeguard_below_regret_matchings_own_bound_is_refused(limit):
  with pytest.raises(errors.ArgumentError, match="limit"):
    spiel_cfr.AdaptiveOptimisticCFRSolver("kuhn_poker", safeguard=limit)
