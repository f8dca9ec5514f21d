"""The excessive gap technique: saddle points at a rate of 1 / T, with the gap bounded at every step.

With u_p player p's expected utility, d_p a distance from the uniform strategy and mu_p > 0,

    V_p(x) = max over x_p of  u_p(x_p, x_-p) - mu_p d_p(x_p)

is a smooth lower bound of a best response's value, at most mu_p O_p too low where O_p is the diameter. Strategies with

    excess = (what the players' returns sum to) - V_0 - V_1  >=  0

thus have NashConv <= mu_0 O_0 + mu_1 O_1 - excess. Each step keeps the excess from becoming negative while one of the
mu shrinks to (1 - tau) of what it was. Nesterov, "Excessive gap technique in nonsmooth convex minimization" (2005); for
games Hoda, Gilpin, Peña and Sandholm (2010), and Kroer, Farina and Sandholm, "Solving Large Sequential Games with the
Excessive Gap Technique" (2018), of which the search for tau is.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import COUNT, COUNTS, FLOATS, Float64s, Uint64s, require
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr.first_order.descent_steps import (
  FIRST,
  ITERATIONS,
  PROBLEM,
  SECOND,
  UNIFORM,
  WORK,
  Problem,
  Work,
  assign,
  differentiate,
  mix,
  step,
)
from spiel_cfr.first_order.distances import Weights
from spiel_cfr.first_order.first_order_solver import FirstOrderSolver
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regularizers import Regularizer

_ZERO, _ONE = np.uint64(0), np.uint64(1)
# Entries of `smoothing`: each player's mu, and the tau of the next step where that is searched for.
_TAU = 2
# Searching: where tau begins, what it is divided by and multiplied by after a step, how often it is divided.
_FIRST_TAU, _SMALLER, _LARGER, _MOST_TRIALS = 0.5, 2.0, 1.11, 50
# Where mu begins: the proven start over powers of 2 up to this one.
_MOST_HALVINGS = 20


@inlined
def smooth_value(
  problem: Problem,
  work: Work,
  player: int,
  smoothing: Float64s,
  sequence_form: Float64s,
  result: Float64s,
  done: Uint64s,
) -> float:
  """Returns V_p at the others' strategies; result becomes the maximizer, and so does `centers[FIRST]`."""
  differentiate(problem, work, player, sequence_form, done)
  value: float = step(
    problem, work, player, UNIFORM, FIRST, smoothing[player], work.utility, result
  )
  return value


@inlined
def excess_of(
  problem: Problem,
  work: Work,
  smoothing: Float64s,
  point: Float64s,
  trial: Float64s,
  total: float,
  done: Uint64s,
) -> float:
  """Returns the excess at a point."""
  result = total
  for player in range(_ZERO, np.uint64(2)):
    result -= smooth_value(problem, work, player, smoothing, point, trial, done)
  return result


@kernel(types.float64(PROBLEM, WORK, FLOATS, FLOATS, FLOATS, types.float64, COUNTS))
def excess_at(
  problem: Problem,
  work: Work,
  smoothing: Float64s,
  point: Float64s,
  trial: Float64s,
  total: float,
  done: Uint64s,
) -> float:
  """`excess_of`, from Python."""
  excess: float = excess_of(problem, work, smoothing, point, trial, total, done)
  return excess


@kernel(types.void(PROBLEM, WORK, FLOATS, FLOATS, FLOATS, COUNTS))
def begin(
  problem: Problem,
  work: Work,
  smoothing: Float64s,
  point: Float64s,
  trial: Float64s,
  done: Uint64s,
) -> None:
  """Makes `point`, the uniform strategies, one of no negative excess, if mu_0 mu_1 is at least the coupling squared.

  Player 1 responds smoothly, and player 0 takes a step from the uniform strategy against that.
  """
  smooth_value(problem, work, _ONE, smoothing, point, trial, done)
  assign(problem, _ONE, trial, point)
  smooth_value(problem, work, _ZERO, smoothing, point, trial, done)
  assign(problem, _ZERO, trial, point)


@kernel(
  types.void(
    PROBLEM, WORK, *[FLOATS] * 5, types.float64, types.float64, types.boolean, COUNT, COUNTS
  )
)
def shrink(
  problem: Problem,
  work: Work,
  smoothing: Float64s,
  point: Float64s,
  moved: Float64s,
  answer: Float64s,
  trial: Float64s,
  total: float,
  rounding: float,
  searches: bool,
  count: int,
  done: Uint64s,
) -> None:
  """Does `count` iterations.

  Args:
    problem: see `Problem`.
    work: what the iterations work on.
    smoothing: mu of each player, and tau.
    point: the strategies.
    moved: workspace like `point`.
    answer: likewise.
    trial: likewise.
    total: what the players' returns sum to.
    rounding: how far below 0 the excess may be by rounding.
    searches: whether tau is the largest that a search finds, or 2 / (t + 3).
    count: how many.
    done: counts them.
  """
  for _ in range(count):
    first = smoothing[0] * problem.diameters[0] >= smoothing[1] * problem.diameters[1]
    own, other = (_ZERO, _ONE) if first else (_ONE, _ZERO)
    tau = smoothing[_TAU] if searches else 2.0 / (np.float64(done[ITERATIONS]) + 3.0)
    before = smoothing[own]
    # `answer` of the player whose mu shrinks is its smooth response, and `centers[FIRST]` too.
    smooth_value(problem, work, own, smoothing, point, answer, done)
    for attempt in range(_MOST_TRIALS):
      mix(problem, own, point, answer, tau, moved)
      differentiate(problem, work, other, moved, done)
      step(problem, work, other, UNIFORM, SECOND, smoothing[other], work.utility, answer)
      mix(problem, other, point, answer, tau, moved)
      differentiate(problem, work, own, answer, done)
      step(problem, work, own, FIRST, SECOND, (1.0 - tau) * before / tau, work.utility, trial)
      mix(problem, own, point, trial, tau, moved)
      smoothing[own] = (1.0 - tau) * before
      if not searches:
        break
      # `centers[FIRST]` is needed again if this is not good enough.
      assign(problem, own, work.centers[FIRST], work.centers[SECOND])
      excess = excess_of(problem, work, smoothing, moved, trial, total, done)
      if excess >= -rounding:
        smoothing[_TAU] = min(_FIRST_TAU, _LARGER * tau)
        break
      assign(problem, own, work.centers[SECOND], work.centers[FIRST])
      smoothing[own] = before
      tau /= _SMALLER
      smoothing[_TAU] = tau
      if attempt == _MOST_TRIALS - 1:
        # Nothing is left but rounding: the strategies stay.
        smoothing[_TAU] = _FIRST_TAU
        assign(problem, own, point, moved)
        assign(problem, other, point, moved)
    assign(problem, _ZERO, moved, point)
    assign(problem, _ONE, moved, point)
    done[ITERATIONS] += _ONE


class ExcessiveGapSolver(FirstOrderSolver):
  """The excessive gap technique for constant-sum games of two players: NashConv <= `bound` = O(1 / T).

  There is no average apart from the strategies themselves; `current_policy` and `average_policy` are the same.

  With L the coupling, mu_0 begins with 2 L sqrt(O_1 / O_0) and mu_1 with L sqrt(O_0 / O_1), and in step t = 0, 1, ...
  the one with the larger mu_p O_p shrinks with tau = 2 / (t + 3), so that

      NashConv <= L sqrt(O_0 O_1) (2 / (T + 1) + 2 / (T + 2))

  after T of them. `aggressive=True` is EGT/AS: mu begins as small as the excess lets it, and tau is the largest of
  1/2, 1/4, ... for which the excess is not negative, from where the last one was; the bound is mu_0 O_0 + mu_1 O_1 as
  it is.

  Attributes:
    aggressive: whether it searches for steps.
  """

  state_names: ClassVar[tuple[str, ...]] = (*FirstOrderSolver.state_names, "_smoothing")
  _workspaces: ClassVar[tuple[str, ...]] = (
    *FirstOrderSolver._workspaces,
    "_moved",
    "_answer",
    "_trial",
  )
  _two_players = True

  def __init__(
    self,
    game: AnyGame,
    aggressive: bool = False,
    regularizer: Regularizer = "entropy",
    weights: Weights = "farina2021",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      aggressive: whether it searches for the largest steps.
      regularizer: "entropy" or "euclidean".
      weights: "kroer2017", "farina2021" or "one". The bound is proven for the first, and for the second with the
        entropy; of an aggressive solver for any.

    Raises:
      UnsupportedGameError: the game is not a constant-sum game of two players.
      ArgumentError: there is no such regularizer, or there are no such weights.
      GameError: see `compile_game`.
    """
    self.aggressive = bool(aggressive)
    super().__init__(game, regularizer, weights)

  def _start(self) -> None:
    super()._start()
    self._moved, self._answer, self._trial = (self._point_like() for _ in range(3))
    self._smoothing = np.zeros(3)
    self._set_smoothing(1.0)

  def _set_smoothing(self, factor: float) -> None:
    ratio = math.sqrt((self.diameters[1] or 1.0) / (self.diameters[0] or 1.0))
    scale = self.coupling * factor
    self._smoothing[:] = 2.0 * scale * ratio, scale / ratio, _FIRST_TAU

  @property
  def smoothing(self) -> Float64s:
    """A copy of mu, shape (players,)."""
    return self._smoothing[:2].copy()

  @property
  def bound(self) -> float:
    """What NashConv is at most, from the second iteration on: mu_0 O_0 + mu_1 O_1."""
    return float(self._smoothing[:2] @ self.diameters)

  def excess(self) -> float:
    """Returns the excess at the current strategies; not negative from the first iteration on, up to rounding."""
    return self._excess(np.zeros(2, np.uint64))

  def _excess(self, done: Uint64s) -> float:
    result: float = excess_at(
      self._problem, self._work, self._smoothing, self._point, self._trial, self._total, done
    )
    return result

  def _begin(self) -> None:
    """Finds mu and the strategies that the first iteration starts from."""
    uniform = forms.sequence_form(self.compiled_game, forms.uniform(self.compiled_game))
    # The proven start comes last, and its excess is not looked at.
    for halvings in range(_MOST_HALVINGS if self.aggressive else 0, -1, -1):
      self._set_smoothing(2.0**-halvings)
      self._point[:] = uniform
      begin(self._problem, self._work, self._smoothing, self._point, self._trial, self._done)
      if halvings and self._excess(self._done) >= -self._rounding:
        return

  def _advance(self, count: int) -> None:
    if count and not self.iteration:
      self._begin()
    shrink(
      self._problem,
      self._work,
      self._smoothing,
      self._point,
      self._moved,
      self._answer,
      self._trial,
      self._total,
      self._rounding,
      self.aggressive,
      count,
      self._done,
    )

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(state["_smoothing"] >= 0, "mu and tau are not negative")
