"""What an average policy says of infosets to which its owner never plays: nothing, so that one has to choose.

OpenSpiel's answer is the uniform strategy. Any will do for an equilibrium, as long as nobody makes a mistake; somebody
who takes the policy to a table or a study wants one that makes sense there too.
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
# The probability with which anybody plays at random where a best response is looked for.
_TREMBLES = 1e-4


def completed(compiled: CompiledGame, sequence_form: Float64s, unreached: Unreached) -> Float64s:
  """Returns a policy that says something sensible everywhere, in behavioural form of shape (sequences,).

  Where its owner plays to, the result is the same. Elsewhere it is "uniform"; or "best_response", the owner's best
  response to the policies of the others, who tremble with a probability of 1e-4 so that it matters everywhere.

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
  reach = forms.sequence_form(compiled, trembling)
  result[free] = evaluate.evaluate(compiled, reach, responses=True).best_responses[free]
  return result


def unreached_sequences(compiled: CompiledGame, sequence_form: Float64s) -> Bools:
  """Returns which sequences are of infosets to which their owner does not play, shape (sequences,)."""
  result = np.zeros(compiled.end, bool)
  for tree in compiled.treeplexes:
    for sequences, infosets in tree.infoset_groups():
      result[sequences] = sequence_form[tree.parent[infosets]] == 0
  return result
