"""Games of the atlas by name.

A name is one of

- OpenSpiel's string of a game;
- the name of a file in Gambit's format in the folder `games`, such as "nau_2004_4.efg";
- the name of an endgame of hold'em in `ENDGAMES`;
- a string of `dice_endgame`, such as `dice_endgame(dice=2 1,sides=6,rule=joker)`.
"""

import importlib.resources
from collections.abc import Mapping
from typing import Any

import pyspiel

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.atlas import dice_endgame
from spiel_cfr.games.openspiel import loading
from spiel_cfr.poker import ranges

# Arguments of `poker.ranges.endgame`. Bets are half the pot, the pot, or all-in.
ENDGAMES: Mapping[str, Mapping[str, Any]] = {
  "river_7s9h9cTc2d": {
    "oop": "QQ+,AKs",
    "ip": "TT-88,AQs",
    "board": "7s9h9cTc2d",
    "pot": 2000,
    "stack": 2000,
  },
  "river_7s9h9cTc2d_deep": {
    "oop": "QQ+,AK,T9s,87s",
    "ip": "22+,AT+,KQs,98s",
    "board": "7s9h9cTc2d",
    "pot": 2000,
    "stack": 9000,
  },
  "river_KsQsJh2c2h": {
    "oop": "AA,KK,AT,QQ,98s",
    "ip": "JJ,22,AK,KQ,T9s",
    "board": "KsQsJh2c2h",
    "pot": 100,
    "stack": 100,
  },
  "turn_Td9d6h2c": {
    "oop": "AA,QQ,JTs,98s",
    "ip": "KK,TT,AdKd,87s",
    "board": "Td9d6h2c",
    "pot": 200,
    "stack": 300,
  },
}
_GAMBIT = ".efg"


def load(game: str) -> pyspiel.Game:
  """Returns a game of the atlas, or any other game of OpenSpiel.

      >>> load("selten_1975_1.efg").num_players()
      3

  Raises:
    ArgumentError: `game` is not a string, or names no file of the atlas.
    GameError: OpenSpiel can't load the game.
  """
  arguments.of_type(game, "game", str)
  if game.endswith(_GAMBIT):
    return pyspiel.load_efg_game(_text(game))
  if game in ENDGAMES:
    return ranges.endgame(**ENDGAMES[game]).load()
  if _is_dice_endgame(game):
    return dice_endgame.from_string(game)
  return loading.load_game(game)


def _text(name: str) -> str:
  folder = importlib.resources.files(__package__).joinpath("games")
  known = sorted(file.name for file in folder.iterdir())
  if name not in known:
    raise errors.ArgumentError(f"The atlas has no file {name!r}, but {', '.join(known)}.")
  return folder.joinpath(name).read_text()


def canonical(game: str) -> str:
  """Returns a name with all parameters, the same whether defaults are written or left out. For errors see `load`."""
  if game.endswith(_GAMBIT) or game in ENDGAMES:
    return game
  loaded = load(game)
  if not _is_dice_endgame(game):
    # A game of simultaneous moves has other parameters after its conversion to turns.
    loaded = pyspiel.load_game(game)
  return _with_all_parameters(loaded, pyspiel.game_parameters_from_string(game))


def _with_all_parameters(game: pyspiel.Game, given: dict[str, Any]) -> str:
  """Returns a game's name and parameters, with all parameters of the games that are its parameters.

  `given` are the parameters by which the game was loaded. OpenSpiel's restricted_nash_response does not keep them.
  """
  parameters = given | game.get_parameters()
  for name, value in parameters.items():
    if isinstance(value, dict) and "name" in value:
      inner = pyspiel.load_game(pyspiel.game_parameters_to_string(value))
      parameters[name] = _with_all_parameters(inner, value)
  game_name = parameters.pop("name")
  return f"{game_name}({','.join(f'{name}={parameters[name]}' for name in sorted(parameters))})"


def _is_dice_endgame(game: str) -> bool:
  return game.partition("(")[0] == dice_endgame.NAME
