"""Where the infosets and terminals of a poker game in vector form are.

A *board* is a set of public cards. The betting between two deals of public cards is the same on every board, so the
public states are the pairs of a board and a node of the public tree. At each of them a player has an infoset for
every hand that can be there, and these stand next to each other in the treeplex: `[board][group][action][state][hand]`.
On boards that see a showdown the hands are in order of strength.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Int64s, Uint64s
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.games.sequence_form.treeplex import COLUMNS
from spiel_cfr.poker.boards import Board
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.public_tree import DEALT, Kind, PublicNode

TERMINALS = Kind.FOLD, Kind.SHOWDOWN


class HandRow(NamedTuple):
  """Where a player's sequences before a public state are, for the hands of its board: at `first + lanes`.

  `board` is the board where the player acted last, -1 if it has not acted.
  """

  board: int
  first: int
  lanes: Int64s


class Layout:
  """The numbering of sequences and infosets.

  Attributes:
    deal: how the game deals.
    nodes: its public tree.
    boards: all boards, the one at the beginning first.
    starts: int64 (boards, nodes): the sequence of the first action of the first class at a decision; 0 elsewhere.
    strides: int64 (boards, nodes): from there to the sequence of the next action.
    roots: each player's empty sequence, and the end of all.
    groups: each player's groups, as in `Treeplex`, board by board.
    begins: int64 (players, boards + 1): the first sequence of each board.
    first_infosets: int64 (players, boards + 1): the first infoset of each board.
  """

  def __init__(self, deal: Deal, nodes: list[PublicNode], boards: list[Board]) -> None:
    """Lays out both players' infosets."""
    self.deal = deal
    self.nodes = nodes
    self.boards = boards
    self.starts = np.zeros((len(boards), len(nodes)), np.int64)
    self.strides = np.zeros_like(self.starts)
    self.begins = np.zeros((2, len(boards) + 1), np.int64)
    self.first_infosets = np.zeros_like(self.begins)
    self.groups: list[list[Uint64s]] = [[], []]
    self._order: list[list[list[int]]] = [[], []]
    self._known_lanes: dict[tuple[int, int, int], Int64s] = {}
    self.roots = [0]
    num_infosets = 0
    for player in (0, 1):
      end = _align(self.roots[-1] + 1)
      for number in range(len(boards)):
        self.begins[player, number] = end
        self.first_infosets[player, number] = num_infosets
        end, num_infosets = self._lay_out(player, number, end, num_infosets)
      # Kernels read and write whole vectors: nothing of another player may follow at once.
      end += MOST_LANES
      self.begins[player, -1] = end
      self.first_infosets[player, -1] = num_infosets
      self.roots.append(end)

  def decisions(self, player: int, board: int) -> list[int]:
    """Returns the nodes where a player decides on a board, in the order of the layout once that is known."""
    if board < len(self._order[player]):
      return self._order[player][board]
    level = self.boards[board].level
    return [
      index
      for index, node in enumerate(self.nodes)
      if node.kind is Kind.DECISION and (node.level, node.player) == (level, player)
    ]

  def row_above(self, player: int, board: int, node: int) -> HandRow:
    """Finds the row above a public state: of an earlier board where the player has not acted since."""
    last = self.nodes[node].last[player]
    if last is None:
      return HandRow(
        -1, self.roots[player], np.zeros(len(self.boards[board].hands[player]), np.int64)
      )
    decision, action = last
    acted = board if self.nodes[decision].level == self.boards[board].level else 0
    first = self.starts[acted, decision] + action * self.strides[acted, decision]
    return HandRow(acted, int(first), self.lanes(player, acted, board))

  def _lay_out(self, player: int, number: int, end: int, num_infosets: int) -> tuple[int, int]:
    """Places the infosets of a board; returns the next free sequence and infoset."""
    classes = self.boards[number].num_classes(player)
    own = self.decisions(player, number)
    shape = {index: (self.nodes[index].depth, len(self.nodes[index].actions)) for index in own}
    groups: list[tuple[int, ...]] = []
    order: list[int] = []
    for depth, actions in sorted(set(shape.values())):
      states = [index for index in own if shape[index] == (depth, actions)]
      # Children in the order of their parents: both sweeps then read and write the parents in order.
      states.sort(key=lambda index: self.row_above(player, number, index).first)
      count = len(states) * classes
      stride = _align(count)
      for place, index in enumerate(states):
        self.starts[number, index] = end + place * classes
        self.strides[number, index] = stride
      groups.append((end, stride, count, actions, num_infosets, depth))
      end += actions * stride
      num_infosets += count
      order += states
    self._order[player].append(order)
    self.groups[player].append(np.array(groups, np.uint64).reshape(-1, COLUMNS))
    return end, num_infosets

  def lanes(self, player: int, earlier: int, later: int) -> Int64s:
    """Returns the classes on a board, or on an earlier one, of the hands of a board."""
    key = player, earlier, later
    if key not in self._known_lanes:
      before = self.boards[earlier].hands[player]
      by_hand = np.argsort(before)
      places = np.searchsorted(before, self.boards[later].hands[player], sorter=by_hand)
      self._known_lanes[key] = self.boards[earlier].classes[player][by_hand[places]]
    return self._known_lanes[key]

  def sequences(self, board: int, node: int) -> Int64s:
    """Returns the sequences of a decision, shape (actions, hands); hands as in `Board.hands`."""
    decision = self.nodes[node]
    rows = np.arange(len(decision.actions))[:, None] * self.strides[board, node]
    return np.asarray(self.starts[board, node] + rows + self.boards[board].classes[decision.player])

  def public_actions(self, board: int, node: int) -> list[int]:
    """Returns the actions, public cards included, that lead to a public state."""
    dealt = self.boards[board].cards[len(self.deal.board) :]
    remaining = iter(sorted(dealt, key=str))
    return [next(remaining) if action == DEALT else action for action in self.nodes[node].path]

  @property
  def largest_payoff(self) -> float:
    """The most that a player can win or lose."""
    return max(abs(node.payoff) for node in self.nodes if node.kind in TERMINALS)

  def terminals(self, board: int, *kinds: Kind) -> list[int]:
    """Returns the nodes of these kinds that a board has."""
    level = self.boards[board].level
    return [
      index for index, node in enumerate(self.nodes) if node.kind in kinds and node.level == level
    ]


def _align(count: int) -> int:
  return -(-count // MOST_LANES) * MOST_LANES
