"""Tables of the hands of all boards as flat arrays, which `showdown_kernels` reads; all parts of a game share them."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, Uint64s, unlocked
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker.boards import Board
from spiel_cfr.poker.deal import Deal


class HandTables:
  """Hands of all boards: their cards, infosets, strengths and reaches.

  `rows` and `reaches` are concatenations of short arrays; `boards` and `infoset_places` have the offsets of these.

  Attributes:
    rows: uint32 (elements,). For each board: descriptions of hands, infoset places, and the first hand of each
      strength.
    reaches: float64 (elements,). The reaches of the hands of each board and player.
    boards: uint64 (boards, 8). The columns of the kernels' table of boards before `FIRST_FOLD`.
    infoset_places: int64 (players, boards, levels + 1). The offset in `rows` of the array that gives the infoset of
      each hand of a board: in column 0 for the empty sequence, in column 1 + l for the board's ancestor of level l.
  """

  def __init__(
    self, deal: Deal, boards: list[Board], infosets_of_hands: Callable[[int, int, int], Int64s]
  ) -> None:
    """Writes the tables; `infosets_of_hands` is `PublicTree.infoset_offsets`."""
    self._rows: list[npt.NDArray[Any]] = []
    self._length = 0
    reaches: list[Float64s] = []
    most_hands = max(len(hands) for board in boards for hands in board.hands)
    num_levels = 1 + max(board.level for board in boards)
    self.boards: Uint64s = np.zeros((len(boards), 8), np.uint64)
    self.infoset_places = np.full(
      (len(PLAYERS), len(boards), 1 + num_levels), self._add(np.zeros(most_hands))
    )
    num_reaches = 0
    for number, board in enumerate(boards):
      of_reaches = []
      for player in PLAYERS:
        for ancestor in _ancestors(boards, number):
          offset = self._add(infosets_of_hands(player, ancestor, number))
          self.infoset_places[player, number, 1 + boards[ancestor].level] = offset
        of_reaches.append(num_reaches)
        # Kernels read whole vectors.
        reaches += [board.reaches[player], np.zeros(MOST_LANES)]
        num_reaches += len(board.reaches[player]) + MOST_LANES
      of_descriptions = [self._add(_describe_hands(player, deal, board)) for player in PLAYERS]
      strengths = np.unique(np.concatenate(board.strengths))
      first_hands = [
        np.append(np.searchsorted(of_hands, strengths), len(of_hands))
        for of_hands in board.strengths
      ]
      counts = [len(hands) for hands in board.hands]
      of_strengths = self._add(np.concatenate(first_hands))
      self.boards[number] = *counts, *of_descriptions, *of_reaches, of_strengths, len(strengths)
    self.rows = np.concatenate(self._rows)
    self.reaches = np.concatenate(reaches)
    del self._rows

  def __setstate__(self, attributes: dict[str, Any]) -> None:
    """Takes unpickled attributes; arrays may lie in memory that several processes share."""
    for name, value in attributes.items():
      setattr(self, name, unlocked(value) if isinstance(value, np.ndarray) else value)

  def _add(self, numbers: npt.ArrayLike) -> int:
    """Appends numbers to `rows`; returns the offset of the first."""
    start = self._length
    self._rows.append(np.asarray(numbers, np.uint32).reshape(-1))
    self._length += len(self._rows[-1])
    return start

  @functools.cached_property
  def single_reaches(self) -> AnyFloats:
    """`reaches` in float32."""
    return self.reaches.astype(np.float32)


def _ancestors(boards: list[Board], number: int) -> list[int]:
  """Returns the numbers of a board and of all boards before it, up to the first one."""
  result = [number]
  while boards[result[-1]].parent != result[-1]:
    result.append(boards[result[-1]].parent)
  return result


def _describe_hands(player: int, deal: Deal, board: Board) -> Int64s:
  """Returns a player's hands as `showdown_kernels` reads them, shape (HAND_LINES, hands).

  The lines are the indices of its cards in the totals to which they are added, those from which they are read, and the
  index of the same hand among the opponent's hands.
  """
  own, other = board.hands[player], board.hands[1 - player]
  same_hand = np.full(len(deal.hands), len(other))
  if deal.hand_size == 2:
    # Subtracting the totals of both cards subtracts the same hand twice; kernels add it again.
    same_hand[other] = np.arange(len(other))
    low, high = deal.hands[own].T
    return np.stack([low, high, low, high, same_hand[own]])
  # With one card, the second addition goes where no total is read, and the second read gives 0.
  card = deal.hands[own, 0]
  unread, always_zero = np.full((2, len(own)), [[deal.num_cards], [deal.num_cards + 1]])
  return np.stack([card, unread, card, always_zero, same_hand[own]])
