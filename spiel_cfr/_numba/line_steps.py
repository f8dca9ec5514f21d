"""Steps that copy or add lines of numbers, one-dimensional arrays of floats, whole or at listed indices."""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.records import Indices, Line
from spiel_cfr._numba.steps import step


class Selection(NamedTuple):
  """The arguments of steps between a line and selected elements of another line.

  Attributes:
    source: float array (any,). The line to read.
    indices: uint32 (elements,). The indices of the selected elements: in the source for `gather_line`, in the target
      for `scatter_line` and `add_to_line`.
    target: float array (any,). The line to write.
  """

  source: Line
  indices: Indices
  target: Line


@step(Selection)
def gather_line(record: Selection) -> None:
  """Copies source[indices[i]] to target[i]."""
  source, indices, target = record.source, record.indices, record.target
  for i in range(np.uint64(indices.shape[0])):
    target[i] = source[indices[i]]


@step(Selection)
def scatter_line(record: Selection) -> None:
  """Copies source[i] to target[indices[i]]."""
  source, indices, target = record.source, record.indices, record.target
  for i in range(np.uint64(indices.shape[0])):
    target[indices[i]] = source[i]


@step(Selection)
def add_to_line(record: Selection) -> None:
  """Adds source[i] to target[indices[i]]."""
  source, indices, target = record.source, record.indices, record.target
  for i in range(np.uint64(indices.shape[0])):
    target[indices[i]] += source[i]


class Copy(NamedTuple):
  """The arguments of `copy_line`: two lines of one length."""

  source: Line
  target: Line


@step(Copy)
def copy_line(record: Copy) -> None:
  """Copies a line to another."""
  source, target = record.source, record.target
  for i in range(np.uint64(source.shape[0])):
    target[i] = source[i]


class CopyWithin(NamedTuple):
  """The arguments of `copy_within_line`.

  Attributes:
    line: float array (any,). The line to read and write.
    sources: uint32 (elements,). The indices to read.
    targets: uint32 (elements,). The indices to write.
  """

  line: Line
  sources: Indices
  targets: Indices


@step(CopyWithin)
def copy_within_line(record: CopyWithin) -> None:
  """Copies line[sources[i]] to line[targets[i]]."""
  line, sources, targets = record.line, record.sources, record.targets
  for i in range(np.uint64(sources.shape[0])):
    line[targets[i]] = line[sources[i]]
