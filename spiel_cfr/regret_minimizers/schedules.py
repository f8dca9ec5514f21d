"""Schedules: numbers that depend on the iteration, such as discounts of regrets and weights of averages.

An argument that takes a schedule also takes a plain number. For a schedule of your own, derive a frozen dataclass from
`Schedule` and give it a `__call__`.

    >>> import numpy as np
    >>> Discount(1.5)(np.array([1, 4]))
    array([0.5       , 0.88888889])
"""

import abc
import dataclasses
import math
import sys
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._util import arguments

# The power up to which no 64-bit number overflows.
_NEVER_TOO_LARGE = 16.0


class Schedule(abc.ABC):
  """A function from iterations, counted from 1, to numbers."""

  @abc.abstractmethod
  def __call__(self, iterations: Int64s) -> Float64s:
    """Returns the numbers of iterations; argument and result have the shape (iterations,)."""


Numbers: TypeAlias = float | Schedule
# Weights of iterations in averages: a schedule, a function from arrays of iterations to numbers, or a power of t.
Weights: TypeAlias = float | Schedule | Callable[[Float64s], Float64s]


def evaluated(numbers: Numbers, iterations: Int64s) -> Float64s:
  """Returns the numbers of some iterations, shape (iterations,).

  Raises:
    ArgumentError: a schedule returns an array of another shape.
  """
  if not isinstance(numbers, Schedule):
    return np.full(len(iterations), float(numbers))
  result = np.asarray(numbers(iterations), np.float64)
  if result.shape != iterations.shape:
    raise errors.ArgumentError(
      f"{numbers!r} returns an array of shape {result.shape} for {len(iterations)} iterations; it must return a number "
      "for each."
    )
  return np.ascontiguousarray(result)


def as_weights(value: Weights, name: str) -> Schedule:
  """Returns weights of iterations, an argument of this name, as a schedule.

  Raises:
    ArgumentError: `value` is neither a schedule, a function, nor a power of t, finite and not negative.
  """
  if isinstance(value, Schedule):
    return value
  if callable(value):
    return FromFunction(value)
  return Power(arguments.real_number(value, name, 0.0, sys.float_info.max))


def checked(value: Numbers, name: str, minimum: float, maximum: float) -> None:
  """Checks a number; schedules are not checked.

  Raises:
    ArgumentError: `value` is neither a schedule nor a number from `minimum` to `maximum`.
  """
  if not isinstance(value, Schedule):
    arguments.real_number(value, name, minimum, maximum)


@dataclasses.dataclass(frozen=True)
class Power(Schedule):
  """t^power.

  Attributes:
    power: the power of t, not negative.
  """

  power: float

  def __post_init__(self) -> None:
    arguments.real_number(self.power, "power", 0.0, sys.float_info.max)

  def __call__(self, iterations: Int64s) -> Float64s:
    numbers = iterations.astype(np.float64)
    if self.power <= _NEVER_TOO_LARGE:
      result: Float64s = numbers**self.power
    else:
      with np.errstate(over="ignore"):
        result = numbers**self.power
    return result


@dataclasses.dataclass(frozen=True)
class FromFunction(Schedule):
  """The numbers that a function returns. Checkpoints can't keep a function; derive a `Schedule` for that.

  Attributes:
    function: from iterations, float64 of shape (iterations,), to numbers of that shape.
  """

  function: Callable[[Float64s], Float64s]

  def __call__(self, iterations: Int64s) -> Float64s:
    try:
      return np.asarray(self.function(iterations.astype(np.float64)), np.float64)
    except (TypeError, ValueError) as error:
      raise errors.ArgumentError(
        f"{self.function!r} must return a number for each iteration, given an array of iterations: {error}"
      ) from error


@dataclasses.dataclass(frozen=True)
class Saturating(Schedule):
  """limit t^power / (half + t^power), which grows towards the limit.

  Attributes:
    limit: the limit, positive.
    half: the value of t^power at which half of the limit is reached, not negative.
    power: the power of t, not negative.
  """

  limit: float
  half: float
  power: float

  def __post_init__(self) -> None:
    arguments.positive_number(self.limit, "limit")
    arguments.real_number(self.half, "half", 0.0, sys.float_info.max)
    arguments.real_number(self.power, "power", 0.0, sys.float_info.max)

  def __call__(self, iterations: Int64s) -> Float64s:
    # In a form that does not overflow.
    result: Float64s = self.limit / (1.0 + self.half * iterations.astype(np.float64) ** -self.power)
    return result


@dataclasses.dataclass(frozen=True)
class Discount(Schedule):
  """t^alpha / (t^alpha + 1), of Brown and Sandholm (2019); alpha may grow from iteration to iteration.

  Attributes:
    alpha: the power; infinity is no discount, minus infinity forgets everything.
    growth: the growth of alpha up to the horizon: at iteration t it is alpha + growth * min(t / horizon, 1).
    horizon: the iteration at which alpha stops growing.
    delay: 0 or 1; with 1, iteration t has the discount of t - 1.
  """

  alpha: float
  growth: float = 0.0
  horizon: int = 1
  delay: int = 0

  def __post_init__(self) -> None:
    arguments.real_number(self.alpha, "alpha")
    arguments.real_number(self.growth, "growth")
    arguments.positive_integer(self.horizon, "horizon")
    arguments.integer(self.delay, "delay", 0, 1)

  def __call__(self, iterations: Int64s) -> Float64s:
    alpha = self.alpha + self.growth * np.minimum(iterations / self.horizon, 1.0)
    # In a form that does not overflow.
    with np.errstate(over="ignore", divide="ignore"):
      result: Float64s = 1.0 / (1.0 + (iterations - self.delay).astype(np.float64) ** -alpha)
    return result


@dataclasses.dataclass(frozen=True)
class Fading(Schedule):
  """first * min(1, (until / t)^power): constant at first, then fading away.

  Attributes:
    first: the number of the first iterations, not negative.
    until: the last iteration with this number, positive.
    power: the power by which it fades, not negative.
  """

  first: float
  until: float
  power: float = 2.0

  def __post_init__(self) -> None:
    arguments.real_number(self.first, "first", 0.0, sys.float_info.max)
    arguments.positive_number(self.until, "until")
    arguments.real_number(self.power, "power", 0.0, sys.float_info.max)

  def __call__(self, iterations: Int64s) -> Float64s:
    result: Float64s = self.first * np.minimum(1.0, self.until / iterations) ** self.power
    return result


@dataclasses.dataclass(frozen=True)
class FallingPower(Schedule):
  """The weights of iterations if after iteration s the sum so far is multiplied by (s / (s + 1))^gamma_s.

  With gamma_s = gamma - 5 s / horizon, the weight of iteration t is the product of ((s + 1) / s)^gamma_s over s < t:

      log weight = gamma log t - 5 / horizon * ((t - 1) log t - log (t - 1)!)

  Past the horizon gamma_s stays at gamma - 5. Zhang, McAleer and Sandholm, "Faster Game Solving via Hyperparameter
  Schedules" (2024).

  Attributes:
    gamma: the power at the first iteration, at least 5.
    horizon: the number of iterations for which the power falls.
  """

  gamma: float
  horizon: int

  def __post_init__(self) -> None:
    arguments.real_number(self.gamma, "gamma", 5.0, sys.float_info.max)
    arguments.positive_integer(self.horizon, "horizon")

  def __call__(self, iterations: Int64s) -> Float64s:
    within = np.minimum(iterations, self.horizon)
    logarithms = np.log(within)
    factorials = np.array([math.lgamma(t) for t in within.tolist()])
    fallen = 5 / self.horizon * ((within - 1) * logarithms - factorials)
    past = (self.gamma - 5) * (np.log(iterations) - logarithms)
    with np.errstate(over="ignore", invalid="ignore"):
      result: Float64s = np.exp(self.gamma * logarithms - fallen + past)
    return result


def discounted_sum(discount: Numbers, iterations: int) -> float:
  """Returns a sum after some iterations, each of which multiplies it by a discount and then adds 1."""
  result = 0.0
  for factor in evaluated(discount, np.arange(1, iterations + 1)).tolist():
    result = result * factor + 1.0
  return result
