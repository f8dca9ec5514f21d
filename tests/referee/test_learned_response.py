"""Lower bounds on NashConv by learned responses: they hold, and are close to the exact number where that is known."""

import numpy as np
import pyspiel
import pytest
from scipy import stats

import spiel_cfr
from spiel_cfr.referee import nash_conv_lower_bound


def gain(compiled, policy, result):
  """Returns what the responses gain, exactly."""
  own = spiel_cfr.expected_values(compiled, policy)
  total = 0.0
  for player in result.players:
    seats = [policy] * compiled.num_players
    seats[player] = result.response
    total += spiel_cfr.expected_values(compiled, seats)[player] - own[player]
  return total


def trained(name, iterations=3):
  compiled = spiel_cfr.compile_game(name)
  solver = spiel_cfr.CFRSolver(compiled)
  solver.run(iterations)
  return compiled, solver.average_policy()


def test_the_bound_holds_as_often_as_it_says():
  """Over 200 seeds, against what the very response gains; and the fresh games know nothing of those learned from.

  The responses come of so few games that what those promise is far too much.
  """
  game = pyspiel.load_game("kuhn_poker")
  compiled, policy = trained(game, 20)
  exact = spiel_cfr.nash_conv(compiled, policy)
  missed, outside, apart = 0, 0, []
  for seed in range(200):
    result = nash_conv_lower_bound(
      game, policy, episodes=20, evaluation_episodes=30, confidence=0.8, seed=seed
    )
    true = gain(compiled, policy, result)
    assert true <= exact + 1e-12
    missed += result.bound > max(true, 0.0)
    outside += not result.interval[0] <= true <= result.interval[1]
    apart.append(result.estimate - true)
  allowed = stats.binom.ppf(0.999, 200, 0.2)
  assert missed <= allowed
  assert outside <= allowed
  assert abs(np.mean(apart)) < 4 * np.std(apart) / np.sqrt(200)


@pytest.mark.parametrize(
  ("name", "share"),
  [
    ("kuhn_poker", 0.9),
    ("kuhn_poker(players=3)", 0.8),
    ("leduc_poker", 0.5),
    ("goofspiel(num_cards=3,imp_info=True)", 0.8),
  ],
)
def test_much_is_found(name, share):
  compiled, policy = trained(name, 2)
  exact = spiel_cfr.nash_conv(compiled, policy)
  result = nash_conv_lower_bound(compiled, policy, episodes=3000, evaluation_episodes=1000, seed=1)
  true = gain(compiled, policy, result)
  assert share * exact < true <= exact + 1e-12
  assert 0 < result.bound < result.estimate < result.interval[1]
  assert result.interval[0] < true < result.interval[1]
