"""A game's tree of histories in NumPy, level by level, with reach probabilities and values under a policy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.histories import MOVER, compile_histories
from spiel_cfr.games.openspiel.history_list import NONE


class HistoryWalk:
  """A game's tree of histories. A node is a history; node 0 is the root.

  Attributes:
    levels: for each depth, int64 (nodes of that depth,). The nodes.
    parent: int64 (nodes,). The node above each node; 0 at the root.
    mover: int64 (nodes,). The player who moves, `CHANCE` or `TERMINAL` of `checked_calls`.
    index: int64 (nodes,). The column `INDEX` of `Histories.nodes`.
    first_child: int64 (nodes,). The first child of each node; its other children have the next numbers.
    num_children: int64 (nodes,). The number of children of each node.
    entry: int64 (nodes,). The number of the infoset's first action among the actions of all infosets, as in
      `CompiledGame.all_action_sequences`; `NONE` where no player moves.
    chances: float64 (outcomes,). The probabilities of chance's outcomes, as in `Histories`.
    returns: float64 (rows, players). The different returns, as in `Histories`.
  """

  def __init__(self, compiled: CompiledGame, max_nodes: int) -> None:
    """Lists the histories of a game, at most `max_nodes`; raises the errors of `compile_histories`."""
    histories, _ = compile_histories(
      compiled.view, compiled.infostates, compiled.actions, compiled.num_actions, max_nodes
    )
    self._compiled = compiled
    self.returns = histories.returns
    self.chances = histories.probabilities
    # As signed 32-bit integers, chance and terminals are `CHANCE` and `TERMINAL`.
    self.mover = mover = histories.nodes[:, MOVER].astype(np.int32).astype(np.int64)
    _, self.index, self.first_child, self.num_children = histories.nodes.astype(np.int64).T
    self.entry = np.where(mover >= 0, self.index - compiled.num_players, NONE)
    self.parent = np.zeros(len(mover), np.int64)
    self.levels = list(self._levels())

  def _levels(self) -> Iterator[Int64s]:
    level = np.zeros(1, np.int64)
    while len(level):
      yield level
      children = self.children(level)
      self.parent[children] = np.repeat(level, self.num_children[level])
      level = children

  def children(self, nodes: Int64s) -> Int64s:
    """Returns the children of nodes, end to end."""
    return concatenated_ranges(self.first_child[nodes], self.num_children[nodes])

  def probabilities(self, behavioral: Float64s) -> Float64s:
    """Returns the probability of the move that leads to each node, 1 at the root."""
    result: Float64s = self.along_edges(self._compiled.to_actions(behavioral), self.chances)
    return result

  def along_edges(self, entries: npt.NDArray[Any], chances: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copies numbers of moves, such as probabilities, to the nodes that the moves lead to; the root gets 1.

    Args:
      entries: shape (actions,), of any type. A number for each action of all infosets.
      chances: shape (outcomes,). A number for each outcome of chance.

    Returns:
      shape (nodes,), of the type of `entries`.
    """
    result = np.ones(len(self.mover), entries.dtype)
    # The index of the last move among the moves at the parent.
    move = np.arange(len(self.mover)) - self.first_child[self.parent]
    last_mover = self.mover[self.parent]
    # No move leads to the root.
    last_mover[0] = TERMINAL
    for is_made, first, numbers in (
      (last_mover == CHANCE, self.index, chances),
      (last_mover >= 0, self.entry, entries),
    ):
      result[is_made] = numbers[first[self.parent[is_made]] + move[is_made]]
    return result

  def reach(self, probabilities: Float64s, player: int | None = None) -> Float64s:
    """Returns the product of the probabilities of the moves to each node, leaving out the moves of `player`."""
    result = np.ones(len(self.mover))
    for level in self.levels[1:]:
      parent = self.parent[level]
      # Rounding must not make a history likelier than its parent.
      factor = np.where(self.mover[parent] == player, 1.0, np.minimum(probabilities[level], 1.0))
      result[level] = result[parent] * factor
    return result

  def values(self, probabilities: Float64s) -> Float64s:
    """Returns each player's expected return if play starts at each node, shape (nodes, players)."""
    result = np.zeros((len(self.mover), self._compiled.num_players))
    is_terminal = self.mover == TERMINAL
    result[is_terminal] = self.returns[self.index[is_terminal]]
    for level in self.levels[:0:-1]:
      np.add.at(result, self.parent[level], probabilities[level, None] * result[level])
    return result
