"""A game's histories under a policy, level by level: analysis of small games in NumPy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.histories import MOVER, compile_histories
from spiel_cfr.games.openspiel.history_list import CHANCE, NONE, TERMINAL


class HistoryWalk:
  """A game's tree of histories, level by level.

  Attributes:
    levels: for each depth, int64 (nodes there,). The nodes.
    parent: int64 (nodes,). The node above each node; 0 at the root.
    mover: int64 (nodes,). The player who moves, `CHANCE` or `TERMINAL` of `history_list`.
    index: int64 (nodes,). The column `INDEX` of `Histories.nodes`.
    first_child: int64 (nodes,). The first child; the others follow.
    num_children: int64 (nodes,). The number of children.
    entry: int64 (nodes,). The infoset's first action among the actions of all infosets; `NONE` where no player moves.
    chances: float64 (outcomes,). The probabilities of chance's outcomes, as in `Histories`.
    returns: float64 (different outcomes, players). The returns, as in `Histories`.
  """

  def __init__(self, compiled: CompiledGame, max_nodes: int) -> None:
    """Lists the histories of a game, at most `max_nodes`; raises the errors of `compile_histories`."""
    found, _ = compile_histories(
      compiled.view, compiled.infostates, compiled.actions, compiled.num_actions, max_nodes
    )
    self._compiled, self.returns, self.chances = compiled, found.returns, found.probabilities
    # As signed 32-bit integers, chance and terminals are -1 and -2.
    self.mover = mover = found.nodes[:, MOVER].astype(np.int32).astype(np.int64)
    _, self.index, self.first_child, self.num_children = found.nodes.astype(np.int64).T
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
    """Returns, for each node, the number of the move that leads to it; 1 at the root.

    Args:
      entries: shape (actions,), of any type. The number of each action of all infosets.
      chances: shape (outcomes,). The number of each outcome of chance.
    """
    result = np.ones(len(self.mover), entries.dtype)
    place = np.arange(len(self.mover)) - self.first_child[self.parent]
    mover = self.mover[self.parent]
    # No move leads to the root.
    mover[0] = TERMINAL
    for moved, start, source in (
      (mover == CHANCE, self.index, chances),
      (mover >= 0, self.entry, entries),
    ):
      result[moved] = source[start[self.parent[moved]] + place[moved]]
    return result

  def reach(self, probabilities: Float64s, player: int | None = None) -> Float64s:
    """Returns the product of the probabilities on the way to each node, except those of a player's own moves."""
    result = np.ones(len(self.mover))
    for level in self.levels[1:]:
      parent = self.parent[level]
      # Rounding must not make a history likelier than its parent.
      made = np.where(self.mover[parent] == player, 1.0, np.minimum(probabilities[level], 1.0))
      result[level] = result[parent] * made
    return result

  def values(self, probabilities: Float64s) -> Float64s:
    """Returns each player's expected return from each node on, shape (nodes, players)."""
    result = np.zeros((len(self.mover), self._compiled.num_players))
    ends = self.mover == TERMINAL
    result[ends] = self.returns[self.index[ends]]
    for level in self.levels[:0:-1]:
      np.add.at(result, self.parent[level], probabilities[level, None] * result[level])
    return result
