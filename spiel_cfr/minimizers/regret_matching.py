"""Regret matching and regret matching+, the minimizers of CFR and CFR+.

Regret matching (Hart and Mas-Colell 2000) plays each action in proportion to its cumulative positive regret, and the
uniform strategy where there is none. Regret matching+ (Tammelin 2014) forgets negative cumulative regrets at once.
"""

import dataclasses
from typing import ClassVar

import numpy as np

from spiel_cfr.kernels import simd
from spiel_cfr.kernels.arrays import Float64s, Int64s
from spiel_cfr.kernels.compile import Kernel
from spiel_cfr.minimizers.base import LocalMinimizer, block_kernel

_ZERO, _LANES = np.uint64(0), np.uint64(simd.LANES)


@block_kernel
def observe_regret_matching(
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
  """Regret += utility - value;  strategy = max(regret, 0) / sum of max(regret, 0)."""
  regret, uniform = state[0], simd.full(1.0 / actions)
  tie, zero, one = simd.full(parameters[0]), simd.full(0.0), simd.full(1.0)
  for i in range(_ZERO, count, _LANES):
    value = total = zero
    for action in range(actions):
      row = first + action * stride + i
      value = value + simd.load(strategy, row) * simd.load(utility, row)
    simd.store(scratch[0], i, value)
    for action in range(actions):
      row = first + action * stride + i
      updated = simd.load(regret, row) + simd.load(utility, row) - value
      positive = simd.where_greater(updated, tie, updated, zero)
      simd.store(regret, row, updated)
      simd.store(strategy, row, positive)
      total = total + positive
    # Where no regret is positive, the strategy is uniform.
    none = simd.where_greater(total, zero, zero, one)
    share, rest = one / (total + none), none * uniform
    for action in range(actions):
      row = first + action * stride + i
      simd.store(strategy, row, simd.load(strategy, row) * share + rest)


@block_kernel
def observe_regret_matching_plus(
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
  """Regret = max(regret + utility - value, 0);  strategy = regret / sum of regret."""
  regret, uniform = state[0], simd.full(1.0 / actions)
  tie, zero, one = simd.full(parameters[0]), simd.full(0.0), simd.full(1.0)
  for i in range(_ZERO, count, _LANES):
    value = total = zero
    for action in range(actions):
      row = first + action * stride + i
      value = value + simd.load(strategy, row) * simd.load(utility, row)
    simd.store(scratch[0], i, value)
    for action in range(actions):
      row = first + action * stride + i
      updated = simd.load(regret, row) + simd.load(utility, row) - value
      positive = simd.where_greater(updated, tie, updated, zero)
      simd.store(regret, row, positive)
      total = total + positive
    # Where no regret is positive, the strategy is uniform.
    none = simd.where_greater(total, zero, zero, one)
    share, rest = one / (total + none), none * uniform
    for action in range(actions):
      row = first + action * stride + i
      simd.store(strategy, row, simd.load(regret, row) * share + rest)


@dataclasses.dataclass(frozen=True)
class RegretMatching(LocalMinimizer):
  """Regret matching. Its state is the cumulative regret."""

  observe: ClassVar[Kernel] = observe_regret_matching

  def discounts(self, iterations: Int64s) -> Float64s:
    """Returns ones, shape (iterations, 2)."""
    return np.ones((len(iterations), 2))


@dataclasses.dataclass(frozen=True)
class RegretMatchingPlus(RegretMatching):
  """Regret matching+. Its state is the cumulative regret, never negative."""

  observe: ClassVar[Kernel] = observe_regret_matching_plus
  forgets_negative: ClassVar[bool] = True
