"""Long runs: strategies stay probability vectors, sums of weights finite, and iterations fast."""

import statistics
import time
from typing import Any

import numpy as np
import pytest
from all_solvers import SOLVERS, quick_if_representative
from composition.table import REPRESENTATIVES

import spiel_cfr

_EVERY_SOLVER = pytest.mark.parametrize("name", quick_if_representative(SOLVERS))
_TOLERANCE = 1e-12
# An iteration of these is Python, and takes a hundred times as long as a kernel.
_IN_PYTHON = (
  "cfr_br",
  "cfr_br+",
  "rtcfr+",
  "egt",
  "egt_as",
  "mirror_prox_as",
  "domwu",
  "komwu",
  "efr",
)


def assert_probability_vectors(solver: Any) -> None:
  for probabilities in (solver.current_probabilities(), solver.average_probabilities()):
    assert np.isfinite(probabilities).all()
    for treeplex in solver.compiled_game.treeplexes:
      for sequences, _ in treeplex.infoset_groups():
        assert (probabilities[sequences] >= 0).all()
        assert np.abs(probabilities[sequences].sum(axis=0) - 1).max() <= _TOLERANCE
  for name, array in solver.state_dict().items():
    # The best NashConv certified so far, which is infinite as long as there is none.
    if not name.endswith(("_scores", "_nash_conv")):
      assert np.isfinite(array).all(), name


def _relative_speed(late: Any, early: Any, iterations: int) -> float:
  """Returns the speed of a solver relative to another, as the median over five parts of their runs, in turns.

  Another process that takes the caches or the memory slows both down. Returns 1 if parts are too short to be measured.
  """
  ratios = []
  for _ in range(5):
    seconds = []
    for solver in (late, early):
      start = time.process_time()
      solver.run(iterations // 5)
      seconds.append(time.process_time() - start)
    ratios.append(seconds[1] / seconds[0] if min(seconds) > 0.005 else 1.0)
  return statistics.median(ratios)


def _iterations(name: str) -> dict[str, tuple[int, ...]]:
  """Returns how many iterations a solver does of each game: one of each kind does very many."""
  if "deep" in name:
    return {"kuhn_poker": (250,), "leduc_poker": (250,)}
  most = 100_000 if name in _IN_PYTHON else 10_000_000 if name in REPRESENTATIVES else 1_000_000
  return {"kuhn_poker": (2_000, most), "leduc_poker": (5_000, most // 10)}


@pytest.mark.quick(except_for=["cfr_br-*", "domwu-*"])
@pytest.mark.parametrize(
  ("name", "game", "iterations"),
  [
    pytest.param(
      *(name, game, iterations),
      marks=() if iterations == 2_000 and name in REPRESENTATIVES else pytest.mark.slow,
    )
    for name in SOLVERS
    for game, several in _iterations(name).items()
    for iterations in several
  ],
)
def test_long_runs(name: str, game: str, iterations: int) -> None:
  solver, early = (SOLVERS[name](spiel_cfr.compile_game(game)) for _ in range(2))
  for each in (solver, early):
    each.prepare()
  uniform = solver.nash_conv()
  part = iterations // 50
  solver.run(iterations - part)
  speed = _relative_speed(solver, early, part)
  assert solver.iteration == iterations
  assert_probability_vectors(solver)
  assert solver.nash_conv() < uniform
  assert speed > 0.7


@_EVERY_SOLVER
@pytest.mark.parametrize("iteration", [pytest.param(10**7, marks=pytest.mark.slow), 10**9])
def test_late_iterations(name: str, iteration: int) -> None:
  """Weights of late iterations, without running the earlier ones.

  Monte Carlo solvers can't jump: what they remember of discounts is a sum over all iterations.
  """
  solver = SOLVERS[name](spiel_cfr.compile_game("kuhn_poker"))
  if isinstance(solver, spiel_cfr.mccfr.MonteCarloSolver):
    with pytest.raises(AttributeError, match="iteration"):
      solver.iteration = iteration
    return
  solver.run(10)
  state = getattr(solver.state, "solver", solver.state)
  if hasattr(state, "counts"):
    state.counts[0] = iteration
  else:
    state.iteration = iteration
  solver.run(200)
  assert solver.iteration == iteration + 200
  assert_probability_vectors(solver)


def test_vanishing_probabilities_are_not_slow() -> None:
  """Steps this large make probabilities vanish; numbers too small to be normal ones would be slow."""
  compiled = spiel_cfr.compile_game("leduc_poker")
  solver, early = (
    spiel_cfr.StablePredictiveCFRSolver(compiled, horizon=10**6, steps=1e5) for _ in range(2)
  )
  for each in (solver, early):
    each.prepare()
  solver.run(5500)
  sequence = solver.current_sequence_form()
  assert not ((sequence > 0) & (sequence < np.finfo(np.float64).tiny)).any()
  assert (sequence < 1e-100).any()
  assert_probability_vectors(solver)
  assert _relative_speed(solver, early, 500) > 0.5
