"""Schedules of evaluations and checkpoints: functions from an iteration to the next due iteration after it.

A schedule depends only on the iteration, so a resumed run keeps the schedule of an uninterrupted run.
"""

import dataclasses
import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from spiel_cfr import errors
from spiel_cfr._util.arguments import integer, positive_integer, real_number, shortened

# A schedule takes an iteration from 0 on. It returns infinity if no later iteration is due.
RunSchedule: TypeAlias = Callable[[int], float]


def next_due(schedule: RunSchedule, iteration: int, name: str) -> float:
  """Returns the next due iteration of a schedule: a whole number, or infinity.

  Args:
    schedule: the schedule.
    iteration: the present iteration.
    name: the name of the schedule in error messages.

  Raises:
    ArgumentError: `schedule` is not a function, or returns no later iteration.
  """
  if not callable(schedule):
    raise errors.ArgumentError(
      f"{name} must be Every(n), Powers(base) or a function of an iteration, not {shortened(schedule)}."
    )
  returned: Any = schedule(iteration)
  due = real_number(returned, f"{name}({iteration})")
  if due <= iteration:
    raise errors.ArgumentError(
      f"{name}({iteration}) is {shortened(returned)}; it must return a later iteration."
    )
  return due if math.isinf(due) else math.ceil(due)


@dataclasses.dataclass(frozen=True)
class Every:
  """Schedule of all multiples of a number of iterations.

  Attributes:
    iterations: int. The number of iterations between two due iterations.

  Raises:
    ArgumentError: `iterations` is not a positive integer.
  """

  iterations: int

  def __post_init__(self) -> None:
    positive_integer(self.iterations, "iterations of Every")

  def __call__(self, iteration: int) -> int:
    """Returns the next multiple after `iteration`."""
    iteration = integer(iteration, "iteration", 0)
    return iteration + self.iterations - iteration % self.iterations


@dataclasses.dataclass(frozen=True)
class Powers:
  """Schedule of the powers of a number, rounded up. They are evenly spaced on the logarithmic axis of a plot.

  Attributes:
    base: float. The number whose powers are due.

  Raises:
    ArgumentError: `base` is not a finite number above 1.
  """

  base: float = 2.0

  def __post_init__(self) -> None:
    if real_number(self.base, "base", 1.0, sys.float_info.max) == 1:
      raise errors.ArgumentError(f"The base of Powers must be above 1, not {self.base!r}.")

  def __call__(self, iteration: int) -> float:
    """Returns the next power after `iteration`; infinity if no floating-point number can represent it."""
    iteration = integer(iteration, "iteration", 0)
    growth = self.base - 1
    if iteration * growth < 1:
      # The next power is above `iteration`, and at most `iteration * base`.
      return iteration + 1
    exponent = max(0, int(math.log(iteration) / math.log1p(growth)) - 1)
    try:
      while math.ceil(self.base**exponent) <= iteration:
        exponent += 1
    except OverflowError:
      return math.inf
    return math.ceil(self.base**exponent)
