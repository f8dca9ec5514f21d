"""Infostates with perfect recall, made of a player's observations and actions: `infostate="history"`.

Use them for games without information state strings, and for games whose strings omit what a player has seen or done.
"""

from typing import Any, TypeAlias

import pyspiel

from spiel_cfr import errors
from spiel_cfr.games.openspiel import checked_calls

# The last action of a history, the state after it, and each player's infostate and last observation there.
_Step: TypeAlias = tuple[int, Any, tuple[str, ...], tuple[str, ...]]


class OwnHistory:
  """Function of a state and a player; returns all of the player's observations and actions, in order.

  A player makes an observation at each decision of any player. An observation equal to the previous one is left out.
  Otherwise players could count moves that they have not observed.

  The function keeps the last history that it was called with. In a walk, the next state is usually a child of the last
  one, so a call replays a single move.
  """

  def __init__(self, game: pyspiel.Game) -> None:
    """Takes a sequential game.

    Raises:
      NoInformationStateError: the game has neither observation strings nor information state strings.
    """
    game_type = game.get_type()
    # A string that forgets showed everything once. So a list of all information state strings forgets nothing, and they
    # can serve as observations.
    self._observation_method = "observation_string"
    if not game_type.provides_observation_string:
      self._observation_method = "information_state_string"
    if not (game_type.provides_observation_string or game_type.provides_information_state_string):
      raise errors.NoInformationStateError(
        f"{game_type.short_name} has no observation strings, of which a history could be made. Pass compile_game a "
        "function of state and player as infostate."
      )
    self._game = game
    # The last history that was asked for, from the root on.
    self._path: list[_Step] = []

  def __reduce__(self) -> tuple[Any, ...]:
    """Copies and pickles without the states."""
    return OwnHistory, (self._game,)

  def __call__(self, state: Any, player: int) -> str:
    """Returns a player's infostate at a state."""
    history, path = state.history(), self._path
    if not path:
      root = self._game.new_initial_state()
      names = tuple(f"Player {player}" for player in range(self._game.num_players()))
      path.append((-1, root, *self._with_observations(root, names, ("",) * len(names))))
    num_shared = 0
    for action, step in zip(history, path[1:], strict=False):
      if action != step[0]:
        break
      num_shared += 1
    del path[num_shared + 1 :]
    for action in history[num_shared:]:
      _, before, names, observations = path[-1]
      mover = before.current_player()
      if mover >= 0:
        with_action = f"{names[mover]}\n> {checked_calls.action_name(before, mover, action)}"
        names = (*names[:mover], with_action, *names[mover + 1 :])
      after = before.child(action)
      path.append((action, after, *self._with_observations(after, names, observations)))
    name: str = path[-1][2][player]
    return name

  def _with_observations(
    self, state: Any, names: tuple[str, ...], last_observations: tuple[str, ...]
  ) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the players' infostates, with their observations at a state added, and these observations."""
    if state.current_player() < 0:
      return names, last_observations
    observe = getattr(state, self._observation_method)
    observations = tuple(observe(player) for player in range(len(names)))
    longer = tuple(
      name if new == last else f"{name}\n{new}"
      for name, new, last in zip(names, observations, last_observations, strict=True)
    )
    return longer, observations


def check_infostate(infostate: Any) -> None:
  """Raises ArgumentError unless the argument `infostate` is None, "history" or a function."""
  # Comparing a game of OpenSpiel with a string would raise a TypeError.
  is_history = isinstance(infostate, str) and infostate == "history"
  if infostate is not None and not is_history and not callable(infostate):
    raise errors.ArgumentError(
      f'infostate must be "history" or a function of state and player, not {infostate!r}.'
    )
