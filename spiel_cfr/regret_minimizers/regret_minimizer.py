"""Base class of local regret minimizers: the choice of the next strategy at an infoset.

A regret minimizer sees the counterfactual utilities of an infoset: the utility of each action, weighted by the
probability that chance and the other players lead there. It chooses the next strategy there. Trees, payoffs and
averages belong to the solver. Utilities are maximized.

A minimizer is a class that names one block kernel, and up to two more. `games.sequence_form.blocks` is their contract;
`regret_matching.regret_matching` is the simplest of them.

    observe(block)   reads in `block.utility` the counterfactual utilities under the strategies just played. It writes
                     the value of each infoset, <strategy, utility>, to `block.value`, and updates `action_state` and
                     `infoset_state`. Without a `predict`, it also writes the next strategy to `strategy`.
    predict(block)   is called after all infosets have observed, deepest infosets first. It reads in `block.utility` the
                     utilities predicted for the next iteration: the last gradient, carried up with the strategies that
                     `predict` has chosen below (Farina et al. 2019, equation 17). It writes the next strategy, and the
                     value of that under the prediction to `value`.
    resume(block)    reads in `strategy` the strategy to play next, as after a restart. It changes `action_state` and
                     `infoset_state` so that they lead to this strategy and keep the scale of steps learned so far. It
                     neither reads `utility` nor writes to `strategy` and `value`.

`block.parameters` is the row of this iteration, from `RegretMinimizer.parameters`.
"""

import abc
import dataclasses
from typing import Literal, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.schedules import Numbers, evaluated

# The regrets of a warm start from a policy: those of having met its utilities, or those that go on playing it. See
# `cfr.substitute_regrets`.
WarmForm: TypeAlias = Literal["substitute", "proportional"]

# Two actions are tied if their counterfactual utilities differ by at most this fraction of the largest utility that the
# infoset can have. Rounding would break ties between equal actions: a regret of 1e-17 instead of 0 makes regret
# matching play a pure strategy instead of the uniform one. The scale depends on the infoset: if chance leads there once
# in 10^9 games, all its regrets are about 1e-9.
TIE = 1e-12
# The fraction for float32 numbers, whose last place is 1e-7.
_SINGLE_TIE = 1e-7


@dataclasses.dataclass(frozen=True)
class RegretMinimizer(abc.ABC):
  """Base class of regret minimizers. Only `observe` is required. A class attribute can stand for any property."""

  @property
  @abc.abstractmethod
  def observe(self) -> StepKernel:
    """A property that returns the kernel that sees the utilities of an iteration, see the docstring of the module."""

  @property
  def predict(self) -> StepKernel | None:
    """The kernel that sees the predicted utilities; None if `observe` chooses the next strategy."""
    return None

  @property
  def resume(self) -> StepKernel | None:
    """The kernel that continues from a given strategy; None if the minimizer can't."""
    return None

  @property
  def action_lines(self) -> int:
    """The number of values kept for each action of an infoset."""
    return 1

  @property
  def infoset_lines(self) -> int:
    """The number of values kept for each infoset."""
    return 0

  @property
  def keeps_regrets(self) -> bool:
    """True if the first line of `action_state` is the cumulative regret; by default, if there is a line."""
    return self.action_lines > 0

  @property
  def visits_forced(self) -> bool:
    """True if the kernels see infosets with one action too; by default, if there are values of infosets."""
    return self.infoset_lines > 0

  @property
  def warm_forms(self) -> tuple[WarmForm, ...]:
    """The possible forms of a warm start, the best first."""
    return () if self.resume is None else ("proportional",)

  @typed
  def warm_action_state(self, regrets: Float64s, iterations: int, game: CompiledGame) -> Float64s:
    """Returns the `action_state` after iterations with the same regrets; by default, the initial one.

    Args:
      regrets: float64 (sequences,). The regrets of each iteration.
      iterations: the number of iterations.
      game: the game.

    Returns:
      Shape (action_lines, sequences). In the form "proportional", `resume` follows and reads the scale of regrets from
      it.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
    """
    arguments.positive_integer(iterations, "iterations")
    return np.zeros((self.action_lines, game.end))

  def resumable(self) -> "RegretMinimizer":
    """Returns the minimizer in a form that can continue from a given strategy; by default, itself.

    Raises:
      RestartError: the minimizer has no such form.
    """
    resumption(self)
    return self

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the numbers that the kernels read at each iteration: float64, shape (iterations, numbers).

    The first number is `relative_tie(game)`, see `blocks.tolerance`.
    """
    return parameter_rows(iterations, game)

  @typed
  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    """Returns the first `infoset_state`, shape (infoset_lines, infosets of all players)."""
    return np.zeros((self.infoset_lines, game.num_infosets))


def parameter_rows(
  iterations: Int64s, game: CompiledGame, *columns: Numbers | Float64s
) -> Float64s:
  """Returns rows of `Block.parameters`: the tie tolerance, and then each of some columns.

  Args:
    iterations: shape (iterations,).
    game: the game.
    *columns: numbers, schedules, or arrays of shape (iterations,).

  Returns:
    Shape (iterations, 1 + columns).
  """
  result = np.empty((len(iterations), 1 + len(columns)))
  for place, column in enumerate((relative_tie(game), *columns)):
    result[:, place] = column if isinstance(column, np.ndarray) else evaluated(column, iterations)
  return result


def resumption(minimizer: RegretMinimizer) -> StepKernel:
  """Returns the kernel `resume` of a minimizer.

  Raises:
    RestartError: the minimizer has none.
  """
  if minimizer.resume is None:
    raise errors.RestartError(
      f"{type(minimizer).__name__} can't go on from a given strategy, so no solver with it can be restarted. Give it a "
      "kernel `resume`, see spiel_cfr.regret_minimizers.regret_minimizer, or use a solver with another minimizer."
    )
  return minimizer.resume


def relative_tie(game: CompiledGame) -> float:
  """Returns the tolerance of ties, relative to the largest utility of an infoset."""
  return TIE if game.dtype == np.float64 else _SINGLE_TIE


def tie_tolerances(game: CompiledGame) -> Float64s:
  """Returns the tolerance of ties of each infoset in the unit of utilities, shape (infosets,)."""
  quarters = game.scale[: game.num_infosets].astype(np.uint64) << np.uint64(48)
  return relative_tie(game) * quarters.view(np.float64)
