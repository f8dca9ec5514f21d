"""The payoffs of a poker game in vector form: folds and showdowns, settled for all hands at once."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s, Int64s, Uint32s
from spiel_cfr._numba.simd import LANES, MOST_LANES
from spiel_cfr.games.payoffs.payoff import NO_PLAYERS, Payoff, PayoffArrays
from spiel_cfr.games.payoffs.utility_bounds import combined
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.hand_layout import TERMINALS, Board, Layout
from spiel_cfr.poker.hand_numbering import Numbering
from spiel_cfr.poker.hand_pairs import hand_pairs
from spiel_cfr.poker.public_tree import Kind
from spiel_cfr.poker.terminals import BOARD_COLUMNS, IN_ORDER, terminal_gains, terminal_gradient


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
      board = layout.boards[number]
      counts = [len(hands) for hands in board.hands]
      described = [rows.add(_describe_hands(player, layout.deal, board)) for player in (0, 1)]
      # Kernels read whole vectors.
      reaches = [
        values.add(layout.deal.reaches[player][board.hands[player]], np.zeros(MOST_LANES))
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
        table[line, column] = len(terminals)
        # Vectors are of one kind: both players have acted on this board, or not.
        by_kind: dict[bool, list[int]] = {True: [], False: []}
        for node in layout.terminals(number, kind):
          above = [layout.row_above(player, number, node).board for player in (0, 1)]
          by_kind[above == [number, number] and board.tells_all_apart].append(node)
        for in_order, own in by_kind.items():
          for node in own:
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
            payoffs.append(layout.nodes[node].payoff * board.probability / layout.deal.total)
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

  def gains(self) -> "PokerGains":
    """Returns the payoffs with losses counting as nothing, board by board."""
    return PokerGains(self.arrays, self._layout, self._boards)

  @property
  def num_lines(self) -> int:
    """How many pairs of a hand and a vector of terminals, as many as float64 has, a gradient goes through."""
    table, values = self.arrays.runs.astype(np.int64), self.arrays.values
    lines, payoffs = 0, values[table[0, 2] :]
    for board in table[2:]:
      terminals = payoffs[board[8] : board[11]].reshape(-1, LANES)
      lines += int(board[:2].sum() * terminals.any(axis=1).sum())
    return lines

  def leaves(self, player: int) -> tuple[Uint32s, Uint32s, Float64s]:
    """See the base class; sequences are in the game's own numbering."""
    layout, keys, values = self._layout, [], []
    for number in self._boards:
      board = layout.boards[number]
      pairs = hand_pairs(layout, number, player)
      own, other = (layout.deal.reaches[each, board.hands[each]] for each in (player, 1 - player))
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
    return own_sequences.astype(np.uint32), others.astype(np.uint32)[None], payoffs

  def counterfactual_bounds(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Bounds the counterfactual utility of each of a player's sequences, whatever anybody plays.

    That is the largest payoff times the probability that chance deals the hand, and the board.

    Returns:
      Shape (end - root,), from the empty sequence on.
    """
    layout = self._layout
    largest = layout.largest_payoff
    root = layout.roots[player]
    bounds = np.zeros(layout.roots[player + 1] - root)
    bounds[0] = largest
    for number, board in enumerate(layout.boards):
      probability = board.probability * board.class_sums(player, self._mass(player, number, 1))
      for node in layout.decisions(player, number):
        bounds[layout.sequences(number, node) - root] = largest * probability[board.classes[player]]
    return bounds

  def infoset_bounds(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """See the base class: that of `counterfactual_bounds`, the same for all decisions on a board."""
    layout = self._layout
    result = [
      np.tile(
        board.probability * board.class_sums(player, self._mass(player, number, 1)), len(nodes)
      )
      for number, board in enumerate(layout.boards)
      if (nodes := layout.decisions(player, number))
    ]
    return layout.largest_payoff * np.concatenate([np.zeros(0), *result])

  def infoset_scales(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """See the base class: the largest payoff times the hand's reach and that of all opponents.

    Of all, whether they share a card with the hand or not, because the running totals of `terminals` are of all, and
    what they round is in proportion to them.
    """
    deal = self._layout.deal
    scales = [np.zeros(0)]
    for number, board in enumerate(self._layout.boards):
      own, theirs = (deal.reaches[each, board.hands[each]] for each in (player, 1 - player))
      probability = own * board.probability * theirs.sum() / deal.total
      together = board.class_sums(player, probability)
      scales += [together] * len(self._layout.decisions(player, number))
    return self._layout.largest_payoff * np.concatenate(scales)

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


class PokerGains(PokerTerminals):
  """What a player can win there, whatever it can lose; for gradients, nothing else knows."""

  form = "gains at poker terminals"
  gradient = terminal_gains


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
