"""Boards: public cards, with the private hands that are possible there, their strengths and their infosets.

Hands that play alike share an infoset. `Board.infoset_of_hand` numbers the infosets of a board. Payoffs at terminals
are computed by hand, strategies by infoset.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.poker import cards
from spiel_cfr.poker.betting_tree import BettingNode, Kind
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.suit_symmetries import Symmetry, number_in_order, symmetries

# Sequences are 32-bit numbers.
_MOST_SEQUENCES = 1 << 32


@dataclasses.dataclass(frozen=True)
class Board:
  """Public cards, and the hands that are possible with them.

  Attributes:
    cards: tuple of int. The public cards at the beginning, then those of each deal, in ascending order each.
    level: int. The number of deals of public cards before it.
    probability: float. Chance's probability of the board, given hands that share no card with it.
    hands: for each player, int64 (hands,). The rows of `Deal.hands`.
    strengths: for each player, int64 (hands,), ascending. The strength of each hand; all 0 if there is no showdown.
    infoset_of_hand: for each player, int64 (hands,). The infoset of each hand, numbered from 0 on this board in the
      order of the first hands.
    reaches: for each player, float64 (hands,). The weight of each hand.
    parent: int. The number of the board before the last deal of public cards; its own number at the beginning.
    copies: int. The number of boards that it stands for; `probability` is that of all of them.
  """

  cards: tuple[int, ...]
  level: int
  probability: float
  hands: tuple[Int64s, Int64s]
  strengths: tuple[Int64s, Int64s]
  infoset_of_hand: tuple[Int64s, Int64s]
  reaches: tuple[Float64s, Float64s]
  parent: int = 0
  copies: int = 1

  @property
  def infoset_per_hand(self) -> bool:
    """True if each hand has an infoset of its own."""
    return all(own.max(initial=-1) == len(own) - 1 for own in self.infoset_of_hand)


def list_boards(deal: Deal, nodes: list[BettingNode], *, merged: bool = False) -> list[Board]:
  """Lists the boards of a public tree: the one at the beginning, then all that chance can deal.

  Args:
    deal: the cards of the game.
    nodes: the betting.
    merged: whether one board stands for all that differ only by suits, and hands that do so share an infoset; see
      `suit_symmetries`.

  Raises:
    GameTooLargeError: there are more sequences than 32-bit numbers.
  """
  num_dealt = {node.level: node.num_cards for node in nodes if node.kind is Kind.CHANCE}
  levels = [0, *(level + 1 for level in sorted(num_dealt))]
  ways, num_sequences, num_left = 1, 0, deal.num_cards - len(deal.board)
  most = int((deal.reaches > 0).sum(axis=1).max())
  for level in levels:
    actions = sum(len(node.actions) for node in nodes if node.level == level)
    num_sequences += actions * ways * most
    ways *= math.comb(num_left, num_dealt.get(level, 0))
    num_left -= num_dealt.get(level, 0)
  if num_sequences > _MOST_SEQUENCES:
    raise errors.GameTooLargeError(
      f"The game has about {num_sequences:,} sequences, more than {_MOST_SEQUENCES:,}. Begin "
      "later, or keep fewer actions with an action filter."
    )
  with_showdown = {node.level for node in nodes if node.kind is Kind.SHOWDOWN}
  # For each board, the symmetries that map it to itself; without merging, only the identity.
  fixed = [symmetries(deal)[: None if merged else 1]]
  boards = [Board(deal.board, 0, 1.0, *_hands(deal, deal.board, fixed[0], 0 in with_showdown))]
  for level in levels[1:]:
    count = num_dealt[level - 1]
    before = [(parent, board) for parent, board in enumerate(boards) if board.level == level - 1]
    for parent, above in before:
      left = [card for card in range(deal.num_cards) if card not in above.cards]
      ways = math.comb(len(left) - 2 * deal.hand_size, count)
      for dealt in itertools.combinations(left, count):
        images = [symmetry.moved(dealt) for symmetry in fixed[parent]]
        if dealt != min(images):
          continue
        copies = len(set(images))
        pairs = zip(fixed[parent], images, strict=True)
        fixed_here = [symmetry for symmetry, image in pairs if image == dealt]
        public = (*above.cards, *dealt)
        hands = _hands(deal, public, fixed_here, level in with_showdown)
        if len(hands[0][0]):
          chance = above.probability * copies / ways
          boards.append(Board(public, level, chance, *hands, parent, above.copies * copies))
          fixed.append(fixed_here)
  return boards


def _hands(
  deal: Deal, public: tuple[int, ...], fixed: Sequence[Symmetry], has_showdown: bool
) -> tuple[
  tuple[Int64s, Int64s], tuple[Int64s, Int64s], tuple[Int64s, Int64s], tuple[Float64s, Float64s]
]:
  """Returns hands, strengths, infosets and reaches of a board; no hands if no pair of hands fits it."""
  possible = (deal.reaches > 0) & ~np.isin(deal.hands, public).any(axis=1)
  found = []
  for player in (0, 1):
    # Counted in integers: a hand whose opponents all hold one of its cards must have exactly 0.
    opponents = deal.compatible_mass(possible[1 - player].astype(np.int64))
    own = np.flatnonzero(possible[player] & (opponents > 0))
    strength = np.zeros(len(own), np.int64)
    if has_showdown:
      strength = cards.hand_strengths(deal.hands[own], public, deal.num_suits)
    order = np.argsort(strength, kind="stable")
    own = own[order]
    # Equivalent hands have the same set of images, so the first image identifies their infoset.
    least = np.min([symmetry.hands[own] for symmetry in fixed], axis=0)
    found.append((own, strength[order], number_in_order(least), deal.reaches[player, own]))
  first, second = found
  hands, strengths, infosets, reaches = zip(first, second, strict=True)
  return hands, strengths, infosets, reaches


class HandPairs(NamedTuple):
  """The pairs of a player's and its opponent's hands on a board.

  Attributes:
    apart: bool (hands, opponent's hands). Whether they share no card.
    ahead: int8 (hands, opponent's hands). 1 if the player's hand is better, 0 for a tie, -1 if it is worse; also for
      pairs that share a card.
  """

  apart: npt.NDArray[np.bool_]
  ahead: npt.NDArray[np.int8]


def hand_pairs(deal: Deal, board: Board, player: int) -> HandPairs:
  """Returns the pairs of hands on a board."""
  own, other = (deal.hands[board.hands[owner]] for owner in (player, 1 - player))
  apart = np.ones((len(own), len(other)), bool)
  for card in own.T:
    for opponents in other.T:
      apart &= card[:, None] != opponents
  ahead = np.sign(board.strengths[player][:, None] - board.strengths[1 - player])
  return HandPairs(apart, ahead.astype(np.int8))
