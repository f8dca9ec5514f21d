"""Dilated distances and their proximal steps, against their definitions and against enumeration."""

import functools
import itertools

import numpy as np
import pyspiel
import pytest
import random_games

import spiel_cfr
from spiel_cfr import policies
from spiel_cfr.first_order.distances import DilatedDistance

KINDS = [("entropy", "farina2021"), ("entropy", "kroer2017"), ("euclidean", "kroer2017")]
CONVEX = pytest.mark.parametrize(("regularizer", "weights"), KINDS)


@functools.cache
def game(seed):
  """Random games, some of whose infosets have one action only, of up to four levels."""
  if seed == 0:
    return spiel_cfr.compile_game("leduc_poker")
  return spiel_cfr.compile_game(random_games.random_game(seed, max_histories=200))


def random_strategies(compiled, rng, sharp=1.0):
  return policies.behavioral_form(compiled, rng.gamma(1 / sharp, size=compiled.end) + 1e-6)


def divergence(compiled, distance, regularizer, x, z):
  """Returns D(x, z) of all players from its definition; x and z in behavioral form."""
  reach = policies.sequence_form(compiled, x)
  total = 0.0
  for tree in compiled.treeplexes:
    for sequences, infosets in tree.infoset_groups():
      own, other = x[sequences], z[sequences]
      if regularizer == "entropy":
        some = own > 0
        logs = np.log(np.where(some, own, 1.0) / other)
        local = np.where(some, own * logs, 0.0).sum(axis=0)
      else:
        local = ((own - other) ** 2).sum(axis=0) / 2
      weights = distance.weights[0, tree.first_infoset :][infosets]
      total += (weights * reach[tree.parent[infosets]] * local).sum()
  return total


def prox(compiled, distance, regularizer, utility, center, scale):
  """Returns the proximal step of all players in behavioral form, and the sum of the maxima."""
  entropy = regularizer == "entropy"
  with np.errstate(divide="ignore"):
    start = np.where(center > 0, np.log(center), 0.0) if entropy else center
  step = distance.step(utility, start, scale)
  found = np.zeros(compiled.end)
  for treeplex in compiled.treeplexes:
    for sequences, _ in treeplex.infoset_groups():
      found[sequences] = np.exp(step.center[sequences]) if entropy else step.center[sequences]
  np.testing.assert_allclose(policies.sequence_form(compiled, found), step.point, atol=1e-12)
  return found, step.values.sum()


@CONVEX
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_on_a_simplex_there_is_a_closed_form(regularizer, weights, scale):
  compiled = spiel_cfr.compile_game(
    pyspiel.create_matrix_game([[1, 2], [3, 4], [5, 6]], [[0] * 2] * 3)
  )
  distance, rng = DilatedDistance(compiled, regularizer, weights), np.random.default_rng(1)
  center = random_strategies(compiled, rng)
  utility = scale * rng.normal(size=compiled.end)
  found, _ = prox(compiled, distance, regularizer, utility, center, scale)
  for tree in compiled.treeplexes:
    sequences = next(tree.infoset_groups())[0][:, 0]
    share = 1 / (scale * distance.weights[0, tree.first_infoset])
    if regularizer == "entropy":
      expected = center[sequences] * np.exp(utility[sequences] * share)
      expected /= expected.sum()
    else:
      score = np.sort(center[sequences] + utility[sequences] * share)[::-1]
      thresholds = (np.cumsum(score) - 1) / np.arange(1, len(score) + 1)
      last = np.flatnonzero(score > thresholds)[-1]
      expected = np.maximum(center[sequences] + utility[sequences] * share - thresholds[last], 0)
    np.testing.assert_allclose(found[sequences], expected, atol=1e-12)


@CONVEX
@pytest.mark.parametrize("seed", range(5))
def test_steps_are_optimal(regularizer, weights, seed):
  compiled, rng = game(seed), np.random.default_rng(seed)
  distance = DilatedDistance(compiled, regularizer, weights)
  center = random_strategies(compiled, rng)
  for scale in (0.01, 1.0):
    utility = rng.normal(size=compiled.end)
    found, maximum = prox(compiled, distance, regularizer, utility, center, scale)

    def worth(x, utility=utility, scale=scale):
      linear = utility @ policies.sequence_form(compiled, x)
      return linear - scale * divergence(compiled, distance, regularizer, x, center)

    assert worth(found) == pytest.approx(maximum, rel=1e-10)
    reach = policies.sequence_form(compiled, found)
    for _ in range(20):
      other = policies.sequence_form(compiled, random_strategies(compiled, rng, sharp=4.0))
      for share in (1.0, 1e-3):
        between = policies.behavioral_form(compiled, (1 - share) * reach + share * other)
        assert worth(between) <= maximum + 1e-11 * abs(maximum)


@CONVEX
def test_without_utilities_strategies_do_not_change(regularizer, weights):
  compiled, rng = game(1), np.random.default_rng(2)
  distance = DilatedDistance(compiled, regularizer, weights)
  center = random_strategies(compiled, rng)
  found, maximum = prox(compiled, distance, regularizer, np.zeros(compiled.end), center, 1.0)
  np.testing.assert_allclose(found, center, atol=1e-13)
  assert maximum == pytest.approx(0, abs=1e-12)


@CONVEX
@pytest.mark.parametrize("seed", range(5))
def test_distances_are_strongly_convex(regularizer, weights, seed):
  """D(x, z) >= |x - z|^2 / 2, the norm that of the difference in sequence form."""
  compiled, rng = game(seed), np.random.default_rng(seed)
  distance = DilatedDistance(compiled, regularizer, weights)
  for sharp in (0.3, 3.0, 30.0):
    for _ in range(20):
      x, z = (random_strategies(compiled, rng, sharp) for _ in range(2))
      moved = policies.sequence_form(compiled, x) - policies.sequence_form(compiled, z)
      assert divergence(compiled, distance, regularizer, x, z) >= moved @ moved / 2


def test_small_weights_are_not_enough():
  """Purpose of the weights: with the Euclidean distance and weights of 1, the bound fails."""
  compiled, rng = game(0), np.random.default_rng(0)
  distance = DilatedDistance(compiled, "euclidean", "one")
  ratios = []
  for _ in range(20):
    x = random_strategies(compiled, rng)
    z = x.copy()
    # A change at the first infosets alone moves everything below.
    for tree in compiled.treeplexes:
      sequences = next(tree.infoset_groups())[0]
      z[sequences] = z[sequences][::-1]
    moved = policies.sequence_form(compiled, x) - policies.sequence_form(compiled, z)
    ratios.append(divergence(compiled, distance, "euclidean", x, z) / (moved @ moved / 2))
  assert min(ratios) < 0.9


@pytest.mark.parametrize("weights", ["farina2021", "kroer2017", "one"])
@pytest.mark.parametrize("regularizer", ["entropy", "euclidean"])
def test_diameters_are_the_largest_distances(regularizer, weights):
  compiled = spiel_cfr.compile_game(random_games.random_game(4, max_histories=25))
  distance = DilatedDistance(compiled, regularizer, weights)
  uniform = policies.uniform(compiled)
  for player, tree in enumerate(compiled.treeplexes):
    columns = [block[:, i] for block, _ in tree.infoset_groups() for i in range(block.shape[1])]
    assert np.prod([len(column) for column in columns]) < 5000
    largest = 0.0
    for choice in itertools.product(*columns):
      pure = uniform.copy()
      for column in columns:
        pure[column] = 0.0
      pure[list(choice)] = 1.0
      largest = max(largest, divergence(compiled, distance, regularizer, pure, uniform))
    assert distance.diameters[player] == pytest.approx(largest, rel=1e-12)
    assert largest > 0
