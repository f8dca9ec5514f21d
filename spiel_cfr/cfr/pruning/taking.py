"""What a window of pruning takes of a game's payoffs: leaves, or in vector form hands at terminals."""

from typing import NamedTuple, TypeAlias

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Uint32s, Uint64s
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.leaf_rows import LeafRows, renumbered
from spiel_cfr.games.payoffs.merged_leaves import merged_leaves
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.sorted_rows import SortedRows
from spiel_cfr.poker.hand_payoff import PokerTerminals
from spiel_cfr.poker.public_game import PublicGame

# Games of which some can be left, and their payoffs.
Prunable: TypeAlias = EnumeratedGame | PublicGame
Whole: TypeAlias = LeafRows | PokerTerminals


class TakenLeaves(NamedTuple):
  """The leaves that are left of a game, as `TakenHands` of hands.

  Attributes:
    counts: how many each kept sequence has, shape (kept,).
    others: the places of the other players' sequences, shape (players - 1, leaves), sequence by sequence.
    values: what they are worth, shape (leaves,).
    bounds: of each player, the first of the kept sequences, and one past the last.
    share: what part of all leaves that is.
  """

  counts: Uint64s
  others: Uint32s
  values: Float64s
  bounds: list[tuple[int, int]]
  share: float

  def payoff(self, place: Uint32s, bounds: list[tuple[int, int]]) -> Payoff:
    """Returns their payoffs; kept sequences have new numbers, shape (kept,), and the players new bounds."""
    if len(self.others) > 1:
      return renumbered(self.counts, self.others, self.values, place, bounds)
    return SortedRows.build(self.counts, self.others[0], self.values, place, self.bounds, bounds)


def all_leaves(game: EnumeratedGame) -> LeafRows:
  """Returns a two-player game's payoffs as rows of leaves, with both players' leaves for each of them.

  A leaf that is worth nothing to its owner stays where it is worth something to the other: each player's rows then say
  of every infoset whether anything that follows it matters to anybody.
  """
  number = np.arange(game.end, dtype=np.uint32)
  number[game.decisions.forced] = game.decisions.chosen
  leaves, payoffs = merged_leaves(game.payoff, game.num_players, number, np.ones(game.end))
  return LeafRows.build(leaves, payoffs, game.treeplexes, zeros=True)
