"""What a local regret minimizer is: the one decision at the heart of every solver.

A regret minimizer decides what one infoset does. It sees the infoset's counterfactual utilities (the utility of each
action, weighted by the probability that chance and the other players bring the infoset about) and chooses the next
strategy there. Everything else, trees, payoffs, averages, belongs to the solver. Utilities are maximized.

A minimizer is a class that names one block kernel, and up to two more; `games.sequence_form.blocks` is the contract of
these, `regret_matching.regret_matching` the simplest of them.

    observe(block)   is given in `block.utility` the counterfactual utilities under the strategies just played. It
                     leaves in `block.value` what each infoset was worth, <strategy, utility>, updates `action_state`
                     and `infoset_state`, and writes the next strategy into `strategy`, unless there is a `predict`.
    predict(block)   is called when every infoset has observed, deepest infosets first, with the utilities predicted
                     for the next iteration: the last gradient, carried up with the strategies that `predict` has chosen
                     below (Farina et al. 2019, equation 17). It chooses the next strategy, and leaves in `value` what
                     that is worth under the prediction.
    resume(block)    finds in `strategy` what is to be played next, as after a restart, and in `action_state` and
                     `infoset_state` what has been kept so far. It brings these to where they would have led to that
                     strategy, with what they have learned about how large steps should be. It neither reads `utility`
                     nor writes to `strategy` and `value`.

`block.parameters` is this iteration's row of what `RegretMinimizer.parameters` returns.
"""

import abc
import dataclasses
from typing import Literal, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.regret_minimizers.schedules import Numbers, evaluated

# What a warm start makes of a policy: regrets of having met its utilities, or regrets that go on playing it; see
# `cfr.substitute_regrets`.
WarmForm: TypeAlias = Literal["substitute", "proportional"]

# Actions whose counterfactual utilities differ by this much of the largest that these can be at their infoset, or less,
# are tied. Where they are worth exactly the same, the order of summation would tell them apart: a regret of 1e-17
# instead of 0 makes regret matching play a pure strategy instead of the uniform one. What is large depends on the
# infoset: where chance brings one about once in 10^9 games, regrets of 1e-9 are all there is.
TIE = 1e-12
# The same where numbers are float32, whose last place is 1e-7.
_SINGLE_TIE = 1e-7


@dataclasses.dataclass(frozen=True)
class RegretMinimizer(abc.ABC):
  """The contract. Only `observe` must be there; plain class attributes will do for all properties."""

  @property
  @abc.abstractmethod
  def observe(self) -> StepKernel:
    """The kernel that sees the utilities of an iteration, see the module's docstring."""

  @property
  def predict(self) -> StepKernel | None:
    """The kernel that sees the utilities predicted for the next iteration; None where `observe` chooses it itself."""
    return None

  @property
  def resume(self) -> StepKernel | None:
    """The kernel that lets it go on from a given strategy, None if it can't."""
    return None

  @property
  def action_lines(self) -> int:
    """How many numbers it keeps for each action of each infoset."""
    return 1

  @property
  def infoset_lines(self) -> int:
    """How many numbers it keeps for each infoset."""
    return 0

  @property
  def keeps_regrets(self) -> bool:
    """Whether the first of the numbers of an action is its cumulative regret; by default, if it keeps any."""
    return self.action_lines > 0

  @property
  def visits_forced(self) -> bool:
    """Whether it sees infosets with one action too; by default, if it keeps numbers of infosets."""
    return self.infoset_lines > 0

  @property
  def warm_forms(self) -> tuple[WarmForm, ...]:
    """In which forms it can start warm, the best first."""
    return () if self.resume is None else ("proportional",)

  def warm_action_state(self, regrets: Float64s, iterations: int, game: CompiledGame) -> Float64s:
    """Returns the state after iterations that all had the same regrets; by default, the first state.

    Args:
      regrets: of each of the iterations, shape (sequences,).
      iterations: how many.
      game: the game.

    Returns:
      Shape (action_lines, sequences). In the form "proportional" `resume` follows, which takes from it how large
      regrets are.

    Raises:
      ArgumentError: `iterations` is not a positive integer.
    """
    arguments.positive_integer(iterations, "iterations")
    return np.zeros((self.action_lines, game.end))

  def resumable(self) -> "RegretMinimizer":
    """Returns the same minimizer with all that it takes to go on from a given strategy; itself, if that is nothing.

    Raises:
      RestartError: it can't.
    """
    resumption(self)
    return self

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns what the kernels need to know at each of these iterations: float64, shape (iterations, numbers).

    The first number is `relative_tie(game)`, see `blocks.tolerance`.
    """
    return parameter_rows(iterations, game)

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
    *columns: each a number, a schedule, or an array of shape (iterations,).

  Returns:
    Shape (iterations, 1 + columns).
  """
  result = np.empty((len(iterations), 1 + len(columns)))
  for place, column in enumerate((relative_tie(game), *columns)):
    result[:, place] = column if isinstance(column, np.ndarray) else evaluated(column, iterations)
  return result


def resumption(minimizer: RegretMinimizer) -> StepKernel:
  """Returns a minimizer's kernel `resume`.

  Raises:
    RestartError: it has none.
  """
  if minimizer.resume is None:
    raise errors.RestartError(
      f"{type(minimizer).__name__} can't go on from a given strategy, so no solver with it can be restarted. Give it a "
      "kernel `resume`, see spiel_cfr.regret_minimizers.regret_minimizer, or take a solver with another minimizer."
    )
  return minimizer.resume


def relative_tie(game: CompiledGame) -> float:
  """Returns which differences of utilities are rounding, relative to the largest of these at their infoset."""
  return TIE if game.dtype == np.float64 else _SINGLE_TIE


def tie_tolerances(game: CompiledGame) -> Float64s:
  """Returns below what differences of utilities are rounding, for each infoset; shape (infosets,)."""
  quarters = game.scale[: game.num_infosets].astype(np.uint64) << np.uint64(48)
  return relative_tie(game) * quarters.view(np.float64)
