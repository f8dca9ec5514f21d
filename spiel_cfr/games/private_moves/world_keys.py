"""Keys of worlds: functions of OpenSpiel's states that are equal for histories with the same future.

A *world* is a core and what each player has seen. The *core* is the true state, such as the board, and the player to
move. Several keys are tried in turn, because the strings of some games lack the number of moves, and other games have
no observation strings.
"""

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from spiel_cfr.games.openspiel.checked_calls import guarded

CoreKey: TypeAlias = Callable[[Any], Hashable]
SeenKey: TypeAlias = Callable[[Any, int], Hashable]


@dataclasses.dataclass(frozen=True)
class WorldKeys:
  """The two functions that identify a world.

  Attributes:
    core: function of a state. It returns a hashable core, without the player to move, which the library adds.
    seen: function of a state and a player. It returns what the player has seen, a hashable value. At the player's
      decisions, this must determine the legal actions. Together with the player's earlier decisions and actions, it
      must determine the infoset.
    name: str. The keys in words, for error messages.
  """

  core: CoreKey
  seen: SeenKey
  name: str

  def __str__(self) -> str:
    return self.name


def checked(keys: WorldKeys) -> WorldKeys:
  """Returns keys that raise UnsupportedGameError with the history if the given ones raise, or are not hashable."""
  return WorldKeys(guarded(keys.core, _hashable), guarded(keys.seen, _hashable), keys.name)


def _hashable(_: Any, key: Any) -> Any:
  hash(key)
  return key


def _board(state: Any) -> Hashable:
  return str(state)


def _board_and_moves(state: Any) -> Hashable:
  return str(state), state.move_number()


def _observation(state: Any, player: int) -> Hashable:
  return str(state.observation_string(player))


def _observation_and_moves(state: Any, player: int) -> Hashable:
  return state.observation_string(player), state.move_number()


def _information(state: Any, player: int) -> Hashable:
  return str(state.information_state_string(player))


# The coarsest keys come first: fewer cores and sights make a smaller compiled game.
_BY_OBSERVATIONS = (
  WorldKeys(_board, _observation, "str(state), and observation strings"),
  WorldKeys(
    _board_and_moves, _observation, "str(state) with the number of moves, and observation strings"
  ),
  WorldKeys(
    _board_and_moves,
    _observation_and_moves,
    "str(state) and observation strings, both with the number of moves",
  ),
)
_BY_INFORMATION = (WorldKeys(_board, _information, "str(state), and information state strings"),)


def candidates(game: Any) -> tuple[WorldKeys, ...]:
  """Returns the keys that are tried on an OpenSpiel game, in order. A game must have the strings that its keys use."""
  game_type = game.get_type()
  return _BY_OBSERVATIONS * bool(game_type.provides_observation_string) + _BY_INFORMATION * bool(
    game_type.provides_information_state_string
  )
