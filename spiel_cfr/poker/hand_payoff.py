"""Poker terminals: the payoffs of a poker game in vector form, folds and showdowns settled for all hands at once."""

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int32s, Int64s, concatenated_ranges
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr.games.payoffs.payoff import NO_PLAYERS, Payoff, PayoffArrays
from spiel_cfr.games.payoffs.utility_bounds import Leaves, combined
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.parts import Numbering
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker import showdown_kernels as kernels
from spiel_cfr.poker.boards import hand_pairs
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree


class PokerTerminals(Payoff):
  """The terminals of a poker game, or some of them, as a form of payoffs.

  `PayoffArrays` has these meanings here; `showdown_kernels` names the columns:

      runs       the table of boards: counts of hands, places of their tables, and the range of terminals of each board
      rows       tables of hands: descriptions, infoset places, and first hands of each strength, see `HandTables`
      others     for each terminal: both players' rows, and the beginnings of their infoset places in `rows`
      values     the reaches of hands
      patterns   the stakes of all terminals, then halves of their rakes; both times the probability of the board

  Terminals are sorted by board, folds before showdowns. Each group is padded to whole vectors of `MOST_LANES`
  terminals. A hand's sequence at a terminal is the player's row plus the place of the hand's infoset.

  Bounds (`infoset_bounds`, `infoset_scales`, `sensitivity`) are upper bounds for the whole game, even if the object has
  only some of its terminals. They take the absolute payoff of each pair of hands: a tie counts as a win, and a loss on
  one river is not set against a win on another. Sums over hands are then enough.
  """

  form = "poker terminals"
  gradient = kernels.terminal_gradient

  def __init__(
    self,
    arrays: PayoffArrays,
    tree: HandTree,
    layout: Layout,
    above: Int32s,
    terminals: Int64s,
  ) -> None:
    """Takes the result and the arguments of `build`."""
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
    """Builds the arrays of some terminals.

    Args:
      tree: the public tree.
      layout: the layout of the game.
      above: int32 (players, terminals). The edges above all terminals.
      numberings: for each player, the numbering of the sequences above these terminals.
      terminals: int64. The numbers of these terminals.
    """
    tables = tree.tables
    boards, line = np.unique(tree.terminal_kind[terminals], return_inverse=True)
    edges = above[:, terminals]
    before = np.stack([layout.row_kind(own) for own in edges])
    levels = 1 + np.array([*(board.level for board in tree.boards), -1])
    kinds = tree.terminal_kind[terminals]
    all_apart = np.array([tree.boards[number].infoset_per_hand for number in boards], bool)
    in_order = (before == kinds).all(axis=0) & all_apart[line]
    places_of_infosets = np.where(
      in_order, kernels.IN_ORDER, tables.infoset_places[[[0], [1]], kinds, levels[before]]
    )
    firsts = [owner.row(layout, edges[owner.player]) for owner in numberings]
    chances = np.array([tree.boards[number].probability for number in boards], np.float64)
    pays = np.stack([tree.stake[terminals], tree.rake[terminals] / 2])
    worth = pays * chances[line] / tree.deal.total
    # Four groups for each board: folds before showdowns, places in order before others. Each is filled up to whole
    # vectors with copies of its last terminal that pay nothing.
    group = 4 * line + 2 * ~tree.is_fold[terminals] + ~in_order
    order = np.argsort(group, kind="stable")
    counts = np.bincount(group, minlength=4 * len(boards))
    filled = -(-counts // MOST_LANES) * MOST_LANES
    place, count = concatenated_ranges(np.zeros_like(filled), filled), np.repeat(counts, filled)
    chosen = order[np.repeat(np.cumsum(counts) - counts, filled) + np.minimum(place, count - 1)]
    ends = np.append(0, np.cumsum(filled))
    table = np.zeros((kernels.FIRST_BOARD + len(boards), kernels.BOARD_COLUMNS), np.uint64)
    of_boards = table[kernels.FIRST_BOARD :]
    of_boards[:, : kernels.FIRST_FOLD] = tables.boards[boards]
    of_boards[:, kernels.FIRST_FOLD :] = ends[4 * np.arange(len(boards))[:, None] + [0, 2, 2, 4]]
    for player, numbering in enumerate(numberings):
      table[player, [kernels.ROOT, kernels.END]] = numbering.bounds(layout)
    num_hands = of_boards[:, kernels.HANDS + np.array(PLAYERS)]
    table[0, kernels.MOST_HANDS] = num_hands.max(initial=0)
    table[0, kernels.CARD_PLACES] = tree.deal.num_cards + 2
    arrays = PayoffArrays(
      players=NO_PLAYERS,
      runs=table,
      rows=tables.rows,
      others=np.ascontiguousarray(
        np.concatenate([firsts, places_of_infosets])[:, chosen], np.uint32
      ),
      values=tables.reaches,
      patterns=np.where(place < count, worth[:, chosen], 0.0).reshape(-1),
    )
    return cls(arrays, tree, layout, above, terminals)

  @functools.cached_property
  def _single_arrays(self) -> PayoffArrays:
    patterns = self.arrays.patterns.astype(np.float32)
    return self.arrays._replace(values=self._tree.tables.single_reaches, patterns=patterns)

  @property
  def num_leaves(self) -> int:
    """Number of terminals, each a pair of vectors over hands."""
    return len(self._terminals)

  def leaves(self, player: int) -> Leaves:
    """Lists the pairs of hands at every terminal, by sequences of the whole game."""
    tree, layout, keys, values = self._tree, self._layout, [], []
    for number in np.unique(tree.terminal_kind[self._terminals]).tolist():
      board = tree.boards[number]
      pairs = hand_pairs(tree.deal, board, player)
      own, other = board.reaches[player], board.reaches[1 - player]
      # Chance's probability of the pair and the board.
      weights = np.outer(own, other) * pairs.apart * board.probability / tree.deal.total
      for terminal in self._terminals[tree.terminal_kind[self._terminals] == number].tolist():
        stake, is_fold = tree.stake[terminal], tree.is_fold[terminal]
        won = stake * ((1 - 2 * player) if is_fold else pairs.ahead) - tree.rake[terminal] / 2
        pair = np.nonzero(weights * won)
        rows = [
          layout.sequences_before(owner, self._above[owner, terminal], number)
          for owner in (player, 1 - player)
        ]
        keys.append([row[hands] for row, hands in zip(rows, pair, strict=True)])
        values.append((weights * won)[pair])
    columns = [np.concatenate(column) for column in zip(*keys, strict=True)]
    # If no player acts on a board, terminals of several boards have the same sequences.
    (own_sequences, others), payoffs = combined(columns, np.concatenate(values), np.add)
    return Leaves(own_sequences.astype(np.uint32), others.astype(np.uint32)[None], payoffs)

  def infoset_bounds(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Returns the largest payoff times chance's probability of the hand and the board."""
    return self._at_infosets(player, lambda number: self._mass(player, number, 1))

  def infoset_scales(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Returns the largest payoff times the hand's reach and the reaches of all opponent's hands.

    Hands that share a card count too: running totals contain them, and rounding is in proportion to these totals.
    """
    deal, boards = self._tree.deal, self._tree.boards

    def mass(number: int) -> Float64s:
      hands = boards[number].hands
      own, others = (deal.reaches[owner, hands[owner]] for owner in (player, 1 - player))
      return np.asarray(own * (others.sum() / deal.total))

    return self._at_infosets(player, mass)

  def _at_infosets(self, player: int, mass: Callable[[int], Float64s]) -> Float64s:
    """Returns the largest payoff times a board's probability and the mass of its hands, summed over each infoset."""
    boards = enumerate(self._tree.boards)
    of_hands = [board.probability * mass(number) for number, board in boards]
    return self._tree.largest_payoff * self._layout.at_infosets(player, of_hands)

  def sensitivity(self, treeplexes: Sequence[Treeplex], player: int) -> float:
    """Bounds the spectral norm of the payoff matrix of both players' sequences.

    It is at most the root of the largest row sum times the largest column sum. If every hand has its own infoset, it is
    also at most the Frobenius norm.
    """
    tree, layout = self._tree, self._layout
    sums = [np.zeros(treeplexes[-1].end), np.zeros(treeplexes[-1].end)]
    frobenius: dict[int, float] = {}
    for number, board in enumerate(tree.boards):
      masses = [self._mass(owner, number, 1) for owner in (0, 1)]
      squares = self._mass(player, number, 2).sum()
      for node in tree.on_board(number, *TERMINALS):
        terminal = -1 - int(tree.node_of[number, node])
        payoff = abs(tree.payoff[terminal]) * board.probability
        edges = tree.above.terminals[:, terminal]
        for owner, edge in enumerate(edges):
          row = layout.sequences_before(owner, edge, number)
          np.add.at(sums[owner], row, payoff * masses[owner])
        norm = payoff * math.sqrt(squares)
        before = frobenius.get(node, 0.0)
        # Norms of matrices in different rows add in squares; those in the same rows add at most.
        apart = (layout.row_kind(edges) == number).all()
        frobenius[node] = math.hypot(before, norm) if apart else before + norm
    row_sum, column_sum = (float(totals.max()) for totals in sums)
    norm = math.sqrt(row_sum * column_sum)
    if all(board.infoset_per_hand for board in tree.boards):
      norm = min(norm, math.hypot(*frobenius.values()))
    return norm

  def _mass(self, player: int, board: int, power: int) -> Float64s:
    """Returns, for each hand of a board, the sum over the opponent's hands of chance's probability to a power."""
    deal, hands = self._tree.deal, self._tree.boards[board].hands
    others = np.zeros(len(deal.hands))
    others[hands[1 - player]] = deal.reaches[1 - player, hands[1 - player]] ** power
    own = deal.reaches[player, hands[player]] ** power
    return np.asarray(own * deal.compatible_mass(others)[hands[player]] / deal.total**power)
