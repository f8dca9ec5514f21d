"""Views of compiled games that come from pickles or files: OpenSpiel loads the game again from its string."""

from typing import Any, Literal

from spiel_cfr import errors
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_view import GameView


def without_lost_view(attributes: dict[str, Any]) -> dict[str, Any]:
  """Removes the `view` from a game's attributes for a pickle if OpenSpiel can't load the view's game again."""
  if "view" in attributes and not loading.can_be_loaded_again(attributes["view"].game):
    del attributes["view"]
  return attributes


def view_of_string(game: CompiledGame, infostate: Literal["history"] | None = None) -> GameView:
  """Returns the view of the game that OpenSpiel loads from a compiled game's string; see `CompiledGame.view`."""
  try:
    loaded = loading.load_game(game.game_string, needs_strings=infostate is None)
    view = GameView(loaded, infostate=infostate)
  except errors.GameError as error:
    raise errors.NoStatesError(
      "This needs the states of the game, which stayed behind when its arrays were pickled or written to a "
      f"file, and OpenSpiel can't make them of its string: {error} "
      "Use what compile_game returns, in its own process."
    ) from error
  num_players, num_actions = view.num_players, view.game.num_distinct_actions()
  if (num_players, num_actions) != (game.num_players, game.num_distinct_actions):
    raise errors.FileFormatError(
      f"The file or pickle is of {game.name}, but has {game.num_players} players and "
      f"{game.num_distinct_actions} actions; OpenSpiel's game has {num_players} and {num_actions}."
    )
  return view
