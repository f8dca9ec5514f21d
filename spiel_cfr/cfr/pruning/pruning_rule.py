"""Decisions of a pruned solver: the sequences to freeze, and the history of subtrees that return.

The docstring of `pruned` has the equations.
"""

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Bools, Float64s, aligned
from spiel_cfr.cfr.loops import FullWidthState
from spiel_cfr.cfr.pruning.compaction import CompactedGame, PrunableGame
from spiel_cfr.regret_minimizers.hedge import Hedge
from spiel_cfr.regret_minimizers.regret_matching import RegretMatching
from spiel_cfr.regret_minimizers.regret_minimizer import tie_tolerances
from spiel_cfr.regret_minimizers.value_sums import WithValueSums

# The weight of the other player's whole history in the forecast of its play.
_CAUTION = 1.0


class PruningRule:
  """The rule of a pruned solver.

  In all methods, `opened` is the state of the inner solver at the start of a window, and `state` is its present state.

  Attributes:
    game: the game that is pruned.
    forgets: whether the minimizer is regret matching+, which forgets negative regrets. A restored subtree then counts
      as having played a best response in all iterations; otherwise, in those of the window.
  """

  def __init__(self, game: PrunableGame, minimizer: WithValueSums) -> None:
    """Takes the game, and the minimizer of the inner solver."""
    self.game, self._minimizer = game, minimizer
    self.forgets = minimizer.minimizer == RegretMatching.plus()
    self._ties = tie_tolerances(game.game)

  def sequences_to_freeze(
    self, state: FullWidthState, opened: FullWidthState, length: int
  ) -> Bools:
    """Returns the topmost sequences to freeze for `length` iterations, a mask of shape (sequences,)."""
    game, unit = self.game, self._unit(state)
    regret = self._regrets_before_window(state, unit)
    growth = self._worst_growth(state, opened, length)
    end = _iteration(state) + length
    most = (self._largest_unplayed_regret(state, end) - self._ties)[game.infoset_of]
    stays_unplayed = (state.strategy == 0) & (regret + np.maximum(growth, 0.0) / unit < most)
    return game.topmost(stays_unplayed)

  def _regrets_before_window(self, state: FullWidthState, unit: float) -> AnyFloats:
    """Returns the regrets that the rule would restore if the window had no iterations, shape (sequences,)."""
    result: AnyFloats = state.action_state[0]
    if self.forgets:
      game, value_sums = self.game, state.infoset_state[-1]
      best_values = game.sequence_values(aligned(state.cumulative), best_response=True)
      result = (best_values - value_sums[game.infoset_of]) / unit
    return result

  def _worst_growth(self, state: FullWidthState, opened: FullWidthState, length: int) -> Float64s:
    """Forecasts how much the weighted regrets grow in the worst case, in a window of `length` iterations.

    Returns:
      float64 (sequences,). The value of a best response against the forecast of the other player's play, where negative
      payoffs count as 0; minus the infoset's weighted value in the last window, scaled to the length of this window.
    """
    game, faced = self.game, state.cumulative
    window_weight = float(self._weights(state, length).sum())
    # Factors that scale sums of the last window, and sums of all iterations, to the length of the window.
    of_last, of_all = window_weight / (faced[0] - opened.cumulative[0]), window_weight / faced[0]
    forecast = (of_last + _CAUTION * of_all) * faced - of_last * opened.cumulative
    growth = game.sequence_values(aligned(forecast), best_response=True, gains_only=True)
    growth -= of_last * (state.infoset_state[-1] - opened.infoset_state[-1])[game.infoset_of]
    return growth

  def _weights(self, state: FullWidthState, count: int) -> Float64s:
    """Returns the weights of the next `count` iterations, shape (count,)."""
    return self._minimizer.weights(_iteration(state) + 1 + np.arange(count))

  def _unit(self, state: FullWidthState) -> float:
    """Returns the factor from regrets to weighted regrets: 1; in CFR+, the averaging weight of the next iteration."""
    return float(self._weights(state, 1)[0]) if self.forgets else 1.0

  def _largest_unplayed_regret(self, state: FullWidthState, iteration: int) -> Float64s:
    """Returns the largest regret with which an action is not played at an iteration, shape (infosets,)."""
    game, minimizer = self.game, self._minimizer.minimizer
    result = np.zeros(len(self._ties))
    if isinstance(minimizer, Hedge):
      for group in game.groups:
        regrets = group.of(state.action_state[0])
        result[group.infosets] = regrets.max(axis=0)
      result -= minimizer.gap(iteration, game.game)
    return result

  def restore_skipped(
    self,
    state: FullWidthState,
    opened: FullWidthState,
    frozen: Bools,
    compacted: CompactedGame,
  ) -> Bools:
    """Writes the history of skipped subtrees to `state`, by the equations of `pruned`.

    Args:
      state: the present state, as if its window ended now. The function completes it.
      opened: the state at the start of the window.
      frozen: bool (sequences,). The frozen sequences.
      compacted: the game of the window.

    Returns:
      The frozen actions that came back too late, a mask of shape (sequences,).
    """
    game, kept = self.game, self.game.kept(frozen)
    self.add_to_skipped_sums(compacted, state.strategy, opened.cumulative, state.cumulative)
    # `values` becomes C of each sequence, infoset by infoset from the deepest up.
    values = game.sequence_values(aligned(state.cumulative - opened.cumulative))
    regrets, value_sums = state.action_state[0], state.infoset_state[-1]
    sums_before = opened.infoset_state[-1].copy()
    if self.forgets:
      np.copyto(values, game.sequence_values(aligned(state.cumulative)), where=~kept)
      regrets[~kept] = 0.0
    for group in reversed(game.groups):
      infosets, is_skipped = group.infosets, ~kept[group.above]
      action_values, strategy = group.of(values), group.of(state.strategy)
      best = action_values.max(axis=0)
      if self.forgets:
        sums_before[infosets][is_skipped] = 0.0
      # Visited infosets have summed their values. All others have played a best response if they were skipped below a
      # frozen action, or else their present strategy.
      unvisited = np.where(is_skipped, best, (strategy * action_values).sum(axis=0))
      added_value = value_sums[infosets] - sums_before[infosets]
      value = np.where(compacted.remains[infosets], added_value, unvisited)
      value_sums[infosets] = sums_before[infosets] + value
      np.add.at(values, group.above, value)
      compared = np.where(is_skipped, value, value_sums[infosets]) if self.forgets else value
      regret, is_best = group.of(regrets), action_values == best
      added = (action_values - compared) / self._unit(state)
      np.add(regret, added, out=regret, where=~group.of(kept))
      np.copyto(strategy, is_best / is_best.sum(axis=0), where=is_skipped)
    most = (self._largest_unplayed_regret(state, _iteration(state)) + self._ties)[game.infoset_of]
    late: Bools = frozen & (regrets > most)
    if self.forgets:
      np.maximum(regrets, 0.0, out=regrets)
    return late

  def add_to_skipped_sums(
    self, compacted: CompactedGame, strategy: AnyFloats, opened: AnyFloats, sums: AnyFloats
  ) -> None:
    """Adds the play of a window to sums of sequence forms at the infosets that the window did not visit.

    Args:
      compacted: the game of the window.
      strategy: shape (sequences,). The strategies, which did not change at these infosets.
      opened: shape (sequences,). The sums at the start of the window.
      sums: shape (sequences,). The sums at its end, which this function completes.
    """
    for group in self.game.groups:
      reach_sums = sums[group.above] - opened[group.above]
      added = np.where(compacted.remains[group.infosets], 0.0, reach_sums)
      group_sums = group.of(sums)
      group_sums += added * group.of(strategy)
    decisions = self.game.game.decisions
    sums[decisions.forced] = sums[decisions.chosen]


def _iteration(state: FullWidthState) -> int:
  """Returns the number of iterations done."""
  return int(state.counts[0])
