"""Cards, hands and their strengths.

A card is a number, `rank * num_suits + suit`, as in OpenSpiel's poker games. Ranks count from the deuce; suits are
clubs, diamonds, hearts, spades. A hand is a row of cards in ascending order.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Int64s

RANKS = "23456789TJQKA"
SUITS = "cdhs"
_FLUSH_CARDS = 5
# Categories of hands, the best last; a high card is 0.
_PAIR, _TWO_PAIR, _THREE, _STRAIGHT, _FLUSH, _FULL_HOUSE, _FOUR, _STRAIGHT_FLUSH = range(1, 9)
# Their names.
MADE_HANDS = (
  "high card",
  "pair",
  "two pair",
  "three of a kind",
  "straight",
  "flush",
  "full house",
  "four of a kind",
  "straight flush",
)
_KICKERS = {0: 5, _PAIR: 3, _TWO_PAIR: 1, _THREE: 2, _FOUR: 1}


def card_name(card: int, num_suits: int = len(SUITS)) -> str:
  """Returns the name of a card, such as `"Ah"`."""
  return RANKS[card // num_suits] + SUITS[card % num_suits]


def parse_cards(text: str, num_suits: int = len(SUITS)) -> list[int]:
  """Reads cards written without separators, as in `"AhTc"`.

  Raises:
    ArgumentError: a part is no card, or a card is listed twice.
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
  """Returns the 1,326 hands of two cards in the order of LibratusEndgames files, shape (1326, 2).

  OpenSpiel's `handReaches` have the same order: lexicographic, with the suits spades, hearts, diamonds, clubs.
  """
  deck = np.array([rank * 4 + suit for rank in range(13) for suit in reversed(range(4))])
  return np.sort(deck[all_hands(52, 2)], axis=1)


class _Hands(NamedTuple):
  """Hands with the board, by ranks.

  Attributes:
    counts: int64 (hands, ranks). The number of cards of each rank.
    suited: bool (hands, ranks). The ranks of the most frequent suit.
    straight: int64 (hands,). 1 + the highest rank of the best straight; 0 if there is none.
    straight_flush: int64 (hands,). 1 + the highest rank of the best straight flush; 0 if there is none.
    by_count: int64 (hands, 2). The two most frequent ranks, the higher rank first among equals.
  """

  counts: Int64s
  suited: Bools
  straight: Int64s
  straight_flush: Int64s
  by_count: Int64s


def hand_strengths(hands: Int64s, board: Sequence[int], num_suits: int) -> Int64s:
  """Ranks hands by the best five cards of each hand and the board; equal numbers tie.

  With fewer than five cards, pairs and high cards still count; there are no straights and flushes.

  Args:
    hands: int64 (hands, cards a hand). The hands.
    board: the public cards.
    num_suits: number of suits of the deck.

  Returns:
    int64 (hands,), higher is better.
  """
  found = _sorted_by_rank(hands, board, num_suits)
  category = _categories(found)
  result = np.zeros(len(hands), np.int64)
  for kind in np.unique(category).tolist():
    chosen = category == kind
    digits = _tie_breakers(kind, _Hands(*(array[chosen] for array in found)))
    code = np.full(chosen.sum(), kind, np.int64)
    for place in range(_FLUSH_CARDS):
      code = code * (len(RANKS) + 1) + (digits[place] if place < len(digits) else 0)
    result[chosen] = code
  return result


def made_hands(hands: Int64s, board: Sequence[int], num_suits: int) -> npt.NDArray[np.str_]:
  """Returns the category of each hand with the board, one of `MADE_HANDS`, str (hands,); as of `hand_strengths`."""
  return np.array(MADE_HANDS)[_categories(_sorted_by_rank(hands, board, num_suits))]


def _sorted_by_rank(hands: Int64s, board: Sequence[int], num_suits: int) -> _Hands:
  """Returns the ranks of each hand with the board."""
  num_hands = len(hands)
  cards = np.concatenate([hands, np.tile(np.array(board, np.int64), (num_hands, 1))], axis=1)
  ranks, suits = cards // num_suits, cards % num_suits
  hand = np.arange(num_hands)
  counts = np.zeros((num_hands, len(RANKS)), np.int64)
  of_suit = np.zeros((num_hands, num_suits, len(RANKS)), bool)
  for rank, suit in zip(ranks.T, suits.T, strict=True):
    counts[hand, rank] += 1
    of_suit[hand, suit, rank] = True
  suited = of_suit[hand, of_suit.sum(axis=2).argmax(axis=1)]
  is_flush = suited.sum(axis=1) >= _FLUSH_CARDS
  return _Hands(
    counts=counts,
    suited=suited,
    straight=_best_straight(counts > 0),
    straight_flush=np.where(is_flush, _best_straight(suited), 0),
    by_count=np.argsort(-(counts * len(RANKS) + np.arange(len(RANKS))), axis=1)[:, :2],
  )


def _categories(hands: _Hands) -> Int64s:
  """Returns the category of each hand."""
  most, second = np.take_along_axis(hands.counts, hands.by_count, axis=1).T
  conditions = {
    _STRAIGHT_FLUSH: hands.straight_flush > 0,
    _FOUR: most == 4,
    _FULL_HOUSE: (most == 3) & (second >= 2),
    _FLUSH: hands.suited.sum(axis=1) >= _FLUSH_CARDS,
    _STRAIGHT: hands.straight > 0,
    _THREE: most == 3,
    _TWO_PAIR: (most == 2) & (second == 2),
    _PAIR: most == 2,
  }
  return np.select(list(conditions.values()), list(conditions), 0)


def _tie_breakers(category: int, hands: _Hands) -> list[Int64s]:
  """Returns 1 + the ranks by which hands of one category are compared, the most important first."""
  if category == _STRAIGHT_FLUSH:
    return [hands.straight_flush]
  if category == _STRAIGHT:
    return [hands.straight]
  if category == _FLUSH:
    return _highest(hands.suited, _FLUSH_CARDS)
  num_ranks = 0 if category == 0 else 2 if category in (_TWO_PAIR, _FULL_HOUSE) else 1
  paired = hands.by_count[:, :num_ranks]
  rest = hands.counts > 0
  np.put_along_axis(rest, paired, False, axis=1)
  return [*(paired + 1).T, *_highest(rest, _KICKERS.get(category, 0))]


def _best_straight(has: Bools) -> Int64s:
  """Returns 1 + the highest rank of the best straight, 0 if there is none; shape (hands,)."""
  best = np.zeros(len(has), np.int64)
  # The ace is also the lowest card of a straight.
  padded = np.concatenate([has[:, -1:], has], axis=1)
  for top in range(_FLUSH_CARDS - 1, padded.shape[1]):
    best[padded[:, top - _FLUSH_CARDS + 1 : top + 1].all(axis=1)] = top
  return best


def _highest(has: Bools, count: int) -> list[Int64s]:
  """Returns 1 + the `count` highest ranks of each hand, the highest first, 0 if there are fewer."""
  order = np.argsort(-np.where(has, np.arange(1, has.shape[1] + 1), 0), axis=1, kind="stable")
  chosen = np.take_along_axis(has, order, axis=1)
  return [np.where(chosen[:, place], order[:, place] + 1, 0) for place in range(count)]
