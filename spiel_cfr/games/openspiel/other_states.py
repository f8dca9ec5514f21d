"""Random states of an infoset, to test whether a function has the same value at all of them."""

import random
from typing import Any

from spiel_cfr.games.openspiel.game_view import GameView


def other_state(view: GameView, state: Any, choice: random.Random) -> Any | None:
  """Returns a state of the same infoset, with random moves of chance and of the other players.

  Args:
    view: the game.
    state: a state at which a player moves.
    choice: the source of random moves.

  Returns:
    The state, which may be equal to the given one; None if the random moves lead to another infoset.
  """
  player = state.current_player()
  actions_left = [move.action for move in state.full_history() if move.player == player]
  result = view.new_initial_state()
  while not result.is_terminal():
    mover = result.current_player()
    if mover == player and not actions_left:
      return result if view.infostate(result) == view.infostate(state) else None
    if result.is_chance_node():
      moves = [action for action, _ in view.chance_outcomes(result)]
    else:
      moves = view.legal_actions(result)
    move = actions_left.pop(0) if mover == player else choice.choice(moves)
    if move not in moves:
      return None
    result.apply_action(move)
  return None
