"""`load_game`, which loads a game and checks that it can be walked as an extensive-form game.

OpenSpiel checks few parameters. Some wrong strings load silently (`kuhn_poker(name=leduc_poker)` is Leduc), others end
the process (`universal_poker(numSuits=0)`). A string with parameters is therefore first loaded and played on trial in a
forked child process, which takes a few milliseconds. Only a game that passes the trial is loaded in this process.

The trial plays a few random games. It does not detect a parameter that fails at a rare state. Windows can't fork
processes, so there is no trial there.

Source: OpenSpiel, `game_parameters.cc` and `spiel.cc` (game strings), `spiel.h` (game types).
"""

import difflib
import math
import random
from typing import Any

import pyspiel

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.games.openspiel.forked_child import CAN_FORK, ChildDiedError, call_in_child

_PROBE_SECONDS = 10.0
_PROBE_PLAYOUTS = 3
_PROBE_MOVES = 500


class _StuckError(Exception):
  """Error of a game that raised an exception, the cause of this error, during play; the message has the history."""


def load_game(game: str | pyspiel.Game, *, needs_strings: bool = True) -> pyspiel.Game:
  """Returns a sequential game with information state strings and explicit chance.

  A simultaneous game becomes OpenSpiel's turn-based version of it, in which players move one after the other without
  seeing the others' choices.

  Args:
    game: an OpenSpiel game string such as `leduc_poker(players=3)`, or a game. Only strings are loaded on trial.
    needs_strings: whether the game must have information state strings.

  Raises:
    ArgumentError: `game` is neither a string nor a game.
    UnknownGameError: no game has that name.
    GameParameterError: the string is malformed; or its parameters make OpenSpiel raise, crash, hang or run out of
      memory; or the game can't be played.
    MeanFieldGameError, SampledChanceError, SinglePlayerGameError, NoInformationStateError: no solver takes this kind of
      game.
    InvalidPayoffError: a trial game ended with a payoff that is not finite.
    GameError: a game object can't be played.
  """
  arguments.boolean(needs_strings, "needs_strings")
  if isinstance(game, str):
    if "python_" in game:
      register_python_games()
    _check_name(game.partition("(")[0])
    if CAN_FORK and ("(" in game or not _game_types()[game].default_loadable):
      _probe(game, needs_strings)
  elif not isinstance(game, pyspiel.Game):
    raise errors.ArgumentError(
      f"game must be a game string or a pyspiel.Game, not a {type(game).__name__}"
    )
  try:
    loaded = pyspiel.load_game(game) if isinstance(game, str) else game
    sequential = _to_sequential(loaded, needs_strings)
    _play(sequential, random.Random(0), 1, needs_strings)
  except errors.SpielCFRError:
    raise
  except Exception as error:
    cause = error.__cause__ if isinstance(error, _StuckError) else error
    raise errors.GameError(f"{_shorten(str(game))} can't be played: {_detail(error)}") from cause
  return sequential


def register_python_games() -> None:
  """Registers OpenSpiel's games in Python, `python_...`.

  They are imported only when needed: it takes a tenth of the time of this library's import.
  """
  import open_spiel.python.games  # noqa: F401


class PythonGames:
  """A part of a pickle that registers OpenSpiel's games in Python when it is read, for the objects after it."""

  def __reduce__(self) -> Any:
    """Unpickles as a call of `register_python_games`."""
    return register_python_games, ()


def can_be_loaded_again(game: pyspiel.Game) -> bool:
  """Returns whether OpenSpiel can load the game from its string. It can't load games that were read from a text."""
  try:
    load_game(str(game))
  except errors.GameError:
    return False
  return True


def check_pot(game: pyspiel.Game) -> None:
  """Raises GameError if the blinds of `universal_poker` don't sum to its pot, which makes bets and payoffs wrong."""
  parameters = game.get_parameters()
  pot, blinds = parameters["potSize"], str(parameters["blind"]).split()
  if pot > 0 and [float(blind) * game.num_players() for blind in blinds] != [pot] * len(blinds):
    raise errors.GameError(
      f"universal_poker counts potSize={pot} as chips that no player has spent, unless the blinds sum to it: with "
      f"blind={' '.join(blinds)}, bets and payoffs are wrong. Give each player a blind of the pot divided by the "
      "number of players"
    )


def is_endgame(game: pyspiel.Game) -> bool:
  """Returns whether the game lists all deals of hands at the root, impossible ones with probability 0."""
  name, parameters = game.get_type().short_name, game.get_parameters()
  return name == "universal_poker" and bool(parameters["handReaches"])


def _shorten(text: str, length: int = 200) -> str:
  text = " ".join(text.split())
  return text if len(text) <= length else text[:length] + "..."


def _detail(error: Exception) -> str:
  """Returns the message of an error, with the name of its type if the message alone may not make sense."""
  is_clear = isinstance(error, pyspiel.SpielError | errors.GameError | _StuckError)
  return _shorten(str(error) if is_clear else f"{type(error).__name__}: {error}", 300).rstrip(".")


def _game_types() -> dict[str, pyspiel.GameType]:
  return {game_type.short_name: game_type for game_type in pyspiel.registered_games()}


def _check_name(name: str) -> None:
  """Raises UnknownGameError, with similar names, if OpenSpiel has no game of a name."""
  if name not in pyspiel.registered_names():
    register_python_games()
  registered = pyspiel.registered_names()
  if name not in registered:
    close = difflib.get_close_matches(name[:100], registered, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else "see pyspiel.registered_names()"
    raise errors.UnknownGameError(f"OpenSpiel has no game named {_shorten(repr(name))}; {hint}")


def _check_parameters(string: str) -> None:
  """Raises GameError for errors that OpenSpiel's parser skips.

  They are text after the last bracket, repeated parameters, `name=`, and negative counts. Negative numbers are allowed
  if the default is negative, such as -1 for "all" in goofspiel.
  """
  if "(" not in string:
    return
  parameters = pyspiel.game_parameters_from_string(string)
  parsed = pyspiel.game_parameters_to_string(parameters)
  if string[-1] != ")" or any(string.count(symbol) != parsed.count(symbol) for symbol in "(=,)"):
    raise errors.GameError(f"OpenSpiel reads it as {_shorten(parsed)}")
  specification = _game_types()[parameters["name"]].parameter_specification
  for key, value in parameters.items():
    if type(value) is int and value < 0 <= specification.get(key, -1) and "seed" not in key:
      raise errors.GameError(f"{key} is negative")


def _to_sequential(game: pyspiel.Game, needs_strings: bool) -> pyspiel.Game:
  """Returns the turn-based version of a game; raises an error for kinds of games that can't be solved."""
  game_type = game.get_type()
  name = game_type.short_name
  if game_type.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
    raise errors.MeanFieldGameError(f"{name} is a mean-field game; it has no extensive form")
  if not max(1, game_type.min_num_players) <= game.num_players() <= game_type.max_num_players:
    least, most = game_type.min_num_players, game_type.max_num_players
    raise errors.GameError(f"{name} takes {least} to {most} players, not {game.num_players()}")
  if game_type.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
    raise errors.SampledChanceError(
      f"{name} samples chance inside the game; only listed chance outcomes can be solved. Agents that learn by "
      "playing can take it, such as those in open_spiel.python.jax and open_spiel.python.pytorch."
    )
  if game.num_players() == 1:
    raise errors.SinglePlayerGameError(
      f"{name} has one player, whose best policy needs no equilibrium; two players or more are needed. OpenSpiel's "
      "open_spiel.python.algorithms has value iteration and Q-learning for it."
    )
  if needs_strings and not game_type.provides_information_state_string:
    history = 'infostate="history", or with ' if game_type.provides_observation_string else ""
    raise errors.NoInformationStateError(
      f"{name} has no information state strings, which tell infosets apart. Call compile_game with {history}"
      "a function of state and player as infostate, and give any solver what it returns."
    )
  if name == "universal_poker":
    check_pot(game)
  if game_type.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
    return pyspiel.convert_to_turn_based(game)
  return game


def _play(game: pyspiel.Game, rng: random.Random, max_moves: int, needs_strings: bool) -> int:
  """Plays at random until the end or for `max_moves`; returns the number of moves."""
  state = game.new_initial_state()
  try:
    if state.is_terminal():
      raise errors.GameError(f"{game} is over before the first move")
    for move in range(max_moves):
      if state.is_terminal():
        if not all(map(math.isfinite, state.returns())):
          raise errors.InvalidPayoffError(
            f"{game} ends with payoffs {state.returns()} after {state.history()}"
          )
        return move
      if state.is_chance_node():
        # OpenSpiel does not continue after an impossible deal.
        actions = [action for action, chance in state.chance_outcomes() if chance > 0]
      else:
        actions = state.legal_actions()
        if needs_strings:
          state.information_state_string(state.current_player())
      if not actions:
        raise errors.GameError(f"{game} has no legal action after {state.history()}")
      state.apply_action(rng.choice(actions))
    return max_moves
  except errors.SpielCFRError:
    raise
  except Exception as error:
    raise _StuckError(f"after the history [{state.history_str()}], {_detail(error)}") from error


def _probe(string: str, needs_strings: bool) -> None:
  """Loads and plays a game in a forked child; raises an error if the game has a fault or the child dies."""
  try:
    fault = call_in_child(lambda: _fault_of(string, needs_strings), _PROBE_SECONDS)
  except ChildDiedError as died:
    fault = f"it {died} when it is loaded and played on trial"
  if isinstance(fault, errors.UnsupportedGameError):
    raise fault
  if fault:
    name = string.partition("(")[0]
    specification = _game_types()[name].parameter_specification.items()
    parameters = (
      f"{key} ({'game' if value == {} else type(value).__name__})" for key, value in specification
    )
    takes = f"{name} takes {', '.join(parameters) or 'no parameters'}."
    raise errors.GameParameterError(f"{_shorten(string)} can't be played: {fault}. {takes}")


def _fault_of(string: str, needs_strings: bool) -> errors.UnsupportedGameError | str:
  """Loads and plays a game; returns its fault, or an empty string if it has none."""
  try:
    _check_parameters(string)
    game = _to_sequential(pyspiel.load_game(string), needs_strings)
    rng, moves = random.Random(0), 0
    for _ in range(_PROBE_PLAYOUTS):
      moves += _play(game, rng, _PROBE_MOVES - moves, needs_strings)
  except errors.UnsupportedGameError as unsupported:
    return unsupported
  except Exception as problem:
    return _detail(problem)
  return ""
