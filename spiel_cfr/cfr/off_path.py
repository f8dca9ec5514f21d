"""Completion of average policies at infosets that their owners never reach.

The average policy is undefined there, or it is *dust*: a remainder of the first iterations, with a reach such as 1e-34
or 7e-6. OpenSpiel plays uniformly where the reach is 0, and keeps dust. Against opponents without mistakes this does
not matter. A policy for real opponents, or for study, should play well there too.
"""

from typing import Literal

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms

# The policies at infosets that their owner never reaches.
Unreached = Literal["uniform", "best_response"]
# The probability with which all players play at random while best responses are computed.
_TREMBLES = 1e-4
# Thresholds of dust, tried in this order: reaches relative to the player's largest reach.
_DUST_THRESHOLDS = (*(10 ** (-power / 2) for power in range(8, 25)), 0.0)
# Removing dust may multiply NashConv by this factor, and add this share of the range of payoffs for rounding.
_NASH_CONV_GROWTH, _ROUNDING = 1.5, 1e-12


def with_best_responses(compiled: CompiledGame, sequence_form: Float64s) -> Float64s:
  """Returns a policy in behavioral form, with best responses at infosets that their owner never reaches.

  First it removes dust: actions whose reach is at most a threshold get probability 0. Where the owner's reach is then
  0, the owner plays a best response to the others. They tremble with a probability of 1e-4, so that every infoset
  matters. The threshold is relative to the player's largest reach. It is the largest of 1e-4, 3e-5, ..., 1e-12 and 0
  with which NashConv is at most 1.5 times that of the average.

  Args:
    compiled: the game.
    sequence_form: float64 (sequences,). The average policy.

  Returns:
    float64 (sequences,). The completed policy.

  Raises:
    AbstractionError: infosets of the game are shared.
  """
  if compiled.shared_infosets is not None:
    raise errors.AbstractionError(
      f"In {compiled} infosets are shared (imperfect recall), and the best action at one need not be best at others. "
      "Use unreached='uniform', or buckets that remember the player's own actions."
    )
  low, high = compiled.payoff_range
  nash_conv = evaluate.evaluate(compiled, sequence_form).nash_conv
  allowed = _NASH_CONV_GROWTH * nash_conv + _ROUNDING * (high - low)
  for threshold in _DUST_THRESHOLDS:
    result = _best_where_unreached(compiled, without_dust(compiled, sequence_form, threshold))
    if evaluate.evaluate(compiled, forms.sequence_form(compiled, result)).nash_conv <= allowed:
      break
  return result


def without_dust(compiled: CompiledGame, sequence_form: Float64s, threshold: float) -> Float64s:
  """Removes dust: returns the policy in behavioral form, with reach 0 for sequences of a reach up to a threshold.

  Args:
    compiled: the game.
    sequence_form: float64 (sequences,). The policy.
    threshold: a reach, relative to the largest reach of the same player.
  """
  kept = np.array(sequence_form, np.float64)
  for tree in compiled.treeplexes:
    reach = kept[tree.root : tree.end]
    reach[reach <= threshold * reach.max()] = 0.0
  return forms.behavioral_form(compiled, kept)


def _best_where_unreached(compiled: CompiledGame, policy: Float64s) -> Float64s:
  """Replaces a policy by best responses where the owner's reach is 0. Policies are in behavioral form."""
  unreached = unreached_sequences(compiled, forms.sequence_form(compiled, policy))
  trembling = (1 - _TREMBLES) * policy + _TREMBLES * forms.uniform(compiled)
  trembling_form = forms.sequence_form(compiled, trembling)
  best = evaluate.evaluate(compiled, trembling_form, responses=True).best_responses
  return np.where(unreached, best, policy)


def unreached_sequences(compiled: CompiledGame, sequence_form: Float64s) -> Bools:
  """Returns the sequences at infosets that their owner never reaches, a mask of shape (sequences,)."""
  result = np.zeros(compiled.end, bool)
  for tree in compiled.treeplexes:
    for sequences, infosets in tree.infoset_groups():
      result[sequences] = sequence_form[tree.parent[infosets]] == 0
  return result
