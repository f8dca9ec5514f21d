"""Rectangles: the payoff matrix of a game in private moves form, stored as blocks of equal payoffs.

A *row* is a set of sequences of one player. A *rectangle* pairs a row of player 0 with a row of player 1, and has one
payoff: that of each pair of a sequence in the one row and a sequence in the other. Let C_q[row, sequence] be 1 if a row
of player q has the sequence, and K[row, row'] the sum of the payoffs of the rectangles that pair the two rows. Then the
payoff matrix is U = C_0' K C_1. A gradient is three sparse products: sums over the opponent's rows, a product with K,
and sums over the rows that have a sequence of the player.

Rows list *classes*, sets of sequences that are in the same rows (`merged_rows`). Class 0 has the sequences that are in
no row.
"""

import abc
import copy
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import (
  AnyFloats,
  Float64s,
  Int32s,
  Int64s,
  Uint32s,
  concatenated_ranges,
  unpickled,
)
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Count, Doubles, Indices
from spiel_cfr._numba.steps import Step, step
from spiel_cfr.games.payoffs.payoff import Payoff, summed_scales
from spiel_cfr.games.payoffs.utility_bounds import Leaves, combined
from spiel_cfr.games.sequence_form.treeplex import Placement, Treeplex

# Largest number of leaves that `leaves` lists, of 40 bytes each.
_MOST_LEAVES = 20_000_000


class PlacedRows(NamedTuple):
  """One player's rows, with sequences in the numbering of the layout.

  Attributes:
    class_of_sequence: uint32 (sequences,). The class of each of the player's sequences; 0 for padding.
    first_entry_of_row: uint32 (rows + 1,). The first entry of each row, then the number of entries.
    class_of_entry: uint32 (entries,). The classes of each row, row by row.
    row_of_rectangle: uint32 (rectangles,). The row of each rectangle.
  """

  class_of_sequence: Indices
  first_entry_of_row: Indices
  class_of_entry: Indices
  row_of_rectangle: Indices

  def __reduce__(self) -> tuple[Any, ...]:
    return unpickled, (PlacedRows, *self)


class DiscoveredRows(NamedTuple):
  """One player's rows before its infosets are laid out.

  Attributes:
    class_of_sequence: int32 (sequences,). The class of each sequence, in order of discovery.
    row_end: int64 (rows,). One past the last entry of each row.
    class_of_entry: int32 (entries,). The classes of each row, row by row.
    row_of_rectangle: int32 (rectangles,). The row of each rectangle.
  """

  class_of_sequence: Int32s
  row_end: Int64s
  class_of_entry: Int32s
  row_of_rectangle: Int32s

  def placed(self, placement: Placement) -> PlacedRows:
    """Returns the rows in the numbering of the layout."""
    tree = placement.treeplex
    class_of_sequence = np.zeros(tree.end - tree.root, np.uint32)
    class_of_sequence[placement.sequences - tree.root] = self.class_of_sequence
    return PlacedRows(
      class_of_sequence=class_of_sequence,
      first_entry_of_row=np.append(0, self.row_end).astype(np.uint32),
      class_of_entry=self.class_of_entry.astype(np.uint32),
      row_of_rectangle=self.row_of_rectangle.astype(np.uint32),
    )


class RectangleGradient(NamedTuple):
  """The arguments of `rectangle_gradient`.

  Attributes:
    rows: PlacedRows. The rows of the player.
    root: int. The player's first sequence.
    opponent_rows: PlacedRows. The rows of the opponent.
    opponent_root: int. The opponent's first sequence.
    payoffs: float64 (rectangles,). The player's payoff of each pair of sequences.
    sequence_form: float64 (sequences,). The strategy of the opponent.
    utility: float64 (sequences,). The gradient at the player's sequences, written here.
    by_class: float64 (classes,). Workspace for the classes of either player, as long as the longer list of classes.
    by_row: float64 (rows,). Workspace for the player's rows.
    by_opponent_row: float64 (rows,). Workspace for the opponent's rows.
  """

  rows: PlacedRows
  root: Count
  opponent_rows: PlacedRows
  opponent_root: Count
  payoffs: Doubles
  sequence_form: Doubles
  utility: Doubles
  by_class: Doubles
  by_row: Doubles
  by_opponent_row: Doubles


@inlined
def sum_of_row(first_entry: Indices, class_of_entry: Indices, row: int, by_class: Doubles) -> Any:
  """Returns the sum of the classes of a row."""
  total = 0.0
  for entry in range(np.uint64(first_entry[row]), np.uint64(first_entry[row + np.uint64(1)])):
    total += by_class[class_of_entry[entry]]
  return total


@inlined
def add_to_row(
  first_entry: Indices, class_of_entry: Indices, row: int, gained: float, by_class: Doubles
) -> None:
  """Adds a number to each class of a row."""
  for entry in range(np.uint64(first_entry[row]), np.uint64(first_entry[row + np.uint64(1)])):
    by_class[class_of_entry[entry]] += gained


@step(RectangleGradient, single=False)
def rectangle_gradient(record: RectangleGradient) -> None:
  """Computes a player's gradient at all of its sequences."""
  rows, opponent_rows, by_class = record.rows, record.opponent_rows, record.by_class
  by_row, by_opponent_row = record.by_row, record.by_opponent_row
  for number in range(np.uint64(by_class.shape[0])):
    by_class[number] = 0.0
  for sequence in range(np.uint64(opponent_rows.class_of_sequence.shape[0])):
    reach = record.sequence_form[record.opponent_root + sequence]
    by_class[opponent_rows.class_of_sequence[sequence]] += reach
  for row in range(np.uint64(by_opponent_row.shape[0])):
    by_opponent_row[row] = sum_of_row(
      opponent_rows.first_entry_of_row, opponent_rows.class_of_entry, row, by_class
    )
  for row in range(np.uint64(by_row.shape[0])):
    by_row[row] = 0.0
  for rectangle in range(np.uint64(record.payoffs.shape[0])):
    total = by_opponent_row[opponent_rows.row_of_rectangle[rectangle]]
    by_row[rows.row_of_rectangle[rectangle]] += record.payoffs[rectangle] * total
  for number in range(np.uint64(by_class.shape[0])):
    by_class[number] = 0.0
  for row in range(np.uint64(by_row.shape[0])):
    add_to_row(rows.first_entry_of_row, rows.class_of_entry, row, by_row[row], by_class)
  for sequence in range(np.uint64(rows.class_of_sequence.shape[0])):
    record.utility[record.root + sequence] = by_class[rows.class_of_sequence[sequence]]


class PairArrays(NamedTuple):
  """The payoffs of `PairPayoff`.

  Attributes:
    payoffs: float64 (2, payoffs). The payoffs of both players, weighted by chance.
  """

  payoffs: Float64s

  def __reduce__(self) -> tuple[Any, ...]:
    return unpickled, (PairArrays, *self)


class PairPayoff(Payoff):
  """Base class of the two forms of payoffs of games in private moves form: `Rectangles` and `SharedRectangles`."""

  arrays: PairArrays

  def __init__(self, payoffs: Float64s) -> None:
    """Takes payoffs of both players, weighted by chance, shape (2, payoffs). Subclasses define their order."""
    super().__init__(PairArrays(np.ascontiguousarray(payoffs)))

  @property
  @abc.abstractmethod
  def _end(self) -> int:
    """Number of sequences of both players, padding included."""

  @abc.abstractmethod
  def row_arrays(self, player: int) -> tuple[Uint32s, ...]:
    """Returns the arrays of a player's rows."""

  @property
  def payoffs(self) -> Float64s:
    """The payoffs of both players, weighted by chance, shape (2, payoffs)."""
    return self.arrays.payoffs

  def _absolute(self) -> Self:
    """Returns the same form with absolute payoffs."""
    result = copy.copy(self)
    result.arrays = PairArrays(np.abs(self.payoffs))
    return result

  def _check_num_leaves(self) -> None:
    if self.num_leaves > _MOST_LEAVES:
      raise errors.GameTooLargeError(
        f"This function lists all pairs of sequences that have a payoff. The game has {self.num_leaves:,} of them, "
        f"more than {_MOST_LEAVES:,}. Use a solver or an evaluation that needs gradients only, not this list: CFR "
        "and its variants, restarts, best responses."
      )

  @functools.cached_property
  def _totals(self) -> tuple[Float64s, Float64s]:
    """For each player, the sum of the absolute payoffs at each of its sequences."""
    absolute, result = self._absolute(), (np.zeros(self._end), np.zeros(self._end))
    for player in (0, 1):
      absolute.gradient_into(player, np.ones(self._end), result[player])
    return result

  def infoset_bounds(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Bounds counterfactual utilities by the sum of absolute payoffs that can follow, see `summed_scales`."""
    return summed_scales(self._absolute(), treeplexes, player)

  def sensitivity(self, treeplexes: Sequence[Treeplex], player: int) -> float:
    """Bounds the spectral norm of the payoff matrix: the root of the largest row sum times the largest column sum."""
    rows, columns = (float(sums.max(initial=0.0)) for sums in self._totals)
    return float(np.sqrt(rows * columns))


class Rectangles(PairPayoff):
  """The payoffs of a game in private moves form.

  Attributes:
    rows: PlacedRows of each player.
  """

  form = "rectangles"

  def __init__(self, rows: tuple[PlacedRows, PlacedRows], payoffs: Float64s) -> None:
    """Takes the rows, and each player's payoff of each pair of sequences, shape (2, rectangles)."""
    super().__init__(payoffs)
    self.rows = rows

  @property
  def _end(self) -> int:
    return sum(len(rows.class_of_sequence) for rows in self.rows)

  @property
  def _roots(self) -> tuple[int, int]:
    return 0, len(self.rows[0].class_of_sequence)

  def row_arrays(self, player: int) -> tuple[Uint32s, ...]:
    return tuple(self.rows[player])

  @property
  def num_leaves(self) -> int:
    """Number of pairs of sequences with a payoff for player 0; a pair counts once for each path of chance to it."""
    first, second = (
      self._row_sizes(player)[self.rows[player].row_of_rectangle] for player in (0, 1)
    )
    return int((first * second)[self.payoffs[0] != 0].sum())

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays, in bytes."""
    return self.payoffs.nbytes + sum(array.nbytes for rows in self.rows for array in rows)

  def gradient_step(self, player: int, sequence_form: AnyFloats, utility: AnyFloats) -> Step:
    rows, opponent_rows = self.rows[player], self.rows[1 - player]
    num_classes = max(1 + int(side.class_of_sequence.max(initial=0)) for side in self.rows)
    record = RectangleGradient(
      rows=rows,
      root=self._roots[player],
      opponent_rows=opponent_rows,
      opponent_root=self._roots[1 - player],
      payoffs=self.payoffs[player],
      sequence_form=sequence_form,
      utility=utility,
      by_class=np.zeros(num_classes),
      by_row=np.zeros(len(rows.first_entry_of_row) - 1),
      by_opponent_row=np.zeros(len(opponent_rows.first_entry_of_row) - 1),
    )
    return rectangle_gradient.on(record)

  def leaves(self, player: int) -> Leaves:
    """Lists the pairs of sequences with a payoff for a player.

    Raises:
      GameTooLargeError: there are more than 20 million.
    """
    self._check_num_leaves()
    paid = np.flatnonzero(self.payoffs[player])
    sequences, num_sequences = self._sequences_of(player, paid)
    opponent_sequences, num_opponent_sequences = self._sequences_of(1 - player, paid)
    # Pairs are listed rectangle by rectangle, in the order of the player's row and then of the opponent's.
    num_pairs = num_sequences * num_opponent_sequences
    rectangle = np.repeat(np.arange(len(paid)), num_pairs)
    pair = concatenated_ranges(np.zeros_like(num_pairs), num_pairs)
    place, opponent_place = np.divmod(pair, num_opponent_sequences[rectangle])
    first = np.cumsum(num_sequences) - num_sequences
    opponent_first = np.cumsum(num_opponent_sequences) - num_opponent_sequences
    sequence = sequences[first[rectangle] + place]
    opponent_sequence = opponent_sequences[opponent_first[rectangle] + opponent_place]
    # In the order of the player's sequences.
    (opponent_sequence, sequence), values = combined(
      [opponent_sequence, sequence], self.payoffs[player, paid][rectangle], np.add
    )
    return Leaves(sequence.astype(np.uint32), opponent_sequence.astype(np.uint32)[None], values)

  def _row_sizes(self, player: int) -> Int64s:
    """Returns the number of sequences of each row."""
    rows = self.rows[player]
    class_sizes = np.bincount(rows.class_of_sequence)
    sums = np.append(0, np.cumsum(class_sizes[rows.class_of_entry]))
    return np.diff(sums[rows.first_entry_of_row])

  def _sequences_of(self, player: int, rectangles: Int64s) -> tuple[Int64s, Int64s]:
    """Returns the sequences of the rows of some rectangles, end to end, and the number in each row."""
    rows = self.rows[player]
    chosen = rows.row_of_rectangle[rectangles]
    first_entry = rows.first_entry_of_row.astype(np.int64)
    classes = rows.class_of_entry[
      concatenated_ranges(first_entry[chosen], first_entry[chosen + 1] - first_entry[chosen])
    ]
    by_class = np.argsort(rows.class_of_sequence, kind="stable")
    class_sizes = np.bincount(rows.class_of_sequence)
    first_of_class = np.cumsum(class_sizes) - class_sizes
    places = concatenated_ranges(first_of_class[classes], class_sizes[classes])
    return self._roots[player] + by_class[places], self._row_sizes(player)[chosen]


def placed_rectangles(
  rows: tuple[DiscoveredRows, DiscoveredRows], payoffs: Float64s, placements: Sequence[Placement]
) -> Rectangles:
  """Returns the payoffs, given both players' rows, payoffs of rectangles, and the layout of both players."""
  first, second = (
    of_player.placed(placement) for of_player, placement in zip(rows, placements, strict=True)
  )
  return Rectangles((first, second), payoffs)
