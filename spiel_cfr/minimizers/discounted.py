"""Regret matching with discounts, predictions and forgotten negative regrets: one kernel, a family of minimizers.

With r = utility - value the regrets of an iteration, it keeps and plays

    R = max(R, 0) * positive + min(R, 0) * negative + r,    then  R = max(R, 0) + min(R, 0) * kept
    strategy proportional to max(carried * R + weight * r, 0)

where the five numbers depend on the iteration only. r is also the prediction of the next regrets.

- DCFR: Brown and Sandholm, "Solving Imperfect-Information Games via Discounted Regret Minimization" (2019).
- PCFR+: Farina, Kroer and Sandholm, "Faster Game Solving via Predictive Blackwell Approachability" (2021).
- DCFR+ and PDCFR+: Xu et al., "Minimizing Weighted Counterfactual Regret with Optimistic Online Mirror Descent" (2024).
- SAPCFR+: Meng et al., "Faster Game Solving via Asymmetry of Step Sizes" (2025).
- HS-DCFR: Zhang, McAleer and Sandholm, "Faster Game Solving via Hyperparameter Schedules" (2024).
"""

import dataclasses
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from spiel_cfr import arguments
from spiel_cfr.kernels import simd
from spiel_cfr.kernels.arrays import Float64s, Int64s
from spiel_cfr.kernels.compile import Kernel
from spiel_cfr.minimizers.base import LocalMinimizer, block_kernel, tie_tolerance

if TYPE_CHECKING:
  from spiel_cfr.game.compiled import CompiledGame

_ZERO, _LANES = np.uint64(0), np.uint64(simd.LANES)
# When the regrets of iteration t are added: before the others are multiplied by t^power / (t^power + 1), or after.
DiscountOrder: TypeAlias = Literal["openspiel", "paper"]


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
  """See the module's docstring."""
  regret, uniform = state[0], simd.full(1.0 / actions)
  tie, zero, one = simd.full(parameters[0]), simd.full(0.0), simd.full(1.0)
  of_positive, of_negative = simd.full(parameters[1]), simd.full(parameters[2])
  kept, carried, weight = (
    simd.full(parameters[3]),
    simd.full(parameters[4]),
    simd.full(parameters[5]),
  )
  for i in range(_ZERO, count, _LANES):
    value = total = zero
    for action in range(actions):
      row = first + action * stride + i
      value = value + simd.load(strategy, row) * simd.load(utility, row)
    simd.store(scratch[0], i, value)
    for action in range(actions):
      row = first + action * stride + i
      before = simd.load(regret, row)
      added = simd.load(utility, row) - value
      updated = before * simd.where_greater(before, tie, of_positive, of_negative) + added
      updated = updated * simd.where_greater(updated, tie, one, kept)
      simd.store(regret, row, updated)
      score = carried * updated + weight * added
      score = simd.where_greater(score, tie, score, zero)
      simd.store(strategy, row, score)
      total = total + score
    # Where no score is positive, the strategy is uniform.
    none = simd.where_greater(total, zero, zero, one)
    share, rest = one / (total + none), none * uniform
    for action in range(actions):
      row = first + action * stride + i
      simd.store(strategy, row, simd.load(strategy, row) * share + rest)


@dataclasses.dataclass(frozen=True)
class DiscountedRegretMatching(LocalMinimizer):
  """Regret matching that multiplies regrets in every iteration, the minimizer of DCFR.

  OpenSpiel's order, adding the regrets of iteration t and then multiplying by t^power / (t^power + 1), plays the same
  as multiplying by (t - 1)^power / ((t - 1)^power + 1) first, which is how later papers write it. The paper's own order
  is to multiply by t^power / (t^power + 1) first.

  Attributes:
    alpha: the power for positive regrets, not negative; infinity keeps them whole.
    beta: the power for negative regrets; minus infinity forgets them.
    order: "openspiel" or "paper".
  """

  alpha: float = 1.5
  beta: float = 0.0
  order: DiscountOrder = "openspiel"
  observe: ClassVar[Kernel] = observe_discounted

  def __post_init__(self) -> None:
    """Checks the arguments.

    Raises:
      ArgumentError: alpha is negative, one of the powers is no number, or there is no such order.
    """
    arguments.real_number(self.alpha, "alpha", minimum=0.0)
    arguments.real_number(self.beta, "beta")
    arguments.one_of(self.order, "order", get_args(DiscountOrder))

  def parameters(self, iterations: Int64s, game: "CompiledGame") -> Float64s:
    """Returns the tie tolerance and the five numbers of the module's docstring, shape (iterations, 6)."""
    positive, negative = self.discounts(iterations).T
    return _parameters(iterations, game, positive, negative)

  def discounts(self, iterations: Int64s) -> Float64s:
    """Returns what positive and negative regrets are multiplied by first, shape (iterations, 2)."""
    alpha, beta = self.powers(iterations)
    times = iterations - (self.order == "openspiel")
    return np.column_stack([discount(times, alpha), discount(times, beta)])

  def powers(self, iterations: Int64s) -> tuple[float | Float64s, float | Float64s]:
    """Returns alpha and beta at these iterations."""
    return self.alpha, self.beta


@dataclasses.dataclass(frozen=True)
class ScheduledRegretMatching(DiscountedRegretMatching):
  """The minimizer of HS-DCFR: alpha = 1 + 3 t / horizon and beta = -1 - 2 t / horizon, constant past the horizon."""

  horizon: int = 1000

  def powers(self, iterations: Int64s) -> tuple[float | Float64s, float | Float64s]:
    """Returns alpha and beta at these iterations."""
    progress = np.minimum(iterations / self.horizon, 1.0)
    return 1.0 + 3.0 * progress, -1.0 - 2.0 * progress


@dataclasses.dataclass(frozen=True)
class PredictiveRegretMatchingPlus(LocalMinimizer):
  """Regret matching+ that adds the last regrets once more before it plays, the minimizer of PCFR+ and SAPCFR+.

  Attributes:
    weight: of the last regrets, from 0 (regret matching+) to 1.
  """

  weight: float = 1.0
  observe: ClassVar[Kernel] = observe_discounted

  def __post_init__(self) -> None:
    """Raises ArgumentError where the weight is not between 0 and 1."""
    arguments.real_number(self.weight, "weight", 0.0, 1.0)

  def parameters(self, iterations: Int64s, game: "CompiledGame") -> Float64s:
    """Returns the tie tolerance and the five numbers of the module's docstring, shape (iterations, 6)."""
    return _parameters(iterations, game, kept=0.0, weight=self.weight)


@dataclasses.dataclass(frozen=True)
class DiscountedRegretMatchingPlus(LocalMinimizer):
  """Regret matching+ with discounts, the minimizer of DCFR+ and, with a prediction, of PDCFR+.

  Attributes:
    alpha: at iteration t regrets are first multiplied by (t - 1)^alpha / ((t - 1)^alpha + 1); not negative.
    predictive: whether the last regrets are added once more before it plays, to regrets discounted once more.
  """

  alpha: float = 1.5
  predictive: bool = False
  observe: ClassVar[Kernel] = observe_discounted
  forgets_negative: ClassVar[bool] = True

  def __post_init__(self) -> None:
    """Raises ArgumentError where alpha is negative or no number."""
    arguments.real_number(self.alpha, "alpha", minimum=0.0)

  def parameters(self, iterations: Int64s, game: "CompiledGame") -> Float64s:
    """Returns the tie tolerance and the five numbers of the module's docstring, shape (iterations, 6)."""
    return _parameters(
      iterations,
      game,
      positive=discount(iterations - 1, self.alpha),
      kept=0.0,
      carried=discount(iterations, self.alpha) if self.predictive else 1.0,
      weight=float(self.predictive),
    )

  def discounts(self, iterations: Int64s) -> Float64s | None:
    """Returns what regrets are multiplied by first, shape (iterations, 2), or None if predictive."""
    factors = discount(iterations - 1, self.alpha)
    return None if self.predictive else np.column_stack([factors, factors])


def _parameters(
  iterations: Int64s,
  game: "CompiledGame",
  positive: npt.ArrayLike = 1.0,
  negative: npt.ArrayLike = 1.0,
  kept: float = 1.0,
  carried: npt.ArrayLike = 1.0,
  weight: float = 0.0,
) -> Float64s:
  columns = np.broadcast_arrays(
    tie_tolerance(game), positive, negative, kept, carried, weight, iterations
  )
  return np.stack(columns[:-1], axis=1)


def discount(iterations: Int64s, power: float | Float64s) -> Float64s:
  """Returns t^power / (t^power + 1), in a form that does not overflow."""
  with np.errstate(over="ignore", divide="ignore"):
    result: Float64s = 1.0 / (1.0 + iterations.astype(np.float64) ** -power)
  return result
