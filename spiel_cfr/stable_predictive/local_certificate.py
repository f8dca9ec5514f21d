"""Checks of adaptive steps, and of constant ones whose theory looks at single infosets only.

Numbers in names are those of docs/stable_predictive.md. Steps, sums of errors and predictions are computed anew from
the strategies that were played; nothing is taken from the solver but these.
"""

import numpy as np

from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.stable_predictive.certificate_report import Ledger
from spiel_cfr.stable_predictive.infoset_trees import depths, largest_sum
from spiel_cfr.stable_predictive.local_steps import AdaptiveSteps, FixedSteps
from spiel_cfr.stable_predictive.run_regrets import PlayerRun, StablePredictiveRun


class LocalPlayer(PlayerRun):
  """One player's run with steps of `stable_predictive.local_steps`.

  Attributes:
    local_bounds: what the regret of each infoset's minimizer can't exceed, given its errors so far.
    update_cost: what can be lost, at most, because this player's strategy is updated before another sees it.
  """

  def __init__(self, run: StablePredictiveRun, player: int) -> None:
    """Begins before the first iteration."""
    super().__init__(run, player)
    assert isinstance(run.constants, AdaptiveSteps | FixedSteps)
    tree, constants = self.tree, run.constants
    self.constants = constants
    self.diameter = constants.diameter[self.own]
    self.local_bounds = np.zeros(tree.num_infosets)
    self.update_cost = 0.0
    self._terms = np.zeros(tree.num_infosets)
    self._squares = np.zeros(tree.num_infosets)
    self._seen = np.zeros(self.game.end)
    # Before the first iteration any step gives the uniform strategy; None is the longest.
    self._steps = constants.steps[self.own] if isinstance(constants, FixedSteps) else None

  def check(
    self,
    ledger: Ledger,
    t: int,
    old: Float64s,
    new: Float64s,
    seen: Float64s,
    seen_sequence_form: Float64s,
  ) -> None:
    """Checks iteration t.

    Args:
      ledger: where the checks are kept.
      t: the iteration.
      old: what is played in it.
      new: what that becomes.
      seen: what all players play when this one updates.
      seen_sequence_form: the same in sequence form.
    """
    constants = self.constants
    weight, next_weight = float(t) ** constants.power, float(t + 1) ** constants.power
    self.observe(weight, old, seen_sequence_form)
    bounds = constants.loss_norm[self.own]
    # Rounding errors of utilities are in proportion to what they can be at most.
    tiny = ledger.rounding * bounds
    for name, vector in (("losses", self.utility), ("predictions", self.predicted)):
      size = self.norms(vector, np.inf)
      ledger.record(f"size of the {name} (D)", t, size, bounds, tiny, self.at_infoset)
    error = self.utility - self.predicted
    if t > 1:
      self._check_change(ledger, t, error, seen)
    self._seen = seen
    size = weight * self.dual_norms(error)
    self._check_regret(ledger, t, size)
    self.check_points(ledger, t)
    total = largest_sum(self.tree, self.local_bounds)
    ledger.record(
      "regret <= sum of local ones",
      t,
      np.array([self.regret]),
      np.array([total]),
      ledger.rounding * self.scale,
      self.at_player,
    )
    last_utility, last_predicted = self.utility, self.predicted
    self.predict(weight, new)
    push = weight * (last_utility - last_predicted) + next_weight * self.predicted
    self._check_movement(ledger, t, size, push, old, new, weight / next_weight)

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

  def primal_norms(self, vector: Float64s) -> Float64s:
    """The norm in which the regularizer is strongly convex, of each infoset's entries."""
    return self.norms(vector, 1 if self.constants.regularizer == "entropy" else 2)

  def _check_change(self, ledger: Ledger, t: int, error: Float64s, seen: Float64s) -> None:
    """|e_j| <= D_j M: errors are small where those who matter have hardly moved."""
    constants = self.constants
    bounds = constants.loss_norm[self.own]
    moved = 0.0
    for player in constants.movers(self.player, self.game.num_players):
      own = _movement(self.game.treeplexes[player], self._seen, seen)
      moved += own
      if isinstance(constants, FixedSteps) and constants.kappa_root is not None:
        ledger.record(
          "movement over all levels",
          t,
          np.array([own]),
          np.array([constants.kappa_root]),
          ledger.rounding,
          lambda _, player=player: f"player {player}",  # type: ignore[misc]
        )
    size, rounding = self.norms(error, np.inf), 2 * ledger.rounding * bounds
    ledger.record("errors (1)", t, size, moved * bounds, rounding, self.at_infoset)

  def _check_regret(self, ledger: Ledger, t: int, size: Float64s) -> None:
    """Local regrets against their bounds, (2), (i), (ii) and (iii)."""
    constants, steps = self.constants, self._steps
    tiny = ledger.rounding * constants.loss_norm[self.own] * self.weights
    whole = constants.distance * size
    self._terms += whole if steps is None else np.minimum(steps * size**2 / 2, whole)
    self.local_bounds = self._terms + (0.0 if steps is None else _ratio(self.diameter, steps))
    ledger.record("local regret (2)", t, self.best_local, self.local_bounds, tiny, self.at_infoset)
    self._squares += size**2
    if not isinstance(constants, AdaptiveSteps):
      return
    squared = self._squared_errors(t)
    limit = constants.regret_factor[self.own] * np.sqrt(squared)
    ledger.record("local regret (i)", t, self.best_local, limit, tiny, self.at_infoset)
    for name, errors in (
      ("(ii)", constants.largest_errors(t)),
      ("(iii)", constants.settled_errors(self.game, t)),
    ):
      ledger.record(f"squared errors {name}", t, squared, errors[self.own], 0.0, self.at_infoset)

  def _squared_errors(self, t: int) -> Float64s:
    """V^t of the player's infosets."""
    assert isinstance(self.constants, AdaptiveSteps)
    squares = np.zeros(self.game.num_infosets)
    squares[self.own] = self._squares
    return self.constants.squared_errors(squares, t)[self.own]

  def _check_movement(
    self,
    ledger: Ledger,
    t: int,
    size: Float64s,
    push: Float64s,
    old: Float64s,
    new: Float64s,
    ratio: float,
  ) -> None:
    """(3) how far strategies move, and (4) what their moves are worth; then takes the next steps.

    Args:
      ledger: where the checks are kept.
      t: the iteration.
      size: of the errors, times the iteration's weight.
      push: by how much what the strategies are best against changes.
      old: what was played.
      new: what that becomes.
      ratio: of the iteration's weight and the next one's.
    """
    constants = self.constants
    change = new - old
    if isinstance(constants, AdaptiveSteps):
      squares = np.zeros(self.game.num_infosets)
      squares[self.own] = self._squared_errors(t)
      following = constants.steps_after(squares)[self.own]
    else:
      following = constants.steps[self.own]
      if constants.kappa is not None:
        moved = self.norms(change, 1)
        limit = constants.kappa[self.own]
        ledger.record("local movement", t, moved, limit, ledger.rounding, self.at_infoset)
    steps = following if self._steps is None else self._steps
    shrunk = np.log(np.divide(steps, following, out=np.ones(len(steps)), where=following > 0))
    limit = steps * self.dual_norms(push) + np.sqrt(self.diameter * np.maximum(shrunk, 0.0))
    moved = self.primal_norms(change)
    # The strategies are rounded, and so are the regrets that they come from.
    rounding = ledger.rounding * (1 + steps * constants.loss_norm[self.own] * self.weights)
    ledger.record("movement (3)", t, moved, limit, rounding, self.at_infoset)
    if self.run.prediction == "subtree":
      self._check_gain(ledger, t, steps, following, size, change, old, ratio)
    self._steps = following

  def _check_gain(
    self,
    ledger: Ledger,
    t: int,
    steps: Float64s,
    following: Float64s,
    size: Float64s,
    change: Float64s,
    old: Float64s,
    ratio: float,
  ) -> None:
    """(4): with the gradient it has just seen, an update loses no more than L (1/eta' - 1/eta) + eta |e|^2 / 4."""
    gain = np.zeros(self.tree.num_infosets)
    for sequences, infosets, _ in self.blocks:
      gain[infosets] = (self.predicted[sequences] * change[sequences]).sum(axis=0)
    longer = _ratio(self.diameter, following) - _ratio(self.diameter, steps)
    cost = ratio * (longer + steps * size**2 / 4)
    weight = float(t) ** self.constants.power
    rounding = ledger.rounding * self.constants.loss_norm[self.own] * self.weights
    ledger.record("loss of an update (4)", t, -weight * gain, cost, rounding, self.at_infoset)
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


def _ratio(diameter: Float64s, steps: Float64s) -> Float64s:
  """L / eta, 0 where there is nothing to lose."""
  return np.divide(diameter, steps, out=np.zeros(len(steps)), where=steps > 0)
