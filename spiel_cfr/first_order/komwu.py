"""Kernelized optimistic multiplicative weights: the weights of all pure strategies, without listing them.

Optimistic multiplicative weights over the pure strategies pi of a player, of which there are exponentially many, plays

    lambda^{t+1}(pi) proportional to  exp(eta <sum of g^s for s <= t, plus g^t once more, pi>)

A pure strategy's weight is a product over its sequences, so that the total weight of all strategies of a subtree is a
sum over actions of products over what follows, and one sweep over the treeplex plays the average of them all. It is the
sweep of a proximal step with the entropy, all weights 1, from a center whose numbers are all 1 instead of 1 / n.
Farina, Lee, Luo and Kroer, "Kernelized Multiplicative Weights for 0/1-Polyhedral Games" (2022).
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
  UNIFORM,
  WORK,
  Problem,
  Work,
  add,
  differentiate,
  step,
)
from spiel_cfr.first_order.first_order_solver import AveragedSolver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms

_ONE = np.uint64(1)


@kernel(types.void(PROBLEM, WORK, FLOATS, FLOATS, FLOATS, types.float64, COUNT, COUNTS))
def reweigh(
  problem: Problem,
  work: Work,
  point: Float64s,
  cumulative: Float64s,
  utilities: Float64s,
  scale: float,
  count: int,
  done: Uint64s,
) -> None:
  """Does `count` iterations.

  Args:
    problem: see `Problem`.
    work: what the iterations work on.
    point: what is played.
    cumulative: the sum of what was.
    utilities: the sum of the gradients.
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
      add(problem, player, 1.0, work.utility, utilities)
      add(problem, player, 1.0, utilities, work.utility)
      step(problem, work, player, UNIFORM, FIRST, scale, work.utility, point)
    done[ITERATIONS] += _ONE


class KOMWUSolver(AveragedSolver):
  """Kernelized optimistic multiplicative weights, all players at once, for any number of players.

  It begins with the uniform mixture of pure strategies, which plays an action the more often, the more pure strategies
  follow it.

  Attributes:
    step: eta times the coupling.
  """

  state_names: ClassVar[tuple[str, ...]] = (*AveragedSolver.state_names, "_utilities")

  def __init__(self, game: AnyGame, step: float = 0.5) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      step: eta times the coupling, so that the unit of payoffs does not matter.

    Raises:
      ArgumentError: the step is not positive.
      GameError: see `compile_game`.
    """
    self.step = arguments.positive_number(step, "step")
    super().__init__(game, "entropy", "one")

  def _start(self) -> None:
    super()._start()
    game = self.compiled_game
    self._utilities = aligned_zeros(game.end)
    self._work.centers[UNIFORM] = 0.0
    self._point[:] = forms.sequence_form(game, uniform_mixture(game))

  def _advance(self, count: int) -> None:
    reweigh(
      self._problem,
      self._work,
      self._point,
      self._cumulative,
      self._utilities,
      self.coupling / self.step,
      count,
      self._done,
    )


def uniform_mixture(game: CompiledGame) -> Float64s:
  """Returns, in behavioural form, what all reduced pure strategies of a player play if each is equally likely."""
  # The logarithm of the number of ways to go on below each sequence.
  ways = np.zeros(game.end)
  result = np.zeros(game.end)
  for tree in game.treeplexes:
    for sequences, infosets in list(tree.blocks())[::-1]:
      top = ways[sequences].max(axis=0)
      weights = np.exp(ways[sequences] - top)
      result[sequences] = weights / weights.sum(axis=0)
      np.add.at(ways, tree.parent[infosets], top + np.log(weights.sum(axis=0)))
  return result
