"""OpenSpiel's tabular policy, made from the arrays of a compiled game."""

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel import answers


class MovingPolicy(NamedTuple):
  """A policy that moves with its solver, as those do that OpenSpiel's solvers hand out.

  Attributes:
    probabilities: returns the policy now, in behavioural form of shape (sequences,).
    version: returns another value whenever the policy may have changed; None if only `refresh` is to look.
  """

  probabilities: Callable[[], Float64s]
  version: Callable[[], Hashable] | None


class CompiledTabularPolicy(open_spiel_policy.TabularPolicy):  # type: ignore[misc]
  """OpenSpiel's `TabularPolicy`, made from a compiled game without walking the states again.

  Rows of `action_probability_array` are in OpenSpiel's own order. `states` and `state_in`, which few programs use and
  which keep a state of every infoset in memory, are made when they are first asked for. `game` and `game_type` are None
  for a game that was made of arrays: then only what needs no states works.

  A policy that moves is brought up to date when `action_probability_array` is asked for, as every method does. What is
  written into that array is lost with the next iteration, and never reaches the solver. Copies stay as they are.
  """

  @typed
  def __init__(self, compiled: CompiledGame, probabilities: Float64s | MovingPolicy) -> None:
    """Makes the policy.

    Args:
      compiled: the game.
      probabilities: behavioural form, shape (sequences,), which is copied; or that of a solver.

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
    self._array = np.zeros(self.legal_actions_mask.shape)
    self._source = None
    if isinstance(probabilities, MovingPolicy):
      self._source = probabilities
      self.refresh()
    else:
      self._fill(probabilities)

  @property
  def compiled_game(self) -> CompiledGame:
    """The game as arrays."""
    return self._compiled

  def _fill(self, probabilities: Float64s) -> None:
    """Writes a behavioural form into the array of OpenSpiel's shape; illegal actions get 0."""
    self._array[:] = 0.0
    self._array[self._compiled.action_cells] = self._compiled.to_actions(probabilities)

  def refresh(self) -> None:
    """Brings the probabilities of a policy that moves up to date, in place."""
    if self._source is not None:
      find_version = self._source.version
      version = None if find_version is None else find_version()
      self._fill(self._source.probabilities())
      # Not before the array is full: a call after an error, or in another thread, would take it for new.
      self._version = version

  @property
  def action_probability_array(self) -> npt.NDArray[np.float64]:
    """The probabilities, shape (infosets, actions): the same array every time."""
    find_version = None if self._source is None else self._source.version
    if find_version is not None and self._version != find_version():
      self.refresh()
    return self._array

  @action_probability_array.setter
  def action_probability_array(self, array: npt.NDArray[np.float64]) -> None:
    self._array = array

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
    if not answers.legal_actions(state, player):
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
    return list(self._compiled.first_states())

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
    """Returns a copy that stays as it is; it shares all but the probabilities, which may be left out."""
    result = CompiledTabularPolicy.__new__(CompiledTabularPolicy)
    result.__dict__.update(self.__dict__, _source=None)
    del result._array
    if copy_action_probability_array:
      result._array = self.action_probability_array.copy()
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
  """Returns the player whose policy is asked for at a state.

  Raises:
    PolicyError: no player is to move, or another one is.
  """
  player = answers.current_player(state)
  if state.is_simultaneous_node():
    if player_id is None:
      raise errors.PolicyError(
        f"At the history [{state.history_str()}] all players move at once: say whose policy is asked for, "
        f"with player_id."
      )
    return arguments.integer(player_id, "player_id", 0, state.num_players() - 1)
  if player < 0 or player_id not in (None, player):
    mover = f"player {player}" if player >= 0 else "a terminal or chance node, no player"
    raise errors.PolicyError(
      f"A policy was asked for at the history [{state.history_str()}], where it is {mover} to move."
    )
  return player
