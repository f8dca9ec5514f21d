"""Infostates made of a player's own history, for games without infostates or with players who forget."""

from typing import Any, TypeAlias

import pyspiel

from spiel_cfr import errors
from spiel_cfr.games.openspiel import answers

_Step: TypeAlias = tuple[int, Any, tuple[str, ...], tuple[str, ...]]


class OwnHistory:
  """Infostates made of their owner's observations and actions in order, which gives perfect recall.

  A player observes at each decision of any player. An observation equal to the previous one is left out; otherwise
  players would learn the number of moves that they have not seen.

  A call takes one step of the game if consecutive states follow one another, as in a walk.
  """

  def __init__(self, game: pyspiel.Game) -> None:
    """Takes a sequential game.

    Raises:
      NoInformationStateError: the game has no strings of what a player observes.
    """
    kind = game.get_type()
    # A player who forgets still observes everything once, so that information states serve too.
    self._observation_method = "observation_string"
    if not kind.provides_observation_string:
      self._observation_method = "information_state_string"
    if not (kind.provides_observation_string or kind.provides_information_state_string):
      raise errors.NoInformationStateError(
        f"{kind.short_name} has no observation strings, of which to make a history; pass compile_game, as "
        "infostate, a function of state and player."
      )
    self._game = game
    # The last history that was asked for: for each action, the state after it, and each player's history and
    # observation.
    self._path: list[_Step] = []

  def __reduce__(self) -> tuple[Any, ...]:
    """Copies and pickles without the states."""
    return OwnHistory, (self._game,)

  def __call__(self, state: Any, player: int) -> str:
    """Returns the infostate of the player to move at a state."""
    history, path = state.history(), self._path
    if not path:
      root = self._game.new_initial_state()
      names = tuple(f"Player {player}" for player in range(self._game.num_players()))
      path.append((-1, root, *self._observed(root, names, ("",) * len(names))))
    num_shared = 0
    for action, entry in zip(history, path[1:], strict=False):
      if action != entry[0]:
        break
      num_shared += 1
    del path[num_shared + 1 :]
    for action in history[num_shared:]:
      _, before, names, observations = path[-1]
      mover = before.current_player()
      if mover >= 0:
        done = f"{names[mover]}\n> {answers.word(before, mover, action)}"
        names = (*names[:mover], done, *names[mover + 1 :])
      after = before.child(action)
      path.append((action, after, *self._observed(after, names, observations)))
    name: str = path[-1][2][player]
    return name

  def _observed(
    self, state: Any, names: tuple[str, ...], observations: tuple[str, ...]
  ) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Adds each player's observation at a state to its history."""
    if state.current_player() < 0:
      return names, observations
    seen = tuple(getattr(state, self._observation_method)(player) for player in range(len(names)))
    added = tuple(
      name if new == old else f"{name}\n{new}"
      for name, new, old in zip(names, seen, observations, strict=True)
    )
    return added, seen


def check_infostate(infostate: Any) -> None:
  """Raises ArgumentError if names of infostates are neither "history" nor a function; None is OpenSpiel's strings."""
  if infostate is not None and infostate != "history" and not callable(infostate):
    raise errors.ArgumentError(
      f'infostate must be "history" or a function of state and player, not {infostate!r}.'
    )
