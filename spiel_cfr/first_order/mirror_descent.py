"""Optimistic mirror descent over a player's strategies in sequence form, with a dilated distance.

With g^t the player's gradient at the others' strategies x^t, and eta the step,

    z^{t+1} = argmax over x of  eta <g^t, x> - D(x, z^t)
    x^{t+1} = argmax over x of  eta <g^t, x> - D(x, z^{t+1})

With the entropy it is dilated optimistic multiplicative weights (DOMWU), with the Euclidean distance dilated optimistic
gradient descent (DOGDA). The average has a gap of O(1 / T) for small steps, and the last iterate converges too,
linearly in many games: Lee, Kroer and Luo, "Last-iterate Convergence in Extensive-Form Games" (2021).
"""

from typing import ClassVar

import numpy as np
from numba import types

from spiel_cfr._numba.arrays import COUNT, COUNTS, FLOATS, Float64s, Uint64s, aligned_zeros
from spiel_cfr._numba.kernels import kernel
from spiel_cfr._util import arguments
from spiel_cfr.first_order.descent_steps import (
  FIRST,
  ITERATIONS,
  PROBLEM,
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


@kernel(types.void(PROBLEM, WORK, FLOATS, FLOATS, FLOATS, FLOATS, types.float64, COUNT, COUNTS))
def descend(
  problem: Problem,
  work: Work,
  point: Float64s,
  cumulative: Float64s,
  prediction: Float64s,
  leader: Float64s,
  scale: float,
  count: int,
  done: Uint64s,
) -> None:
  """Does `count` iterations.

  Args:
    problem: see `Problem`.
    work: what the iterations work on; `centers[FIRST]` is z.
    point: x.
    cumulative: the sum of the x that were played.
    prediction: workspace like `point`.
    leader: likewise.
    scale: 1 / eta.
    count: how many.
    done: counts them.
  """
  num_players = np.uint64(problem.players.shape[0])
  for _ in range(count):
    for player in range(num_players):
      differentiate(problem, work, player, point, done)
    for player in range(num_players):
      add(problem, player, 1.0, point, cumulative)
      assign(problem, player, work.utility, prediction)
      step(problem, work, player, FIRST, FIRST, scale, work.utility, leader)
      step(problem, work, player, FIRST, _TWO, scale, prediction, point)
    done[ITERATIONS] += _ONE


class OptimisticMirrorDescentSolver(AveragedSolver):
  """Optimistic mirror descent with a dilated distance, all players at once, for any number of players.

  Attributes:
    step: eta times the coupling.
  """

  state_names: ClassVar[tuple[str, ...]] = (*AveragedSolver.state_names, "_center")
  _workspaces: ClassVar[tuple[str, ...]] = (*AveragedSolver._workspaces, "_prediction", "_leader")

  def __init__(
    self,
    game: AnyGame,
    step: float = 0.5,
    regularizer: Regularizer = "entropy",
    weights: Weights = "farina2021",
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      step: eta times the coupling, so that the unit of payoffs does not matter.
      regularizer: "entropy" or "euclidean".
      weights: "kroer2017", "farina2021" or "one".

    Raises:
      ArgumentError: the step is not positive, there is no such regularizer, or there are no such weights.
      GameError: see `compile_game`.
    """
    self.step = arguments.positive_number(step, "step")
    super().__init__(game, regularizer, weights)

  def _start(self) -> None:
    super()._start()
    self._center = self._work.centers[FIRST]
    self._leader = self._point_like()
    self._prediction = aligned_zeros(self.compiled_game.end)

  def _advance(self, count: int) -> None:
    descend(
      self._problem,
      self._work,
      self._point,
      self._cumulative,
      self._prediction,
      self._leader,
      self.coupling / self.step,
      count,
      self._done,
    )
