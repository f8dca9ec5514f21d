"""Calls of a bot's methods, whose exceptions become errors that name the history."""

from collections.abc import Callable
from typing import Any

from spiel_cfr import errors


def call_bot(method: Callable[..., Any], state: Any, *more: Any) -> Any:
  """Calls a bot's method with a state, and returns its result.

  Args:
    method: a method of the bot.
    state: the method's first argument.
    more: the method's other arguments.

  Raises:
    PolicyError: the method raises an exception.
  """
  try:
    return method(state, *more)
  except errors.SpielCFRError:
    raise
  except Exception as error:
    name = getattr(method, "__name__", "")
    if isinstance(error, RuntimeError) and "not implemented" in str(error).lower():
      raise errors.PolicyError(
        f"The bot {getattr(method, '__self__', method)!r} has no method {name}(state), which matches and evaluations "
        "need. It may do nothing."
      ) from error
    raise errors.PolicyError(
      f"After the history [{state.history_str()}] the policy has raised {type(error).__name__}: {error}. "
      f"The state is of {state.get_game()}."
    ) from error


def bot_distribution(bot: Any, state: Any) -> Any:
  """Returns a bot's policy at a state: a list of (action, probability).

  The bot is restarted at the state first, because it may have a memory.

  Raises:
    PolicyError: the bot has no policy at the state, or raises an exception.
  """
  call_bot(bot.restart_at, state)
  distribution = call_bot(bot.get_policy, state)
  if not distribution:
    raise errors.PolicyError(
      f"{bot!r} has no policy for player {state.current_player()} after the history [{state.history_str()}]. A bot "
      "plays as one player: give a list of bots, one a player."
    )
  return distribution
