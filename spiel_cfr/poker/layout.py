"""Where the infosets and terminals of a poker game in vector form are.

A *board* is a set of public cards. The betting between two deals of public cards is the same on every board, so the
public states are the pairs of a board and a node of the public tree. At each of them a player has an infoset for
every hand that can be there, and these stand next to each other in the treeplex: `[board][group][action][state][hand]`.
On boards that see a showdown the hands are in order of strength.
"""

import dataclasses
import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr.game.payoff import Payoff
from spiel_cfr.game.subtrees import Subtree
from spiel_cfr.game.treeplex import COLUMNS, FIRST_INFOSET, FIRST_SEQUENCE
from spiel_cfr.kernels.arrays import LINE, Int64s, Uint64s
from spiel_cfr.kernels.simd import LANES
from spiel_cfr.poker import cards
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.public_tree import Kind, PublicNode
from spiel_cfr.poker.terminals import BOARD_COLUMNS, IN_ORDER, POKER_TERMINALS

TERMINALS = Kind.FOLD, Kind.SHOWDOWN
# Sequences are numbered by 32 bits.
_MOST_SEQUENCES = 1 << 32


@dataclasses.dataclass(frozen=True)
class Board:
  """Public cards, and the hands that can be there.

  Attributes:
    cards: those of the beginning, then those that chance has dealt, in ascending order each.
    level: 0 for the board at the beginning, 1 for those that chance has dealt.
    probability: that chance deals it, given hands that share no card with it.
    hands: int64 (hands,) a player: rows of `Deal.hands`.
    strengths: int64 (hands,) a player, ascending; all 0 where no showdown can be.
  """

  cards: tuple[int, ...]
  level: int
  probability: float
  hands: tuple[Int64s, Int64s]
  strengths: tuple[Int64s, Int64s]


def list_boards(deal: Deal, nodes: list[PublicNode]) -> list[Board]:
  """Lists the boards of a public tree: the one at the beginning, then all that chance can deal.

  Raises:
    GameTooLargeError: there are more sequences than can be numbered.
  """
  num_dealt = {node.num_cards for node in nodes if node.kind is Kind.CHANCE}
  num_sequences = 0
  for level, ways in ((0, 1), *((1, math.comb(deal.num_cards, count)) for count in num_dealt)):
    actions = sum(len(node.actions) for node in nodes if node.level == level)
    num_sequences += actions * ways * len(deal.hands)
  if num_sequences > _MOST_SEQUENCES:
    raise errors.GameTooLargeError(
      f"The game has about {num_sequences:,} sequences, more than {_MOST_SEQUENCES:,}. Begin "
      "later, or keep fewer actions with an action filter."
    )
  with_showdown = {node.level for node in nodes if node.kind is Kind.SHOWDOWN}
  boards = [_board(deal, deal.board, 0, 1.0, 0 in with_showdown)]
  for count in num_dealt:
    left = [card for card in range(deal.num_cards) if card not in deal.board]
    probability = 1 / math.comb(len(left) - 2 * deal.hand_size, count)
    for dealt in itertools.combinations(left, count):
      board = _board(deal, (*deal.board, *dealt), 1, probability, 1 in with_showdown)
      if len(board.hands[0]):
        boards.append(board)
  return boards


def _board(
  deal: Deal, known: tuple[int, ...], level: int, probability: float, has_showdown: bool
) -> Board:
  """Returns a board; it has no hands where no pair of hands can see it."""
  possible = (deal.reaches > 0) & ~np.isin(deal.hands, known).any(axis=1)
  hands, strengths = [], []
  for player in (0, 1):
    # Counted in integers: a hand whose opponents all hold one of its cards must come out at exactly 0.
    opponents = deal.compatible_mass(possible[1 - player].astype(np.int64))
    own = np.flatnonzero(possible[player] & (opponents > 0))
    strength = np.zeros(len(own), np.int64)
    if has_showdown:
      strength = cards.hand_strengths(deal.hands[own], known, deal.num_suits)
    order = np.argsort(strength, kind="stable")
    hands.append(own[order])
    strengths.append(strength[order])
  return Board(known, level, probability, (hands[0], hands[1]), (strengths[0], strengths[1]))


class Row(NamedTuple):
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
    starts: int64 (boards, nodes): the sequence of the first action of the first hand at a decision; 0 elsewhere.
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
      end += LINE
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

  def row_above(self, player: int, board: int, node: int) -> Row:
    """Finds the row above a public state: of an earlier board where the player has not acted since."""
    last = self.nodes[node].last[player]
    if last is None:
      return Row(-1, self.roots[player], np.zeros(len(self.boards[board].hands[player]), np.int64))
    decision, action = last
    acted = board if self.nodes[decision].level == self.boards[board].level else 0
    first = self.starts[acted, decision] + action * self.strides[acted, decision]
    return Row(acted, int(first), self._lanes(player, acted, board))

  @functools.cached_property
  def whole(self) -> Subtree:
    """Returns all boards as one part, in the game's own numbering of sequences and infosets."""
    return self._part(range(len(self.boards)), np.zeros(2, np.int64), np.zeros(2, np.int64))

  def subtree(self, board: int) -> Subtree:
    """Returns a board as a part in a numbering of its own: board 0 is the trunk."""
    begins = self.begins[:, board] if board else np.array(self.roots[:2])
    return self._part(range(board, board + 1), begins, self.first_infosets[:, board])

  def _lay_out(self, player: int, number: int, end: int, num_infosets: int) -> tuple[int, int]:
    """Places the infosets of a board; returns the next free sequence and infoset."""
    hands = len(self.boards[number].hands[player])
    own = self.decisions(player, number)
    shape = {index: (self.nodes[index].depth, len(self.nodes[index].actions)) for index in own}
    groups: list[tuple[int, ...]] = []
    order: list[int] = []
    for depth, actions in sorted(set(shape.values())):
      states = [index for index in own if shape[index] == (depth, actions)]
      # Children in the order of their parents: both sweeps then read and write the parents in order.
      states.sort(key=lambda index: self.row_above(player, number, index).first)
      count = len(states) * hands
      stride = _align(count)
      for place, index in enumerate(states):
        self.starts[number, index] = end + place * hands
        self.strides[number, index] = stride
      groups.append((end, stride, count, actions, num_infosets, depth))
      end += actions * stride
      num_infosets += count
      order += states
    self._order[player].append(order)
    self.groups[player].append(np.array(groups, np.uint64).reshape(-1, COLUMNS))
    return end, num_infosets

  def _lanes(self, player: int, earlier: int, later: int) -> Int64s:
    """Returns where the hands of a board stand on an earlier board."""
    key = player, earlier, later
    if key not in self._known_lanes:
      before = self.boards[earlier].hands[player]
      by_hand = np.argsort(before)
      places = np.searchsorted(before, self.boards[later].hands[player], sorter=by_hand)
      self._known_lanes[key] = by_hand[places]
    return self._known_lanes[key]

  def _part(self, boards: range, begins: Int64s, first_infosets: Int64s) -> Subtree:
    """Returns consecutive boards as a part whose numbering begins with these sequences and infosets."""
    parts = [self._numbering(player, boards, int(begins[player])) for player in (0, 1)]
    ends, end_infosets = self.begins[:, boards.stop], self.first_infosets[:, boards.stop]
    groups, parents = [], []
    for player, numbering in enumerate(parts):
      own = np.concatenate([self.groups[player][number] for number in boards])
      own[:, FIRST_SEQUENCE] -= np.uint64(begins[player])
      own[:, FIRST_INFOSET] -= np.uint64(first_infosets[player])
      groups.append(own)
      above = [
        numbering.first(row) + numbering.lanes(row)
        for number in boards
        for node in self.decisions(player, number)
        for row in [self.row_above(player, number, node)]
      ]
      parents.append(np.concatenate([np.zeros(0, np.int64), *above]).astype(np.uint32))
    sequences = [slice(int(begins[player]), int(ends[player])) for player in (0, 1)]
    infosets = [slice(int(first_infosets[player]), int(end_infosets[player])) for player in (0, 1)]
    return Subtree(
      (sequences[0], sequences[1]),
      (infosets[0], infosets[1]),
      (groups[0], groups[1]),
      (parents[0], parents[1]),
      (parts[0].entries - self.roots[0], parts[1].entries - self.roots[1]),
      self._payoff(boards, parts, sequences),
    )

  def _numbering(self, player: int, boards: range, begin: int) -> "_Numbering":
    """Finds out which sequences of the trunk a part needs."""
    rows = [
      self.row_above(player, number, node)
      for number in boards
      for node in [*self.decisions(player, number), *self.terminals(number, *TERMINALS)]
    ]
    outside = [row.first + row.lanes for row in rows if boards.start and row.board not in boards]
    entries = np.unique(np.concatenate([np.zeros(0, np.int64), *outside]))
    length = int(self.begins[player, boards.stop]) - begin
    return _Numbering(boards, begin, length, entries)

  def terminals(self, board: int, *kinds: Kind) -> list[int]:
    """Returns the nodes of these kinds that a board has."""
    level = self.boards[board].level
    return [
      index for index, node in enumerate(self.nodes) if node.kind in kinds and node.level == level
    ]

  def _payoff(self, boards: range, parts: "list[_Numbering]", sequences: list[slice]) -> Payoff:
    """Writes down the terminals of boards for `terminal_gradient`."""
    table = np.zeros((2 + len(boards), BOARD_COLUMNS), np.uint64)
    rows, values = _Pieces(np.uint32), _Pieces(np.float64)
    terminals: list[tuple[int, ...]] = []
    payoffs: list[float] = []
    for line, number in enumerate(boards, 2):
      board = self.boards[number]
      counts = [len(hands) for hands in board.hands]
      described = [rows.add(_describe_hands(player, self.deal, board)) for player in (0, 1)]
      # Kernels read whole vectors.
      reaches = [
        values.add(self.deal.reaches[player][board.hands[player]], np.zeros(LANES))
        for player in (0, 1)
      ]
      levels = np.unique(np.concatenate(board.strengths))
      level_starts = [
        np.append(np.searchsorted(board.strengths[player], levels), counts[player])
        for player in (0, 1)
      ]
      table[line, :8] = *counts, *described, *reaches, rows.add(*level_starts), len(levels)
      known_lanes: dict[tuple[int, int, int], int] = {}
      for column, kind in zip((8, 10), TERMINALS, strict=True):
        table[line, column] = len(terminals) // LANES
        # Batches are of one kind: both players have acted on this board, or not.
        by_kind: dict[bool, list[int]] = {True: [], False: []}
        for node in self.terminals(number, kind):
          above = [self.row_above(player, number, node).board for player in (0, 1)]
          by_kind[above == [number, number]].append(node)
        for in_order, own in by_kind.items():
          for node in own:
            firsts, lanes = [], []
            for player, numbering in enumerate(parts):
              row = self.row_above(player, number, node)
              firsts.append(numbering.first(row))
              # Rows of one board that are in this part have the same lanes; others differ.
              key = player, row.board, 0 if numbering.has(row) else row.first
              if not in_order and key not in known_lanes:
                known_lanes[key] = rows.add(numbering.lanes(row))
              lanes.append(int(IN_ORDER) if in_order else known_lanes[key])
            terminals.append((*firsts, *lanes))
            payoffs.append(self.nodes[node].payoff * board.probability / self.deal.total)
          while len(terminals) % LANES:
            # Batches are filled up with the last terminal again, at no payoff.
            terminals.append(terminals[-1])
            payoffs.append(0.0)
        table[line, column + 1] = len(terminals) // LANES
    for player, numbering in enumerate(parts):
      begin = self.roots[player] - numbering.begin if not boards.start else 0
      table[player, :2] = begin, numbering.length + len(numbering.entries)
    most = max(len(hands) for number in boards for hands in self.boards[number].hands)
    table[0, 2:5] = values.add(payoffs), most, self.deal.num_cards + 2
    return Payoff(
      form=POKER_TERMINALS,
      table=table,
      rows=rows.joined(),
      others=np.array(terminals, np.uint32).reshape(-1, 4).T.copy(),
      values=values.joined(),
    )


class _Numbering(NamedTuple):
  """A player's numbering of the sequences of a part.

  Attributes:
    boards: of the part.
    begin: the first sequence of the part.
    length: how many sequences it has.
    entries: sequences of the trunk that are numbered after these, ascending.
  """

  boards: range
  begin: int
  length: int
  entries: Int64s

  def has(self, row: Row) -> bool:
    """Returns whether a row is in the part itself."""
    return not self.boards.start or row.board in self.boards

  def first(self, row: Row) -> int:
    """Returns the number of a row that its lanes are to be added to."""
    return row.first - self.begin if self.has(row) else 0

  def lanes(self, row: Row) -> Int64s:
    """Returns the lanes of a row, or the numbers of its sequences where it is in the trunk."""
    if self.has(row):
      return row.lanes
    return np.asarray(self.length + np.searchsorted(self.entries, row.first + row.lanes))


def _align(count: int) -> int:
  return -(-count // LINE) * LINE


def _describe_hands(player: int, deal: Deal, board: Board) -> Int64s:
  """Returns a player's hands as `terminal_gradient` needs them, shape (HAND_LINES, hands)."""
  own, other = board.hands[player], board.hands[1 - player]
  lanes = np.full(len(deal.hands), len(other))
  if deal.hand_size == 2:
    # Taking off what both cards hold takes off the same hand twice, so it is added again.
    lanes[other] = np.arange(len(other))
    low, high = deal.hands[own].T
    return np.stack([low, high, low, high, lanes[own]])
  # The place after the last card is written to and never read; the next is read and never written to.
  card = deal.hands[own, 0]
  unread, unwritten = np.full((2, len(own)), [[deal.num_cards], [deal.num_cards + 1]])
  return np.stack([card, unread, card, unwritten, lanes[own]])


class _Pieces:
  """Arrays to be joined end to end."""

  def __init__(self, dtype: type) -> None:
    self._dtype = dtype
    self._arrays: list[npt.NDArray[Any]] = []
    self._length = 0

  def add(self, *arrays: npt.ArrayLike) -> int:
    """Adds arrays and returns where the first begins."""
    start = self._length
    for array in arrays:
      self._arrays.append(np.asarray(array, self._dtype).reshape(-1))
      self._length += self._arrays[-1].size
    return start

  def joined(self) -> npt.NDArray[Any]:
    """Returns all of them."""
    return np.concatenate([np.zeros(0, self._dtype), *self._arrays])
