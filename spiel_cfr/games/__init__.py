"""From a game of OpenSpiel to arrays."""

from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.game_file import load_compiled_game
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.games.openspiel.size_estimate import SizeEstimate

__all__ = [
  "CompiledGame",
  "EnumeratedGame",
  "SizeEstimate",
  "load_compiled_game",
  "load_game",
]
