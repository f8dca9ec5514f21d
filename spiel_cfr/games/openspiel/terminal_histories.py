"""Terminal histories of a walk; those with the same last sequences of all players become one leaf."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Float64s, Uint32s, taken
from spiel_cfr._numba.sort_columns import lexicographic_order

# The walk keeps the last sequences of all players as one integer, with this many bits for each. The sequences of a
# child come from one addition, without a tuple.
BITS = 32
# Terminal histories are merged after at least this many new ones. This limits the memory of games in which moves of
# chance that no player sees multiply histories.
_MERGE_EVERY = 1 << 20
# They are merged after at least this share of the leaves so far, so that a history is sorted a bounded number of times.
_LEAST_SHARE = 1 / 8
# Sums of returns that differ by at most this share of the largest return count as constant.
_SUM_TOLERANCE = 1e-9


class TerminalHistories:
  """Collects terminal histories, and merges those with the same sequences of all players."""

  def __init__(self, num_players: int, check: Callable[[Float64s], None] | None = None) -> None:
    """Begins with none; `check` is called with arrays of returns, shape (histories, players)."""
    self.num_players, self._check = num_players, check
    self.num_terminals = 0
    self.payoff_range = (math.inf, -math.inf)
    self.constant_sum: float | None = None
    # The walk appends to these three lists directly. A method call for each history would take a tenth of the walk's
    # time.
    self.new_sequences: list[int] = []
    self.new_returns: list[Sequence[float]] = []
    self.new_reaches: list[float] = []
    # One row for each leaf, and room for more.
    self._sequences = np.zeros((0, num_players), np.uint32)
    self._payoffs = np.zeros((0, num_players))
    self._num_leaves = self._unmerged = 0
    self._next_merge = _MERGE_EVERY

  def collect(self) -> None:
    """Moves new histories into arrays; must be called every few thousand histories."""
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
    kept = 1 - (self._num_leaves - len(starts)) / max(self._unmerged, 1)
    self._next_merge = max(_MERGE_EVERY, int(max(kept, _LEAST_SHARE) * len(starts)))
    self._num_leaves, self._unmerged = len(starts), 0
    for column in sequences.T:
      column[: len(starts)] = column[starts]
    for values in payoffs.T:
      values[: len(starts)] = np.add.reduceat(values, starts)

  def _note_returns(self, returns: Float64s) -> None:
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
