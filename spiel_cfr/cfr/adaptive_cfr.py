"""Adaptive optimistic CFR: no horizon, no unit of payoffs, no tuning.

With a certified average it returns, for each player, the strategy that has done best against its best response so far,
and starts again from these whenever they have become five times as good. Restarts from averages are from Applegate et
al., "Faster First-Order Primal-Dual Methods for Linear Programming using Restarts and Sharpness" (2023), where they are
proved, for other methods, to turn the convergence of averages into a linear one.
"""

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, aligned_zeros, require
from spiel_cfr._util import arguments
from spiel_cfr._util.interrupt import DeferredInterrupt
from spiel_cfr.cfr.averaging import Averaged
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.cfr.solver import MOST_ITERATIONS
from spiel_cfr.cfr.substitute_regrets import Known, WarmStart
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.adaptive_mirror_descent import (
  AdaptiveOptimisticDescent,
  SafeguardedDescent,
)

Average: TypeAlias = Literal["power", "certified"]

# Candidates for the certified strategies are looked at whenever there have been this many times as many iterations.
_GROWTH = 1.1
_FIRST_CHECK = 4
# What fraction of the NashConv at the last restart the certified strategies must have for another.
_IMPROVEMENT = 0.2


class AdaptiveOptimisticCFRSolver(FullWidthSolver):
  """CFR with adaptive optimistic mirror descent at every infoset: see `regret_minimizers.adaptive_mirror_descent`.

  Updates alternate. Every player but the last averages the strategy to which it has just updated, the one that the
  next player is about to face; the last one averages the strategy that the others have just faced.
  """

  state_names = (
    *FullWidthSolver.state_names,
    "_restart_nash_conv",
    "_next_check",
    "_best",
    "_best_scores",
  )

  def __init__(
    self,
    game: AnyGame,
    step: float = 0.25,
    prediction: float = 0.2,
    forgetting: float = 1.5,
    forgetting_offset: float = 2.0,
    gamma: float = 2.0,
    average: Average = "power",
    safeguard: float | None = None,
  ) -> None:
    """Makes the solver.

    Args:
      game: a compiled game, or what `compile_game` takes.
      step: the factor on all steps.
      prediction: how much of a step the prediction moves.
      forgetting: of early errors; errors of before iteration t are multiplied by
        p / (p + forgetting_offset), p = (t - 1)^forgetting.
      forgetting_offset: likewise; 0 forgets nothing.
      gamma: iteration t weighs t^gamma in the average, if that is "power".
      average: "power", or "certified": the strategies with the smallest NashConv, as best responses certify it, among
        averages (with weights 1, 2, 3, ... since the last restart) and current strategies. They are looked for every
        time that iterations have become a tenth more, and when they are asked for; only what is found in the first way
        is kept, so that asking changes nothing. When their NashConv is a fifth of
        that at the last restart, there is another one, from them.
      safeguard: None, or a limit of at least 1: infosets whose regret passes the limit times the bound of regret
        matching are handed to regret matching until the next restart, which bounds the NashConv in the worst case.

    Raises:
      ArgumentError: one of the numbers is negative or not finite, the step is 0, the safeguard is less than 1, or there
        is no such average.
      GameError: see `compile_game`.
    """
    arguments.one_of(average, "average", get_args(Average))
    self._certifies = average == "certified"
    compiled = compile_game(game)
    after = tuple(player < compiled.num_players - 1 for player in range(compiled.num_players))
    averaged: tuple[Averaged, ...] = tuple("after" if is_after else "before" for is_after in after)
    constants = (step, prediction, forgetting, forgetting_offset)
    self._safeguarded = safeguard is not None
    super().__init__(
      compiled,
      AdaptiveOptimisticDescent(*constants)
      if safeguard is None
      else SafeguardedDescent(*constants, safeguard, after),
      average_weights=1.0 if self._certifies else gamma,
      averaged=averaged,
    )

  def _start(self) -> None:
    super()._start()
    self._restart_nash_conv = math.inf
    self._next_check = _FIRST_CHECK
    self._best = aligned_zeros(self.compiled_game.end)
    self._best_scores = np.full(self.compiled_game.num_players, np.inf)

  def _start_warm(self, found: Known, chosen: WarmStart, keep_average: bool) -> None:
    super()._start_warm(found, chosen, keep_average)
    if not self._certifies:
      return
    self._best[:] = found.sequence_form
    self._best_scores = self._scores(found.sequence_form)
    self._restart_nash_conv = float(self._best_scores.sum())
    self._next_check = int(_GROWTH * self.iteration) + 1

  def _check_state(self, state: Mapping[str, Any]) -> None:
    super()._check_state(state)
    iteration, best = state["iteration"], state["_best"]
    next_check = state["_next_check"]
    require(0 < next_check <= 2 * MOST_ITERATIONS, "the next check is possible")
    require(not self._certifies or next_check > iteration, "the next check is not over")
    require((best >= 0) & (best <= 1 + 1e-6), "the certified strategies are probabilities")

  @property
  def restarts_itself(self) -> bool:
    """Whether it goes on from other strategies without being told to: with a certified average."""
    return self._certifies

  @property
  def is_plain(self) -> bool:
    """Whether it neither restarts itself nor has a safeguard."""
    return not self._certifies and not self._safeguarded

  def _advance(self, count: int) -> None:
    if not self._certifies:
      super()._advance(count)
      return
    end = self.iteration + count
    while True:
      super()._advance(max(0, min(end, self._next_check) - self.iteration))
      if self.iteration < self._next_check:
        return
      # Ctrl-C comes before all of it or after, and what it comes before is done when the run goes on.
      with DeferredInterrupt():
        self._best, self._best_scores = self._certified()
        self._restart_if_better()
        self._next_check = int(_GROWTH * self.iteration) + 1

  def _parameters(self, iterations: Int64s) -> Float64s:
    parameters = super()._parameters(iterations)
    if self._safeguarded:
      weights = self._average_weights(iterations)
      parameters[:, 4] = self._average_weights(iterations - 1) / weights
    return parameters

  def _parameter_rows(self, iterations: Int64s) -> Float64s:
    # What the safeguard is told depends on where the average begins, so that it can't be kept.
    return (
      self._checked_parameters(iterations)
      if self._safeguarded
      else super()._parameter_rows(iterations)
    )

  @property
  def num_handed_over(self) -> int:
    """How many infosets the safeguard has handed to regret matching."""
    return int(self._loop.local_line(2).sum()) if self._safeguarded else 0

  def average_probabilities(self) -> Float64s:
    """Returns the average policy in behavioural form, shape (sequences,); uniform where never played to."""
    return forms.behavioral_form(self.compiled_game, self.average_sequence_form())

  def average_sequence_form(self) -> Float64s:
    """Returns the average policy in sequence form, shape (sequences,), without a detour by infosets."""
    return self._certified()[0] if self._certifies else super().average_sequence_form()

  def _certified(self) -> tuple[Float64s, Float64s]:
    """Returns the best strategies so far, in sequence form, and how good each player's is."""
    best, best_scores = self._best.copy(), self._best_scores.copy()
    candidates = [self._loop.current_sequence_form()]
    if self._cumulative[0] > 0:
      candidates.append(super().average_sequence_form())
    for candidate in candidates:
      scores = self._scores(candidate)
      for player, treeplex in enumerate(self.compiled_game.treeplexes):
        if scores[player] < best_scores[player]:
          best_scores[player] = scores[player]
          best[treeplex.root : treeplex.end] = candidate[treeplex.root : treeplex.end]
    return best, best_scores

  def nash_conv(self) -> float:
    """Returns the NashConv of the average policy, without leaving the arrays."""
    if not self._certifies:
      return super().nash_conv()
    return evaluate.original_nash_conv(self.compiled_game, self.average_sequence_form())

  def _scores(self, sequence_form: Float64s) -> Float64s:
    """What is to be small, for each player's strategy; in all, NashConv."""
    game = self.compiled_game
    return evaluate.scores(game, evaluate.evaluate(game, sequence_form))

  def _restart_if_better(self) -> None:
    """Goes on from the best strategies, with a new average, if they have become so much better."""
    game = self.compiled_game
    if math.isinf(self._restart_nash_conv):
      uniform = forms.sequence_form(game, forms.uniform(game))
      self._restart_nash_conv = float(self._scores(uniform).sum())
    nash_conv = float(self._best_scores.sum())
    if nash_conv > _IMPROVEMENT * self._restart_nash_conv:
      return
    self._restart_nash_conv = nash_conv
    self.restart_from(self._best)
