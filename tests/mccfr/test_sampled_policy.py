"""Sampling solvers return OpenSpiel policies, uniform at infosets that no sample has reached."""

import copy
from typing import Any

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import external_sampling_mccfr

import spiel_cfr
from spiel_cfr import errors, policies


def test_average_policy_is_a_policy_of_open_spiel() -> None:
  for engine in ("compiled", "states"):
    solver = spiel_cfr.ExternalSamplingSolver(
      pyspiel.load_game("kuhn_poker"), external_sampling_mccfr.AverageType.SIMPLE, engine=engine
    )
    solver.run(2000)
    tabular = solver.average_policy().to_tabular()
    found = pyspiel.exploitability(
      solver.game,
      policies.to_pyspiel(
        spiel_cfr.compile_game("kuhn_poker"),
        policies.from_policy(spiel_cfr.compile_game("kuhn_poker"), tabular),
      ),
    )
    assert found == pytest.approx(
      spiel_cfr.exploitability("kuhn_poker", solver.average_policy()), abs=1e-12
    )
    assert found < 0.05
    state = solver.game.new_initial_state().child(0).child(1)
    assert solver.average_policy()(state) == pytest.approx(
      solver.average_policy_dict()[state.information_state_string()]
    )
    assert sum(solver.current_policy().action_probabilities(state, 0).values()) == pytest.approx(1)


def test_policies_are_uniform_where_never_visited() -> None:
  solver = spiel_cfr.OutcomeSamplingSolver("leduc_poker", engine="states")
  solver.run(5)
  assert 0 < solver.num_infosets < 60
  before = copy.copy(solver.average_policy())
  compiled = spiel_cfr.compile_game("leduc_poker")
  array = policies.from_policy(compiled, before)
  uniform = policies.uniform(compiled)[compiled.all_action_sequences]
  unchanged = array[compiled.all_action_sequences] == uniform
  assert unchanged.mean() > 0.9
  solver.run(50)
  np.testing.assert_array_equal(policies.from_policy(compiled, before), array)
  assert (policies.from_policy(compiled, solver.average_policy()) != array).any()


@pytest.mark.parametrize("engine", ["compiled", "states"])
def test_a_policy_needs_a_player_to_move(engine: Any) -> None:
  solver = spiel_cfr.ExternalSamplingSolver("kuhn_poker", engine=engine)
  chance = solver.game.new_initial_state()
  terminal = chance.child(0).child(1).child(0).child(0)
  for state in (chance, terminal):
    with pytest.raises(errors.PolicyError, match="terminal or chance"):
      solver.average_policy()(state)
  decision = chance.child(0).child(1)
  if engine == "compiled":
    # A TabularPolicy answers as OpenSpiel's own does.
    assert solver.average_policy()(decision, 1) == {0: 1.0}
  else:
    with pytest.raises(errors.PolicyError, match="player 0"):
      solver.average_policy()(decision, 1)
