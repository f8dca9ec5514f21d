"""The mean of several policies of a game."""

from collections.abc import Sequence

import numpy as np

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies.forms import behavioral_form, sequence_form
from spiel_cfr.policies.open_spiel import AnyPolicy, CompiledTabularPolicy, from_policy


def merge(
  game: AnyGame, policies: Sequence[AnyPolicy], weights: Sequence[float] | None = None
) -> CompiledTabularPolicy:
  """Returns the policy that draws one of several at the start of a game, each player by itself, and plays that.

      x(s) = sum_k w_k x_k(s) / sum_k w_k    in sequence form, for each player

  In constant-sum games of two players, exploitability is convex in the sequence form, so that the mean's is at most the
  mean of the policies'. So runs of a sampling solver with several seeds, one a core, are merged into one.

  Args:
    game: the game; compile it first if this is called more than once.
    policies: at least one, of any kind that `spiel_cfr.nash_conv` takes.
    weights: not negative, one a policy; equal ones by default.

  Returns:
    The policy, as OpenSpiel's Python class. Where no policy leads, it is uniform.

  Raises:
    ArgumentError: there are no policies, or the weights are no weights of them.
    PolicyError: a policy is not one for this game.
    GameError: see `compile_game`.
  """
  compiled: CompiledGame = compile_game(game)
  policies = list(policies)
  if weights is None:
    weights = [1.0] * len(policies)
  numbers = [
    arguments.real_number(weight, "weights", 0.0, np.finfo(np.float64).max) for weight in weights
  ]
  if not policies or len(numbers) != len(policies) or not 0 < sum(numbers) < np.inf:
    raise errors.ArgumentError(
      "merge needs policies and a weight for each that is not negative, not all 0; here are "
      f"{len(policies)} policies and {len(numbers)} weights that sum to {sum(numbers):g}."
    )
  sums = np.zeros(compiled.end)
  for policy, weight in zip(policies, numbers, strict=True):
    share = weight / sum(numbers)
    sums += share * sequence_form(compiled, from_policy(compiled, policy))
  return CompiledTabularPolicy(compiled, behavioral_form(compiled, sums))
