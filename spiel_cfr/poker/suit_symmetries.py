"""Suits that are worth the same: public cards and hands that differ by them alone play alike.

A permutation of the suits is a symmetry of a deal if it leaves the public cards at the beginning where they are, as a
set, and gives each player's hands the reaches that they have. Symmetries take boards to boards, street by street. Of
each orbit of them the first stands for all, as often as there are boards; and there hands are alike if a symmetry that
leaves the board where it is takes one to the other (Waugh, "A Fast and Optimal Hand Isomorphism Algorithm", 2013,
numbers such hands).

Nothing is lost: where all play alike what symmetries take to each other, so do best responses.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Int64s
from spiel_cfr.poker.deal import Deal


class Symmetry(NamedTuple):
  """A permutation of suits.

  Attributes:
    cards: where each card goes, shape (cards,).
    hands: where each row of `Deal.hands` goes, shape (hands,).
  """

  cards: Int64s
  hands: Int64s

  def moved(self, dealt: Sequence[int]) -> tuple[int, ...]:
    """Returns where the cards of one deal go, in ascending order."""
    return tuple(sorted(self.cards[list(dealt)].tolist()))


def symmetries(deal: Deal) -> list[Symmetry]:
  """Returns the symmetries of a deal, the one that changes nothing first."""
  every = np.arange(deal.num_cards)
  digits = deal.num_cards ** np.arange(deal.hand_size)[::-1]
  # Ascending, since hands are in lexicographic order.
  codes = deal.hands @ digits
  result = []
  for suits in itertools.permutations(range(deal.num_suits)):
    moved = every - every % deal.num_suits + np.array(suits)[every % deal.num_suits]
    if {int(moved[card]) for card in deal.board} != set(deal.board):
      continue
    hands = np.searchsorted(codes, np.sort(moved[deal.hands], axis=1) @ digits)
    if np.array_equal(deal.reaches[:, hands], deal.reaches):
      result.append(Symmetry(moved, hands))
  return result


def number_in_order(labels: Sequence[int] | Int64s) -> Int64s:
  """Returns the same labels as numbers from 0, in the order in which each comes first."""
  _, first, which = np.unique(labels, return_index=True, return_inverse=True)
  rank = np.empty(len(first), np.int64)
  rank[np.argsort(first)] = np.arange(len(first))
  return np.asarray(rank[which.reshape(-1)])
