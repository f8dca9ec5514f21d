"""Starts of a full-width solver from strategies, from a policy that counts for iterations, and from regrets."""

import abc
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr import warm_start
from spiel_cfr.cfr.iteration_schedule import IterationSchedule
from spiel_cfr.cfr.loops import FullWidthState, Loop
from spiel_cfr.cfr.loops.resume import resume_from
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.cfr.substitute_regrets import PolicyValues, WarmStart
from spiel_cfr.cfr.turns import in_turn
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import RegretMinimizer, WarmForm


class Run(NamedTuple):
  """A run of a full-width solver: the loop, which has the state, and the schedule of its iterations."""

  loop: Loop
  schedule: IterationSchedule


class FullWidthStarts(Solver):
  """Base class of the full-width solver: its starts elsewhere than from uniform strategies.

  Attributes:
    minimizer: the regret minimizer at every infoset.
    alternating_updates: whether a player sees the new strategies of the players before it.
  """

  minimizer: RegretMinimizer
  alternating_updates: bool
  _runtime: Run

  @property
  @abc.abstractmethod
  def state(self) -> FullWidthState:
    """The state of the solver."""

  @in_turn
  def init_from_strategy(self, sequence_form: Float64s) -> None:
    """Continues from other strategies. The average begins anew; `iteration` goes on.

    Args:
      sequence_form: the strategies, shape (sequences,). An infoset that its owner never reaches keeps its strategy.

    Raises:
      RestartError: the minimizer can't go on from a strategy.
      PolicyError: the array has another shape.
    """
    state, (loop, schedule) = self.gathered_state(), self._runtime
    parameters = schedule.parameters(np.array([max(1, self.iteration)]))[0]
    resume_from(self.compiled_game, loop, self.minimizer, sequence_form, parameters)
    state.begin_average()

  @property
  def warm_iterations(self) -> int:
    """The number of iterations that the policy of a warm start counts for; 0 without a warm start."""
    return self.state.warm_iterations

  @in_turn
  @typed
  def warm_start(
    self,
    policy: Any,
    iterations: int | None = None,
    form: WarmForm | None = None,
    keep_average: bool = True,
  ) -> WarmStart:
    """Begins anew from a policy, as if the players had played it for some iterations: see `cfr.warm_start.plan`."""
    found, chosen = warm_start.plan(self, policy, iterations, form)
    with DeferredInterrupt(whole=True):
      self.begin_warm(found, chosen, bool(keep_average))
    return chosen

  @in_turn
  def begin_warm(self, found: PolicyValues, chosen: WarmStart, keep_average: bool) -> None:
    """Begins anew as `cfr.warm_start.plan` has planned it."""
    self.reset()
    warm_start.begin_from(*self._runtime, self.minimizer, found, chosen, keep_average)
    self._loads += 1

  @in_turn
  def begin_with_regrets(self, regrets: Float64s, sequence_form: Float64s, iterations: int) -> None:
    """Begins regret matching anew, as after iterations that led to these regrets and this average.

    Args:
      regrets: shape (sequences,). Cumulative regrets.
      sequence_form: shape (sequences,). The average policy in sequence form.
      iterations: the number of iterations that both count for.

    Raises:
      PolicyError: an array has another shape.
      ArgumentError: `iterations` is no positive integer.
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
