"""Completion of average policies at infosets that their owners never reach.

There an average is undefined, or *dust*: a remainder of the first iterations, with a reach such as 1e-34 or 7e-6.
OpenSpiel plays uniformly at a reach of 0 and keeps dust. For an equilibrium against opponents without mistakes any
choice is right. A policy that is played or studied should be sensible there too.
"""

from typing import Literal, get_args

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr._util import arguments
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms

Unreached = Literal["uniform", "best_response"]
# The probability with which all players play at random while best responses are computed.
_TREMBLES = 1e-4
# Reaches of a player's own, relative to its largest, up to which a sequence may count as dust. NashConv may grow by
# this factor when dust is removed, rounding aside.
_DUST = (*(10 ** (-power / 2) for power in range(8, 25)), 0.0)
_WORSE, _ROUNDING = 1.5, 1e-12


def completed(compiled: CompiledGame, sequence_form: Float64s, unreached: Unreached) -> Float64s:
  """Returns a policy that is sensible at all infosets, in behavioral form of shape (sequences,).

  "uniform" plays uniformly where the owner's reach is 0, as in OpenSpiel. "best_response" first removes dust: actions
  whose reach is at most a threshold, relative to the player's largest reach, get probability 0. Where the owner's reach
  is then 0, it plays a best response to the others, who tremble with a probability of 1e-4 so that every infoset
  matters. The threshold is the largest of 1e-4, 3e-5, ..., 1e-12 and 0 with which NashConv is at most 1.5 times that of
  the average.

  Raises:
    ArgumentError: `unreached` is neither of the two.
    AbstractionError: "best_response", and infosets of the game are shared.
  """
  arguments.one_of(unreached, "unreached", get_args(Unreached))
  if unreached != "uniform" and compiled.shared_infosets is not None:
    raise errors.AbstractionError(
      f"In {compiled} infosets are shared (imperfect recall), and the best action at one need not be best at others. "
      "Use unreached='uniform', or buckets that remember the player's own actions."
    )
  if unreached == "uniform":
    return forms.behavioral_form(compiled, sequence_form)
  low, high = compiled.payoff_range
  before = evaluate.evaluate(compiled, sequence_form).nash_conv
  allowed = _WORSE * before + _ROUNDING * (high - low)
  for threshold in _DUST:
    result = _best_where_unreached(compiled, without_dust(compiled, sequence_form, threshold))
    if evaluate.evaluate(compiled, forms.sequence_form(compiled, result)).nash_conv <= allowed:
      break
  return result


def without_dust(compiled: CompiledGame, sequence_form: Float64s, threshold: float) -> Float64s:
  """Returns a policy in behavioral form in which sequences of a reach up to `threshold` have reach 0.

  Args:
    compiled: the game.
    sequence_form: the policy, shape (sequences,).
    threshold: relative to the largest reach of the same player.
  """
  kept = np.array(sequence_form, np.float64)
  for tree in compiled.treeplexes:
    reach = kept[tree.root : tree.end]
    reach[reach <= threshold * reach.max()] = 0.0
  return forms.behavioral_form(compiled, kept)


def _best_where_unreached(compiled: CompiledGame, policy: Float64s) -> Float64s:
  """Returns a policy, in behavioral form, with best responses where the owner's reach is 0."""
  free = unreached_sequences(compiled, forms.sequence_form(compiled, policy))
  trembling = (1 - _TREMBLES) * policy + _TREMBLES * forms.uniform(compiled)
  reach = forms.sequence_form(compiled, trembling)
  best = evaluate.evaluate(compiled, reach, responses=True).best_responses
  return np.where(free, best, policy)


def unreached_sequences(compiled: CompiledGame, sequence_form: Float64s) -> Bools:
  """Returns whether the owner of each sequence never reaches its infoset, shape (sequences,)."""
  result = np.zeros(compiled.end, bool)
  for tree in compiled.treeplexes:
    for sequences, infosets in tree.infoset_groups():
      result[sequences] = sequence_form[tree.parent[infosets]] == 0
  return result
