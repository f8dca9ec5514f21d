"""RTCFR+: CFR+ whose last iterate converges, because rewards pull towards a reference that follows now and then.

With q the sequence form of a player's strategy and q_ref the reference, at every sequence

    utility - mu (q - q_ref)

takes the place of the utility. The perturbed game is strongly monotone, so that its iterates converge; its saddle point
is the proximal point of the reference, so that replacing q_ref by q every `period` iterations converges to a saddle
point of the game itself. Strategies tremble with a probability that halves each time, see
`regret_minimizers.trembling_matching`. No average is needed. Meng et al., "Reward transformation CFR+" (NeurIPS 2025);
the constants are those of their program.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, require
from spiel_cfr._util import arguments
from spiel_cfr.cfr.gradient_solver import GradientSolver, GradientState
from spiel_cfr.first_order.responses import own_trees
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import TIE
from spiel_cfr.regret_minimizers.trembling_matching import NEXT, NOW, TOLERANCE, match_trembling

_FIRST_TREMBLES = 1e-10
# The kernel reads no numbers of infosets.
_NO_LOCAL = np.zeros((0, 0))


@dataclasses.dataclass(kw_only=True)
class RTCFRPlusState(GradientState):
  """All that changes from one iteration to the next. `point` is q.

  Attributes:
    strategy: q in behavioural form, shape (sequences,).
    regrets: of regret matching+, shape (1, sequences).
    reference: q_ref, shape (sequences,).
    trembles: the probability of playing at random.
  """

  strategy: Float64s
  regrets: Float64s
  reference: Float64s
  trembles: float = _FIRST_TREMBLES


class RTCFRPlusSolver(GradientSolver[RTCFRPlusState]):
  """Reward transformation CFR+: the last iterate is the result, `current_policy` and `average_policy` are the same.

  Attributes:
    pull: mu, times the coupling, which is the scale of payoffs.
    period: how many iterations the reference stays.
  """

  def __init__(self, game: AnyGame, pull: float = 1e-3, period: int = 100) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      pull: how strongly rewards pull towards the reference, in units of the coupling.
      period: after how many iterations the reference follows.

    Raises:
      ArgumentError: the pull is not positive, or the period is not a positive integer.
      GameError: see `compile_game`.
    """
    self.pull = arguments.positive_number(pull, "pull")
    self.period = arguments.positive_integer(period, "period")
    super().__init__(game)
    self._trees = own_trees(self.compiled_game)
    self.reset()

  def _first_state(self) -> RTCFRPlusState:
    return RTCFRPlusState(
      point=self._uniform(),
      strategy=forms.uniform(self.compiled_game),
      regrets=np.zeros((1, self.compiled_game.end)),
      reference=self._uniform(),
    )

  def _iterate(self, state: RTCFRPlusState) -> Float64s:
    follows = (state.iteration + 1) % self.period == 0
    numbers = np.zeros(3)
    numbers[TOLERANCE], numbers[NOW] = TIE, state.trembles
    state.trembles *= 0.5 if follows else 1.0
    numbers[NEXT] = state.trembles
    pull, point, values = self.pull * self.coupling, state.point, np.zeros(len(self._trees))
    for player, tree in enumerate(self._trees):
      utility, own = self._gradients(point, [player]), tree.own
      utility[own] = utility[own] - pull * point[own] + pull * state.reference[own]
      values[player] = tree.respond(
        match_trembling, utility, state.strategy, state.regrets, _NO_LOCAL, numbers, point
      )
    if follows:
      state.reference = point.copy()
    return values

  def cumulative_regrets(self) -> Float64s:
    """Returns those of the transformed rewards."""
    result: Float64s = self.state.regrets[0, self.compiled_game.all_action_sequences]
    return result

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(0 <= state["trembles"] < 1, "trembles are a probability")
    require(state["regrets"] >= 0, "regrets are not negative")
    forms.check_behavioral_form(self.compiled_game, state["strategy"])
