"""Public trees of listed histories: public states and both players' private states, found from OpenSpiel's strings.

Two histories of the same length are in the same public state if some player cannot tell them apart, or if histories
below them are in one public state. Chains of such pairs connect all histories of a public state. The histories below a
public state contain each infoset whole or not at all. They form a subgame. Public states are the nodes of a tree.
Sources: Burch, Johanson and Bowling, "Solving Imperfect Information Games Using Decomposition" (2014); Kovařík, Schmid,
Burch, Bowling and Lisý, "Rethinking Formal Models of Partially Observable Multiagent Decision Making" (2022).
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr._numba.sort_columns import distinct_columns
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel import checked_calls
from spiel_cfr.games.openspiel.checked_calls import TERMINAL
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.search.trees.forest_gadget_games import ForestGameBuilder
from spiel_cfr.search.trees.forest_tree import ForestTree
from spiel_cfr.search.trees.history_tree import HistoryTree
from spiel_cfr.search.trees.private_forest import PrivateForest
from spiel_cfr.search.trees.search_tree import PublicState


class Ends(NamedTuple):
  """The ends of the game as pairs of rows, in the order of the public states before them.

  Attributes:
    rows: int64 (2, ends). The row of each player at each end.
    payoffs: float64 (ends,). Player 0's payoff at each end, less half of the constant to which returns sum, times
      chance's probability.
    begins: int64 (public states + 1,). The first end after each public state, then the number of ends.
  """

  rows: Int64s
  payoffs: Float64s
  begins: Int64s


class ListedTree(ForestTree):
  """All public states of a game whose histories are listed; `public_states` makes one.

  A bot or `self_play` makes a tree of a part of a game, for ranges and values. It has no compiled game: `game` and the
  methods that read or return policies of the compiled game raise an error.

  Attributes:
    histories: `HistoryTree`. The histories as arrays.
    state_of: int64 (histories,). The index of each history's public state; `NONE` at terminal histories.
    histories_of: list. For each public state, int64 (histories,). The indices of its histories, ascending.
    row_of: int64 (2, histories). Each player's row at each history.
    ends_of_game: `Ends`. The ends of the game.
  """

  default_solver = "lp"

  def __init__(self, game: CompiledGame | None, histories: HistoryTree) -> None:
    """Finds the public states and the rows of histories.

    Args:
      game: the compiled game; None if the histories are a part of a game.
      histories: the histories.
    """
    super().__init__()
    self.histories, self._game, self.name = histories, game, str(histories.view.game)
    self.first_length = int(histories.length[0])
    self.state_of = histories.number_public_states()
    order = np.argsort(self.state_of, kind="stable")
    ends = np.searchsorted(self.state_of[order], np.arange(self.state_of.max() + 2))
    self.histories_of = np.split(order, ends)[1:-1]
    parents = histories.parent[[nodes[0] for nodes in self.histories_of]]
    self.above = np.where(parents >= 0, self.state_of[parents], NONE)
    private = histories.number_private_states()
    self.row_of = np.stack([self._number_rows(player, private[player]) for player in (0, 1)])
    # By player: the first history of each row.
    self._first_history = [np.unique(rows, return_index=True)[1] for rows in self.row_of]
    # By player: the first row at each public state, and the number of rows there.
    self._spans = [self._span(player) for player in (0, 1)]
    self.forests = self._forest(0), self._forest(1)
    first, second = (self._first_reach(player) for player in (0, 1))
    self.first_reach = first, second
    self.ends_of_game = self._ends()

  def _number_rows(self, player: int, private: Int64s) -> Int64s:
    """Returns a player's row at each history, given the index of its private state at each history."""
    histories = self.histories
    goes_on = histories.mover != TERMINAL
    ends = histories.terminals
    keys = np.zeros(len(private), np.int64)
    # Rows are ordered by length, public state and private state. Among rows of one length, ends of the game come last.
    keys[goes_on] = self.state_of[goes_on] * (1 + private.max()) + private[goes_on]
    numbers = np.unique(keys[goes_on], return_inverse=True)[1]
    keys[goes_on] = numbers
    # At the end of the game, a player remembers its row before the last move, and the move if it made it.
    above = histories.parent[ends]
    last_entry = np.where(histories.mover[above] == player, histories.entry[ends], NONE)
    keys[ends] = keys[above] * (histories.num_entries + 1) + 1 + last_entry
    order = np.lexsort((keys, ~goes_on, histories.length))
    is_first = np.ones(len(keys), bool)
    is_first[1:] = np.any(
      np.diff(np.stack([keys, goes_on, histories.length])[:, order], axis=1) != 0, axis=0
    )
    result = np.empty_like(keys)
    result[order] = np.cumsum(is_first) - 1
    return result

  def _forest(self, player: int) -> PrivateForest:
    histories, first, rows = self.histories, self._first_history[player], self.row_of[player]
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
    """Returns a player's first row at each public state, and the number of rows there."""
    states = self.state_of[self._first_history[player]]
    rows = np.flatnonzero(states != NONE)
    counts = np.bincount(states[rows], minlength=len(self.above))
    return rows[np.cumsum(counts) - counts], counts

  def _first_reach(self, player: int) -> Float64s:
    histories, result = self.histories, np.ones(self.forests[player].begins[1])
    result[self.row_of[player][histories.parent < 0]] = histories.probabilities[1 + player]
    return result

  def _ends(self) -> Ends:
    histories = self.histories
    ends = histories.terminals[histories.chance[histories.terminals] > 0]
    # A public state and both players' rows, without repetition.
    columns, column = distinct_columns(
      [self.state_of[histories.parent[ends]], *self.row_of[:, ends]]
    )
    payoffs = np.bincount(column, histories.chance[ends] * histories.payoff[ends], columns.shape[1])
    columns = columns.astype(np.int64)
    begins = np.searchsorted(columns[0], np.arange(len(self.above) + 1))
    return Ends(columns[1:], payoffs.astype(np.float64), begins)

  @property
  def game(self) -> CompiledGame:  # type: ignore[override]
    """The compiled game; raises UnsupportedGameError in a tree of a part of the game."""
    if self._game is None:
      raise errors.UnsupportedGameError(
        "This public state belongs to a part of the game that a bot or self_play has walked, without a compiled game. "
        "Use search.public_states(game) for public states with values, beliefs and subgames."
      )
    return self._game

  @functools.cached_property
  def largest_payoff(self) -> float:
    """See `SearchTree.largest_payoff`."""
    return float(np.abs(self.histories.payoff).max())

  @functools.cached_property
  def actions(self) -> Int64s:
    """See `ForestTree.actions`."""
    return np.concatenate(self.histories.actions)

  def rows(self, index: int, player: int) -> Int64s:
    begins, counts = self._spans[player]
    return np.arange(begins[index], begins[index] + counts[index])

  def counterfactual_reach_of_rows(self, player: int, reach: Float64s) -> Float64s:
    """See `ForestTree.counterfactual_reach_of_rows`; rows where the game ends have their probabilities, too."""
    weights = self.histories.chance * reach[self.row_of[1 - player]]
    count = len(self.forests[player].above)
    return np.bincount(self.row_of[player], weights, count).astype(np.float64)

  def values_at_ends(self, player: int, reach: Float64s) -> Float64s:
    rows, payoffs, _ = self.ends_of_game
    values = (1 - 2 * player) * payoffs * reach[rows[1 - player]]
    return np.bincount(rows[player], values, len(self.forests[player].above)).astype(np.float64)

  def end_pairs(self, indices: Int64s) -> tuple[Int64s, Int64s, Float64s]:
    (first, second), payoffs, begins = self.ends_of_game
    ends = concatenated_ranges(begins[indices], begins[indices + 1] - begins[indices])
    return first[ends], second[ends], payoffs[ends]

  @functools.cached_property
  def movers(self) -> tuple[Int64s, Int64s]:
    """See `ForestTree.movers`."""
    goes_on = np.flatnonzero(self.histories.mover != TERMINAL)
    pairs = np.unique(3 * self.state_of[goes_on] + 1 + self.histories.mover[goes_on])
    return pairs // 3, pairs % 3 - 1

  def depth(self, index: int) -> int:
    return int(self.histories.length[self.histories_of[index][0]])

  def private_name(self, player: int, row: int) -> str:
    return self.histories.information(player, int(self._first_history[player][row]))

  def states(self, index: int) -> Iterator[Any]:
    yield from map(self.histories.state, self.histories_of[index].tolist())

  def pairs(self, index: int) -> tuple[Int64s, Int64s, Float64s]:
    nodes = self.histories_of[index]
    first, second = (
      self.row_of[player, nodes] - self._spans[player][0][index] for player in (0, 1)
    )
    return first, second, self.histories.chance[nodes]

  @property
  def builder(self) -> ForestGameBuilder:
    """See `SearchTree.builder`."""
    return ForestGameBuilder(self)

  def public_state_of(self, state: Any) -> PublicState:
    """Returns the public state of a state of OpenSpiel.

    Raises:
      ArgumentError: the state is terminal, or does not belong to this game.
    """
    histories = self.histories
    turn_based = self.game.view.own_state(state, max(0, checked_calls.current_player(state)))
    history = turn_based.history()
    path = histories.path(history)
    if not path or histories.length[path[-1]] < len(history):
      raise errors.ArgumentError(f"The history [{state.history_str()}] is none of {self.game}.")
    if histories.mover[path[-1]] == TERMINAL:
      raise errors.ArgumentError(f"The history [{state.history_str()}] has ended.")
    return PublicState(self, int(self.state_of[path[-1]]))

  def to_slots(self, probabilities: Float64s) -> Float64s:
    return self.game.to_actions(probabilities)

  def behavioral_form(self, policy: Float64s) -> Float64s:
    return self.game.from_actions(policy)

  def __repr__(self) -> str:
    sizes = np.array([len(nodes) for nodes in self.histories_of])
    alone = " (common knowledge splits nothing)" if len(self) == len(self.histories.levels) else ""
    return (
      f"<ListedTree of {self.histories.view.game}: {len(self):,} public states{alone}, the largest of "
      f"{int(sizes.max()):,} histories>"
    )
