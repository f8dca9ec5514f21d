"""Games as arrays: OpenSpiel's games, or your own, in the sequence form that solvers work on.

A game of OpenSpiel takes these steps to a `CompiledGame`, and back to a `TabularPolicy`. Numbers are in order of
discovery, which is OpenSpiel's, or in the layout, which kernels read; docs/arrays.md explains both.

    openspiel/loading.py           `load_game`: a pyspiel.Game, checked and turn-based
    openspiel/game_view.py         `GameView`: its legal actions, chance outcomes and infostates
    openspiel/walk.py              `enumerate_game`: infosets and leaves, in order of discovery
    compiled/enumerated_game.py    `lay_out_arrays`: treeplexes (`build_treeplexes`) and payoffs (`build_payoff`)
    compiled/compiled_game.py      `CompiledGame`: the arrays that solvers read; `infosets` has the conversions
    policies/forms.py              `behavioral_form`: a solver's sums become probabilities, laid out
    policies/tabular_policy.py     `CompiledTabularPolicy`: `to_actions` and `action_cells` restore OpenSpiel's order

`vector` (private types, and hold'em in `poker`) and `private_moves` replace the walk and the payoffs for games with too
many histories to list. `compiling.compile_game` chooses the form.
"""

from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.compiled.from_arrays import game_from_arrays
from spiel_cfr.games.compiled.sharded_game import shard
from spiel_cfr.games.compiling import load_compiled_game
from spiel_cfr.games.openspiel.game_size import SizeEstimate
from spiel_cfr.games.openspiel.loading import load_game
from spiel_cfr.games.private_moves.compile_private_moves import compile_private_moves_game
from spiel_cfr.games.private_moves.private_moves_game import PrivateMovesGame
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
  "shard",
]
