"""What a sampler does at a node: which actions a traversal explores, and with what probability.

A rule fills in the probability with which each action of an infoset is explored. It returns whether each action is
drawn on its own, in which case any number of them are explored, or one action is drawn from the distribution. A
sampler is a rule for the player whose regrets a traversal estimates and one for all other players; chance is always
sampled by its own probabilities.

Rules are kernels. The engine that works on states runs the same functions uncompiled, so they round exactly.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from numba import types

from spiel_cfr.kernels import COUNT, FLOATS, Float64s, Kernel

RULE_SIGNATURE = types.boolean(FLOATS, FLOATS, COUNT, COUNT, FLOATS, FLOATS)


def rule(function: Callable[..., Any]) -> Kernel:
  """Decorator that makes a function a rule, here or in a user's own file.

    rule(strategy, average, first, actions, parameters, probabilities)

  finds the current strategy and the sums of the average strategy of an infoset in `strategy` and `average`, `actions`
  numbers from `first` on, and writes into `probabilities` from 0 on. `parameters` are those of the `Sampler`.
  """
  return Kernel(function, RULE_SIGNATURE, exact=True)


@rule
def every_action(
  strategy: Float64s,
  average: Float64s,
  first: int,
  actions: int,
  parameters: Float64s,
  probabilities: Float64s,
) -> bool:
  """Explores all actions."""
  for action in range(actions):
    probabilities[action] = 1.0
  return True


@rule
def by_strategy(
  strategy: Float64s,
  average: Float64s,
  first: int,
  actions: int,
  parameters: Float64s,
  probabilities: Float64s,
) -> bool:
  """Draws one action from the current strategy."""
  for action in range(actions):
    probabilities[action] = strategy[first + action]
  return False


@rule
def by_exploring_strategy(
  strategy: Float64s,
  average: Float64s,
  first: int,
  actions: int,
  parameters: Float64s,
  probabilities: Float64s,
) -> bool:
  """Draws one action: uniformly with probability epsilon, otherwise from the current strategy."""
  epsilon = parameters[0]
  for action in range(actions):
    probabilities[action] = epsilon / actions + (1.0 - epsilon) * strategy[first + action]
  return False


@rule
def by_average(
  strategy: Float64s,
  average: Float64s,
  first: int,
  actions: int,
  parameters: Float64s,
  probabilities: Float64s,
) -> bool:
  """Explores each action by itself with probability max(epsilon, min(1, (beta + tau s(a)) / (beta + sum of s)))."""
  epsilon, beta, tau = parameters[0], parameters[1], parameters[2]
  total = beta
  for action in range(actions):
    total += average[first + action]
  for action in range(actions):
    share = (beta + tau * average[first + action]) / total if total > 0.0 else 1.0
    probabilities[action] = max(epsilon, min(1.0, share))
  return True


@dataclasses.dataclass(frozen=True)
class Sampler:
  """What a Monte Carlo solver samples.

  Attributes:
    own: the rule for the player whose regrets a traversal estimates.
    others: the rule for the other players.
    parameters: what the rules need to know.
    repeats_draws: whether the traversals of all players in an iteration draw the same random numbers.
  """

  own: Kernel
  others: Kernel
  parameters: tuple[float, ...] = ()
  repeats_draws: bool = False
