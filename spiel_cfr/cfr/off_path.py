"""What an average policy says of infosets to which its owner never plays: nothing, so that one has to choose.

OpenSpiel's answer is the uniform strategy. Any will do for an equilibrium, as long as nobody makes a mistake; somebody
who takes the policy to a table or a study wants one that makes sense there too.
"""

from typing import Any, Literal, get_args

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.time_slices import Slices
from spiel_cfr.cfr.loops import IterationNumbers, make_loop
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms
from spiel_cfr.regret_minimizers.schedules import Fading
from spiel_cfr.regret_minimizers.trembling_matching import TremblingMatching

Unreached = Literal["uniform", "best_response", "subgame"]
# The probability with which anybody plays at random where a best response or a subgame is looked for.
_TREMBLES = 1e-4
# For a subgame: how many iterations, and epsilon of the infosets that are free, which falls like 1 / t.
_ITERATIONS = 2000
_FREE = TremblingMatching(Fading(0.1, 1.0, 1.0))


def completed(compiled: CompiledGame, sequence_form: Float64s, unreached: Unreached) -> Float64s:
  """Returns a policy that says something sensible everywhere, in behavioural form of shape (sequences,).

  Args:
    compiled: the game.
    sequence_form: the policy, shape (sequences,). Where its owner plays to, the result is the same.
    unreached: what is played elsewhere: "uniform"; "best_response", the owner's best response to the policies of the
      others, who tremble with a probability of 1e-4 so that it matters everywhere; or "subgame", what CFR+ with
      trembling hands finds in 2,000 iterations if the policy is locked where it is reached, and trembles there: an
      approximate equilibrium of what follows after a mistake.

  Raises:
    ArgumentError: there is no such choice.
    AbstractionError: infosets of the game are shared, and it is not to be uniform.
  """
  arguments.one_of(unreached, "unreached", get_args(Unreached))
  if unreached != "uniform" and compiled.shared_infosets is not None:
    raise errors.AbstractionError(
      f"In {compiled} infosets are shared (imperfect recall), and what is best at one is not at others. Take "
      "unreached='uniform', or buckets that remember the player's own actions."
    )
  result = forms.behavioral_form(compiled, sequence_form)
  free = unreached_sequences(compiled, sequence_form)
  if unreached == "uniform" or not free.any():
    return result
  trembling = (1 - _TREMBLES) * result + _TREMBLES * forms.uniform(compiled)
  if unreached == "best_response":
    reach = forms.sequence_form(compiled, trembling)
    answers = evaluate.evaluate(compiled, reach, responses=True).best_responses
  else:
    answers = _around(compiled, trembling, free)
  result[free] = answers[free]
  return result


def unreached_sequences(compiled: CompiledGame, sequence_form: Float64s) -> Bools:
  """Returns which sequences are of infosets to which their owner does not play, shape (sequences,)."""
  result = np.zeros(compiled.end, bool)
  for tree in compiled.treeplexes:
    for sequences, infosets in tree.blocks():
      result[sequences] = sequence_form[tree.parent[infosets]] == 0
  return result


def _around(compiled: CompiledGame, locked: Float64s, free: Bools) -> Float64s:
  """Returns what regret minimization finds at the free sequences if everything else is locked."""
  loop = make_loop(compiled, _FREE)
  loop.set_strategy(locked)
  # What is not padding.
  real = forms.uniform(compiled) > 0
  loop.lock(np.flatnonzero(real & ~free))
  for count in Slices()(_ITERATIONS):
    iterations = np.arange(count) + 1 + int(loop.state.counts[0])
    weights = np.repeat(iterations[:, None] ** 2.0, compiled.num_players, axis=1)
    parameters = _FREE.parameters(iterations, compiled)
    nothing: Any = np.zeros_like(weights)
    loop.advance(True, IterationNumbers(parameters, weights, nothing, np.zeros(count)))
  return forms.behavioral_form(compiled, np.asarray(loop.state.cumulative, np.float64))
