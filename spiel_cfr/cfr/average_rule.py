"""Averages of one's own: a kernel that brings an average up to date with the strategy of an iteration.

docs/extending.md has an example. `Averaging` names the rule and the weights of iterations.
"""

import abc
from typing import Any, ClassVar, NamedTuple

from spiel_cfr._numba.records import Doubles, Line
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr.cfr.recipes import described


class Average(NamedTuple):
  """The argument of an average kernel: one player's average, and its strategy in one iteration.

  Attributes:
    sums: shape (sequences,). The average, or a multiple of it; 0 before the first iteration. The kernel updates it.
    sequence_form: shape (sequences,). The player's strategy; the first element, of the empty sequence, is 1.
    weight: float64 (1,). The weight of the iteration, from `Averaging.weights`.
  """

  sums: Line
  sequence_form: Line
  weight: Doubles


def average_kernel(function: Any) -> StepKernel:
  """Decorator that compiles a function of an `Average`, for float64 and for float32."""
  return StepKernel(function, Average)


@described
class AverageRule(abc.ABC):
  """Base class of rules for averages. Derive a frozen dataclass that names its kernel.

  The kernel must do the same at all sequences, and keep `sums` a linear combination of the sequence forms so far with a
  positive first element. The average policy is `sums` divided by that element.

  Attributes:
    add: the kernel, see `average_kernel`.
  """

  add: ClassVar[StepKernel]
