"""Regret matching and its variants: regret matching+, discounted regret matching, and predictions.

All variants share two equations. Let r = utility - value be the regrets of an iteration, and R the cumulative regrets.
The first equation updates R, the second one gives the next strategy:

    R = max(R, 0) * positive_discount + min(R, 0) * negative_discount + r,    then, in regret matching+,  R = max(R, 0)
    strategy proportional to max(next_discount * R + prediction * r, 0), uniform where that is 0

The two discounts, `next_discount` and `prediction` may depend on the iteration. Regret matching is from Hart and
Mas-Colell, "A Simple Adaptive Procedure Leading to Correlated Equilibrium" (2000), regret matching+ from Tammelin,
"Solving Large Imperfect Information Games Using CFR+" (2014). Other combinations are the minimizers of DCFR, PCFR+,
SAPCFR+, DCFR+, PDCFR+ and HS-DCFR; `cfr.variants` has their numbers and papers.
"""

import dataclasses
import math

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.simd import full, load, store, where_greater
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.blocks import (
  Block,
  block_kernel,
  expected_value,
  normalize,
  sequence,
  tolerance,
  vector_starts,
)
from spiel_cfr.regret_minimizers.regret_minimizer import (
  RegretMinimizer,
  WarmForm,
  parameter_rows,
)
from spiel_cfr.regret_minimizers.resume_matching import resume_regret_matching
from spiel_cfr.regret_minimizers.schedules import (
  Discount,
  NumberOrSchedule,
  checked,
  discounted_sum,
)


@block_kernel
def regret_matching(block: Block) -> None:
  """Adds the regrets: regret += utility - value;  strategy = max(regret, 0) / sum of max(regret, 0).

  In the strategy, regrets up to `tie` count as 0.
  """
  regret, zero = block.action_state[0], full(0.0)
  for i in vector_starts(block):
    value, tie, total = expected_value(block, i), tolerance(block, i), zero
    for action in range(block.actions):
      at = sequence(block, action, i)
      updated = load(regret, at) + load(block.utility, at) - value
      positive = where_greater(updated, tie, updated, zero)
      store(regret, at, updated)
      store(block.strategy, at, positive)
      total = total + positive
    normalize(block, i, total)


@block_kernel
def regret_matching_plus(block: Block) -> None:
  """Adds the regrets and cuts them at 0: regret = max(regret + utility - value, 0);  strategy = regret / sum of regret.

  Regrets up to `tie` become 0.
  """
  regret, zero = block.action_state[0], full(0.0)
  for i in vector_starts(block):
    value, tie, total = expected_value(block, i), tolerance(block, i), zero
    for action in range(block.actions):
      at = sequence(block, action, i)
      updated = load(regret, at) + load(block.utility, at) - value
      positive = where_greater(updated, tie, updated, zero)
      store(regret, at, positive)
      store(block.strategy, at, positive)
      total = total + positive
    normalize(block, i, total)


# Columns of `Block.parameters` after the tie tolerance: the discounts of positive and of negative regrets, 1 to keep
# negative regrets or 0 to forget them, the discount of the next iteration, and the weight of the prediction.
_POSITIVE, _NEGATIVE, _KEEP_NEGATIVE, _NEXT, _PREDICTION = range(1, 6)


@block_kernel
def weighted_regret_matching(block: Block) -> None:
  """Updates regrets and strategies by the two equations in the docstring of the module."""
  regret, zero, one = block.action_state[0], full(0.0), full(1.0)
  of_positive, of_negative = full(block.parameters[_POSITIVE]), full(block.parameters[_NEGATIVE])
  keep_negative = full(block.parameters[_KEEP_NEGATIVE])
  next_discount, weight = full(block.parameters[_NEXT]), full(block.parameters[_PREDICTION])
  for i in vector_starts(block):
    value, tie, total = expected_value(block, i), tolerance(block, i), zero
    for action in range(block.actions):
      at = sequence(block, action, i)
      before, added = load(regret, at), load(block.utility, at) - value
      updated = before * where_greater(before, tie, of_positive, of_negative) + added
      updated = updated * where_greater(updated, tie, one, keep_negative)
      store(regret, at, updated)
      score = next_discount * updated + weight * added
      score = where_greater(score, tie, score, zero)
      store(block.strategy, at, score)
      total = total + score
    normalize(block, i, total)


@dataclasses.dataclass(frozen=True)
class RegretMatching(RegretMinimizer):
  """Regret matching or one of its variants; the state is the cumulative regrets.

      RegretMatching()                                         # the minimizer of CFR
      RegretMatching(forgets_negative=True)                    # of CFR+
      RegretMatching(forgets_negative=True, prediction=1.0)    # of PCFR+

  Attributes:
    positive_discount: number or schedule, not negative. The factor on positive cumulative regrets, applied before the
      regrets of the iteration are added.
    negative_discount: number or schedule, not negative. The factor on negative cumulative regrets, applied before the
      regrets of the iteration are added.
    forgets_negative: bool. True if negative cumulative regrets become 0 right after the regrets of the iteration are
      added, as in CFR+. `negative_discount=0` sets them to 0 one iteration later. Without predictions, the strategies
      are the same: a negative regret and 0 both give probability 0. With predictions they differ: the prediction is
      added to the negative regret, instead of to 0.
    next_discount: number or schedule, not negative. The factor on cumulative regrets in the next strategy.
    prediction: number or schedule, not negative. The weight of the prediction, which is the last iteration's regrets,
      in the next strategy. With 0 there is no prediction.
  """

  positive_discount: NumberOrSchedule = 1.0
  negative_discount: NumberOrSchedule = 1.0
  forgets_negative: bool = False
  next_discount: NumberOrSchedule = 1.0
  prediction: NumberOrSchedule = 0.0
  resume = resume_regret_matching

  def __post_init__(self) -> None:
    forgets_negative = arguments.boolean(self.forgets_negative, "forgets_negative")
    object.__setattr__(self, "forgets_negative", forgets_negative)
    for name in ("positive_discount", "negative_discount", "next_discount", "prediction"):
      checked(getattr(self, name), name, 0.0, math.nextafter(math.inf, 0.0))

  @property
  def observe(self) -> StepKernel:
    """The kernel that reads the utilities of an iteration: the fastest one for these attributes."""
    discounts = self.positive_discount, self.negative_discount, self.next_discount
    if discounts != (1.0, 1.0, 1.0) or self.prediction != 0.0:
      return weighted_regret_matching
    return regret_matching_plus if self.forgets_negative else regret_matching

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns rows of the tie tolerance and, where `observe` reads them, the attributes in their order."""
    if self.observe is not weighted_regret_matching:
      return parameter_rows(iterations, game)
    return parameter_rows(
      iterations,
      game,
      self.positive_discount,
      self.negative_discount,
      0.0 if self.forgets_negative else 1.0,
      self.next_discount,
      self.prediction,
    )

  @property
  def warm_forms(self) -> tuple[WarmForm, ...]:
    """Both warm-start forms, the preferred first: "substitute" if all regrets are kept, otherwise "proportional"."""
    discounts = (self.positive_discount, self.negative_discount)
    keeps_all_regrets = discounts == (1.0, 1.0) and not self.forgets_negative
    return ("substitute", "proportional") if keeps_all_regrets else ("proportional", "substitute")

  def warm_action_state(self, regrets: Float64s, iterations: int, game: CompiledGame) -> Float64s:
    """Returns the cumulative regrets after iterations with the same regrets, discounts included."""
    arguments.positive_integer(iterations, "iterations")
    positive = discounted_sum(self.positive_discount, iterations)
    negative = 0.0 if self.forgets_negative else discounted_sum(self.negative_discount, iterations)
    return (regrets * np.where(regrets > 0.0, positive, negative))[None]

  @classmethod
  def plus(cls) -> "RegretMatching":
    """Returns regret matching+, the minimizer of CFR+."""
    return cls(forgets_negative=True)

  @classmethod
  def discounted(cls, alpha: float = 1.5, beta: float = 0.0) -> "RegretMatching":
    """Returns the minimizer of DCFR in OpenSpiel's order.

    OpenSpiel first adds the regrets of iteration t, and then multiplies by t^power / (t^power + 1). Later papers first
    multiply by (t - 1)^power / ((t - 1)^power + 1), which plays the same strategies. The DCFR paper first multiplies by
    t^power / (t^power + 1): that is `RegretMatching(Discount(alpha), Discount(beta))`.

    Args:
      alpha: the power for positive regrets, not negative. Infinity means no discount.
      beta: the power for negative regrets. Minus infinity forgets them.
    """
    alpha = arguments.real_number(alpha, "alpha", minimum=0.0)
    return cls(Discount(alpha, delay=1), Discount(beta, delay=1))
