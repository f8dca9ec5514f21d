"""Trackers have the solver's snapshots and regrets at each evaluation, also after interruptions."""

from typing import Any

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import errors, runs


def run(solver: Any, iterations: int, tracker: runs.Tracker) -> None:
  spiel_cfr.run(solver, iterations, traces=[tracker], progress=False)


@pytest.mark.parametrize(
  "make",
  [
    spiel_cfr.CFRSolver,
    spiel_cfr.RestartedCFRSolver,
    lambda game: spiel_cfr.ExternalSamplingSolver(game, seed=1),
    lambda game: spiel_cfr.ExternalSamplingSolver(game, seed=1, engine="states"),
  ],
)
def test_tracker_contents(make: Any) -> None:
  game = spiel_cfr.compile_game("kuhn_poker")
  tracker = runs.Tracker("^2")
  run(make(game), 8, tracker)
  solver = make(game)
  for iteration in (1, 2, 4, 8):
    solver.run(iteration - solver.iteration)
    notes = [each for own in tracker.infosets.values() for each in own]
    assert [each for each in notes if each.iteration == iteration] == solver.snapshots("^2")
    regrets = solver.cumulative_regrets() / iteration
    counts = tracker.histograms[iteration]
    assert counts.sum() == len(regrets) == 24
    middle = len(counts) // 2
    assert (counts[:middle].sum(), counts[middle + 1 :].sum()) == (
      (regrets < -1e-7).sum(),
      (regrets > 1e-7).sum(),
    )
    for low, high, count in zip(tracker.edges[:-1], tracker.edges[1:], counts, strict=True):
      assert ((regrets >= low) & (regrets < high)).sum() == count
  assert [*tracker.histograms] == [1, 2, 4, 8]


def test_a_run_that_goes_on() -> None:
  whole, split = runs.Tracker("0"), runs.Tracker("0")
  run(spiel_cfr.CFRPlusSolver("kuhn_poker"), 16, whole)
  solver = spiel_cfr.CFRPlusSolver("kuhn_poker")
  run(solver, 4, split)
  kept = solver.state_dict()
  run(solver, 16, split)
  assert split.infosets == whole.infosets
  # From a checkpoint before the last evaluations, and once more where there is nothing left to do.
  solver.load_state_dict(kept)
  run(solver, 16, split)
  run(solver, 16, split)
  assert split.infosets == whole.infosets
  np.testing.assert_equal(split.histograms, whole.histograms)


def test_regrets_beyond_the_bins() -> None:
  """Weights of iterations can make regrets larger than payoffs."""
  tracker = runs.Tracker("")
  run(spiel_cfr.StablePredictiveCFRSolver("kuhn_poker"), 50, tracker)
  counts = tracker.histograms[50]
  assert counts.sum() == 24
  assert counts[0] > 0


def test_solvers_without_regrets() -> None:
  tracker = runs.Tracker("2p")
  run(spiel_cfr.AdaptiveOptimisticCFRSolver("kuhn_poker"), 4, tracker)
  assert len(tracker.infosets[0, "2pb"]) == 3
  assert not tracker.histograms


def test_refused_arguments() -> None:
  for wrong in ("(", None, 3):
    with pytest.raises(errors.ArgumentError, match="pattern must be a regular expression"):
      runs.Tracker(wrong)  # type: ignore[arg-type]
  with pytest.raises(errors.ArgumentError, match="no infoset that '7' finds"):
    run(spiel_cfr.CFRSolver("kuhn_poker"), 4, runs.Tracker("7"))
