"""A state of every infoset: the first in the order of histories, as in OpenSpiel's `TabularPolicy`."""

from collections.abc import Sequence
from typing import Any

from spiel_cfr import errors
from spiel_cfr.games.openspiel.game_view import GameView


def first_states(view: GameView, infostates: Sequence[Sequence[str]]) -> list[Any]:
  """Walks a game until the first state of every infoset is found.

  Args:
    view: the game.
    infostates: each player's, as `enumerate_game` returns them.

  Returns:
    The states, player by player in the order of `infostates`.

  Raises:
    InconsistentInfosetError: the game has no such infostate.
  """
  found: list[dict[str, Any]] = [dict.fromkeys(own) for own in infostates]
  missing = sum(map(len, infostates))
  stack = [view.new_initial_state()]
  while missing and stack:
    state = stack.pop()
    if state.is_terminal():
      continue
    if state.is_chance_node():
      actions = [action for action, _ in view.chance_outcomes(state)]
    else:
      actions = view.legal_actions(state)
      known = found[state.current_player()]
      infostate = view.infostate(state)
      if infostate in known and known[infostate] is None:
        known[infostate] = state
        missing -= 1
    stack.extend(state.child(action) for action in sorted(actions, key=str, reverse=True))
  for player, states in enumerate(found):
    for infostate, state in states.items() if missing else ():
      if state is None:
        raise errors.InconsistentInfosetError(
          f"{view.game} has no infostate {infostate!r} of player {player}."
        )
  return [state for states in found for state in states.values()]
