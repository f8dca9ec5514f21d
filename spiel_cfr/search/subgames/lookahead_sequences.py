"""One player's sequences in a subgame of limited depth: strategies, reach probabilities and regrets.

Arrays have a column for each pair of ranges that `Lookahead` solves at once.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import scipy  # its `sparse` is imported when it is used

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.search.trees.private_forest import PrivateForest, SubforestInfosets


class SequenceLevel(NamedTuple):
  """A player's infosets after one number of moves.

  Attributes:
    begin: int. The first sequence of the infosets' actions.
    end: int. One past the last sequence of the infosets' actions.
    starts: int64 (infosets,). The position of each infoset's first action, counted from `begin`.
    infoset: int64 (actions,). The position of each action's infoset in the level.
    parent: int64 (infosets,). The sequence before each infoset.
    gather: float64 (sequences, infosets), sparse. It adds each infoset's value to the sequence before the infoset.
  """

  begin: int
  end: int
  starts: Int64s
  infoset: Int64s
  parent: Int64s
  gather: Any


class LookaheadSequences:
  """A player's sequences: its private states at the root, then the actions of its infosets, parents first.

  Attributes:
    slots: int64 (actions,). The slots of the actions in the tree.
    num_roots: int. The number of private states at the root.
    size: int. The number of sequences.
    levels: list. The infosets by number of moves, as `SequenceLevel`.
  """

  def __init__(self, forest: PrivateForest, roots: Int64s, ends: Int64s) -> None:
    """Finds the sequences.

    Args:
      forest: the player's private states.
      roots: int64 (private states,). The player's rows at the root.
      ends: int64 array. The player's rows at the leaves and where the game ends before a leaf.
    """
    self._forest, self._root_of_row = forest, forest.subtree_roots(roots)
    self._position_of_root = np.full(len(forest.above), NONE)
    self._position_of_root[roots] = np.arange(len(roots))
    self._infosets = infosets = SubforestInfosets(forest, self._root_of_row, ends)
    self.slots, self.num_roots = infosets.slots, len(roots)
    self.size = len(roots) + len(infosets.slots)
    firsts = np.searchsorted(infosets.rows, forest.begins)
    self.levels = [
      self._level(first, last)
      for first, last in itertools.pairwise(firsts.tolist())
      if first < last
    ]

  def before(self, rows: Int64s) -> Int64s:
    """Returns the last sequence before each of some rows in the subgame."""
    root = self._position_of_root[self._root_of_row[rows]]
    return self._infosets.sequences(self._forest.last[rows], root, self.num_roots)

  def _level(self, first: int, last: int) -> SequenceLevel:
    """Returns the infosets between two positions."""
    infosets = self._infosets
    begin = self.num_roots + int(infosets.counts[:first].sum())
    counts = infosets.counts[first:last]
    infoset = np.repeat(np.arange(len(counts)), counts)
    parent = self.before(infosets.rows[first:last])
    ones, columns = np.ones(len(parent)), np.arange(len(parent))
    gather = scipy.sparse.csr_matrix((ones, (parent, columns)), (self.size, len(parent)))
    starts = np.cumsum(counts) - counts
    return SequenceLevel(begin, begin + len(infoset), starts, infoset, parent, gather)

  def strategy(self, weights: Float64s) -> Float64s:
    """Returns weights of actions divided by their sum at each infoset, uniform where all are 0.

    Args:
      weights: float64 (sequences, columns). The weights of private states are returned unchanged.

    Returns:
      float64 (sequences, columns).
    """
    result = weights.copy()
    for level in self.levels:
      level_weights = weights[level.begin : level.end]
      totals = np.add.reduceat(level_weights, level.starts, axis=0)[level.infoset]
      uniform = (1 / np.bincount(level.infoset))[level.infoset, None]
      result[level.begin : level.end] = np.where(
        totals > 0, level_weights / np.where(totals > 0, totals, 1.0), uniform
      )
    return result

  def reach(self, root_range: Float64s, strategy: Float64s) -> Float64s:
    """Returns the probability that the player plays to each sequence, and a last row of zeros.

    Args:
      root_range: float64 (private states, columns). The player's range at the root.
      strategy: float64 (sequences, columns). The result of `strategy`.

    Returns:
      float64 (sequences + 1, columns).
    """
    result = np.zeros((self.size + 1, root_range.shape[1]))
    result[: self.num_roots] = root_range
    for level in self.levels:
      actions = slice(level.begin, level.end)
      result[actions] = result[level.parent[level.infoset]] * strategy[actions]
    return result

  def regrets(self, utilities: Float64s, strategy: Float64s) -> Float64s:
    """Returns the regrets of an iteration, shape (sequences, columns), 0 at private states.

    Args:
      utilities: float64 (sequences, columns). The utility of each sequence without that of the player's later actions.
        The method adds the utility of later actions in place.
      strategy: float64 (sequences, columns). The strategy of the iteration.
    """
    result = np.zeros_like(utilities)
    for level in reversed(self.levels):
      action_values = utilities[level.begin : level.end]
      probabilities = strategy[level.begin : level.end]
      values = np.add.reduceat(probabilities * action_values, level.starts, axis=0)
      result[level.begin : level.end] = action_values - values[level.infoset]
      utilities += level.gather @ values
    return result
