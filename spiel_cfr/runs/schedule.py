"""Schedules: at which iterations something is due.

A schedule is any function from an iteration, 0 or more, to the next one after it at which the thing is due. Because it
sees nothing else, a run that was stopped and resumed keeps the schedule of one that never was.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import TypeAlias

from spiel_cfr import errors
from spiel_cfr.arguments import positive_integer

NextDue: TypeAlias = Callable[[int], int]


@dataclasses.dataclass(frozen=True)
class Every:
  """Due at every multiple of a number of iterations.

  Attributes:
    iterations: the number, positive.
  """

  iterations: int

  def __post_init__(self) -> None:
    """Checks the number.

    Raises:
      ArgumentError: it is not a positive integer.
    """
    positive_integer(self.iterations, "iterations of Every")

  def __call__(self, iteration: int) -> int:
    """Returns the next multiple after `iteration`."""
    return iteration + self.iterations - iteration % self.iterations


@dataclasses.dataclass(frozen=True)
class Powers:
  """Due at the powers of a number, rounded up: evenly spaced on the logarithmic axis of a convergence plot.

  Attributes:
    base: the number, above 1.
  """

  base: float = 2.0

  def __post_init__(self) -> None:
    """Checks the number.

    Raises:
      ArgumentError: it is not a finite number above 1.
    """
    if not 1 < self.base < math.inf:
      raise errors.ArgumentError(f"The base of Powers must be above 1, not {self.base!r}.")

  def __call__(self, iteration: int) -> int:
    """Returns the next power after `iteration`."""
    power = 1.0
    while math.ceil(power) <= iteration:
      power *= self.base
    return math.ceil(power)
