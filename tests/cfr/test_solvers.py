"""Properties of all solvers: many iterations at once, interruption, arguments, random games."""

import _thread
import threading
import time

import numpy as np
import pytest
import random_games
from hypothesis import given, settings
from hypothesis import strategies as st
from open_spiel.python.algorithms import cfr, discounted_cfr
from open_spiel.python.algorithms import exploitability as open_spiel_exploitability

import spiel_cfr
from spiel_cfr import errors

SOLVERS = {
  "CFR": (spiel_cfr.CFRSolver, cfr.CFRSolver),
  "CFR+": (spiel_cfr.CFRPlusSolver, cfr.CFRPlusSolver),
  "LCFR": (spiel_cfr.LCFRSolver, discounted_cfr.LCFRSolver),
  "DCFR": (spiel_cfr.DCFRSolver, discounted_cfr.DCFRSolver),
}


def arrays(solver):
  """Returns everything that later iterations depend on."""
  return [*map(np.asarray, solver.state_dict().values()), solver.current_sequence_form()]


@pytest.mark.parametrize(
  "name", ["kuhn_poker", "leduc_poker", "kuhn_poker(players=3)", "matrix_pd"]
)
@pytest.mark.parametrize(
  "make",
  [
    *[classes[0] for classes in SOLVERS.values()],
    lambda game: spiel_cfr.TabularCFRSolver(game, False, True, True),
  ],
)
def test_run_equals_single_steps(name, make):
  compiled = spiel_cfr.compile_game(name)
  stepped, at_once, in_parts = make(compiled), make(compiled), make(compiled)
  for _ in range(57):
    stepped.evaluate_and_update_policy()
  at_once.run(57)
  for part in (1, 20, 36):
    in_parts.run(part)
  assert stepped.iteration == at_once.iteration == in_parts.iteration == 57
  for expected, found, other in zip(
    arrays(stepped), arrays(at_once), arrays(in_parts), strict=True
  ):
    assert expected.tobytes() == found.tobytes() == other.tobytes()


def agrees(ours, theirs, iteration):
  """Returns True if policies agree, except where ties or tiny sums of regrets let rounding decide."""
  scale = max(map(abs, ours.compiled_game.payoff_range))
  for node in theirs._info_state_nodes.values():
    regrets = node.cumulative_regret.values()
    if regrets and min(regrets) < max(regrets) and 0 < max(regrets) < 1e-9 * scale:
      return False
  for mine, other in (
    (ours.current_policy(), theirs.current_policy()),
    (ours.average_policy(), theirs.average_policy()),
  ):
    assert list(mine.state_lookup) == list(other.state_lookup)
    difference = np.abs(mine.action_probability_array - other.action_probability_array).max()
    assert difference < 1e-9, f"iteration {iteration}"
  return True


@given(
  random_games.games(zero_sum=st.booleans(), payoff_ties=False, max_histories=120),
  st.sampled_from(sorted(SOLVERS)),
)
@settings(max_examples=60)
def test_random_games(game, solver_name):
  ours_class, theirs_class = SOLVERS[solver_name]
  ours, theirs = ours_class(game), theirs_class(game)
  for iteration in range(1, 13):
    ours.evaluate_and_update_policy()
    theirs.evaluate_and_update_policy()
    if not agrees(ours, theirs, iteration):
      return


def test_random_games_are_compared_to_the_end():
  """Rounding must not decide on most random games, or the test above would compare nothing."""
  compared = 0
  for seed in range(20):
    game = random_games.random_game(seed, max_histories=120)
    ours, theirs = spiel_cfr.CFRPlusSolver(game), cfr.CFRPlusSolver(game)
    for _ in range(12):
      ours.evaluate_and_update_policy()
      theirs.evaluate_and_update_policy()
    compared += agrees(ours, theirs, 12)
  assert compared >= 15


@given(random_games.games(num_players=2, zero_sum=True), st.sampled_from(sorted(SOLVERS)))
@settings(max_examples=30)
def test_random_games_are_solved(game, solver_name):
  solver = SOLVERS[solver_name][0](game)
  solver.run(2000)
  low, high = solver.compiled_game.payoff_range
  assert solver.nash_conv() <= 0.02 * (high - low) + 1e-12
  assert open_spiel_exploitability.nash_conv(solver.game, solver.average_policy()) == pytest.approx(
    solver.nash_conv(), abs=1e-10
  )


def test_nothing_done_yet():
  solver = spiel_cfr.CFRPlusSolver("leduc_poker")
  uniform = solver.current_policy().action_probability_array
  np.testing.assert_array_equal(solver.average_policy().action_probability_array, uniform)
  assert solver.iteration == 0
  assert solver.nash_conv() == pytest.approx(
    open_spiel_exploitability.nash_conv(solver.game, solver.average_policy()), abs=1e-12
  )


def test_strategies_stay_probabilities():
  solver = spiel_cfr.DCFRSolver("leduc_poker")
  solver.run(20_000)
  for table in (solver.current_policy(), solver.average_policy()):
    array = table.action_probability_array
    assert (array >= 0).all()
    np.testing.assert_allclose(array.sum(axis=1), 1.0, atol=1e-12)


def test_interrupting():
  solver = spiel_cfr.CFRPlusSolver("leduc_poker")
  solver.run(1)
  threading.Timer(0.5, _thread.interrupt_main).start()
  start = time.monotonic()
  with pytest.raises(KeyboardInterrupt):
    solver.run(10**9)
  assert time.monotonic() - start < 30
  assert 1 < solver.iteration < 10**9
  twin = spiel_cfr.CFRPlusSolver("leduc_poker")
  twin.run(solver.iteration)
  for expected, found in zip(arrays(twin), arrays(solver), strict=True):
    assert expected.tobytes() == found.tobytes()


@pytest.mark.parametrize("bad", [0, -3, 1.5, "ten", None, True])
def test_bad_numbers_of_iterations(bad):
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  with pytest.raises(errors.ArgumentError, match="iterations"):
    solver.run(bad)
  assert solver.iteration == 0


def test_numpy_integers_count_iterations():
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(np.int64(5))
  assert solver.iteration == 5


@pytest.mark.parametrize(
  "arguments",
  [
    {"alpha": -1},
    {"gamma": -0.1},
    {"alpha": np.nan},
    {"beta": np.nan},
    {"gamma": np.nan},
    {"gamma": np.inf},
    {"alpha": "much"},
    {"beta": None},
    {"gamma": [2]},
  ],
)
def test_bad_discounts(arguments):
  with pytest.raises(errors.ArgumentError, match=next(iter(arguments))):
    spiel_cfr.DCFRSolver("kuhn_poker", **arguments)


def test_infinite_discounts():
  """Keeping positive regrets whole and forgetting negative ones is regret matching+."""
  discounted = spiel_cfr.DCFRSolver("leduc_poker", alpha=np.inf, beta=-np.inf, gamma=1)
  plus = spiel_cfr.CFRPlusSolver("leduc_poker")
  # At t = 1 every discount is 1/2, whatever the power, which scales all regrets alike.
  discounted.run(30)
  plus.run(30)
  assert discounted.nash_conv() == pytest.approx(plus.nash_conv(), rel=0.5)


@pytest.mark.parametrize(
  ("game", "error"),
  [
    ("kuhn_pokr", errors.UnknownGameError),
    ("kuhn_poker(players=99)", errors.GameParameterError),
    ("universal_poker(numSuits=0)", errors.GameParameterError),
    ("mfg_garnet", errors.MeanFieldGameError),
    ("catch", errors.SinglePlayerGameError),
    ("liars_dice_ir(dice_sides=3)", errors.ImperfectRecallError),
    (None, errors.ArgumentError),
  ],
)
def test_bad_games(game, error):
  with pytest.raises(error):
    spiel_cfr.CFRSolver(game)


def test_interface_is_open_spiels():
  """Research code changes only its import."""
  for _, theirs in SOLVERS.values():
    for name in ("evaluate_and_update_policy", "current_policy", "average_policy"):
      assert callable(getattr(spiel_cfr.FullWidthSolver, name)) and callable(getattr(theirs, name))
  solver = spiel_cfr.DCFRSolver(game="kuhn_poker", alpha=1.5, beta=0, gamma=2)
  solver.evaluate_and_update_policy()
  solver = spiel_cfr.TabularCFRSolver(
    "kuhn_poker", alternating_updates=True, linear_averaging=False, regret_matching_plus=False
  )
  solver.evaluate_and_update_policy()


def test_weights_of_the_average_may_be_any_function():
  by_function, by_power = (
    spiel_cfr.FullWidthSolver(
      "leduc_poker", spiel_cfr.RegretMatching.plus(), averaging=spiel_cfr.Averaging(weights)
    )
    for weights in (lambda t: t**1.5, 1.5)
  )
  for solver in (by_function, by_power):
    solver.run(20)
  assert by_function.average_probabilities().tobytes() == by_power.average_probabilities().tobytes()
  with pytest.raises(errors.ArgumentError, match="can't be kept"):
    by_function.description()
  with pytest.raises(errors.ArgumentError, match="weights must be"):
    spiel_cfr.FullWidthSolver(
      "kuhn_poker", spiel_cfr.RegretMatching(), averaging=spiel_cfr.Averaging("linear")
    )


class _Remembering(spiel_cfr.RegretMinimizer):
  """A minimizer whose constructor arguments are not fields."""

  observe = spiel_cfr.RegretMatching().observe

  def __init__(self, keep):
    object.__setattr__(self, "keep", keep)


def test_minimizers_whose_arguments_are_in_no_field_are_kept_in_no_checkpoint(tmp_path):
  solver = spiel_cfr.FullWidthSolver("kuhn_poker", _Remembering(0.5))
  solver.run(3)
  with pytest.raises(errors.ArgumentError, match="frozen dataclass"):
    solver.save(tmp_path / "solver.npz")
