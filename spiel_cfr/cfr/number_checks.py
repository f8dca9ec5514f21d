"""Numbers of iterations that compiled code reads: that they are numbers, of the right shape, and can be added up."""

import math
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s


def check_numbers(numbers: Any, dimensions: int, count: int, name: str) -> None:
  """Checks numbers of some iterations, which compiled code reads.

  Raises:
    ArgumentError: they are not float64, contiguous, with a row an iteration.
  """
  if (
    type(numbers) is not np.ndarray
    or numbers.dtype != np.float64
    or numbers.ndim != dimensions
    or len(numbers) != count
    or not numbers.flags.c_contiguous
  ):
    found = (
      f"an array of {numbers.dtype} of shape {numbers.shape}"
      if isinstance(numbers, np.ndarray)
      else type(numbers).__name__
    )
    shape = f"({count},{' numbers' * (dimensions > 1)})"
    raise errors.ArgumentError(f"{name} must be float64 of shape {shape}, not {found}.")


def check_weights(weights: Float64s, count: int, total: float, most: float = 1e300) -> None:
  """Checks the weights of averages before they are added to what they sum to so far.

  Args:
    weights: of the next iterations, shape (count,).
    count: how many these are.
    total: the sum so far.
    most: what it may become.

  Raises:
    ArgumentError: they are not float64 of shape (count,), or negative.
    NotFiniteError: the sum would leave the range of floating-point numbers.
  """
  check_numbers(weights, 1, count, "weights of averages")
  if count == 1:
    least = more = float(weights[0])
  else:
    least, more = float(weights.min(initial=0.0)), count * float(weights.max(initial=0.0))
  if least < 0:
    raise errors.ArgumentError(f"Weights of averages must not be negative, as {least:g} is.")
  if not total + more <= most or math.isnan(least):
    raise errors.NotFiniteError(
      f"The weights of the average sum to {total:g}, and those of the next {count:,} iterations to up to {more:g}, too "
      "much for floating-point numbers. Take a smaller power, such as gamma=2; or stop: the average is still right."
    )


def check_parameters(parameters: Float64s, minimizer: Any) -> None:
  """Checks the numbers of a minimizer's next iterations: regrets that become NaN would be clipped, and nobody notice.

  Raises:
    NotFiniteError: one is NaN.
  """
  total = parameters.sum()
  # That of infinities is NaN too.
  if total != total and np.isnan(parameters).any():
    raise errors.NotFiniteError(
      f"What `parameters` of {minimizer} returns for the next {len(parameters):,} iterations has NaN. If a schedule "
      "of its ends before that, stop there."
    )
