"""From a game of OpenSpiel, or of your own, to arrays."""

from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.from_arrays import game_from_arrays
from spiel_cfr.games.compiling import load_compiled_game
from spiel_cfr.games.openspiel.game_size import SizeEstimate
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.games.private_moves.private_moves_game import (
  PrivateMovesGame,
  compile_private_moves_game,
)
from spiel_cfr.games.private_moves.world_keys import WorldKeys
from spiel_cfr.games.vector.vector_game import VectorGame, compile_vector_game

__all__ = [
  "CompiledGame",
  "EnumeratedGame",
  "PrivateMovesGame",
  "SizeEstimate",
  "VectorGame",
  "WorldKeys",
  "compile_private_moves_game",
  "compile_vector_game",
  "game_from_arrays",
  "load_compiled_game",
  "load_game",
]
