"""Regret matching with discounted regrets, the minimizer of DCFR and linear CFR.

Brown and Sandholm, "Solving Imperfect-Information Games via Discounted Regret Minimization" (2019).
"""

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spiel_cfr import arguments
from spiel_cfr.kernels import Float64s, Int64s, Kernel
from spiel_cfr.minimizers.base import LocalMinimizer, block_kernel, tie_tolerance

if TYPE_CHECKING:
  from spiel_cfr.game.compiled import CompiledGame


@block_kernel
def observe_discounted(
  state: Float64s,
  local: Float64s,
  strategy: Float64s,
  utility: Float64s,
  scratch: Float64s,
  parameters: Float64s,
  first: int,
  stride: int,
  infoset: int,
  count: int,
  actions: int,
) -> None:
  """Regret = (regret + utility - value) * discount of its sign;  then regret matching."""
  regret, value, total, rest = state[0], scratch[0], scratch[1], scratch[2]
  tie, of_positive, of_negative = parameters[0], parameters[1], parameters[2]
  for i in range(count):
    value[i] = 0.0
    total[i] = 0.0
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      value[i] += strategy[row + i] * utility[row + i]
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      updated = regret[row + i] + utility[row + i] - value[i]
      positive = updated * of_positive if updated > tie else 0.0
      regret[row + i] = positive if updated > tie else updated * of_negative
      strategy[row + i] = positive
      total[i] += positive
  uniform = 1.0 / actions
  for i in range(count):
    none = total[i] == 0.0
    rest[i] = uniform if none else 0.0
    total[i] = 1.0 / (1.0 if none else total[i])
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      strategy[row + i] = strategy[row + i] * total[i] + rest[i]


@dataclasses.dataclass(frozen=True)
class DiscountedRegretMatching(LocalMinimizer):
  """Regret matching whose regrets are, after iteration t, multiplied by t^power / (t^power + 1).

  Attributes:
    alpha: the power for positive regrets, not negative; infinity keeps them whole.
    beta: the power for negative regrets; minus infinity forgets them.
  """

  alpha: float = 1.5
  beta: float = 0.0
  observe: ClassVar[Kernel] = observe_discounted

  def __post_init__(self) -> None:
    """Checks the powers.

    Raises:
      ArgumentError: alpha is negative, or one of them is no number.
    """
    arguments.real_number(self.alpha, "alpha", minimum=0.0)
    arguments.real_number(self.beta, "beta")

  def parameters(self, iterations: Int64s, game: "CompiledGame") -> Float64s:
    """Returns the tie tolerance and the two discounts, shape (iterations, 3)."""
    return np.stack(
      [
        np.full(len(iterations), tie_tolerance(game)),
        discount(iterations, self.alpha),
        discount(iterations, self.beta),
      ],
      axis=1,
    )


def discount(iterations: Int64s, power: float) -> Float64s:
  """Returns t^power / (t^power + 1), in a form that does not overflow."""
  with np.errstate(over="ignore"):
    result: Float64s = 1.0 / (1.0 + iterations.astype(np.float64) ** -power)
  return result
