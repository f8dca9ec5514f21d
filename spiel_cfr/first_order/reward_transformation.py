"""RTCFR+: CFR+ whose last iterate converges, because rewards pull towards a reference that follows now and then.

With q the sequence form of a player's strategy and q_ref the reference, at every sequence

    utility - mu (q - q_ref)

takes the place of the utility. The perturbed game is strongly monotone, so that its iterates converge; its saddle point
is the proximal point of the reference, so that replacing q_ref by q every `period` iterations converges to a saddle
point of the game itself. Strategies tremble with a probability that halves each time, see
`regret_minimizers.trembling_matching`. No
average is needed. Meng et al., "Reward transformation CFR+" (NeurIPS 2025); the constants are those of their program.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import COUNT, COUNTS, FLOATS, Float64s, Uint64s, aligned_zeros, require
from spiel_cfr._numba.kernels import kernel
from spiel_cfr._numba.simd import LANES
from spiel_cfr._util import arguments
from spiel_cfr.first_order.descent_steps import (
  ITERATIONS,
  PROBLEM,
  WORK,
  Problem,
  Work,
  add,
  assign,
  differentiate,
  sweep,
)
from spiel_cfr.first_order.first_order_solver import GradientSolver
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import TIE
from spiel_cfr.regret_minimizers.trembling_matching import NEXT, NOW, TOLERANCE, match_trembling

_ONE = np.uint64(1)
_FIRST_TREMBLES = 1e-10


@kernel(types.void(PROBLEM, WORK, FLOATS, FLOATS, FLOATS, types.float64, COUNT, COUNT, COUNTS))
def transform(
  problem: Problem,
  work: Work,
  point: Float64s,
  reference: Float64s,
  trembles: Float64s,
  pull: float,
  period: int,
  count: int,
  done: Uint64s,
) -> None:
  """Does `count` iterations, players in turn.

  Args:
    problem: see `Problem`.
    work: what the iterations work on; `strategy` is what is played, `centers[0]` the regrets.
    point: what is played, in sequence form.
    reference: q_ref.
    trembles: the probability of playing at random, shape (1,).
    pull: mu.
    period: after how many iterations the reference follows.
    count: how many.
    done: counts them.
  """
  num_players = np.uint64(problem.players.shape[0])
  for _ in range(count):
    follows = (done[ITERATIONS] + _ONE) % period == 0
    work.numbers[NOW] = trembles[0]
    trembles[0] *= 0.5 if follows else 1.0
    work.numbers[NEXT] = trembles[0]
    for player in range(num_players):
      differentiate(problem, work, player, point, done)
      add(problem, player, -pull, point, work.utility)
      add(problem, player, pull, reference, work.utility)
      sweep(problem, work, player, work.utility, point)
    if follows:
      for player in range(num_players):
        assign(problem, player, point, reference)
    done[ITERATIONS] += _ONE


class RTCFRPlusSolver(GradientSolver):
  """Reward transformation CFR+: the last iterate is the result, `current_policy` and `average_policy` are the same.

  Attributes:
    pull: mu, times the coupling, which is the scale of payoffs.
    period: how many iterations the reference stays.
  """

  state_names: ClassVar[tuple[str, ...]] = (
    *GradientSolver.state_names,
    "_strategy",
    "_regrets",
    "_reference",
    "_trembles",
  )

  def __init__(self, game: AnyGame, pull: float = 1e-3, period: int = 100) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      pull: how strongly rewards pull towards the reference, in units of the coupling.
      period: after how many iterations the reference follows.

    Raises:
      ArgumentError: the pull is not positive, or the period is not a positive integer.
      GameError: see `compile_game`.
    """
    self.pull = arguments.positive_number(pull, "pull")
    self.period = arguments.positive_integer(period, "period")
    super().__init__(game)
    self._start()

  def _start(self) -> None:
    super()._start()
    self._strategy, self._regrets = self._work.strategy, self._work.centers[0]
    self._work.numbers[TOLERANCE] = TIE
    self._reference = self._point.copy()
    self._trembles = np.array([_FIRST_TREMBLES])
    # The kernel reads neither.
    self._unread = aligned_zeros(1, self.compiled_game.num_infosets + LANES)

  def _advance(self, count: int) -> None:
    transform(
      self._problem_of(match_trembling, self._unread, self._unread[0]),
      self._work,
      self._point,
      self._reference,
      self._trembles,
      self.pull * self.coupling,
      self.period,
      count,
      self._done,
    )

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require((state["_trembles"] >= 0) & (state["_trembles"] < 1), "trembles are a probability")
    require(state["_regrets"] >= 0, "regrets are not negative")
    forms.check_behavioral_form(self.compiled_game, state["_strategy"])
