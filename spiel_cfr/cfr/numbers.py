"""What solvers watch while they run: that one thread runs them, and that numbers are some."""

import functools
import math
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s

P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")

# The attribute that says that a solver is running.
RUNNING = "_running"


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
  """Decorator of methods of a solver of which only one may be under way, in one thread."""

  @functools.wraps(method)
  def alone(self: S, /, *arguments: P.args, **named: P.kwargs) -> R:
    attributes = self.__dict__
    # Unlike what a lock would note, this is undone wherever Ctrl-C strikes.
    token = object()
    try:
      # One operation of a dictionary, so that no other thread comes in between.
      if attributes.setdefault(RUNNING, token) is not token:
        raise errors.ConcurrentUseError(
          f"This {type(self).__name__} runs already. Give each thread a solver of its own: copy.copy(solver) shares "
          "the compiled game."
        )
      return method(self, *arguments, **named)
    finally:
      if attributes.get(RUNNING) is token:
        del attributes[RUNNING]

  return alone


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
