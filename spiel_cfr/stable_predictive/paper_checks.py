"""Checks of the paper's constant steps: stability (5), regret (6), and the constants of equations (14) to (16)."""

from collections.abc import Iterator

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.stable_predictive.paper_steps import PaperSteps
from spiel_cfr.stable_predictive.player_checks import (
  Inequality,
  Iteration,
  PlayerChecks,
  range_over_step,
)


class PaperChecks(PlayerChecks):
  """Checks of a player's updates with the paper's steps, or a multiple of them. All iterations have weight 1."""

  def __init__(
    self,
    game: CompiledGame,
    player: int,
    constants: PaperSteps,
    relative_rounding: float,
    alternating: bool,
  ) -> None:
    """Begins before the first iteration; `alternating` says whether players update in turn."""
    super().__init__(game, player, relative_rounding)
    self._constants, self._alternating = constants, alternating
    self._loss_norm = constants.loss_norm[self.infosets]
    self._last_gradient = np.zeros(game.end)
    # Sums of squared errors of predictions so far: at each infoset, and of the gradient.
    self._squared_errors = np.zeros(self.tree.num_infosets)
    self._squared_gradient_errors = 0.0

  def check(self, iteration: Iteration) -> Iterator[Inequality]:
    self.observe(1.0, iteration)
    yield from self._stability(iteration)
    for name, vector in (("losses", self.utility), ("predictions", self.predicted)):
      norms = self.norms(vector, 2)
      yield self.at_infosets(f"norm of the {name}", norms, self._loss_norm, self.rounding)
    yield from self._local_regrets(iteration.t)
    yield from self.regret_decomposition()
    yield from self._whole_regret(iteration.t)
    self.predict_next(1.0, iteration.new)
    self._last_gradient = self.gradient

  def _stability(self, iteration: Iteration) -> Iterator[Inequality]:
    """Yields the bounds on movements of local strategies (5), of strategies from an infoset on, and of the whole."""
    constants, infosets, tolerance = self._constants, self.infosets, self.relative_rounding
    old, new = iteration.old, iteration.new
    local = self.norms(new - old, 2)
    yield self.at_infosets("local stability (5)", local, constants.kappa[infosets], tolerance)
    distances, distance = self._sequence_form_distances(old, new)
    stability = constants.stability[infosets]
    yield self.at_infosets("stability from an infoset on", distances, stability, tolerance)
    kappa = constants.kappa_root
    yield self.at_root("stability of the whole strategy", distance, kappa, tolerance)

  def _local_regrets(self, t: int) -> Iterator[Inequality]:
    """Yields the bounds on errors of predictions (1) and on local regrets (6)."""
    constants, infosets = self._constants, self.infosets
    errors = self.norms(self.utility - self.predicted, 2)
    if t > 1:
      movement = float(constants.opponent_movement[self.player])
      limit = self._loss_norm * movement * constants.kappa_root
      yield self.at_infosets(
        "errors (1)", errors, limit, 2 * self.relative_rounding * self._loss_norm
      )
    self._squared_errors += errors**2
    steps = constants.steps[infosets]
    limit = (
      range_over_step(constants.regularizer_range[infosets], steps) + steps * self._squared_errors
    )
    yield self.at_infosets("local regret (6)", self.local_regret, limit, self.rounding)

  def _whole_regret(self, t: int) -> Iterator[Inequality]:
    """Yields the bounds on the regret (6) of the whole strategy, and on the change of the gradient."""
    constants = self._constants
    error = float(np.linalg.norm(self.gradient - self._last_gradient))
    self._squared_gradient_errors += error**2
    limit = constants.regret_bound(self.player, self._squared_gradient_errors)
    yield self.at_root("regret (6)", self.regret, limit, self.rounding)
    if t > 1 and not self._alternating:
      limit = float(constants.sensitivity[self.player]) * constants.kappa_root
      yield self.at_root("change of the gradient", error, limit, self.rounding)

  def _sequence_form_distances(self, old: Float64s, new: Float64s) -> tuple[Float64s, float]:
    """Returns the Euclidean distances of the sequence forms from each infoset on, and from the root on.

    The sequence form from an infoset on is x = (a_1 y_1, ..., a_n y_n), with a_i the probability of action i, and y_i
    = (1, the sequence form after action i). The pass computes |y|^2, |dy|^2 and <y, dy> of each sequence from the
    leaves up, d being the change. Thus small distances are not lost in differences of large norms.
    """
    squared_norm, squared_change, product = np.zeros((3, self.game.end))
    result = np.zeros(self.tree.num_infosets)
    for sequences, infosets, parents in reversed(self.groups):
      before, after = old[sequences], new[sequences]
      change = after - before
      y_y, y_dy, dy_dy = 1 + squared_norm[sequences], product[sequences], squared_change[sequences]
      distance = change**2 * y_y + 2 * change * after * y_dy + after**2 * dy_dy
      result[infosets] = np.sqrt(np.maximum(distance.sum(axis=0), 0))
      np.add.at(squared_norm, parents, (before**2 * y_y).sum(axis=0))
      np.add.at(squared_change, parents, distance.sum(axis=0))
      np.add.at(product, parents, (before * (change * y_y + after * y_dy)).sum(axis=0))
    return result, float(np.sqrt(max(squared_change[self.tree.root], 0)))
