"""Actions that come into a game while it is solved.

Let C(ja) be what action a at infoset j is worth against the policy if its owner plays a best response below, and Z(j)
what j is worth to its owner, who plays the policy. In the whole game a unit of actions that was left out (an action at
an infoset; in poker in vector form, at a public state) is worth

    sum over the infosets j of the unit of max(C(ja) - Z(j), 0).

If none is worth anything, no best response in the whole game gains anything that it can't gain in the smaller one (by
induction from the last infosets up), so the smaller one has solved the whole.
"""

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr._numba.steps import StepKernel
from spiel_cfr.abstraction.action_subsets import ListedSubsets, PokerSubsets, played_to
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.openspiel.game_view import ActionFilter
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import forms

# Of the largest payoff: what is worth less is rounding.
_NOTHING = 1e-12
# Of all that can be gained, how much is taken at once: less leads to smaller games in more time.
_SHARE = 0.8


class RefinedActions:
  """A game without some actions, how its policies are played in the whole one, and what it lacks.

  Attributes:
    whole: `CompiledGame`. The whole game.
    small: `CompiledGame`. The game without some actions; the whole game itself if none is missing.
  """

  def __init__(self, subsets: ListedSubsets | PokerSubsets, kept: Bools) -> None:
    """Keeps a subset of the actions, shape (sequences,)."""
    self.whole, self._subsets, self._kept = subsets.whole, subsets, kept
    self.small, self._here, self._there, same = subsets.smaller(kept)
    self._same = self._here[:same], self._there[:same]
    self._elsewhere = forms.behavioral_form(self.whole, kept.astype(np.float64))

  @classmethod
  def filtered(cls, whole: CompiledGame, action_filter: ActionFilter) -> "RefinedActions":
    """Keeps the actions that a filter keeps.

    Raises:
      ArgumentError: that is nothing at some infoset.
      UnsupportedGameError: the game has another form, or is an abstraction.
      NoStatesError: the states for the filter stayed behind when the game was pickled or written to a file.
    """
    subsets: ListedSubsets | PokerSubsets
    if isinstance(whole, EnumeratedGame) and whole.original is whole:
      subsets = ListedSubsets(whole)
    elif isinstance(whole, PublicGame) and whole.original is whole and not whole.tree.is_merged:
      subsets = PokerSubsets(whole)
    else:
      raise errors.UnsupportedGameError(
        f"{whole} is no game whose actions can be left out. Give compile_game(game, vector_form=False); poker in "
        "vector form is what compile_public_game returns. Neither may be an abstraction."
      )
    return cls(subsets, subsets.filtered(action_filter))

  def to_whole(self, sequence_form: Float64s) -> Float64s:
    """Returns a sequence form, or a sum of them, of the smaller game as behavioral form of the whole game.

    Infosets of the whole game that nothing stands for play all kept actions alike.
    """
    own = forms.behavioral_form(self.small, sequence_form)
    sums = np.zeros(self.whole.end)
    np.add.at(sums, self._there, own[self._here])
    return forms.behavioral_form(self.whole, sums, self._elsewhere)

  def to_small(self, numbers: Float64s) -> Float64s:
    """Returns numbers of the whole game's sequences at those of the smaller one."""
    here, there = self._same
    result = np.zeros(self.small.end)
    result[here] = numbers[there]
    return result

  def whole_regrets(self, regrets: Float64s, probabilities: Float64s, iterations: int) -> Float64s:
    """Returns the regrets in the whole game of CFR that has run in the smaller one.

    They count as if all had known all actions in every iteration, never played the missing ones, and played the given
    policy at infosets that only the whole game has. With G the gradient against the average policy, regrets R(ja) of
    the smaller game and p(ja) the policy in the whole one, sums over the iterations are, from the last infosets up,

        U(ja) = T G(ja) + sum of V(j') over infosets j' below ja,     V(j) = sum over a of p(ja) (U(ja) - R(ja)),

    with R(ja) = 0 at infosets that only the whole game has; U(ja) - V(j) is the regret. This is exact for two players
    who update at once, if all iterations weigh the same: U(ja) - R(ja) is then V(j) for each kept action.

    Args:
      regrets: shape (actions of the smaller game,). Cumulative regrets, as `cumulative_regrets` returns them.
      probabilities: shape (sequences,). The average policy in behavioral form, from `to_whole`.
      iterations: T.
    """
    here, there = self._same
    own, result = np.zeros(self.small.end), np.zeros(self.whole.end)
    own[self.small.all_action_sequences] = regrets
    result[there] = own[here]
    utility = iterations * gradients(self.whole, forms.sequence_form(self.whole, probabilities))
    for tree in self.whole.treeplexes:
      for rows, infosets in reversed(list(tree.infoset_groups())):
        value = (probabilities[rows] * (utility[rows] - result[rows])).sum(axis=0)
        np.add.at(utility, tree.parent[infosets], value)
        result[rows] = utility[rows] - value
    return result

  def gains(self, probabilities: Float64s) -> Float64s:
    """Returns max(C(ja) - Z(j), 0) of missing actions, shape (sequences,).

    Infosets to which their owner comes by way of a missing action are left out.
    """
    best = self._action_values(take_best, probabilities)
    played = probabilities * self._action_values(expect, probabilities)
    reached, result = played_to(self.whole, self._kept), np.zeros(self.whole.end)
    for tree in self.whole.treeplexes:
      for rows, infosets in tree.infoset_groups():
        missing = ~self._kept[rows] & reached[tree.parent[infosets]]
        gain = np.maximum(best[rows] - played[rows].sum(axis=0), 0.0)
        result[rows] = np.where(missing, gain, 0.0)
    return result

  def refined(self, probabilities: Float64s) -> "RefinedActions | None":
    """Adds the actions from which best responses in the whole game gain most; returns None if none gains."""
    unit = self._subsets.unit
    worth: Float64s = np.bincount(unit, self.gains(probabilities)).astype(np.float64)
    cost: Float64s = np.bincount(unit, self._sizes()).astype(np.float64)
    chosen = self._chosen(worth, cost)
    kept = self._kept | chosen[unit]
    return RefinedActions(self._subsets, kept) if chosen.any() else None

  def _action_values(self, kernel: StepKernel, probabilities: Float64s) -> Float64s:
    """Returns what each sequence of the whole game is worth with what a kernel plays below; shape (sequences,)."""
    result = gradients(self.whole, forms.sequence_form(self.whole, probabilities))
    backward_pass(self.whole, kernel, result, strategy=probabilities)
    return result

  def _chosen(self, worth: Float64s, cost: Float64s) -> Bools:
    """Chooses the units that are worth most for each sequence that they add, until they make up most of all worth."""
    result = worth > _NOTHING * max(map(abs, self.whole.payoff_range))
    order: Int64s = np.argsort(-worth / np.maximum(cost, 1.0), kind="stable")
    order = order[result[order]]
    before = np.cumsum(worth[order]) - worth[order]
    result[order] = before < _SHARE * worth[order].sum()
    return result

  def _sizes(self) -> Float64s:
    """Counts the owner's sequences with kept actions at each action and below it, shape (sequences,)."""
    result = np.zeros(self.whole.end)
    for tree in self.whole.treeplexes:
      for rows, infosets in reversed(list(tree.infoset_groups())):
        result[rows] += 1.0
        below = np.where(self._kept[rows], result[rows], 0.0).sum(axis=0)
        np.add.at(result, tree.parent[infosets], below)
    return result
