"""Buckets found by clustering."""

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import errors


@pytest.fixture(scope="module")
def leduc():
  return spiel_cfr.compile_game("leduc_poker")


def test_k_means_finds_clusters_that_are_far_apart():
  rng = np.random.default_rng(1)
  centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
  which = rng.integers(3, size=90)
  found = spiel_cfr.abstraction.k_means(centers[which] + rng.normal(size=(90, 2)), 3, seed=2)
  pairs = set(zip(which.tolist(), found.tolist(), strict=True))
  assert len(pairs) == 3
  assert len(np.unique(found)) == 3
  assert spiel_cfr.abstraction.k_means(np.ones((5, 2)), 3).tolist() == [0] * 5
  assert len(np.unique(spiel_cfr.abstraction.k_means(np.eye(4), 9))) == 4
  with pytest.raises(errors.ArgumentError):
    spiel_cfr.abstraction.k_means(np.array([[np.nan]]), 2)


def test_as_many_clusters_as_suits_leave_lose_nothing(leduc):
  """A public state of Leduc has at most three ranks; with one bucket all hands share a strategy."""
  losses = []
  for size in (1, 2, 6):
    made = spiel_cfr.abstraction.cluster(leduc, size, iterations=200)
    assert made.num_buckets <= leduc.num_infosets
    best = spiel_cfr.abstraction.least_exploitable(leduc, made, iterations=1000)
    found = spiel_cfr.exploitability(leduc, best.policy)
    assert found == pytest.approx(best.exploitability, abs=1e-12)
    losses.append(found)
  assert losses[0] > 0.5
  assert losses[0] > losses[1] > 5 * losses[2]
  assert losses[2] < 0.01


def test_the_same_seed_makes_the_same_buckets(leduc):
  first, second = (spiel_cfr.abstraction.cluster(leduc, 2, iterations=20, seed=4) for _ in range(2))
  for own, other in zip(first.labels, second.labels, strict=True):
    np.testing.assert_array_equal(own, other)


def test_hands_of_different_public_states_stay_apart():
  game = spiel_cfr.compile_game("kuhn_poker")
  made = spiel_cfr.abstraction.cluster(game, 1, iterations=5)
  assert made.num_buckets == 4
  with pytest.raises(errors.UnsupportedGameError, match="without symmetries"):
    spiel_cfr.abstraction.cluster(spiel_cfr.abstraction.lossless_abstraction("leduc_poker"), 2)
