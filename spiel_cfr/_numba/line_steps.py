"""Steps that copy or add lines of numbers, or some of their elements."""

from typing import NamedTuple

import numpy as np

from spiel_cfr._numba.records import Indices, Line
from spiel_cfr._numba.steps import step


class Pick(NamedTuple):
  """The arguments of steps that copy or add some elements of a line to another.

  Attributes:
    source: shape (any,).
    places: uint32 (elements,). The places of the elements in the longer of the lines.
    target: shape (any,).
  """

  source: Line
  places: Indices
  target: Line


@step(Pick)
def gather_line(record: Pick) -> None:
  """Copies source[places[i]] to target[i]."""
  source, places, target = record.source, record.places, record.target
  for i in range(np.uint64(places.shape[0])):
    target[i] = source[places[i]]


@step(Pick)
def scatter_line(record: Pick) -> None:
  """Copies source[i] to target[places[i]]."""
  source, places, target = record.source, record.places, record.target
  for i in range(np.uint64(places.shape[0])):
    target[places[i]] = source[i]


@step(Pick)
def add_to_line(record: Pick) -> None:
  """Adds source[i] to target[places[i]]."""
  source, places, target = record.source, record.places, record.target
  for i in range(np.uint64(places.shape[0])):
    target[places[i]] += source[i]


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


class Within(NamedTuple):
  """The arguments of `copy_within_line`.

  Attributes:
    line: shape (any,).
    sources: uint32 (elements,). The places to read.
    targets: uint32 (elements,). The places to write.
  """

  line: Line
  sources: Indices
  targets: Indices


@step(Within)
def copy_within_line(record: Within) -> None:
  """Copies line[sources[i]] to line[targets[i]]."""
  line, sources, targets = record.line, record.sources, record.targets
  for i in range(np.uint64(sources.shape[0])):
    line[targets[i]] = line[sources[i]]
