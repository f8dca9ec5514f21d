"""Schedules: functions of the iteration, such as discounts of regrets and weights of averages.

A schedule has a value at each iteration t = 1, 2, ... An argument that takes a schedule also takes a plain number. To
write a schedule, derive a frozen dataclass from `Schedule` and define `__call__`.

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

# t^power is a finite number for all 64-bit t and powers up to this one.
_LARGEST_SAFE_POWER = 16.0


class Schedule(abc.ABC):
  """Base class of schedules: functions from iterations, counted from 1, to values."""

  @abc.abstractmethod
  def __call__(self, iterations: Int64s) -> Float64s:
    """Returns the value at each iteration; argument and result have the shape (iterations,)."""


# The value at every iteration, as a plain number; or a schedule.
NumberOrSchedule: TypeAlias = float | Schedule
# Weights of iterations in averages: a schedule, a function from arrays of iterations to weights, or p for t^p.
Weights: TypeAlias = float | Schedule | Callable[[Float64s], Float64s]


def evaluated(value: NumberOrSchedule, iterations: Int64s) -> Float64s:
  """Returns the value at each iteration, shape (iterations,).

  A plain number is the value at every iteration.

  Raises:
    ArgumentError: a schedule returns an array of another shape.
  """
  if not isinstance(value, Schedule):
    return np.full(len(iterations), float(value))
  result = np.asarray(value(iterations), np.float64)
  if result.shape != iterations.shape:
    raise errors.ArgumentError(
      f"{value!r} returns an array of shape {result.shape} for {len(iterations)} iterations; it must return one "
      "number for each iteration."
    )
  return np.ascontiguousarray(result)


def as_weights(value: Weights, name: str) -> Schedule:
  """Returns weights of iterations as a schedule.

  Args:
    value: a schedule, a function, or a power of t.
    name: the name of the argument, for error messages.

  Raises:
    ArgumentError: `value` is not a schedule, not a function, and not a finite number of at least 0.
  """
  if isinstance(value, Schedule):
    return value
  if callable(value):
    return FromFunction(value)
  return Power(arguments.real_number(value, name, 0.0, sys.float_info.max))


def checked(value: NumberOrSchedule, name: str, minimum: float, maximum: float) -> None:
  """Checks that a plain number is in a range. The values of a schedule are not checked.

  Args:
    value: the number or schedule.
    name: the name of the argument, for error messages.
    minimum: the smallest valid number.
    maximum: the largest valid number.

  Raises:
    ArgumentError: `value` is neither a schedule nor a number from `minimum` to `maximum`.
  """
  if not isinstance(value, Schedule):
    arguments.real_number(value, name, minimum, maximum)


@dataclasses.dataclass(frozen=True)
class Power(Schedule):
  """The schedule t^power.

  Attributes:
    power: the power of t, not negative.
  """

  power: float

  def __post_init__(self) -> None:
    arguments.real_number(self.power, "power", 0.0, sys.float_info.max)

  def __call__(self, iterations: Int64s) -> Float64s:
    numbers = iterations.astype(np.float64)
    if self.power <= _LARGEST_SAFE_POWER:
      result: Float64s = numbers**self.power
    else:
      with np.errstate(over="ignore"):
        result = numbers**self.power
    return result


@dataclasses.dataclass(frozen=True)
class FromFunction(Schedule):
  """The schedule of a user's function.

  A checkpoint cannot store a function. To write checkpoints, derive a class from `Schedule` instead.

  Attributes:
    function: function from iterations, float64 (iterations,), to numbers of the same shape.
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
  """The schedule limit t^power / (half + t^power), which grows towards the limit.

  Attributes:
    limit: the limit, positive.
    half: the value of t^power at which the schedule reaches half of the limit; not negative.
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
    # Numerator and denominator are divided by t^power, because t^power may overflow.
    result: Float64s = self.limit / (1.0 + self.half * iterations.astype(np.float64) ** -self.power)
    return result


@dataclasses.dataclass(frozen=True)
class Discount(Schedule):
  """The discount t^alpha / (t^alpha + 1) of Brown and Sandholm (2019); the power may grow with the iteration.

  Attributes:
    alpha: the power. Infinity means no discount; minus infinity forgets everything.
    growth: the growth of the power up to the horizon. At iteration t it is alpha + growth * min(t / horizon, 1).
    horizon: the iteration at which the power stops growing.
    delay: 0 or 1. With 1, iteration t has the discount of t - 1.
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
    # Numerator and denominator are divided by t^alpha, because inf / inf is not a number. If t^-alpha overflows, the
    # discount is 1 / inf = 0, which is right.
    with np.errstate(over="ignore", divide="ignore"):
      result: Float64s = 1.0 / (1.0 + (iterations - self.delay).astype(np.float64) ** -alpha)
    return result


@dataclasses.dataclass(frozen=True)
class Fading(Schedule):
  """The schedule first * min(1, (until / t)^power): constant up to an iteration, then falling towards 0.

  Attributes:
    first: the value at the first iterations, not negative.
    until: the last iteration with this value, positive.
    power: the power of 1 / t with which the value then falls, not negative.
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
  """The averaging weights of HS-DCFR, in which the power of t falls by 5 up to the horizon.

  After iteration s, HS-DCFR multiplies the sum of strategies by (s / (s + 1))^gamma_s, with gamma_s = gamma - 5 s /
  horizon. The average is the same if iteration t instead has the weight

      w_t = product of ((s + 1) / s)^gamma_s over s = 1, ..., t - 1
      log w_t = gamma log t - 5 / horizon * ((t - 1) log t - log (t - 1)!)

  After the horizon, gamma_s stays at gamma - 5. Zhang, McAleer and Sandholm, "Faster Game Solving via Hyperparameter
  Schedules" (2024).

  Attributes:
    gamma: the power at the first iteration, at least 5.
    horizon: the iteration at which the power stops falling.
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


def discounted_sum(discount: NumberOrSchedule, iterations: int) -> float:
  """Returns the sum after a number of iterations, each of which multiplies the sum by a discount and then adds 1."""
  result = 0.0
  for factor in evaluated(discount, np.arange(1, iterations + 1)).tolist():
    result = result * factor + 1.0
  return result
