"""Public cards, the private hands that can be there, how strong they are, and which of them are one infoset.

Hands that play alike have one infoset together: a hand's *class* is which of its board's infosets it has. Terminals
know hands, treeplexes know classes.
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
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.public_tree import Kind, PublicNode
from spiel_cfr.poker.suit_symmetries import Symmetry, number_in_order, symmetries

# Sequences are numbered by 32 bits.
_MOST_SEQUENCES = 1 << 32


@dataclasses.dataclass(frozen=True)
class Board:
  """Public cards, and the hands that can be there.

  Attributes:
    cards: those of the beginning, then those that chance has dealt, in ascending order each.
    level: how many times chance has dealt public cards before it.
    probability: that chance deals it, given hands that share no card with it.
    hands: int64 (hands,) per player: rows of `Deal.hands`.
    strengths: int64 (hands,) per player, ascending; all 0 where no showdown can be.
    classes: int64 (hands,) per player: the class of each hand, from 0 without gaps, in order of the first hand of each.
    reaches: float64 (hands,) per player: what each hand weighs.
    parent: the number of the board before the last deal of public cards; its own at the beginning.
    copies: the number of boards that it stands for; `probability` is that of all of them.
  """

  cards: tuple[int, ...]
  level: int
  probability: float
  hands: tuple[Int64s, Int64s]
  strengths: tuple[Int64s, Int64s]
  classes: tuple[Int64s, Int64s]
  reaches: tuple[Float64s, Float64s]
  parent: int = 0
  copies: int = 1

  @property
  def tells_all_apart(self) -> bool:
    """Whether each hand has an infoset of its own."""
    return all(own.max(initial=-1) == len(own) - 1 for own in self.classes)


def list_boards(deal: Deal, nodes: list[PublicNode], *, merged: bool = False) -> list[Board]:
  """Lists the boards of a public tree: the one at the beginning, then all that chance can deal.

  Args:
    deal: how the game deals.
    nodes: its betting.
    merged: whether one board stands for all that differ by suits alone, and hands there that do have one infoset; see
      `suit_symmetries`.

  Raises:
    GameTooLargeError: there are more sequences than can be numbered.
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
  # The symmetries that leave each board where it is; without merging, the one that changes nothing.
  fixed = [symmetries(deal)[: None if merged else 1]]
  boards = [Board(deal.board, 0, 1.0, *_hands(deal, deal.board, fixed[0], 0 in with_showdown))]
  for level in levels[1:]:
    count = num_dealt[level - 1]
    for parent, above in [each for each in enumerate(boards) if each[1].level == level - 1]:
      left = [card for card in range(deal.num_cards) if card not in above.cards]
      ways = math.comb(len(left) - 2 * deal.hand_size, count)
      for dealt in itertools.combinations(left, count):
        images = [each.moved(dealt) for each in fixed[parent]]
        if dealt != min(images):
          continue
        same = len(set(images))
        here = [each for each, image in zip(fixed[parent], images, strict=True) if image == dealt]
        known = (*above.cards, *dealt)
        hands = _hands(deal, known, here, level in with_showdown)
        if len(hands[0][0]):
          chance = above.probability * same / ways
          boards.append(Board(known, level, chance, *hands, parent, above.copies * same))
          fixed.append(here)
  return boards


def _hands(
  deal: Deal, known: tuple[int, ...], fixed: Sequence[Symmetry], has_showdown: bool
) -> tuple[
  tuple[Int64s, Int64s], tuple[Int64s, Int64s], tuple[Int64s, Int64s], tuple[Float64s, Float64s]
]:
  """Returns hands, strengths, classes and reaches of a board; no hands where no pair of hands can see it."""
  possible = (deal.reaches > 0) & ~np.isin(deal.hands, known).any(axis=1)
  found = []
  for player in (0, 1):
    # Counted in integers: a hand whose opponents all hold one of its cards must come out at exactly 0.
    opponents = deal.compatible_mass(possible[1 - player].astype(np.int64))
    own = np.flatnonzero(possible[player] & (opponents > 0))
    strength = np.zeros(len(own), np.int64)
    if has_showdown:
      strength = cards.hand_strengths(deal.hands[own], known, deal.num_suits)
    order = np.argsort(strength, kind="stable")
    own = own[order]
    # Of all hands that symmetries take one to, the first is the same for all that are alike.
    least = np.min([each.hands[own] for each in fixed], axis=0)
    found.append((own, strength[order], number_in_order(least), deal.reaches[player, own]))
  first, second = found
  hands, strengths, classes, reaches = zip(first, second, strict=True)
  return hands, strengths, classes, reaches


class HandPairs(NamedTuple):
  """The pairs of a player's and its opponent's hands on a board.

  Attributes:
    apart: bool of shape (hands, opponent's hands): they share no card.
    ahead: int8 of the same shape: 1 where the player's hand is the better one, 0 for a tie, -1 where it is worse,
      whether or not they are apart.
  """

  apart: npt.NDArray[np.bool_]
  ahead: npt.NDArray[np.int8]


def hand_pairs(deal: Deal, board: Board, player: int) -> HandPairs:
  """Returns the pairs of hands on a board."""
  own, other = (deal.hands[board.hands[each]] for each in (player, 1 - player))
  apart = np.ones((len(own), len(other)), bool)
  for card in own.T:
    for opponents in other.T:
      apart &= card[:, None] != opponents
  ahead = np.sign(board.strengths[player][:, None] - board.strengths[1 - player])
  return HandPairs(apart, ahead.astype(np.int8))
