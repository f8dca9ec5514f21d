"""Random numbers and draws."""

import numpy as np
import pytest

from spiel_cfr.mccfr.random_draws import explore, fill_uniform, pick
from spiel_cfr.mccfr.sampling_rules import Rule, Sampler


def test_picks_nothing_impossible() -> None:
  almost_one = 1 - 2.0**-53
  assert pick([0.0, 0.5, 0.5], 0, 3, 0.0) == 1
  assert pick([0.5, 0.0, 0.5], 0, 3, 0.5) == 2
  # Rounded probabilities that sum to less than the random number.
  assert pick([0.3, 0.6, 0.0], 0, 3, almost_one) == 1
  assert pick([9.0, 0.25, 0.75], 1, 2, 0.2) == 0
  assert pick([9.0, 0.25, 0.75], 1, 2, 0.3) == 1


def test_rules_have_exploration_probabilities() -> None:
  rules = Rule.EVERY_ACTION, Rule.BY_STRATEGY
  strategy, average = [9.0, 0.1, 0.7, 0.2], np.array([9.0, 2.0, 0.0, 30.0])
  explored = [0.0] * 3
  assert not explore(Rule.BY_STRATEGY, Sampler(*rules), strategy, average, 1, 3, explored)
  assert explored == [0.1, 0.7, 0.2]
  assert not explore(
    Rule.BY_EXPLORING_STRATEGY, Sampler(*rules, 0.3), strategy, average, 1, 3, explored
  )
  assert explored == pytest.approx([0.17, 0.59, 0.24])
  assert explore(
    Rule.BY_AVERAGE, Sampler(*rules, 0.15, 3.0, 2.0), strategy, average, 1, 3, explored
  )
  # (3 + 2 s) / (3 + 32), at least 0.15 and at most 1.
  assert explored == pytest.approx([7 / 35, 0.15, 1.0])
  assert explore(
    Rule.BY_AVERAGE, Sampler(*rules, 0.15, 0.0, 2.0), strategy, 0 * average, 1, 3, explored
  )
  assert explored == [1.0] * 3


def test_random_numbers_are_uniform() -> None:
  numbers = np.empty(200_000)
  fill_uniform(np.array([12345, 0, 0, 0], np.uint64), numbers)
  assert 0 <= numbers.min() < numbers.max() < 1
  counts = np.histogram(numbers, 100, (0, 1))[0]
  # Chi squared with 99 degrees of freedom: beyond 150 once in a thousand.
  assert ((counts - 2000) ** 2 / 2000).sum() < 150
  # Standard error of a correlation: 1 / sqrt(200,000).
  assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 4 / np.sqrt(len(numbers))
