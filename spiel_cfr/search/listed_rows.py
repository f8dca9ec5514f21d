"""Listed histories as pairs of rows: both players' private states at each public state, and where the game ends.

Two histories of the same length are in the same public state if some player cannot tell them apart, if histories below
them are in one public state, or if a chain of such pairs connects them. No infoset is partly in the histories below a
public state, so they form a subgame. Public states are the nodes of a tree. Sources: Burch, Johanson and Bowling,
"Solving Imperfect Information Games Using Decomposition" (2014); Kovařík, Schmid, Burch, Bowling and Lisý, "Rethinking
Formal Models of Partially Observable Multiagent Decision Making" (2022).
"""

import functools
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.openspiel.history_list import TERMINAL
from spiel_cfr.search.history_tree import HistoryTree
from spiel_cfr.search.private_forest import NONE, PrivateForest


class Ends(NamedTuple):
  """Pairs of rows where the game ends, in the order of the public states before them.

  Attributes:
    rows: int64 (2, ends). The row of each player.
    payoffs: float64 (ends,). Player 0's payoff, less half of the constant to which returns sum, times chance's
      probability.
    places: int64 (public states + 1,). The first end after the public state at each position in preorder.
  """

  rows: Int64s
  payoffs: Float64s
  places: Int64s


class ListedRows:
  """The public states of listed histories, and each player's rows there; `private_forest` explains rows.

  Attributes:
    histories: the histories.
    state_of: int64 (histories,). The index of each history's public state; `NONE` at terminal histories.
    histories_of: for each state, int64 (histories,). The histories of each public state, in order.
    above: int64 (public states,). The index of the public state before the last move; `NONE` at the first.
    movers: int64 (pairs,) each. Pairs of a public state's index and a player who may be to move there; chance is -1.
    row_of: int64 (2, histories). Each player's row at each history.
    forests: a pair of `PrivateForest`. The rows of each player.
    first_reach: a pair of arrays. The probability that each player plays to its first rows.
    ends: `Ends`. The pairs of rows where the game ends.
  """

  def __init__(self, histories: HistoryTree) -> None:
    """Finds the public states and the rows."""
    self.histories = histories
    self.state_of = histories.number_public_states()
    order = np.argsort(self.state_of, kind="stable")
    ends = np.searchsorted(self.state_of[order], np.arange(self.state_of.max() + 2))
    self.histories_of = np.split(order, ends)[1:-1]
    firsts = histories.parent[[own[0] for own in self.histories_of]]
    self.above = np.where(firsts >= 0, self.state_of[firsts], NONE)
    goes_on = np.flatnonzero(histories.mover != TERMINAL)
    movers = np.unique(3 * self.state_of[goes_on] + 1 + histories.mover[goes_on])
    self.movers = movers // 3, movers % 3 - 1
    private = histories.number_private_states()
    self.row_of = np.stack([self._number_rows(player, private[player]) for player in (0, 1)])
    # By player: the first history of each row. By player and public state: the first row, and the count of rows.
    self._firsts = [np.unique(rows, return_index=True)[1] for rows in self.row_of]
    self._spans = [self._span(player) for player in (0, 1)]
    self.forests = self._forest(0), self._forest(1)
    first, second = (self._first_reach(player) for player in (0, 1))
    self.first_reach = first, second
    self._number_preorder()
    self.ends = self._ends()

  def _number_rows(self, player: int, private: Int64s) -> Int64s:
    """Returns a player's row at each history, given the index of its private state at each history."""
    histories = self.histories
    goes_on = histories.mover != TERMINAL
    ends = histories.terminals
    keys = np.zeros(len(private), np.int64)
    # Rows are ordered by length, public state and private state. Of each length, rows where the game ends come last.
    keys[goes_on] = self.state_of[goes_on] * (1 + private.max()) + private[goes_on]
    numbers = np.unique(keys[goes_on], return_inverse=True)[1]
    keys[goes_on] = numbers
    # Where the game ends, a player remembers its row before the last move, and the move if it made it.
    above = histories.parent[ends]
    own = np.where(histories.mover[above] == player, histories.entry[ends], NONE)
    keys[ends] = keys[above] * (histories.num_entries + 1) + 1 + own
    order = np.lexsort((keys, ~goes_on, histories.length))
    change = np.ones(len(keys), bool)
    change[1:] = np.any(
      np.diff(np.stack([keys, goes_on, histories.length])[:, order], axis=1) != 0, axis=0
    )
    result = np.empty_like(keys)
    result[order] = np.cumsum(change) - 1
    return result

  def _forest(self, player: int) -> PrivateForest:
    histories, first, rows = self.histories, self._firsts[player], self.row_of[player]
    above = histories.parent[first]
    entry = np.where(histories.mover[above] == player, histories.entry[first], NONE)
    lengths = histories.length[first]
    begins = np.searchsorted(lengths, np.arange(lengths[0], lengths[-1] + 2))
    return PrivateForest(
      np.where(above >= 0, rows[above], NONE),
      np.where(above >= 0, entry, NONE),
      begins,
      histories.num_entries,
    )

  def _span(self, player: int) -> tuple[Int64s, Int64s]:
    states = self.state_of[self._firsts[player]]
    rows = np.flatnonzero(states != NONE)
    counts = np.bincount(states[rows], minlength=len(self.above))
    return rows[np.cumsum(counts) - counts], counts

  def _first_reach(self, player: int) -> Float64s:
    histories, result = self.histories, np.ones(self.forests[player].begins[1])
    result[self.row_of[player][histories.parent < 0]] = histories.probabilities[1 + player]
    return result

  def _number_preorder(self) -> None:
    """Finds an order of public states in which those of a subgame are consecutive."""
    count, above = len(self.above), self.above.tolist()
    self._sizes = np.ones(count, np.int64)
    for number in range(count - 1, -1, -1):
      if above[number] != NONE:
        self._sizes[above[number]] += self._sizes[number]
    sizes, places = self._sizes.tolist(), [0] * count
    # The next free position below each public state. The last element is for public states without a parent.
    free = [0] * (count + 1)
    for number in range(count):
      places[number] = free[above[number]]
      free[above[number]] += sizes[number]
      free[number] = places[number] + 1
    self._places = np.array(places)
    self._preorder = np.argsort(self._places)

  def _ends(self) -> Ends:
    histories = self.histories
    ends = histories.terminals[histories.chance[histories.terminals] > 0]
    columns = [self._places[self.state_of[histories.parent[ends]]], *self.row_of[:, ends]]
    pairs, which = distinct_columns(columns)
    payoffs = np.bincount(which, histories.chance[ends] * histories.payoff[ends], pairs.shape[1])
    pairs = pairs.astype(np.int64)
    places = np.searchsorted(pairs[0], np.arange(len(self.above) + 1))
    return Ends(pairs[1:], payoffs.astype(np.float64), places)

  def below(self, number: int) -> Int64s:
    """Returns the indices of the public states in the subgame of a public state."""
    begin = int(self._places[number])
    return self._preorder[begin : begin + int(self._sizes[number])]

  def ends_below(self, number: int) -> slice:
    """Returns the positions in `ends` of the ends in the subgame of a public state."""
    begin = int(self._places[number])
    places = self.ends.places
    return slice(int(places[begin]), int(places[begin + int(self._sizes[number])]))

  def ends_at(self, numbers: Int64s) -> tuple[Int64s, Int64s, Float64s]:
    """Returns the pairs of rows where the game ends right after some public states, and their payoffs."""
    (first, second), payoffs, places = self.ends
    begins = places[self._places[numbers]]
    ends = concatenated_ranges(begins, places[self._places[numbers] + 1] - begins)
    return first[ends], second[ends], payoffs[ends]

  def rows(self, number: int, player: int) -> Int64s:
    """Returns the rows of a player's private states at a public state."""
    starts, counts = self._spans[player]
    return np.arange(starts[number], starts[number] + counts[number])

  def rows_of(self, numbers: Int64s, player: int) -> Int64s:
    """Returns the rows of a player's private states at some public states."""
    starts, counts = self._spans[player]
    return concatenated_ranges(starts[numbers], counts[numbers])

  def infosets(self, rows: Int64s, player: int) -> tuple[Int64s, Int64s]:
    """Returns the infosets where a player decides among some rows, ascending, and the row of each."""
    infosets = self._infoset_of_row[player][rows]
    decides = np.flatnonzero(infosets != NONE)
    order = decides[np.argsort(infosets[decides])]
    return infosets[order], rows[order]

  @functools.cached_property
  def _infoset_of_row(self) -> tuple[Int64s, Int64s]:
    histories, result = self.histories, []
    for player, rows in enumerate(self.row_of):
      own = np.full(len(self.forests[player].above), NONE)
      own[rows[histories.mover == player]] = histories.infoset[histories.mover == player]
      result.append(own)
    return result[0], result[1]

  def private_name(self, player: int, row: int) -> str:
    """Returns a player's last information state string at a row."""
    return self.histories.information(player, int(self._firsts[player][row]))

  def places(self, number: int) -> tuple[Int64s, Int64s]:
    """Returns the position of each player's private state at each history of a public state."""
    nodes = self.histories_of[number]
    first, second = (
      self.row_of[player, nodes] - self._spans[player][0][number] for player in (0, 1)
    )
    return first, second
