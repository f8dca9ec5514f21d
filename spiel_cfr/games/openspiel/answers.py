"""Guarded questions to a state: the answer is of the kind that OpenSpiel promises, or an error quotes the history.

OpenSpiel's games in C++ keep the promises. Games that are written in Python or read from a file, and functions of a
user, may return and raise anything.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import pyspiel

from spiel_cfr import errors
from spiel_cfr._util import arguments

# Movers that are no players.
CHANCE, TERMINAL = int(pyspiel.PlayerId.CHANCE), int(pyspiel.PlayerId.TERMINAL)
# What the probabilities of a chance node may be away from 1.
PROBABILITY_TOLERANCE = 1e-6
# (state, answer) -> the answer as walks take it.
Read: TypeAlias = Callable[[Any, Any], Any]
_TURN_BASED = "turn_based_simultaneous_game"
_READ_FROM_FILES = ("efg_game", "nfg_game")


def guarded(ask: Callable[..., Any], read: Read) -> Callable[..., Any]:
  """Returns a question whose answers go through `read`, and whose exceptions have a name and a history.

  Args:
    ask: takes a state, and perhaps more; returns an answer.
    read: returns the answer, or raises any exception if it is not what it must be.
  """

  def asked(state: Any, *more: Any) -> Any:
    try:
      return read(state, ask(state, *more))
    except (errors.SpielCFRError, MemoryError):
      raise
    except Exception as error:
      raise cannot_be_walked(state, error) from error

  return asked


def keeps_promises(game: pyspiel.Game, root: Any) -> bool:
  """Returns whether a game is one of OpenSpiel's in C++, with rules of its own, that is not read from a file."""
  name, parameters = game.get_type().short_name, game.get_parameters()
  if name == _TURN_BASED:
    root, parameters = root.simultaneous_game_state(), parameters["game"]
  is_compiled = type(root).__module__.startswith("pyspiel")
  return is_compiled and "game" not in parameters and name not in _READ_FROM_FILES


class Answers:
  """Answers of one game's states, as walks take them."""

  def __init__(self, game: pyspiel.Game) -> None:
    """Takes a sequential game."""
    self._num_players, self._num_actions = game.num_players(), game.num_distinct_actions()

  def mover(self, state: Any, answer: Any) -> int:
    """Returns a player, `CHANCE` or `TERMINAL`.

    Raises:
      UnsupportedGameError: the answer is another integer.
    """
    player = operator.index(answer)
    if not 0 <= player < self._num_players and player not in (CHANCE, TERMINAL):
      raise errors.UnsupportedGameError(
        f"After the history [{state.history_str()}], player {player} is to move, which is neither a player nor chance."
      )
    return player

  def actions(self, state: Any, answer: Any) -> list[int]:
    """Returns legal actions in ascending order.

    Raises:
      UnsupportedGameError: there are none, one of them twice, or one that is not among the game's.
    """
    legal, problem = sorted(map(operator.index, answer)), ""
    if not legal:
      problem = "has no legal action"
    elif len(set(legal)) < len(legal) or legal[0] < 0 or legal[-1] >= self._num_actions:
      problem = (
        f"has the legal actions {legal}, which are not all different and among the game's, 0 to "
        f"{self._num_actions - 1},"
      )
    if problem:
      raise errors.UnsupportedGameError(
        f"Player {state.current_player()} is to move and {problem} after the history [{state.history_str()}]."
      )
    return legal

  def returns(self, state: Any, answer: Any) -> list[float]:
    """Returns a number for each player.

    Raises:
      InvalidPayoffError: there is not a finite number for each.
    """
    found = [_number(each) for each in answer]
    problem = ""
    if len(found) != self._num_players:
      problem = f"not one for each of {self._num_players} players"
    elif not all(map(math.isfinite, found)):
      problem = "which must be finite numbers"
    if problem:
      raise errors.InvalidPayoffError(
        f"After the history [{state.history_str()}] the returns are {found}, {problem}."
      )
    return found


def name(state: Any, answer: Any) -> str:
  """Returns an infostate, which files and digests can have in UTF-8."""
  if not isinstance(answer, str):
    raise TypeError(f"the infostate {answer!r} is not a string")
  answer.encode()
  return answer


def given_name(state: Any, answer: Any) -> str:
  """Returns an infostate that a user's function has named.

  Raises:
    ArgumentError: it is not a string.
  """
  if not isinstance(answer, str):
    raise errors.ArgumentError(
      f"infostate has returned {answer!r} after the history [{state.history_str()}], not a string."
    )
  return name(state, answer)


def outcomes(state: Any, answer: Any) -> list[tuple[int, float]]:
  """Returns the outcomes and probabilities of a chance node.

  Raises:
    GameError: the probabilities are negative, or don't sum to 1.
  """
  found = [(operator.index(action), _number(chance)) for action, chance in answer]
  chances = [chance for _, chance in found]
  total = math.fsum(chances)
  if not (abs(total - 1) < PROBABILITY_TOLERANCE and min(chances) >= 0):
    raise errors.GameError(
      f"The chance outcomes after the history [{state.history_str()}] are {found}, and their "
      f"probabilities sum to {total:z.10g}. They must be non-negative and sum to 1."
    )
  return found


def child(state: Any, answer: Any) -> Any:
  """Returns the state after an action."""
  if not hasattr(answer, "history_str"):
    raise TypeError(f"the state after an action is {answer!r}")
  return answer


def anything(state: Any, answer: Any) -> Any:
  """Returns the answer as it is."""
  return answer


def cannot_be_walked(state: Any, error: Exception) -> errors.SpielCFRError:
  """Returns the error for what a game has raised at a state, or on the way there; or for what is no state."""
  if not hasattr(state, "history_str"):
    return errors.ArgumentError(
      f"state must be a state of OpenSpiel, not {arguments.shortened(state)}."
    )
  return errors.UnsupportedGameError(
    f"The game can't be walked. After the history [{state.history_str()}], or before: {type(error).__name__}: {error}"
  )


def word(state: Any, player: int, action: int) -> str:
  """Returns the name of an action of a player or of chance, its number where the game has no name for it."""
  try:
    return str(state.action_to_string(player, action))
  except Exception:  # Games written by users may have left this out, in many ways.
    return str(action)


# Questions to the states of others than a `GameView`.
game_of: Callable[[Any], Any] = guarded(lambda state: state.get_game(), anything)
current_player: Callable[[Any], int] = guarded(lambda state: state.current_player(), anything)
legal_actions: Callable[[Any, int], list[int]] = guarded(
  lambda state, player: state.legal_actions(player), anything
)
information_state_string: Callable[[Any, int], str] = guarded(
  lambda state, player: state.information_state_string(player), name
)


def _number(answer: Any) -> float:
  """Returns a number as a float; a string is none."""
  if isinstance(answer, str | bytes):
    raise TypeError(f"{answer!r} is not a number")
  return float(answer)
