"""Schedule of iterations: the averaging weight of each iteration, and the parameters of kernels.

Parameters belong to the minimizer or to a rule for averages.
"""

import math

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.cfr.averaging import AverageRule, Averaging
from spiel_cfr.cfr.loops.arrays import (
  FIRST_PARAMETER,
  TAPER_FACTOR,
  WEIGHT,
  first_parameters,
  parameters_of,
)
from spiel_cfr.cfr.loops.state import TAPER_UNIT, FullWidthState
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import as_weights, evaluated

# Parameters are computed in tables of at least and at most this many iterations, unless the caller asks for more.
_FEWEST, _MOST = 64, 512
# Iterations between two additions to the tapered sums: at least 4, and at least 1/32 of the iterations of the average.
_LEAST_BETWEEN_ADDITIONS = 4
_PART_BETWEEN_ADDITIONS = 32


class IterationSchedule:
  """Schedule of a solver's iterations: the numbers of each, which `Loop.advance` takes."""

  def __init__(self, game: CompiledGame, minimizer: RegretMinimizer, averaging: Averaging) -> None:
    """Takes the configuration of the solver."""
    self._game, self._minimizer, self._averaging = game, minimizer, averaging
    self._weights = as_weights(averaging.weights, "weights")
    self._most_weight = float(np.finfo(game.dtype).max) / 2**20
    # The objects whose parameters an iteration has, in this order, each with its number of parameters.
    sources: list[RegretMinimizer | AverageRule] = [minimizer]
    sources += [] if averaging.rule is None else [averaging.rule]
    self._sources = [(source, len(first_parameters(source, game))) for source in sources]
    # A table of parameters, and the iteration before its first one.
    self._table, self._table_start = np.zeros((0, 0)), 0

  def next_numbers(self, state: FullWidthState, count: int) -> Float64s:
    """Returns the `IterationNumbers` of each of the next `count` iterations, shape (count, columns).

    Raises:
      ArgumentError: a user's minimizer, rule or schedule returns an array of another shape, or a negative weight.
      NotFiniteError: a parameter is NaN, or weights would leave the range of floating-point numbers.
    """
    done = int(state.counts[0])
    iterations = np.arange(1, count + 1) + done
    parameters = self._next_parameters(done, count)
    weights = self.weights_of(iterations - state.average_start, state.total_weight)
    result = np.zeros((count, FIRST_PARAMETER + parameters.shape[1]))
    result[:, WEIGHT] = weights
    if self._averaging.tapered:
      last_addition = int(state.counts[1])
      result[:, TAPER_FACTOR] = taper_factors(count, done, last_addition, state.average_start)
    result[:, FIRST_PARAMETER:] = parameters
    return result

  def weights_of(self, iterations: Int64s, total: float = 0.0) -> Float64s:
    """Returns the averaging weights of iterations, counted from the start of the average.

    It checks that the sum of all weights stays finite; `total` is the sum of the weights so far.
    """
    weights = evaluated(self._weights, iterations)
    check_weights(weights, len(iterations), total, self._most_weight)
    return weights

  def total_weight(self, count: int) -> float:
    """Returns the sum of the weights of the first `count` iterations; 1 for an average by a rule, without weights."""
    weights = self.weights_of(np.arange(1, count + 1))
    return float(weights.sum()) if self._averaging.rule is None else 1.0

  def _next_parameters(self, done: int, count: int) -> Float64s:
    """Returns the parameters of the next `count` iterations after `done`: the minimizer's, then the average rule's.

    They come from a table, since computing them for few iterations at a time is slow.
    """
    first = done - self._table_start
    # The first table has no columns.
    if not self._table.shape[1] or not 0 <= first <= len(self._table) - count:
      iterations = np.arange(1, _table_length(done, count) + 1) + done
      self._table = np.hstack(
        [self._parameters_of(*source, iterations) for source in self._sources]
      )
      self._table_start, first = done, 0
    result, column = self._table[first : first + count], 0
    for source, number in self._sources:
      check_no_nan(source, result[:, column : column + number])
      column += number
    return result

  def minimizer_parameters(self, iterations: Int64s) -> Float64s:
    """Returns the parameters of the minimizer's kernels at these iterations, shape (iterations, parameters)."""
    return self._parameters_of(*self._sources[0], iterations)

  def _parameters_of(
    self, source: RegretMinimizer | AverageRule, number: int, iterations: Int64s
  ) -> Float64s:
    """Returns the parameters of a minimizer or a rule, `number` for each iteration."""
    result = parameters_of(source, iterations, self._game)
    if result.shape[1] != number:
      raise errors.ArgumentError(
        f"`parameters` of {source} must return {number} numbers for each iteration, as it did for iteration 1, not "
        f"{result.shape[1]}."
      )
    return result


def check_no_nan(source: RegretMinimizer | AverageRule, parameters: Float64s) -> None:
  """Raises NotFiniteError for NaN. Regrets that become NaN would go unnoticed, since kernels clip them."""
  with np.errstate(over="ignore"):
    total = parameters.sum()
  # A sum of infinities is NaN too.
  if total != total and np.isnan(parameters).any():
    raise errors.NotFiniteError(
      f"`parameters` of {source} returns NaN for the next {len(parameters):,} iterations. If one of its schedules "
      "ends before that, stop there."
    )


def _table_length(done: int, count: int) -> int:
  """Returns the length of a table of parameters: `count`, or more if the solver has run for long and may go on."""
  if count == 0 or count > _MOST:
    return count
  return max(count, _FEWEST, min(done, _MOST))


def taper_factors(count: int, iteration: int, last: int, start: int) -> Float64s:
  """Returns the factors by which `FullWidthState.cumulative` is added to `tapered` after each iteration.

  Args:
    count: the number of iterations to come.
    iteration: the number of iterations done.
    last: the iteration after which the last addition was made.
    start: the iteration after which the average began.

  Returns:
    float64 (count,). The factors; 0 after iterations without an addition.
  """
  result, first, end = np.zeros(count), iteration + 1, iteration + count
  while True:
    between = max(_LEAST_BETWEEN_ADDITIONS, (last - start) // _PART_BETWEEN_ADDITIONS)
    # An overdue addition, as after a warm start, is made after the next iteration.
    due = max(first, last + between)
    if due > end:
      return result
    result[due - first] = TAPER_UNIT * (due - last)
    last = due


def check_weights(weights: Float64s, count: int, total: float, most: float = 1e300) -> None:
  """Checks averaging weights, shape (count,), before they are added to a `total` that may grow up to `most`.

  Raises:
    ArgumentError: a weight is negative.
    NotFiniteError: the sum would leave the range of floating-point numbers.
  """
  if count == 1:
    least = bound = weights.item()
  else:
    least, bound = float(weights.min(initial=0.0)), count * float(weights.max(initial=0.0))
  if least < 0:
    raise errors.ArgumentError(f"Weights of averages must not be negative, as {least:zg} is.")
  if not total + bound <= most or math.isnan(least):
    raise errors.NotFiniteError(
      f"The weights of the average sum to {total:zg}, and those of the next {count:,} iterations to up to {bound:zg}, "
      "too much for floating-point numbers. Use a smaller power, such as gamma=2; or stop: the average is still right."
    )
