"""Terminal histories of a walk, merged into leaves: histories with the same last sequences of all players are one leaf.

Terminal histories that differ only in moves of chance that no player sees have the same sequences.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Uint32s, taken
from spiel_cfr._numba.sort_columns import lexicographic_order

# Bits of a player's sequence in the integer that has the last sequences of all players. The walk computes the integer
# of a child state by one addition, without a tuple.
BITS = 32
# Terminal histories are merged after at least this many new ones. This limits the memory of games in which moves of
# chance that no player sees multiply histories.
_MERGE_EVERY = 1 << 20
# They are merged after new ones are at least this share of the leaves, so that a history is sorted few times.
_LEAST_SHARE = 1 / 8
# Returns have a constant sum if their sums differ by at most this share of the largest return.
_SUM_TOLERANCE = 1e-9


class TerminalHistories:
  """Terminal histories, which are collected in lists and merged into leaves.

  Attributes:
    num_terminals: int. The number of terminal histories that are collected.
    payoff_range: two floats. The smallest and the largest return of any player.
    constant_sum: float. The sum of the players' returns; None if it varies.
    new_sequences: list of int. The last sequences of all players, `BITS` bits each, of each new history.
    new_returns: list of sequences of floats. The returns of each new history.
    new_reaches: list of float. Chance's reach probability of each new history.
  """

  def __init__(self, num_players: int, check: Callable[[Float64s], None] | None = None) -> None:
    """Begins without histories; `check` is called with arrays of returns, shape (histories, players)."""
    self.num_players, self._check = num_players, check
    self.num_terminals = 0
    self.payoff_range: tuple[float, float] = (math.inf, -math.inf)
    self.constant_sum: float | None = None
    # The walk appends to these three lists directly: a method call for each history would take a tenth of its time.
    self.new_sequences: list[int] = []
    self.new_returns: list[Sequence[float]] = []
    self.new_reaches: list[float] = []
    # One row for each leaf, and room for more leaves.
    self._sequences = np.zeros((0, num_players), np.uint32)
    self._payoffs = np.zeros((0, num_players))
    self._num_leaves = self._unmerged = 0
    self._next_merge = _MERGE_EVERY

  def collect(self) -> None:
    """Moves new histories from the lists to arrays; the walk calls it every few thousand histories."""
    count = len(self.new_reaches)
    if not count:
      return
    shape, width = (count, self.num_players), self.num_players * BITS // 8
    packed = b"".join([number.to_bytes(width, "little") for number in self.new_sequences])
    sequences = np.frombuffer(packed, "<u4").reshape(shape)
    flat = itertools.chain.from_iterable(self.new_returns)
    returns = np.fromiter(flat, np.float64, count * self.num_players).reshape(shape)
    self._note_returns(returns)
    if self._num_leaves + count > len(self._payoffs):
      self._resize((self._num_leaves + count) * 17 // 16)
    new = slice(self._num_leaves, self._num_leaves + count)
    self._sequences[new] = sequences
    self._payoffs[new] = returns * np.array(self.new_reaches)[:, None]
    self._num_leaves += count
    self.num_terminals += count
    self._unmerged += count
    for column in (self.new_sequences, self.new_returns, self.new_reaches):
      column.clear()
    if self._unmerged >= self._next_merge:
      self._merge()

  def merged(self) -> tuple[Uint32s, Float64s]:
    """Returns the sequences (players, leaves) and the payoffs (leaves, players) of all histories."""
    self.collect()
    self._merge()
    self._resize(self._num_leaves)
    return self._sequences.T, self._payoffs

  def _resize(self, length: int) -> None:
    # In place, so that the old and the new array never exist at the same time.
    for table in (self._sequences, self._payoffs):
      table.resize((length, self.num_players), refcheck=False)

  def _merge(self) -> None:
    """Sorts the leaves in place, and adds up payoffs with the same sequences."""
    sequences, payoffs = self._sequences[: self._num_leaves], self._payoffs[: self._num_leaves]
    order = lexicographic_order(sequences.T)
    first = np.zeros(self._num_leaves, bool)
    first[0] = True
    for column in sequences.T:
      column[:] = taken(column, order)
      first[1:] |= column[1:] != column[:-1]
    for values in payoffs.T:
      values[:] = taken(values, order)
    del order
    starts = np.flatnonzero(first)
    # If merging keeps nearly all leaves, it is done rarely: otherwise n leaves would be sorted n / 2^20 times.
    share_kept = 1 - (self._num_leaves - len(starts)) / max(self._unmerged, 1)
    self._next_merge = max(_MERGE_EVERY, int(max(share_kept, _LEAST_SHARE) * len(starts)))
    self._num_leaves, self._unmerged = len(starts), 0
    for column in sequences.T:
      column[: len(starts)] = column[starts]
    for values in payoffs.T:
      values[: len(starts)] = np.add.reduceat(values, starts)

  def _note_returns(self, returns: Float64s) -> None:
    """Checks the returns of new histories, shape (histories, players), and updates their range and sum."""
    if self._check is not None:
      self._check(returns)
    low, high = self.payoff_range
    self.payoff_range = (min(low, float(returns.min())), max(high, float(returns.max())))
    sums: Any = sum(returns.T)
    if not self.num_terminals:
      self.constant_sum = float(sums[0])
    tolerance = _SUM_TOLERANCE * max(map(abs, self.payoff_range))
    if self.constant_sum is not None and np.abs(sums - self.constant_sum).max() > tolerance:
      self.constant_sum = None
