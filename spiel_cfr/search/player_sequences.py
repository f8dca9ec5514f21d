"""One player's sequences in a subgame of limited depth, with a column of numbers for each pair of ranges."""

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
    begin: the first sequence of their actions.
    end: one past the last sequence of their actions.
    starts: int64 (infosets,). The position of each infoset's first action among these sequences.
    owner: int64 (actions,). The position of each action's infoset in the level.
    parent: int64 (infosets,). The sequence before each infoset.
    gather: float64 (sequences, infosets), sparse. It adds each infoset's value to the sequence before the infoset.
  """

  begin: int
  end: int
  starts: Int64s
  owner: Int64s
  parent: Int64s
  gather: Any


class PlayerSequences:
  """A player's sequences: its private states at the public state, then the actions of its infosets, parents first.

  Attributes:
    entries: int64 (actions,). The entries of the actions in the tree.
    num_roots: the number of private states at the public state.
    size: the number of sequences.
    levels: the infosets.
    sequence: int64 (rows,). The last sequence before each row of the tree; `NONE` outside the subgame.
  """

  def __init__(self, tree: ForestTree, player: int, inside: Int64s, ends: Sequence[Int64s]) -> None:
    """Orders the sequences.

    Args:
      tree: the public states.
      player: the player.
      inside: int64 (public states,). The indices of the public states above the leaves, in order; the root is first.
      ends: int64 arrays. The player's rows where the game ends, and at leaves.
    """
    forest, roots = tree.forests[player], tree.rows(int(inside[0]), player)
    rows = np.concatenate([tree.rows(number, player) for number in inside.tolist()])
    is_inside = np.zeros(len(forest.above), bool)
    is_inside[rows] = True
    entries = np.flatnonzero(forest.deciding >= 0)
    entries = entries[is_inside[forest.deciding[entries]]]
    deciding = forest.deciding[entries]
    order = np.argsort(deciding, kind="stable")
    self.entries, deciding = entries[order], deciding[order]
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
    cuts = len(roots) + np.searchsorted(deciding, forest.begins)
    self.levels = [
      self._level(int(begin), int(end), deciding[begin - len(roots) : end - len(roots)])
      for begin, end in itertools.pairwise(cuts)
      if end > begin
    ]

  def _level(self, begin: int, end: int, deciding: Int64s) -> SequenceLevel:
    infosets, starts, owner = np.unique(deciding, return_index=True, return_inverse=True)
    parent = self.sequence[infosets]
    ones, count = np.ones(len(infosets)), len(infosets)
    gather = scipy.sparse.csr_matrix((ones, (parent, np.arange(count))), (self.size, count))
    return SequenceLevel(begin, end, starts, owner, parent, gather)

  def strategy(self, numbers: Float64s) -> Float64s:
    """Returns numbers of actions as probabilities, uniform where an infoset has only zeros; shape (sequences, columns).

    Args:
      numbers: float64 (sequences, columns). Rows of private states are returned unchanged.
    """
    result = numbers.copy()
    for level in self.levels:
      own = numbers[level.begin : level.end]
      totals = np.add.reduceat(own, level.starts, axis=0)[level.owner]
      even = (1 / np.bincount(level.owner))[level.owner, None]
      result[level.begin : level.end] = np.where(
        totals > 0, own / np.where(totals > 0, totals, 1.0), even
      )
    return result

  def reach(self, first: Float64s, strategy: Float64s) -> Float64s:
    """Returns the probability that the player plays to each sequence, and a last row of zeros.

    Args:
      first: float64 (private states, columns). The player's range.
      strategy: float64 (sequences, columns). The result of `strategy`.
    """
    result = np.zeros((self.size + 1, first.shape[1]))
    result[: self.num_roots] = first
    for level in self.levels:
      own = slice(level.begin, level.end)
      result[own] = result[level.parent[level.owner]] * strategy[own]
    return result

  def regrets(self, utilities: Float64s, strategy: Float64s) -> Float64s:
    """Returns the regrets of an iteration, shape (sequences, columns), 0 at private states.

    Args:
      utilities: float64 (sequences, columns). The utility of each sequence without the player's later actions. The
        method adds the later actions in place.
      strategy: float64 (sequences, columns). The strategy of the iteration.
    """
    result = np.zeros_like(utilities)
    for level in reversed(self.levels):
      own = utilities[level.begin : level.end]
      values = np.add.reduceat(strategy[level.begin : level.end] * own, level.starts, axis=0)
      result[level.begin : level.end] = own - values[level.owner]
      utilities += level.gather @ values
    return result
