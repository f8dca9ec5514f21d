"""Conversion between behavioral form and OpenSpiel's policies."""

import itertools
import random
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyspiel
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.other_states import other_state
from spiel_cfr.policies import forms

PolicyDict = dict[str, dict[int, float]]
# The largest difference from 1 of the sum of probabilities at an infoset.
_TOLERANCE = 1e-6
# The numbers of infosets, and of random states of each, by which two kinds of names are compared.
_COMPARED, _TRIES = 200, 10


@runtime_checkable
class HasAveragePolicy(Protocol):
  """Protocol of solvers, here and in OpenSpiel."""

  def average_policy(self) -> Any:
    """Returns an OpenSpiel policy."""


@runtime_checkable
class HasArray(Protocol):
  """Protocol of this library's solvers and results, which have their policy as an array."""

  def probabilities_in(self, game: CompiledGame) -> Float64s | None:
    """Returns the policy in behavioral form, shape (sequences,); None if it is of another compiled game."""


@typed
def to_dict(compiled: CompiledGame, probabilities: Float64s) -> PolicyDict:
  """Returns a behavioral form as infostate -> action -> probability.

  Raises:
    PolicyError: two players share an information state string.
  """
  forms.check_length(compiled, probabilities, "probabilities")
  actions = iter(np.concatenate(compiled.actions).tolist())
  chances = iter(compiled.to_actions(probabilities).tolist())
  counts = np.concatenate(compiled.num_actions).tolist()
  return {
    infostate: {next(actions): next(chances) for _ in range(count)}
    for infostate, count in zip(compiled.rows, counts, strict=True)
  }


@typed
def to_pyspiel(compiled: CompiledGame, probabilities: Float64s) -> pyspiel.TabularPolicy:
  """Returns a behavioral form as OpenSpiel's C++ tabular policy.

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
  """Returns True if two games are equal to solvers: one object, or the same digest."""
  return game is other or game.digest == other.digest


def check_game(game: CompiledGame | pyspiel.Game, *policies: AnyPolicy) -> None:
  """Checks that solvers and policies with a compiled game are for this game, in any form.

  OpenSpiel's policies and mappings have infostate strings only, and pass.

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
  """Returns True if two games, compiled or not, are the same OpenSpiel game."""
  originals = [each.original if isinstance(each, CompiledGame) else each for each in games]
  if len({getattr(each, "game_string", str(each)) for each in originals}) == 1:
    return True
  try:
    sources = [each.game if isinstance(each, CompiledGame) else each for each in originals]
  except errors.NoStatesError:
    return False
  # Strings of equal games differ if one of them leaves out default parameters.
  return len({(each.get_type().short_name, str(each.get_parameters())) for each in sources}) == 1


def policy_of(given: Any) -> Any:
  """Returns the average policy of a solver or the policy of a result; anything else unchanged."""
  if isinstance(given, HasAveragePolicy):
    return given.average_policy()
  found = getattr(given, "policy", None)
  return found if isinstance(found, open_spiel_policy.Policy) else given


@typed
def from_policy(compiled: CompiledGame, policy: AnyPolicy) -> Float64s:
  """Reads any policy into behavioral form.

  Args:
    compiled: the game.
    policy: one of the following.

      - an OpenSpiel policy, in Python or in C++;
      - a mapping from infostates to mappings from actions to probabilities, or to lists of (action, probability);
        missing actions have probability 0. If the game was compiled with `infostate`, the names may be those or
        OpenSpiel's, at all of whose states in an infoset the policy must be the same;
      - a bot that provides its policy;
      - a solver, or a result of `solve` and similar functions;
      - a list or tuple of these, one a player, each for its player's infosets.

  Returns:
    Behavioral form, shape (sequences,).

  Raises:
    PolicyError: the policy is for another game, see `check_game`. Or it has no probabilities for an infoset, or these
      are negative, NaN or don't sum to 1.
  """
  if isinstance(policy, HasArray) and (array := policy.probabilities_in(compiled)) is not None:
    # This avoids the names of infosets, of which large games have millions.
    return np.array(array, np.float64)
  check_game(compiled, *(policy if isinstance(policy, list | tuple) else [policy]))
  return from_entries(
    compiled,
    np.concatenate(
      [
        read_entries(compiled, each, player)
        for player, each in enumerate(one_per_player(policy, compiled.num_players))
      ]
    ),
  )


def one_per_player(policy: AnyPolicy, num_players: int) -> Sequence[AnyPolicy]:
  """Returns the policies of a list or tuple, or the same policy for all players, each by `policy_of`.

  Raises:
    PolicyError: the list has another length.
  """
  if not isinstance(policy, list | tuple):
    return [policy_of(policy)] * num_players
  if len(policy) != num_players:
    raise errors.PolicyError(
      f"There are {len(policy)} policies for a game of {num_players} players. Give one a player."
    )
  return [policy_of(each) for each in policy]


def from_entries(compiled: CompiledGame, entries: Float64s) -> Float64s:
  """Returns the behavioral form of the probabilities of all actions of all infosets, in order of discovery.

  Raises:
    PolicyError: they are no distributions, or differ at merged infosets.
  """
  _check_distributions(compiled, entries)
  result = compiled.from_actions(entries)
  differs = np.abs(compiled.to_actions(result) - entries) > _TOLERANCE
  if differs.any():
    row = int(compiled.action_cells[0][np.flatnonzero(differs)[0]])
    raise errors.PolicyError(
      f"At infostate {_name(compiled, row)!r} the policy differs from that at other infostates of the same bucket. "
      "Read it for the full game, `original`."
    )
  return result


def read_entries(compiled: CompiledGame, policy: AnyPolicy, player: int) -> Float64s:
  """Returns the unchecked probabilities of all actions of a player's infosets, in order of discovery.

  Raises:
    PolicyError: `policy` is no policy, or has no numbers for an infoset.
  """
  infostates = compiled.infostates[player]
  if isinstance(policy, open_spiel_policy.TabularPolicy):
    array = policy.action_probability_array
    lookup = policy.state_lookup
    names = _known_names(
      compiled, player, _names(compiled, policy, player), lookup,
      lambda name: enumerate(array[lookup[name]]),
    )  # fmt: skip
    rows = np.array([_find(lookup.__getitem__, key) for key in names], np.int64)
    try:
      entries: Float64s = np.asarray(
        array[np.repeat(rows, compiled.num_actions[player]), compiled.actions[player]], np.float64
      )
    except (TypeError, ValueError, IndexError) as error:
      raise errors.PolicyError(
        f"The policy's action_probability_array, of shape {np.shape(array)}, does not have a number "
        f"for each of the {len(rows)} infosets of player {player} and {compiled.num_distinct_actions} actions. "
        "It is for another game."
      ) from error
    return entries
  distributions: Iterable[Any]
  if isinstance(policy, pyspiel.TabularPolicy):
    # Each call copies the whole table.
    policy = policy.policy_table()
  if isinstance(policy, Mapping):
    names = _known_names(compiled, player, infostates, policy, policy.__getitem__)
    distributions = (_find(policy.__getitem__, key) for key in names)
  elif isinstance(policy, pyspiel.Policy):
    distributions = (policy.get_state_policy(state) for state in compiled.first_states(player))
  elif isinstance(policy, open_spiel_policy.Policy):
    distributions = (policy.action_probabilities(state) for state in compiled.first_states(player))
  elif isinstance(policy, pyspiel.Bot) and policy.provides_policy():
    distributions = (_bot_policy(policy, state) for state in compiled.first_states(player))
  else:
    raise errors.PolicyError(
      f"{arguments.shortened(policy)} is not a policy. Give an OpenSpiel policy, in Python or C++, a dictionary "
      "infostate -> {action: probability}, a solver, or its result."
    )
  result: list[float] = []
  counts = compiled.num_actions[player].tolist()
  actions = iter(compiled.actions[player].tolist())
  for distribution, count, infostate in zip(distributions, counts, infostates, strict=True):
    chances = _chances(distribution, infostate)
    legal = [next(actions) for _ in range(count)]
    result += [chances.pop(action, 0.0) for action in legal]
    illegal = sorted(action for action, chance in chances.items() if chance)
    if illegal:
      raise errors.PolicyError(
        f"At infostate {infostate!r} the policy plays {illegal}, which are not among the legal actions {legal}; the "
        "game's action filter may have removed them."
      )
  return np.array(result, np.float64)


def _chances(distribution: Any, infostate: str) -> dict[int, float]:
  """Returns action -> probability for an entry of a policy."""
  try:
    return {int(action): float(chance) for action, chance in dict(distribution).items()}
  except (TypeError, ValueError, OverflowError):
    raise errors.PolicyError(
      f"At infostate {infostate!r} the policy has {distribution!r} instead of a probability for "
      "each action."
    ) from None


def call_bot(method: Callable[..., Any], state: Any, *more: Any) -> Any:
  """Returns the result of a bot's method; any exception becomes a PolicyError that names the history."""
  try:
    return method(state, *more)
  except errors.SpielCFRError:
    raise
  except Exception as error:
    name = getattr(method, "__name__", "")
    if isinstance(error, RuntimeError) and "not implemented" in str(error).lower():
      raise errors.PolicyError(
        f"The bot {getattr(method, '__self__', method)!r} has no method {name}(state), which matches and evaluations "
        "need. It may do nothing."
      ) from error
    raise errors.PolicyError(
      f"After the history [{state.history_str()}] the policy has raised {type(error).__name__}: {error}. "
      f"The state is of {state.get_game()}."
    ) from error


def _bot_policy(bot: pyspiel.Bot, state: Any) -> Any:
  """Returns the distribution of a bot at a state; the bot is restarted there, because it may have a memory."""
  call_bot(bot.restart_at, state)
  distribution = call_bot(bot.get_policy, state)
  if not distribution:
    raise errors.PolicyError(
      f"{bot!r} has no policy for player {state.current_player()} after the history [{state.history_str()}]. A bot "
      "plays as one player: give a list of bots, one a player."
    )
  return distribution


def _names(
  compiled: CompiledGame, policy: open_spiel_policy.TabularPolicy, player: int
) -> Sequence[str]:
  """Returns a tabular policy's names of a player's infosets, in order of discovery."""
  kind, infostates = policy.game_type, compiled.infostates[player]
  if kind is None or kind.dynamics != pyspiel.GameType.Dynamics.SIMULTANEOUS:
    return infostates
  # OpenSpiel's turn-based version puts a line before the simultaneous game's names.
  return [infostate.partition("\n")[2] for infostate in infostates]


def _known_names(
  compiled: CompiledGame,
  player: int,
  names: Sequence[str],
  table: Container[str],
  entry: Callable[[str], Any],
) -> Iterable[str]:
  """Returns the names of a player's infosets that a table has: those of the game, or else OpenSpiel's.

  Args:
    compiled: the game.
    player: the player.
    names: the names of the game.
    table: the names of the table.
    entry: returns the distribution of a name of the table.

  Raises:
    PolicyError: OpenSpiel has several names for an infoset, and the table has different distributions for them.
  """
  if not len(names) or names[0] in table or not _has_other_names(compiled):
    return names
  states = compiled.first_states(player)
  if _open_spiel_name(states[0]) not in table:
    return names
  choice = random.Random(0)
  for place in range(0, len(states), -(-len(states) // _COMPARED)):
    state = states[place]
    name = _open_spiel_name(state)
    for _ in range(_TRIES):
      other = other_state(compiled.view, state, choice)
      alias = name if other is None else _open_spiel_name(other)
      if alias == name or name not in table or alias not in table:
        continue
      first, second = (_chances(entry(each), each) for each in (name, alias))
      if any(abs(first.get(a, 0.0) - second.get(a, 0.0)) > _TOLERANCE for a in first | second):
        raise errors.PolicyError(
          f"The infostates {name!r} and {alias!r} are one infoset of {compiled.name} as it was compiled, but the "
          f"policy plays {first} and {second} there. Compile a game whose players see what the policy does."
        )
  return map(_open_spiel_name, states)


def _has_other_names(compiled: CompiledGame) -> bool:
  """Returns whether the names of a game's infosets are others than OpenSpiel's."""
  try:
    return compiled.view.has_own_names
  except (errors.NoStatesError, errors.FileFormatError):
    return False


def _open_spiel_name(state: Any) -> str:
  return str(state.information_state_string())


def _name(compiled: CompiledGame, row: int) -> str:
  return next(itertools.islice(itertools.chain(*compiled.infostates), row, None))


def _find(look_up: Callable[[str], Any], infostate: str) -> Any:
  try:
    return look_up(infostate)
  except KeyError:
    raise errors.PolicyError(
      f"The policy has no probabilities for infostate {infostate!r}. It is incomplete, or for "
      "another game."
    ) from None


def _check_distributions(compiled: CompiledGame, entries: Float64s) -> None:
  """Raises PolicyError unless the entries of each infoset are a distribution."""
  counts = np.concatenate(compiled.num_actions)
  if not len(counts):
    return
  starts = np.cumsum(counts) - counts
  # Numbers that are no probabilities become 2, so that no sum with them is 1.
  chances = np.where((entries >= 0) & (entries <= 1 + _TOLERANCE), entries, 2.0)
  is_wrong = np.abs(np.add.reduceat(chances, starts) - 1) > _TOLERANCE
  if is_wrong.any():
    row = int(np.flatnonzero(is_wrong)[0])
    infostate = _name(compiled, row)
    probabilities = entries[starts[row] : starts[row] + counts[row]].tolist()
    raise errors.PolicyError(
      f"At infostate {infostate!r} the policy's probabilities are {probabilities}; they must be "
      "non-negative and sum to 1."
    )
