"""The payoffs of a poker game in vector form: folds and showdowns, settled for all hands at once."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.games.compiled.trunk_and_subtrees import PLAYERS
from spiel_cfr.games.payoffs.payoff import NO_PLAYERS, Payoff, PayoffArrays
from spiel_cfr.games.payoffs.utility_bounds import Leaves, combined
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.poker.boards import Board, hand_pairs
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.hand_layout import TERMINALS, Layout
from spiel_cfr.poker.public_subtrees import Numbering
from spiel_cfr.poker.public_tree import Kind
from spiel_cfr.poker.showdown_kernels import (
  BOARD_COLUMNS,
  IN_ORDER,
  terminal_gradient,
)


class PokerTerminals(Payoff):
  """The terminals of a poker game, or of some of its boards.

  Bounds are those of the whole game. They let a showdown count as if nobody could tie, and all rivers after a player
  has last acted as if they agreed, so that sums over hands suffice.
  """

  form = "poker terminals"
  gradient = terminal_gradient

  def __init__(self, arrays: PayoffArrays, layout: Layout, boards: range) -> None:
    """Takes what `build` has made."""
    super().__init__(arrays)
    self._layout = layout
    self._boards = boards

  @classmethod
  def build(cls, layout: Layout, numberings: list[Numbering]) -> "PokerTerminals":
    """Writes down the terminals of some boards.

    Args:
      layout: of the game.
      numberings: each player's, of these boards.
    """
    boards = numberings[0].boards
    table = np.zeros((2 + len(boards), BOARD_COLUMNS), np.uint64)
    rows, values = _Pieces(np.uint32), _Pieces(np.float64)
    terminals: list[tuple[int, ...]] = []
    payoffs: list[float] = []
    for line, number in enumerate(boards, 2):
      table[line, :8] = _describe_board(layout, layout.boards[number], rows, values)
      known_lanes: dict[tuple[int, int, int], int] = {}
      for column, kind in zip((8, 10), TERMINALS, strict=True):
        table[line, column] = len(terminals)
        for in_order, nodes in _by_lanes(layout, number, kind).items():
          for node in nodes:
            firsts, lanes = [], []
            for player, numbering in enumerate(numberings):
              row = layout.row_above(player, number, node)
              firsts.append(numbering.first(row))
              # Rows of one board that are in this part have the same lanes; others differ.
              key = player, row.board, 0 if numbering.has(row) else row.first
              if not in_order and key not in known_lanes:
                known_lanes[key] = rows.add(numbering.lanes(row))
              lanes.append(int(IN_ORDER) if in_order else known_lanes[key])
            terminals.append((*firsts, *lanes))
            payoffs.append(
              layout.nodes[node].payoff * layout.boards[number].probability / layout.deal.total
            )
          while len(terminals) % MOST_LANES:
            # Vectors are filled up with the last terminal again, at no payoff.
            terminals.append(terminals[-1])
            payoffs.append(0.0)
        table[line, column + 1] = len(terminals)
    for player, numbering in enumerate(numberings):
      begin = layout.roots[player] - numbering.begin if not boards.start else 0
      table[player, :2] = begin, numbering.length + len(numbering.entries)
    most = max(len(hands) for number in boards for hands in layout.boards[number].hands)
    table[0, 2:5] = values.add(payoffs), most, layout.deal.num_cards + 2
    arrays = PayoffArrays(
      players=NO_PLAYERS,
      runs=table,
      rows=rows.joined(),
      others=np.array(terminals, np.uint32).reshape(-1, 4).T.copy(),
      values=values.joined(),
    )
    return cls(arrays, layout, boards)

  @property
  def num_leaves(self) -> int:
    """How many terminals the boards have together, each a pair of vectors over hands."""
    return sum(len(self._layout.terminals(board, *TERMINALS)) for board in self._boards)

  def leaves(self, player: int) -> Leaves:
    """Lists pairs of hands at every terminal, by sequences of the whole game."""
    layout, keys, values = self._layout, [], []
    for number in self._boards:
      board = layout.boards[number]
      pairs = hand_pairs(layout.deal, board, player)
      own, other = board.reaches[player], board.reaches[1 - player]
      # The probability of the pair and the board.
      weights = np.outer(own, other) * pairs.apart * board.probability / layout.deal.total
      for node in layout.terminals(number, *TERMINALS):
        payoff = layout.nodes[node].payoff
        is_fold = layout.nodes[node].kind is Kind.FOLD
        won = (payoff if player == 0 else -payoff) if is_fold else payoff * pairs.ahead
        pair = np.nonzero(weights * won)
        rows = [layout.row_above(each, number, node) for each in (player, 1 - player)]
        keys.append([row.first + row.lanes[hands] for row, hands in zip(rows, pair, strict=True)])
        values.append((weights * won)[pair])
    columns = [np.concatenate(column) for column in zip(*keys, strict=True)]
    # Where nobody acts on a board, all boards lead from the same sequences to the same end.
    (own_sequences, others), payoffs = combined(columns, np.concatenate(values), np.add)
    return Leaves(own_sequences.astype(np.uint32), others.astype(np.uint32)[None], payoffs)

  def infoset_bounds(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Returns the largest payoff times the probability that chance deals the hand, and the board."""
    return self._at_decisions(player, lambda number: self._mass(player, number, 1))

  def infoset_scales(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Returns the largest payoff times the hand's reach and that of all opponents.

    Of all, whether they share a card with the hand or not, because running totals over hands are of all, and what they
    round is in proportion to them.
    """
    deal, boards = self._layout.deal, self._layout.boards

    def mass(number: int) -> Float64s:
      hands = boards[number].hands
      own, others = (deal.reaches[each, hands[each]] for each in (player, 1 - player))
      return np.asarray(own * (others.sum() / deal.total))

    return self._at_decisions(player, mass)

  def _at_decisions(self, player: int, mass: Callable[[int], Float64s]) -> Float64s:
    """Returns the largest payoff times a board's probability and numbers of its hands, summed over each infoset's."""
    layout, result = self._layout, [np.zeros(0)]
    for number, board in enumerate(layout.boards):
      together = board.probability * board.class_sums(player, mass(number))
      result += [together] * len(layout.decisions(player, number))
    return layout.largest_payoff * np.concatenate(result)

  def sensitivity(self, treeplexes: Sequence[Treeplex], player: int) -> float:
    """Bounds the spectral norm of the payoff matrix of both players' sequences.

    It is at most the root of the largest row sum times the largest column sum, and at most the Frobenius norm, which is
    summed over hands that are told apart.
    """
    layout = self._layout
    sums = [np.zeros(treeplexes[-1].end), np.zeros(treeplexes[-1].end)]
    frobenius: dict[int, float] = {}
    for number, board in enumerate(layout.boards):
      masses = [self._mass(each, number, 1) for each in (0, 1)]
      squares = self._mass(player, number, 2).sum()
      for node in layout.terminals(number, *TERMINALS):
        payoff = abs(layout.nodes[node].payoff) * board.probability
        rows = [layout.row_above(each, number, node) for each in (0, 1)]
        for each, row in enumerate(rows):
          np.add.at(sums[each], row.first + row.lanes, payoff * masses[each])
        norm = payoff * math.sqrt(squares)
        before = frobenius.get(node, 0.0)
        # Matrices of different rows add their squares; those of the same rows at most their norms.
        apart = all(row.board == number for row in rows)
        frobenius[node] = math.hypot(before, norm) if apart else before + norm
    row_sum, column_sum = (float(each.max()) for each in sums)
    norm = math.sqrt(row_sum * column_sum)
    if all(board.tells_all_apart for board in layout.boards):
      norm = min(norm, math.hypot(*frobenius.values()))
    return norm

  def _mass(self, player: int, board: int, power: int) -> Float64s:
    """Returns the sum, over the opponent's hands, of chance's probability of a pair to a power, for a board's hands."""
    deal, hands = self._layout.deal, self._layout.boards[board].hands
    others = np.zeros(len(deal.hands))
    others[hands[1 - player]] = deal.reaches[1 - player, hands[1 - player]] ** power
    own = deal.reaches[player, hands[player]] ** power
    return np.asarray(own * deal.compatible_mass(others)[hands[player]] / deal.total**power)


def _describe_board(
  layout: Layout, board: Board, rows: "_Pieces", values: "_Pieces"
) -> tuple[int, ...]:
  """Writes down a board's hands; returns the columns of the table before those of its terminals."""
  deal, counts = layout.deal, [len(hands) for hands in board.hands]
  described = [rows.add(_describe_hands(player, deal, board)) for player in PLAYERS]
  # Kernels read whole vectors.
  reaches = [values.add(board.reaches[player], np.zeros(MOST_LANES)) for player in PLAYERS]
  levels = np.unique(np.concatenate(board.strengths))
  starts = [
    np.append(np.searchsorted(board.strengths[player], levels), counts[player])
    for player in PLAYERS
  ]
  return *counts, *described, *reaches, rows.add(*starts), len(levels)


def _by_lanes(layout: Layout, number: int, kind: Kind) -> dict[bool, list[int]]:
  """Returns a board's terminals of a kind by whether each hand has a sequence of its own there, in order."""
  result: dict[bool, list[int]] = {True: [], False: []}
  for node in layout.terminals(number, kind):
    above = [layout.row_above(player, number, node).board for player in PLAYERS]
    # Both players have acted on this board, or not.
    result[above == [number, number] and layout.boards[number].tells_all_apart].append(node)
  return result


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
