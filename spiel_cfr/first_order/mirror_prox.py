"""Mirror prox: two proximal steps an iteration, the second with the gradient at the first's result; a rate of 1 / T.

With F the players' gradients, D a distance that weighs player p's with 1 / (2 O_p), O_p the diameter, and eta the step,

    w = argmax  eta <F(z), x> - D(x, z),      z' = argmax  eta <F(w), x> - D(x, z)

and the average of the w, weighed by eta, has NashConv <= 1 / (sum of eta) as long as

    eta <F(w), z' - w> <= D(z', z)

which eta = 1 / (2 L sqrt(O_0 O_1)) guarantees, L the coupling. Both sides are known after z': what player p's second
step has left at its root is max <F_p, x_p> - D_p / eta, and <F_0, w_0> + <F_1, w_1> is what the returns sum to.
Nemirovski, "Prox-method with rate of convergence O(1/t) for variational inequalities" (2004), whose adaptive steps
these are: where the inequality fails, w = z' is tried once more, then a smaller eta.
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
  WORK,
  Problem,
  Work,
  add,
  assign,
  differentiate,
  step,
)
from spiel_cfr.first_order.distances import Weights
from spiel_cfr.first_order.first_order_solver import AveragedSolver
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.regret_minimizers.regularizers import Regularizer

_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
# After a step that took no correction eta is multiplied by the one, before another attempt divided by the other.
_LARGER, _SMALLER, _MOST_ATTEMPTS = 1.2, 2.0, 50


@inlined
def both_step(
  problem: Problem,
  work: Work,
  eta: float,
  leader: Float64s,
  result: Float64s,
  done: Uint64s,
) -> float:
  """Both players step from `centers[FIRST]` with the gradients at `leader`; returns the sum of the maxima."""
  total = 0.0
  for player in range(_ZERO, _TWO):
    differentiate(problem, work, player, leader, done)
  for player in range(_ZERO, _TWO):
    diameter = problem.diameters[player]
    scale = 1.0 / (2.0 * (diameter if diameter > 0.0 else 1.0) * eta)
    total += step(problem, work, player, FIRST, SECOND, scale, work.utility, result)
  return total


@kernel(
  types.void(
    PROBLEM, WORK, *[FLOATS] * 5, types.float64, types.float64, types.boolean, COUNT, COUNTS
  )
)
def extrapolate(
  problem: Problem,
  work: Work,
  point: Float64s,
  cumulative: Float64s,
  leader: Float64s,
  following: Float64s,
  eta: Float64s,
  total: float,
  rounding: float,
  adaptive: bool,
  count: int,
  done: Uint64s,
) -> None:
  """Does `count` iterations.

  Args:
    problem: see `Problem`.
    work: what the iterations work on; `centers[FIRST]` is z.
    point: z in sequence form.
    cumulative: the sum of eta w.
    leader: workspace like `point`.
    following: likewise.
    eta: the step, shape (1,).
    total: what the players' returns sum to.
    rounding: how far a sum of values may be off.
    adaptive: whether steps change.
    count: how many.
    done: counts them.
  """
  for _ in range(count):
    for attempt in range(_MOST_ATTEMPTS):
      both_step(problem, work, eta[0], point, leader, done)
      fits = both_step(problem, work, eta[0], leader, following, done) <= total + rounding
      if fits or not adaptive:
        correction = 1.0 if not adaptive else _LARGER
        break
      for player in range(_ZERO, _TWO):
        assign(problem, player, following, leader)
      correction = 1.0
      if both_step(problem, work, eta[0], leader, following, done) <= total + rounding:
        break
      if attempt < _MOST_ATTEMPTS - 1:
        eta[0] /= _SMALLER
    for player in range(_ZERO, _TWO):
      add(problem, player, eta[0], leader, cumulative)
      assign(problem, player, following, point)
      assign(problem, player, work.centers[SECOND], work.centers[FIRST])
    eta[0] *= correction
    done[ITERATIONS] += _ONE


class MirrorProxSolver(AveragedSolver):
  """Mirror prox for constant-sum games of two players: NashConv of the average <= `bound` = O(1 / T).

  Attributes:
    aggressive: whether steps grow while they can.
  """

  state_names: ClassVar[tuple[str, ...]] = (
    *AveragedSolver.state_names,
    "_center",
    "_eta",
  )
  _workspaces: ClassVar[tuple[str, ...]] = (*AveragedSolver._workspaces, "_leader", "_following")
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
      aggressive: whether steps grow by a fifth while two proximal steps suffice; otherwise they stay 1 / (2 L sqrt(O_0
        O_1)).
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
    self._center = self._work.centers[FIRST]
    self._leader, self._following = self._point_like(), self._point_like()
    area = math.prod(diameter or 1.0 for diameter in self.diameters.tolist())
    self._eta = np.array([1.0 / (2.0 * self.coupling * math.sqrt(area))])

  @property
  def bound(self) -> float:
    """What NashConv of the average is at most: 1 / (sum of the steps); infinite before the first iteration."""
    steps = float(self._cumulative[0])
    return 1.0 / steps if steps else math.inf

  def _advance(self, count: int) -> None:
    extrapolate(
      self._problem,
      self._work,
      self._point,
      self._cumulative,
      self._leader,
      self._following,
      self._eta,
      self._total,
      self._rounding,
      self.aggressive,
      count,
      self._done,
    )

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(state["_eta"] > 0, "steps are positive")
