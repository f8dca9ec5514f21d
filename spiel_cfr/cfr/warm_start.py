"""Warm starts of full-width solvers from a policy.

Solvers have the method `WarmStartMixin.warm_start`. `plan` checks a policy and chooses the number of iterations that it
counts for; `write_warm_start` writes the new state. `cfr.substitute_regrets` computes the regrets.
`regret_minimizers.regret_minimizer` lists the methods that a minimizer needs.
"""

import abc
import math
from typing import Any, Protocol

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.iteration_schedule import IterationSchedule
from spiel_cfr.cfr.loops import FullWidthState, Loop
from spiel_cfr.cfr.loops.resume import resume_from
from spiel_cfr.cfr.substitute_regrets import (
  AMPLE,
  MOST,
  STEADY,
  PolicyValues,
  WarmStart,
  policy_values,
  proportional,
  substitute,
)
from spiel_cfr.cfr.synchronization import synchronized
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.policies.locked import locked_sequences
from spiel_cfr.regret_minimizers.regret_minimizer import (
  RegretMinimizer,
  WarmForm,
  tie_tolerances,
)


class FullWidth(Protocol):
  """The part of a full-width solver that a warm start depends on."""

  compiled_game: CompiledGame
  minimizer: RegretMinimizer
  alternating_updates: bool

  def complete_state(self) -> FullWidthState:
    """Returns the state with all arrays up to date."""


class WarmStartMixin(abc.ABC):
  """Mixin of solvers that can start from a policy: full-width solvers, and solvers with restarts."""

  @property
  @abc.abstractmethod
  def full_width_solver(self) -> FullWidth:
    """The full-width solver: this solver, or the one that it restarts."""

  @synchronized
  @abc.abstractmethod
  def begin_warm(self, values: PolicyValues, planned: WarmStart, keep_average: bool) -> None:
    """Begins anew with a planned warm start from a policy with these values."""

  @synchronized
  @typed
  def warm_start(
    self,
    policy: Any,
    iterations: int | None = None,
    form: WarmForm | None = None,
    keep_average: bool = True,
  ) -> WarmStart:
    """Begins anew from a policy, as if the players had played it for some iterations: see `cfr.warm_start.plan`."""
    values, planned = plan(self.full_width_solver, policy, iterations, form)
    with DeferredInterrupt(whole=True):
      self.begin_warm(values, planned, bool(keep_average))
    return planned


def read_policy(game: CompiledGame, policy: Any) -> Float64s:
  """Returns a policy in behavioral form, from an array in that form or from what `policies.from_policy` reads.

  Raises:
    PolicyError: `policy` is not a policy, or a policy for another game.
  """
  if isinstance(policy, np.ndarray):
    if policy.shape != (game.end,):
      raise errors.PolicyError(
        f"A policy of this game in behavioral form has the shape ({game.end},), not {policy.shape}."
      )
    try:
      forms.check_behavioral_form(game, policy)
    except (TypeError, ValueError) as error:
      raise errors.PolicyError(f"The array is not a policy in behavioral form: {error}.") from None
    return np.array(policy, np.float64)
  return open_spiel.from_policy(game, policy)


def plan(
  solver: FullWidth, policy: Any, iterations: int | None = None, form: WarmForm | None = None
) -> tuple[PolicyValues, WarmStart]:
  """Plans a warm start from a policy, as if the players had played it for some iterations.

  Brown and Sandholm, "Strategy-Based Warm Starting for Regret Minimization in Games" (2016); see
  docs/theory/rewriting_history.md.

  Args:
    solver: the solver, which stays as it is.
    policy: anything that `policies.from_policy` reads; or an array in behavioral form, as `average_probabilities`
      returns it.
    iterations: T, the number of iterations that the policy counts for. By default, about the number that a solver needs
      for a policy of this quality: 0.03 / c* for CFR with simultaneous updates; the square root of that number for all
      other solvers, whose NashConv falls about like 1 / t.
    form: "substitute" for regrets as if the players had faced the policy T times; "proportional" for regrets whose
      next strategy is the policy itself; None for the form that suits the minimizer.

  Returns:
    The values of the policy, and the planned warm start.

  Raises:
    PolicyError: the policy is for another game, or its numbers are not probabilities.
    WarmStartError: the minimizer can't start warm, or not in that form.
    ArgumentError: `iterations` is not an integer from 1 to a million, or `form` is unknown.
    NotFiniteError: the value of the policy is not finite.
  """
  game, minimizer = solver.compiled_game, solver.minimizer
  probabilities, state = read_policy(game, policy), solver.complete_state()
  locked = locked_sequences(game, state.locked)
  probabilities[locked] = state.strategy[locked]
  if form is not None:
    arguments.one_of(form, "form", ("substitute", "proportional"))
  form = _supported_form(minimizer, form)
  if iterations is not None:
    iterations = arguments.integer(iterations, "iterations", 1, MOST)
  values = policy_values(game, probabilities, forms.sequence_form(game, probabilities))
  if not math.isfinite(values.nash_conv):
    raise errors.NotFiniteError(
      f"The NashConv of this policy is {values.nash_conv}: payoffs are too large to be added up."
    )
  scale = values.least_scale(substitute)
  if iterations is None:
    plain_iterations = STEADY / scale
    is_plain = form == "substitute" and not solver.alternating_updates
    iterations = max(1, round(plain_iterations if is_plain else math.sqrt(plain_iterations)))
  if form == "proportional":
    # An iteration adds at most the best minus the worst value, which is a scale of 1.
    scale = min(AMPLE * values.least_scale(proportional), 1.0)
  return values, WarmStart(form, iterations, values.nash_conv, scale)


def _supported_form(minimizer: RegretMinimizer, form: WarmForm | None) -> WarmForm:
  """Returns the form of a warm start: `form`, or by default the first that the minimizer supports.

  Raises:
    WarmStartError: the minimizer can't start warm, or not in this form.
  """
  supported, name = minimizer.warm_forms, type(minimizer).__name__
  if not supported:
    problem = f"{name} can't start warm."
  elif form is not None and form not in supported:
    problem = f"{name} can't start warm in the form {form!r}, but in {supported}. Use form=None;"
  else:
    return form or supported[0]
  raise errors.WarmStartError(
    f"{problem} Give it a kernel `resume` or `warm_forms`, see spiel_cfr.regret_minimizers.regret_minimizer; or use a "
    "solver with another minimizer, such as CFRSolver."
  )


def write_warm_start(
  loop: Loop,
  schedule: IterationSchedule,
  minimizer: RegretMinimizer,
  values: PolicyValues,
  planned: WarmStart,
  keep_average: bool,
) -> None:
  """Writes the state of a planned warm start to the arrays of a new loop."""
  game, count, is_substitute = values.game, planned.iterations, planned.form == "substitute"
  weight = schedule.total_weight(count)
  parameters = schedule.minimizer_parameters(np.array([count]))[0]
  regrets, _ = values.regrets_at(substitute if is_substitute else proportional, planned.scale)
  action_state = minimizer.warm_action_state(regrets, count, game)
  loop.arrays.set_action_state(action_state)
  if is_substitute:
    cumulative = action_state[0]
    is_positive = cumulative > game.per_sequence(tie_tolerances(game))
    positive_regrets = np.where(is_positive, cumulative, 0.0)
    loop.arrays.set_strategy(forms.behavioral_form(game, positive_regrets))
  else:
    loop.arrays.set_strategy(values.probabilities)
    resume_from(game, loop, minimizer, values.sequence_form, parameters)
  loop.complete_arrays()
  loop.arrays.state.begin_warm(count, weight * values.sequence_form if keep_average else None)
