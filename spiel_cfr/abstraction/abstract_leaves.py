"""Public states of a compiled game, found in its leaves."""

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.payoffs.private_types import public_states


def find_public_states(game: CompiledGame) -> list[Int64s]:
  """Finds which infosets of a player the others can't tell apart, see `games.payoffs.private_types.public_states`.

  Returns:
    For each infoset in order of discovery, the first one in the same public state; per player.

  Raises:
    UnsupportedGameError: the game is in vector form, or an abstraction.
  """
  if not isinstance(game, EnumeratedGame) or game.original is not game:
    raise errors.UnsupportedGameError(
      f"{game} lists no leaves of its own. Give compile_game(game, vector_form=False), without symmetries."
    )
  number, begin = np.zeros(game.end, np.uint32), 0
  for own in game.infosets:
    cells = game.all_action_sequences[begin : begin + len(own.actions)]
    number[cells] = 1 + np.arange(len(cells))
    begin += len(cells)
  leaves, _ = merged_leaves(game.payoff, game.num_players, number, np.ones(game.end))
  return [
    public_states(leaves, player, own.num_actions) for player, own in enumerate(game.infosets)
  ]
