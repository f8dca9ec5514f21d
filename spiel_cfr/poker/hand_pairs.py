"""Which pairs of private hands can be dealt together on a board, and who wins a showdown."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr.poker.hand_layout import Layout


class HandPairs(NamedTuple):
  """The pairs of a player's and its opponent's hands on a board.

  Attributes:
    apart: bool of shape (hands, opponent's hands): they share no card.
    ahead: int8 of the same shape: 1 where the player's hand is the better one, 0 for a tie, -1 where it is worse,
      whether or not they are apart.
  """

  apart: npt.NDArray[np.bool_]
  ahead: npt.NDArray[np.int8]


def hand_pairs(layout: Layout, number: int, player: int) -> HandPairs:
  """Returns the pairs of hands on a board, which goes by its number."""
  board = layout.boards[number]
  own, other = (layout.deal.hands[board.hands[each]] for each in (player, 1 - player))
  apart = np.ones((len(own), len(other)), bool)
  for card in own.T:
    for opponents in other.T:
      apart &= card[:, None] != opponents
  ahead = np.sign(board.strengths[player][:, None] - board.strengths[1 - player])
  return HandPairs(apart, ahead.astype(np.int8))
