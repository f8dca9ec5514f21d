"""What Python code answers when a state is asked, read with care.

OpenSpiel's own games answer with what their types promise. A game that is written in Python, or a function of the
user's, may answer anything, at any depth.
"""

import operator
from collections.abc import Callable
from typing import Any

import pyspiel

from spiel_cfr import errors


def checked(what: str, question: Callable[[Any], Any], read: Callable[[Any], Any]) -> Any:
  """Returns a question to states whose answers are read before anybody uses them.

  Args:
    what: what is asked for, for the message.
    question: takes a state.
    read: turns the answer into plain numbers or strings; it fails where that can't be done.

  Returns:
    A function of a state. It raises UnsupportedGameError, with the history, where question or reading fails.
  """

  def ask(state: Any) -> Any:
    quoted = ""
    try:
      answer = question(state)
      quoted = f" are {answer!r:.200}, and"
      return read(answer)
    except errors.SpielCFRError:
      raise
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
      raise errors.UnsupportedGameError(
        f"The {what} after the history [{state.history_str()}]{quoted} can't be read: {type(error).__name__}: {error}"
      ) from error

  return ask


def legal_actions(state: Any) -> Any:
  """Asks for the legal actions of who is to move."""
  inherited = getattr(type(state), "legal_actions", None) is pyspiel.State.legal_actions
  if not inherited or not hasattr(state, "_legal_actions"):
    return state.legal_actions()
  # OpenSpiel passes this on, and of what it can't convert it tells nothing but the type.
  return state._legal_actions(state.current_player())


def actions(answer: Any) -> list[int]:
  """Reads a list of actions."""
  return [_action(action) for action in answer]


def outcomes(answer: Any) -> list[tuple[int, float]]:
  """Reads (action, probability) pairs."""
  return [(_action(action), _number(chance)) for action, chance in answer]


def numbers(answer: Any) -> list[float]:
  """Reads a list of numbers."""
  return [_number(value) for value in answer]


def name(answer: Any) -> str:
  """Reads a string."""
  if not isinstance(answer, str):
    raise TypeError("it is not a string")
  return answer


def _action(value: Any) -> int:
  action = operator.index(value)
  if action.bit_length() >= 64:
    raise OverflowError(f"{action} has more than 64 bits")
  return action


def _number(value: Any) -> float:
  if isinstance(value, str | bytes):
    raise TypeError(f"{value!r} is not a number")
  return float(value)
