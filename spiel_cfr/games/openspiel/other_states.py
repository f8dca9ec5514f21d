"""Random states of an infoset, for checks that something is the same at all of its states."""

import random
from typing import Any

from spiel_cfr.games.openspiel.game_view import GameView


def other_state(view: GameView, state: Any, choice: random.Random) -> Any | None:
  """Returns a state of the same infoset in which chance and the other players have made other moves.

  Args:
    view: the game.
    state: a state at which a player moves.
    choice: the source of these moves.

  Returns:
    The state, which may be equal to the first one; None if the player would notice the moves.
  """
  player = state.current_player()
  own = [move.action for move in state.full_history() if move.player == player]
  result = view.new_initial_state()
  while not result.is_terminal():
    mover = result.current_player()
    if mover == player and not own:
      return result if view.infostate(result) == view.infostate(state) else None
    if result.is_chance_node():
      moves = [action for action, _ in view.chance_outcomes(result)]
    else:
      moves = view.legal_actions(result)
    move = own.pop(0) if mover == player else choice.choice(moves)
    if move not in moves:
      return None
    result.apply_action(move)
  return None
