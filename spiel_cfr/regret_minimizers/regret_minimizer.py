"""What a local regret minimizer is.

A regret minimizer decides what one infoset does. It sees the infoset's counterfactual utilities (the utility of each
action, weighted by the probability that chance and the other players bring the infoset about) and chooses the next
strategy there. Everything else, trees, payoffs, averages, belongs to the solver. Utilities are maximized.

A minimizer is one or two block kernels (`games.sequence_form.blocks` is their contract), and a few numbers an
iteration.

    observe(block)

is given in `block.utility` the counterfactual utilities under the strategies just played. It must leave in
`block.value` the value of each infoset under the strategy just played, the inner product of the two. It updates `state`
and `local`, and writes the next strategy into `strategy`, unless there is a

    predict(block)

which is called when every infoset has observed, deepest infosets first, with the utilities that are predicted for the
next iteration: the last gradient carried up with the strategies that `predict` has chosen below (Farina et al. 2019,
equation 17). It chooses the next strategy, and leaves its value under the prediction in `value`.

`block.parameters` is this iteration's row of what `RegretMinimizer.parameters` returns.

A minimizer that can go on from a strategy that somebody else has chosen, as restarts want it to, has one more:

    resume(block)

finds in `strategy` what is to be played next, and in `state` and `local` what it has kept so far. It brings these to
where it would have chosen that strategy itself, with what they have learned about scales: how large steps should be. It
may neither read `utility` nor write to `strategy` and `value`; `block.parameters` are those of the last iteration.

How a minimizer starts warm, from a policy that counts for iterations that it never did, is said by `warm_forms`, in
which it may do that, the best first, and for each of these by a method: `repeated` is where it would be if it had met
the same regrets T times ("substitute"); `scaled` is a state from which `resume` takes its scale ("proportional").
"""

import abc
import dataclasses
from typing import Literal, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.kernels import Kernel
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# What a warm start makes of a policy, see `cfr.substitute_regrets`: the regrets of having met its utilities for some
# time, or state with which it goes on being played.
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
  """The contract. Subclasses name their kernels and how much they keep.

  Attributes:
    observe: see the module's docstring.
    predict: see there; None where `observe` chooses the next strategy itself.
    state_lines: how many numbers it keeps for each action of each infoset.
    local_lines: how many for each infoset.
  """

  @property
  @abc.abstractmethod
  def observe(self) -> Kernel:
    """The kernel that sees the utilities of an iteration; a plain class attribute will do."""

  @property
  def predict(self) -> Kernel | None:
    """The kernel that sees the utilities predicted for the next iteration, None for none."""
    return None

  @property
  def resume(self) -> Kernel | None:
    """The kernel that lets it go on from a given strategy, None if it can't."""
    return None

  @property
  def state_lines(self) -> int:
    """How many numbers it keeps for each action of each infoset."""
    return 1

  @property
  def local_lines(self) -> int:
    """How many numbers it keeps for each infoset."""
    return 0

  @property
  def visits_forced(self) -> bool:
    """Whether it sees infosets with one action too; by default, if it keeps numbers of infosets."""
    return self.local_lines > 0

  @property
  def warm_forms(self) -> tuple[WarmForm, ...]:
    """In which forms it can start warm, the best first."""
    return () if self.resume is None else ("proportional",)

  def resumable(self) -> "RegretMinimizer":
    """Returns the same minimizer with all that it takes to go on from a given strategy; itself, if that is nothing.

    Raises:
      RestartError: it can't.
    """
    resumption(self)
    return self

  def repeated(
    self, regrets: Float64s, iterations: int, game: CompiledGame
  ) -> tuple[Float64s, Float64s]:
    """Returns the state after iterations that all had the same regrets, and what is played next.

    Args:
      regrets: shape (sequences,).
      iterations: how many.
      game: the game.

    Returns:
      The state, shape (state_lines, sequences), and a behavioural form, shape (sequences,).

    Raises:
      ArgumentError: `iterations` is not a positive integer.
      WarmStartError: the minimizer has no such form.
    """
    raise errors.WarmStartError(f"{type(self).__name__} does not say what repeated regrets make.")

  def scaled(self, regrets: Float64s, iterations: int, game: CompiledGame) -> Float64s:
    """Returns a state from which `resume` takes what the scale of regrets is; by default, the first one.

    Args:
      regrets: what each of the iterations has added to the regrets, not negative, shape (sequences,).
      iterations: how many.
      game: the game.

    Returns:
      Shape (state_lines, sequences).

    Raises:
      ArgumentError: `iterations` is not a positive integer.
    """
    arguments.positive_integer(iterations, "iterations")
    return np.zeros((self.state_lines, game.end))

  def parameters(self, iterations: Int64s, game: CompiledGame) -> Float64s:
    """Returns what the kernels need to know at each of these iterations, shape (iterations, numbers).

    The first number is by convention `relative_tie(game)`, see `blocks.tolerance`.
    """
    return np.full((len(iterations), 1), relative_tie(game))

  def initial_local(self, game: CompiledGame) -> Float64s:
    """Returns the first `local`, shape (local_lines, infosets of all players)."""
    return np.zeros((self.local_lines, game.num_infosets))


def resumption(minimizer: RegretMinimizer) -> Kernel:
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


def warm_form(minimizer: RegretMinimizer, form: WarmForm | None) -> WarmForm:
  """Returns the form in which a minimizer is to start warm.

  Raises:
    WarmStartError: it can't, or not in that form.
  """
  forms, name = minimizer.warm_forms, type(minimizer).__name__
  if not forms:
    raise errors.WarmStartError(
      f"{name} has no way to start warm. Give it a kernel `resume` or `warm_forms`, see "
      "spiel_cfr.regret_minimizers.regret_minimizer, or "
      "take a solver with another minimizer, such as CFRSolver."
    )
  if form is not None and form not in forms:
    raise errors.WarmStartError(
      f"{name} can't start warm in the form {form!r}, which needs a state of cumulative regrets, but in "
      f"{' or '.join(map(repr, forms))}; form=None takes what suits it."
    )
  return forms[0] if form is None else form


def relative_tie(game: CompiledGame) -> float:
  """Returns which differences of utilities are rounding, relative to the largest of these at their infoset."""
  return TIE if game.dtype == np.float64 else _SINGLE_TIE


def tie_tolerances(game: CompiledGame) -> Float64s:
  """Returns below what differences of utilities are rounding, for each infoset; shape (infosets,)."""
  quarters = game.scale[: game.num_infosets].astype(np.uint64) << np.uint64(48)
  return relative_tie(game) * quarters.view(np.float64)
