"""Rectangles: payoffs of a game in private moves form, as pairs of rows of sequences with one payoff each.

Any sequence of a rectangle's first row meets any sequence of its second row at the same payoff. Let C_q[row, sequence]
be 1 if a row of player q has the sequence, and K[row, row'] the sum of the payoffs of the rectangles that pair the two
rows. Then the payoff matrix is U = C_0' K C_1, and a gradient is three sparse products:

    sums over the opponent's rows -> sums over rectangles -> spread over the player's rows

Rows hold classes of sequences, see `core_histories`. Class 0 has the sequences that are in no row.
"""

import abc
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import AnyFloats, Float64s, Int64s, concatenated_ranges, unpickled
from spiel_cfr._numba.records import Count, Doubles, Indices
from spiel_cfr._numba.steps import Chain, Step, step
from spiel_cfr.games.payoffs.payoff import NO_PLAYERS, Payoff, PayoffArrays
from spiel_cfr.games.payoffs.utility_bounds import Leaves, combined
from spiel_cfr.games.sequence_form.treeplex import Treeplex

# Largest number of leaves that `leaves` lists, of 40 bytes each.
_MOST_LEAVES = 20_000_000


class Rows(NamedTuple):
  """One player's rows.

  Attributes:
    classes: uint32 (sequences,). The class of each of the player's sequences; 0 for padding.
    start: uint32 (rows + 1,). The first entry of each row, then the number of entries.
    entries: uint32 (entries,). The classes of each row, row by row.
    of_rectangle: uint32 (rectangles,). The row of each rectangle.
  """

  classes: Indices
  start: Indices
  entries: Indices
  of_rectangle: Indices

  def __reduce__(self) -> tuple[Any, ...]:
    return unpickled, (Rows, *self)


class RectangleGradient(NamedTuple):
  """The arguments of `rectangle_gradient`.

  Attributes:
    own: Rows. The rows of the player.
    own_root: int. The player's first sequence.
    other: Rows. The rows of the opponent.
    other_root: int. The opponent's first sequence.
    payoffs: float64 (rectangles,). The player's payoff of each pair of sequences.
    sequence_form: float64 (sequences,). The strategy of the opponent.
    utility: float64 (sequences,). The gradient at the player's sequences, written here.
    by_class: float64 (classes,). Workspace, long enough for the player with more classes.
    by_own_row: float64 (the player's rows,). Workspace.
    by_other_row: float64 (the opponent's rows,). Workspace.
  """

  own: Rows
  own_root: Count
  other: Rows
  other_root: Count
  payoffs: Doubles
  sequence_form: Doubles
  utility: Doubles
  by_class: Doubles
  by_own_row: Doubles
  by_other_row: Doubles


@step(RectangleGradient, single=False)
def rectangle_gradient(record: RectangleGradient) -> None:
  """Computes a player's gradient at all of its sequences."""
  own, other, by_class = record.own, record.other, record.by_class
  sequence_form, utility = record.sequence_form, record.utility
  for number in range(np.uint64(by_class.shape[0])):
    by_class[number] = 0.0
  for sequence in range(np.uint64(other.classes.shape[0])):
    by_class[other.classes[sequence]] += sequence_form[record.other_root + sequence]
  for row in range(np.uint64(record.by_other_row.shape[0])):
    total = 0.0
    for entry in range(np.uint64(other.start[row]), np.uint64(other.start[row + np.uint64(1)])):
      total += by_class[other.entries[entry]]
    record.by_other_row[row] = total
  for row in range(np.uint64(record.by_own_row.shape[0])):
    record.by_own_row[row] = 0.0
  for rectangle in range(np.uint64(record.payoffs.shape[0])):
    met = record.by_other_row[other.of_rectangle[rectangle]]
    record.by_own_row[own.of_rectangle[rectangle]] += record.payoffs[rectangle] * met
  for number in range(np.uint64(by_class.shape[0])):
    by_class[number] = 0.0
  for row in range(np.uint64(record.by_own_row.shape[0])):
    gained = record.by_own_row[row]
    for entry in range(np.uint64(own.start[row]), np.uint64(own.start[row + np.uint64(1)])):
      by_class[own.entries[entry]] += gained
  for sequence in range(np.uint64(own.classes.shape[0])):
    utility[record.own_root + sequence] = by_class[own.classes[sequence]]


class PairPayoff(Payoff):
  """Payoffs of pairs of rows, in the two forms for games in private moves form."""

  def __init__(self, payoffs: Float64s) -> None:
    """Takes payoffs of both players, shape (2, columns), weighted by chance."""
    # The kernel reads the rows and `values`; the tables of other forms stay empty.
    none = np.zeros(0, np.uint32)
    super().__init__(
      PayoffArrays(NO_PLAYERS, NO_PLAYERS, none, none.reshape(0, 0), payoffs.ravel())
    )

  @property
  @abc.abstractmethod
  def _end(self) -> int:
    """The number of sequences of both players, padding included."""

  @property
  def payoffs(self) -> Float64s:
    """The payoffs of both players, weighted by chance, shape (2, columns)."""
    return self.arrays.values.reshape(2, -1)

  def _check_num_leaves(self) -> None:
    if self.num_leaves > _MOST_LEAVES:
      raise errors.GameTooLargeError(
        f"This needs a list of all {self.num_leaves:,} pairs of sequences that have a payoff; {_MOST_LEAVES:,} are the "
        "most that are listed. Solvers and evaluations that need gradients only take the game: CFR and its variants, "
        "restarts, best responses."
      )

  @functools.cached_property
  def _totals(self) -> tuple[Float64s, Float64s]:
    """For each player, the sum of the absolute payoffs that each of its sequences can meet."""
    positive = self.arrays._replace(values=np.abs(self.arrays.values))
    result = np.zeros(self._end), np.zeros(self._end)
    Chain(
      self.gradient_step(player, np.ones(self._end), result[player], positive) for player in (0, 1)
    ).run()
    return result

  def infoset_bounds(self, treeplexes: Sequence[Treeplex], player: int) -> Float64s:
    """Bounds counterfactual utilities by the sum of absolute payoffs that can follow: `infoset_scales`."""
    return self.infoset_scales(treeplexes, player)

  def sensitivity(self, treeplexes: Sequence[Treeplex], player: int) -> float:
    """Bounds the spectral norm of the payoff matrix: the root of the largest row sum times the largest column sum."""
    rows, columns = (float(sums.max(initial=0.0)) for sums in self._totals)
    return float(np.sqrt(rows * columns))


class Rectangles(PairPayoff):
  """The payoffs of a game in private moves form.

  Attributes:
    rows: Rows of each player.
  """

  form = "rectangles"
  gradient = rectangle_gradient

  def __init__(self, rows: tuple[Rows, Rows], payoffs: Float64s) -> None:
    """Takes the rows, and each player's payoff of each pair of sequences, shape (2, rectangles)."""
    super().__init__(payoffs)
    self.rows = rows

  @property
  def _end(self) -> int:
    return sum(len(rows.classes) for rows in self.rows)

  @property
  def _roots(self) -> tuple[int, int]:
    return 0, len(self.rows[0].classes)

  @property
  def num_leaves(self) -> int:
    """Number of pairs of sequences with a payoff for player 0; a pair counts once for each path of chance to it."""
    sizes = [self._row_sizes(player)[self.rows[player].of_rectangle] for player in (0, 1)]
    return int((sizes[0] * sizes[1])[self.payoffs[0] != 0].sum())

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays, in bytes."""
    return self.payoffs.nbytes + sum(array.nbytes for rows in self.rows for array in rows)

  def gradient_step(
    self,
    player: int,
    sequence_form: AnyFloats,
    utility: AnyFloats,
    arrays: PayoffArrays | None = None,
  ) -> Step:
    """Returns the step that computes a gradient; `arrays` may replace the payoffs, as `values`."""
    own, other = self.rows[player], self.rows[1 - player]
    payoffs = self.payoffs if arrays is None else arrays.values.reshape(2, -1)
    classes = max(1 + int(rows.classes.max(initial=0)) for rows in self.rows)
    record = RectangleGradient(
      own=own,
      own_root=self._roots[player],
      other=other,
      other_root=self._roots[1 - player],
      payoffs=payoffs[player],
      sequence_form=sequence_form,
      utility=utility,
      by_class=np.zeros(classes),
      by_own_row=np.zeros(len(own.start) - 1),
      by_other_row=np.zeros(len(other.start) - 1),
    )
    return self.gradient.on(record)

  def leaves(self, player: int) -> Leaves:
    """Lists the pairs of sequences.

    Raises:
      GameTooLargeError: there are more than 20 million.
    """
    self._check_num_leaves()
    worth = np.flatnonzero(self.payoffs[player])
    sides = [self._sequences_of(owner, worth) for owner in (player, 1 - player)]
    (own, own_sizes), (others, other_sizes) = sides
    pairs = own_sizes * other_sizes
    rectangle = np.repeat(np.arange(len(worth)), pairs)
    place = concatenated_ranges(np.zeros_like(pairs), pairs)
    first, second = (np.cumsum(sizes) - sizes for sizes in (own_sizes, other_sizes))
    columns = [
      own[first[rectangle] + place // other_sizes[rectangle]],
      others[second[rectangle] + place % other_sizes[rectangle]],
    ]
    # In the order of the player's sequences.
    (theirs, mine), values = combined(columns[::-1], self.payoffs[player, worth][rectangle], np.add)
    return Leaves(mine.astype(np.uint32), theirs.astype(np.uint32)[None], values)

  def _row_sizes(self, player: int) -> Int64s:
    """Returns the number of sequences of each row."""
    rows = self.rows[player]
    counts = np.bincount(rows.classes)
    ends = np.append(0, np.cumsum(counts[rows.entries]))
    return np.diff(ends[rows.start])

  def _sequences_of(self, player: int, rectangles: Int64s) -> tuple[Int64s, Int64s]:
    """Returns the sequences of the rows of some rectangles, end to end, and the number in each row."""
    rows = self.rows[player]
    chosen = rows.of_rectangle[rectangles]
    start = rows.start.astype(np.int64)
    classes = rows.entries[concatenated_ranges(start[chosen], start[chosen + 1] - start[chosen])]
    members = np.argsort(rows.classes, kind="stable")
    counts = np.bincount(rows.classes)
    sequences = (
      self._roots[player]
      + members[concatenated_ranges((np.cumsum(counts) - counts)[classes], counts[classes])]
    )
    return sequences, self._row_sizes(player)[chosen]
