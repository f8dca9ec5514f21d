"""Inequalities of the theory of stable-predictive CFR for a player's infosets and regrets.

As in Farina et al. (2019), a point is a decision point, that is an infoset, or the observation point after a sequence.
With w_t the weight of iteration t, the regret of a point is that of the strategies from there on:

    R_v = max over strategies z below v of  sum over t of  w_t (<u^t, z> - <u^t, x^t>)

Steps, sums of errors and predictions are computed anew; only the strategies come from the solver. Numbers in names are
those of docs/theory/stable_predictive.md and of the paper.
"""

import abc
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, aligned_zeros, dot
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.policies import forms
from spiel_cfr.stable_predictive.adaptive_steps import AdaptiveSteps
from spiel_cfr.stable_predictive.paper_steps import PaperSteps, depths, infosets_of, largest_sum


class Inequality(NamedTuple):
  """values <= bounds, at some points.

  Attributes:
    name: the name of the inequality.
    values: the measured values, one for each point.
    bounds: the bounds, of the shape of `values`.
    rounding: the tolerance of rounding, added to the bounds.
    where: function that names a point.
  """

  name: str
  values: float | Float64s
  bounds: float | Float64s
  rounding: float | Float64s
  where: Callable[[int], str]


class Iteration(NamedTuple):
  """The update of one player in an iteration; all strategies have the shape (sequences,).

  Attributes:
    t: the iteration.
    old: the policy of the iteration in behavioral form.
    new: the policy of the next iteration in behavioral form.
    faced: the policy that the player faces in its update, in behavioral form.
    faced_sequence_form: the policy that the player faces, in sequence form.
  """

  t: int
  old: Float64s
  new: Float64s
  faced: Float64s
  faced_sequence_form: Float64s


class PlayerChecks(abc.ABC):
  """Base class of the checks of one player's run.

  Attributes:
    tree: `Treeplex`. The player's treeplex.
    gradient: float64 (sequences,). The gradient of this iteration.
    utility: float64 (sequences,). The counterfactual utilities (11).
    predicted: float64 (sequences,). The predicted utilities (17).
    value: float64 (the player's infosets,). The value of each infoset.
    best_local: float64 (the player's infosets,). The regret of each infoset's minimizer.
    regret: the regret of the player's whole strategy.
    weights: the sum of the weights of iterations.
    gains: the sum of w_t (<u^t, x^(t+1)> - <u^t, x^t>), the immediate gains of the updates.
  """

  def __init__(self, game: CompiledGame, player: int, rounding: float) -> None:
    """Begins before the first iteration; `rounding` is the tolerance of rounding, relative to sums."""
    self.game, self.tree, self.player = game, game.treeplexes[player], player
    self.infosets, self.relative = infosets_of(self.tree), rounding
    self.groups: list[tuple[Int64s, slice, Int64s]] = [
      (sequences, infosets, self.tree.parent[infosets].astype(np.int64))
      for sequences, infosets in self.tree.infoset_groups()
    ]
    self.regret = self.weights = self.gains = self._played_total = 0.0
    self.value, self.best_local, self._played = np.zeros((3, self.tree.num_infosets))
    self.utility, self.predicted, self._total_gradient = np.zeros((3, game.end))
    self._local_regret, self._played_below = np.zeros((2, game.end))
    self.gradient = aligned_zeros(game.end)

  @abc.abstractmethod
  def check(self, iteration: Iteration) -> Iterator[Inequality]:
    """Yields the inequalities of an iteration: observes it, checks regrets, predicts the next."""

  @property
  def scale(self) -> float:
    """The largest payoff times the sum of the weights, the scale of rounding in sums of utilities."""
    return max(map(abs, self.game.payoff_range)) * self.weights

  def at_infosets(
    self, name: str, values: Float64s, bounds: Float64s, rounding: float | Float64s
  ) -> Inequality:
    """Returns an inequality at each of the player's infosets."""

    def where(infoset: int) -> str:
      infosets = self.game.infosets[self.player]
      infostate = infosets.infostates[int(np.flatnonzero(infosets.position == infoset)[0])]
      return f"player {self.player}'s infostate {infostate!r}"

    return Inequality(name, values, bounds, rounding, where)

  def at_root(self, name: str, value: float, bound: float, rounding: float) -> Inequality:
    """Returns an inequality of the player's whole strategy."""
    return Inequality(name, value, bound, rounding, lambda _: f"player {self.player}")

  def norms(self, vector: Float64s, order: float) -> Float64s:
    """Returns the norm of the entries of each infoset."""
    result = np.zeros(self.tree.num_infosets)
    for sequences, infosets, _ in self.groups:
      result[infosets] = np.linalg.norm(vector[sequences], ord=order, axis=0)
    return result

  def _counterfactual_utilities(self, strategy: Float64s) -> tuple[Float64s, Float64s]:
    """Returns the counterfactual utilities (11) of this iteration's gradient, and the value of each infoset."""
    utility, value = self.gradient.copy(), np.zeros(self.tree.num_infosets)
    for sequences, infosets, parents in reversed(self.groups):
      value[infosets] = (strategy[sequences] * utility[sequences]).sum(axis=0)
      np.add.at(utility, parents, value[infosets])
    return utility, value

  def observe(self, weight: float, iteration: Iteration) -> None:
    """Adds the utilities of an iteration of this weight."""
    self.gradient = aligned_zeros(self.game.end)
    self.game.payoff.gradient_into(self.player, iteration.faced_sequence_form, self.gradient)
    self.utility, self.value = self._counterfactual_utilities(iteration.old)
    self.weights += weight
    for sequences, infosets, parents in self.groups:
      added = self.utility[sequences] - self.value[infosets]
      self._local_regret[sequences] += weight * added
      self.best_local[infosets] = self._local_regret[sequences].max(axis=0)
      np.add.at(self._played_below, parents, weight * self.value[infosets])
    self._total_gradient += weight * self.gradient
    self._played += weight * self.value
    played = dot(self.gradient, forms.sequence_form(self.game, iteration.old))
    self._played_total += weight * played

  def regret_decomposition(self) -> Iterator[Inequality]:
    """Yields lemmas 1 and 2 of Farina et al. (2019), on sums of regrets of points."""
    tree, rounding = self.tree, self.relative * self.scale
    best, best_below = self._total_gradient.copy(), np.zeros(self.game.end)
    sum_of_children = np.zeros(self.game.end)
    regret, lemma_2 = np.zeros((2, tree.num_infosets))
    for sequences, infosets, parents in reversed(self.groups):
      top = best[sequences].max(axis=0)
      regret[infosets] = top - self._played[infosets]
      below = best_below[sequences] - self._played_below[sequences]
      lemma_2[infosets] = self.best_local[infosets] + below.max(axis=0)
      np.add.at(best, parents, top)
      np.add.at(best_below, parents, top)
      np.add.at(sum_of_children, parents, regret[infosets])
    point_regret = (best_below - self._played_below)[tree.root : tree.end]
    difference = np.abs(point_regret - sum_of_children[tree.root : tree.end])
    tolerance = np.full(len(difference), rounding)
    yield Inequality(
      "Lemma 1, up to rounding",
      difference,
      tolerance,
      0.0,
      lambda sequence: f"player {self.player}'s sequence {sequence}",
    )
    self.regret = float(best[tree.root]) - self._played_total
    whole = abs(self.regret - float(point_regret[0]))
    yield self.at_root("Lemma 1 at the root, by sequence form", whole, rounding, 0.0)
    yield self.at_infosets("Lemma 2", regret, lemma_2, rounding)

  def predict(self, weight: float, new: Float64s) -> None:
    """Ends an iteration of this weight, after which the strategy is `new`."""
    self.predicted, value = self._counterfactual_utilities(new)
    roots = self.tree.parent == self.tree.root
    self.gains += weight * float((value - self.value)[roots].sum())


class PaperChecks(PlayerChecks):
  """Checks of the paper's steps or a multiple: equations (5), (6) and (14) to (16). All iterations have weight 1."""

  def __init__(
    self, game: CompiledGame, player: int, constants: PaperSteps, rounding: float, alternating: bool
  ) -> None:
    """Begins before the first iteration."""
    super().__init__(game, player, rounding)
    self._constants, self._alternating = constants, alternating
    self._predicted_gradient = np.zeros(game.end)
    self._errors = np.zeros(self.tree.num_infosets)
    self._gradient_errors = 0.0

  def check(self, iteration: Iteration) -> Iterator[Inequality]:
    constants, infosets = self._constants, self.infosets
    t, old, new = iteration[:3]
    self.observe(1.0, iteration)
    exact, rounding = self.relative, self.relative * self.scale
    local = self.norms(new - old, 2)
    yield self.at_infosets("local stability (5)", local, constants.kappa[infosets], exact)
    moved, moved_root = self._movement(old, new)
    yield self.at_infosets("stability from an infoset on", moved, constants.gamma[infosets], exact)
    kappa = constants.kappa_root
    yield self.at_root("stability of the whole strategy", moved_root, kappa, exact)
    for name, vector in (("losses", self.utility), ("predictions", self.predicted)):
      size = self.norms(vector, 2)
      yield self.at_infosets(f"norm of the {name}", size, constants.loss_norm[infosets], rounding)

    missed = self.norms(self.utility - self.predicted, 2)
    if t > 1:
      limit = constants.loss_norm[infosets] * float(constants.pace[self.player]) * kappa
      yield self.at_infosets("errors (1)", missed, limit, 2 * exact * constants.loss_norm[infosets])
    self._errors += missed**2
    steps = constants.steps[infosets]
    bound = _ratio(constants.regularizer_range[infosets], steps) + steps * self._errors
    yield self.at_infosets("local regret (6)", self.best_local, bound, rounding)
    yield from self.regret_decomposition()

    # The regret of the whole strategy, and the change of gradients.
    error = float(np.linalg.norm(self.gradient - self._predicted_gradient))
    self._gradient_errors += error**2
    total = constants.regret_bound(self.player, self._gradient_errors)
    yield self.at_root("regret (6)", self.regret, total, rounding)
    if t > 1 and not self._alternating:
      change = float(constants.sensitivity[self.player]) * kappa
      yield self.at_root("change of the gradient", error, change, rounding)
    self.predict(1.0, new)
    self._predicted_gradient = self.gradient

  def _movement(self, old: Float64s, new: Float64s) -> tuple[Float64s, float]:
    """Returns the Euclidean distance of the sequence forms from each infoset on, and from the root.

    With x = (a_1 y_1, ..., a_n y_n), y_i = (1, the sequence form below action i), it computes |y|^2, |dy|^2 and
    <y, dy>. So small distances are not lost in differences of norms.
    """
    squared, moved, product = np.zeros((3, self.game.end))
    result = np.zeros(self.tree.num_infosets)
    for sequences, infosets, parents in reversed(self.groups):
      before, after = old[sequences], new[sequences]
      change, norm, along = after - before, 1 + squared[sequences], product[sequences]
      distance = change**2 * norm + 2 * change * after * along + after**2 * moved[sequences]
      result[infosets] = np.sqrt(np.maximum(distance.sum(axis=0), 0))
      np.add.at(squared, parents, (before**2 * norm).sum(axis=0))
      np.add.at(moved, parents, distance.sum(axis=0))
      np.add.at(product, parents, (before * (change * norm + after * along)).sum(axis=0))
    return result, float(np.sqrt(max(moved[self.tree.root], 0)))


class AdaptiveChecks(PlayerChecks):
  """Checks of adaptive steps.

  Attributes:
    local_bounds: float64 (the player's infosets,). The bound on the regret of each minimizer, given its errors so far.
    update_cost: the bound on the losses by updates of this player before another player sees its strategy.
  """

  def __init__(
    self, game: CompiledGame, player: int, constants: AdaptiveSteps, rounding: float
  ) -> None:
    """Begins before the first iteration."""
    super().__init__(game, player, rounding)
    self._constants = constants
    self._loss_norm = constants.loss_norm[self.infosets]
    self._ranges = constants.regularizer_range[self.infosets]
    self.local_bounds, self._terms, self._squares = np.zeros((3, self.tree.num_infosets))
    self.update_cost = 0.0
    self._faced = np.zeros(game.end)
    # None before the first iteration, where any step gives the uniform strategy.
    self._steps: Float64s | None = None

  def check(self, iteration: Iteration) -> Iterator[Inequality]:
    constants, t = self._constants, iteration.t
    weight, next_weight = float(t) ** constants.power, float(t + 1) ** constants.power
    self.observe(weight, iteration)
    # Rounding errors of utilities are in proportion to D.
    tiny = self.relative * self._loss_norm
    for name, vector in (("losses", self.utility), ("predictions", self.predicted)):
      size = self.norms(vector, np.inf)
      yield self.at_infosets(f"size of the {name} (D)", size, self._loss_norm, tiny)
    error = self.utility - self.predicted
    if t > 1:
      # Errors are small if the others have hardly moved.
      others = [tree for tree in self.game.treeplexes if tree is not self.tree]
      moved = sum(_movement(tree, self._faced, iteration.faced) for tree in others)
      size = self.norms(error, np.inf)
      yield self.at_infosets("errors (1)", size, moved * self._loss_norm, 2 * tiny)
    self._faced = iteration.faced
    size = weight * self._dual_norms(error)
    yield from self._regret(t, size)
    yield from self.regret_decomposition()
    total, rounding = largest_sum(self.tree, self.local_bounds), self.relative * self.scale
    yield self.at_root("regret <= sum of local ones", self.regret, total, rounding)
    last_error = self.utility - self.predicted
    self.predict(weight, iteration.new)
    push = weight * last_error + next_weight * self.predicted
    yield from self._movement_and_gain(iteration, size, push)

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

  def _regret(self, t: int, size: Float64s) -> Iterator[Inequality]:
    """Yields the bounds (2), (i), (ii) and (iii) of local regrets, given the norms of errors times the weight."""
    constants, infosets, steps = self._constants, self.infosets, self._steps
    tiny = self.relative * self._loss_norm * self.weights
    whole = constants.simplex_diameter * size
    self._terms += whole if steps is None else np.minimum(steps * size**2 / 2, whole)
    self.local_bounds = self._terms + (0.0 if steps is None else _ratio(self._ranges, steps))
    yield self.at_infosets("local regret (2)", self.best_local, self.local_bounds, tiny)
    self._squares += size**2
    squared = constants.squared_errors(self._squares, t, infosets)
    limit = constants.regret_factor[infosets] * np.sqrt(squared)
    yield self.at_infosets("local regret (i)", self.best_local, limit, tiny)
    largest = constants.largest_errors(t)[infosets]
    settled = constants.settled_errors(t)[infosets]
    yield self.at_infosets("squared errors (ii)", squared, largest, 0.0)
    yield self.at_infosets("squared errors (iii)", squared, settled, 0.0)

  def _movement_and_gain(
    self, iteration: Iteration, size: Float64s, push: Float64s
  ) -> Iterator[Inequality]:
    """Yields the bounds (3) of movements and (4) of their losses; then takes the next steps.

    Args:
      iteration: the iteration.
      size: the norms of errors, times the weight of the iteration.
      push: the change of the weighted utilities, predictions included, that strategies maximize.
    """
    constants, t, infosets = self._constants, iteration.t, self.infosets
    squared = constants.squared_errors(self._squares, t, infosets)
    following = constants.steps_after(squared, infosets)
    steps = following if self._steps is None else self._steps
    self._steps = following
    shrunk = np.log(np.divide(steps, following, out=np.ones(len(steps)), where=following > 0))
    limit = steps * self._dual_norms(push) + np.sqrt(self._ranges * np.maximum(shrunk, 0.0))
    # The norm in which the regularizer is strongly convex.
    change = iteration.new - iteration.old
    moved = self.norms(change, 1 if constants.regularizer == "entropy" else 2)
    # Both strategies and regrets are rounded.
    tiny = self.relative * self._loss_norm * self.weights
    yield self.at_infosets("movement (3)", moved, limit, self.relative + steps * tiny)
    # With the last gradient, an update loses at most L (1/eta' - 1/eta) + eta |e|^2 / 4.
    cost = _ratio(self._ranges, following) - _ratio(self._ranges, steps) + steps * size**2 / 4
    weight = float(t) ** constants.power
    cost *= weight / float(t + 1) ** constants.power
    gain, reach = np.zeros(self.tree.num_infosets), np.zeros(self.game.end)
    reach[self.tree.root] = 1.0
    for sequences, infosets, parents in self.groups:
      gain[infosets] = (self.predicted[sequences] * change[sequences]).sum(axis=0)
      reach[sequences] = iteration.old[sequences] * reach[parents]
      self.update_cost += float(reach[parents] @ cost[infosets])
    yield self.at_infosets("loss of an update (4)", -weight * gain, cost, tiny)


def _movement(tree: Treeplex, before: Float64s, after: Float64s) -> float:
  """Returns M: the largest l1 movement of an infoset, summed over the levels of a player's decisions."""
  largest = np.zeros(tree.depth)
  level = depths(tree)
  for sequences, infosets in tree.infoset_groups():
    moved = np.abs(after[sequences] - before[sequences]).sum(axis=0)
    np.maximum.at(largest, level[infosets], moved)
  return float(largest.sum())


def _ratio(ranges: Float64s, steps: Float64s) -> Float64s:
  """Returns L / eta; 0 where the step is 0."""
  return np.divide(ranges, steps, out=np.zeros(len(steps)), where=steps > 0)
