"""Bounds of means: they hold with their confidence where a normal distribution would mislead, and are tight."""

import numpy as np
import pytest
from scipy import stats

from spiel_cfr.referee.mean_bounds import least_mean

_RUNS = 1000


def misses(draw, mean, least, most, error_probability):
  """Returns in how many runs the bound is above the mean."""
  generator = np.random.default_rng(0)
  return sum(
    least_mean(draw(generator), least, most, error_probability) > mean for _ in range(_RUNS)
  )


@pytest.mark.parametrize("error_probability", [0.3, 0.05])
def test_it_misses_no_more_often_than_it_says(error_probability):
  """Rare losses, which few samples don't show: Student's interval misses 60 times in a hundred."""
  allowed = stats.binom.ppf(0.999, _RUNS, error_probability)

  def rare(generator):
    return np.where(generator.random(50) < 0.01, -100.0, 1.0)

  def even(generator):
    return generator.integers(0, 2, 50).astype(float)

  assert misses(rare, -0.01, -100.0, 1.0, error_probability) <= allowed
  assert 0 < misses(even, 0.5, 0.0, 1.0, error_probability) <= allowed


def test_many_samples_make_it_tight():
  """Its distance from the mean tends to sqrt(2 log(1 / p)) standard errors; Student's, which promises less, to 1.64."""
  samples = np.random.default_rng(0).normal(3.0, 1.0, 20_000).clip(-30, 30)
  errors_away = (samples.mean() - least_mean(samples, -30.0, 30.0, 0.05)) * np.sqrt(20_000)
  assert 2.2 < errors_away < 2.8
  # Of shifted and scaled samples it is the shifted and scaled bound.
  scaled = least_mean(1e9 * samples + 5.0, -3e10 + 5.0, 3e10 + 5.0, 0.05)
  assert scaled == pytest.approx(1e9 * least_mean(samples, -30.0, 30.0, 0.05) + 5.0, rel=1e-9)


def test_limits():
  assert least_mean(np.full(10, 2.0), 2.0, 2.0, 0.05) == 2.0
  assert least_mean(np.zeros(3), 0.0, 1.0, 0.05) == 0.0
  # Two samples prove little.
  assert least_mean(np.ones(2), 0.0, 1.0, 0.05) < 0.5
  assert 0.99 < least_mean(np.ones(2000), 0.0, 1.0, 0.05) <= 1.0
