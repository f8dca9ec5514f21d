"""Regrets that are clipped or discounted where they are negative: the bound of docs/theory/stable_predictive.md."""

import numpy as np
import pytest


def run(utilities, predictions, steps, weights, kept):
  """Returns what is kept, the weighted regrets, and the sum of the errors' terms; shapes (actions,) and a number.

  `kept` says what negative entries are multiplied by after each iteration, shape (iterations, actions), from 0 to 1.
  """
  (sums, regrets), terms = np.zeros((2, utilities.shape[1])), 0.0
  for utility, prediction, step, weight, keep in zip(
    utilities, predictions, steps, weights, kept, strict=True
  ):
    exponent = step * (sums + weight * prediction)
    strategy = np.exp(exponent - exponent.max())
    strategy /= strategy.sum()
    instant = weight * (utility - utility @ strategy)
    sums = sums + instant
    sums = np.where(sums < 0, keep * sums, sums)
    regrets = regrets + instant
    error = weight * np.ptp(utility - prediction) / 2
    terms += min(step * error**2 / 2, 2 * error)
  return sums, regrets, terms


def adversary(rng, iterations, actions, kind):
  """Returns utilities in [-1, 1]: at random; against what is played least; or in waves that pump clipped regrets."""
  if kind == "random":
    return rng.uniform(-1, 1, (iterations, actions))
  if kind == "waves":
    period = rng.integers(2, 30)
    phase = (np.arange(iterations)[:, None] // period + np.arange(actions)) % actions
    return np.where(phase == 0, 1.0, -1.0)
  return np.where(np.arange(actions) == rng.integers(actions, size=iterations)[:, None], 1.0, -1.0)


@pytest.mark.parametrize("kind", ["random", "waves", "single"])
@pytest.mark.parametrize("seed", range(20))
def test_clipping_costs_a_logarithm(seed, kind):
  rng = np.random.default_rng(seed)
  iterations, actions = int(rng.integers(10, 2000)), int(rng.integers(2, 6))
  utilities = adversary(rng, iterations, actions, kind)
  predictions = np.vstack([np.zeros(actions), utilities[:-1]])
  times = np.arange(1, iterations + 1)
  weights = times ** float(rng.integers(0, 3))
  scale = 10 ** rng.uniform(-2, 1) / weights.max()
  steps = scale / times ** rng.choice([0.0, 0.25, 0.5])
  kept = rng.random((iterations, actions)) if seed % 2 else np.zeros((iterations, actions))
  sums, regrets, terms = run(utilities, predictions, steps, weights, kept)
  assert (sums >= regrets - 1e-9 * np.abs(regrets).max()).all()
  bound = (np.log(actions) + np.log(1 + iterations)) / steps[-1] + terms
  assert sums.max() <= bound * (1 + 1e-12)
