"""Size and memory of a poker game in vector form, estimated before large arrays are made."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._util import memory
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker.betting_tree import BettingNode, Kind
from spiel_cfr.poker.boards import Board

# A solver in parts keeps this many numbers for each sequence: a regret, a probability and a sum for the average.
_LINES = 3
# Bytes of the game for each infoset (parent and scale), public state (edges and payoffs) and hand on a board (tables).
_OF_INFOSET, _OF_STATE, _OF_HAND = 6, 150, 100


@dataclasses.dataclass(frozen=True)
class GameEstimate:
  """The size of a poker game in vector form.

  Attributes:
    num_boards: int. The number of boards.
    num_states: int. The number of public states, terminals included.
    num_infosets: int. The number of infosets of both players.
    num_sequences: int. The number of actions of these infosets.
    num_bytes: int. The approximate memory of the game and of a solver such as DCFR, in parts.
  """

  num_boards: int
  num_states: int
  num_infosets: int
  num_sequences: int
  num_bytes: int

  def __str__(self) -> str:
    return (
      f"{self.num_boards:,} boards, {self.num_states:,} public states, {self.num_infosets:,} infosets, "
      f"{self.num_sequences:,} infoset actions; about {self.num_bytes / 1e6:z,.0f} MB"
    )

  def check_memory(self) -> None:
    """Raises GameTooLargeError if the machine has less free memory."""
    left = memory.available_bytes()
    if left is not None and self.num_bytes > left:
      raise errors.GameTooLargeError(
        f"The game and its solver would take more memory than the {left / 1e9:z.1f} GB that are free: {self}. "
        'Keep fewer sizes of bets, merge suits with merge_suits=True, or take dtype="float32".'
      )


def estimate_boards(
  nodes: Sequence[BettingNode], boards: Sequence[Board], dtype: npt.DTypeLike
) -> GameEstimate:
  """Returns the size of a game, given its betting and its boards."""
  levels = 1 + max(board.level for board in boards)
  # For each level: boards, hands on them, and infosets of each player at one decision.
  on_level = np.bincount([board.level for board in boards], minlength=levels)
  hands, states = np.zeros((2, levels), np.int64)
  num_infosets, decisions, actions = np.zeros((3, len(PLAYERS), levels), np.int64)
  for board in boards:
    for player in PLAYERS:
      hands[board.level] += len(board.hands[player])
      num_infosets[player, board.level] += 1 + board.infoset_of_hand[player].max(initial=-1)
  for node in nodes:
    states[node.level] += 1
    if node.kind is Kind.DECISION:
      decisions[node.player, node.level] += 1
      actions[node.player, node.level] += len(node.actions)
  infosets, sequences = int((num_infosets * decisions).sum()), int((num_infosets * actions).sum())
  num_states = int((on_level * states).sum())
  num_bytes = (
    np.dtype(dtype).itemsize * _LINES * sequences
    + _OF_INFOSET * infosets
    + _OF_STATE * num_states
    + _OF_HAND * int(hands.sum())
  )
  return GameEstimate(len(boards), num_states, infosets, sequences, num_bytes)
