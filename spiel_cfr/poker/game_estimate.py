"""Size and memory of a poker game in vector form, estimated before large arrays are made."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._util import memory
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker.betting_tree import BettingNode, NodeKind
from spiel_cfr.poker.boards import Board

# Numbers that a partitioned solver stores for each sequence: a regret, a probability and a sum for the average.
_NUMBERS_PER_SEQUENCE = 3
# Bytes that the game takes for each infoset (parent and scale), public state (edges and payoffs) and hand on a board
# (`HandTables`).
_BYTES_PER_INFOSET, _BYTES_PER_STATE, _BYTES_PER_HAND = 6, 150, 100


@dataclasses.dataclass(frozen=True)
class GameEstimate:
  """Size of a poker game in vector form, and memory of the game with a solver.

  Attributes:
    num_boards: int. The number of boards.
    num_states: int. The number of public states, terminals included.
    num_infosets: int. The number of infosets of both players.
    num_sequences: int. The number of sequences of both players without the empty ones: one for each action of each
      infoset.
    num_bytes: int. The approximate memory, in bytes, of the game and a partitioned solver such as DCFR.
  """

  num_boards: int
  num_states: int
  num_infosets: int
  num_sequences: int
  num_bytes: int

  def __str__(self) -> str:
    return (
      f"{self.num_boards:,} boards, {self.num_states:,} public states, {self.num_infosets:,} infosets, "
      f"{self.num_sequences:,} sequences; about {self.num_bytes / 1e6:z,.0f} MB"
    )

  def check_memory(self) -> None:
    """Raises GameTooLargeError if the machine has less free memory than `num_bytes`."""
    free = memory.available_bytes()
    if free is not None and self.num_bytes > free:
      raise errors.GameTooLargeError(
        f"The game and its solver would take more memory than the {free / 1e9:z.1f} GB that are free: {self}. "
        'Keep fewer sizes of bets, merge suits with merge_suits=True, or take dtype="float32".'
      )


def estimate_boards(
  nodes: Sequence[BettingNode], boards: Sequence[Board], dtype: npt.DTypeLike
) -> GameEstimate:
  """Returns the size of a game, given its betting, its boards and the precision of solvers."""
  levels = 1 + max(board.level for board in boards)
  # The number of boards, hands and nodes at each level.
  boards_on = np.bincount([board.level for board in boards], minlength=levels)
  hands_on, nodes_on = np.zeros((2, levels), np.int64)
  # For each player and level: the infosets that one decision has on all boards together; the number of decisions; the
  # number of their actions.
  infosets_on, decisions_on, actions_on = np.zeros((3, len(PLAYERS), levels), np.int64)
  for board in boards:
    for player in PLAYERS:
      hands_on[board.level] += len(board.hands[player])
      infosets_on[player, board.level] += 1 + board.infoset_of_hand[player].max(initial=-1)
  for node in nodes:
    nodes_on[node.level] += 1
    if node.kind is NodeKind.DECISION:
      decisions_on[node.player, node.level] += 1
      actions_on[node.player, node.level] += len(node.actions)
  num_infosets = int((infosets_on * decisions_on).sum())
  num_sequences = int((infosets_on * actions_on).sum())
  num_states = int((boards_on * nodes_on).sum())
  num_bytes = (
    np.dtype(dtype).itemsize * _NUMBERS_PER_SEQUENCE * num_sequences
    + _BYTES_PER_INFOSET * num_infosets
    + _BYTES_PER_STATE * num_states
    + _BYTES_PER_HAND * int(hands_on.sum())
  )
  return GameEstimate(len(boards), num_states, num_infosets, num_sequences, num_bytes)
