"""Checks of adaptive steps: the inequalities (1) to (4) and (i) to (iii) of docs/theory/stable_predictive.md."""

from collections.abc import Iterator

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.stable_predictive.adaptive_steps import AdaptiveSteps
from spiel_cfr.stable_predictive.player_checks import (
  Inequality,
  Iteration,
  PlayerChecks,
  range_over_step,
)
from spiel_cfr.stable_predictive.regret_composition import decision_depths, largest_plan_sum


class AdaptiveChecks(PlayerChecks):
  """Checks of a player's updates with adaptive steps.

  Attributes:
    regret_bounds: float64 (the player's infosets,). The bound (2) on the local regret of each infoset, given the errors
      of its predictions so far.
    update_cost: float. The bound on the losses so far by updates of this player before another player sees its new
      strategy.
  """

  def __init__(
    self, game: CompiledGame, player: int, constants: AdaptiveSteps, relative_rounding: float
  ) -> None:
    """Begins before the first iteration."""
    super().__init__(game, player, relative_rounding)
    self._constants = constants
    self._loss_norm = constants.loss_norm[self.infosets]
    self._ranges = constants.regularizer_range[self.infosets]
    self.regret_bounds = np.zeros(self.tree.num_infosets)
    self.update_cost = 0.0
    # Sums over iterations at each infoset: the minima in (2), and the squares of weighted errors, S.
    self._error_terms, self._squared_errors = np.zeros((2, self.tree.num_infosets))
    self._last_faced = np.zeros(game.end)
    # The steps of this iteration. None in the first iteration, where every step gives the uniform strategy.
    self._steps: Float64s | None = None

  def check(self, iteration: Iteration) -> Iterator[Inequality]:
    t, power = iteration.t, self._constants.power
    weight, next_weight = float(t) ** power, float(t + 1) ** power
    self.observe(weight, iteration)
    error = self.utility - self.predicted
    yield from self._utilities_and_errors(iteration, error)
    error_norms = weight * self._dual_norms(error)
    yield from self._local_regrets(t, error_norms)
    yield from self.regret_decomposition()
    total = largest_plan_sum(self.tree, self.regret_bounds)
    yield self.at_root("regret <= sum of local ones", self.regret, total, self.rounding)
    self.predict_next(weight, iteration.new)
    old_steps, new_steps = self._take_next_steps(t)
    # The change of the weighted utilities, predictions included, that strategies maximize.
    utility_change = weight * error + next_weight * self.predicted
    yield self._movement(iteration, utility_change, old_steps, new_steps)
    yield self._update_losses(iteration, error_norms, old_steps, new_steps)

  def _dual_norms(self, vector: Float64s) -> Float64s:
    """Returns the dual norm |.| of the entries of each infoset."""
    result = np.zeros(self.tree.num_infosets)
    for sequences, infosets, _ in self.groups:
      rows = vector[sequences]
      if self._constants.regularizer == "entropy":
        result[infosets] = (rows.max(axis=0) - rows.min(axis=0)) / 2
      else:
        result[infosets] = np.linalg.norm(rows - rows.mean(axis=0), axis=0)
    return result

  def _utilities_and_errors(self, iteration: Iteration, error: Float64s) -> Iterator[Inequality]:
    """Yields the bound D on utilities and predictions, and the bound (1) on errors by the opponents' movements."""
    # Rounding errors of utilities are in proportion to D.
    rounding = self.relative_rounding * self._loss_norm
    for name, vector in (("losses", self.utility), ("predictions", self.predicted)):
      size = self.norms(vector, np.inf)
      yield self.at_infosets(f"size of the {name} (D)", size, self._loss_norm, rounding)
    if iteration.t > 1:
      opponents = [tree for tree in self.game.treeplexes if tree is not self.tree]
      movement = sum(
        _movement_of_levels(tree, self._last_faced, iteration.faced) for tree in opponents
      )
      size = self.norms(error, np.inf)
      yield self.at_infosets("errors (1)", size, movement * self._loss_norm, 2 * rounding)
    self._last_faced = iteration.faced

  def _local_regrets(self, t: int, error_norms: Float64s) -> Iterator[Inequality]:
    """Yields the bounds (2), (i), (ii) and (iii) of local regrets.

    Args:
      t: the iteration.
      error_norms: float64 (the player's infosets,). The dual norms of the errors, times the weight of the iteration.
    """
    constants, infosets, steps = self._constants, self.infosets, self._steps
    rounding = self.relative_rounding * self._loss_norm * self.weights
    largest_terms = constants.simplex_diameter * error_norms
    if steps is None:
      self._error_terms += largest_terms
      self.regret_bounds = self._error_terms.copy()
    else:
      self._error_terms += np.minimum(steps * error_norms**2 / 2, largest_terms)
      self.regret_bounds = self._error_terms + range_over_step(self._ranges, steps)
    yield self.at_infosets("local regret (2)", self.local_regret, self.regret_bounds, rounding)
    self._squared_errors += error_norms**2
    totals = constants.error_totals(self._squared_errors, t, infosets)
    limit = constants.regret_factor[infosets] * np.sqrt(totals)
    yield self.at_infosets("local regret (i)", self.local_regret, limit, rounding)
    largest = constants.largest_error_totals(t)[infosets]
    settled = constants.settled_error_totals(t)[infosets]
    yield self.at_infosets("squared errors (ii)", totals, largest, 0.0)
    yield self.at_infosets("squared errors (iii)", totals, settled, 0.0)

  def _take_next_steps(self, t: int) -> tuple[Float64s, Float64s]:
    """Computes the steps of the next iteration; returns those of this iteration and of the next."""
    totals = self._constants.error_totals(self._squared_errors, t, self.infosets)
    new_steps = self._constants.steps_after(totals, self.infosets)
    old_steps = new_steps if self._steps is None else self._steps
    self._steps = new_steps
    return old_steps, new_steps

  def _movement(
    self, iteration: Iteration, utility_change: Float64s, old_steps: Float64s, new_steps: Float64s
  ) -> Inequality:
    """Returns the bound (3) on movements, in the norm in which the regularizer is strongly convex.

    Args:
      iteration: the iteration.
      utility_change: float64 (sequences,). The change of the linear function that strategies maximize.
      old_steps: float64 (the player's infosets,). The steps of this iteration.
      new_steps: float64 (the player's infosets,). The steps of the next iteration.
    """
    step_ratio = np.divide(old_steps, new_steps, out=np.ones(len(old_steps)), where=new_steps > 0)
    log_ratio = np.maximum(np.log(step_ratio), 0.0)
    limit = old_steps * self._dual_norms(utility_change) + np.sqrt(self._ranges * log_ratio)
    order = 1 if self._constants.regularizer == "entropy" else 2
    movement = self.norms(iteration.new - iteration.old, order)
    # Both strategies and regrets are rounded.
    rounding = self.relative_rounding * self._loss_norm * self.weights
    tolerance = self.relative_rounding + old_steps * rounding
    return self.at_infosets("movement (3)", movement, limit, tolerance)

  def _update_losses(
    self,
    iteration: Iteration,
    error_norms: Float64s,
    old_steps: Float64s,
    new_steps: Float64s,
  ) -> Inequality:
    """Returns the bound (4) on the loss of an update at each infoset, and adds it to `update_cost`.

    Against the player's last gradient, an update loses at most L (1/eta' - 1/eta) + eta |e|^2 / 4, with eta and
    eta' the steps of this iteration and of the next.

    Args:
      iteration: the iteration.
      error_norms: float64 (the player's infosets,). The dual norms of the errors, times the weight of the iteration.
      old_steps: float64 (the player's infosets,). The steps of this iteration.
      new_steps: float64 (the player's infosets,). The steps of the next iteration.
    """
    power, t = self._constants.power, iteration.t
    cost = range_over_step(self._ranges, new_steps) - range_over_step(self._ranges, old_steps)
    cost = cost + old_steps * error_norms**2 / 4
    weight = float(t) ** power
    cost *= weight / float(t + 1) ** power
    change = iteration.new - iteration.old
    gain, reach = np.zeros(self.tree.num_infosets), np.zeros(self.game.end)
    reach[self.tree.root] = 1.0
    for sequences, infosets, parents in self.groups:
      gain[infosets] = (self.predicted[sequences] * change[sequences]).sum(axis=0)
      reach[sequences] = iteration.old[sequences] * reach[parents]
      self.update_cost += float(reach[parents] @ cost[infosets])
    rounding = self.relative_rounding * self._loss_norm * self.weights
    return self.at_infosets("loss of an update (4)", -weight * gain, cost, rounding)


def _movement_of_levels(tree: Treeplex, before: Float64s, after: Float64s) -> float:
  """Returns a player's part of M in (1): the largest l1 movement of an infoset of each level, summed over levels."""
  largest = np.zeros(tree.depth)
  depths = decision_depths(tree)
  for sequences, infosets in tree.infoset_groups():
    movement = np.abs(after[sequences] - before[sequences]).sum(axis=0)
    np.maximum.at(largest, depths[infosets], movement)
  return float(largest.sum())
