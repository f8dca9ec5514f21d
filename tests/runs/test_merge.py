"""The mean of policies in sequence form is at most as exploitable as their mean."""

from typing import Any

import numpy as np
import pytest
import random_games

import spiel_cfr
from spiel_cfr import errors, policies

GAMES = pytest.mark.parametrize("seed", range(4))


def solvers(game: Any, count: int) -> list[Any]:
  result = [spiel_cfr.ExternalSamplingSolver(game, seed=seed) for seed in range(count)]
  for solver in result:
    solver.run(30)
  return result


@GAMES
def test_exploitability_is_convex(seed: int) -> None:
  game = spiel_cfr.compile_game(random_games.random_game(seed, max_histories=300))
  runs = solvers(game, 5)
  averages = [run.average_policy() for run in runs]
  merged = spiel_cfr.runs.merge(game, averages)
  mean = np.mean([run.average_sequence_form() for run in runs], axis=0)
  found = policies.sequence_form(game, policies.from_policy(game, merged))
  np.testing.assert_allclose(found, mean, atol=1e-12)
  if game.is_two_player_constant_sum:
    worst = np.mean([run.exploitability() for run in runs])
    assert 0 < spiel_cfr.exploitability(game, merged) <= worst + 1e-12
  assert spiel_cfr.nash_conv(game, merged) > 0


def test_kinds_of_policies() -> None:
  game = spiel_cfr.compile_game("kuhn_poker")
  one, other = solvers(game, 2)
  tabular = other.tabular_average_policy()
  merged = spiel_cfr.runs.merge(game, [one.average_policy_dict(), tabular, tabular, tabular])
  expected = 0.25 * one.average_sequence_form() + 0.75 * other.average_sequence_form()
  found = policies.sequence_form(game, policies.from_policy(game, merged))
  np.testing.assert_allclose(found, expected, atol=1e-14)
  alone = spiel_cfr.runs.merge("kuhn_poker", [one.average_policy()])
  assert spiel_cfr.nash_conv(game, alone) == pytest.approx(one.nash_conv(), abs=1e-14)


def test_nothing_to_merge() -> None:
  with pytest.raises(errors.ArgumentError, match="at least one"):
    spiel_cfr.runs.merge("kuhn_poker", [])
