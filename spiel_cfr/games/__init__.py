"""From a game of OpenSpiel to arrays."""

from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame, load_compiled_game
from spiel_cfr.games.openspiel.game_size import SizeEstimate
from spiel_cfr.games.openspiel.loading import load_game

__all__ = [
  "CompiledGame",
  "EnumeratedGame",
  "SizeEstimate",
  "load_compiled_game",
  "load_game",
]
