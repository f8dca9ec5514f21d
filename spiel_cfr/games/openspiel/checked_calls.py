"""Checked calls of a state's methods: a wrong answer or an exception raises a named error that quotes the history.

OpenSpiel's games in C++ return what its documentation promises. Games that are written in Python or read from a file,
and functions of a user, may return and raise anything.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import pyspiel

from spiel_cfr import errors
from spiel_cfr._util import arguments

# The player to move at chance nodes and terminal states, -1 and -4, as OpenSpiel has it and all of our arrays.
CHANCE, TERMINAL = int(pyspiel.PlayerId.CHANCE), int(pyspiel.PlayerId.TERMINAL)
# Largest difference from 1 of the sum of the probabilities at a chance node.
PROBABILITY_TOLERANCE = 1e-6
# (state, answer) -> the answer, converted to the type that walks use. Raises an exception if the answer is wrong.
Check: TypeAlias = Callable[[Any, Any], Any]
_READ_FROM_FILES = ("efg_game", "nfg_game")


def guarded(function: Callable[..., Any], check: Check) -> Callable[..., Any]:
  """Returns a function of a state with checked answers; any exception becomes a named error with the history.

  Args:
    function: a function of a state, and perhaps of more arguments.
    check: called with the state and the answer of `function`; returns the answer, or raises any exception.
  """

  def checked(state: Any, *arguments: Any) -> Any:
    try:
      return check(state, function(state, *arguments))
    except (errors.SpielCFRError, MemoryError):
      raise
    except Exception as error:
      raise cannot_be_walked(state, error) from error

  return checked


def is_turn_based(game: pyspiel.Game) -> bool:
  """Returns whether a game is OpenSpiel's turn-based version of a game with simultaneous moves."""
  return bool(game.get_type().short_name == "turn_based_simultaneous_game")


def is_trusted(game: pyspiel.Game, root: Any) -> bool:
  """Returns whether a game needs no checks: it is OpenSpiel's own C++ code, and its rules are not from a file.

  Games that wrap another game, except turn-based versions, are not trusted. `root` is the game's initial state.
  """
  name, parameters = game.get_type().short_name, game.get_parameters()
  if is_turn_based(game):
    root, parameters = root.simultaneous_game_state(), parameters["game"]
  is_compiled = type(root).__module__.startswith("pyspiel")
  return is_compiled and "game" not in parameters and name not in _READ_FROM_FILES


class AnswerChecks:
  """Checks of answers that depend on the numbers of players and actions of a game. Each method is a `Check`."""

  def __init__(self, game: pyspiel.Game) -> None:
    """Takes a sequential game."""
    self._num_players, self._num_actions = game.num_players(), game.num_distinct_actions()

  def mover(self, state: Any, answer: Any) -> int:
    """Checks the player to move: a player, `CHANCE` or `TERMINAL`.

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
    """Checks legal actions; returns them in ascending order.

    Raises:
      UnsupportedGameError: the list is empty, has an action twice, or has an action that the game does not have.
    """
    legal, problem = sorted(map(operator.index, answer)), ""
    if not legal:
      problem = "has no legal action"
    elif len(set(legal)) < len(legal) or legal[0] < 0 or legal[-1] >= self._num_actions:
      problem = f"has the legal actions {legal}, which must be different numbers from 0 to {self._num_actions - 1},"
    if problem:
      raise errors.UnsupportedGameError(
        f"Player {state.current_player()} is to move and {problem} after the history [{state.history_str()}]."
      )
    return legal

  def returns(self, state: Any, answer: Any) -> list[float]:
    """Checks the returns of a terminal state.

    Raises:
      InvalidPayoffError: the answer is not one finite number for each player.
    """
    returns = [_number(value) for value in answer]
    problem = ""
    if len(returns) != self._num_players:
      problem = f"not one for each of {self._num_players} players"
    elif not all(map(math.isfinite, returns)):
      problem = "which must be finite numbers"
    if problem:
      raise errors.InvalidPayoffError(
        f"After the history [{state.history_str()}] the returns are {returns}, {problem}."
      )
    return returns


def name(state: Any, answer: Any) -> str:
  """Checks OpenSpiel's infostate: a string that files and digests can have in UTF-8."""
  if not isinstance(answer, str):
    raise TypeError(f"the infostate {answer!r} is not a string")
  answer.encode()
  return answer


def given_name(state: Any, answer: Any) -> str:
  """Checks the infostate that a user's function returns.

  Raises:
    ArgumentError: the answer is not a string.
  """
  if not isinstance(answer, str):
    raise errors.ArgumentError(
      f"infostate has returned {answer!r} after the history [{state.history_str()}], not a string."
    )
  return name(state, answer)


def outcomes(state: Any, answer: Any) -> list[tuple[int, float]]:
  """Checks the (outcome, probability) pairs of a chance node.

  Raises:
    GameError: a probability is negative, or they don't sum to 1.
  """
  pairs = [(operator.index(action), _number(chance)) for action, chance in answer]
  chances = [chance for _, chance in pairs]
  total = math.fsum(chances)
  if not (abs(total - 1) < PROBABILITY_TOLERANCE and min(chances) >= 0):
    raise errors.GameError(
      f"The chance outcomes after the history [{state.history_str()}] are {pairs}, and their "
      f"probabilities sum to {total:z.10g}. They must be non-negative and sum to 1."
    )
  return pairs


def child(state: Any, answer: Any) -> Any:
  """Checks that the answer is a state."""
  if not hasattr(answer, "history_str"):
    raise TypeError(f"the state after an action is {answer!r}")
  return answer


def anything(state: Any, answer: Any) -> Any:
  """Returns the answer unchecked; exceptions are still named."""
  return answer


def cannot_be_walked(state: Any, error: Exception) -> errors.SpielCFRError:
  """Returns the error for an exception that a game has raised at or before a state, or for a `state` that is none."""
  if not hasattr(state, "history_str"):
    return errors.ArgumentError(
      f"state must be a state of OpenSpiel, not {arguments.shortened(state)}."
    )
  return errors.UnsupportedGameError(
    f"The game can't be walked. After the history [{state.history_str()}], or before: {type(error).__name__}: {error}"
  )


def action_name(state: Any, player: int, action: int) -> str:
  """Returns the name of an action of a player or of chance; its number if the game has no name for it."""
  try:
    return str(state.action_to_string(player, action))
  except Exception:  # Games written by users may have left this out, in many ways.
    return str(action)


# Checked methods of any state, for code that has no `GameView` of its game.
game_of: Callable[[Any], Any] = guarded(lambda state: state.get_game(), anything)
current_player: Callable[[Any], int] = guarded(lambda state: state.current_player(), anything)
legal_actions: Callable[[Any, int], list[int]] = guarded(
  lambda state, player: state.legal_actions(player), anything
)
information_state_string: Callable[[Any, int], str] = guarded(
  lambda state, player: state.information_state_string(player), name
)


def _number(answer: Any) -> float:
  """Returns a number as a float; raises TypeError for a string, which `float` would take."""
  if isinstance(answer, str | bytes):
    raise TypeError(f"{answer!r} is not a number")
  return float(answer)
