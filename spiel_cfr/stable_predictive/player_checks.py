"""Checks that all runs of stable-predictive CFR have in common: the regrets of a player's points, and Lemmas 1 and 2.

As in Farina et al. (2019), a point is a decision point, which is an infoset, or an observation point, which is a
sequence. With w_t the weight of iteration t, the regret of a point v is that of the strategies from there on:

    R_v = max over strategies z from v on of  sum over t of  w_t (<u^t, z> - <u^t, x^t>)

The checks recompute utilities, predictions and regrets in float64; only the strategies come from the solver.
`paper_checks` and `adaptive_checks` add the inequalities of the two kinds of steps. The numbers of inequalities are
those of the paper or of docs/theory/stable_predictive.md.
"""

import abc
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, aligned_zeros, dot
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms
from spiel_cfr.stable_predictive.regret_composition import infosets_of


class Inequality(NamedTuple):
  """The inequality values <= bounds, at one or more points.

  Attributes:
    name: the name of the inequality.
    values: the measured value at each point.
    bounds: the bound at each point.
    rounding: the tolerance of rounding, added to the bounds.
    where: function from the number of a point to a text that names it.
  """

  name: str
  values: float | Float64s
  bounds: float | Float64s
  rounding: float | Float64s
  where: Callable[[int], str]


class Iteration(NamedTuple):
  """The strategies before and after the update of one player in an iteration.

  Attributes:
    t: the number of the iteration, from 1.
    old: float64 (sequences,). The policy of this iteration, in behavioral form.
    new: float64 (sequences,). The policy of the next iteration, in behavioral form.
    faced: float64 (sequences,). The policy that the player faces in its update, in behavioral form.
    faced_sequence_form: float64 (sequences,). The policy that the player faces, in sequence form.
  """

  t: int
  old: Float64s
  new: Float64s
  faced: Float64s
  faced_sequence_form: Float64s


class PlayerChecks(abc.ABC):
  """Base class of the checks of one player's updates.

  Attributes:
    tree: `Treeplex`. The player's treeplex.
    infosets: slice. The player's infosets in arrays of all players' infosets.
    groups: list of (sequences, infosets, parents) of the groups of infosets, parents before children; see
      `Treeplex.infoset_groups`. The last array is the sequence above each infoset.
    relative_rounding: float. The tolerance of rounding, relative to the size of the numbers that are summed.
    gradient: float64 (sequences,). The gradient of the player's utility in this iteration.
    utility: float64 (sequences,). The counterfactual utilities of this iteration, equation (11).
    predicted: float64 (sequences,). The predicted counterfactual utilities of this iteration, equation (17).
    value: float64 (the player's infosets,). The value of each infoset in this iteration.
    local_regret: float64 (the player's infosets,). The regret of each infoset's regret minimizer so far.
    regret: float. The regret of the player's whole strategy so far.
    weights: float. The sum of the weights of iterations so far.
    gains: float. The sum of w_t (<u^t, x^(t+1)> - <u^t, x^t>) so far: the immediate gains of the player's updates.
  """

  def __init__(self, game: CompiledGame, player: int, relative_rounding: float) -> None:
    """Begins before the first iteration."""
    self.game, self.tree, self.player = game, game.treeplexes[player], player
    self.infosets: slice = infosets_of(self.tree)
    self.relative_rounding = relative_rounding
    self.groups: list[tuple[Int64s, slice, Int64s]] = [
      (sequences, infosets, self.tree.parent[infosets].astype(np.int64))
      for sequences, infosets in self.tree.infoset_groups()
    ]
    self.regret = self.weights = self.gains = 0.0
    self.gradient = aligned_zeros(game.end)
    self.utility, self.predicted = np.zeros((2, game.end))
    self.value, self.local_regret = np.zeros((2, self.tree.num_infosets))
    # Weighted sums over iterations: regrets of actions, gradients, and utilities of the strategies that were played.
    self._action_regret, self._total_gradient = np.zeros((2, game.end))
    self._played_at_infosets = np.zeros(self.tree.num_infosets)
    self._played_after_sequences = np.zeros(game.end)
    self._played_in_all = 0.0

  @abc.abstractmethod
  def check(self, iteration: Iteration) -> Iterator[Inequality]:
    """Yields the inequalities of an iteration; iterations must come in order."""

  @property
  def rounding(self) -> float:
    """The tolerance of rounding in weighted sums of utilities: relative to the largest payoff times the weights."""
    return self.relative_rounding * (max(map(abs, self.game.payoff_range)) * self.weights)

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
    """Returns the norm of the entries of each infoset, shape (the player's infosets,)."""
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
    """Computes the utilities of an iteration, and adds them to the sums with the weight of the iteration."""
    self.gradient = aligned_zeros(self.game.end)
    self.game.payoff.gradient_into(self.player, iteration.faced_sequence_form, self.gradient)
    self.utility, self.value = self._counterfactual_utilities(iteration.old)
    self.weights += weight
    for sequences, infosets, parents in self.groups:
      immediate_regret = self.utility[sequences] - self.value[infosets]
      self._action_regret[sequences] += weight * immediate_regret
      self.local_regret[infosets] = self._action_regret[sequences].max(axis=0)
      np.add.at(self._played_after_sequences, parents, weight * self.value[infosets])
    self._total_gradient += weight * self.gradient
    self._played_at_infosets += weight * self.value
    utility = dot(self.gradient, forms.sequence_form(self.game, iteration.old))
    self._played_in_all += weight * utility

  def predict_next(self, weight: float, new: Float64s) -> None:
    """Computes the predictions (17) for the next iteration, which plays `new`, and adds the gains of the update."""
    self.predicted, value = self._counterfactual_utilities(new)
    is_first = self.tree.parent == self.tree.root
    self.gains += weight * float((value - self.value)[is_first].sum())

  def regret_decomposition(self) -> Iterator[Inequality]:
    """Yields Lemmas 1 and 2, and computes the regret of the player's whole strategy.

    The regrets of points are computed by their definition, from sums over iterations.
    """
    tree = self.tree
    # The largest total utility of a strategy from each sequence on, with and without the gradient of the sequence.
    best, best_after = self._total_gradient.copy(), np.zeros(self.game.end)
    children_regret = np.zeros(self.game.end)
    infoset_regret, lemma_2 = np.zeros((2, tree.num_infosets))
    for sequences, infosets, parents in reversed(self.groups):
      best_at_infosets = best[sequences].max(axis=0)
      infoset_regret[infosets] = best_at_infosets - self._played_at_infosets[infosets]
      regret_after_actions = best_after[sequences] - self._played_after_sequences[sequences]
      lemma_2[infosets] = self.local_regret[infosets] + regret_after_actions.max(axis=0)
      np.add.at(best, parents, best_at_infosets)
      np.add.at(best_after, parents, best_at_infosets)
      np.add.at(children_regret, parents, infoset_regret[infosets])
    sequence_regret = (best_after - self._played_after_sequences)[tree.root : tree.end]
    difference = np.abs(sequence_regret - children_regret[tree.root : tree.end])
    yield Inequality(
      "Lemma 1, up to rounding",
      difference,
      np.full(len(difference), self.rounding),
      0.0,
      lambda sequence: f"player {self.player}'s sequence {sequence}",
    )
    self.regret = float(best[tree.root]) - self._played_in_all
    difference_at_root = abs(self.regret - float(sequence_regret[0]))
    yield self.at_root(
      "Lemma 1 at the root, by sequence form", difference_at_root, self.rounding, 0.0
    )
    yield self.at_infosets("Lemma 2", infoset_regret, lemma_2, self.rounding)


def range_over_step(ranges: Float64s, steps: Float64s) -> Float64s:
  """Returns L / eta of each infoset, the range of the regularizer divided by the step; 0 where the step is 0."""
  return np.divide(ranges, steps, out=np.zeros(len(steps)), where=steps > 0)
