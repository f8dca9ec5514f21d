"""Random numbers of Monte Carlo CFR, draws of outcomes, and the probabilities with which actions are explored.

A random number is a function of a key and of a position in the stream (SplitMix64; Steele, Lea and Flood 2014, "Fast
Splittable Pseudorandom Number Generators"). These two integers are the whole state of the generator.
"""

from collections.abc import MutableSequence, Sequence
from typing import Any

import numpy as np
from numba import types

from spiel_cfr import errors
from spiel_cfr._numba.arrays import COUNTS, FLOATS, Float64s, Uint64s
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr._util import arguments
from spiel_cfr.mccfr.sampling_rules import Rule, Sampler

# Entries of a solver's counters: the key and the position of its random numbers, iterations done, nodes visited.
KEY, POSITION, ITERATIONS, VISITED = range(4)
# The largest seed. NumPy's generators ignore further bits.
_MOST_SEED = (1 << 128) - 1
_ONE: Any = np.uint64(1)
# The constants of SplitMix64.
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1, _MULTIPLIER_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_TO_53_BITS, _FROM_53_BITS = np.uint64(11), 2.0**-53
# Compiled code takes integers of a fixed size only.
_EVERY_ACTION, _BY_STRATEGY = int(Rule.EVERY_ACTION), int(Rule.BY_STRATEGY)
_BY_EXPLORING_STRATEGY = int(Rule.BY_EXPLORING_STRATEGY)


def new_counters(key: int) -> Uint64s:
  """Returns a solver's counters before its first iteration, shape (4,): the key of random numbers, and zeros."""
  return np.array([key, 0, 0, 0], np.uint64)


def new_key(seed: int | np.random.Generator | None) -> int:
  """Returns the key of a stream of random numbers. With the seed None, the key is drawn from NumPy's global state.

  Raises:
    ArgumentError: the seed is neither an integer in [0, 2^128), nor a generator, nor None.
  """
  if seed is None:
    # As in OpenSpiel's solvers, `np.random.seed` then determines the run.
    return int(np.random.randint(1 << 64, dtype=np.uint64))  # noqa: NPY002
  if not isinstance(seed, np.random.Generator):
    try:
      seed = np.random.default_rng(arguments.integer(seed, "seed", 0, _MOST_SEED))
    except errors.ArgumentError as error:
      raise errors.ArgumentError(
        "seed must be an integer that is not negative, a numpy.random.Generator or None, not "
        f"{arguments.shortened(seed)}."
      ) from error
  return int(seed.integers(1 << 64, dtype=np.uint64))


@inlined
def next_uniform(counters: Uint64s) -> float:
  """Returns the next random number in [0, 1)."""
  counters[POSITION] += _ONE
  bits = counters[KEY] + counters[POSITION] * _GAMMA
  bits = (bits ^ (bits >> _SHIFT_1)) * _MULTIPLIER_1
  bits = (bits ^ (bits >> _SHIFT_2)) * _MULTIPLIER_2
  bits = bits ^ (bits >> _SHIFT_3)
  return np.float64(bits >> _TO_53_BITS) * _FROM_53_BITS


@kernel(types.void(COUNTS, FLOATS))
def fill_uniform(counters: Uint64s, numbers: Float64s) -> None:
  """Fills an array with random numbers in [0, 1)."""
  for i in range(numbers.shape[0]):
    numbers[i] = next_uniform(counters)


def pick(probabilities: Sequence[float], begin: int, count: int, uniform: float) -> int:
  """Returns the outcome that a uniform random number selects; outcomes of probability 0 are never selected.

  Args:
    probabilities: float array. Entry begin + k is the probability of outcome k.
    begin: the entry of outcome 0.
    count: the number of outcomes.
    uniform: a number in [0, 1).
  """
  # 0, in the integer type that compiled code has for `begin`.
  chosen = begin - begin
  total = 0.0
  for outcome in range(count):
    if probabilities[begin + outcome] > 0.0:
      chosen = outcome
      total += probabilities[begin + outcome]
      if uniform < total:
        break
  return chosen


compiled_pick = inlined(pick)


@inlined
def draw(probabilities: Float64s, begin: int, count: int, counters: Uint64s) -> Any:
  """Draws one of `count` outcomes; entry begin + k of `probabilities` is the probability of outcome k."""
  return compiled_pick(probabilities, begin, count, next_uniform(counters))


def explore(
  rule: int,
  sampler: Sampler,
  strategy: Sequence[float],
  cumulative: Float64s,
  first: int,
  actions: int,
  probabilities: MutableSequence[float],
) -> bool:
  """Writes the probabilities with which a `Rule` explores the actions of an infoset.

  Args:
    rule: the `Rule`.
    sampler: the sampling scheme, with epsilon, beta and tau.
    strategy: shape (entries,). The current strategies.
    cumulative: shape (entries,). The weighted sums of strategies.
    first: the entry of the infoset's action 0.
    actions: the number of the infoset's actions.
    probabilities: filled with the result in its elements [0, `actions`).

  Returns:
    True if actions are drawn independently; False if one action is drawn from the distribution.
  """
  if rule == _EVERY_ACTION:
    for action in range(actions):
      probabilities[action] = 1.0
    return True
  if rule == _BY_STRATEGY:
    for action in range(actions):
      probabilities[action] = strategy[first + action]
    return False
  epsilon = sampler.epsilon
  if rule == _BY_EXPLORING_STRATEGY:
    for action in range(actions):
      probabilities[action] = epsilon / actions + (1.0 - epsilon) * strategy[first + action]
    return False
  beta, tau = sampler.beta, sampler.tau
  total = beta
  for action in range(actions):
    total += cumulative[first + action]
  for action in range(actions):
    share = (beta + tau * cumulative[first + action]) / total if total > 0.0 else 1.0
    probabilities[action] = max(epsilon, min(1.0, share))
  return True


compiled_explore = inlined(explore)
