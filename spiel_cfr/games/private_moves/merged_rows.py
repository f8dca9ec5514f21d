"""Merging of rows: sequences that are in the same rows become one class, and equal rows become one row, exactly.

Two orders of the same failed attempts, for instance, are in the same rows. Rows of sequences become rows of *classes*.
"""

from typing import Any, NamedTuple

import numpy as np

from spiel_cfr._numba.arrays import Int32s, Int64s
from spiel_cfr._numba.kernels import inlined
from spiel_cfr._numba.steps import Chain, step
from spiel_cfr.games.openspiel.history_list import NONE
from spiel_cfr.games.private_moves.core_walk import Longs, Side
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


class PlayerRows(NamedTuple):
  """One player's infosets and rows, as walks found them.

  Attributes:
    infosets: WalkedInfosets. The infosets.
    classes: int32 (sequences,). The class of each sequence; class 0 is in no row.
    row_end: int64 (rows,). One past the last entry of each row.
    entries: int32 (entries,). The classes of each row, row by row.
  """

  infosets: WalkedInfosets
  classes: Int32s
  row_end: Int64s
  entries: Int32s


class _Refinement(NamedTuple):
  """The arguments of `refine_classes`.

  Attributes:
    row_end: int64 (rows,). One past the last entry of each row.
    entries: int32 (entries,). The sequences of each row. The kernel replaces them by the row's classes, without gaps.
    classes: int32 (sequences,). The class of each sequence, written by the kernel.
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


@inlined
def _count_by_class(record: _Refinement, start: int, end: int) -> Any:
  """Counts the sequences of a row by class. Writes the classes to `touched`, and returns their number."""
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
  """Chooses the class of the sequences in a row: a new class, unless all sequences of the old class are in the row.

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
  """Replaces the sequences of each row by their classes; a class occurs once."""
  entries, last_row = record.entries, record.occurrences
  start = written = 0
  for row in range(record.row_end.shape[0]):
    end = record.row_end[row]
    for entry in range(start, end):
      number = record.classes[entries[entry]]
      if last_row[number] != row + 1:
        last_row[number] = row + 1
        entries[written] = number
        written += 1
    record.row_end[row] = written
    start = end


@step(_Refinement, single=False)
def refine_classes(record: _Refinement) -> None:
  """Finds the coarsest classes such that each row is a union of classes, by refinement, row by row.

  A row splits each class that it partly contains: the sequences in the row become a new class. Classes are numbered
  from 1 on in the order of rows. Class 0 keeps the sequences that are in no row.
  """
  classes, entries = record.classes, record.entries
  # One more than its sequences, so that no row contains all of class 0.
  record.size[0] = classes.shape[0] + 1
  num_classes, start = 1, 0
  for row in range(record.row_end.shape[0]):
    end = record.row_end[row]
    num_touched = _count_by_class(record, start, end)
    num_classes = _split_classes(record, num_touched, num_classes)
    for entry in range(start, end):
      classes[entries[entry]] = record.target[classes[entries[entry]]]
    start = end
  _replace_sequences_by_classes(record)


class _RowMerge(NamedTuple):
  """The arguments of `merge_rows`.

  Attributes:
    row_end: int64 (rows,). One past the last entry of each row. The kernel replaces it by that of different rows.
    entries: int32 (entries,). The classes of each row. The kernel replaces them by those of different rows.
    number: int32 (rows,). The place of each row among different rows, written by the kernel.
    table: int32 (a power of 2,). Hash table of different rows; `NONE` everywhere at the beginning.
    mark: int32 (classes,). Workspace of zeros.
  """

  row_end: Longs
  entries: Ints
  number: Ints
  table: Ints
  mark: Ints


@inlined
def _mark_and_hash(record: _RowMerge, row: int, start: int, end: int) -> Any:
  """Marks the classes of a row, and returns a hash that does not depend on their order."""
  mixed = np.uint64(0)
  for entry in range(start, end):
    record.mark[record.entries[entry]] = row + 1
    bits = np.uint64(record.entries[entry]) * np.uint64(0x9E3779B97F4A7C15)
    mixed += bits ^ (bits >> np.uint64(29))
  return np.int64(mixed >> np.uint64(8))


@inlined
def _has_marked_classes(record: _RowMerge, row: int, length: int, other: int) -> Any:
  """Returns whether another row has the classes of a row, which is marked and has `length` classes."""
  first = record.row_end[other - 1] if other > 0 else 0
  result = record.row_end[other] - first == length
  for entry in range(first, record.row_end[other]):
    result &= record.mark[record.entries[entry]] == row + 1
  return result


@step(_RowMerge, single=False)
def merge_rows(record: _RowMerge) -> None:
  """Finds rows that have the same classes, in any order. Rows with equal hashes are compared."""
  row_end, entries, table = record.row_end, record.entries, record.table
  last_place = table.shape[0] - 1
  num_rows = written = start = 0
  for row in range(record.number.shape[0]):
    end = row_end[row]
    place = _mark_and_hash(record, row, start, end) & last_place
    same = NONE
    while same == NONE and table[place] != NONE:
      if _has_marked_classes(record, row, end - start, table[place]):
        same = table[place]
      place = (place + 1) & last_place
    if same == NONE:
      same, table[place] = num_rows, num_rows
      for entry in range(start, end):
        entries[written] = entries[entry]
        written += 1
      row_end[num_rows] = written
      num_rows += 1
    record.number[row] = same
    start = end


def merged(side: Side) -> tuple[PlayerRows, Int32s]:
  """Returns a player's infosets and different rows, and the number of the row that each row becomes."""
  num_infosets, num_sequences, num_rows = side.counts[:3].tolist()
  row_end, classes = side.row_end[:num_rows], np.zeros(num_sequences, np.int32)
  size, occurrences, target, touched = np.zeros((4, num_sequences + 1), np.int32)
  refinement = _Refinement(row_end, side.entries, classes, size, occurrences, target, touched)
  number = np.zeros(num_rows, np.int32)
  table = np.full(1 << (2 * num_rows).bit_length(), NONE, np.int32)
  mark = np.zeros(num_sequences + 1, np.int32)
  row_merge = _RowMerge(row_end, side.entries, number, table, mark)
  Chain([refine_classes.on(refinement), merge_rows.on(row_merge)]).run()
  num_different = 1 + int(number.max(initial=-1))
  num_entries = int(row_end[num_different - 1]) if num_different else 0
  rows = PlayerRows(
    infosets=WalkedInfosets(
      parent=side.parent[:num_infosets].copy(),
      seen=side.seen[:num_infosets].copy(),
      opponent_sequence=side.opponent_sequence[:num_infosets].copy(),
      chance_path=side.chance_path[:num_infosets].copy(),
    ),
    classes=classes,
    row_end=row_end[:num_different].copy(),
    entries=side.entries[:num_entries].copy(),
  )
  return rows, number


def joined_rows(
  batches: list[PlayerRows], num_sequences: Int64s, num_opponent_sequences: Int64s
) -> PlayerRows:
  """Joins a player's infosets and rows of several batches of walks.

  Args:
    batches: the infosets and rows of each batch, numbered from 0.
    num_sequences: int64 (batches,). The number of the player's sequences before each batch.
    num_opponent_sequences: int64 (batches,). The number of the opponent's sequences before each batch.
  """
  num_classes = np.cumsum([0, *(rows.classes.max(initial=0) for rows in batches)])
  num_entries = np.cumsum([0, *(len(rows.entries) for rows in batches)])
  infosets = [rows.infosets for rows in batches]
  return PlayerRows(
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
        np.where(rows.classes > 0, rows.classes + np.int32(before), 0)
        for rows, before in zip(batches, num_classes, strict=False)
      ]
    ),
    row_end=_joined([rows.row_end for rows in batches], num_entries),
    entries=_joined([rows.entries for rows in batches], num_classes),
  )


def _joined(columns: list[Any], before: Int64s) -> Any:
  """Joins the columns of batches, and adds to each batch's numbers those before it."""
  return np.concatenate(
    [column + column.dtype.type(number) for column, number in zip(columns, before, strict=False)]
  )
