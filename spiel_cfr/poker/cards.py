"""Cards, hands and how strong they are.

A card is a number, `rank * num_suits + suit`, as in OpenSpiel's poker games; ranks count from the deuce, suits are in
the order clubs, diamonds, hearts, spades. A hand is a row of cards in ascending order.
"""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s

RANKS = "23456789TJQKA"
SUITS = "cdhs"
_FLUSH_CARDS = 5
# Categories, best last.
_PAIR, _TWO_PAIR, _THREE, _STRAIGHT, _FLUSH, _FULL_HOUSE, _FOUR, _STRAIGHT_FLUSH = range(1, 9)
_KICKERS = {0: 5, _PAIR: 3, _TWO_PAIR: 1, _THREE: 2, _FOUR: 1}


def card_name(card: int, num_suits: int = len(SUITS)) -> str:
  """Returns, say, `"Ah"`."""
  return RANKS[card // num_suits] + SUITS[card % num_suits]


def parse_cards(text: str, num_suits: int = len(SUITS)) -> list[int]:
  """Reads cards written one after the other, as in `"AhTc"`.

  Raises:
    ArgumentError: something in it is no card, or is there twice.
  """
  text = "".join(text.split())
  cards: list[int] = []
  for start in range(0, len(text), 2):
    name = text[start : start + 2]
    if len(name) < 2 or name[0] not in RANKS or name[1] not in SUITS[:num_suits]:
      raise errors.ArgumentError(
        f"{name!r} in {text!r} is no card: write a rank of {RANKS} and a suit of "
        f"{SUITS[:num_suits]}, as in Ah."
      )
    cards.append(RANKS.index(name[0]) * num_suits + SUITS.index(name[1]))
    if cards[-1] in cards[:-1]:
      raise errors.ArgumentError(f"{text!r} has the card {name} twice.")
  return cards


def all_hands(num_cards: int, hand_size: int, dead: Iterable[int] = ()) -> Int64s:
  """Returns every hand without the dead cards, shape (hands, hand_size), in lexicographic order."""
  live = [card for card in range(num_cards) if card not in set(dead)]
  return np.array(list(itertools.combinations(live, hand_size)), np.int64).reshape(-1, hand_size)


def file_hands() -> Int64s:
  """Returns the 1,326 hands of two cards in the order of the reaches of LibratusEndgames files, shape (1326, 2).

  OpenSpiel's `handReaches` have that order too: lexicographic, of cards whose suits go spades, hearts, diamonds, clubs.
  """
  deck = np.array([rank * 4 + suit for rank in range(13) for suit in reversed(range(4))])
  return np.sort(deck[all_hands(52, 2)], axis=1)


def hand_strengths(hands: Int64s, board: Sequence[int], num_suits: int) -> Int64s:
  """Ranks hands by the best five cards of each hand and the board together; equal numbers tie.

  With fewer than five cards, pairs and high cards still count, and there are no straights and flushes.

  Args:
    hands: shape (hands, cards a hand).
    board: the public cards.
    num_suits: of the deck.

  Returns:
    int64 of shape (hands,), higher is better.
  """
  num_hands = len(hands)
  cards = np.concatenate([hands, np.tile(np.array(board, np.int64), (num_hands, 1))], axis=1)
  ranks, suits = cards // num_suits, cards % num_suits
  each = np.arange(num_hands)
  counts = np.zeros((num_hands, len(RANKS)), np.int64)
  of_suit = np.zeros((num_hands, num_suits, len(RANKS)), bool)
  for rank, suit in zip(ranks.T, suits.T, strict=True):
    counts[each, rank] += 1
    of_suit[each, suit, rank] = True

  suited = of_suit[each, of_suit.sum(axis=2).argmax(axis=1)]
  flush = suited.sum(axis=1) >= _FLUSH_CARDS
  straight = _best_straight(counts > 0)
  straight_flush = np.where(flush, _best_straight(suited), 0)

  # The two most frequent ranks, the higher rank first among equals.
  by_count = np.argsort(-(counts * len(RANKS) + np.arange(len(RANKS))), axis=1)[:, :2]
  most, second = counts[each[:, None], by_count].T
  category = np.select(
    [
      straight_flush > 0,
      most == 4,
      (most == 3) & (second >= 2),
      flush,
      straight > 0,
      most == 3,
      (most == 2) & (second == 2),
      most == 2,
    ],
    [_STRAIGHT_FLUSH, _FOUR, _FULL_HOUSE, _FLUSH, _STRAIGHT, _THREE, _TWO_PAIR, _PAIR],
    0,
  )
  result = np.zeros(num_hands, np.int64)
  for kind in np.unique(category).tolist():
    own = category == kind
    if kind == _STRAIGHT_FLUSH:
      digits = [straight_flush[own]]
    elif kind == _STRAIGHT:
      digits = [straight[own]]
    elif kind == _FLUSH:
      digits = _highest(suited[own], _FLUSH_CARDS)
    else:
      paired = by_count[own][:, : 0 if kind == 0 else 2 if kind in (_TWO_PAIR, _FULL_HOUSE) else 1]
      rest = counts[own] > 0
      np.put_along_axis(rest, paired, False, axis=1)
      digits = [*(paired + 1).T, *_highest(rest, _KICKERS.get(kind, 0))]
    code = np.full(own.sum(), kind, np.int64)
    for place in range(_FLUSH_CARDS):
      code = code * (len(RANKS) + 1) + (digits[place] if place < len(digits) else 0)
    result[own] = code
  return result


def _best_straight(has: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]") -> Int64s:
  """Returns 1 + the highest rank of the best straight, 0 where there is none; shape (hands,)."""
  best = np.zeros(len(has), np.int64)
  # The ace also ends a straight from below.
  padded = np.concatenate([has[:, -1:], has], axis=1)
  for top in range(_FLUSH_CARDS - 1, padded.shape[1]):
    best[padded[:, top - _FLUSH_CARDS + 1 : top + 1].all(axis=1)] = top
  return best


def _highest(has: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]", count: int) -> list[Int64s]:
  """Returns 1 + the `count` highest ranks of each hand, highest first, 0 where they run out."""
  order = np.argsort(-np.where(has, np.arange(1, has.shape[1] + 1), 0), axis=1, kind="stable")
  chosen = np.take_along_axis(has, order, axis=1)
  return [np.where(chosen[:, place], order[:, place] + 1, 0) for place in range(count)]
