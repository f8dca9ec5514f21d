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
# The number of cards of a made hand.
_MADE_HAND_SIZE = 5
# Categories of made hands, the best last; a high card is 0.
_PAIR, _TWO_PAIR, _THREE, _STRAIGHT, _FLUSH, _FULL_HOUSE, _FOUR, _STRAIGHT_FLUSH = range(1, 9)
# The names of the categories.
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
# The number of kickers by category.
_KICKERS = {0: 5, _PAIR: 3, _TWO_PAIR: 1, _THREE: 2, _FOUR: 1}


def card_name(card: int, num_suits: int = len(SUITS)) -> str:
  """Returns the name of a card, such as `"Ah"`."""
  return RANKS[card // num_suits] + SUITS[card % num_suits]


def parse_cards(text: str, num_suits: int = len(SUITS)) -> list[int]:
  """Reads cards written without separators, as in `"AhTc"`.

  Raises:
    ArgumentError: the text has a part that is not a card, or the same card twice.
  """
  text = "".join(text.split())
  cards: list[int] = []
  for start in range(0, len(text), 2):
    name = text[start : start + 2]
    if len(name) < 2 or name[0] not in RANKS or name[1] not in SUITS[:num_suits]:
      raise errors.ArgumentError(
        f"{name!r} in {text!r} is not a card: write a rank of {RANKS} and a suit of "
        f"{SUITS[:num_suits]}, as in Ah."
      )
    cards.append(RANKS.index(name[0]) * num_suits + SUITS.index(name[1]))
    if cards[-1] in cards[:-1]:
      raise errors.ArgumentError(f"{text!r} has the card {name} twice.")
  return cards


def all_hands(num_cards: int, hand_size: int, dead: Iterable[int] = ()) -> Int64s:
  """Returns all hands without dead cards in lexicographic order, int64 (hands, hand_size)."""
  live = [card for card in range(num_cards) if card not in set(dead)]
  return np.array(list(itertools.combinations(live, hand_size)), np.int64).reshape(-1, hand_size)


def file_hands() -> Int64s:
  """Returns the 1,326 hands of two cards in the order of LibratusEndgames files, shape (1326, 2).

  OpenSpiel's `handReaches` have the same order: lexicographic, with the suits spades, hearts, diamonds, clubs.
  """
  deck = np.array([rank * 4 + suit for rank in range(13) for suit in reversed(range(4))])
  return np.sort(deck[all_hands(52, 2)], axis=1)


class _RankTable(NamedTuple):
  """Ranks of the cards of each hand together with the board.

  Attributes:
    counts: int64 (hands, ranks). The number of cards of each rank.
    suited: bool (hands, ranks). The ranks that occur in the most frequent suit.
    straight: int64 (hands,). 1 + the highest rank of the best straight; 0 if there is no straight.
    straight_flush: int64 (hands,). 1 + the highest rank of the best straight flush; 0 if there is no straight flush.
    by_count: int64 (hands, 2). The two most frequent ranks; of ranks with equal counts, the higher one first.
  """

  counts: Int64s
  suited: Bools
  straight: Int64s
  straight_flush: Int64s
  by_count: Int64s


def hand_strengths(hands: Int64s, board: Sequence[int], num_suits: int) -> Int64s:
  """Returns the strength of each hand at showdown, by the best five cards of the hand and the board.

  With fewer than five cards in all, pairs and high cards count, but no straights and flushes.

  Args:
    hands: int64 (hands, cards a hand). The hands.
    board: the public cards.
    num_suits: number of suits of the deck.

  Returns:
    int64 (hands,). A higher number wins, equal numbers tie.
  """
  table = _rank_table(hands, board, num_suits)
  categories = _categories(table)
  result = np.zeros(len(hands), np.int64)
  for category in np.unique(categories).tolist():
    chosen = categories == category
    tie_breakers = _tie_breakers(category, _RankTable(*(column[chosen] for column in table)))
    # The digits of the strength: first the category, then up to five tie breakers.
    strength = np.full(chosen.sum(), category, np.int64)
    for index in range(_MADE_HAND_SIZE):
      digit = tie_breakers[index] if index < len(tie_breakers) else 0
      strength = strength * (len(RANKS) + 1) + digit
    result[chosen] = strength
  return result


def made_hands(hands: Int64s, board: Sequence[int], num_suits: int) -> npt.NDArray[np.str_]:
  """Returns the made hand of each hand and the board, one of `MADE_HANDS`; str (hands,).

  Arguments are those of `hand_strengths`.
  """
  return np.array(MADE_HANDS)[_categories(_rank_table(hands, board, num_suits))]


def _rank_table(hands: Int64s, board: Sequence[int], num_suits: int) -> _RankTable:
  """Returns the ranks of the cards of each hand together with the board."""
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
  is_flush = suited.sum(axis=1) >= _MADE_HAND_SIZE
  return _RankTable(
    counts=counts,
    suited=suited,
    straight=_best_straight(counts > 0),
    straight_flush=np.where(is_flush, _best_straight(suited), 0),
    by_count=np.argsort(-(counts * len(RANKS) + np.arange(len(RANKS))), axis=1)[:, :2],
  )


def _categories(table: _RankTable) -> Int64s:
  """Returns the category of each made hand, int64 (hands,)."""
  most, second = np.take_along_axis(table.counts, table.by_count, axis=1).T
  conditions = {
    _STRAIGHT_FLUSH: table.straight_flush > 0,
    _FOUR: most == 4,
    _FULL_HOUSE: (most == 3) & (second >= 2),
    _FLUSH: table.suited.sum(axis=1) >= _MADE_HAND_SIZE,
    _STRAIGHT: table.straight > 0,
    _THREE: most == 3,
    _TWO_PAIR: (most == 2) & (second == 2),
    _PAIR: most == 2,
  }
  return np.select(list(conditions.values()), list(conditions), 0)


def _tie_breakers(category: int, table: _RankTable) -> list[Int64s]:
  """Returns the ranks that compare hands of one category, each plus 1, the most important first."""
  if category == _STRAIGHT_FLUSH:
    return [table.straight_flush]
  if category == _STRAIGHT:
    return [table.straight]
  if category == _FLUSH:
    return _highest(table.suited, _MADE_HAND_SIZE)
  num_ranks = 0 if category == 0 else 2 if category in (_TWO_PAIR, _FULL_HOUSE) else 1
  paired = table.by_count[:, :num_ranks]
  kickers = table.counts > 0
  np.put_along_axis(kickers, paired, False, axis=1)
  return [*(paired + 1).T, *_highest(kickers, _KICKERS.get(category, 0))]


def _best_straight(has_rank: Bools) -> Int64s:
  """Returns 1 + the highest rank of each hand's best straight, 0 without a straight; int64 (hands,).

  Args:
    has_rank: bool (hands, ranks). The ranks that occur in each hand.
  """
  best = np.zeros(len(has_rank), np.int64)
  # The ace is also the lowest card of a straight.
  ace_low = np.concatenate([has_rank[:, -1:], has_rank], axis=1)
  for top in range(_MADE_HAND_SIZE - 1, ace_low.shape[1]):
    best[ace_low[:, top - _MADE_HAND_SIZE + 1 : top + 1].all(axis=1)] = top
  return best


def _highest(has_rank: Bools, count: int) -> list[Int64s]:
  """Returns the `count` highest ranks of each hand plus 1, the highest first; 0 if the hand has fewer ranks.

  Args:
    has_rank: bool (hands, ranks). The ranks that occur in each hand.
    count: number of ranks.
  """
  present = np.where(has_rank, np.arange(1, has_rank.shape[1] + 1), 0)
  order = np.argsort(-present, axis=1, kind="stable")
  exists = np.take_along_axis(has_rank, order, axis=1)
  return [np.where(exists[:, index], order[:, index] + 1, 0) for index in range(count)]
