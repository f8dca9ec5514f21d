"""Conversion of policies between arrays in behavioral form, dictionaries, and OpenSpiel's classes."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyspiel
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies import forms
from spiel_cfr.policies.action_entries import from_entries, read_entries

PolicyDict = dict[str, dict[int, float]]


@runtime_checkable
class HasAveragePolicy(Protocol):
  """Protocol of solvers with an average policy: those of this library and of OpenSpiel."""

  def average_policy(self) -> Any:
    """Returns an OpenSpiel policy."""


@runtime_checkable
class HasArray(Protocol):
  """Protocol of solvers and results that have their policy as an array: those of this library."""

  def probabilities_in(self, game: CompiledGame) -> Float64s | None:
    """Returns the policy in behavioral form, shape (sequences,); None if `game` is not the game of the policy."""


@typed
def to_dict(compiled: CompiledGame, probabilities: Float64s) -> PolicyDict:
  """Returns a policy in behavioral form as a dictionary infostate -> action -> probability.

  Raises:
    PolicyError: two players share an information state string.
  """
  forms.check_length(compiled, probabilities, "probabilities")
  actions = iter(np.concatenate(compiled.actions).tolist())
  in_order = iter(compiled.to_actions(probabilities).tolist())
  counts = np.concatenate(compiled.num_actions).tolist()
  return {
    infostate: {next(actions): next(in_order) for _ in range(count)}
    for infostate, count in zip(compiled.table_rows, counts, strict=True)
  }


@typed
def to_pyspiel(compiled: CompiledGame, probabilities: Float64s) -> pyspiel.TabularPolicy:
  """Returns a policy in behavioral form as OpenSpiel's C++ tabular policy.

  Raises:
    PolicyError: two players share an information state string.
  """
  table = to_dict(compiled, probabilities)
  return pyspiel.TabularPolicy(
    {infostate: list(entries.items()) for infostate, entries in table.items()}
  )


# Anything that `from_policy` reads: OpenSpiel's policies in Python or C++, dictionaries, bots, solvers, results, or a
# list with one of these for each player.
AnyPolicy = Any


def is_same_game(game: CompiledGame, other: CompiledGame) -> bool:
  """Returns True if solvers cannot distinguish two games: they are one object, or have the same digest."""
  return game is other or game.digest == other.digest


def check_game(game: CompiledGame | pyspiel.Game, *policies: AnyPolicy) -> None:
  """Checks that policies are for a game.

  The game may have been compiled in another form, such as an abstraction or vector form. OpenSpiel's policies and
  mappings have only infostate strings, and are not checked here.

  Args:
    game: the game.
    policies: solvers, results and policies.

  Raises:
    PolicyError: a solver or policy is for another game.
  """
  for policy in policies:
    other = getattr(policy, "compiled_game", None)
    if isinstance(other, CompiledGame) and not _have_one_source(game, other):
      raise errors.PolicyError(
        f"{arguments.shortened(policy)} is for another game, {other.name}, not for {getattr(game, 'name', game)}. To "
        "read it by its infostate strings nevertheless, give a dictionary of it, such as average_policy_dict()."
      )


def _have_one_source(*games: CompiledGame | pyspiel.Game) -> bool:
  """Returns True if the games, compiled or not, are the same OpenSpiel game."""
  originals = [game.original if isinstance(game, CompiledGame) else game for game in games]
  if len({getattr(game, "game_string", str(game)) for game in originals}) == 1:
    return True
  try:
    sources = [game.game if isinstance(game, CompiledGame) else game for game in originals]
  except errors.NoStatesError:
    return False
  # Strings of equal games differ if one of them omits default parameters.
  return len({(game.get_type().short_name, str(game.get_parameters())) for game in sources}) == 1


def policy_of(source: Any) -> Any:
  """Returns the average policy of a solver or the policy of a result; anything else unchanged."""
  if isinstance(source, HasAveragePolicy):
    return source.average_policy()
  policy = getattr(source, "policy", None)
  return policy if isinstance(policy, open_spiel_policy.Policy) else source


@typed
def from_policy(compiled: CompiledGame, policy: AnyPolicy) -> Float64s:
  """Returns any policy in behavioral form.

  Args:
    compiled: the game.
    policy: one of the following.

      - an OpenSpiel policy, in Python or in C++;
      - a mapping from infostates to mappings from actions to probabilities, or to lists of (action, probability);
        missing actions have probability 0. If the game was compiled with `infostate`, the keys may be its names or
        OpenSpiel's strings. In the second case, the policy must be the same for all strings of an infoset;
      - a bot that provides its policy;
      - a solver, or a result of `solve` and similar functions;
      - a list or tuple with one of these for each player, which is read at the infosets of that player.

  Returns:
    Behavioral form, shape (sequences,).

  Raises:
    PolicyError: the policy is for another game, see `check_game`, or has no probabilities for an infoset. Or the
      probabilities of an infoset are negative, NaN, or don't sum to 1.
  """
  if isinstance(policy, HasArray) and (array := policy.probabilities_in(compiled)) is not None:
    # The array needs no names of infosets, of which large games have millions.
    return np.array(array, np.float64)
  check_game(compiled, *(policy if isinstance(policy, list | tuple) else [policy]))
  entries = [
    read_entries(compiled, policy_of_player, player)
    for player, policy_of_player in enumerate(one_per_player(policy, compiled.num_players))
  ]
  return from_entries(compiled, np.concatenate(entries))


def one_per_player(policy: AnyPolicy, num_players: int) -> Sequence[AnyPolicy]:
  """Returns one policy for each player; `policy_of` is applied to each.

  Args:
    policy: a list or tuple with a policy for each player, or one policy of all players.
    num_players: the number of players.

  Raises:
    PolicyError: the list does not have one policy for each player.
  """
  if not isinstance(policy, list | tuple):
    return [policy_of(policy)] * num_players
  if len(policy) != num_players:
    raise errors.PolicyError(
      f"There are {len(policy)} policies for a game of {num_players} players. Give one a player."
    )
  return [policy_of(policy_of_player) for policy_of_player in policy]
