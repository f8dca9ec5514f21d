"""Suit isomorphism: permutations of the suits under which boards and hands play alike.

A permutation of the suits is a symmetry of a deal if it keeps the first board (as a set of cards) and both ranges.
Symmetries map boards to boards, street by street. The first board of each orbit represents all boards of the orbit. Two
hands on a board are equivalent if a symmetry that keeps the board maps one hand to the other; see Waugh, "A Fast and
Optimal Hand Isomorphism Algorithm" (2013).

Merging is exact: against a strategy that is equal at equivalent hands and boards, so is a best response.
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
  cards = np.arange(deal.num_cards)
  digits = deal.num_cards ** np.arange(deal.hand_size)[::-1]
  # Ascending, since hands are in lexicographic order.
  codes = deal.hands @ digits
  result = []
  for suits in itertools.permutations(range(deal.num_suits)):
    images = cards - cards % deal.num_suits + np.array(suits)[cards % deal.num_suits]
    if {int(images[card]) for card in deal.board} != set(deal.board):
      continue
    hands = np.searchsorted(codes, np.sort(images[deal.hands], axis=1) @ digits)
    if np.array_equal(deal.reaches[:, hands], deal.reaches):
      result.append(Symmetry(images, hands))
  return result


def number_in_order(labels: Sequence[int] | Int64s) -> Int64s:
  """Renumbers labels from 0 in order of first occurrence, so that `[7, 3, 7]` becomes `[0, 1, 0]`."""
  _, first_index, label_index = np.unique(labels, return_index=True, return_inverse=True)
  number = np.empty(len(first_index), np.int64)
  number[np.argsort(first_index)] = np.arange(len(first_index))
  return np.asarray(number[label_index.reshape(-1)])
