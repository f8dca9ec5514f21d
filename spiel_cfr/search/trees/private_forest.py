"""One player's private states at all public states, as a forest of arrays.

Reach probabilities are computed down the forest, and counterfactual values up. A *row* is the index of a private state
at a public state. At the end of the game, a row is the index of a set of terminal histories that the player cannot tell
apart. Rows are ordered by the number of moves before them. With perfect recall, all histories of a row have the same
row before the last move, and the same action of the player in that move: each row has one parent. Listed histories and
vector form therefore share all computations over rows. A *slot* is the index of an action of an infoset.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s, concatenated_ranges
from spiel_cfr.games.openspiel.history_list import NONE


class Level(NamedTuple):
  """The rows after one number of moves, and the player's infosets one move before.

  Attributes:
    begin_above: int. The first row of the level above.
    begin: int. The first row of the level.
    end: int. One past the last row of the level.
    passing: int64 (rows,). The rows whose last move was made by chance or by the other player.
    moved: int64 (rows,). The rows whose last move was made by the player.
    positions: int64 (rows,). For each row of `moved`, the position of its last move in `slots`.
    slots: int64 (slots,). The slots of the player's last moves, infoset by infoset.
    starts: int64 (infosets,). The position in `slots` of each infoset's first slot.
    counts: int64 (infosets,). The number of slots of each infoset.
    infoset_rows: int64 (infosets,). The row of each infoset, in the level above.
  """

  begin_above: int
  begin: int
  end: int
  passing: Int64s
  moved: Int64s
  positions: Int64s
  slots: Int64s
  starts: Int64s
  counts: Int64s
  infoset_rows: Int64s


class ForestInfosets(NamedTuple):
  """The infosets of one player, in the order of their rows.

  Attributes:
    rows: int64 (infosets,). The row of each infoset.
    starts: int64 (infosets,). The position of each infoset's first slot in `slots`.
    counts: int64 (infosets,). The number of slots of each infoset.
    slots: int64 (slots of the player,). The slots of the player's actions, infoset by infoset.
    positions: int64 (slots of both players,). The position of each slot in `slots`; `NONE` at the other player's.
  """

  rows: Int64s
  starts: Int64s
  counts: Int64s
  slots: Int64s
  positions: Int64s


class Values(NamedTuple):
  """Counterfactual values of one player.

  Attributes:
    rows: float64 (rows,). The value of each row.
    action_values: float64 (slots,). The value of each of the player's actions; 0 at the other player's actions.
  """

  rows: Float64s
  action_values: Float64s


class PrivateForest:
  """The private states of one player.

  Attributes:
    above: int64 (rows,). The row before the last move; `NONE` at the first rows.
    slot: int64 (rows,). The slot of the last move, if the player made it; else `NONE`.
    begins: int64 (levels + 1,). The first row after each number of moves, then the number of rows.
    num_slots: int. The number of slots of both players.
    levels: list. The rows by number of moves, as `Level`, without the first rows.
  """

  def __init__(self, above: Int64s, slot: Int64s, begins: Int64s, num_slots: int) -> None:
    """Takes the attributes with these names."""
    self.above, self.slot, self.begins, self.num_slots = above, slot, begins, num_slots
    cuts = begins.tolist()
    self.levels = [self._level(*bounds) for bounds in zip(cuts, cuts[1:], cuts[2:], strict=False)]

  def _level(self, begin_above: int, begin: int, end: int) -> Level:
    slot = self.slot[begin:end]
    moved = np.flatnonzero(slot >= 0)
    slots, first, position = np.unique(slot[moved], return_index=True, return_inverse=True)
    rows = self.above[begin + moved[first]]
    order = np.argsort(rows, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    infoset_rows, starts, counts = np.unique(rows[order], return_index=True, return_counts=True)
    passing = begin + np.flatnonzero(slot < 0)
    return Level(
      begin_above,
      begin,
      end,
      passing,
      begin + moved,
      rank[position],
      slots[order],
      starts,
      counts,
      infoset_rows,
    )

  @functools.cached_property
  def infosets(self) -> ForestInfosets:
    """The player's infosets."""
    none = np.zeros(0, np.int64)
    rows, counts, slots = (
      np.concatenate([none, *(getattr(level, name) for level in self.levels)])
      for name in ("infoset_rows", "counts", "slots")
    )
    positions = np.full(self.num_slots, NONE)
    positions[slots] = np.arange(len(slots))
    return ForestInfosets(rows, np.cumsum(counts) - counts, counts, slots, positions)

  @functools.cached_property
  def last(self) -> Int64s:
    """The player's last slot on the way to each row, shape (rows,); `NONE` before its first action."""
    result = self.slot.copy()
    for level in self.levels:
      result[level.passing] = result[self.above[level.passing]]
    return result

  def inherited(self, numbers: Float64s) -> Float64s:
    """Returns an array over rows in which the first number on the way to a row holds for the row.

    Args:
      numbers: float64 (rows,). NaN at rows without a number.

    Returns:
      Shape (rows,). NaN at rows without a number on the way.
    """
    result = numbers.copy()
    for level in self.levels:
      rows = slice(level.begin, level.end)
      above = result[self.above[rows]]
      result[rows] = np.where(np.isnan(above), result[rows], above)
    return result

  def subtree_roots(self, rows: Int64s) -> Int64s:
    """Returns the root of the subtree that contains each row; `NONE` outside the subtrees; shape (rows,).

    Args:
      rows: int64 array. The roots of the subtrees, none below another.
    """
    result = np.full(len(self.above), NONE)
    result[rows] = rows
    first = int(np.searchsorted(self.begins, rows.min(), side="right")) - 1
    for level in self.levels[first:]:
      level_rows = result[level.begin : level.end]
      np.copyto(level_rows, result[self.above[level.begin : level.end]], where=level_rows == NONE)
    return result

  def path_sums(self, numbers: Float64s) -> Float64s:
    """Returns the sum of numbers along the player's actions on the way to each row, shape (rows,).

    Args:
      numbers: float64 (slots,). The number of each action.
    """
    result = np.append(numbers, 0.0)[self.slot]
    for level in self.levels:
      rows = slice(level.begin, level.end)
      result[rows] += result[self.above[rows]]
    return result

  def reach(self, policy: Float64s, given: Float64s) -> Float64s:
    """Returns the probability that the player plays to each row, shape (rows,).

    Args:
      policy: float64 (slots,). The policy.
      given: float64 (rows,). Prescribed probabilities: those of the first rows, and of other rows that do not follow
        the policy. NaN elsewhere.
    """
    # The index `NONE` selects the last element.
    probabilities, result = np.append(policy, 1.0)[self.slot], given.copy()
    for level in self.levels:
      rows = slice(level.begin, level.end)
      reached = result[self.above[rows]] * probabilities[rows]
      result[rows] = np.where(np.isnan(given[rows]), reached, given[rows])
    return result

  def values(
    self,
    ends: Float64s,
    policy: Float64s | None = None,
    *,
    excluded: Bools | None = None,
  ) -> Values:
    """Returns the player's counterfactual values, of a policy or of a best response.

    Args:
      ends: float64 (rows,). The counterfactual values where the game ends; 0 elsewhere.
      policy: float64 (slots,). The player's policy; None for a best response.
      excluded: bool (slots,). Actions that a best response does not consider; None to consider all.
    """
    result, utilities = ends.copy(), np.zeros(self.num_slots)
    for level in reversed(self.levels):
      first = level.begin_above
      sums = np.bincount(
        self.above[level.passing] - first, result[level.passing], level.begin - first
      ).astype(np.float64)
      if len(level.slots):
        values = np.bincount(level.positions, result[level.moved], len(level.slots)).astype(
          np.float64
        )
        utilities[level.slots] = values
        if policy is not None:
          infoset_values = np.add.reduceat(policy[level.slots] * values, level.starts)
        elif excluded is not None:
          considered = np.where(excluded[level.slots], -np.inf, values)
          infoset_values = np.maximum.reduceat(considered, level.starts)
        else:
          infoset_values = np.maximum.reduceat(values, level.starts)
        sums[level.infoset_rows - first] += infoset_values
      result[first : level.begin] += sums
    return Values(result, utilities)

  def per_infoset(self, numbers: Float64s, reduce: np.ufunc) -> Float64s:
    """Reduces an array over the actions of each infoset, and returns the result at each of these actions.

    Args:
      numbers: float64 (slots,). The array.
      reduce: the reduction, such as `numpy.add`.

    Returns:
      float64 (slots,). 0 at the other player's slots.
    """
    result = np.zeros(self.num_slots)
    for level in self.levels:
      if len(level.slots):
        reduced = reduce.reduceat(numbers[level.slots], level.starts)
        result[level.slots] = np.repeat(reduced, level.counts)
    return result

  @functools.cached_property
  def row_of_slot(self) -> Int64s:
    """The row of each slot's infoset, shape (slots,); `NONE` at the other player's slots."""
    result = np.full(self.num_slots, NONE)
    moved = self.slot >= 0
    result[self.slot[moved]] = self.above[moved]
    return result


class SubforestInfosets:
  """One player's infosets in one or more subgames, in the order of their rows.

  Attributes:
    rows: int64 (infosets,). The row of each infoset.
    counts: int64 (infosets,). The number of actions of each infoset.
    slots: int64 (actions,). The slot of each action in the whole game.
    slot_above: int64 (infosets,). The player's last slot before each infoset; `NONE` before its first action.
  """

  def __init__(self, forest: PrivateForest, roots: Int64s, ends: Int64s) -> None:
    """Finds the infosets above the ends of the subgames, up to their beginnings.

    Args:
      forest: the player's private states.
      roots: int64 (rows,). The row at the beginning of each row's subgame, see `PrivateForest.subtree_roots`.
      ends: int64 (ends,). The player's rows where the subgames end.
    """
    inside = np.zeros(len(roots), bool)
    rows = np.unique(forest.above[ends])
    while len(rows):
      inside[rows] = True
      rows = np.unique(forest.above[rows[roots[rows] != rows]])
    infosets = forest.infosets
    chosen = np.flatnonzero(inside[infosets.rows])
    self.rows, self.counts = infosets.rows[chosen], infosets.counts[chosen]
    positions = concatenated_ranges(infosets.starts[chosen], self.counts)
    self.slots = infosets.slots[positions]
    self.slot_above = forest.last[self.rows]
    # Positions in `ForestInfosets.slots`: ascending, one for each element of `self.slots`; and of each slot.
    self._positions, self._position_of_slot = positions, infosets.positions

  def sequences(self, slot: Int64s, otherwise: Any, start: int = 1) -> Int64s:
    """Returns the sequence of each slot if the infosets' actions are numbered one after the other.

    Args:
      slot: int64 array. Slots of the whole game.
      otherwise: the sequence to return for slots outside the subgames.
      start: the sequence of the first infoset's first action.
    """
    result = np.broadcast_to(np.asarray(otherwise, np.int64), slot.shape).copy()
    if len(self._positions):
      position = np.where(slot >= 0, self._position_of_slot[slot], NONE)
      number = np.minimum(np.searchsorted(self._positions, position), len(self._positions) - 1)
      inside = self._positions[number] == position
      result[inside] = start + number[inside]
    return result
