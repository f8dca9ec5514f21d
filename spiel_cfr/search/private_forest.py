"""One player's private states at all public states, as a forest: reach probabilities go down it, and values go up.

A *row* is the index of a private state at a public state, or of what the player remembers where the game ends. Rows are
ordered by the number of moves before them. With perfect recall, all histories of a row have the same row before the
last move, and the same action of the player in that move. Search therefore needs a player's strategy only by rows,
whatever the form of the game.
"""

import functools
from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Bools, Float64s, Int64s

NONE = -1


class Level(NamedTuple):
  """The rows after one number of moves.

  Attributes:
    before: the first row of the level above.
    begin: the first row.
    end: one past the last row.
    passing: int64 (rows,). The rows before which the player did not make the last move.
    moved: int64 (rows,). The rows before which the player made the last move.
    place: int64 (rows,). The position in `entries` of the entry of each of the rows in `moved`.
    entries: int64 (entries,). The entries of these moves; those of an infoset are consecutive.
    starts: int64 (infosets,). The position of each infoset's first entry.
    counts: int64 (infosets,). The number of entries of each infoset.
    deciding: int64 (infosets,). The row of each infoset.
  """

  before: int
  begin: int
  end: int
  passing: Int64s
  moved: Int64s
  place: Int64s
  entries: Int64s
  starts: Int64s
  counts: Int64s
  deciding: Int64s


class OwnInfosets(NamedTuple):
  """The infosets of one player, in the order of their rows.

  Attributes:
    rows: int64 (infosets,). The row of each infoset.
    begins: int64 (infosets,). The position of each infoset's first entry in `entries`.
    counts: int64 (infosets,). The number of entries of each infoset.
    entries: int64 (entries of the player,). The entries of the infosets.
    place: int64 (entries of both players,). The position of each entry in `entries`; `NONE` at the other player's.
  """

  rows: Int64s
  begins: Int64s
  counts: Int64s
  entries: Int64s
  place: Int64s


class Values(NamedTuple):
  """Counterfactual values of one player.

  Attributes:
    rows: float64 (rows,). The value of each row.
    entries: float64 (entries,). The value of each of the player's actions; 0 at the other player's actions.
  """

  rows: Float64s
  entries: Float64s


class PrivateForest:
  """The private states of one player.

  Attributes:
    above: int64 (rows,). The row before the last move; `NONE` at the first rows.
    entry: int64 (rows,). The player's entry of the last move; `NONE` if the player did not make that move.
    begins: int64 (levels + 1,). The first row after each number of moves, then the number of rows.
    num_entries: the number of entries of both players.
    levels: the rows by number of moves, without the first rows.
  """

  def __init__(self, above: Int64s, entry: Int64s, begins: Int64s, num_entries: int) -> None:
    """Makes the forest from the attributes with these names."""
    self.above, self.entry, self.begins, self.num_entries = above, entry, begins, num_entries
    cuts = begins.tolist()
    self.levels = [self._level(*three) for three in zip(cuts, cuts[1:], cuts[2:], strict=False)]

  def _level(self, before: int, begin: int, end: int) -> Level:
    entry = self.entry[begin:end]
    moved = np.flatnonzero(entry >= 0)
    entries, first, place = np.unique(entry[moved], return_index=True, return_inverse=True)
    rows = self.above[begin + moved[first]]
    order = np.argsort(rows, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    deciding, starts, counts = np.unique(rows[order], return_index=True, return_counts=True)
    passing = begin + np.flatnonzero(entry < 0)
    return Level(
      before,
      begin,
      end,
      passing,
      begin + moved,
      rank[place],
      entries[order],
      starts,
      counts,
      deciding,
    )

  @functools.cached_property
  def infosets(self) -> OwnInfosets:
    """The player's infosets."""
    none = np.zeros(0, np.int64)
    rows, counts, entries = (
      np.concatenate([none, *(getattr(level, name) for level in self.levels)])
      for name in ("deciding", "counts", "entries")
    )
    place = np.full(self.num_entries, NONE)
    place[entries] = np.arange(len(entries))
    return OwnInfosets(rows, np.cumsum(counts) - counts, counts, entries, place)

  @functools.cached_property
  def last(self) -> Int64s:
    """The player's last entry on the way to each row, shape (rows,); `NONE` before its first action."""
    result = self.entry.copy()
    for level in self.levels:
      result[level.passing] = result[self.above[level.passing]]
    return result

  def down(self, numbers: Float64s) -> Float64s:
    """Returns an array over rows in which each number has replaced all values below it.

    Args:
      numbers: float64 (rows,). NaN at rows without a number.
    """
    result = numbers.copy()
    for level in self.levels:
      rows = slice(level.begin, level.end)
      above = result[self.above[rows]]
      result[rows] = np.where(np.isnan(above), result[rows], above)
    return result

  def tops(self, rows: Int64s) -> Int64s:
    """Returns, of some rows, the one that each row is or is below; `NONE` if there is none; shape (rows,)."""
    result = np.full(len(self.above), NONE)
    result[rows] = rows
    first = int(np.searchsorted(self.begins, rows.min(), side="right")) - 1
    for level in self.levels[first:]:
      level_rows = result[level.begin : level.end]
      np.copyto(level_rows, result[self.above[level.begin : level.end]], where=level_rows == NONE)
    return result

  def sums(self, numbers: Float64s) -> Float64s:
    """Returns sums over the player's entries on the way to each row, shape (rows,).

    Args:
      numbers: float64 (entries,). The number of each entry.
    """
    result = np.append(numbers, 0.0)[self.entry]
    for level in self.levels:
      rows = slice(level.begin, level.end)
      result[rows] += result[self.above[rows]]
    return result

  def reach(self, entries: Float64s, given: Float64s) -> Float64s:
    """Returns the probability that the player plays to each row, shape (rows,).

    Args:
      entries: float64 (entries,). The policy.
      given: float64 (rows,). The probabilities of the first rows, and of other rows whose probabilities are prescribed;
        NaN elsewhere.
    """
    # The index `NONE` selects the last element.
    made, result = np.append(entries, 1.0)[self.entry], given.copy()
    for level in self.levels:
      rows = slice(level.begin, level.end)
      reached = result[self.above[rows]] * made[rows]
      result[rows] = np.where(np.isnan(given[rows]), reached, given[rows])
    return result

  def values(
    self,
    ends: Float64s,
    entries: Float64s | None = None,
    *,
    barred: Bools | None = None,
  ) -> Values:
    """Returns the player's counterfactual values.

    Args:
      ends: float64 (rows,). The counterfactual values where the game ends; 0 elsewhere.
      entries: float64 (entries,). The player's policy; None for a best response.
      barred: bool (entries,). Actions that a best response leaves out; None for no actions.
    """
    result, utilities = ends.copy(), np.zeros(self.num_entries)
    for level in reversed(self.levels):
      first = level.before
      sums = np.bincount(
        self.above[level.passing] - first, result[level.passing], level.begin - first
      ).astype(np.float64)
      if len(level.entries):
        values = np.bincount(level.place, result[level.moved], len(level.entries)).astype(
          np.float64
        )
        utilities[level.entries] = values
        if entries is not None:
          own = np.add.reduceat(entries[level.entries] * values, level.starts)
        elif barred is not None:
          own = np.maximum.reduceat(np.where(barred[level.entries], -np.inf, values), level.starts)
        else:
          own = np.maximum.reduceat(values, level.starts)
        sums[level.deciding - first] += own
      result[first : level.begin] += sums
    return Values(result, utilities)

  def per_infoset(self, numbers: Float64s, reduce: np.ufunc) -> Float64s:
    """Returns the reduction of an array over each infoset of the player, repeated for each entry; 0 at other entries.

    Args:
      numbers: float64 (entries,). The array.
      reduce: the reduction, such as `numpy.add`.
    """
    result = np.zeros(self.num_entries)
    for level in self.levels:
      if len(level.entries):
        reduced = reduce.reduceat(numbers[level.entries], level.starts)
        result[level.entries] = np.repeat(reduced, level.counts)
    return result

  @functools.cached_property
  def deciding(self) -> Int64s:
    """The row of each entry's infoset, shape (entries,); `NONE` at the other player's entries."""
    result = np.full(self.num_entries, NONE)
    moved = self.entry >= 0
    result[self.entry[moved]] = self.above[moved]
    return result
