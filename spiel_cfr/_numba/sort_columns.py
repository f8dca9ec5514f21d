"""Sorting of the columns of long tables, with little memory: two 64-bit integers for each column."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Int64s, Uint32s, pieces

# The rows of a table of nonnegative numbers.
TableRows = npt.NDArray[Any] | Sequence[npt.NDArray[Any]]


def distinct_columns(
  rows: TableRows, names: npt.NDArray[Any] | None = None
) -> tuple[Int64s, Uint32s]:
  """Returns the distinct columns of a table, in ascending order.

  Args:
    rows: the rows of the table.
    names: an array that maps each number in the table to the number that replaces it. By default, numbers stay.

  Returns:
    distinct: int64 (rows, distinct columns). The distinct columns.
    number: uint32 (columns,). The number of each column among the distinct ones.
  """
  ranks = _ranks(rows, names)
  number = ranks.astype(np.uint32)
  del ranks
  # A column with each number.
  example = np.zeros(1 + int(number.max(initial=0)) if len(number) else 0, np.int64)
  for piece in pieces(len(number)):
    example[number[piece]] = np.arange(piece.start, piece.stop)
  return np.array([_read(row, example, names) for row in rows], np.int64), number


def lexicographic_order(rows: TableRows) -> Uint32s:
  """Returns the indices that sort the columns of a table in ascending order; equal columns keep their order."""
  # A rank in the upper 32 bits and an index in the lower ones.
  keys = _ranks(rows)
  keys <<= 32
  keys += np.arange(len(keys))
  keys.sort()
  order: Uint32s = keys.astype(np.uint32)
  return order


def _read(row: npt.NDArray[Any], columns: Any, names: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
  """Returns the numbers of a row in a slice or a list of columns, replaced by `names`."""
  numbers: npt.NDArray[Any] = row[columns]
  return numbers if names is None else names[numbers]


def _ranks(rows: TableRows, names: npt.NDArray[Any] | None = None) -> Int64s:
  """Returns, for each column, the number of distinct columns that are smaller."""
  length = len(rows[0])
  sizes = [
    1 + max((int(_read(row, piece, names).max()) for piece in pieces(length)), default=0)
    for row in rows
  ]
  keys = np.zeros(length, np.int64)
  if math.prod(sizes) > np.iinfo(np.int64).max:
    table = np.stack([_read(row, slice(None), names) for row in rows])
    order = np.lexsort(table[::-1])
    differs_from_last = (np.diff(table[:, order], axis=1) != 0).any(axis=0)
    keys[order[1:]] = np.cumsum(differs_from_last)
    return keys
  # Sorting one number for each column is many times faster.
  for row, size in zip(rows, sizes, strict=True):
    for piece in pieces(length):
      keys[piece] = keys[piece] * size + _read(row, piece, names)
  order, last_rank, last_key = keys.argsort(), -1, -1
  for piece in pieces(length):
    ascending = keys[order[piece]]
    ranks = last_rank + np.cumsum(np.diff(ascending, prepend=last_key) != 0)
    # A key is read once, and then replaced by its rank.
    keys[order[piece]] = ranks
    last_rank, last_key = ranks[-1], ascending[-1]
  return keys
