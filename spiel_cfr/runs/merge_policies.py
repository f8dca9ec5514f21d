"""The mean of several policies of a game."""

from collections.abc import Iterable

import numpy as np

from spiel_cfr import errors
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies.forms import behavioral_form, sequence_form
from spiel_cfr.policies.open_spiel import AnyPolicy, from_policy
from spiel_cfr.policies.tabular_policy import CompiledTabularPolicy


@typed
def merge(game: AnyGame, policies: Iterable[AnyPolicy]) -> CompiledTabularPolicy:
  """Returns the policy that draws one of several at the start of a game, each player by itself, and plays that.

  It is OpenSpiel's Python class, uniform where no policy leads:

      x(s) = mean over k of x_k(s)    in sequence form, for each player

  In constant-sum games of two players, exploitability is convex in the sequence form, so that the mean's is at most the
  mean of the policies'. So runs of a sampling solver with several seeds, one a core, are merged into one.

  Args:
    game: the game; compile it first if this is called more than once.
    policies: at least one, of any kind that `spiel_cfr.nash_conv` takes; one that is there twice counts twice.

  Raises:
    ArgumentError: there are no policies.
    PolicyError: a policy is not one for this game.
    GameError: see `compile_game`.
  """
  compiled, chosen = compile_game(game), list(policies)
  if not chosen:
    raise errors.ArgumentError("merge needs at least one policy.")
  sums = np.zeros(compiled.end)
  for policy in chosen:
    sums += 1 / len(chosen) * sequence_form(compiled, from_policy(compiled, policy))
  return CompiledTabularPolicy(compiled, behavioral_form(compiled, sums))
