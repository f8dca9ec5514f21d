"""Checks of adaptive steps, and of constant ones of which nothing is promised beforehand.

Numbers in names are those of docs/theory/stable_predictive.md. Steps, sums of errors and predictions are computed
anew from the strategies that were played; nothing is taken from the solver but these.
"""

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.stable_predictive.adaptive_steps import AdaptiveSteps, ConstantSteps
from spiel_cfr.stable_predictive.certificate_report import WorstCases
from spiel_cfr.stable_predictive.infoset_trees import depths, largest_sum
from spiel_cfr.stable_predictive.regret_decomposition import (
  Iteration,
  PlayerRun,
  StablePredictiveRun,
)


class LocalPlayer(PlayerRun):
  """One player's run with steps of `stable_predictive.adaptive_steps`.

  Attributes:
    local_bounds: what the regret of each infoset's minimizer can't exceed, given its errors so far.
    update_cost: what can be lost, at most, because this player's strategy is updated before another sees it.
  """

  def __init__(self, run: StablePredictiveRun, player: int) -> None:
    """Begins before the first iteration."""
    super().__init__(run, player)
    assert isinstance(run.constants, AdaptiveSteps | ConstantSteps)
    tree, constants = self.tree, run.constants
    # Of all infosets, and of the player's own.
    self._all, self.constants = constants, constants.at(self.own)
    self.loss_norm, self.ranges = self.constants.loss_norm, self.constants.regularizer_range
    self.local_bounds = np.zeros(tree.num_infosets)
    self.update_cost = 0.0
    self._terms = np.zeros(tree.num_infosets)
    self._squares = np.zeros(tree.num_infosets)
    self._seen = np.zeros(self.game.end)
    # Before the first iteration any step gives the uniform strategy; None is the longest.
    self._steps = self.constants.steps if isinstance(self.constants, ConstantSteps) else None

  def check(self, worst: WorstCases, iteration: Iteration) -> None:
    """Checks losses, errors, local regrets, and how far strategies move."""
    power, t = self.constants.power, iteration.t
    weight, next_weight = float(t) ** power, float(t + 1) ** power
    self.observe(weight, iteration.old, iteration.seen_sequence_form)
    # Rounding errors of utilities are in proportion to what they can be at most.
    bounds, tiny = self.loss_norm, worst.rounding * self.loss_norm
    for name, vector in (("losses", self.utility), ("predictions", self.predicted)):
      size = self.norms(vector, np.inf)
      worst.record(f"size of the {name} (D)", size, bounds, tiny, self.at_infoset)
    error = self.utility - self.predicted
    if t > 1:
      self._check_errors(worst, error, iteration.seen)
    self._seen = iteration.seen
    size = weight * self.dual_norms(error)
    self._check_regret(worst, t, size)
    self.check_regret_decomposition(worst)
    total, rounding = largest_sum(self.tree, self.local_bounds), worst.rounding * self.scale
    worst.record("regret <= sum of local ones", self.regret, total, rounding, self.at_player)
    last_utility, last_predicted = self.utility, self.predicted
    self.predict(weight, iteration.new)
    push = weight * (last_utility - last_predicted) + next_weight * self.predicted
    self._check_movement(worst, iteration, size, push)

  def dual_norms(self, vector: Float64s) -> Float64s:
    """|.| of each infoset's entries."""
    result = np.zeros(self.tree.num_infosets)
    for sequences, infosets, _ in self.blocks:
      rows = vector[sequences]
      if self.constants.regularizer == "entropy":
        result[infosets] = (rows.max(axis=0) - rows.min(axis=0)) / 2
      else:
        result[infosets] = np.linalg.norm(rows - rows.mean(axis=0), axis=0)
    return result

  def _check_errors(self, worst: WorstCases, error: Float64s, seen: Float64s) -> None:
    """(1), |e_j| <= D_j M: errors are small where those who matter have hardly moved."""
    movers = self.constants.movers(self.player, self.game.num_players)
    moved = sum(_movement(self.game.treeplexes[each], self._seen, seen) for each in movers)
    size, rounding = self.norms(error, np.inf), 2 * worst.rounding * self.loss_norm
    worst.record("errors (1)", size, moved * self.loss_norm, rounding, self.at_infoset)

  def _check_regret(self, worst: WorstCases, t: int, size: Float64s) -> None:
    """Local regrets against their bounds, (2), (i), (ii) and (iii)."""
    constants, steps = self.constants, self._steps
    tiny = worst.rounding * self.loss_norm * self.weights
    whole = constants.simplex_diameter * size
    self._terms += whole if steps is None else np.minimum(steps * size**2 / 2, whole)
    self.local_bounds = self._terms + (0.0 if steps is None else _ratio(self.ranges, steps))
    worst.record("local regret (2)", self.best_local, self.local_bounds, tiny, self.at_infoset)
    self._squares += size**2
    if not isinstance(constants, AdaptiveSteps) or not isinstance(self._all, AdaptiveSteps):
      return
    squared = constants.squared_errors(self._squares, t)
    limit = constants.regret_factor * np.sqrt(squared)
    worst.record("local regret (i)", self.best_local, limit, tiny, self.at_infoset)
    largest, settled = constants.largest_errors(t), self._all.settled_errors(self.game, t)
    worst.record("squared errors (ii)", squared, largest, 0.0, self.at_infoset)
    worst.record("squared errors (iii)", squared, settled[self.own], 0.0, self.at_infoset)

  def _next_steps(self, t: int) -> Float64s:
    constants = self.constants
    if isinstance(constants, ConstantSteps):
      return constants.steps
    return constants.steps_after(constants.squared_errors(self._squares, t))

  def _check_movement(
    self, worst: WorstCases, iteration: Iteration, size: Float64s, push: Float64s
  ) -> None:
    """(3) how far strategies move, and (4) what their moves are worth; then takes the next steps.

    Args:
      worst: where the checks are kept.
      iteration: what was played, and what is next.
      size: of the errors, times the iteration's weight.
      push: by how much what the strategies are best against changes.
    """
    following = self._next_steps(iteration.t)
    steps = following if self._steps is None else self._steps
    shrunk = np.log(np.divide(steps, following, out=np.ones(len(steps)), where=following > 0))
    limit = steps * self.dual_norms(push) + np.sqrt(self.ranges * np.maximum(shrunk, 0.0))
    # In the norm in which the regularizer is strongly convex.
    order = 1 if self.constants.regularizer == "entropy" else 2
    moved = self.norms(iteration.new - iteration.old, order)
    # The strategies are rounded, and so are the regrets that they come from.
    rounding = worst.rounding * (1 + steps * self.loss_norm * self.weights)
    worst.record("movement (3)", moved, limit, rounding, self.at_infoset)
    if self.run.prediction == "subtree":
      longer = _ratio(self.ranges, following) - _ratio(self.ranges, steps)
      self._check_gain(worst, iteration, longer + steps * size**2 / 4)
    self._steps = following

  def _check_gain(self, worst: WorstCases, iteration: Iteration, cost: Float64s) -> None:
    """(4): with the gradient it has just seen, an update loses no more than L (1/eta' - 1/eta) + eta |e|^2 / 4."""
    t, old, new = iteration[:3]
    weight, next_weight = float(t) ** self.constants.power, float(t + 1) ** self.constants.power
    cost = weight / next_weight * cost
    gain = np.zeros(self.tree.num_infosets)
    for sequences, infosets, _ in self.blocks:
      change = new[sequences] - old[sequences]
      gain[infosets] = (self.predicted[sequences] * change).sum(axis=0)
    rounding = worst.rounding * self.loss_norm * self.weights
    worst.record("loss of an update (4)", -weight * gain, cost, rounding, self.at_infoset)
    reach = np.zeros(self.game.end)
    reach[self.tree.root] = 1.0
    for sequences, infosets, parents in self.blocks:
      reach[sequences] = old[sequences] * reach[parents]
      self.update_cost += float(reach[parents] @ cost[infosets])


def _movement(tree: Treeplex, before: Float64s, after: Float64s) -> float:
  """M: the largest l1 movement of an infoset, summed over the levels of a player's decisions."""
  largest = np.zeros(tree.depth)
  level = depths(tree)
  for sequences, infosets in tree.blocks():
    moved = np.abs(after[sequences] - before[sequences]).sum(axis=0)
    np.maximum.at(largest, level[infosets], moved)
  return float(largest.sum())


def _ratio(ranges: Float64s, steps: Float64s) -> Float64s:
  """L / eta, 0 where there is nothing to lose."""
  return np.divide(ranges, steps, out=np.zeros(len(steps)), where=steps > 0)
