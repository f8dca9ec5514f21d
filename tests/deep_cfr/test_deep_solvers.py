"""Deep solvers: seeds, convergence, states, policies, refusals."""

import copy
import dataclasses
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr.deep_cfr import network
from spiel_cfr.deep_cfr.network import LeastSquares, Network, libraries

SMALL: dict[str, Any] = {"advantage_network_layers": (16,)}
TABLES: dict[str, Any] = {"network": LeastSquares()}
ALGORITHMS = ("linear", "dcfr+", "pdcfr+")
# XLA compiles every network anew, which takes seconds.
every_algorithm = pytest.mark.parametrize(
  "algorithm",
  [pytest.param(name, marks=[pytest.mark.slow] if name == "dcfr+" else []) for name in ALGORITHMS],
)


@every_algorithm
def test_the_same_seed_gives_the_same_bytes(algorithm: Any) -> None:
  one, same, other = (
    spiel_cfr.DeepCFRSolver("kuhn_poker", algorithm=algorithm, seed=seed, **SMALL)
    for seed in (1, 1, 2)
  )
  for solver in (one, same, other):
    solver.run(3)
  for name, value in one.state_dict().items():
    assert value.tobytes() == same.state_dict()[name].tobytes()
  assert one.state.parameters.tobytes() != other.state.parameters.tobytes()


@every_algorithm
def test_a_checkpoint_goes_on_bit_for_bit(algorithm: Any, tmp_path: pathlib.Path) -> None:
  whole, stopped = (
    spiel_cfr.DeepCFRSolver("kuhn_poker", algorithm=algorithm, seed=1, **SMALL) for _ in range(2)
  )
  result = spiel_cfr.run(
    whole, 5, traces=[spiel_cfr.runs.TraceFile(tmp_path / "t.csv")], progress=False
  )
  assert result.last.nash_conv == whole.nash_conv()
  stopped.run(3)
  stopped.save(tmp_path / "solver.npz")
  resumed = spiel_cfr.Solver.load(tmp_path / "solver.npz", "kuhn_poker")
  for solver in (resumed, pickle.loads(pickle.dumps(stopped)), copy.copy(stopped)):
    solver.run(2)
    for name, value in whole.state_dict().items():
      assert value.tobytes() == solver.state_dict()[name].tobytes()


@pytest.mark.slow
@every_algorithm
def test_exploitability_of_kuhn_poker(algorithm: Any) -> None:
  solver = spiel_cfr.DeepCFRSolver(
    "kuhn_poker", algorithm=algorithm, seed=1, num_traversals=300, **SMALL
  )
  solver.run(40)
  assert solver.exploitability() < 0.06


def test_outcome_sampling() -> None:
  solver = spiel_cfr.DeepCFRSolver(
    "kuhn_poker", algorithm="dcfr+", seed=1, num_traversals=1000, sampler="outcome", **SMALL
  )
  solver.run(30)
  assert solver.exploitability() < 0.15
  # Two decisions, where external sampling visits up to five.
  assert solver.nodes_touched < 30 * 2 * 1000 * 6


def test_new_networks_for_every_fit() -> None:
  warm, anew = (
    spiel_cfr.DeepCFRSolver(
      "kuhn_poker", seed=1, reinitialize_advantage_networks=reinitialize, **SMALL
    )
    for reinitialize in (False, True)
  )
  for solver in (warm, anew):
    solver.run(2)
  assert warm.state.parameters.tobytes() != anew.state.parameters.tobytes()


@pytest.mark.parametrize("algorithm", [pytest.param("linear", marks=pytest.mark.slow), "pdcfr+"])
def test_states(algorithm: Any) -> None:
  """On states the average is that of all networks, and better than the first strategy."""
  solver = spiel_cfr.DeepCFRSolver(
    "kuhn_poker", algorithm=algorithm, seed=1, num_traversals=60, engine="states", **SMALL
  )
  first = spiel_cfr.exploitability("kuhn_poker", solver.average_policy())
  solver.run(12)
  average = solver.average_policy()
  assert spiel_cfr.exploitability("kuhn_poker", average) < first / 2
  game = spiel_cfr.compile_game("kuhn_poker")
  strategies = []
  for iteration in range(12):
    one = policies.from_policy(game, solver._policy_of(slice(iteration, iteration + 1)))
    strategies.append(policies.sequence_form(game, one))
  weights = np.arange(1, 13) ** (1.0 if algorithm == "linear" else 2.0)
  expected = np.average(strategies, axis=0, weights=weights)
  played = policies.sequence_form(game, policies.from_policy(game, average))
  np.testing.assert_allclose(played, expected, atol=1e-9)


def test_a_solver_on_states_is_copied_and_pickled() -> None:
  whole, stopped = (
    spiel_cfr.DeepCFRSolver("kuhn_poker", seed=1, num_traversals=9, engine="states", **SMALL)
    for _ in range(2)
  )
  whole.run(4)
  stopped.run(2)
  for make in (copy.copy, copy.deepcopy, lambda solver: pickle.loads(pickle.dumps(solver))):
    duplicate = make(stopped)
    duplicate.run(2)
    assert int(stopped.iteration) == 2
    assert duplicate.state.parameters.tobytes() == whole.state.parameters.tobytes()


@pytest.mark.parametrize("options", [{}, {"algorithm": "pdcfr+", "sampler": "outcome"}], ids=str)
def test_a_checkpoint_of_states_goes_on_bit_for_bit(options: Any, tmp_path: pathlib.Path) -> None:
  """Without a seed in its arguments, and without a compiled game."""
  whole = spiel_cfr.DeepCFRSolver(
    "kuhn_poker",
    num_traversals=9,
    engine="states",
    batch_size_advantage=8,
    memory_capacity=40,
    **options,
    **SMALL,
  )
  whole.run(3)
  checkpoints = spiel_cfr.Checkpoints(tmp_path, every=1)
  path = checkpoints.save(whole)
  assert whole.num_bytes < path.stat().st_size < whole.num_bytes + 30_000
  whole.run(3)
  again = spiel_cfr.Solver.load(path, "kuhn_poker")
  checkpoints.check(again)
  again.run(3)
  state = whole.state_dict()
  for name, value in again.state_dict().items():
    np.testing.assert_array_equal(value, state[name], name)
  checkpoints.resume(again)
  assert again.iteration == 3
  with pytest.raises(errors.CheckpointMismatchError, match="leduc_poker"):
    spiel_cfr.Solver.load(path, "leduc_poker")
  for name, wrong in (
    ("memory.advantages.0.weights", -state["memory.advantages.0.weights"]),
    ("memory.advantages.1.targets", state["memory.advantages.1.targets"][:-1]),
    ("memory.advantages.0.seen", -1),
    ("memory.advantages.0.features", state["memory.advantages.0.features"][:, :-1]),
    ("memory.past_parameters", state["memory.past_parameters"][:-1]),
    ("memory.past_scales", np.nan * state["memory.past_scales"]),
    ("memory.past_scales", 3),
    ("scales", -1 - state["scales"]),
    ("parameters", state["parameters"][:1]),
  ):
    with pytest.raises(errors.CheckpointMismatchError):
      again.load_state_dict(state | {name: wrong})
  with pytest.raises(errors.CheckpointMismatchError, match="consists of"):
    again.load_state_dict({})
  assert again.iteration == 3


def test_states_of_a_compiled_game_are_measured() -> None:
  solver = spiel_cfr.DeepCFRSolver(
    spiel_cfr.compile_game("kuhn_poker"), num_traversals=30, engine="states", seed=1, **TABLES
  )
  solver.run(5)
  assert solver.nash_conv() == pytest.approx(
    spiel_cfr.nash_conv("kuhn_poker", solver.average_policy()), abs=1e-12
  )
  assert solver.average_policy_dict() != solver.current_policy_dict()
  without = spiel_cfr.DeepCFRSolver("kuhn_poker", engine="states", **TABLES)
  for ask in (without.nash_conv, without.average_policy_dict, without.current_probabilities):
    with pytest.raises(errors.UnsupportedGameError):
      ask()


def test_distinct_features_are_needed(tmp_path: pathlib.Path) -> None:
  with pytest.raises(errors.FeaturesError, match=r"16 of 33 .*one_hot"):
    spiel_cfr.DeepCFRSolver("dark_hex(board_size=2)")
  with pytest.raises(errors.FeaturesError, match="have the features of another"):
    spiel_cfr.DeepCFRSolver("kuhn_poker", features=lambda state, player: [1.0])
  with pytest.raises(errors.FeaturesError, match="Two states"):
    spiel_cfr.DeepCFRSolver("kuhn_poker", features=lambda state, player: state.history()[:2])
  for wrong in (lambda state, player: [np.nan], lambda state, player: "x"):
    with pytest.raises(errors.ArgumentError, match="features has returned"):
      spiel_cfr.DeepCFRSolver("kuhn_poker", features=wrong)
  with pytest.raises(errors.ArgumentError, match="'tensor', 'one_hot'"):
    spiel_cfr.DeepCFRSolver("kuhn_poker", features="tensors")
  with pytest.raises(errors.FeaturesError, match="one_hot"):
    spiel_cfr.DeepCFRSolver("kuhn_poker", features="one_hot", engine="states")
  one_hot = spiel_cfr.DeepCFRSolver("kuhn_poker", features="one_hot", seed=1, **SMALL)
  one_hot.run(2)
  one_hot.save(tmp_path / "solver.npz")
  assert int(spiel_cfr.Solver.load(tmp_path / "solver.npz", "kuhn_poker").iteration) == 2


@dataclasses.dataclass(frozen=True)
class Linear(Network):
  scale: float = 1.0

  def init(self, key: Any, num_features: int, num_outputs: int) -> Any:
    return libraries().jax.numpy.zeros((num_features, num_outputs))

  def apply(self, parameters: Any, features: Any) -> Any:
    return self.scale * (features @ parameters)


def test_a_network_of_ones_own(tmp_path: pathlib.Path) -> None:
  solver = spiel_cfr.DeepCFRSolver(
    "kuhn_poker",
    features="one_hot",
    network=Linear(),
    num_traversals=300,
    learning_rate=0.03,
    seed=1,
  )
  solver.run(20)
  assert solver.exploitability() < 0.15
  solver.save(tmp_path / "solver.npz")
  loaded = spiel_cfr.Solver.load(tmp_path / "solver.npz", "kuhn_poker")
  assert loaded.network == Linear()
  with pytest.raises(errors.ArgumentError, match="Approximator"):
    spiel_cfr.DeepCFRSolver("kuhn_poker", network="mlp")  # type: ignore[arg-type]


@pytest.mark.parametrize("layers", [5, "64", (0,), (1.5,), None], ids=str)
def test_layers_that_are_none(layers: Any) -> None:
  with pytest.raises(errors.ArgumentError, match="advantage_network_layers"):
    spiel_cfr.DeepCFRSolver("kuhn_poker", advantage_network_layers=layers)


def test_too_large_steps_are_named() -> None:
  solver = spiel_cfr.DeepCFRSolver("kuhn_poker", learning_rate=1e30, seed=1, **SMALL)
  with pytest.raises(errors.NotFiniteError, match="learning_rate"):
    solver.run(5)


def test_without_jax_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
  network.libraries.cache_clear()
  network.compiled.cache_clear()
  monkeypatch.setitem(sys.modules, "jax", None)
  with pytest.raises(errors.MissingPackageError, match=r"spiel_cfr\[jax\]"):
    spiel_cfr.DeepCFRSolver("kuhn_poker")
  network.libraries.cache_clear()


def test_jax_is_imported_only_for_networks() -> None:
  code = "import sys, spiel_cfr; spiel_cfr.DeepCFRSolver; sys.exit('jax' in sys.modules)"
  assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
