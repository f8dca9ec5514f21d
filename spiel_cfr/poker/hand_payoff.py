"""Payoffs of a poker game in vector form: folds and showdowns, evaluated for all hands of a board at once."""

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from spiel_cfr._numba.arrays import AnyFloats, Bools, Float64s, Int32s, Int64s, concatenated_ranges
from spiel_cfr._numba.simd import MOST_LANES
from spiel_cfr._numba.steps import Step
from spiel_cfr.games.payoffs.payoff import Payoff
from spiel_cfr.games.payoffs.utility_bounds import Leaves, combined
from spiel_cfr.games.sequence_form.treeplex import Treeplex
from spiel_cfr.games.vector.layout import Layout
from spiel_cfr.games.vector.parts import Numbering
from spiel_cfr.games.vector.public_tree import PLAYERS
from spiel_cfr.poker import showdown_kernels as kernels
from spiel_cfr.poker.boards import hand_pairs
from spiel_cfr.poker.hand_tree import TERMINALS, HandTree


class PokerTerminals(Payoff):
  """Payoffs of a poker game, from all terminals or some of them.

  `infoset_bounds`, `infoset_scales` and `sensitivity` are upper bounds for the whole game, even if the object has only
  some of its terminals. They take the absolute payoff of each pair of hands: a tie counts as a win, and wins and losses
  on different rivers do not cancel. Such bounds need sums over hands only, not over pairs.
  """

  form = "poker terminals"
  arrays: kernels.TerminalArrays

  def __init__(
    self,
    tree: HandTree,
    layout: Layout,
    above: Int32s,
    numberings: Sequence[Numbering],
    terminals: Int64s,
  ) -> None:
    """Builds the arrays of some terminals.

    Args:
      tree: the public tree.
      layout: the layout of the game.
      above: int32 (players, terminals). The last edge of each player before every terminal of the game.
      numberings: for each player, the numbering of the sequences above these terminals.
      terminals: int64. The numbers of these terminals.
    """
    self._tree, self._layout, self._above, self._terminals = tree, layout, above, terminals
    boards, board_index = np.unique(tree.terminal_kind[terminals], return_inverse=True)
    edges = above[:, terminals]
    first_sequences = [owner.row(layout, edges[owner.player]) for owner in numberings]
    is_in_order, infoset_places = _infoset_places(tree, layout, edges, boards, board_index)
    # Four groups for each board: folds before showdowns, terminals with infosets in order before others.
    group = 4 * board_index + 2 * ~tree.is_fold[terminals] + ~is_in_order
    source, is_filler, ends = _whole_vectors(group, 4 * len(boards))
    table = np.zeros((kernels.FIRST_BOARD + len(boards), kernels.BOARD_COLUMNS), np.uint64)
    board_lines = table[kernels.FIRST_BOARD :]
    board_lines[:, : kernels.FIRST_FOLD] = tree.tables.boards[boards]
    board_lines[:, kernels.FIRST_FOLD :] = ends[4 * np.arange(len(boards))[:, None] + [0, 2, 2, 4]]
    for player, numbering in enumerate(numberings):
      table[player, [kernels.ROOT, kernels.END]] = numbering.bounds(layout)
    num_hands = board_lines[:, kernels.HANDS + np.array(PLAYERS)]
    table[0, kernels.MOST_HANDS] = num_hands.max(initial=0)
    table[0, kernels.NUM_CARD_TOTALS] = tree.deal.num_cards + 2
    chances = np.array([tree.boards[number].probability for number in boards], np.float64)
    chips = np.stack([tree.stake[terminals], tree.rake[terminals] / 2])
    payoffs = chips * chances[board_index] / tree.deal.total
    arrays = kernels.TerminalArrays(
      boards=table,
      rows=tree.tables.rows,
      others=np.ascontiguousarray(
        np.concatenate([first_sequences, infoset_places])[:, source], np.uint32
      ),
      reaches=tree.tables.reaches,
      payoffs=np.where(is_filler, 0.0, payoffs[:, source]).reshape(-1),
    )
    super().__init__(arrays)

  @functools.cached_property
  def _single_arrays(self) -> kernels.TerminalArrays:
    """The arrays in float32."""
    payoffs = self.arrays.payoffs.astype(np.float32)
    return self.arrays._replace(reaches=self._tree.tables.single_reaches, payoffs=payoffs)

  def gradient_step(self, player: int, sequence_form: AnyFloats, utility: AnyFloats) -> Step:
    arrays = self.arrays if utility.dtype == np.float64 else self._single_arrays
    record = kernels.TerminalGradient(player, arrays, sequence_form, utility)
    return kernels.terminal_gradient.on(record, utility.dtype)

  @property
  def num_leaves(self) -> int:
    """Number of terminals, each of which has a payoff for every pair of hands."""
    return len(self._terminals)

  def leaves(self, player: int) -> Leaves:
    """Returns the leaves of a list of histories: pairs of hands at every terminal, by sequences of the whole game."""
    tree, layout = self._tree, self._layout
    sequences: list[list[Int64s]] = []
    payoffs: list[Float64s] = []
    for number in np.unique(tree.terminal_kind[self._terminals]).tolist():
      board = tree.boards[number]
      pairs = hand_pairs(tree.deal, board, player)
      own, other = board.reaches[player], board.reaches[1 - player]
      # Chance's probability of the pair and the board.
      weights = np.outer(own, other) * pairs.disjoint * board.probability / tree.deal.total
      for terminal in self._terminals[tree.terminal_kind[self._terminals] == number].tolist():
        stake, is_fold = tree.stake[terminal], tree.is_fold[terminal]
        won = stake * ((1 - 2 * player) if is_fold else pairs.ahead) - tree.rake[terminal] / 2
        nonzero = np.nonzero(weights * won)
        sequences_of_hands = [
          layout.sequences_before(owner, self._above[owner, terminal], number)
          for owner in (player, 1 - player)
        ]
        sequences.append(
          [of_hand[hands] for of_hand, hands in zip(sequences_of_hands, nonzero, strict=True)]
        )
        payoffs.append((weights * won)[nonzero])
    columns = [np.concatenate(column) for column in zip(*sequences, strict=True)]
    # If no player acts on a board, terminals of several boards have the same sequences.
    (own_sequences, others), sums = combined(columns, np.concatenate(payoffs), np.add)
    return Leaves(own_sequences.astype(np.uint32), others.astype(np.uint32)[None], sums)

  def infoset_bounds(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Returns the largest payoff times chance's probability of each infoset's hands and board, float64 (infosets,)."""
    return self._at_infosets(player, lambda number: self._mass(player, number, 1))

  def infoset_scales(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Returns the largest payoff times the reaches of each infoset's hands and of all opponent's hands.

    Opponent's hands that share a card with a hand count, too: the kernels' running totals contain them, and rounding
    errors are proportional to these totals.
    """
    deal, boards = self._tree.deal, self._tree.boards

    def mass(number: int) -> Float64s:
      """Returns the reach of each hand of a board times the total reach of the opponent's hands, shape (hands,)."""
      hands = boards[number].hands
      own, others = (deal.reaches[owner, hands[owner]] for owner in (player, 1 - player))
      return np.asarray(own * (others.sum() / deal.total))

    return self._at_infosets(player, mass)

  def _at_infosets(self, player: int, mass: Callable[[int], Float64s]) -> Float64s:
    """Returns, for each infoset, the largest payoff times the probability of its board times the mass of its hands.

    Args:
      player: the owner of the infosets.
      mass: function of a board's number; returns the mass of each of the player's hands there.
    """
    boards = enumerate(self._tree.boards)
    hand_masses = [board.probability * mass(number) for number, board in boards]
    return self._tree.largest_payoff * self._layout.at_infosets(player, hand_masses)

  def sensitivity(self, treeplexes: Sequence[Treeplex], player: int) -> float:
    """Returns an upper bound of the spectral norm of the payoff matrix, whose rows and columns are sequences.

    The norm is at most the square root of the largest row sum times the largest column sum. If every hand has its own
    infoset, it is also at most the Frobenius norm.
    """
    tree, layout = self._tree, self._layout
    sums = [np.zeros(treeplexes[-1].end), np.zeros(treeplexes[-1].end)]
    frobenius: dict[int, float] = {}
    for number, board in enumerate(tree.boards):
      masses = [self._mass(owner, number, 1) for owner in (0, 1)]
      sum_of_squares = self._mass(player, number, 2).sum()
      for node in tree.on_board(number, *TERMINALS):
        terminal = -1 - int(tree.node_of[number, node])
        payoff = abs(tree.payoff[terminal]) * board.probability
        edges = tree.above.terminals[:, terminal]
        for owner, edge in enumerate(edges):
          sequences = layout.sequences_before(owner, edge, number)
          np.add.at(sums[owner], sequences, payoff * masses[owner])
        norm = payoff * math.sqrt(sum_of_squares)
        norm_so_far = frobenius.get(node, 0.0)
        # Squares of norms add if the matrices have no row in common; otherwise the norms add at most.
        is_disjoint = (layout.row_kind(edges) == number).all()
        frobenius[node] = math.hypot(norm_so_far, norm) if is_disjoint else norm_so_far + norm
    row_sum, column_sum = (float(totals.max()) for totals in sums)
    norm = math.sqrt(row_sum * column_sum)
    if all(board.infoset_per_hand for board in tree.boards):
      norm = min(norm, math.hypot(*frobenius.values()))
    return norm

  def _mass(self, player: int, board: int, power: int) -> Float64s:
    """Returns the sum over the opponent's hands of chance's probability of each pair to a power; float64 (hands,)."""
    deal, hands = self._tree.deal, self._tree.boards[board].hands
    others = np.zeros(len(deal.hands))
    others[hands[1 - player]] = deal.reaches[1 - player, hands[1 - player]] ** power
    own = deal.reaches[player, hands[player]] ** power
    return np.asarray(own * deal.compatible_mass(others)[hands[player]] / deal.total**power)


def _infoset_places(
  tree: HandTree, layout: Layout, edges: Int32s, boards: Int32s, board_index: Int64s
) -> tuple[Bools, Int64s]:
  """Returns the offsets in `HandTables.rows` of the infosets of the hands at some terminals.

  Args:
    tree: the public tree.
    layout: the layout of the game.
    edges: int32 (players, terminals). The last edge of each player before these terminals.
    boards: int32 (boards,). The boards of these terminals.
    board_index: int64 (terminals,). The index in `boards` of each terminal's board.

  Returns:
    bool (terminals,), True if the infosets of both players' hands are 0, 1, 2 and so on; and int64 (players,
    terminals), the offsets, or `IN_ORDER` at those terminals.
  """
  board = boards[board_index]
  # The boards of the last decisions; -1, with level -1, before a player's first decision.
  last_boards = np.stack([layout.row_kind(edges_of_player) for edges_of_player in edges])
  levels = np.array([*(board.level for board in tree.boards), -1])
  infoset_per_hand = np.array([tree.boards[number].infoset_per_hand for number in boards], bool)
  is_in_order = (last_boards == board).all(axis=0) & infoset_per_hand[board_index]
  places = tree.tables.infoset_places[[[0], [1]], board, 1 + levels[last_boards]]
  return is_in_order, np.where(is_in_order, kernels.IN_ORDER, places)


def _whole_vectors(group: Int64s, num_groups: int) -> tuple[Int64s, Bools, Int64s]:
  """Sorts terminals by group, and fills up each group to whole vectors with copies of its last terminal.

  Args:
    group: int64 (terminals,). The group of each terminal.
    num_groups: number of groups.

  Returns:
    int64 (lines,), the index of the terminal in each line; bool (lines,), True for copies, which must pay nothing; and
    int64 (num_groups + 1,), the first line of each group, then the number of lines.
  """
  order = np.argsort(group, kind="stable")
  counts = np.bincount(group, minlength=num_groups)
  num_lines = -(-counts // MOST_LANES) * MOST_LANES
  position = concatenated_ranges(np.zeros_like(num_lines), num_lines)
  begin, count = np.repeat(np.cumsum(counts) - counts, num_lines), np.repeat(counts, num_lines)
  source = order[begin + np.minimum(position, count - 1)]
  return source, position >= count, np.append(0, np.cumsum(num_lines))
