"""What a window of pruning takes of a game's payoffs: leaves, or in vector form hands at terminals."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, Uint32s, Uint64s
from spiel_cfr.games.compiled.enumerated_game import EnumeratedGame
from spiel_cfr.games.payoffs.build_payoff import merged_leaves
from spiel_cfr.games.payoffs.leaf_rows import LeafRows, Leaves, leaves_of
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.poker.hand_payoff import PokerTerminals
from spiel_cfr.poker.public_game import PublicGame

# Games of which some can be left, and their payoffs.
Prunable: TypeAlias = EnumeratedGame | PublicGame


class LeafTable(NamedTuple):
  """Leaves by sequence.

  Attributes:
    rows: where the leaves of each sequence begin, and the end, shape (sequences + 1,).
    others: the other players' sequences, shape (players - 1, leaves).
    values: what they are worth, shape (leaves,).
  """

  rows: Uint32s
  others: Uint32s
  values: Float64s

  def payoff(self, treeplexes: Sequence[Treeplex], wanted: Bools) -> LeafRows:
    """Returns the payoffs of some of them, shape (leaves,)."""
    starts: Int64s = self.rows.astype(np.int64)
    own = np.repeat(np.arange(len(starts) - 1, dtype=np.uint32), starts[1:] - starts[:-1])
    leaves, bounds = [], [(tree.root, tree.end) for tree in treeplexes]
    for root, end in bounds:
      some = np.flatnonzero(wanted & (own >= root) & (own < end))
      leaves.append(Leaves(own[some], self.others[:, some], self.values[some]))
    return LeafRows.of_leaves(leaves, bounds)


Whole: TypeAlias = LeafTable | PokerTerminals


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
    leaves, first = [], 0
    for begin, end in self.bounds:
      counts = self.counts[begin:end].astype(np.int64)
      last = first + int(counts.sum())
      own, others = np.repeat(place[begin:end], counts), place[self.others[:, first:last]]
      leaves.append(Leaves(own, others, self.values[first:last]))
      first = last
    return LeafRows.of_leaves(leaves, bounds)


def own_leaves(game: EnumeratedGame) -> LeafTable:
  """Returns each player's leaves."""
  return _table(
    [Leaves(*game.payoff.leaves(player)) for player in range(game.num_players)], game.end
  )


def all_leaves(game: EnumeratedGame) -> LeafTable:
  """Returns a two-player game's leaves, both players' for each of them.

  A leaf that is worth nothing to its owner stays where it is worth something to the other: each player's rows then say
  of every infoset whether anything that follows it matters to anybody.
  """
  number = np.arange(game.end, dtype=np.uint32)
  number[game.decisions.forced] = game.decisions.chosen
  leaves, payoffs = merged_leaves(game.payoff, game.num_players, number, np.ones(game.end))
  every = np.ones(len(payoffs), bool)
  return _table([leaves_of(player, leaves, payoffs, every) for player in range(2)], game.end)


def _table(leaves: Sequence[Leaves], end: int) -> LeafTable:
  own, others, values = zip(*leaves, strict=True)
  counts = np.bincount(np.concatenate(own), minlength=end)
  return LeafTable(
    np.append(0, np.cumsum(counts)).astype(np.uint32),
    np.concatenate(others, axis=1),
    np.concatenate(values),
  )
