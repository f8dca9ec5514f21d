"""Base class of regret minimizers: the rule by which an infoset chooses its next strategy.

In every iteration, the solver computes the counterfactual utilities of each infoset. These are the utilities of its
actions, weighted by the probability that chance and the other players play to the infoset. The infoset's regret
minimizer reads them and chooses the infoset's next strategy. The game tree, the payoffs and the average strategies
belong to the solver. Utilities are maximized.

A minimizer is a class that names up to three block kernels. A block kernel is a compiled function that updates many
infosets at once; `games.sequence_form.blocks` describes its argument, a `Block`. The simplest example is
`regret_matching.regret_matching`.

    observe(block)   is required. It reads the counterfactual utilities of the iteration from `block.utility`. It
                     writes the value of each infoset, <strategy, utility>, to `block.value`, and updates the
                     minimizer's numbers in `action_state` and `infoset_state`. In a class without `predict`, it also
                     writes the next strategy to `strategy`.
    predict(block)   is called after `observe` of all infosets, from the deepest infosets up. It reads the predicted
                     utilities of the next iteration from `block.utility`: the last gradient, propagated up the tree
                     with the next strategies of the infosets below (Farina et al. 2019, equation 17). It writes the
                     next strategy to `strategy`, and the value of this strategy under the prediction to `value`.
    resume(block)    is called when a solver continues from a given strategy, as after a restart. It reads this strategy
                     from `strategy`, and sets `action_state` and `infoset_state` so that the minimizer plays it. It
                     keeps the scale of steps that the minimizer has learned. It neither reads `utility` nor writes
                     `strategy` and `value`.

`block.parameters` has the numbers of the iteration, from `RegretMinimizer.parameters`.

The library's kernels are named after their role and the rule, such as `observe_hedge`, `predict_oftrl` and
`resume_regret_matching`. Kernels that observe and are known by the rule's name alone keep it: `regret_matching`.
"""

import abc
import dataclasses
from typing import Literal, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.schedules import NumberOrSchedule, evaluated

# The regrets with which a warm start from a policy begins. "substitute": the regrets of iterations in which all players
# played the policy. "proportional": regrets that make the minimizer play the policy. See `cfr.substitute_regrets`.
WarmForm: TypeAlias = Literal["substitute", "proportional"]

# Two actions are tied if their counterfactual utilities differ by at most this fraction of the largest utility that the
# infoset can have. Without a tolerance, rounding would break ties between equal actions: a regret of 1e-17 instead of 0
# makes regret matching play a pure strategy instead of the uniform one. The tolerance is relative to the infoset: if
# chance leads to it once in 10^9 games, all its regrets are about 1e-9.
TIE = 1e-12
# The fraction for float32 numbers, whose relative precision is 1e-7.
_SINGLE_TIE = 1e-7


@dataclasses.dataclass(frozen=True)
class RegretMinimizer(abc.ABC):
  """Base class of regret minimizers. Only `observe` is required. A subclass may set a property as a class attribute."""

  @property
  @abc.abstractmethod
  def observe(self) -> StepKernel:
    """The kernel that reads the utilities of an iteration; see the docstring of the module."""

  @property
  def predict(self) -> StepKernel | None:
    """The kernel that reads the predicted utilities; None if `observe` chooses the next strategy."""
    return None

  @property
  def resume(self) -> StepKernel | None:
    """The kernel that makes the minimizer continue from a given strategy; None if it can't."""
    return None

  @property
  def action_lines(self) -> int:
    """The number of numbers that the minimizer keeps for each action: lines of `Block.action_state`."""
    return 1

  @property
  def infoset_lines(self) -> int:
    """The number of numbers that the minimizer keeps for each infoset: lines of `Block.infoset_state`."""
    return 0

  @property
  def keeps_regrets(self) -> bool:
    """True if the first line of `action_state` is the cumulative regret. By default, True if there is a line."""
    return self.action_lines > 0

  @property
  def visits_forced(self) -> bool:
    """True if the solver calls the kernels for infosets with a single action too.

    By default, True if the minimizer keeps numbers for infosets.
    """
    return self.infoset_lines > 0

  @property
  def warm_forms(self) -> tuple[WarmForm, ...]:
    """The forms of a warm start that the minimizer supports, the best first."""
    return () if self.resume is None else ("proportional",)

  @typed
  def warm_action_state(self, regrets: Float64s, iterations: int, game: CompiledGame) -> Float64s:
    """Returns the `action_state` of a warm start: the state after a number of iterations that all had these regrets.

    By default, it is the initial `action_state`. In the form "proportional", the solver then calls `resume`, which
    reads the scale of regrets from this state.

    Args:
      regrets: float64 (sequences,). The regrets of one iteration.
      iterations: the number of iterations.
      game: the game.

    Returns:
      Shape (action_lines, sequences).

    Raises:
      ArgumentError: `iterations` is not a positive integer.
    """
    arguments.positive_integer(iterations, "iterations")
    return np.zeros((self.action_lines, game.end))

  def resumable(self) -> "RegretMinimizer":
    """Returns a minimizer of the same rule that can continue from a given strategy; by default, itself.

    Raises:
      RestartError: the rule can't continue from a given strategy.
    """
    resumption(self)
    return self

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns the numbers that the kernels read in each iteration, `Block.parameters`.

    The first number of each iteration is `relative_tie(game)`; see `blocks.tolerance`.

    Args:
      iterations: int64 (iterations,). The numbers of the iterations, from 1.
      game: the game.

    Returns:
      float64 (iterations, numbers).
    """
    return parameter_rows(iterations, game)

  @typed
  def initial_infoset_state(self, game: CompiledGame) -> Float64s:
    """Returns the `infoset_state` before the first iteration, shape (infoset_lines, infosets of all players)."""
    return np.zeros((self.infoset_lines, game.num_infosets))


def parameter_rows(
  iterations: Int64s, game: CompiledGame, *columns: NumberOrSchedule | Float64s
) -> Float64s:
  """Returns `Block.parameters` of each iteration: the tie tolerance, followed by the given columns.

  Args:
    iterations: int64 (iterations,). The numbers of the iterations, from 1.
    game: the game.
    *columns: for each column, a number, a schedule, or an array of shape (iterations,).

  Returns:
    float64 (iterations, 1 + columns).
  """
  result = np.empty((len(iterations), 1 + len(columns)))
  for index, column in enumerate((relative_tie(game), *columns)):
    result[:, index] = column if isinstance(column, np.ndarray) else evaluated(column, iterations)
  return result


def resumption(minimizer: RegretMinimizer) -> StepKernel:
  """Returns a minimizer's kernel `resume`.

  Raises:
    RestartError: the minimizer has no such kernel.
  """
  if minimizer.resume is None:
    raise errors.RestartError(
      f"{type(minimizer).__name__} can't go on from a given strategy, so no solver with it can be restarted. Give it a "
      "kernel `resume`, see spiel_cfr.regret_minimizers.regret_minimizer, or use a solver with another minimizer."
    )
  return minimizer.resume


def relative_tie(game: CompiledGame) -> float:
  """Returns the tie tolerance in a game's precision, relative to the largest utility of an infoset."""
  return TIE if game.dtype == np.float64 else _SINGLE_TIE


def tie_tolerances(game: CompiledGame) -> Float64s:
  """Returns the tie tolerance of each infoset, in the unit of utilities, shape (infosets,)."""
  # `scale` has the upper 16 bits of a double.
  scale_bits = game.scale[: game.num_infosets].astype(np.uint64) << np.uint64(48)
  return relative_tie(game) * scale_bits.view(np.float64)
