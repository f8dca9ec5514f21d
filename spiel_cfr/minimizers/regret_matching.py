"""Regret matching and regret matching+, the minimizers of CFR and CFR+.

Regret matching (Hart and Mas-Colell 2000) plays each action in proportion to its cumulative positive regret, and the
uniform strategy where there is none. Regret matching+ (Tammelin 2014) forgets negative cumulative regrets at once.
"""

import dataclasses
from typing import ClassVar

from spiel_cfr.kernels import Float64s, Kernel
from spiel_cfr.minimizers.base import LocalMinimizer, block_kernel

# Both kernels go over their block action by action and have no branches, so that they become vector instructions.


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
  regret, value, total, rest = state[0], scratch[0], scratch[1], scratch[2]
  tie = parameters[0]
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
      regret[row + i] = updated
      positive = updated if updated > tie else 0.0
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
  regret, value, total, rest = state[0], scratch[0], scratch[1], scratch[2]
  tie = parameters[0]
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
      updated = updated if updated > tie else 0.0
      regret[row + i] = updated
      total[i] += updated
  uniform = 1.0 / actions
  for i in range(count):
    none = total[i] == 0.0
    rest[i] = uniform if none else 0.0
    total[i] = 1.0 / (1.0 if none else total[i])
  for action in range(actions):
    row = first + action * stride
    for i in range(count):
      strategy[row + i] = regret[row + i] * total[i] + rest[i]


@dataclasses.dataclass(frozen=True)
class RegretMatching(LocalMinimizer):
  """Regret matching. Its state is the cumulative regret."""

  observe: ClassVar[Kernel] = observe_regret_matching


@dataclasses.dataclass(frozen=True)
class RegretMatchingPlus(LocalMinimizer):
  """Regret matching+. Its state is the cumulative regret, never negative."""

  observe: ClassVar[Kernel] = observe_regret_matching_plus
