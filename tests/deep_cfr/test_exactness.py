"""Deep CFR with exact learners equals tabular CFR: samples, memories and averages are exact."""

import collections
from typing import Any

import numpy as np
import pyspiel
import pytest
import random_games

import spiel_cfr
from spiel_cfr import RegretMatching, policies
from spiel_cfr.deep_cfr import lockstep
from spiel_cfr.deep_cfr.exact_memory import match_advantages
from spiel_cfr.deep_cfr.network import MLP, LeastSquares, Rows, Training, compiled, libraries
from spiel_cfr.deep_cfr.reservoir import Reservoir
from spiel_cfr.mccfr.sampling_rules import AverageType

TABLES: dict[str, Any] = {"network": LeastSquares(), "features": "one_hot", "greedy": False}
GAMES = {
  "kuhn_poker": lambda: pyspiel.load_game("kuhn_poker"),
  "liars_dice": lambda: pyspiel.load_game("liars_dice(dice_sides=3)"),
  "three players": lambda: random_games.random_game(1, num_players=3, max_histories=100),
  "general-sum": lambda: random_games.random_game(3, zero_sum=False, max_histories=100),
}
every_game = pytest.mark.parametrize("load", GAMES.values(), ids=GAMES)


@every_game
def test_exact_least_squares_on_one_hot_features_are_external_sampling(load: Any) -> None:
  deep = spiel_cfr.DeepCFRSolver(load(), num_traversals=1, seed=3, **TABLES)
  expected = spiel_cfr.ExternalSamplingSolver(
    deep.compiled_game,
    AverageType.FULL,
    seed=3,
    minimizer=RegretMatching.discounted(1.0, 1.0),
    average_weights=1.0,
  )
  for _ in range(30):
    deep.run(1)
    expected.run(1)
    for name in ("current_probabilities", "average_sequence_form"):
      found, wanted = (getattr(solver, name)() for solver in (deep, expected))
      np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8)
  assert deep.nodes_touched == expected.nodes_touched


def _counterfactual(compiled: Any, current: Any) -> np.ndarray:
  """The exact regrets of a policy, in order of discovery."""
  exact = spiel_cfr.TabularCFRSolver(compiled, alternating_updates=False)
  exact._runtime.loop.arrays.set_strategy(policies.from_policy(compiled, current))
  exact.evaluate_and_update_policy()
  result: np.ndarray = exact.state.action_state[0, compiled.all_action_sequences]
  return result


class _Outcomes:
  """Enumerates all draws, in place of `pick`."""

  def __init__(self) -> None:
    self._drawn: list[tuple[int, list[float]]] = []
    self.probability = 1.0

  def pick(self, probabilities: Any, begin: int, count: int, uniform: float) -> int:
    chances = [float(probabilities[begin + outcome]) for outcome in range(count)]
    if self._position == len(self._drawn):
      self._drawn.append((next(k for k, p in enumerate(chances) if p > 0), chances))
    chosen, _ = self._drawn[self._position]
    self._position += 1
    self.probability *= chances[chosen]
    return chosen

  def __iter__(self) -> Any:
    while True:
      self._position, self.probability = 0, 1.0
      yield
      while self._drawn:
        chosen, chances = self._drawn.pop()
        later = [k for k, p in enumerate(chances) if k > chosen and p > 0]
        if later:
          self._drawn.append((later[0], chances))
          break
      else:
        return


@pytest.mark.parametrize("sampler", ["external", "outcome"])
def test_expected_samples_on_states_are_the_exact_advantages(
  sampler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
  solver = spiel_cfr.DeepCFRSolver(
    "kuhn_poker",
    algorithm="dcfr+",
    advantage_network_layers=(4,),
    num_traversals=8,
    seed=1,
    engine="states",
    sampler=sampler,
  )
  solver.run(3)
  game = spiel_cfr.compile_game("kuhn_poker")
  samples: Any = solver._runtime.samples
  rows = {
    solver._encoder(state, state.current_player()).tobytes(): state.information_state_string()
    for state in _decisions(game.game.new_initial_state())
  }
  wanted = _counterfactual(game, solver.current_policy())
  reaches = _reaches(game, solver.current_policy())
  tables = _Tables(solver)
  for player in (0, 1):
    outcomes = _Outcomes()
    monkeypatch.setattr(lockstep, "pick", outcomes.pick)
    sums: dict[str, Any] = collections.defaultdict(lambda: np.zeros(2))
    visits: dict[str, float] = collections.defaultdict(float)
    for _ in outcomes:
      kept = samples.sample(player, 1, 1.0, True, tables.strategies)
      for row in range(samples.memory.advantages[player].seen):
        infostate = rows[kept.features[row].tobytes()]
        sums[infostate] += outcomes.probability * kept.targets[row]
        visits[infostate] += outcomes.probability
    first = 0 if player == 0 else len(game.actions[0])
    for place, infostate in enumerate(game.infostates[player]):
      if not reaches[infostate]:
        assert infostate not in visits
        continue
      exact = wanted[first + 2 * place :][:2] / reaches[infostate]
      np.testing.assert_allclose(sums[infostate] / visits[infostate], exact, atol=1e-6)
      if sampler == "external":
        assert visits[infostate] == pytest.approx(reaches[infostate], abs=1e-12)


class _Tables:
  """Returns the current strategy of a solver on states."""

  def __init__(self, solver: Any) -> None:
    self._solver = solver

  def strategies(self, player: int, features: Any, mask: Any) -> Any:
    return self._solver._strategies(player, features, mask, int(self._solver.iteration))


def _decisions(state: Any) -> Any:
  if state.is_terminal():
    return
  if not state.is_chance_node():
    yield state
  for action in state.legal_actions():
    yield from _decisions(state.child(action))


def _reaches(game: Any, current: Any) -> dict[str, float]:
  """The probability that chance and the other player bring an infoset about."""
  result: dict[str, float] = collections.defaultdict(float)

  def walk(state: Any, reach: tuple[float, float]) -> None:
    if state.is_terminal():
      return
    if state.is_chance_node():
      for action, chance in state.chance_outcomes():
        walk(state.child(action), (reach[0] * chance, reach[1] * chance))
      return
    mover = state.current_player()
    # reach[p]: of all but p.
    result[state.information_state_string()] += reach[mover]
    for action, chance in current.action_probabilities(state).items():
      walk(
        state.child(action),
        (reach[0], reach[1] * chance) if mover == 0 else (reach[0] * chance, reach[1]),
      )

  walk(game.game.new_initial_state(), (1.0, 1.0))
  return result


@pytest.mark.parametrize("sampler", ["external", "outcome"])
def test_mean_samples_on_a_compiled_game_are_the_exact_advantages(sampler: Any) -> None:
  solver = spiel_cfr.DeepCFRSolver(
    "kuhn_poker",
    algorithm="dcfr+",
    advantage_network_layers=(8,),
    num_traversals=200,
    seed=2,
    sampler=sampler,
  )
  solver.run(3)
  wanted = _counterfactual(solver.compiled_game, solver.current_policy())
  reaches = _reaches(solver.compiled_game, solver.current_policy())
  samples: Any = solver._runtime.samples
  entries, sums, visits = samples.engine.table.entries, samples.memory.sums, samples.memory.visits
  for player in (0, 1):
    samples.sample(player, 400_000, 1.0, True)
  names = [name for own in solver.compiled_game.infostates for name in own]
  for infoset, first in enumerate(entries.first.tolist()):
    if not reaches[names[infoset]]:
      assert not visits[first]
      continue
    exact = wanted[2 * infoset :][:2] / reaches[names[infoset]]
    np.testing.assert_allclose(sums[first : first + 2] / visits[first], exact, atol=0.03)


@pytest.mark.parametrize("load", [GAMES["liars_dice"], GAMES["three players"]])
def test_exact_memory_has_the_gradient_of_all_samples(load: Any) -> None:
  solver = spiel_cfr.DeepCFRSolver(load(), num_traversals=1, seed=3, **TABLES)
  samples: Any = solver._runtime.samples
  table, entries = solver._rows, samples.engine.table.entries
  network, generator = MLP((8,)), np.random.default_rng(5)
  own = table.players[0]
  sums, visits = samples.memory.sums, samples.memory.visits
  num_outputs = table.mask.shape[1]
  chosen = generator.integers(own.stop - own.start, size=500)
  weights = generator.integers(1, 50, size=500).astype(float)
  targets = generator.normal(size=(500, num_outputs)) * table.mask[own][chosen]
  for infoset, weight, target in zip(chosen, weights, targets, strict=True):
    first, count = entries.first[infoset], entries.num_actions[infoset]
    sums[first : first + count] += weight * target[table.mask[infoset]]
    visits[first] += weight
  features = generator.normal(size=(len(table.features), 5)).astype(np.float32)
  every = Rows(features[chosen], targets, table.mask[chosen], weights)
  means = samples.means(0)
  rows = means._replace(features=features[own])
  jax = libraries().jax
  with jax.enable_x64(True):
    sizes = ((5, 8), (8,)), ((8, num_outputs), (num_outputs,))
    parameters = [tuple(generator.normal(size=size) for size in layer) for layer in sizes]

    @jax.jit
    def gradient(parameters: Any, rows: Any) -> Any:
      def loss(parameters: Any) -> Any:
        missing = network.apply(parameters, rows.features) - rows.targets
        return (rows.weights[:, None] * rows.mask * missing**2).sum()

      return jax.grad(loss)(parameters)

    one, other = (
      gradient(parameters, each._replace(features=each.features.astype(float)))
      for each in (every, rows)
    )
  for found, wanted in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


def test_the_loss_is_weighted_masked_and_what_is_fitted() -> None:
  """Two rows with equal features converge to the weighted mean; masked entries do not count."""
  features = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
  targets = np.array([[1.0, 9.0], [0.0, 9.0], [0.5, -1.0]])
  mask = np.array([[True, False], [True, False], [True, True]])
  rows = Rows(features, targets, mask, np.array([3.0, 1.0, 2.0]))
  network = MLP((8,))
  training = Training(steps=800, learning_rate=0.02, batch_size=None, seed=(0, 0))
  for batch_size in (None, 2):
    start = network.fresh((1, 2), 2, 2)
    assert not network.outputs(start, features, 2).any()
    fitted = network.fitted(start, rows, training._replace(batch_size=batch_size))
    found = network.outputs(fitted, features, 2)
    tolerance = 1e-3 if batch_size is None else 0.1
    np.testing.assert_allclose(found[[0, 2, 2], [0, 0, 1]], [0.75, 0.5, -1.0], atol=tolerance)
  assert compiled(network, 2, 2) is compiled(network, 2, 2)


def test_regret_matching() -> None:
  advantages = np.array([[1.0, 3.0, 9.0], [-1.0, -2.0, 9.0], [-1.0, -1.0, 9.0], [1e-13, -1, 0]])
  mask = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 0], [1, 1, 1]], bool)
  greedy = [[0.25, 0.75, 0], [1, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5]]
  uniform = [[0.25, 0.75, 0], [0.5, 0.5, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]]
  np.testing.assert_allclose(match_advantages(advantages, mask, 1e-12, True), greedy)
  np.testing.assert_allclose(match_advantages(advantages, mask, 1e-12, False), uniform)


def test_a_reservoir_keeps_all_rows_with_the_same_chance() -> None:
  generator = np.random.default_rng(1)
  counts = np.zeros(40)
  for _ in range(2000):
    reservoir = Reservoir.empty(10, 1, 1)
    for begin in range(0, 40, 8):
      column = np.arange(begin, begin + 8, dtype=float)[:, None]
      reservoir.add(Rows(column, column, column >= 0, np.ones(8)), 10, generator)
    kept = reservoir.rows()
    assert (kept.features == kept.targets).all()
    assert len(set(kept.features[:, 0].tolist())) == 10
    counts[kept.features[:, 0].astype(int)] += 1
  # 500 each, with a standard deviation of 19.
  assert np.abs(counts - 500).max() < 100


def test_means_of_one_hot_rows_are_least_squares():
  generator = np.random.default_rng(3)
  hot = generator.integers(0, 6, 20)
  mask = generator.random((20, 3)) < 0.7
  weights = np.where(generator.random(20) < 0.2, 0.0, generator.random(20))
  targets = generator.normal(size=(20, 3))
  start = generator.normal(size=6 * 3)
  table, equations = (
    LeastSquares().fitted(start, Rows(features, targets, mask, weights), training=None)
    # With 2 in place of 1, equations are solved.
    for features in (np.eye(6)[hot], 2 * np.eye(6)[hot])
  )
  known = np.zeros((6, 3), bool)
  for row in np.flatnonzero(weights):
    known[hot[row]] |= mask[row]
  table, equations = table.reshape(6, 3), equations.reshape(6, 3)
  np.testing.assert_allclose(table[known], 2 * equations[known], atol=1e-12)
  np.testing.assert_array_equal(table[~known], start.reshape(6, 3)[~known])
