"""Rectangles: the payoff matrix of a game in private moves form, stored as blocks of equal payoffs.

A *side* is a set of sequences of one player. A *rectangle* has a side of each player and one payoff: that of each pair
of a sequence in the one side and a sequence in the other. Let C_q[side, sequence] be 1 if a side of player q has the
sequence, and K[side, side'] the sum of the payoffs of the rectangles with these two sides. Then the payoff matrix is
U = C_0' K C_1. A gradient is three sparse products: sums over the opponent's sides, a product with K, and sums over the
sides that have a sequence of the player.

Sides list *classes*, sets of sequences that are in the same sides (`merged_sides`). Class 0 has the sequences that are
in no side.
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


class PlacedSides(NamedTuple):
  """One player's sides, with sequences in the numbering of the layout.

  Attributes:
    class_of_sequence: uint32 (sequences,). The class of each of the player's sequences; 0 for padding.
    first_entry_of_side: uint32 (sides + 1,). The first entry of each side, then the number of entries.
    class_of_entry: uint32 (entries,). The classes of each side, end to end.
    side_of_rectangle: uint32 (rectangles,). The side of each rectangle.
  """

  class_of_sequence: Indices
  first_entry_of_side: Indices
  class_of_entry: Indices
  side_of_rectangle: Indices

  def __reduce__(self) -> tuple[Any, ...]:
    return unpickled, (PlacedSides, *self)


class DiscoveredSides(NamedTuple):
  """One player's sides before its infosets are laid out.

  Attributes:
    class_of_sequence: int32 (sequences,). The class of each sequence, in order of discovery.
    side_end: int64 (sides,). One past the last entry of each side.
    class_of_entry: int32 (entries,). The classes of each side, end to end.
    side_of_rectangle: int32 (rectangles,). The side of each rectangle.
  """

  class_of_sequence: Int32s
  side_end: Int64s
  class_of_entry: Int32s
  side_of_rectangle: Int32s

  def placed(self, placement: Placement) -> PlacedSides:
    """Returns the sides in the numbering of the layout."""
    tree = placement.treeplex
    class_of_sequence = np.zeros(tree.end - tree.root, np.uint32)
    class_of_sequence[placement.sequences - tree.root] = self.class_of_sequence
    return PlacedSides(
      class_of_sequence=class_of_sequence,
      first_entry_of_side=np.append(0, self.side_end).astype(np.uint32),
      class_of_entry=self.class_of_entry.astype(np.uint32),
      side_of_rectangle=self.side_of_rectangle.astype(np.uint32),
    )


class RectangleGradient(NamedTuple):
  """The arguments of `rectangle_gradient`.

  Attributes:
    sides: PlacedSides. The sides of the player.
    root: int. The player's first sequence.
    opponent_sides: PlacedSides. The sides of the opponent.
    opponent_root: int. The opponent's first sequence.
    payoffs: float64 (rectangles,). The player's payoff of each pair of sequences.
    sequence_form: float64 (sequences,). The strategy of the opponent.
    utility: float64 (sequences,). The gradient at the player's sequences, written here.
    by_class: float64 (classes,). Workspace for the classes of either player, as long as the longer list of classes.
    by_side: float64 (sides,). Workspace for the player's sides.
    by_opponent_side: float64 (sides,). Workspace for the opponent's sides.
  """

  sides: PlacedSides
  root: Count
  opponent_sides: PlacedSides
  opponent_root: Count
  payoffs: Doubles
  sequence_form: Doubles
  utility: Doubles
  by_class: Doubles
  by_side: Doubles
  by_opponent_side: Doubles


@inlined
def sum_of_side(first_entry: Indices, class_of_entry: Indices, side: int, by_class: Doubles) -> Any:
  """Returns the sum of the classes of a side."""
  total = 0.0
  for entry in range(np.uint64(first_entry[side]), np.uint64(first_entry[side + np.uint64(1)])):
    total += by_class[class_of_entry[entry]]
  return total


@inlined
def add_to_side(
  first_entry: Indices, class_of_entry: Indices, side: int, gained: float, by_class: Doubles
) -> None:
  """Adds a number to each class of a side."""
  for entry in range(np.uint64(first_entry[side]), np.uint64(first_entry[side + np.uint64(1)])):
    by_class[class_of_entry[entry]] += gained


@step(RectangleGradient, single=False)
def rectangle_gradient(record: RectangleGradient) -> None:
  """Computes a player's gradient at all of its sequences."""
  sides, opponent_sides, by_class = record.sides, record.opponent_sides, record.by_class
  by_side, by_opponent_side = record.by_side, record.by_opponent_side
  for number in range(np.uint64(by_class.shape[0])):
    by_class[number] = 0.0
  for sequence in range(np.uint64(opponent_sides.class_of_sequence.shape[0])):
    reach = record.sequence_form[record.opponent_root + sequence]
    by_class[opponent_sides.class_of_sequence[sequence]] += reach
  for side in range(np.uint64(by_opponent_side.shape[0])):
    by_opponent_side[side] = sum_of_side(
      opponent_sides.first_entry_of_side, opponent_sides.class_of_entry, side, by_class
    )
  for side in range(np.uint64(by_side.shape[0])):
    by_side[side] = 0.0
  for rectangle in range(np.uint64(record.payoffs.shape[0])):
    total = by_opponent_side[opponent_sides.side_of_rectangle[rectangle]]
    by_side[sides.side_of_rectangle[rectangle]] += record.payoffs[rectangle] * total
  for number in range(np.uint64(by_class.shape[0])):
    by_class[number] = 0.0
  for side in range(np.uint64(by_side.shape[0])):
    add_to_side(sides.first_entry_of_side, sides.class_of_entry, side, by_side[side], by_class)
  for sequence in range(np.uint64(sides.class_of_sequence.shape[0])):
    record.utility[record.root + sequence] = by_class[sides.class_of_sequence[sequence]]


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
  def side_arrays(self, player: int) -> tuple[Uint32s, ...]:
    """Returns the arrays of a player's sides."""

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
    sides: PlacedSides of each player.
  """

  form = "rectangles"

  def __init__(self, sides: tuple[PlacedSides, PlacedSides], payoffs: Float64s) -> None:
    """Takes the sides, and each player's payoff of each pair of sequences, shape (2, rectangles)."""
    super().__init__(payoffs)
    self.sides = sides

  @property
  def _end(self) -> int:
    return sum(len(sides.class_of_sequence) for sides in self.sides)

  @property
  def _roots(self) -> tuple[int, int]:
    return 0, len(self.sides[0].class_of_sequence)

  def side_arrays(self, player: int) -> tuple[Uint32s, ...]:
    return tuple(self.sides[player])

  @property
  def num_leaves(self) -> int:
    """Number of pairs of sequences with a payoff for player 0; a pair counts once for each path of chance to it."""
    first, second = (
      self._side_sizes(player)[self.sides[player].side_of_rectangle] for player in (0, 1)
    )
    return int((first * second)[self.payoffs[0] != 0].sum())

  @property
  def num_bytes(self) -> int:
    """Memory of the arrays, in bytes."""
    return self.payoffs.nbytes + sum(array.nbytes for sides in self.sides for array in sides)

  def gradient_step(self, player: int, sequence_form: AnyFloats, utility: AnyFloats) -> Step:
    sides, opponent_sides = self.sides[player], self.sides[1 - player]
    num_classes = max(1 + int(sides.class_of_sequence.max(initial=0)) for sides in self.sides)
    record = RectangleGradient(
      sides=sides,
      root=self._roots[player],
      opponent_sides=opponent_sides,
      opponent_root=self._roots[1 - player],
      payoffs=self.payoffs[player],
      sequence_form=sequence_form,
      utility=utility,
      by_class=np.zeros(num_classes),
      by_side=np.zeros(len(sides.first_entry_of_side) - 1),
      by_opponent_side=np.zeros(len(opponent_sides.first_entry_of_side) - 1),
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
    # Pairs are listed rectangle by rectangle, in the order of the player's side and then of the opponent's.
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

  def _side_sizes(self, player: int) -> Int64s:
    """Returns the number of sequences of each side."""
    sides = self.sides[player]
    class_sizes = np.bincount(sides.class_of_sequence)
    sums = np.append(0, np.cumsum(class_sizes[sides.class_of_entry]))
    return np.diff(sums[sides.first_entry_of_side])

  def _sequences_of(self, player: int, rectangles: Int64s) -> tuple[Int64s, Int64s]:
    """Returns the sequences of the sides of some rectangles, end to end, and the number in each side."""
    sides = self.sides[player]
    chosen = sides.side_of_rectangle[rectangles]
    first_entry = sides.first_entry_of_side.astype(np.int64)
    classes = sides.class_of_entry[
      concatenated_ranges(first_entry[chosen], first_entry[chosen + 1] - first_entry[chosen])
    ]
    by_class = np.argsort(sides.class_of_sequence, kind="stable")
    class_sizes = np.bincount(sides.class_of_sequence)
    first_of_class = np.cumsum(class_sizes) - class_sizes
    places = concatenated_ranges(first_of_class[classes], class_sizes[classes])
    return self._roots[player] + by_class[places], self._side_sizes(player)[chosen]


def placed_rectangles(
  sides: tuple[DiscoveredSides, DiscoveredSides], payoffs: Float64s, placements: Sequence[Placement]
) -> Rectangles:
  """Returns the payoffs, given both players' sides, payoffs of rectangles, and the layout of both players."""
  first, second = (
    of_player.placed(placement) for of_player, placement in zip(sides, placements, strict=True)
  )
  return Rectangles((first, second), payoffs)
