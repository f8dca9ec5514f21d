"""The payoffs of a poker game in vector form: folds and showdowns, settled for all hands at once."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.games.payoffs.payoff import NO_PLAYERS, Payoff, PayoffArrays
from spiel_cfr.games.payoffs.utility_bounds import Leaves, combined
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.parts import Numbering
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker.boards import Board, hand_pairs
from spiel_cfr.poker.deal import Deal
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree
from spiel_cfr.poker.showdown_kernels import (
  BOARD_COLUMNS,
  IN_ORDER,
  terminal_gradient,
)


class PokerTerminals(Payoff):
  """The terminals of a poker game, or some of them.

  Bounds are those of the whole game. They let a showdown count as if nobody could tie, and all rivers after a player
  has last acted as if they agreed, so that sums over hands suffice.
  """

  form = "poker terminals"
  gradient = terminal_gradient

  def __init__(
    self,
    arrays: PayoffArrays,
    tree: HandTree,
    layout: Layout,
    above: Int32s,
    terminals: Int64s,
  ) -> None:
    """Takes what `build` has made, and its arguments."""
    super().__init__(arrays)
    self._tree, self._layout, self._above, self._terminals = tree, layout, above, terminals

  @classmethod
  def build(
    cls,
    tree: HandTree,
    layout: Layout,
    above: Int32s,
    numberings: Sequence[Numbering],
    terminals: Int64s,
  ) -> "PokerTerminals":
    """Writes down some terminals.

    Args:
      tree: the public tree.
      layout: of the game.
      above: the edges above all terminals, shape (players, terminals).
      numberings: each player's, of the sequences above these terminals.
      terminals: int64, the numbers of these terminals.
    """
    boards = np.unique(tree.terminal_kind[terminals]).tolist()
    table = np.zeros((2 + len(boards), BOARD_COLUMNS), np.uint64)
    rows, values = _Pieces(np.uint32), _Pieces(np.float64)
    listed, payoffs, count = [np.zeros((4, 0), np.int64)], [np.zeros(0)], 0
    for line, number in enumerate(boards, 2):
      board, here = tree.boards[number], terminals[tree.terminal_kind[terminals] == number]
      table[line, :8] = _describe_board(tree.deal, board, rows, values)
      edges = above[:, here]
      before = np.stack([layout.row_kind(own) for own in edges])
      in_order = (before == number).all(axis=0) & board.tells_all_apart
      lanes = np.full(before.shape, IN_ORDER, np.int64)
      for player, own in enumerate(before):
        for kind in np.unique(own[~in_order]).tolist():
          lanes[player, ~in_order & (own == kind)] = rows.add(tree.lanes(player, kind, number))
      firsts = [each.row(layout, edges[each.player]) for each in numberings]
      columns = np.concatenate([firsts, lanes])
      worth = tree.payoff[here] * board.probability / tree.deal.total
      for column, is_fold in ((8, True), (10, False)):
        table[line, column] = count
        for group in (in_order, ~in_order):
          chosen = np.flatnonzero(group & (tree.is_fold[here] == is_fold))
          # Vectors are filled up with the last terminal again, at no payoff.
          filled = np.append(chosen, chosen[-1:].repeat(-len(chosen) % MOST_LANES))
          listed.append(columns[:, filled])
          payoffs += [worth[chosen], np.zeros(len(filled) - len(chosen))]
          count += len(filled)
        table[line, column + 1] = count
    for player, numbering in enumerate(numberings):
      table[player, :2] = numbering.bounds(layout)
    most = max((len(hands) for number in boards for hands in tree.boards[number].hands), default=0)
    table[0, 2:5] = values.add(np.concatenate(payoffs)), most, tree.deal.num_cards + 2
    arrays = PayoffArrays(
      players=NO_PLAYERS,
      runs=table,
      rows=rows.joined(),
      others=np.concatenate(listed, axis=1).astype(np.uint32),
      values=values.joined(),
    )
    return cls(arrays, tree, layout, above, terminals)

  @property
  def num_leaves(self) -> int:
    """The number of terminals, each a pair of vectors over hands."""
    return len(self._terminals)

  def leaves(self, player: int) -> Leaves:
    """Lists pairs of hands at every terminal, by sequences of the whole game."""
    tree, layout, keys, values = self._tree, self._layout, [], []
    for number in np.unique(tree.terminal_kind[self._terminals]).tolist():
      board = tree.boards[number]
      pairs = hand_pairs(tree.deal, board, player)
      own, other = board.reaches[player], board.reaches[1 - player]
      # The probability of the pair and the board.
      weights = np.outer(own, other) * pairs.apart * board.probability / tree.deal.total
      for terminal in self._terminals[tree.terminal_kind[self._terminals] == number].tolist():
        payoff = tree.payoff[terminal]
        won = (
          (payoff if player == 0 else -payoff) if tree.is_fold[terminal] else payoff * pairs.ahead
        )
        pair = np.nonzero(weights * won)
        rows = [
          layout.sequences_before(each, self._above[each, terminal], number)
          for each in (player, 1 - player)
        ]
        keys.append([row[hands] for row, hands in zip(rows, pair, strict=True)])
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
    deal, boards = self._tree.deal, self._tree.boards

    def mass(number: int) -> Float64s:
      hands = boards[number].hands
      own, others = (deal.reaches[each, hands[each]] for each in (player, 1 - player))
      return np.asarray(own * (others.sum() / deal.total))

    return self._at_decisions(player, mass)

  def _at_decisions(self, player: int, mass: Callable[[int], Float64s]) -> Float64s:
    """Returns the largest payoff times a board's probability and numbers of its hands, summed over each infoset's."""
    tree, layout = self._tree, self._layout
    begin, end = layout.first_infosets[player, [0, -1]].tolist()
    result = np.zeros(end - begin)
    for number, board in enumerate(tree.boards):
      together = board.probability * np.bincount(board.classes[player], mass(number))
      nodes = np.flatnonzero((tree.kind == number) & (tree.player == player))
      result[layout.infoset[nodes][:, None] - begin + np.arange(len(together))] = together
    return tree.largest_payoff * result

  def sensitivity(self, treeplexes: Sequence[Treeplex], player: int) -> float:
    """Bounds the spectral norm of the payoff matrix of both players' sequences.

    It is at most the root of the largest row sum times the largest column sum, and at most the Frobenius norm, which is
    summed over hands that are told apart.
    """
    tree, layout = self._tree, self._layout
    sums = [np.zeros(treeplexes[-1].end), np.zeros(treeplexes[-1].end)]
    frobenius: dict[int, float] = {}
    for number, board in enumerate(tree.boards):
      masses = [self._mass(each, number, 1) for each in (0, 1)]
      squares = self._mass(player, number, 2).sum()
      for node in tree.on_board(number, *TERMINALS):
        terminal = -1 - int(tree.number[number, node])
        payoff = abs(tree.payoff[terminal]) * board.probability
        edges = tree.above.terminals[:, terminal]
        for each, edge in enumerate(edges):
          row = layout.sequences_before(each, edge, number)
          np.add.at(sums[each], row, payoff * masses[each])
        norm = payoff * math.sqrt(squares)
        before = frobenius.get(node, 0.0)
        # Matrices of different rows add their squares; those of the same rows at most their norms.
        apart = (layout.row_kind(edges) == number).all()
        frobenius[node] = math.hypot(before, norm) if apart else before + norm
    row_sum, column_sum = (float(each.max()) for each in sums)
    norm = math.sqrt(row_sum * column_sum)
    if all(board.tells_all_apart for board in tree.boards):
      norm = min(norm, math.hypot(*frobenius.values()))
    return norm

  def _mass(self, player: int, board: int, power: int) -> Float64s:
    """Returns the sum, over the opponent's hands, of chance's probability of a pair to a power, for a board's hands."""
    deal, hands = self._tree.deal, self._tree.boards[board].hands
    others = np.zeros(len(deal.hands))
    others[hands[1 - player]] = deal.reaches[1 - player, hands[1 - player]] ** power
    own = deal.reaches[player, hands[player]] ** power
    return np.asarray(own * deal.compatible_mass(others)[hands[player]] / deal.total**power)


def _describe_board(
  deal: Deal, board: Board, rows: "_Pieces", values: "_Pieces"
) -> tuple[int, ...]:
  """Writes down a board's hands; returns the columns of the table before those of its terminals."""
  counts = [len(hands) for hands in board.hands]
  described = [rows.add(_describe_hands(player, deal, board)) for player in PLAYERS]
  # Kernels read whole vectors.
  reaches = [values.add(board.reaches[player], np.zeros(MOST_LANES)) for player in PLAYERS]
  levels = np.unique(np.concatenate(board.strengths))
  starts = [
    np.append(np.searchsorted(board.strengths[player], levels), counts[player])
    for player in PLAYERS
  ]
  return *counts, *described, *reaches, rows.add(*starts), len(levels)


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
