"""Mean of several policies of a game, for example of runs of a sampling solver with different seeds."""

from collections.abc import Iterable

import numpy as np

from spiel_cfr import errors
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies.forms import behavioral_form, sequence_form
from spiel_cfr.policies.open_spiel import AnyPolicy, from_policy
from spiel_cfr.policies.tabular_policy import CompiledTabularPolicy


@typed
def merge(game: AnyGame, policies: Iterable[AnyPolicy]) -> CompiledTabularPolicy:
  """Returns the mean of policies in sequence form.

      x(s) = mean over k of x_k(s)    for each sequence s of each player

  To play it, each player independently draws one of the policies before the game. In two-player constant-sum games,
  exploitability is convex in the sequence form, so that of the mean is at most the mean of the exploitabilities. Use it
  to merge runs of a sampling solver with different seeds, for example one run for each core.

  Args:
    game: a compiled game, or an argument of `compile_game`.
    policies: policies that `policies.from_policy` reads, at least one. Repeated policies count repeatedly.

  Returns:
    An OpenSpiel policy in Python, uniform at infosets that no policy reaches.

  Raises:
    ArgumentError: there are no policies.
    PolicyError: a policy is not a policy of this game.
    GameError: see `compile_game`.
  """
  compiled, chosen = compile_game(game), list(policies)
  if not chosen:
    raise errors.ArgumentError("merge needs at least one policy.")
  sums = np.zeros(compiled.end)
  for policy in chosen:
    sums += 1 / len(chosen) * sequence_form(compiled, from_policy(compiled, policy))
  return CompiledTabularPolicy(compiled, behavioral_form(compiled, sums))
