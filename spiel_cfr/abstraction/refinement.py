"""What a small game that stands for a larger one has to offer to be refined while it is solved.

Let C(ja) be what action a at infoset j is worth against the policy if its owner plays a best response below, and Z(j)
what j is worth to its owner, who plays the policy. In the whole game

    an action that was left out is worth      sum over the infosets of its public state of max(C(ja) - Z(j), 0),
    to split a bucket B is worth              sum over j in B of max_a C(ja)  -  max_a sum over j in B of C(ja).

If none of these is positive, no best response in the whole game gains anything that it can't gain in the smaller one
(by induction from the last infosets up), so the smaller one has solved the whole. Those that are worth most for each
number that they add come first, until they make up most of what all are worth.
"""

import abc

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.evaluation.best_responses import take_best
from spiel_cfr.evaluation.counterfactual_values import backward_pass, gradients
from spiel_cfr.poker.public_game import PublicGame
from spiel_cfr.policies import forms

# Of the largest payoff: what is worth less is rounding.
_NOTHING = 1e-12
# Of all that can be gained, how much is taken at once: less leads to smaller games in more time.
_SHARE = 0.8


class Refinement(abc.ABC):
  """A whole game, and a smaller one that is refined.

  Attributes:
    whole: the whole game.
    small: the smaller one.
  """

  whole: PublicGame
  small: PublicGame

  @abc.abstractmethod
  def to_whole(self, sequence_form: Float64s) -> Float64s:
    """Returns a sequence form, or a sum of them, of the smaller game as behavioural form of the whole game."""

  @abc.abstractmethod
  def to_small(self, probabilities: Float64s) -> Float64s:
    """Returns behavioural form of the whole game, in which the smaller game's is, as that of the smaller game."""

  @abc.abstractmethod
  def refine(self, probabilities: Float64s) -> bool:
    """Adds to the smaller game what matters to a policy of the whole game; returns whether anything does."""

  def _gradient_and_best(self, probabilities: Float64s) -> tuple[Float64s, Float64s]:
    """Returns the gradient, and C of each sequence; shape (sequences,) each."""
    gradient = gradients(self.whole, forms.sequence_form(self.whole, probabilities))
    best = gradient.copy()
    backward_pass(self.whole, take_best, best)
    return gradient, best

  def _chosen(self, worth: Float64s, cost: Float64s) -> Int64s:
    """Returns which refinements are made, given what each is worth and how many numbers it adds."""
    largest = max(map(abs, self.whole.payoff_range))
    candidates = np.flatnonzero(worth > _NOTHING * largest)
    rate = worth[candidates] / np.maximum(cost[candidates], 1.0)
    candidates = candidates[np.argsort(-rate, kind="stable")]
    taken = np.cumsum(worth[candidates])
    before = taken - worth[candidates]
    result: Int64s = candidates[before < _SHARE * taken[-1]] if len(taken) else candidates
    return result
