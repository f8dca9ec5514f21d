"""Average policies converge, as fast as those of OpenSpiel's solvers."""

from typing import Any

import numpy as np
import pyspiel
import pytest
import random_games
import samplers
from rotation import rotated

import spiel_cfr

CONVERGENCE = {
  "external": 20_000,
  "external with baseline": 20_000,
  "full average": 20_000,
  "importance": 20_000,
  "regret matching+": 20_000,
  "outcome": 300_000,
  "outcome with baseline": 300_000,
  "discounted": 300_000,
  "hedge": 20_000,
  "hedge by outcomes": 300_000,
  "chance": 5_000,
  "average strategy": 20_000,
}


@rotated(
  "game,name",
  ["kuhn_poker", "kuhn_poker(players=3)", "leduc_poker", "random 5", "random 6", "random 7"],
  list(CONVERGENCE),
)
def test_average_policies_converge(game: str, name: str) -> None:
  random = game.startswith("random")
  compiled = spiel_cfr.compile_game(
    random_games.random_game(int(game[-1])) if random else pyspiel.load_game(game)
  )
  solver = samplers.VARIANTS[name](compiled, seed=0)
  start = solver.nash_conv()
  solver.run(CONVERGENCE[name])
  assert solver.nash_conv() < (0.25 if game == "leduc_poker" else 0.1) * start


@pytest.mark.slow
@pytest.mark.parametrize(
  ("ours", "theirs"),
  [
    (spiel_cfr.ExternalSamplingSolver, pyspiel.ExternalSamplingMCCFRSolver),
    (
      samplers.make(spiel_cfr.ExternalSamplingSolver, average_type=samplers.FULL),
      lambda game, seed: pyspiel.ExternalSamplingMCCFRSolver(
        game, seed, pyspiel.MCCFRAverageType.FULL
      ),
    ),
    (
      spiel_cfr.OutcomeSamplingSolver,
      lambda game, seed: pyspiel.OutcomeSamplingMCCFRSolver(game, 0.6, seed),
    ),
  ],
  ids=["external", "full", "outcome"],
)
def test_converges_as_fast_as_open_spiel(ours: Any, theirs: Any) -> None:
  compiled = spiel_cfr.compile_game("leduc_poker")
  found: list[tuple[float, float]] = []
  for seed in range(1, 17):
    solver, other = ours(compiled, seed=seed), theirs(compiled.game, seed)
    solver.run(1000)
    for _ in range(1000):
      other.run_iteration()
    found.append((solver.nash_conv(), spiel_cfr.nash_conv(compiled, other.average_policy())))
  mine, wanted = np.array(found).T
  error = np.sqrt((mine.var() + wanted.var()) / len(found))
  assert error < 0.05 * wanted.mean()
  assert abs(mine.mean() - wanted.mean()) < 4 * error
