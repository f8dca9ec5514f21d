"""RTCFR+: CFR+ whose last iterate converges, because rewards pull towards a reference that follows now and then.

With q the sequence form of a player's strategy and q_ref the reference, at every sequence

    utility - mu (q - q_ref)

takes the place of the utility. The perturbed game is strongly monotone, so that its iterates converge; its saddle point
is the proximal point of the reference, so that replacing q_ref by q every `period` iterations converges to a saddle
point of the game itself. Strategies tremble with a probability that halves each time, see
`regret_minimizers.trembling_matching`. No average is needed. Meng et al., "Reward transformation CFR+" (NeurIPS 2025);
the constants are those of their program.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from spiel_cfr._numba.arrays import require
from spiel_cfr._util import arguments
from spiel_cfr.first_order.first_order_solver import FirstOrderSolver
from spiel_cfr.first_order.responses import own_trees
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.regret_minimizer import TIE
from spiel_cfr.regret_minimizers.trembling_matching import NEXT, NOW, TOLERANCE, match_trembling

_FIRST_TREMBLES = 1e-10
# The kernel reads no numbers of infosets.
_NO_LOCAL = np.zeros((0, 0))


class RTCFRPlusSolver(FirstOrderSolver):
  """Reward transformation CFR+: the last iterate is the result, `current_policy` and `average_policy` are the same.

  Attributes:
    pull: mu, times the coupling, which is the scale of payoffs.
    period: how many iterations the reference stays.
  """

  state_names: ClassVar[tuple[str, ...]] = (
    *FirstOrderSolver.state_names,
    "_strategy",
    "_regrets",
    "_reference",
    "_trembles",
  )

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
    self._start()

  def _start(self) -> None:
    super()._start()
    self._strategy = forms.uniform(self.compiled_game)
    self._regrets = np.zeros((1, self.compiled_game.end))
    self._reference = self._point.copy()
    # The probability of playing at random.
    self._trembles = _FIRST_TREMBLES

  def _iterate(self) -> None:
    follows = (self.iteration + 1) % self.period == 0
    numbers = np.zeros(3)
    numbers[TOLERANCE], numbers[NOW] = TIE, self._trembles
    self._trembles *= 0.5 if follows else 1.0
    numbers[NEXT] = self._trembles
    pull = self.pull * self.coupling
    for player, tree in enumerate(self._trees):
      utility = self._gradients(self._point, [player])
      own = tree.own
      utility[own] = utility[own] - pull * self._point[own] + pull * self._reference[own]
      self._values[player] = tree.respond(
        match_trembling, utility, self._strategy, self._regrets, _NO_LOCAL, numbers, self._point
      )
    if follows:
      self._reference = self._point.copy()
    self.iteration += 1

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    require(0 <= state["_trembles"] < 1, "trembles are a probability")
    require(state["_regrets"] >= 0, "regrets are not negative")
    forms.check_behavioral_form(self.compiled_game, state["_strategy"])
