"""Infostates of one's own making, for games that have none or whose players forget."""

from typing import Any, TypeAlias

import pyspiel

from spiel_cfr import errors

_Step: TypeAlias = tuple[int, Any, tuple[str, ...], tuple[str, ...]]


class OwnHistory:
  """Names of infosets made of their owner's observations and actions in order, which gives perfect recall.

  A player observes at each decision of any player; an observation equal to the one before it is left out, because
  otherwise players would learn how many moves they have not seen.

  A call costs a step of the game where the states asked for follow one another, as they do in a walk.
  """

  def __init__(self, game: pyspiel.Game) -> None:
    """Takes a sequential game.

    Raises:
      NoInformationStateError: the game has no strings of what a player observes.
    """
    kind = game.get_type()
    # What a player who forgets still knows can be noted while it is known.
    self._sees = "observation_string"
    if not kind.provides_observation_string:
      self._sees = "information_state_string"
    if not (kind.provides_observation_string or kind.provides_information_state_string):
      raise errors.NoInformationStateError(
        f"{kind.short_name} has no observation strings, of which to make a history; give compile_game, as "
        "infostate, a function of state and player."
      )
    self._game = game
    # Along the history asked for last: the action, the state after it, each player's history and last observation.
    self._path: list[_Step] = []

  def __reduce__(self) -> tuple[Any, ...]:
    """Copies and pickles without the states."""
    return OwnHistory, (self._game,)

  def __call__(self, state: Any, player: int) -> str:
    """Returns the name of the infoset of a player who is to move at a state."""
    history, path = state.history(), self._path
    if not path:
      root = self._game.new_initial_state()
      names = tuple(f"Player {player}" for player in range(self._game.num_players()))
      path.append((-1, root, *self._observed(root, names, ("",) * len(names))))
    known = 0
    for action, entry in zip(history, path[1:], strict=False):
      if action != entry[0]:
        break
      known += 1
    del path[known + 1 :]
    for action in history[known:]:
      _, before, names, observations = path[-1]
      mover = before.current_player()
      if mover >= 0:
        done = f"{names[mover]}\n> {before.action_to_string(mover, action)}"
        names = (*names[:mover], done, *names[mover + 1 :])
      after = before.child(action)
      path.append((action, after, *self._observed(after, names, observations)))
    name: str = path[-1][2][player]
    return name

  def _observed(
    self, state: Any, names: tuple[str, ...], observations: tuple[str, ...]
  ) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Adds what each player sees at a state."""
    if state.current_player() < 0:
      return names, observations
    seen = tuple(getattr(state, self._sees)(player) for player in range(len(names)))
    added = tuple(
      name if new == old else f"{name}\n{new}"
      for name, new, old in zip(names, seen, observations, strict=True)
    )
    return added, seen
