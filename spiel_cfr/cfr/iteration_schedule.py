"""What depends on the iteration: the minimizer's parameters, and what strategies weigh in the average."""

import math
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr.cfr.averaging import additions
from spiel_cfr.cfr.loops import FullWidthState, IterationNumbers
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import Schedule, evaluated

# For how many iterations parameters are computed at a time at least and at most, where few are asked for.
_FEWEST, _TABLE = 64, 512


class IterationSchedule:
  """The numbers of all iterations of a solver.

  Attributes:
    weights: what iteration t weighs in the average.
    after: whose averages take strategies after their update, shape (players,).
    tapered: whether weights vanish at the end too.
  """

  def __init__(
    self,
    game: CompiledGame,
    minimizer: RegretMinimizer,
    weights: Schedule,
    after: Bools,
    tapered: bool,
  ) -> None:
    """Takes what never changes."""
    self._game, self._minimizer = game, minimizer
    self.weights, self.after, self.tapered = weights, after, tapered
    self._most_weight = float(np.finfo(game.dtype).max) / 2**20
    # Parameters of the iterations after one.
    self._rows, self._rows_from = np.zeros((0, 0)), 0

  def next(self, state: FullWidthState, count: int) -> IterationNumbers:
    """Returns the numbers of the next iterations.

    Raises:
      ArgumentError: what a minimizer or a schedule of one's own returns is not what it should be.
      NotFiniteError: a parameter is NaN, or weights would leave the range of floating-point numbers.
    """
    done = int(state.counts[0])
    iterations = np.arange(1, count + 1) + done
    parameters = self._next_parameters(done, count)
    weights = self.weights_of(iterations - state.average_start, float(state.cumulative[0]))
    weights = weights[:, None]
    added = np.zeros(count)
    if self.tapered:
      added = additions(count, done, int(state.counts[1]), state.average_start)
    return IterationNumbers(parameters, weights * ~self.after, weights * self.after, added)

  def weights_of(self, iterations: Int64s, total: float = 0.0) -> Float64s:
    """Returns what strategies weigh, by how many iterations the average is made of; they sum to `total` so far."""
    weights = evaluated(self.weights, iterations)
    check_weights(weights, len(iterations), total, self._most_weight)
    return weights

  def _next_parameters(self, done: int, count: int) -> Float64s:
    """Returns the minimizer's parameters, quickly where it is called for a few iterations after the other."""
    if not count or count > _TABLE:
      return self.parameters(np.arange(1, count + 1) + done)
    first = done - self._rows_from
    if not 0 <= first <= len(self._rows) - count:
      rows = max(count, _FEWEST, min(done, _TABLE))
      self._rows = self.parameters(np.arange(1, rows + 1) + done, may_have_nan=True)
      self._rows_from, first = done, 0
    rows_now = self._rows[first : first + count]
    _check_parameters(rows_now, self._minimizer)
    return rows_now

  def parameters(self, iterations: Int64s, may_have_nan: bool = False) -> Float64s:
    """Returns what the minimizer's kernels are told at these iterations, shape (iterations, numbers)."""
    result = self._minimizer.parameters(iterations, self._game)
    _check_numbers(result, 2, len(iterations), "what the minimizer's `parameters` returns")
    if not may_have_nan:
      _check_parameters(result, self._minimizer)
    return result


def _check_numbers(numbers: Any, dimensions: int, count: int, name: str) -> None:
  """Checks numbers of some iterations, which compiled code reads.

  Raises:
    ArgumentError: they are not float64, contiguous, with a row an iteration.
  """
  if (
    type(numbers) is not np.ndarray
    or numbers.dtype != np.float64
    or numbers.ndim != dimensions
    or len(numbers) != count
    or not numbers.flags.c_contiguous
  ):
    found = (
      f"an array of {numbers.dtype} of shape {numbers.shape}"
      if isinstance(numbers, np.ndarray)
      else type(numbers).__name__
    )
    shape = f"({count},{' numbers' * (dimensions > 1)})"
    raise errors.ArgumentError(f"{name} must be float64 of shape {shape}, not {found}.")


def check_weights(weights: Float64s, count: int, total: float, most: float = 1e300) -> None:
  """Checks the weights of averages before they are added to what they sum to so far.

  Args:
    weights: of the next iterations, shape (count,).
    count: how many these are.
    total: the sum so far.
    most: what it may become.

  Raises:
    ArgumentError: they are not float64 of shape (count,), or negative.
    NotFiniteError: the sum would leave the range of floating-point numbers.
  """
  _check_numbers(weights, 1, count, "weights of averages")
  if count == 1:
    least = more = float(weights[0])
  else:
    least, more = float(weights.min(initial=0.0)), count * float(weights.max(initial=0.0))
  if least < 0:
    raise errors.ArgumentError(f"Weights of averages must not be negative, as {least:g} is.")
  if not total + more <= most or math.isnan(least):
    raise errors.NotFiniteError(
      f"The weights of the average sum to {total:g}, and those of the next {count:,} iterations to up to {more:g}, too "
      "much for floating-point numbers. Take a smaller power, such as gamma=2; or stop: the average is still right."
    )


def _check_parameters(parameters: Float64s, minimizer: Any) -> None:
  """Checks the numbers of a minimizer's next iterations: regrets that become NaN would be clipped, and nobody notice.

  Raises:
    NotFiniteError: one is NaN.
  """
  total = parameters.sum()
  # That of infinities is NaN too.
  if total != total and np.isnan(parameters).any():
    raise errors.NotFiniteError(
      f"What `parameters` of {minimizer} returns for the next {len(parameters):,} iterations has NaN. If a schedule "
      "of its ends before that, stop there."
    )
