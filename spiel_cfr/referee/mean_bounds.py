"""Bounds of a mean after samples, with a probability that holds for any number of samples.

Nothing is taken to be normal. The bound is a bet (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random
variables by betting", section 4): who claims that the mean is m sells, for each sample X, stakes that pay X - m. With
stakes that are chosen before X is seen, and so small that the buyer can't lose more than there is, the buyer's capital

    K(m) = product over samples i of  1 + stake_i (X_i - m)

is expected to stay 1 if the mean is m, so that it reaches 1 / p with a probability of at most p (Markov). The values
of m at which it has are refused.
"""

import math

import numpy as np

from spiel_cfr._numba.arrays import Float64s

# How much of its capital a buyer may lose on one sample.
_MOST_LOSS = 0.75
# Each halves what is left between the bound and the truth about it.
_BISECTIONS = 50


def least_mean(samples: Float64s, least: float, most: float, error_probability: float) -> float:
  """Returns a number that the mean is below with a probability of at most `error_probability`.

  Args:
    samples: independent, with the same mean given those before, shape (samples,).
    least: no sample can be less, but by rounding.
    most: no sample is likely to be more; where it is wrong, the bound is only looser.
    error_probability: between 0 and 1.
  """
  count, half = len(samples), (most - least) / 2
  if half <= 0:
    return least
  samples = np.maximum(samples, least)
  # Mean and variance of the samples before each, and of one that lies in the middle and is as far off as can be.
  ranks = np.arange(1, count + 1)
  before = np.concatenate([[0.0], np.cumsum(samples - least - half)])
  means = before[1:] / (ranks + 1)
  squares = np.cumsum((samples - least - half - means) ** 2)
  variances = (half**2 + np.concatenate([[0.0], squares[:-1]])) / ranks
  goal = -math.log(error_probability)
  stakes = np.sqrt(2 * goal / (count * variances))
  low, high = least, max(least, float(samples.mean()))
  for _ in range(_BISECTIONS):
    middle = (low + high) / 2
    if not low < middle < high:
      break
    capped = np.minimum(stakes, _MOST_LOSS / (middle - least))
    if np.log1p(capped * (samples - middle)).sum() >= goal:
      low = middle
    else:
      high = middle
  return low
