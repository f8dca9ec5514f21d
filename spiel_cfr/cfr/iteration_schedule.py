"""What depends on the iteration: the minimizer's parameters, and what strategies weigh in the average."""

import math

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.cfr.averaging import Averaging, additions
from spiel_cfr.cfr.loops import FullWidthState
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer
from spiel_cfr.regret_minimizers.schedules import as_weights, evaluated

# For how many iterations parameters are computed at a time at least and at most, where few are asked for.
_FEWEST, _TABLE = 64, 512


class IterationSchedule:
  """The numbers of all iterations of a solver."""

  def __init__(
    self, game: CompiledGame, minimizer: RegretMinimizer, averaging: Averaging, alternating: bool
  ) -> None:
    self._game, self._minimizer, self._averaging = game, minimizer, averaging
    self._weights = as_weights(averaging.weights, "weights")
    # Whose strategies count after their update.
    self._after = np.full(game.num_players, averaging.counted == "after")
    if averaging.counted == "faced":
      self._after[:-1] = alternating
    self._most_weight = float(np.finfo(game.dtype).max) / 2**20
    # Parameters of the iterations after one.
    self._rows, self._rows_from = np.zeros((0, 0)), 0

  def next(self, state: FullWidthState, count: int) -> Float64s:
    """Returns the numbers of the next iterations, shape (count, numbers): a row of `cfr.loops.IterationNumbers` each.

    Raises:
      ArgumentError: what a minimizer or a schedule of one's own returns is not what it should be.
      NotFiniteError: a parameter is NaN, or weights would leave the range of floating-point numbers.
    """
    done = int(state.counts[0])
    iterations = np.arange(1, count + 1) + done
    parameters = self._next_parameters(done, count)
    weights = self.weights_of(iterations - state.average_start, float(state.cumulative[0]))
    players = len(self._after)
    result = np.zeros((count, 2 * players + 1 + parameters.shape[1]))
    # Each player's weights before and after its update.
    result[:, 0 : 2 * players : 2] = weights[:, None] * ~self._after
    result[:, 1 : 2 * players : 2] = weights[:, None] * self._after
    if self._averaging.tapered:
      last = int(state.counts[1])
      result[:, 2 * players] = additions(count, done, last, state.average_start)
    result[:, 2 * players + 1 :] = parameters
    return result

  def weights_of(self, iterations: Int64s, total: float = 0.0) -> Float64s:
    """Returns what strategies weigh, by how many iterations the average is made of; they sum to `total` so far."""
    weights = evaluated(self._weights, iterations)
    check_weights(weights, len(iterations), total, self._most_weight)
    return weights

  def total_weight(self, count: int) -> float:
    """Returns what the strategies of the first iterations weigh; 1 by a rule, whose average is no sum of weights."""
    weights = self.weights_of(np.arange(1, count + 1))
    return float(weights.sum()) if self._averaging.rule is None else 1.0

  def _next_parameters(self, done: int, count: int) -> Float64s:
    """Returns the minimizer's parameters, quickly where it is called for a few iterations after the other."""
    first = done - self._rows_from
    if not 0 <= first <= len(self._rows) - count:
      rows = count if not count or count > _TABLE else max(count, _FEWEST, min(done, _TABLE))
      self._rows = self.parameters(np.arange(1, rows + 1) + done)
      self._rows_from, first = done, 0
    result = self._rows[first : first + count]
    self._check_no_nan(result)
    return result

  def parameters(self, iterations: Int64s) -> Float64s:
    """Returns what the minimizer's kernels are told at these iterations, shape (iterations, numbers)."""
    result = np.ascontiguousarray(self._minimizer.parameters(iterations, self._game), np.float64)
    if result.ndim != 2 or len(result) != len(iterations) or not result.shape[1]:
      raise errors.ArgumentError(
        f"`parameters` of {self._minimizer} must return numbers of shape ({len(iterations)}, numbers), the tie "
        f"tolerance first, not of shape {result.shape}."
      )
    return result

  def _check_no_nan(self, parameters: Float64s) -> None:
    """Raises NotFiniteError: regrets that became NaN would be clipped, and nobody notice."""
    total = parameters.sum()
    # That of infinities is NaN too.
    if total != total and np.isnan(parameters).any():
      raise errors.NotFiniteError(
        f"What `parameters` of {self._minimizer} returns for the next {len(parameters):,} iterations has NaN. If a "
        "schedule of its ends before that, stop there."
      )


def check_weights(weights: Float64s, count: int, total: float, most: float = 1e300) -> None:
  """Checks weights of averages, shape (count,), before they are added to the `total` so far, which may become `most`.

  Raises:
    ArgumentError: they are negative.
    NotFiniteError: the sum would leave the range of floating-point numbers.
  """
  if count == 1:
    least = more = weights.item()
  else:
    least, more = float(weights.min(initial=0.0)), count * float(weights.max(initial=0.0))
  if least < 0:
    raise errors.ArgumentError(f"Weights of averages must not be negative, as {least:zg} is.")
  if not total + more <= most or math.isnan(least):
    raise errors.NotFiniteError(
      f"The weights of the average sum to {total:zg}, and those of the next {count:,} iterations to up to {more:zg}, "
      "too much for floating-point numbers. Take a smaller power, such as gamma=2; or stop: the average is still right."
    )
