"""Symmetries of suits: public cards and hands that differ only by suits play alike.

A permutation of the suits is a symmetry of a deal if it keeps the set of public cards at the beginning and all reaches.
Symmetries map boards to boards, street by street. The first board of each orbit stands for all boards of the orbit. Two
hands on it are equivalent if a symmetry that keeps the board maps one to the other. Such hands are numbered by Waugh,
"A Fast and Optimal Hand Isomorphism Algorithm" (2013).

No accuracy is lost: if players play alike at equivalent hands and boards, so do best responses.
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
    cards: int64 (cards,). The image of each card.
    hands: int64 (hands,). The image of each row of `Deal.hands`.
  """

  cards: Int64s
  hands: Int64s

  def moved(self, dealt: Sequence[int]) -> tuple[int, ...]:
    """Returns the images of the cards of one deal, in ascending order."""
    return tuple(sorted(self.cards[list(dealt)].tolist()))


def symmetries(deal: Deal) -> list[Symmetry]:
  """Returns the symmetries of a deal, the identity first."""
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
  """Returns the labels as numbers from 0, in order of first occurrence."""
  _, first, which = np.unique(labels, return_index=True, return_inverse=True)
  rank = np.empty(len(first), np.int64)
  rank[np.argsort(first)] = np.arange(len(first))
  return np.asarray(rank[which.reshape(-1)])
