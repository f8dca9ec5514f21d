"""Windows of pruning without compaction: NumPy over the whole game, without frozen actions."""

import numpy as np

from spiel_cfr import policies
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, gradients
from spiel_cfr.regret_minimizers.regret_minimizer import tie_tolerances


class SlowWindow:
  """CFR or CFR+ with alternating updates, from a state on.

  Attributes:
    strategy: of all infosets, shape (sequences,).
    regrets: R, likewise.
    values: Z, the weighted sum of each infoset's values, shape (infosets,).
    faced: F, the weighted sum of sequence forms as the other player faced them, shape (sequences,).
  """

  def __init__(self, game, state, plus):
    """Copies the state of a solver that notes values."""
    self.game, self.plus, self.iteration = game, plus, int(state.counts[0])
    self.strategy, self.faced = state.strategy.copy(), state.cumulative.copy()
    self.regrets = state.action_state[0].copy()
    self.values = state.infoset_state[-1][: game.num_infosets].copy()
    self._ties = tie_tolerances(game)

  def run(self, count, frozen, visited):
    """Does iterations in which `frozen` sequences stay 0, and strategies stay where infosets are not `visited`."""
    game = self.game
    for _ in range(count):
      self.iteration += 1
      weight = self.iteration if self.plus else 1
      for player, tree in enumerate(game.treeplexes):
        reach, utility = policies.sequence_form(game, self.strategy), np.zeros(game.end)
        game.payoff.gradient_into(player, reach, utility)
        for rows, infosets in reversed(list(tree.infoset_groups())):
          value = (self.strategy[rows] * utility[rows]).sum(axis=0)
          np.add.at(utility, tree.parent[infosets], value)
          self._match(
            rows,
            tree.first_infoset + np.arange(infosets.start, infosets.stop),
            utility[rows] - value,
            frozen,
            visited,
          )
          self.values[tree.first_infoset :][infosets] += weight * value
        if player == 0:
          reach = policies.sequence_form(game, self.strategy)
        self.faced[tree.root : tree.end] += weight * reach[tree.root : tree.end]

  def agree(self, state, frozen, visited):
    """Checks that a solver has the same numbers where it visits, and goes on from its own."""
    for tree in self.game.treeplexes:
      for rows, infosets in tree.infoset_groups():
        there = visited[tree.first_infoset :][infosets] & ~frozen[rows]
        at = rows[there]
        regrets = state.action_state[0]
        for own, found in ((self.regrets, regrets), (self.strategy, state.strategy)):
          np.testing.assert_allclose(own[at], found[at], atol=1e-9)
          own[at] = found[at]

  def _match(self, rows, infosets, gained, frozen, visited):
    live = ~frozen[rows] & visited[infosets]
    regrets = self.regrets[rows] + gained
    self.regrets[rows] = np.where(
      live, np.maximum(regrets, 0) if self.plus else regrets, self.regrets[rows]
    )
    played = np.where(live & (self.regrets[rows] > self._ties[infosets]), self.regrets[rows], 0.0)
    played = np.where(played.sum(axis=0) > 0, played, live)
    played = played / np.maximum(played.sum(axis=0), 1e-300)
    self.strategy[rows] = np.where(live.any(axis=0), played, self.strategy[rows])

  def bring_back(self, opened, frozen, ever):
    """Makes the history of what was frozen, and of all below, from a best response since the window opened, or ever."""
    game, per = self.game, self.iteration + 1 if self.plus else 1
    best = gradients(game, self.faced - (0.0 if ever else opened.faced))
    backward_pass(game, take_best, best)
    below = np.zeros(game.end, bool)
    for tree in game.treeplexes:
      for rows, infosets in tree.infoset_groups():
        own = tree.first_infoset + np.arange(infosets.start, infosets.stop)
        skipped = (frozen | below)[tree.parent[infosets]]
        below[rows] = skipped
        base = 0.0 if ever else opened.values[own]
        self.values[own] = np.where(skipped, base + best[rows].max(axis=0), self.values[own])
        against = self.values[own] - base
        made = (0.0 if ever else opened.regrets[rows]) + (best[rows] - against) / per
        self.regrets[rows] = np.where(
          frozen[rows] | skipped, np.maximum(made, 0) if self.plus else made, self.regrets[rows]
        )
