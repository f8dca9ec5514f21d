"""The hands of every board in the form that `showdown_kernels` reads, written once for all parts of a game."""

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
  """The hands of all boards.

  Attributes:
    rows: uint32 (elements,). Descriptions of hands, infoset places, and first hands of each strength, end to end.
    reaches: float64 (elements,). The reaches of the hands of each board and player, end to end.
    boards: uint64 (boards, 8). The columns of the kernels' table of boards before `FIRST_FOLD`.
    infoset_places: int64 (players, boards, levels + 1). Where `rows` has the infoset places of a
      board's hands: in column 0 for the empty sequence, in column 1 + l for rows of level l.
  """

  def __init__(
    self, deal: Deal, boards: list[Board], places_of: Callable[[int, int, int], Int64s]
  ) -> None:
    """Writes the tables; `places_of` is `PublicTree.infoset_offsets`."""
    self._rows: list[npt.NDArray[Any]] = []
    self._length = 0
    reaches: list[Float64s] = []
    most = max(len(hands) for board in boards for hands in board.hands)
    levels = 1 + max(board.level for board in boards)
    self.boards: Uint64s = np.zeros((len(boards), 8), np.uint64)
    self.infoset_places = np.full(
      (len(PLAYERS), len(boards), 1 + levels), self._add(np.zeros(most))
    )
    num_reaches = 0
    for number, board in enumerate(boards):
      places = []
      for player in PLAYERS:
        ancestors = [number]
        while boards[ancestors[-1]].parent != ancestors[-1]:
          ancestors.append(boards[ancestors[-1]].parent)
        for before in ancestors:
          place = self._add(places_of(player, before, number))
          self.infoset_places[player, number, 1 + boards[before].level] = place
        places.append(num_reaches)
        # Kernels read whole vectors.
        reaches += [board.reaches[player], np.zeros(MOST_LANES)]
        num_reaches += len(board.reaches[player]) + MOST_LANES
      described = [self._add(_describe_hands(player, deal, board)) for player in PLAYERS]
      strengths = np.unique(np.concatenate(board.strengths))
      starts = [np.append(np.searchsorted(own, strengths), len(own)) for own in board.strengths]
      counts = [len(hands) for hands in board.hands]
      levels_of = self._add(np.concatenate(starts))
      self.boards[number] = *counts, *described, *places, levels_of, len(strengths)
    self.rows = np.concatenate(self._rows)
    self.reaches = np.concatenate(reaches)
    del self._rows

  def __setstate__(self, attributes: dict[str, Any]) -> None:
    """Takes unpickled attributes; arrays may lie in memory that several processes share."""
    for name, value in attributes.items():
      setattr(self, name, unlocked(value) if isinstance(value, np.ndarray) else value)

  def _add(self, numbers: npt.ArrayLike) -> int:
    """Appends numbers to `rows`; returns the place of the first."""
    start = self._length
    self._rows.append(np.asarray(numbers, np.uint32).reshape(-1))
    self._length += len(self._rows[-1])
    return start

  @functools.cached_property
  def single_reaches(self) -> AnyFloats:
    """`reaches` in float32."""
    return self.reaches.astype(np.float32)


def _describe_hands(player: int, deal: Deal, board: Board) -> Int64s:
  """Returns the descriptions of a player's hands for `terminal_gradient`, shape (HAND_LINES, hands)."""
  own, other = board.hands[player], board.hands[1 - player]
  same_hand = np.full(len(deal.hands), len(other))
  if deal.hand_size == 2:
    # Subtracting the totals of both cards subtracts the same hand twice, so it is added again.
    same_hand[other] = np.arange(len(other))
    low, high = deal.hands[own].T
    return np.stack([low, high, low, high, same_hand[own]])
  # With one card, the second place of additions is never read, and the second place of reads is never written.
  card = deal.hands[own, 0]
  unread, unwritten = np.full((2, len(own)), [[deal.num_cards], [deal.num_cards + 1]])
  return np.stack([card, unread, card, unwritten, same_hand[own]])
