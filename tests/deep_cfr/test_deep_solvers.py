"""Deep solvers: seeds, convergence, states, policies, and what is refused."""

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
from spiel_cfr.deep_cfr.past_policies import joined

SMALL: dict[str, Any] = {"advantage_network_layers": (16,), "policy_network_layers": (16,)}
TABLES: dict[str, Any] = {"network": LeastSquares()}
KINDS: dict[str, Any] = {
  "deep": spiel_cfr.DeepCFRSolver,
  "dcfr+": spiel_cfr.deep_cfr.DeepDiscountedCFRSolver,
  "pdcfr+": lambda game, **options: spiel_cfr.deep_cfr.DeepDiscountedCFRSolver(
    game, True, **options
  ),
}
# XLA compiles every network anew, which takes seconds.
every_kind = pytest.mark.parametrize(
  "make",
  [
    pytest.param(make, marks=[pytest.mark.slow] if name == "dcfr+" else [], id=name)
    for name, make in KINDS.items()
  ],
)


@every_kind
def test_the_same_seed_gives_the_same_bytes(make: Any) -> None:
  one, same, other = (make("kuhn_poker", seed=seed, **SMALL) for seed in (1, 1, 2))
  for solver in (one, same, other):
    solver.run(3)
  for name, value in one.state_dict().items():
    assert value.tobytes() == same.state_dict()[name].tobytes()
  assert one._parameters.tobytes() != other._parameters.tobytes()


@every_kind
def test_a_checkpoint_goes_on_bit_for_bit(make: Any, tmp_path: pathlib.Path) -> None:
  whole, stopped = (make("kuhn_poker", seed=1, **SMALL) for _ in range(2))
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
@every_kind
def test_exploitability_of_kuhn_poker(make: Any) -> None:
  solver = make("kuhn_poker", seed=1, num_traversals=300, **SMALL)
  solver.run(40)
  assert solver.exploitability() < 0.06
  distilled = spiel_cfr.exploitability("kuhn_poker", solver.network_policy())
  assert distilled < 0.15


@pytest.mark.parametrize(
  "options", [pytest.param({}, marks=pytest.mark.slow), {"baseline_rate": 0.1}], ids=str
)
def test_outcome_sampling(options: Any) -> None:
  solver = spiel_cfr.deep_cfr.DeepDiscountedCFRSolver(
    "kuhn_poker", seed=1, num_traversals=1000, sampler="outcome", **options, **SMALL
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
  assert warm._parameters.tobytes() != anew._parameters.tobytes()


@pytest.mark.parametrize(
  "make", [pytest.param(KINDS["deep"], marks=pytest.mark.slow), KINDS["pdcfr+"]]
)
def test_states(make: Any) -> None:
  """On states the average is that of all networks, and better than what is played at first."""
  solver = make("kuhn_poker", seed=1, num_traversals=60, engine="states", **SMALL)
  first = spiel_cfr.exploitability("kuhn_poker", solver.average_policy())
  solver.run(12)
  average = solver.average_policy()
  assert spiel_cfr.exploitability("kuhn_poker", average) < first / 2
  assert spiel_cfr.exploitability("kuhn_poker", solver.network_policy()) < first
  game = spiel_cfr.compile_game("kuhn_poker")
  played = [policies.sequence_form(game, policies.from_policy(game, average))]
  strategies = []
  for iteration in range(12):
    # The first of a past is of no iteration.
    past = [own[iteration + 1 : iteration + 2] for own in solver._past]
    one = policies.from_policy(game, solver._policy_of(past))
    strategies.append(policies.sequence_form(game, one))
  weights = joined(solver._past[0]).weights
  expected = np.average(strategies, axis=0, weights=weights)
  np.testing.assert_allclose(played[0], expected, atol=1e-9)


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
    assert duplicate._parameters.tobytes() == whole._parameters.tobytes()


@pytest.mark.parametrize(
  "options", [{}, {"predictive": True, "baseline_rate": 0.2, "sampler": "outcome"}], ids=str
)
def test_a_checkpoint_of_states_goes_on_bit_for_bit(options: Any, tmp_path: pathlib.Path) -> None:
  """Without a seed in its arguments, and without a compiled game."""
  kind = spiel_cfr.deep_cfr.DeepDiscountedCFRSolver if options else spiel_cfr.DeepCFRSolver
  whole = kind(
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
    assert value.tobytes() == state[name].tobytes(), name
  checkpoints.resume(again)
  assert again.iteration == 3
  with pytest.raises(errors.CheckpointMismatchError, match="leduc_poker"):
    spiel_cfr.Solver.load(path, "leduc_poker")
  for name, wrong in (
    ("advantages.0.weights", -state["advantages.0.weights"]),
    ("advantages.1.targets", state["advantages.1.targets"][:-1]),
    ("strategies.0.seen", -state["strategies.0.seen"]),
    ("strategies.0.features", state["strategies.0.features"][:, :-1]),
    ("past.1.iterations", state["past.1.iterations"][::-1]),
    ("past.0.parameters", np.nan * state["past.0.parameters"]),
    ("past.0.weights", 3),
    ("_scales", -1 - state["_scales"]),
    ("_parameters", state["_parameters"][:1]),
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
  assert loaded._learning.network == Linear()
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
  monkeypatch.setitem(sys.modules, "jax", None)
  with pytest.raises(errors.MissingPackageError, match=r"spiel_cfr\[jax\]"):
    spiel_cfr.DeepCFRSolver("kuhn_poker")
  network.libraries.cache_clear()


def test_nobody_waits_for_jax_who_needs_no_networks() -> None:
  code = "import sys, spiel_cfr; spiel_cfr.DeepCFRSolver; sys.exit('jax' in sys.modules)"
  assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
