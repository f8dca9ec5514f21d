"""Reward transformation CFR+ (RTCFR+): CFR+ with a pull towards a reference strategy; the last iterate converges.

With q the sequence form of a player's strategy and q_ref that of the reference, the utility of every sequence becomes

    utility - mu (q - q_ref)

The transformed game is strongly monotone: it has a single saddle point, and the iterates converge to it without an
average. Every `period` iterations, q becomes the new reference. These are steps of the proximal point method, so the
references converge to a saddle point of the original game.

Strategies tremble with a probability that halves with each new reference; see `regret_minimizers.trembling_matching`.
Meng et al., "Reward transformation CFR+" (NeurIPS 2025); the constants are those of their program.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.gradient_solver import GradientSolver, GradientState
from spiel_cfr.first_order.player_trees import player_trees
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import TIE
from spiel_cfr.regret_minimizers.trembling_matching import (
  NEXT_TREMBLE,
  TREMBLE,
  observe_trembling,
)

_FIRST_TREMBLES = 1e-10
# The kernel does not read `infoset_state`.
_NO_INFOSET_STATE = np.zeros((0, 0))


@dataclasses.dataclass(kw_only=True)
class RTCFRPlusState(GradientState):
  """The state of RTCFR+: `point` is q.

  Attributes:
    strategy: float64 (sequences,). The current strategy in behavioral form.
    regrets: float64 (1, sequences). The cumulative regrets of regret matching+.
    reference: float64 (sequences,). The reference strategy in sequence form, q_ref.
    trembles: float. The probability with which an infoset plays at random.
  """

  strategy: Float64s
  regrets: Float64s
  reference: Float64s
  trembles: float = _FIRST_TREMBLES


class RTCFRPlusSolver(GradientSolver[RTCFRPlusState]):
  """Reward transformation CFR+. The last iterate is the result: `current_policy` and `average_policy` are equal.

  Attributes:
    pull: float. mu in units of the coupling, the scale of payoffs.
    period: int. The number of iterations from one reference to the next.
  """

  @typed
  def __init__(self, game: AnyGame, pull: float = 1e-3, period: int = 100) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or an argument of `compile_game`.
      pull: the strength mu of the pull towards the reference, in units of the coupling.
      period: the number of iterations after which the current strategy becomes the reference.

    Raises:
      ArgumentError: the pull is not positive, or the period is not a positive integer.
      GameError: see `compile_game`.
    """
    self.pull = arguments.positive_number(pull, "pull")
    self.period = arguments.positive_integer(period, "period")
    super().__init__(game)
    self._trees = player_trees(self.compiled_game)
    self.reset()

  def _first_state(self) -> RTCFRPlusState:
    return RTCFRPlusState(
      point=self._uniform(),
      strategy=forms.uniform(self.compiled_game),
      regrets=np.zeros((1, self.compiled_game.end)),
      reference=self._uniform(),
    )

  def _iterate(self, state: RTCFRPlusState) -> Float64s:
    renews_reference = (state.iteration + 1) % self.period == 0
    parameters = np.zeros(3)
    parameters[0], parameters[TREMBLE] = TIE, state.trembles
    state.trembles *= 0.5 if renews_reference else 1.0
    parameters[NEXT_TREMBLE] = state.trembles
    pull, point, values = self.pull * self.coupling, state.point, np.zeros(len(self._trees))
    for player, tree in enumerate(self._trees):
      utility, sequences = self._gradients(point, [player]), tree.sequences
      utility[sequences] -= pull * point[sequences]
      utility[sequences] += pull * state.reference[sequences]
      values[player] = tree.run(
        observe_trembling,
        utility,
        state.strategy,
        state.regrets,
        _NO_INFOSET_STATE,
        parameters,
        point,
      )
    if renews_reference:
      state.reference = point.copy()
    return values

  def cumulative_regrets(self) -> Float64s:
    """Returns the cumulative regrets with transformed utilities."""
    result: Float64s = self.state.regrets[0, self.compiled_game.all_action_sequences]
    return result

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(0 <= state["trembles"] < 1, "trembles are a probability")
    require(state["regrets"] >= 0, "regrets are not negative")
    forms.check_behavioral_form(self.compiled_game, state["strategy"])
