"""Boards: public cards, and for each player the possible hands with their strengths, reaches and infosets.

`list_boards` lists all runouts of a game. With merged suits, isomorphic boards have one representative, and isomorphic
hands share an infoset. Payoffs at terminals have a number for each hand, strategies a number for each infoset.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.poker import cards
from spiel_cfr.poker.betting_tree import BettingNode, NodeKind
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.suit_symmetries import Symmetry, number_in_order, symmetries

# Sequences are 32-bit numbers.
_MOST_SEQUENCES = 1 << 32


@dataclasses.dataclass(frozen=True)
class Board:
  """Public cards, and the hands that are possible with them.

  Attributes:
    cards: tuple of int. The public cards at the beginning, then the cards of each street; those of a street are in
      ascending order.
    level: int. The number of public deals since the beginning of the game; 0 for the first board.
    probability: float. Chance's probability of the board, given hands that share no card with it.
    hands: for each player, int64 (hands,). The possible hands, as rows of `Deal.hands`, the weakest first.
    strengths: for each player, int64 (hands,), ascending. The strength of each hand; all 0 if there is no showdown.
    infoset_of_hand: for each player, int64 (hands,). The infoset of each hand, numbered from 0 on this board in the
      order of the first hands.
    reaches: for each player, float64 (hands,). The weight of each hand in the range at the beginning of the game.
    parent: int. The number of the board one street earlier; 0 for the first board.
    copies: int. The number of isomorphic boards that this one represents, itself included. `probability` is their sum.
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
    """True if every hand has an infoset of its own, which it shares with no other hand."""
    return all(infosets.max(initial=-1) == len(infosets) - 1 for infosets in self.infoset_of_hand)


def list_boards(deal: Deal, nodes: list[BettingNode], *, merged: bool = False) -> list[Board]:
  """Lists the boards of a game: the one at the beginning, then all that chance can deal, parents first.

  Args:
    deal: the cards of the game.
    nodes: the betting.
    merged: whether isomorphic boards are merged into one, and isomorphic hands into one infoset; see
      `suit_symmetries`.

  Raises:
    GameTooLargeError: the game has more sequences than 32-bit numbers can count.
  """
  num_dealt = {node.level: node.num_cards for node in nodes if node.kind is NodeKind.CHANCE}
  levels = [0, *(level + 1 for level in sorted(num_dealt))]
  _check_num_sequences(deal, nodes, num_dealt, levels)
  showdown_levels = {node.level for node in nodes if node.kind is NodeKind.SHOWDOWN}
  # For each board, the symmetries that map it to itself; without merging, only the identity.
  stabilizers = [symmetries(deal)[: None if merged else 1]]
  boards = [
    Board(deal.board, 0, 1.0, *_hands(deal, deal.board, stabilizers[0], 0 in showdown_levels))
  ]
  for level in levels[1:]:
    earlier = [number for number, board in enumerate(boards) if board.level == level - 1]
    for parent in earlier:
      above, stabilizer = boards[parent], stabilizers[parent]
      num_cards, has_showdown = num_dealt[level - 1], level in showdown_levels
      for street in _next_streets(deal, above, stabilizer, num_cards):
        public = (*above.cards, *street.dealt)
        hands = _hands(deal, public, street.stabilizer, has_showdown)
        if len(hands.hands[0]):
          probability = above.probability * street.copies / street.num_deals
          copies = above.copies * street.copies
          boards.append(Board(public, level, probability, *hands, parent, copies))
          stabilizers.append(street.stabilizer)
  return boards


def _check_num_sequences(
  deal: Deal, nodes: list[BettingNode], num_dealt: Mapping[int, int], levels: list[int]
) -> None:
  """Raises GameTooLargeError if the sequences of all runouts, not merged, may not fit 32-bit numbers."""
  runouts, num_sequences, num_left = 1, 0, deal.num_cards - len(deal.board)
  most_hands = int((deal.reaches > 0).sum(axis=1).max())
  for level in levels:
    actions = sum(len(node.actions) for node in nodes if node.level == level)
    num_sequences += actions * runouts * most_hands
    runouts *= math.comb(num_left, num_dealt.get(level, 0))
    num_left -= num_dealt.get(level, 0)
  if num_sequences > _MOST_SEQUENCES:
    raise errors.GameTooLargeError(
      f"The game has about {num_sequences:,} sequences, more than {_MOST_SEQUENCES:,}. Begin "
      "later, or keep fewer actions with an action filter."
    )


class _NextStreet(NamedTuple):
  """Public cards of the street after a board, which represent all isomorphic deals of that street.

  Attributes:
    dealt: tuple of int. The cards, in ascending order.
    num_deals: int. The number of deals of the street that are possible beside two hands.
    copies: int. The number of isomorphic deals, this one included.
    stabilizer: list of Symmetry. The symmetries that keep the board and these cards.
  """

  dealt: tuple[int, ...]
  num_deals: int
  copies: int
  stabilizer: list[Symmetry]


def _next_streets(
  deal: Deal, above: Board, stabilizer: list[Symmetry], num_cards: int
) -> Iterator[_NextStreet]:
  """Yields the first deal of each class of isomorphic deals of some cards after a board."""
  left = [card for card in range(deal.num_cards) if card not in above.cards]
  num_deals = math.comb(len(left) - 2 * deal.hand_size, num_cards)
  for dealt in itertools.combinations(left, num_cards):
    images = [symmetry.moved(dealt) for symmetry in stabilizer]
    if dealt == min(images):
      pairs = zip(stabilizer, images, strict=True)
      keeping = [symmetry for symmetry, image in pairs if image == dealt]
      yield _NextStreet(dealt, num_deals, len(set(images)), keeping)


class _BoardHands(NamedTuple):
  """The hands of a board; attributes are those of `Board`."""

  hands: tuple[Int64s, Int64s]
  strengths: tuple[Int64s, Int64s]
  infoset_of_hand: tuple[Int64s, Int64s]
  reaches: tuple[Float64s, Float64s]


def _hands(
  deal: Deal, public: tuple[int, ...], stabilizer: Sequence[Symmetry], has_showdown: bool
) -> _BoardHands:
  """Returns the hands of a board; no hands if no pair of hands can be dealt beside its cards.

  Args:
    deal: the cards of the game.
    public: the cards of the board.
    stabilizer: the symmetries that keep the board.
    has_showdown: whether hands are compared on this board; otherwise all strengths are 0.
  """
  possible = (deal.reaches > 0) & ~np.isin(deal.hands, public).any(axis=1)
  columns = []
  for player in (0, 1):
    # Counted in integers: a hand whose opponents all hold one of its cards must have exactly 0.
    num_opponents = deal.compatible_mass(possible[1 - player].astype(np.int64))
    hands = np.flatnonzero(possible[player] & (num_opponents > 0))
    strengths = np.zeros(len(hands), np.int64)
    if has_showdown:
      strengths = cards.hand_strengths(deal.hands[hands], public, deal.num_suits)
    order = np.argsort(strengths, kind="stable")
    hands = hands[order]
    # Isomorphic hands have the same set of images, so the first image identifies their infoset.
    first_image = np.min([symmetry.hands[hands] for symmetry in stabilizer], axis=0)
    infosets = number_in_order(first_image)
    columns.append((hands, strengths[order], infosets, deal.reaches[player, hands]))
  first, second = columns
  return _BoardHands(*zip(first, second, strict=True))


class HandPairs(NamedTuple):
  """The pairs of a player's hand and an opponent's hand on a board.

  Attributes:
    disjoint: bool (hands, opponent's hands). True if the hands share no card.
    ahead: int8 (hands, opponent's hands). 1 if the player's hand is stronger, 0 for a tie, -1 if it is weaker. Pairs
      that share a card have a number, too.
  """

  disjoint: npt.NDArray[np.bool_]
  ahead: npt.NDArray[np.int8]


def hand_pairs(deal: Deal, board: Board, player: int) -> HandPairs:
  """Compares each hand of a player with each hand of its opponent on a board."""
  own, other = (deal.hands[board.hands[owner]] for owner in (player, 1 - player))
  disjoint = np.ones((len(own), len(other)), bool)
  for card in own.T:
    for opponent_card in other.T:
      disjoint &= card[:, None] != opponent_card
  ahead = np.sign(board.strengths[player][:, None] - board.strengths[1 - player])
  return HandPairs(disjoint, ahead.astype(np.int8))
