"""Rows of sequences with equal columns and equal rows merged, exactly.

Sequences that are in the same rows, such as orders of failed attempts, are one *class*. Rows then hold classes. Rows
with the same classes are one row.
"""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Int32s, Int64s
from spiel_cfr._numba.steps import Chain, step
from spiel_cfr.games.private_moves.core_walk import Longs, Side
from spiel_cfr.games.private_moves.cores import Ints

_NOTHING = -1


class PlayerRows(NamedTuple):
  """One player's infosets and rows.

  Attributes:
    parent: int32 (infosets,). The sequence above each infoset. Sequences are numbered as infosets are found, after
      the one at which a walk begins.
    seen: int32 (infosets,). The number of what the player has seen there.
    opponent_sequence: int32 (infosets,). A sequence of the opponent that, with the infoset, is a history.
    chance_path: int32 (infosets,). The chance events of that history.
    classes: int32 (sequences,). The class of each sequence; class 0 is in no row.
    row_end: int64 (rows,). One past the last entry of each row.
    entries: int32 (entries,). The classes of each row, row by row.
  """

  parent: Int32s
  seen: Int32s
  opponent_sequence: Int32s
  chance_path: Int32s
  classes: Int32s
  row_end: Int64s
  entries: Int32s


class _Merge(NamedTuple):
  """The arguments of `merge_columns`.

  Attributes:
    row_end: int64 (rows,). One past the last entry of each row.
    entries: int32 (entries,). The sequences of each row; replaced by its classes, without gaps.
    classes: int32 (sequences,). The class of each sequence, written here.
    size: int32 (sequences + 1,). The number of sequences of each class.
    occurrences: int32 (sequences + 1,). Workspace of zeros.
    target: int32 (sequences + 1,). Workspace.
    touched: int32 (sequences + 1,). Workspace.
  """

  row_end: Longs
  entries: Ints
  classes: Ints
  size: Ints
  occurrences: Ints
  target: Ints
  touched: Ints


@step(_Merge, single=False)
def merge_columns(record: _Merge) -> None:
  """Finds the coarsest classes such that each row is a union of classes, by refinement, row by row.

  A row splits each class that it partly contains: the part in the row becomes a new class. Classes are numbered from 1
  in the order of rows. Class 0 keeps the sequences that are in no row.
  """
  classes, size, count, target = record.classes, record.size, record.occurrences, record.target
  touched, entries = record.touched, record.entries
  # One more than its sequences, so that no row contains all of class 0.
  size[0] = classes.shape[0] + 1
  num_classes, start = 1, 0
  for row in range(record.row_end.shape[0]):
    end, some = record.row_end[row], 0
    for entry in range(start, end):
      before = classes[entries[entry]]
      if count[before] == 0:
        touched[some] = before
        some += 1
      count[before] += 1
    for place in range(some):
      before = touched[place]
      target[before] = before
      if count[before] < size[before]:
        target[before] = num_classes
        size[num_classes] = count[before]
        size[before] -= count[before]
        num_classes += 1
      count[before] = 0
    for entry in range(start, end):
      classes[entries[entry]] = target[classes[entries[entry]]]
    start = end
  start = written = 0
  for row in range(record.row_end.shape[0]):
    end = record.row_end[row]
    for entry in range(start, end):
      own = classes[entries[entry]]
      if count[own] != row + 1:
        count[own] = row + 1
        entries[written] = own
        written += 1
    record.row_end[row] = written
    start = end


class _MergeRows(NamedTuple):
  """The arguments of `merge_rows`.

  Attributes:
    row_end: int64 (rows,). One past the last entry of each row; replaced by those of different rows.
    entries: int32 (entries,). The classes of each row; replaced by those of different rows.
    number: int32 (rows,). The place of each row among different rows, written here.
    table: int32 (a power of 2,). Hash table, `_NOTHING` everywhere.
    mark: int32 (classes,). Workspace of zeros.
  """

  row_end: Longs
  entries: Ints
  number: Ints
  table: Ints
  mark: Ints


@step(_MergeRows, single=False)
def merge_rows(record: _MergeRows) -> None:
  """Finds rows that have the same classes, in any order. Rows with equal hashes are compared."""
  row_end, entries, number = record.row_end, record.entries, record.number
  table, mark = record.table, record.mark
  last_place = table.shape[0] - 1
  kept = written = start = 0
  for row in range(number.shape[0]):
    end, mixed = row_end[row], np.uint64(0)
    for entry in range(start, end):
      mark[entries[entry]] = row + 1
      bits = np.uint64(entries[entry]) * np.uint64(0x9E3779B97F4A7C15)
      mixed += bits ^ (bits >> np.uint64(29))
    place = np.int64(mixed >> np.uint64(8)) & last_place
    same = _NOTHING
    while same == _NOTHING and table[place] != _NOTHING:
      other = table[place]
      first = row_end[other - 1] if other > 0 else 0
      is_same = row_end[other] - first == end - start
      for entry in range(first, row_end[other]):
        is_same &= mark[entries[entry]] == row + 1
      if is_same:
        same = other
      place = (place + 1) & last_place
    if same == _NOTHING:
      same, table[place] = kept, kept
      for entry in range(start, end):
        entries[written] = entries[entry]
        written += 1
      row_end[kept] = written
      kept += 1
    number[row] = same
    start = end


def merged(side: Side) -> tuple[PlayerRows, Int32s]:
  """Returns a player's infosets and different rows, and the number of the row that each row has become."""
  infosets, sequences, rows = side.counts[:3].tolist()
  row_end, classes = side.row_end[:rows], np.zeros(sequences, np.int32)
  size, count, target, touched = np.zeros((4, sequences + 1), np.int32)
  columns = _Merge(row_end, side.entries, classes, size, count, target, touched)
  number = np.zeros(rows, np.int32)
  table = np.full(1 << (2 * rows).bit_length(), _NOTHING, np.int32)
  same_rows = _MergeRows(row_end, side.entries, number, table, np.zeros(sequences + 1, np.int32))
  Chain([merge_columns.on(columns), merge_rows.on(same_rows)]).run()
  kept = 1 + int(number.max(initial=-1))
  num_entries = int(row_end[kept - 1]) if kept else 0
  found = PlayerRows(
    parent=side.parent[:infosets].copy(),
    seen=side.seen[:infosets].copy(),
    opponent_sequence=side.opponent_sequence[:infosets].copy(),
    chance_path=side.chance_path[:infosets].copy(),
    classes=classes,
    row_end=row_end[:kept].copy(),
    entries=side.entries[:num_entries].copy(),
  )
  return found, number


def joined_rows(
  parts: list[PlayerRows], sequences: Int64s, opponent_sequences: Int64s
) -> PlayerRows:
  """Joins rows and infosets of different walks, given the number of sequences of both players before each part."""
  classes = np.cumsum([0, *(part.classes.max(initial=0) for part in parts)])
  entries = np.cumsum([0, *(len(part.entries) for part in parts)])
  shifted = [
    part._replace(
      parent=part.parent + np.int32(sequences[place]),
      opponent_sequence=part.opponent_sequence + np.int32(opponent_sequences[place]),
      classes=np.where(part.classes > 0, part.classes + np.int32(classes[place]), 0),
      row_end=part.row_end + entries[place],
      entries=part.entries + np.int32(classes[place]),
    )
    for place, part in enumerate(parts)
  ]
  return PlayerRows(*(np.concatenate(columns) for columns in zip(*shifted, strict=True)))
