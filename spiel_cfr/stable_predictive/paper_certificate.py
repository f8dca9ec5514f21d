"""Checks of the step sizes of Farina et al. (2019), equations (5), (6) and (14) to (16)."""

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.stable_predictive.certificate_report import WorstCases
from spiel_cfr.stable_predictive.paper_steps import PaperSteps
from spiel_cfr.stable_predictive.regret_decomposition import (
  Iteration,
  PlayerRun,
  StablePredictiveRun,
)


class PaperPlayer(PlayerRun):
  """One player's run with the paper's steps, or a multiple. All iterations weigh 1."""

  def __init__(self, run: StablePredictiveRun, player: int) -> None:
    """Begins before the first iteration."""
    super().__init__(run, player)
    self._predicted_gradient = np.zeros(self.game.end)
    self._errors = np.zeros(self.tree.num_infosets)
    self._gradient_errors = 0.0
    self.first_gradient = 0.0

  def check(self, worst: WorstCases, iteration: Iteration) -> None:
    """Checks stability, local regret, and with the prediction from the subtree the regret of the whole strategy."""
    constants = self.run.constants
    assert isinstance(constants, PaperSteps)
    t, old, new = iteration[:3]
    self.observe(1.0, old, iteration.seen_sequence_form)
    exact, rounding = worst.rounding, worst.rounding * self.scale
    gradient, utility = self.gradient, self.utility
    kappa, gamma = constants.kappa[self.own], constants.gamma[self.own]
    loss_norm, steps = constants.loss_norm[self.own], constants.steps[self.own]
    worst.record("local stability (5)", self.norms(new - old, 2), kappa, exact, self.at_infoset)
    moved, moved_root = self.movement(old, new)
    worst.record("stability from an infoset on", moved, gamma, exact, self.at_infoset)
    whole = constants.kappa_root
    worst.record("stability of the whole strategy", moved_root, whole, exact, self.at_player)
    for name, vector in (("losses", utility), ("predictions", self.predicted)):
      size = self.norms(vector, 2)
      worst.record(f"norm of the {name}", size, loss_norm, rounding, self.at_infoset)

    self._errors += self.norms(utility - self.predicted, 2) ** 2
    ranges = constants.regularizer_range[self.own]
    first = np.divide(ranges, steps, out=np.zeros(len(steps)), where=steps > 0)
    bound = first + steps * self._errors
    worst.record("local regret (6)", self.best_local, bound, rounding, self.at_infoset)
    self.check_regret_decomposition(worst)

    # The whole strategy's regret, and how fast gradients change.
    error = float(np.linalg.norm(gradient - self._predicted_gradient))
    self._gradient_errors += error**2
    if t == 1:
      self.first_gradient = error
    if self.run.prediction == "subtree":
      total = constants.regret_bound(self.player, self._gradient_errors)
      worst.record("regret (6)", self.regret, total, rounding, self.at_player)
    if t > 1 and not self.run.alternating_updates:
      change = float(constants.sensitivity[self.player]) * constants.kappa_root
      worst.record("change of the gradient", error, change, rounding, self.at_player)
    self.predict(1.0, new)
    self._predicted_gradient = gradient

  def movement(self, old: Float64s, new: Float64s) -> tuple[Float64s, float]:
    """Euclidean distance of the sequence-form strategies from each infoset on, and from the root.

    With x = (a_1 y_1, ..., a_n y_n), y_i = (1, what follows action i), it keeps |y|^2, |dy|^2 and <y, dy>, so that
    small distances are not lost in differences of norms.
    """
    tree = self.tree
    squared, moved, product = np.zeros((3, self.game.end))
    result = np.zeros(tree.num_infosets)
    for sequences, infosets, parents in reversed(self.blocks):
      before, after = old[sequences], new[sequences]
      change = after - before
      norm = 1 + squared[sequences]
      distance = (
        change**2 * norm + 2 * change * after * product[sequences] + after**2 * moved[sequences]
      )
      result[infosets] = np.sqrt(np.maximum(distance.sum(axis=0), 0))
      np.add.at(squared, parents, (before**2 * norm).sum(axis=0))
      np.add.at(moved, parents, distance.sum(axis=0))
      np.add.at(
        product, parents, (before * (change * norm + after * product[sequences])).sum(axis=0)
      )
    return result, float(np.sqrt(max(moved[tree.root], 0)))


def paper_guarantee(run: StablePredictiveRun, players: list[PaperPlayer]) -> tuple[float, float]:
  """Bounds the gap after the iterations that were done, and after any number of them."""
  constants, t = run.constants, run.iteration
  assert isinstance(constants, PaperSteps)
  changes = (constants.sensitivity * constants.kappa_root) ** 2
  regrets = [
    constants.regret_bound(player.player, player.first_gradient**2 + (t - 1) * float(change))
    for player, change in zip(players, changes, strict=True)
  ]
  floor = constants.kappa_root * float(constants.beta @ changes)
  return sum(regrets) / t, floor
