"""Merging of sides: sequences that are in the same sides become one class, and equal sides become one side, exactly.

Two orders of the same failed attempts, for instance, are in the same sides. A side, which is a set of sequences,
becomes a set of *classes*.
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Int32s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.records import Longs
from spiel_cfr._numba.steps import Chain, step
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.games.private_moves.core_walk import PlayerWalk
from spiel_cfr.games.private_moves.cores import Ints


class WalkedInfosets(NamedTuple):
  """One player's infosets, as walks found them.

  Attributes:
    parent: int32 (infosets,). The sequence above each infoset. Each walk numbers the sequence at which it begins, and
      then the actions of infosets in order of discovery.
    seen: int32 (infosets,). The number of what the player has seen at each infoset.
    opponent_sequence: int32 (infosets,). A sequence of the opponent that, with the infoset, is a history.
    chance_path: int32 (infosets,). The path of chance of that history.
  """

  parent: Int32s
  seen: Int32s
  opponent_sequence: Int32s
  chance_path: Int32s


class PlayerSides(NamedTuple):
  """One player's infosets and sides, as walks found them.

  Attributes:
    infosets: WalkedInfosets. The infosets.
    classes: int32 (sequences,). The class of each sequence; class 0 is in no side.
    side_end: int64 (sides,). One past the last entry of each side.
    entries: int32 (entries,). The classes of each side, end to end.
  """

  infosets: WalkedInfosets
  classes: Int32s
  side_end: Int64s
  entries: Int32s


class _Refinement(NamedTuple):
  """The arguments of `refine_classes`.

  Attributes:
    side_end: int64 (sides,). One past the last entry of each side.
    entries: int32 (entries,). The sequences of each side. The kernel replaces them by the side's classes, without gaps.
    classes: int32 (sequences,). The class of each sequence, written by the kernel.
    size: int32 (sequences + 1,). The number of sequences of each class.
    occurrences: int32 (sequences + 1,). Workspace of zeros.
    target: int32 (sequences + 1,). Workspace.
    touched: int32 (sequences + 1,). Workspace.
  """

  side_end: Longs
  entries: Ints
  classes: Ints
  size: Ints
  occurrences: Ints
  target: Ints
  touched: Ints


@inlined
def _count_by_class(record: _Refinement, start: int, end: int) -> Any:
  """Counts the sequences of a side by class. Writes the classes to `touched`, and returns their number."""
  num_touched = 0
  for entry in range(start, end):
    number = record.classes[record.entries[entry]]
    if record.occurrences[number] == 0:
      record.touched[num_touched] = number
      num_touched += 1
    record.occurrences[number] += 1
  return num_touched


@inlined
def _split_classes(record: _Refinement, num_touched: int, num_classes: int) -> Any:
  """Chooses the class of the sequences in a side: a new class, unless all sequences of the old class are in the side.

  Writes the choices to `target` and zeros to `occurrences`. Returns the number of classes.
  """
  occurrences, size = record.occurrences, record.size
  for place in range(num_touched):
    number = record.touched[place]
    record.target[number] = number
    if occurrences[number] < size[number]:
      record.target[number] = num_classes
      size[num_classes] = occurrences[number]
      size[number] -= occurrences[number]
      num_classes += 1
    occurrences[number] = 0
  return num_classes


@inlined
def _replace_sequences_by_classes(record: _Refinement) -> None:
  """Replaces the sequences of each side by their classes; a class occurs once."""
  entries, last_side = record.entries, record.occurrences
  start = written = 0
  for side in range(record.side_end.shape[0]):
    end = record.side_end[side]
    for entry in range(start, end):
      number = record.classes[entries[entry]]
      if last_side[number] != side + 1:
        last_side[number] = side + 1
        entries[written] = number
        written += 1
    record.side_end[side] = written
    start = end


@step(_Refinement, single=False)
def refine_classes(record: _Refinement) -> None:
  """Finds the coarsest classes such that each side is a union of classes, by refinement, end to end.

  A side splits each class that it partly contains: the sequences in the side become a new class. Classes are numbered
  from 1 on in the order of sides. Class 0 keeps the sequences that are in no side.
  """
  classes, entries = record.classes, record.entries
  # One more than its sequences, so that no side contains all of class 0.
  record.size[0] = classes.shape[0] + 1
  num_classes, start = 1, 0
  for side in range(record.side_end.shape[0]):
    end = record.side_end[side]
    num_touched = _count_by_class(record, start, end)
    num_classes = _split_classes(record, num_touched, num_classes)
    for entry in range(start, end):
      classes[entries[entry]] = record.target[classes[entries[entry]]]
    start = end
  _replace_sequences_by_classes(record)


class _SideMerge(NamedTuple):
  """The arguments of `merge_sides`.

  Attributes:
    side_end: int64 (sides,). One past the last entry of each side. The kernel replaces it by that of different sides.
    entries: int32 (entries,). The classes of each side. The kernel replaces them by those of different sides.
    number: int32 (sides,). The place of each side among different sides, written by the kernel.
    table: int32 (a power of 2,). Hash table of different sides; `NONE` everywhere at the beginning.
    mark: int32 (classes,). Workspace of zeros.
  """

  side_end: Longs
  entries: Ints
  number: Ints
  table: Ints
  mark: Ints


@inlined
def _mark_and_hash(record: _SideMerge, side: int, start: int, end: int) -> Any:
  """Marks the classes of a side, and returns a hash that does not depend on their order."""
  mixed = np.uint64(0)
  for entry in range(start, end):
    record.mark[record.entries[entry]] = side + 1
    bits = np.uint64(record.entries[entry]) * np.uint64(0x9E3779B97F4A7C15)
    mixed += bits ^ (bits >> np.uint64(29))
  return np.int64(mixed >> np.uint64(8))


@inlined
def _has_marked_classes(record: _SideMerge, side: int, length: int, other: int) -> Any:
  """Returns whether another side has the classes of a side, which is marked and has `length` classes."""
  first = record.side_end[other - 1] if other > 0 else 0
  result = record.side_end[other] - first == length
  for entry in range(first, record.side_end[other]):
    result &= record.mark[record.entries[entry]] == side + 1
  return result


@step(_SideMerge, single=False)
def merge_sides(record: _SideMerge) -> None:
  """Finds sides that have the same classes, in any order. Sides with equal hashes are compared."""
  side_end, entries, table = record.side_end, record.entries, record.table
  last_place = table.shape[0] - 1
  num_sides = written = start = 0
  for side in range(record.number.shape[0]):
    end = side_end[side]
    place = _mark_and_hash(record, side, start, end) & last_place
    same = NONE
    while same == NONE and table[place] != NONE:
      if _has_marked_classes(record, side, end - start, table[place]):
        same = table[place]
      place = (place + 1) & last_place
    if same == NONE:
      same, table[place] = num_sides, num_sides
      for entry in range(start, end):
        entries[written] = entries[entry]
        written += 1
      side_end[num_sides] = written
      num_sides += 1
    record.number[side] = same
    start = end


def merged(own: PlayerWalk) -> tuple[PlayerSides, Int32s]:
  """Returns a player's infosets and different sides, and the number of the side that each side becomes."""
  num_infosets, num_sequences, num_sides = own.counts[:3].tolist()
  side_end, classes = own.side_end[:num_sides], np.zeros(num_sequences, np.int32)
  size, occurrences, target, touched = np.zeros((4, num_sequences + 1), np.int32)
  refinement = _Refinement(side_end, own.entries, classes, size, occurrences, target, touched)
  number = np.zeros(num_sides, np.int32)
  table = np.full(1 << (2 * num_sides).bit_length(), NONE, np.int32)
  mark = np.zeros(num_sequences + 1, np.int32)
  side_merge = _SideMerge(side_end, own.entries, number, table, mark)
  Chain([refine_classes.on(refinement), merge_sides.on(side_merge)]).run()
  num_different = 1 + int(number.max(initial=-1))
  num_entries = int(side_end[num_different - 1]) if num_different else 0
  sides = PlayerSides(
    infosets=WalkedInfosets(
      parent=own.parent[:num_infosets].copy(),
      seen=own.seen[:num_infosets].copy(),
      opponent_sequence=own.opponent_sequence[:num_infosets].copy(),
      chance_path=own.chance_path[:num_infosets].copy(),
    ),
    classes=classes,
    side_end=side_end[:num_different].copy(),
    entries=own.entries[:num_entries].copy(),
  )
  return sides, number


def joined_sides(
  batches: list[PlayerSides], num_sequences: Int64s, num_opponent_sequences: Int64s
) -> PlayerSides:
  """Joins a player's infosets and sides of several batches of walks.

  Args:
    batches: the infosets and sides of each batch, numbered from 0.
    num_sequences: int64 (batches,). The number of the player's sequences before each batch.
    num_opponent_sequences: int64 (batches,). The number of the opponent's sequences before each batch.
  """
  num_classes = np.cumsum([0, *(sides.classes.max(initial=0) for sides in batches)])
  num_entries = np.cumsum([0, *(len(sides.entries) for sides in batches)])
  infosets = [sides.infosets for sides in batches]
  return PlayerSides(
    infosets=WalkedInfosets(
      parent=_joined([walked.parent for walked in infosets], num_sequences),
      seen=np.concatenate([walked.seen for walked in infosets]),
      opponent_sequence=_joined(
        [walked.opponent_sequence for walked in infosets], num_opponent_sequences
      ),
      chance_path=np.concatenate([walked.chance_path for walked in infosets]),
    ),
    classes=np.concatenate(
      [
        np.where(sides.classes > 0, sides.classes + np.int32(before), 0)
        for sides, before in zip(batches, num_classes, strict=False)
      ]
    ),
    side_end=_joined([sides.side_end for sides in batches], num_entries),
    entries=_joined([sides.entries for sides in batches], num_classes),
  )


def _joined(columns: list[Any], before: Int64s) -> Any:
  """Joins the columns of batches, and adds to each batch's numbers those before it."""
  return np.concatenate(
    [column + column.dtype.type(number) for column, number in zip(columns, before, strict=False)]
  )
