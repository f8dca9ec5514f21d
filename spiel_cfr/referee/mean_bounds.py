"""Confidence bounds on the mean of bounded samples, valid for any number of samples and any distribution.

The method is betting against a hypothetical mean m (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random
variables by betting", section 4). Before each sample X_i, the bettor chooses a stake, which pays X_i - m per unit. The
stake is small enough to keep the capital positive. The capital

    K(m) = product over samples i of  1 + stake_i (X_i - m)

has expectation 1 if the mean is m. It then reaches 1 / p with probability at most p (Markov). Values of m with
K(m) >= 1 / p are therefore rejected.
"""

import math

import numpy as np

from spiel_cfr._numba.arrays import Float64s

# The largest share of the capital that one sample may lose.
_MOST_LOSS = 0.75
# The number of bisections that locate the bound.
_BISECTIONS = 50


def least_mean(samples: Float64s, least: float, most: float, error_probability: float) -> float:
  """Returns a lower bound on the mean, which fails with probability at most `error_probability`.

  Args:
    samples: shape (samples,). Every sample has the same mean, given the earlier samples.
    least: a lower bound on all samples, up to rounding.
    most: a likely upper bound on the samples. If it is wrong, the result is looser but still valid.
    error_probability: a number between 0 and 1.
  """
  count, half = len(samples), (most - least) / 2
  if half <= 0:
    return least
  samples = np.maximum(samples, least)
  # The mean and variance of all earlier samples, and of a virtual one in the middle with the largest possible variance.
  ranks = np.arange(1, count + 1)
  sums = np.concatenate([[0.0], np.cumsum(samples - least - half)])
  means = sums[1:] / (ranks + 1)
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
