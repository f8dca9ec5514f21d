"""Regret matching, with or without discounts, predictions and negative regrets: one family of minimizers.

Let r = utility - value be the regrets of an iteration, and R the cumulative regrets. A minimizer keeps and plays

    R = max(R, 0) * positive_discount + min(R, 0) * negative_discount + r,    then, in regret matching+,  R = max(R, 0)
    strategy proportional to max(next_discount * R + prediction * r, 0), uniform where that is 0

The four numbers may depend on the iteration. Any mixture of them is a minimizer. Named members of the family:

- regret matching: Hart and Mas-Colell, "A Simple Adaptive Procedure Leading to Correlated Equilibrium" (2000).
- regret matching+: Tammelin, "Solving Large Imperfect Information Games Using CFR+" (2014).
- the minimizer of DCFR: Brown and Sandholm, "Solving Imperfect-Information Games via Discounted Regret Minimization"
  (2019).
- the minimizer of PCFR+: Farina, Kroer and Sandholm, "Faster Game Solving via Predictive Blackwell Approachability"
  (2021).
- the minimizer of SAPCFR+: Meng et al., "Faster Game Solving via Asymmetry of Step Sizes" (2025).
- the minimizers of DCFR+ and PDCFR+: Xu et al., "Minimizing Weighted Counterfactual Regret with Optimistic Online
  Mirror Descent" (2024).
- the minimizer of HS-DCFR: Zhang, McAleer and Sandholm, "Faster Game Solving via Hyperparameter Schedules" (2024).
"""

import dataclasses
import math

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  lanes,
  normalize,
  sequence,
  tolerance,
)
from spiel_cfr.regret_minimizers.regret_minimizer import (
  RegretMinimizer,
  WarmForm,
  parameter_rows,
)
from spiel_cfr.regret_minimizers.resume_matching import resume_regret_matching
from spiel_cfr.regret_minimizers.schedules import (
  Discount,
  Numbers,
  checked,
  discounted_sum,
  evaluated,
)


@block_kernel
def regret_matching(block: Block) -> None:
  """Regret += utility - value;  strategy = max(regret, 0) / sum of max(regret, 0). Up to `tie`, regrets count as 0."""
  regret, zero = block.action_state[0], full(0.0)
  for i in lanes(block):
    value, tie, total = expected_value(block, i), tolerance(block, i), zero
    for action in range(block.actions):
      row = sequence(block, action, i)
      updated = load(regret, row) + load(block.utility, row) - value
      positive = where_greater(updated, tie, updated, zero)
      store(regret, row, updated)
      store(block.strategy, row, positive)
      total = total + positive
    normalize(block, i, total)


@block_kernel
def regret_matching_plus(block: Block) -> None:
  """Regret = max(regret + utility - value, 0);  strategy = regret / sum of regret. Regrets up to `tie` become 0."""
  regret, zero = block.action_state[0], full(0.0)
  for i in lanes(block):
    value, tie, total = expected_value(block, i), tolerance(block, i), zero
    for action in range(block.actions):
      row = sequence(block, action, i)
      updated = load(regret, row) + load(block.utility, row) - value
      positive = where_greater(updated, tie, updated, zero)
      store(regret, row, positive)
      store(block.strategy, row, positive)
      total = total + positive
    normalize(block, i, total)


# Columns of `Block.parameters` after the tie tolerance: the discounts of positive and of negative regrets, 1 to keep
# negative regrets or 0 to forget them, the discount of the next iteration, and the weight of the prediction.
_POSITIVE, _NEGATIVE, _KEPT, _NEXT, _PREDICTION = range(1, 6)


@block_kernel
def weighted_regret_matching(block: Block) -> None:
  """The two equations in the docstring of the module."""
  regret, zero, one = block.action_state[0], full(0.0), full(1.0)
  of_positive, of_negative = full(block.parameters[_POSITIVE]), full(block.parameters[_NEGATIVE])
  kept, next_discount = full(block.parameters[_KEPT]), full(block.parameters[_NEXT])
  weight = full(block.parameters[_PREDICTION])
  for i in lanes(block):
    value, tie, total = expected_value(block, i), tolerance(block, i), zero
    for action in range(block.actions):
      row = sequence(block, action, i)
      before, added = load(regret, row), load(block.utility, row) - value
      updated = before * where_greater(before, tie, of_positive, of_negative) + added
      updated = updated * where_greater(updated, tie, one, kept)
      store(regret, row, updated)
      score = next_discount * updated + weight * added
      score = where_greater(score, tie, score, zero)
      store(block.strategy, row, score)
      total = total + score
    normalize(block, i, total)


@dataclasses.dataclass(frozen=True)
class RegretMatching(RegretMinimizer):
  """A minimizer of the family. Its state is the cumulative regrets.

      RegretMatching()                                         # the minimizer of CFR
      RegretMatching(forgets_negative=True)                    # of CFR+
      RegretMatching(forgets_negative=True, prediction=1.0)    # of PCFR+

  Attributes:
    positive_discount: number or schedule, not negative. The factor of positive cumulative regrets, before the regrets
      of the iteration are added.
    negative_discount: number or schedule, not negative. The factor of negative cumulative regrets, before the regrets
      of the iteration are added. With 0, negative regrets still enter one prediction, before they are forgotten.
    forgets_negative: whether negative cumulative regrets become 0 as soon as the regrets of the iteration are added, as
      in CFR+. Without predictions, it plays the same strategies as `negative_discount=0`.
    next_discount: number or schedule, not negative. The factor of cumulative regrets in the next strategy.
    prediction: number or schedule, not negative. The weight of the prediction, the last iteration's regrets, in the
      next strategy; 0 for no prediction.
  """

  positive_discount: Numbers = 1.0
  negative_discount: Numbers = 1.0
  forgets_negative: bool = False
  next_discount: Numbers = 1.0
  prediction: Numbers = 0.0
  resume = resume_regret_matching

  def __post_init__(self) -> None:
    object.__setattr__(self, "forgets_negative", bool(self.forgets_negative))
    for name in ("positive_discount", "negative_discount", "next_discount", "prediction"):
      checked(getattr(self, name), name, 0.0, math.nextafter(math.inf, 0.0))

  @property
  def observe(self) -> StepKernel:
    """A property that returns a kernel: the fastest kernel for these numbers."""
    if not self._is_plain or (self.positive_discount, self.negative_discount) != (1.0, 1.0):
      return weighted_regret_matching
    return regret_matching_plus if self.forgets_negative else regret_matching

  @property
  def _is_plain(self) -> bool:
    """True if the next strategy is proportional to the positive regrets."""
    return (self.next_discount, self.prediction) == (1.0, 0.0)

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns rows of the tie tolerance and, where `observe` reads them, the attributes in their order."""
    if self.observe is not weighted_regret_matching:
      return parameter_rows(iterations, game)
    kept = 0.0 if self.forgets_negative else 1.0
    discounts = (self.positive_discount, self.negative_discount, kept, self.next_discount)
    return parameter_rows(iterations, game, *discounts, self.prediction)

  @property
  def warm_forms(self) -> tuple[WarmForm, ...]:
    """Both warm-start forms, the preferred first: "substitute" if all regrets are kept, otherwise "proportional"."""
    discounts = (self.positive_discount, self.negative_discount)
    remembers = discounts == (1.0, 1.0) and not self.forgets_negative
    return ("substitute", "proportional") if remembers else ("proportional", "substitute")

  def warm_action_state(self, regrets: Float64s, iterations: int, game: CompiledGame) -> Float64s:
    """Returns cumulative regrets after iterations with the same regrets: regrets times the discounted iterations.

    The discounts of positive and negative regrets apply to them, as if every iteration had added the same regrets.
    """
    arguments.positive_integer(iterations, "iterations")
    positive = discounted_sum(self.positive_discount, iterations)
    negative = 0.0 if self.forgets_negative else discounted_sum(self.negative_discount, iterations)
    return (regrets * np.where(regrets > 0.0, positive, negative))[None]

  def discounts(self, iterations: Int64s) -> Float64s | None:
    """Returns the discounts of positive and negative regrets, shape (iterations, 2).

    None for a minimizer with predictions or a discount of the next iteration.
    """
    if not self._is_plain:
      return None
    numbers = (self.positive_discount, self.negative_discount)
    return np.column_stack([evaluated(number, iterations) for number in numbers])

  @classmethod
  def plus(cls) -> "RegretMatching":
    """Returns regret matching+, the minimizer of CFR+."""
    return cls(forgets_negative=True)

  @classmethod
  def discounted(cls, alpha: float = 1.5, beta: float = 0.0) -> "RegretMatching":
    """Returns the minimizer of DCFR in OpenSpiel's order.

    OpenSpiel adds the regrets of iteration t and then multiplies by t^power / (t^power + 1). That plays the same
    strategies as multiplying by (t - 1)^power / ((t - 1)^power + 1) first, as later papers write it. The order of the
    DCFR paper, to multiply by t^power / (t^power + 1) first, is `RegretMatching(Discount(alpha), Discount(beta))`.

    Args:
      alpha: the power for positive regrets, not negative; infinity for no discount.
      beta: the power for negative regrets; minus infinity forgets them.
    """
    alpha = arguments.real_number(alpha, "alpha", minimum=0.0)
    return cls(Discount(alpha, delay=1), Discount(beta, delay=1))

  @classmethod
  def scheduled(cls, horizon: int) -> "RegretMatching":
    """Returns the minimizer of HS-DCFR: alpha = 1 + 3 t / horizon and beta = -1 - 2 t / horizon.

    Past the horizon, a positive integer, the powers stay where they are; the order is as for `discounted`.
    """
    return cls(Discount(1.0, 3.0, horizon, 1), Discount(-1.0, -2.0, horizon, 1))

  @classmethod
  def predictive_plus(cls, weight: float = 1.0) -> "RegretMatching":
    """Returns the minimizer of PCFR+ or, with a weight of the prediction below 1, of SAPCFR+."""
    return cls(forgets_negative=True, prediction=arguments.real_number(weight, "weight", 0.0, 1.0))

  @classmethod
  @typed
  def discounted_plus(cls, alpha: float = 1.5, predictive: bool = False) -> "RegretMatching":
    """Returns the minimizer of DCFR+ or, with a prediction, of PDCFR+.

    At iteration t cumulative regrets are first multiplied by (t - 1)^alpha / ((t - 1)^alpha + 1), alpha not negative.
    PDCFR+ plays regrets that are discounted once more, plus the last regrets.
    """
    alpha = arguments.real_number(alpha, "alpha", minimum=0.0)
    plus = cls(Discount(alpha, delay=1), forgets_negative=True)
    if not predictive:
      return plus
    return dataclasses.replace(plus, next_discount=Discount(alpha), prediction=1.0)
