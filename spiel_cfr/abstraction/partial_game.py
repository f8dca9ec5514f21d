"""`PartialGame`, a game that lacks some actions of a whole game; it measures their gain, and adds the best of them.

Let C(ja) be the counterfactual value of action a at infoset j if its player plays a best response after it, and Z(j)
the value of j if the player follows the policy. Missing actions are added in units: an action of an infoset, or in
poker in vector form an action of a public node. The gain of a unit in the whole game is

    sum over the infosets j of the unit of max(C(ja) - Z(j), 0).

If no unit gains, a best response in the whole game gains no more than in the smaller game, by induction from the last
infosets up. An equilibrium of the smaller game is then an equilibrium of the whole game.
"""

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr.abstraction.action_subsets import ListedSubsets, PokerSubsets, played_to
from spiel_cfr.abstraction.hand_buckets import check_whole_public_game
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.games.compiled.enumerated_game import listed_game
from spiel_cfr.games.openspiel.game_view import ActionFilter
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import forms

# Gains below this share of the largest payoff are rounding.
_ROUNDING = 1e-12
# The share of the whole gain that the units added at once must have. A smaller share leads to smaller games and longer
# runs.
_SHARE_ADDED = 0.8


class PartialGame:
  """A game that lacks some actions of a whole game, with the conversions between both games.

  Attributes:
    whole: `CompiledGame`. The whole game.
    small: `CompiledGame`. The game without the missing actions; the whole game itself if no action is missing.
  """

  def __init__(self, subsets: ListedSubsets | PokerSubsets, kept: Bools) -> None:
    """Makes the smaller game.

    Args:
      subsets: the subsets of the whole game's actions.
      kept: shape (sequences,). True at the actions of the smaller game.
    """
    self.whole, self._subsets, self._kept = subsets.whole, subsets, kept
    self.small, self._pairs = subsets.smaller(kept)
    # The same actions of the same infosets in both games.
    self._same_small = self._pairs.small[: self._pairs.num_same]
    self._same_whole = self._pairs.whole[: self._pairs.num_same]
    self._uniform_over_kept = forms.behavioral_form(self.whole, kept.astype(np.float64))

  @classmethod
  def filtered(cls, whole: CompiledGame, action_filter: ActionFilter) -> "PartialGame":
    """Returns the smaller game with the actions that an action filter keeps.

    Raises:
      ArgumentError: the filter keeps no action at an infoset.
      UnsupportedGameError: the game has another form, or is an abstraction.
      NoStatesError: the filter needs states, and the game was pickled or written to a file without them.
    """
    subsets: ListedSubsets | PokerSubsets
    if isinstance(whole, PublicGame):
      subsets = PokerSubsets(check_whole_public_game(whole))
    else:
      advice = "Poker in vector form is what compile_public_game returns."
      subsets = ListedSubsets(listed_game(whole, advice))
    return cls(subsets, subsets.filtered(action_filter))

  def to_whole(self, sequence_form: Float64s) -> Float64s:
    """Returns a policy of the smaller game as a policy of the whole game in behavioral form, shape (sequences,).

    Infosets of the whole game without a counterpart in the smaller game play uniformly over kept actions.

    Args:
      sequence_form: a sequence form of the smaller game, or a sum of sequence forms.
    """
    probabilities = forms.behavioral_form(self.small, sequence_form)
    sums = np.zeros(self.whole.end)
    np.add.at(sums, self._pairs.whole, probabilities[self._pairs.small])
    return forms.behavioral_form(self.whole, sums, self._uniform_over_kept)

  def to_small(self, values: Float64s) -> Float64s:
    """Returns values of the whole game's sequences at the same actions of the smaller game, shape (sequences,)."""
    result = np.zeros(self.small.end)
    result[self._same_small] = values[self._same_whole]
    return result

  def whole_regrets(self, regrets: Float64s, probabilities: Float64s, iterations: int) -> Float64s:
    """Returns the regrets that CFR in the smaller game would have in the whole game, shape (sequences,).

    They are the regrets of players that knew all actions in every iteration, and never played the missing ones. At
    infosets that only the whole game has, the players used the policy `probabilities`. Let G be the gradient against
    the average policy, R(ja) the regrets in the smaller game, and p(ja) the policy in the whole game. From the last
    infosets up, sums over T iterations are

        U(ja) = T G(ja) + sum of V(j') over infosets j' below ja,     V(j) = sum over a of p(ja) (U(ja) - R(ja)),

    with R(ja) = 0 at infosets that only the whole game has. The regret is U(ja) - V(j). It is exact for two players
    with simultaneous updates and equal weights of iterations: U(ja) - R(ja) is then V(j) for every kept action.

    Args:
      regrets: shape (actions of the smaller game,). Cumulative regrets, as `cumulative_regrets` returns them.
      probabilities: shape (sequences,). The average policy in behavioral form, from `to_whole`.
      iterations: the number T of iterations.
    """
    small_regrets, result = np.zeros(self.small.end), np.zeros(self.whole.end)
    small_regrets[self.small.all_action_sequences] = regrets
    result[self._same_whole] = small_regrets[self._same_small]
    utility = iterations * gradients(self.whole, forms.sequence_form(self.whole, probabilities))
    for tree in self.whole.treeplexes:
      for sequences, infosets in reversed(list(tree.infoset_groups())):
        values_of_kept = utility[sequences] - result[sequences]
        value = (probabilities[sequences] * values_of_kept).sum(axis=0)
        np.add.at(utility, tree.parent[infosets], value)
        result[sequences] = utility[sequences] - value
    return result

  def gains(self, probabilities: Float64s) -> Float64s:
    """Returns the gain max(C(ja) - Z(j), 0) of every missing action, shape (sequences,).

    It is 0 at infosets that the player reaches only by a missing action.

    Args:
      probabilities: shape (sequences,). The policy of the whole game in behavioral form.
    """
    best = self._action_values(take_best, probabilities)
    played = probabilities * self._action_values(expect, probabilities)
    is_kept, result = played_to(self.whole, self._kept), np.zeros(self.whole.end)
    for tree in self.whole.treeplexes:
      for sequences, infosets in tree.infoset_groups():
        is_missing = ~self._kept[sequences] & is_kept[tree.parent[infosets]]
        gain = np.maximum(best[sequences] - played[sequences].sum(axis=0), 0.0)
        result[sequences] = np.where(is_missing, gain, 0.0)
    return result

  def extended(self, probabilities: Float64s) -> "PartialGame | None":
    """Returns the larger game with the units that gain most against a policy; None if no unit gains.

    Args:
      probabilities: shape (sequences,). The policy of the whole game in behavioral form.
    """
    unit = self._subsets.unit
    gains: Float64s = np.bincount(unit, self.gains(probabilities)).astype(np.float64)
    costs: Float64s = np.bincount(unit, self._sizes()).astype(np.float64)
    is_added = self._choose_units(gains, costs)
    kept = self._kept | is_added[unit]
    return PartialGame(self._subsets, kept) if is_added.any() else None

  def _action_values(self, kernel: StepKernel, probabilities: Float64s) -> Float64s:
    """Returns counterfactual values in the whole game, shape (sequences,).

    Args:
      kernel: the block kernel that computes values of infosets from values of actions.
      probabilities: shape (sequences,). The policy in behavioral form.
    """
    result = gradients(self.whole, forms.sequence_form(self.whole, probabilities))
    backward_pass(self.whole, kernel, result, strategy=probabilities)
    return result

  def _choose_units(self, gains: Float64s, costs: Float64s) -> Bools:
    """Returns True at the units to add, shape (units,).

    Units are added in the order of their gain per sequence, until they have most of the whole gain.

    Args:
      gains: shape (units,). The gain of each unit.
      costs: shape (units,). The number of sequences that each unit adds.
    """
    result = gains > _ROUNDING * max(map(abs, self.whole.payoff_range))
    order: Int64s = np.argsort(-gains / np.maximum(costs, 1.0), kind="stable")
    order = order[result[order]]
    gain_before = np.cumsum(gains[order]) - gains[order]
    result[order] = gain_before < _SHARE_ADDED * gains[order].sum()
    return result

  def _sizes(self) -> Float64s:
    """Returns the number of the player's sequences that each action adds, with its kept continuations."""
    result = np.zeros(self.whole.end)
    for tree in self.whole.treeplexes:
      for sequences, infosets in reversed(list(tree.infoset_groups())):
        result[sequences] += 1.0
        below = np.where(self._kept[sequences], result[sequences], 0.0).sum(axis=0)
        np.add.at(result, tree.parent[infosets], below)
    return result
