"""What games promise to those who walk them, and the errors for those that break their word; each quotes the state."""

import math
from collections.abc import Sequence
from typing import Any

from spiel_cfr import errors
from spiel_cfr.games.openspiel.game_view import GameView

# What the probabilities of a chance node may be away from 1.
PROBABILITY_TOLERANCE = 1e-6


def check_actions(view: GameView, state: Any, legal: list[int]) -> None:
  """Checks the legal actions of a player.

  Raises:
    UnsupportedGameError: there are none, one of them twice, or one that is not among the game's.
  """
  end = view.game.num_distinct_actions()
  problem = ""
  if not legal:
    problem = "has no legal action"
  elif len(set(legal)) < len(legal) or not (min(legal) >= 0 and max(legal) < end):
    problem = f"has the legal actions {legal}, which are not all different and among the game's, 0 to {end - 1},"
  if problem:
    raise errors.UnsupportedGameError(
      f"Player {state.current_player()} is to move and {problem} after the history [{state.history_str()}]."
    )


def chance_outcomes(view: GameView, state: Any) -> list[tuple[int, float]]:
  """Returns a list of the outcomes and probabilities of a chance node, the caller's to change.

  Raises:
    GameError: the probabilities are negative, or don't sum to 1.
  """
  outcomes = list(view.chance_outcomes(state))
  total = math.fsum(probability for _, probability in outcomes)
  if not (abs(total - 1) < PROBABILITY_TOLERANCE and all(chance >= 0 for _, chance in outcomes)):
    raise errors.GameError(
      f"The chance outcomes after the history [{state.history_str()}] are {outcomes}, and their "
      f"probabilities sum to {total:.10g}. They must be non-negative and sum to 1."
    )
  return outcomes


def wrong_returns(
  state: Any, returns: Sequence[float], num_players: int
) -> errors.InvalidPayoffError:
  """Returns the error for a terminal state that does not have a return for each player."""
  return errors.InvalidPayoffError(
    f"After the history [{state.history_str()}] the returns are {returns}, not one for each of {num_players} players."
  )


def imperfect_recall(view: GameView, state: Any) -> errors.ImperfectRecallError:
  """Returns the error for a state whose infoset its owner reaches in several ways."""
  player = state.current_player()
  return errors.ImperfectRecallError(
    f"Player {player}'s infostate {view.infostate(state)!r} can be reached by "
    f"different sequences of that player's own actions (one history: [{state.history_str()}]). The "
    "player forgets what it did, and solvers in sequence form need perfect recall. Call compile_game "
    'with infostate="history", and nobody forgets; or sample the game as it is with a Monte Carlo '
    'solver, engine="states".'
  )


def inconsistent_actions(
  view: GameView, state: Any, known: list[int]
) -> errors.InconsistentInfosetError:
  """Returns the error for a state whose legal actions are not those known of its infoset."""
  return errors.InconsistentInfosetError(
    f"States of player {state.current_player()}'s infostate {view.infostate(state)!r} "
    f"have different legal actions: {known}, and {view.legal_actions(state)} after the history "
    f"[{state.history_str()}]. Infostates must tell such states apart, and an action filter must "
    "keep the same actions at all of them."
  )


def unknown_player(state: Any) -> errors.UnsupportedGameError:
  """Returns the error for a state where somebody is to move who is neither a player nor chance."""
  return errors.UnsupportedGameError(
    f"After the history [{state.history_str()}], player {state.current_player()} is to move, which is neither a "
    "player nor chance."
  )


def cannot_be_walked(state: Any, error: Exception) -> errors.UnsupportedGameError:
  """Returns the error for what a game has raised at a state, or on the way there."""
  return errors.UnsupportedGameError(
    f"The game can't be walked. After the history [{state.history_str()}], or before: {type(error).__name__}: {error}"
  )
