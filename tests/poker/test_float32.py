"""Vector forms in float32: computed in float32, and as good as float64 until its last places count."""

import numpy as np
import poker_games
import pytest
from numba import types

import spiel_cfr
from spiel_cfr._numba.arrays import floats
from spiel_cfr._numba.kernels import kernel
from spiel_cfr._numba.simd import MOST_LANES, load, store
from spiel_cfr._numba.steps import Chain
from spiel_cfr.games.sequence_form.blocks import new_scratch
from spiel_cfr.games.sequence_form.tree_passes import Forward, Tree, forward_pass
from spiel_cfr.poker.public_game import compile_public_game
from spiel_cfr.regret_minimizers import regularizers

_SOLVERS = {
  "CFR+": spiel_cfr.CFRPlusSolver,
  "stable predictive": spiel_cfr.StablePredictiveCFRSolver,
  "adaptive": spiel_cfr.AdaptiveOptimisticCFRSolver,
}


@pytest.mark.parametrize("partitioned", [pytest.param(False, marks=pytest.mark.slow), True])
def test_exploitability_is_that_of_float64(partitioned):
  endgame = poker_games.random_endgame(6, 12, poker_games.TURN).load()
  games = [
    compile_public_game(endgame, poker_games.check_or_pot, partitioned=partitioned, dtype=dtype)
    for dtype in ("float64", "float32")
  ]
  assert games[0].digest != games[1].digest
  for name, make in _SOLVERS.items():
    double, single = map(make, games)
    for attribute in ("action_state", "strategy", "cumulative"):
      assert getattr(single.state, attribute).dtype == np.float32
      assert getattr(single.state, attribute).nbytes * 2 == getattr(double.state, attribute).nbytes
    for solver in (double, single):
      solver.run(60)
    assert double.nash_conv() != single.nash_conv()
    assert single.nash_conv() == pytest.approx(double.nash_conv(), rel=5e-3), name


def test_averages_lose_nothing():
  """Adding 3e-8 does not change a float32 total of 1; many additions must."""
  actions, iterations = 2, 20_000
  tree = Tree(
    np.array([[MOST_LANES, MOST_LANES, 1, actions, 0, 0]], np.uint64), np.zeros(1, np.uint32)
  )
  length = (1 + actions) * MOST_LANES
  for small in (3e-8, 1.1e-5):
    strategy, reach, total = (np.zeros(length, np.float32) for _ in range(3))
    reach[0], total[MOST_LANES] = 1.0, 1.0
    strategy[MOST_LANES], strategy[2 * MOST_LANES] = small, 1.0 - small
    weight, so_far = np.ones(1), np.zeros(1, np.float32)
    value = new_scratch(np.float32).line
    forward = Forward(tree, strategy, reach, value, total, weight, so_far, averages_after=1)
    chain = Chain([forward_pass.on(forward, np.float32)])
    for number in range(iterations):
      so_far[0] = number
      chain.run()
    assert total[MOST_LANES] == pytest.approx(1.0 + iterations * small, abs=1e-6)
    assert total[2 * MOST_LANES] == pytest.approx(iterations * (1.0 - small), rel=1e-6)


@kernel(lambda number: types.void(floats(number), floats(number)))
def _exponentials(numbers, results):
  store(results, np.uint64(0), regularizers.exponential(load(numbers, np.uint64(0))))


def test_exponential():
  numbers = -np.linspace(0, 80, MOST_LANES, dtype=np.float32)
  results = np.zeros_like(numbers)
  _exponentials.of(np.float32)(numbers, results)
  np.testing.assert_allclose(results, np.exp(numbers.astype(np.float64)), rtol=3e-7)


def test_kernels_in_float64_only_say_so():
  game = spiel_cfr.compile_game("kuhn_poker(players=3)")
  with pytest.raises(TypeError, match="float64 only"):
    game.payoff.gradient_step(0, *np.zeros((2, game.end), np.float32))
