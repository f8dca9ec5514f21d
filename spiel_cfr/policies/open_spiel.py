"""Between the arrays of the solvers and OpenSpiel's policies, both ways."""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyspiel
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame

PolicyDict = dict[str, dict[int, float]]
# How far the probabilities at an infoset may sum from 1.
_TOLERANCE = 1e-6


class CompiledTabularPolicy(open_spiel_policy.TabularPolicy):  # type: ignore[misc]
  """OpenSpiel's `TabularPolicy`, made from a compiled game without walking the states again.

  Rows of `action_probability_array` are in OpenSpiel's own order. `states` and `state_in`, which few programs use and
  which keep a state of every infoset in memory, are made when they are first asked for. `game` and `game_type` are None
  for a game that was made of arrays: then only what needs no states works.
  """

  def __init__(self, compiled: CompiledGame, probabilities: Float64s) -> None:
    """Makes the policy.

    Args:
      compiled: the game.
      probabilities: behavioural form, shape (sequences,); copied.

    Raises:
      PolicyError: two players share an information state string.
    """
    # The base class's own constructor would walk the game.
    players = list(range(compiled.num_players))
    try:
      game, self.game_type = compiled.view.open_spiel_game(), compiled.game.get_type()
    except errors.NoStatesError:
      game = self.game_type = None
    open_spiel_policy.Policy.__init__(self, game, players)
    self._compiled = compiled
    self.state_lookup = dict(compiled.rows)
    self.states_per_player = [list(infostates) for infostates in compiled.infostates]
    self.legal_actions_mask = compiled.legal_actions_mask
    array = np.zeros(self.legal_actions_mask.shape)
    self._fill(array, probabilities)
    self.action_probability_array = array

  @property
  def compiled_game(self) -> CompiledGame:
    """The game as arrays."""
    return self._compiled

  def _fill(self, array: npt.NDArray[np.float64], probabilities: Float64s) -> None:
    """Writes a behavioural form into an array of OpenSpiel's shape; what is no legal action becomes 0."""
    array[:] = 0.0
    array[self._compiled.action_cells] = self._compiled.to_actions(probabilities)

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability; as in OpenSpiel, {0: 1.0} for a player who has no actions.

    Raises:
      PolicyError: no `player_id` is given and no player is to move, or the state is not in the compiled game.
    """
    player = (
      player_to_move(state)
      if player_id is None
      else arguments.integer(player_id, "player_id", 0, self._compiled.num_players - 1)
    )
    if not state.legal_actions(player):
      return {0: 1.0}
    infostate, actions = self._compiled.view.look_up(state, player)
    row = self.state_lookup.get(infostate)
    if row is None:
      raise errors.PolicyError(
        f"The state after the history [{state.history_str()}] is not in the game that was compiled, {self.game}; its "
        "action filter may have removed an action that leads there."
      )
    chances = self.action_probability_array[row]
    # The state may be of a game that has more actions.
    return {action: chances[action] for action in actions if action < len(chances)}

  def _state_key(self, state: Any, player: int | None) -> str:
    """Returns the name of the state's infoset; OpenSpiel's class looks rows up by it."""
    if player in (None, state.current_player()) or state.is_simultaneous_node():
      return self._compiled.view.look_up(state, player)[0]
    name: str = state.information_state_string(player)
    return name

  @functools.cached_property
  def states(self) -> list[Any]:
    """One state of each row's infoset: the first in the order of histories."""
    return self._compiled.first_states()

  @functools.cached_property
  def state_in(self) -> npt.NDArray[np.float64] | None:
    """Each row's information state tensor, or observation tensor, or None if the game has neither."""
    states = self.states
    if self.game_type.provides_information_state_tensor:
      return np.array([state.information_state_tensor() for state in states])
    if self.game_type.provides_observation_tensor:
      return np.array([state.observation_tensor() for state in states])
    return None

  def __copy__(self, copy_action_probability_array: bool = True) -> "CompiledTabularPolicy":
    """Returns a copy that shares all but the probabilities, which may be left out."""
    result = CompiledTabularPolicy.__new__(CompiledTabularPolicy)
    result.__dict__.update(self.__dict__)
    result.__dict__.pop("action_probability_array", None)
    if copy_action_probability_array:
      result.action_probability_array = self.action_probability_array.copy()
    return result

  def __deepcopy__(self, memo: Any) -> "CompiledTabularPolicy":
    """Returns a copy of the same game, which OpenSpiel would load from its string, and can't where that is no name."""
    return self.__copy__()

  def __reduce__(self) -> Any:
    """Pickles the compiled game, which knows whether OpenSpiel can make the game of its string."""
    return _restored, (self._compiled, self.action_probability_array)


def _restored(
  compiled: CompiledGame, action_probability_array: npt.NDArray[np.float64]
) -> CompiledTabularPolicy:
  result = CompiledTabularPolicy(compiled, np.zeros(compiled.end))
  result.action_probability_array = action_probability_array
  return result


def player_to_move(state: Any, player_id: int | None = None) -> int:
  """Returns who a policy is asked about at a state.

  Raises:
    PolicyError: no player is to move, or another one is.
  """
  player: int = state.current_player()
  if state.is_simultaneous_node():
    if player_id is None or player_id not in range(state.num_players()):
      raise errors.PolicyError(
        f"At the history [{state.history_str()}] all players move at once: say whose policy is asked for, "
        f"with player_id, not {player_id!r}."
      )
    return int(player_id)
  if player < 0 or player_id not in (None, player):
    mover = f"player {player}" if player >= 0 else "a terminal or chance node, no player"
    raise errors.PolicyError(
      f"A policy was asked for at the history [{state.history_str()}], where it is {mover} to move."
    )
  return player


def to_dict(compiled: CompiledGame, probabilities: Float64s) -> PolicyDict:
  """Returns a behavioural form as infostate -> action -> probability.

  Raises:
    PolicyError: two players share an information state string.
  """
  actions = iter(np.concatenate(compiled.actions).tolist())
  chances = iter(compiled.to_actions(probabilities).tolist())
  counts = np.concatenate(compiled.num_actions).tolist()
  return {
    infostate: {next(actions): next(chances) for _ in range(count)}
    for infostate, count in zip(compiled.rows, counts, strict=True)
  }


def to_pyspiel(compiled: CompiledGame, probabilities: Float64s) -> pyspiel.TabularPolicy:
  """Returns a behavioural form as OpenSpiel's C++ tabular policy.

  Raises:
    PolicyError: two players share an information state string.
  """
  table = to_dict(compiled, probabilities)
  return pyspiel.TabularPolicy(
    {infostate: list(entries.items()) for infostate, entries in table.items()}
  )


# What can be read as a policy: OpenSpiel's in Python or C++, a dictionary, a bot, a solver, what a solver has found; or
# one of these for each player.
AnyPolicy = Any


def policy_of(given: Any) -> Any:
  """Returns the policy of a solver, the average one, or of what has been found; anything else as it is."""
  if callable(getattr(given, "average_policy", None)):
    return given.average_policy()
  found = getattr(given, "policy", None)
  return found if hasattr(found, "action_probabilities") else given


def from_policy(compiled: CompiledGame, policy: AnyPolicy) -> Float64s:
  """Reads any policy into behavioural form.

  Args:
    compiled: the game.
    policy: an OpenSpiel policy, in Python or in C++; a mapping from infostates to mappings from actions to
      probabilities, or to lists of (action, probability), where actions left out have probability 0; a bot that
      provides its policy; a solver, or what `solve` and its like return; or a list or tuple of these, one per player,
      of which each has to know its player's infosets.

  Returns:
    Behavioural form, shape (sequences,).

  Raises:
    PolicyError: the policy has no probabilities for an infoset, which is so when it is for another game, or they are
      negative, NaN or don't sum to 1.
  """
  known = getattr(policy, "__dict__", {}).get("compiled_game")
  if known is compiled or (known is not None and known.digest == compiled.digest):
    # What was found for this game need not name infosets, of which large games have millions.
    if hasattr(policy, "average_probabilities"):
      return np.array(policy.average_probabilities(), np.float64)
    if hasattr(policy, "probabilities"):
      return np.array(policy.probabilities, np.float64)
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
      f"There are {len(policy)} policies for a game of {num_players} players."
    )
  return [policy_of(each) for each in policy]


def from_entries(compiled: CompiledGame, entries: Float64s) -> Float64s:
  """Returns the behavioural form of probabilities of every action of every infoset, in order of discovery.

  Raises:
    PolicyError: they are no distributions, or differ where infosets of the game are one.
  """
  _check(compiled, entries)
  result = compiled.from_actions(entries)
  apart = np.abs(compiled.to_actions(result) - entries) > _TOLERANCE
  if apart.any():
    row = int(compiled.action_cells[0][np.flatnonzero(apart)[0]])
    raise errors.PolicyError(
      f"At infostate {_name(compiled, row)!r} the policy does not play as at others of the same bucket. "
      "Read it for the full game, `original`."
    )
  return result


def read_entries(compiled: CompiledGame, policy: AnyPolicy, player: int) -> Float64s:
  """Returns the probability of every action of a player's infosets, unchecked, in order of discovery.

  Raises:
    PolicyError: it is no policy, or has no numbers for an infoset.
  """
  infostates = compiled.infostates[player]
  if isinstance(policy, open_spiel_policy.TabularPolicy):
    array = policy.action_probability_array
    rows = np.array(
      [_find(policy.state_lookup.__getitem__, key) for key in _names(compiled, policy, player)],
      np.int64,
    )
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
    distributions = (_find(policy.__getitem__, key) for key in infostates)
  elif isinstance(policy, pyspiel.Policy):
    distributions = (policy.get_state_policy(state) for state in compiled.first_states(player))
  elif isinstance(policy, open_spiel_policy.Policy):
    distributions = (policy.action_probabilities(state) for state in compiled.first_states(player))
  elif isinstance(policy, pyspiel.Bot) and policy.provides_policy():
    distributions = (_told(policy, state) for state in compiled.first_states(player))
  else:
    raise errors.PolicyError(
      f"{arguments.shortened(policy)} is not a policy. Give one of OpenSpiel's, in Python or C++, a dictionary "
      "infostate -> {action: probability}, a solver, or what it has found."
    )
  result: list[float] = []
  counts = compiled.num_actions[player].tolist()
  actions = iter(compiled.actions[player].tolist())
  for distribution, count, infostate in zip(distributions, counts, infostates, strict=True):
    try:
      chances = {int(action): float(chance) for action, chance in dict(distribution).items()}
    except (TypeError, ValueError, OverflowError):
      raise errors.PolicyError(
        f"At infostate {infostate!r} the policy has {distribution!r} instead of a probability for "
        "each action."
      ) from None
    legal = [next(actions) for _ in range(count)]
    result += [chances.pop(action, 0.0) for action in legal]
    illegal = sorted(action for action, chance in chances.items() if chance)
    if illegal:
      raise errors.PolicyError(
        f"At infostate {infostate!r} the policy plays {illegal}, which are not among the legal actions {legal}; the "
        "game's action filter may have removed them."
      )
  return np.array(result, np.float64)


def _told(bot: pyspiel.Bot, state: Any) -> Any:
  """Returns the policy of a bot, which may remember how it came to a state."""
  bot.restart_at(state)
  told = bot.get_policy(state)
  if not told:
    raise errors.PolicyError(
      f"{bot!r} says nothing of what player {state.current_player()} does after the history [{state.history_str()}]. A "
      "bot plays as one player: give a list of them, in order."
    )
  return told


def _names(
  compiled: CompiledGame, policy: open_spiel_policy.TabularPolicy, player: int
) -> Iterable[str]:
  """Returns what a tabular policy calls a player's infosets, in order of discovery."""
  kind, infostates = policy.game_type, compiled.infostates[player]
  if kind is None or kind.dynamics != pyspiel.GameType.Dynamics.SIMULTANEOUS:
    return infostates
  # The turn-based version puts a line before the names that they have where moves are simultaneous.
  return [infostate.partition("\n")[2] for infostate in infostates]


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


def _check(compiled: CompiledGame, entries: Float64s) -> None:
  """Checks that the entries of each infoset are a probability vector."""
  counts = np.concatenate(compiled.num_actions)
  if not len(counts):
    return
  starts = np.cumsum(counts) - counts
  # Anything that is no probability becomes one that no sum can make good.
  chances = np.where((entries >= 0) & (entries <= 1 + _TOLERANCE), entries, 2.0)
  bad = np.abs(np.add.reduceat(chances, starts) - 1) > _TOLERANCE
  if bad.any():
    worst = int(np.flatnonzero(bad)[0])
    infostate = _name(compiled, worst)
    probabilities = entries[starts[worst] : starts[worst] + counts[worst]].tolist()
    raise errors.PolicyError(
      f"At infostate {infostate!r} the policy's probabilities are {probabilities}; they must be "
      "non-negative and sum to 1."
    )
