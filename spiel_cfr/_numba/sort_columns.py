"""Sorting of the columns of long tables, in the memory of two 64-bit integers a column."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr._numba.arrays import Int64s, Uint32s, pieces

# The rows of a table of nonnegative numbers.
Rows = npt.NDArray[Any] | Sequence[npt.NDArray[Any]]


def distinct_columns(rows: Rows, names: npt.NDArray[Any] | None = None) -> tuple[Int64s, Uint32s]:
  """Finds the distinct columns of a table.

  Args:
    rows: the rows of the table.
    names: the number that replaces each number; by default, itself.

  Returns:
    The distinct columns in ascending order, and for each column the place of its value among them.
  """
  ranks = _ranks(rows, names)
  which = ranks.astype(np.uint32)
  del ranks
  example = np.zeros(1 + int(which.max(initial=0)) if len(which) else 0, np.int64)
  for some in pieces(len(which)):
    example[which[some]] = np.arange(some.start, some.stop)
  return np.array([_read(row, example, names) for row in rows], np.int64), which


def lexicographic_order(rows: Rows) -> Uint32s:
  """Returns the places of the columns of a table in ascending order; equal columns keep their order."""
  places = _ranks(rows)
  places <<= 32
  places += np.arange(len(places))
  places.sort()
  order: Uint32s = places.astype(np.uint32)
  return order


def _read(row: npt.NDArray[Any], some: Any, names: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
  numbers: npt.NDArray[Any] = row[some]
  return numbers if names is None else names[numbers]


def _ranks(rows: Rows, names: npt.NDArray[Any] | None = None) -> Int64s:
  """Returns the number of smaller distinct columns for each column."""
  length = len(rows[0])
  sizes = [
    1 + max((int(_read(row, some, names).max()) for some in pieces(length)), default=0)
    for row in rows
  ]
  keys = np.zeros(length, np.int64)
  if math.prod(sizes) > np.iinfo(np.int64).max:
    table = np.stack([_read(row, slice(None), names) for row in rows])
    order = np.lexsort(table[::-1])
    new = (np.diff(table[:, order], axis=1) != 0).any(axis=0)
    keys[order[1:]] = np.cumsum(new)
    return keys
  # Sorting single numbers is many times faster.
  for row, size in zip(rows, sizes, strict=True):
    for some in pieces(length):
      keys[some] = keys[some] * size + _read(row, some, names)
  order, rank, before = keys.argsort(), -1, -1
  for some in pieces(length):
    ascending = keys[order[some]]
    ranks = rank + np.cumsum(np.diff(ascending, prepend=before) != 0)
    # Each key is read once, then replaced by its rank.
    keys[order[some]] = ranks
    rank, before = ranks[-1], ascending[-1]
  return keys
