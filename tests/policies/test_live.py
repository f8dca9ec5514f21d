"""Live policies: like OpenSpiel's, they follow the solver, or update when asked for."""

import copy
import pickle

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import (
  cfr,
  discounted_cfr,
  exploitability,
  external_sampling_mccfr,
  outcome_sampling_mccfr,
)

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr.policies.tabular_policy import CompiledTabularPolicy, LivePolicy

FULL_WIDTH = [
  (cfr.CFRSolver, spiel_cfr.CFRSolver),
  (cfr.CFRPlusSolver, spiel_cfr.CFRPlusSolver),
  (discounted_cfr.DCFRSolver, spiel_cfr.DCFRSolver),
  (discounted_cfr.LCFRSolver, spiel_cfr.LCFRSolver),
]
MONTE_CARLO = [
  (external_sampling_mccfr.ExternalSamplingSolver, spiel_cfr.ExternalSamplingSolver),
  (outcome_sampling_mccfr.OutcomeSamplingSolver, spiel_cfr.OutcomeSamplingSolver),
]


def judged(held):
  return exploitability.nash_conv(held.game, held)


@pytest.mark.parametrize(("theirs", "ours"), FULL_WIDTH, ids=lambda solver: solver.__name__)
def test_full_width(theirs, ours):
  """The current policy updates by itself, the average with each call of `average_policy`, as in OpenSpiel."""
  found = []
  for make in (theirs, ours):
    solver = make(pyspiel.load_game("kuhn_poker"))
    current, average = solver.current_policy(), solver.average_policy()
    row = average.policy_for_key("0")
    values = [judged(current), judged(average)]
    for _ in range(20):
      solver.evaluate_and_update_policy()
    values += [judged(current), judged(average), row[1]]
    assert solver.current_policy() is current
    assert solver.average_policy() is average
    values += [judged(average), row[1]]
    found.append(values)
  np.testing.assert_allclose(found[1], found[0], atol=1e-9)
  assert found[1][1] == found[1][3] != found[1][5]


@pytest.mark.parametrize(("theirs", "ours"), MONTE_CARLO, ids=lambda solver: solver.__name__)
@pytest.mark.parametrize("engine", ["compiled", "states"])
def test_monte_carlo(theirs, ours, engine):
  """The average policy updates by itself."""
  for solver in (
    theirs(pyspiel.load_game("kuhn_poker")),
    ours("kuhn_poker", seed=1, engine=engine),
  ):
    held = solver.average_policy()
    before = judged(held)
    for _ in range(50):
      solver.iteration()
    assert before == pytest.approx(11 / 12)
    assert judged(held) == judged(solver.average_policy()) != before


@pytest.mark.parametrize("engine", ["compiled", "states"])
def test_copies_stay(engine):
  """Copies, deep copies and pickles of a live policy are fixed policies."""
  for solver in (
    spiel_cfr.CFRSolver("kuhn_poker"),
    spiel_cfr.ExternalSamplingSolver("kuhn_poker", seed=1, engine=engine),
  ):
    solver.run(3)
    held = solver.current_policy()
    before = judged(held)
    copies = [copy.copy(held), copy.deepcopy(held), held.to_tabular()]
    if engine == "compiled":
      copies.append(pickle.loads(pickle.dumps(held)))
    solver.run(100)
    assert judged(held) != before
    for kept in copies:
      assert judged(kept) == pytest.approx(before, abs=1e-12)


def test_loading_a_state_updates_the_policy(tmp_path):
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(5)
  solver.save(tmp_path / "five.npz")
  other = spiel_cfr.CFRSolver(solver.compiled_game)
  other.state.strategy[:] = 0
  other.state.counts[0] = 5
  held = other.current_policy()
  other.restore(tmp_path / "five.npz")
  np.testing.assert_array_equal(
    held.action_probability_array, solver.current_policy().action_probability_array
  )


def test_after_an_error_a_policy_is_not_taken_for_new():
  game, asked = spiel_cfr.compile_game("kuhn_poker"), []
  uniform = policies.behavioral_form(game, np.zeros(game.end))

  def probabilities():
    asked.append(None)
    if len(asked) == 2:
      raise errors.NotFiniteError
    return uniform if len(asked) < 2 else 0 * uniform

  held = CompiledTabularPolicy(game, LivePolicy(probabilities, lambda: bool(asked)))
  with pytest.raises(errors.NotFiniteError):
    held.action_probability_array  # noqa: B018
  assert not held.action_probability_array.any()


def test_each_solver_has_its_own():
  """A copied, reset or unpickled solver does not change the original's policy."""
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  held = solver.current_policy()
  for other in (
    copy.copy(solver),
    pickle.loads(pickle.dumps(solver)),
    spiel_cfr.CFRSolver("kuhn_poker"),
  ):
    assert other.current_policy() is not held
    other.run(10)
    assert judged(held) == pytest.approx(11 / 12)
    assert judged(other.current_policy()) != pytest.approx(11 / 12)


def test_writes_never_reach_the_solver():
  solver, untouched = spiel_cfr.CFRSolver("kuhn_poker"), spiel_cfr.CFRSolver("kuhn_poker")
  for _ in range(5):
    solver.current_policy().action_probability_array[:] = np.nan
    solver.average_policy().action_probability_array[:] = np.nan
    solver.evaluate_and_update_policy()
  untouched.run(5)
  for name in ("current_policy", "average_policy"):
    found, expected = getattr(solver, name)(), getattr(untouched, name)()
    np.testing.assert_array_equal(found.action_probability_array, expected.action_probability_array)


def test_policies_can_be_assigned():
  """Another array may be assigned, as in OpenSpiel."""
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  held = solver.current_policy()
  array = np.full_like(held.action_probability_array, 0.25)
  held.action_probability_array = array
  assert held.action_probability_array[0, 0] == 0.25
  solver.evaluate_and_update_policy()
  assert held.action_probability_array[0, 0] != 0.25
  np.testing.assert_array_equal(array, 0.25)
