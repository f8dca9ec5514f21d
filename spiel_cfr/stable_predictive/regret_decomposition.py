"""One player's utilities, predictions and regrets in a run, and how regrets decompose (laminar regret decomposition).

As in Farina et al. (2019), a point is a decision point, which is an infoset, or the observation point after a sequence.
With w_t the weight of iteration t, the regret of a point is that of the strategies from there on:

    R_v = max over strategies z below v of  sum over t of  w_t (<u^t, z> - <u^t, x^t>)
"""

import abc
import dataclasses
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, aligned_zeros, dot
from spiel_cfr.cfr.cfr import FullWidthSolver
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.oftrl import Prediction
from spiel_cfr.stable_predictive.adaptive_steps import AdaptiveSteps, ConstantSteps
from spiel_cfr.stable_predictive.certificate_report import WorstCases
from spiel_cfr.stable_predictive.infoset_trees import own_infosets
from spiel_cfr.stable_predictive.paper_steps import PaperSteps

Averaging: TypeAlias = Literal["uniform", "linear", "quadratic"]


@dataclasses.dataclass(frozen=True)
class StablePredictiveRun:
  """What is certified: a run of stable-predictive CFR, and what theory says of its steps.

  Attributes:
    solver: what has run.
    constants: what the theory knows of each infoset.
    horizon: for how many iterations the steps are best, None if that was not given.
    prediction: what was predicted.
    averaging: how iterations weigh in the average.
  """

  solver: FullWidthSolver
  constants: PaperSteps | ConstantSteps | AdaptiveSteps
  horizon: int | None
  prediction: Prediction
  averaging: Averaging

  @property
  def compiled_game(self) -> CompiledGame:
    """The game as arrays."""
    return self.solver.compiled_game

  @property
  def alternating_updates(self) -> bool:
    """Whether a player sees the strategies to which those before it have just updated."""
    return self.solver.alternating_updates

  @property
  def iteration(self) -> int:
    """How many iterations have been done."""
    return self.solver.iteration


class Iteration(NamedTuple):
  """One player's part of an iteration, all strategies of shape (sequences,).

  Attributes:
    t: the iteration.
    old: what is played in it, in behavioural form.
    new: what that becomes.
    seen: what all players play when this one updates.
    seen_sequence_form: the same in sequence form.
  """

  t: int
  old: Float64s
  new: Float64s
  seen: Float64s
  seen_sequence_form: Float64s


class PlayerRun(abc.ABC):
  """One player's run. An iteration is `observe`, then `check_regret_decomposition`, then `predict`.

  Attributes:
    gradient: of this iteration.
    utility: counterfactual utilities (11), shape (sequences,).
    predicted: what was predicted for them (17).
    value: of each of the player's infosets.
    best_local: the regret of each infoset's own minimizer.
    regret: the regret of the player's whole strategy.
    weights: the sum of the iterations' weights.
    gains: the sum of w_t (<u^t, x^(t+1)> - <u^t, x^t>): what the updates would have been worth at once.
  """

  def __init__(self, run: StablePredictiveRun, player: int) -> None:
    """Begins before the first iteration."""
    game = run.compiled_game
    self.game, self.tree, self.player, self.run = game, game.treeplexes[player], player, run
    tree = self.tree
    self.own = own_infosets(tree)
    self.blocks: list[tuple[Int64s, slice, Int64s]] = [
      (sequences, infosets, tree.parent[infosets].astype(np.int64))
      for sequences, infosets in tree.blocks()
    ]
    self.utility, self.predicted = np.zeros((2, game.end))
    self.value = np.zeros(tree.num_infosets)
    self.best_local = np.zeros(tree.num_infosets)
    self.regret = self.weights = self.gains = 0.0
    self._buffer = aligned_zeros(game.end)
    self.gradient = np.zeros(game.end)
    self._total_gradient = np.zeros(game.end)
    self._local_regret = np.zeros(game.end)
    self._played = np.zeros(tree.num_infosets)
    self._played_below = np.zeros(game.end)
    self._played_total = 0.0

  @abc.abstractmethod
  def check(self, worst: WorstCases, iteration: Iteration) -> None:
    """Checks an iteration."""

  @property
  def scale(self) -> float:
    """The largest payoff times the sum of the weights: what sums of utilities are rounded in proportion to."""
    return max(map(abs, self.game.payoff_range)) * self.weights

  def at_infoset(self, infoset: int) -> str:
    """Names an infoset, numbered in layout order."""
    return f"player {self.player}'s infostate {self.game.infostate(self.player, infoset)!r}"

  def at_sequence(self, sequence: int) -> str:
    """Names the observation point after a sequence, numbered from the empty one."""
    if sequence == 0:
      return f"player {self.player}'s root"
    for sequences, infosets, _ in self.blocks:
      rows, columns = np.nonzero(sequences == sequence + self.tree.root)
      if len(rows):
        return f"action {rows[0]} at {self.at_infoset(infosets.start + int(columns[0]))}"
    return "padding"

  def at_player(self, _: int) -> str:
    """Names the player."""
    return f"player {self.player}"

  def counterfactual_utilities(
    self, strategy: Float64s, gradient: Float64s
  ) -> tuple[Float64s, Float64s]:
    """Counterfactual utilities (11), and the value of each infoset."""
    utility, value = gradient.copy(), np.zeros(self.tree.num_infosets)
    for sequences, infosets, parents in reversed(self.blocks):
      value[infosets] = (strategy[sequences] * utility[sequences]).sum(axis=0)
      np.add.at(utility, parents, value[infosets])
    return utility, value

  def norms(self, vector: Float64s, order: float) -> Float64s:
    """Norm of each infoset's entries."""
    result = np.zeros(self.tree.num_infosets)
    for sequences, infosets, _ in self.blocks:
      result[infosets] = np.linalg.norm(vector[sequences], ord=order, axis=0)
    return result

  def observe(self, weight: float, old: Float64s, seen: Float64s) -> None:
    """Takes the utilities of an iteration of this weight, in which it plays `old` against the sequence forms `seen`."""
    self._buffer[:] = 0.0
    self.game.payoff.gradient_into(self.player, seen, self._buffer)
    self.gradient = self._buffer.copy()
    self.utility, self.value = self.counterfactual_utilities(old, self.gradient)
    self.weights += weight
    for sequences, infosets, parents in self.blocks:
      added = self.utility[sequences] - self.value[infosets]
      self._local_regret[sequences] += weight * added
      self.best_local[infosets] = self._local_regret[sequences].max(axis=0)
      np.add.at(self._played_below, parents, weight * self.value[infosets])
    self._total_gradient += weight * self.gradient
    self._played += weight * self.value
    self._played_total += weight * dot(self.gradient, forms.sequence_form(self.game, old))

  def check_regret_decomposition(self, worst: WorstCases) -> None:
    """Checks Lemmas 1 and 2 of Farina et al. (2019): how regrets of points add up."""
    tree, rounding = self.tree, worst.rounding * self.scale
    best, best_below = self._total_gradient.copy(), np.zeros(self.game.end)
    sum_of_children = np.zeros(self.game.end)
    regret, lemma_2 = np.zeros((2, tree.num_infosets))
    for sequences, infosets, parents in reversed(self.blocks):
      top = best[sequences].max(axis=0)
      regret[infosets] = top - self._played[infosets]
      below = best_below[sequences] - self._played_below[sequences]
      lemma_2[infosets] = self.best_local[infosets] + below.max(axis=0)
      np.add.at(best, parents, top)
      np.add.at(best_below, parents, top)
      np.add.at(sum_of_children, parents, regret[infosets])
    observation = slice(tree.root, tree.end)
    point_regret = (best_below - self._played_below)[observation]
    difference = np.abs(point_regret - sum_of_children[observation])
    tolerance = np.full(len(difference), rounding)
    worst.record("Lemma 1, up to rounding", difference, tolerance, 0.0, self.at_sequence)
    self.regret = float(best[tree.root]) - self._played_total
    whole = abs(self.regret - point_regret[0])
    worst.record("Lemma 1 at the root, by sequence form", whole, rounding, 0.0, self.at_player)
    worst.record("Lemma 2", regret, lemma_2, rounding, self.at_infoset)

  def predict(self, weight: float, new: Float64s) -> None:
    """Ends an iteration of this weight, in which its strategy became `new`."""
    carried, value = self.counterfactual_utilities(new, self.gradient)
    roots = self.tree.parent == self.tree.root
    self.gains += weight * float((value - self.value)[roots].sum())
    self.predicted = carried if self.run.prediction == "subtree" else self.utility
