"""Without a seed, NumPy's global state decides, as in OpenSpiel; a seed stays what it is."""

import copy
import pickle

import numpy as np
import pytest
from open_spiel.python.algorithms import external_sampling_mccfr, outcome_sampling_mccfr

import spiel_cfr

SOLVERS = [
  (spiel_cfr.ExternalSamplingSolver, external_sampling_mccfr.ExternalSamplingSolver),
  (spiel_cfr.OutcomeSamplingSolver, outcome_sampling_mccfr.OutcomeSamplingSolver),
]


def result(make, game="leduc_poker", **options):
  solver = make(game, **options)
  for _ in range(15):
    solver.iteration()
  return solver.average_policy().to_tabular().action_probability_array


@pytest.mark.parametrize(("ours", "theirs"), SOLVERS)
def test_the_global_seed_decides(ours, theirs):
  compiled = spiel_cfr.compile_game("leduc_poker")
  for make, game in ((ours, compiled), (theirs, compiled.game)):
    runs = []
    for seed in (1, 1, 2, 3):
      np.random.seed(seed)
      runs.append(result(make, game))
    assert (runs[0] == runs[1]).all(), make
    for one in (1, 2):
      for other in range(one + 1, 4):
        assert (runs[one] != runs[other]).any(), make
    # The second solver of a program draws on.
    np.random.seed(1)
    first, second = result(make, game), result(make, game)
    assert (first == runs[0]).all()
    assert (first != second).any()


def test_a_given_seed_leaves_the_global_state_alone():
  compiled = spiel_cfr.compile_game("kuhn_poker")
  np.random.seed(4)
  expected = np.random.random()
  np.random.seed(4)
  runs = [result(spiel_cfr.ExternalSamplingSolver, compiled, seed=7) for _ in range(2)]
  assert np.random.random() == expected
  assert (runs[0] == runs[1]).all()
  # What seed 7 has always given.
  counters = spiel_cfr.ExternalSamplingSolver(compiled, seed=7).state_dict()["counters"]
  assert counters[0] == np.random.default_rng(7).integers(1 << 64, dtype=np.uint64)


def test_random_states_are_saved(tmp_path):
  compiled = spiel_cfr.compile_game("kuhn_poker")
  solver = spiel_cfr.ExternalSamplingSolver(compiled)
  solver.run(5)
  solver.save(tmp_path / "five.npz")
  others = [
    copy.copy(solver),
    pickle.loads(pickle.dumps(solver)),
    spiel_cfr.Solver.load(tmp_path / "five.npz", compiled),
  ]
  restored = spiel_cfr.ExternalSamplingSolver(compiled)
  restored.restore(tmp_path / "five.npz")
  solver.run(20)
  for other in (*others, restored):
    other.run(20)
    assert other.average_probabilities().tobytes() == solver.average_probabilities().tobytes()
    again = copy.copy(other)
    again.reset()
    again.run(25)
    assert again.average_probabilities().tobytes() == solver.average_probabilities().tobytes()


def test_pickles_with_read_only_arrays():
  """Read-only arrays, as from Ray."""
  solver = spiel_cfr.OutcomeSamplingSolver("kuhn_poker", seed=3)
  solver.run(10)
  buffers = []
  head = pickle.dumps(solver, 5, buffer_callback=buffers.append)
  again = pickle.loads(head, buffers=[bytes(buffer.raw()) for buffer in buffers])
  for each in (solver, again):
    each.run(10)
  np.testing.assert_array_equal(again.average_probabilities(), solver.average_probabilities())
