"""The leaves of a compiled game in another numbering, as if it had been walked in that."""

import numpy as np

from spiel_cfr import errors
from spiel_cfr.compiled.base import CompiledGame
from spiel_cfr.compiled.enumerated import EnumeratedGame
from spiel_cfr.kernels.arrays import Float64s, Int64s, Uint32s
from spiel_cfr.payoffs.base import Payoff
from spiel_cfr.payoffs.private_types import distinct_columns, public_states


def merged_leaves(
  payoff: Payoff, num_players: int, number: Uint32s, copies: Float64s
) -> tuple[Uint32s, Float64s]:
  """Returns leaf sequences and payoffs, as of `Enumeration`, in the numbering of discovery here."""
  found, payoffs = [], []
  for player in range(num_players):
    own, others, values = payoff.leaves(player)
    columns = np.vstack([own, others])
    payoffs.append(values / np.prod(copies[columns], axis=0))
    # From an order that begins with the player to ascending order.
    found.append(number[np.roll(columns, player, axis=0)])
  leaves, which = distinct_columns(np.hstack(found))
  ends = np.cumsum([len(values) for values in payoffs])[:-1]
  sums = [
    np.bincount(places, values, leaves.shape[1])
    for places, values in zip(np.split(which, ends), payoffs, strict=True)
  ]
  return leaves.astype(np.uint32), np.stack(sums, axis=1).astype(np.float64)


def find_public_states(game: CompiledGame) -> list[Int64s]:
  """Finds which infosets of a player the others can't tell apart, see `payoffs.private_types.public_states`.

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
