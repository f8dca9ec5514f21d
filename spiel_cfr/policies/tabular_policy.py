"""OpenSpiel's tabular policy, made from a compiled game: what `average_policy()` returns."""

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel import checked_calls


class LivePolicy(NamedTuple):
  """The source of a policy that changes as its solver runs, as policies of OpenSpiel's solvers do.

  Attributes:
    probabilities: function. It returns the solver's present policy in behavioral form, shape (sequences,).
    version: function. Its result changes whenever the policy may have changed. If it is None, only `refresh` updates
      the policy.
  """

  probabilities: Callable[[], Float64s]
  version: Callable[[], Hashable] | None


class CompiledTabularPolicy(open_spiel_policy.TabularPolicy):  # type: ignore[misc]
  """OpenSpiel's `TabularPolicy`, made from a compiled game without walking the states again.

  Rows of `action_probability_array` are in OpenSpiel's order. `states` and `state_in` keep a state of every infoset in
  memory, and are made at first use. For a game made of arrays, `game` and `game_type` are None, and methods that need
  states fail.

  A live policy follows its solver: every method reads `action_probability_array`, and reading it updates the policy.
  Values written to the array are lost with the solver's next iteration, and never reach the solver. Copies of a live
  policy do not change.
  """

  @typed
  def __init__(self, compiled: CompiledGame, probabilities: Float64s | LivePolicy) -> None:
    """Makes the policy.

    Args:
      compiled: the game.
      probabilities: the policy in behavioral form, shape (sequences,), which is copied; or the live policy of a solver.

    Raises:
      PolicyError: two players share an information state string.
    """
    # The constructor of OpenSpiel's TabularPolicy walks the game, so only that of its base class is called.
    players = list(range(compiled.num_players))
    try:
      game, self.game_type = compiled.view.open_spiel_game(), compiled.game.get_type()
    except errors.NoStatesError:
      game = self.game_type = None
    open_spiel_policy.Policy.__init__(self, game, players)
    self._compiled = compiled
    self.state_lookup = dict(compiled.table_rows)
    self.states_per_player = [list(infostates) for infostates in compiled.infostates]
    self.legal_actions_mask = compiled.legal_actions_mask
    self._array = np.zeros(self.legal_actions_mask.shape)
    self._source = None
    if isinstance(probabilities, LivePolicy):
      self._source = probabilities
      self.refresh()
    else:
      self._fill(probabilities)

  @property
  def compiled_game(self) -> CompiledGame:
    """The compiled game."""
    return self._compiled

  def _fill(self, probabilities: Float64s) -> None:
    """Writes a policy in behavioral form into `action_probability_array`; illegal actions get 0."""
    self._array[:] = 0.0
    self._array[self._compiled.action_cells] = self._compiled.to_actions(probabilities)

  def refresh(self) -> None:
    """Updates the probabilities of a live policy in place."""
    if self._source is not None:
      find_version = self._source.version
      version = None if find_version is None else find_version()
      self._fill(self._source.probabilities())
      # The version is set after the array. Otherwise a call after an error, or in another thread, would skip the
      # update.
      self._version = version

  @property
  def action_probability_array(self) -> npt.NDArray[np.float64]:
    """The probabilities, shape (infosets, actions). Every call returns the same array."""
    find_version = None if self._source is None else self._source.version
    if find_version is not None and self._version != find_version():
      self.refresh()
    return self._array

  @action_probability_array.setter
  def action_probability_array(self, array: npt.NDArray[np.float64]) -> None:
    # A live policy writes into its array, so it takes a copy.
    self._array = array if self._source is None else np.array(array)

  def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
    """Returns action -> probability; as in OpenSpiel, {0: 1.0} for a player without actions.

    Raises:
      PolicyError: no `player_id` is given and no player is to move, or the state is not in the compiled game.
    """
    player = (
      player_to_move(state)
      if player_id is None
      else arguments.integer(player_id, "player_id", 0, self._compiled.num_players - 1)
    )
    if not checked_calls.legal_actions(state, player):
      return {0: 1.0}
    infostate, actions = self._compiled.view.look_up(state, player)
    row = self.state_lookup.get(infostate)
    if row is None:
      raise errors.PolicyError(
        f"The state after the history [{state.history_str()}] is not in the game that was compiled, {self.game}; its "
        "action filter may have removed an action that leads there."
      )
    probabilities = self.action_probability_array[row]
    # The state may belong to a game with more actions.
    return {action: probabilities[action] for action in actions if action < len(probabilities)}

  def _state_key(self, state: Any, player: int | None) -> str:
    """Returns the name of the state's infoset, by which OpenSpiel's class looks up rows."""
    if player in (None, state.current_player()) or state.is_simultaneous_node():
      return self._compiled.view.look_up(state, player)[0]
    name: str = state.information_state_string(player)
    return name

  @functools.cached_property
  def states(self) -> list[Any]:
    """One state of each row's infoset: the first in the order of histories."""
    return list(self._compiled.first_states())

  @functools.cached_property
  def state_in(self) -> npt.NDArray[np.float64] | None:
    """The information state tensor of each row, or its observation tensor; None if the game has neither."""
    states = self.states
    if self.game_type.provides_information_state_tensor:
      return np.array([state.information_state_tensor() for state in states])
    if self.game_type.provides_observation_tensor:
      return np.array([state.observation_tensor() for state in states])
    return None

  def __copy__(self, copy_action_probability_array: bool = True) -> "CompiledTabularPolicy":
    """Returns a copy that does not change with the solver. The copies share everything except the probabilities."""
    result = CompiledTabularPolicy.__new__(CompiledTabularPolicy)
    result.__dict__.update(self.__dict__, _source=None)
    del result._array
    if copy_action_probability_array:
      result._array = self.action_probability_array.copy()
    return result

  def __deepcopy__(self, memo: Any) -> "CompiledTabularPolicy":
    """Returns a copy that shares the game; OpenSpiel can't load all games again from their strings."""
    return self.__copy__()

  def __reduce__(self) -> Any:
    """Pickles the compiled game instead of OpenSpiel's, which may not load again from its string."""
    return _restored, (self._compiled, self.action_probability_array)


def _restored(
  compiled: CompiledGame, action_probability_array: npt.NDArray[np.float64]
) -> CompiledTabularPolicy:
  result = CompiledTabularPolicy(compiled, np.zeros(compiled.end))
  result.action_probability_array = action_probability_array
  return result


def player_to_move(state: Any, player_id: int | None = None) -> int:
  """Returns the player to move at a state; where all players move at once, `player_id`.

  Raises:
    PolicyError: no player is to move, `player_id` is not to move, or all players move and `player_id` is None.
    ArgumentError: `player_id` is not an integer, or, where all players move, not a player.
  """
  if player_id is not None:
    player_id = arguments.integer(player_id, "player_id")
  player = checked_calls.current_player(state)
  if state.is_simultaneous_node():
    if player_id is None:
      raise errors.PolicyError(
        f"At the history [{state.history_str()}] all players move at once: give the player as player_id."
      )
    return arguments.integer(player_id, "player_id", 0, state.num_players() - 1)
  if player < 0 or player_id not in (None, player):
    mover = f"player {player}" if player >= 0 else "a terminal or chance node, no player"
    raise errors.PolicyError(
      f"A policy was asked for at the history [{state.history_str()}], where it is {mover} to move."
    )
  return player
