"""Extensive-form regret minimization (EFR): a solver that minimizes the regrets of a set of deviations.

A deviation is a way to depart from a mediator's recommendations. What the deviating player knows of earlier
recommendations is its memory, see `deviations`. At every infoset, regret matching plays a fixed point of the
deviations. Each deviation is weighted by the probability of its memory (time selection). In every game, the mixture of
all iterations converges to a correlated equilibrium, whose kind depends on the set; docs/n_players.md lists the kinds.
With blind counterfactual deviations, EFR is CFR. Source: Morrill et al., "Efficient Deviation Types and Learning for
Hindsight Rationality in Extensive-Form Games" (2021).
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.cfr.gradient_solver import AveragedState, GradientSolver
from spiel_cfr.cfr.synchronization import synchronized
from spiel_cfr.correlated.deviations import full_name
from spiel_cfr.correlated.gaps import CorrelatedGap, measure
from spiel_cfr.correlated.regrets import DeviationRegrets
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expect
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms


@dataclasses.dataclass(kw_only=True)
class EFRState(AveragedState):
  """State of an `EFRSolver`.

  Attributes:
    strategy: float64 (sequences,). The current strategy in behavioral form.
    regrets: float64 (regrets,). The cumulative regrets, in the order of `deviations.Memories`.
    reach: float64 (nodes,). The probability of each node of `deviations.Memories`, a sequence or a list of recommended
      actions.
    play_values: float64 (players,). The expected payoff of each player, summed over iterations.
  """

  strategy: Float64s
  regrets: Float64s
  reach: Float64s
  play_values: Float64s


class EFRSolver(GradientSolver[EFRState]):
  """Extensive-form regret minimization with simultaneous updates, for any number of players and any payoffs.

      solver = EFRSolver("sheriff")
      solver.run(1000)
      solver.gap()  # extensive-form

  Attributes:
    deviations: str. The name of the set of deviations.
  """

  def __init__(self, game: AnyGame, deviations: str = "causal partial sequence") -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or an argument of `compile_game`.
      deviations: a name in `correlated.DEVIATIONS`, or OpenSpiel's abbreviation of it.

    Raises:
      ArgumentError: the name of the deviations is unknown.
      AbstractionError: infosets of the game are shared.
      GameTooLargeError: the set has more than 2^26 regrets.
      GameError: see `compile_game`.
    """
    self.deviations = full_name(deviations)
    super().__init__(game)
    self._table = DeviationRegrets(self.compiled_game, self.deviations)
    self.reset()

  def _first_state(self) -> EFRState:
    game, strategy = self.compiled_game, forms.uniform(self.compiled_game)
    reach = self._table.reach(strategy)
    return EFRState(
      point=reach[: game.end].copy(),
      cumulative=np.zeros(game.end),
      strategy=strategy,
      regrets=np.zeros(self._table.size),
      reach=reach,
      play_values=np.zeros(game.num_players),
    )

  def refresh(self) -> None:
    super().refresh()
    state = self.state
    state.reach[:] = self._table.reach(state.strategy)
    state.point[:] = state.reach[: len(state.point)]

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    forms.check_behavioral_form(self.compiled_game, state["strategy"])

  def _iterate(self, state: EFRState) -> Float64s:
    game = self.compiled_game
    utility = self._gradients(state.point)
    values = backward_pass(game, expect, utility, strategy=state.strategy)
    self._table.add(state.regrets, state.strategy, utility, state.reach)
    state.cumulative += state.point
    state.play_values += values
    self._table.update_strategy(state.regrets, state.strategy, state.reach)
    state.point[:] = state.reach[: len(state.point)]
    return values

  def current_probabilities(self) -> Float64s:
    """Returns the current policy in behavioral form, shape (sequences,)."""
    return self.state.strategy.copy()

  @synchronized
  def gap(self, kind: str | None = None) -> CorrelatedGap:
    """Returns the exact gap of the uniform mixture of all iterations from a correlated equilibrium.

    Args:
      kind: a name in `correlated.GAP_KINDS` that `correlated.MEASURABLE_GAPS` lists for the deviations; None for the
        first.

    Raises:
      ArgumentError: the deviations do not determine that gap, or the solver has done no iteration.
      AbstractionError: the game is a lossy abstraction.
    """
    state = self.state
    total = float(state.iteration)
    return measure(self, self._table, state.regrets, state.play_values, total, kind)
