"""Starts of a full-width solver from given strategies, from a policy (warm start), or from regrets."""

import abc
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr import warm_start
from spiel_cfr.cfr.iteration_schedule import IterationSchedule
from spiel_cfr.cfr.loops import FullWidthState, Loop
from spiel_cfr.cfr.loops.resume import resume_from
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.substitute_regrets import PolicyValues, WarmStart
from spiel_cfr.cfr.synchronization import synchronized
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, WarmForm


class Runtime(NamedTuple):
  """The state of a full-width solver, which is in `loop.arrays`, and the objects that iterate on it."""

  loop: Loop
  schedule: IterationSchedule


class WarmStartableSolver(Solver):
  """Base class of the full-width solver, with its starts from strategies other than uniform ones.

  Attributes:
    minimizer: the regret minimizer at every infoset.
    alternating_updates: whether a player sees the new strategies of the players before it.
  """

  minimizer: RegretMinimizer
  alternating_updates: bool
  _runtime: Runtime

  @property
  @abc.abstractmethod
  def state(self) -> FullWidthState:
    """The state of the solver, see `FullWidthState`."""

  @synchronized
  def init_from_strategy(self, sequence_form: Float64s) -> None:
    """Continues from the given strategies. The average begins anew; `iteration` continues to count.

    Args:
      sequence_form: the strategies, shape (sequences,). An infoset that its owner never reaches keeps its strategy.

    Raises:
      RestartError: the minimizer can't go on from a strategy.
      PolicyError: the array has another shape.
    """
    state, (loop, schedule) = self.complete_state(), self._runtime
    parameters = schedule.minimizer_parameters(np.array([max(1, self.iteration)]))[0]
    resume_from(self.compiled_game, loop, self.minimizer, sequence_form, parameters)
    state.begin_average()

  @property
  def warm_iterations(self) -> int:
    """The number of iterations that the policy of a warm start counts for; 0 without a warm start."""
    return self.state.warm_iterations

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
    values, planned = warm_start.plan(self, policy, iterations, form)
    with DeferredInterrupt(whole=True):
      self.begin_warm(values, planned, bool(keep_average))
    return planned

  @synchronized
  def begin_warm(self, values: PolicyValues, planned: WarmStart, keep_average: bool) -> None:
    """Begins anew with the warm start that `cfr.warm_start.plan` has planned."""
    self.reset()
    warm_start.write_warm_start(*self._runtime, self.minimizer, values, planned, keep_average)
    self._num_loads += 1

  @synchronized
  def begin_with_regrets(self, regrets: Float64s, sequence_form: Float64s, iterations: int) -> None:
    """Begins regret matching anew from the regrets and the average policy of earlier iterations.

    Args:
      regrets: shape (sequences,). Cumulative regrets.
      sequence_form: shape (sequences,). The average policy in sequence form.
      iterations: the number of iterations that both count for.

    Raises:
      PolicyError: an array has another shape.
      ArgumentError: `iterations` is not a positive integer.
    """
    iterations = arguments.positive_integer(iterations, "iterations")
    shape = (self.compiled_game.end,)
    if np.shape(regrets) != shape or np.shape(sequence_form) != shape:
      raise errors.PolicyError(
        f"Regrets and the sequence form of this game have the shape {shape}, not {np.shape(regrets)} and "
        f"{np.shape(sequence_form)}."
      )
    self.reset()
    arrays = self._runtime.loop.arrays
    arrays.set_action_state(regrets[None])
    arrays.set_strategy(forms.behavioral_form(self.compiled_game, np.maximum(regrets, 0.0)))
    self.state.begin_warm(iterations, iterations * sequence_form)
    self.refresh()
