"""One player's sequences in a subgame of limited depth: strategies, reach probabilities and regrets.

Arrays have a column for each pair of ranges that `Lookahead` solves at once.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # its `sparse` is imported when it is used

from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.search.forest_tree import ForestTree
from spiel_cfr.search.private_forest import NONE


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
    entries: int64 (actions,). The entries of the actions in the tree.
    num_roots: int. The number of private states at the root.
    size: int. The number of sequences.
    levels: list. The infosets by number of moves, as `SequenceLevel`.
    sequence: int64 (rows,). The last sequence before each row of the tree; `NONE` outside the subgame.
  """

  def __init__(self, tree: ForestTree, player: int, inside: Int64s, ends: Sequence[Int64s]) -> None:
    """Finds the sequences.

    Args:
      tree: the public states.
      player: the player.
      inside: int64 (public states,). The indices of the public states above the leaves, in order; the root is first.
      ends: int64 arrays. The player's rows at the ends of the game, and its rows at the leaves.
    """
    forest, roots = tree.forests[player], tree.rows(int(inside[0]), player)
    rows = np.concatenate([tree.rows(number, player) for number in inside.tolist()])
    is_inside = np.zeros(len(forest.above), bool)
    is_inside[rows] = True
    entries = np.flatnonzero(forest.row_of_entry >= 0)
    entries = entries[is_inside[forest.row_of_entry[entries]]]
    infoset_rows = forest.row_of_entry[entries]
    order = np.argsort(infoset_rows, kind="stable")
    self.entries, infoset_rows = entries[order], infoset_rows[order]
    self.num_roots, self.size = len(roots), len(roots) + len(entries)
    sequence_of_entry = np.full(forest.num_entries, NONE)
    sequence_of_entry[self.entries] = len(roots) + np.arange(len(entries))
    self.sequence = np.full(len(is_inside), NONE)
    self.sequence[roots] = np.arange(len(roots))
    reached = np.unique(np.concatenate([rows, *ends]))
    for begin, end in itertools.pairwise(forest.begins):
      level = reached[slice(*np.searchsorted(reached, [begin, end]))]
      level = level[self.sequence[level] == NONE]
      entry = forest.entry[level]
      before = self.sequence[forest.above[level]]
      self.sequence[level] = np.where(entry >= 0, sequence_of_entry[entry], before)
    cuts = len(roots) + np.searchsorted(infoset_rows, forest.begins)
    self.levels = [
      self._level(int(begin), int(end), infoset_rows[begin - len(roots) : end - len(roots)])
      for begin, end in itertools.pairwise(cuts)
      if end > begin
    ]

  def _level(self, begin: int, end: int, infoset_rows: Int64s) -> SequenceLevel:
    """Returns the infosets of a range of sequences, given the row of each sequence's infoset."""
    rows, starts, infoset = np.unique(infoset_rows, return_index=True, return_inverse=True)
    parent = self.sequence[rows]
    ones, count = np.ones(len(rows)), len(rows)
    gather = scipy.sparse.csr_matrix((ones, (parent, np.arange(count))), (self.size, count))
    return SequenceLevel(begin, end, starts, infoset, parent, gather)

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
