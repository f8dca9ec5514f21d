"""Deep CFR's memory where exact sums do not fit: a uniform sample of all that was ever added (Vitter 1985)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from spiel_cfr._numba.arrays import require
from spiel_cfr.cfr.solver_state import GROWING
from spiel_cfr.deep_cfr.network import Array, Rows

_FIRST_ROOM = 1024
_ARRAYS = Rows._fields


@dataclasses.dataclass
class Reservoir:
  """Keeps at most so many of the rows that are added, each with the same chance.

  Attributes:
    features, targets, mask, weights: see `Rows`; room doubles as it is needed, and rows that are free weigh nothing.
    seen: how many rows have been added.
  """

  features: Array = dataclasses.field(metadata=GROWING)
  targets: Array = dataclasses.field(metadata=GROWING)
  mask: Array = dataclasses.field(metadata=GROWING)
  weights: Array = dataclasses.field(metadata=GROWING)
  seen: int = 0

  @classmethod
  def empty(cls, capacity: int, num_features: int, num_outputs: int) -> Self:
    """Returns one without rows."""
    room = min(capacity, _FIRST_ROOM)
    return cls(
      np.zeros((room, num_features), np.float32),
      np.zeros((room, num_outputs), np.float32),
      np.zeros((room, num_outputs), bool),
      np.zeros(room),
    )

  def add(self, rows: Rows, capacity: int, generator: np.random.Generator) -> None:
    """Adds rows; which old ones they replace once there are `capacity` is drawn."""
    count = len(rows.weights)
    self._reserve(min(self.seen + count, capacity), capacity)
    places = np.arange(self.seen, self.seen + count)
    late = places >= capacity
    # The n-th row that is ever added stays with a chance of capacity / n.
    places[late] = (generator.random(late.sum()) * (places[late] + 1)).astype(np.int64)
    kept = np.flatnonzero(places < capacity)
    for name, new in zip(_ARRAYS, rows, strict=True):
      getattr(self, name)[places[kept]] = new[kept]
    self.seen += count

  def rows(self) -> Rows:
    """Returns what is kept; rows that are still free weigh nothing, so that shapes seldom change."""
    return Rows(self.features, self.targets, self.mask, self.weights)

  def clear(self) -> None:
    """Forgets everything."""
    self.seen = 0
    self.weights[:] = 0.0

  def _reserve(self, count: int, capacity: int) -> None:
    room = len(self.weights)
    while room < count:
      room = min(2 * room, capacity)
    for name in _ARRAYS:
      old = getattr(self, name)
      if room > len(old):
        setattr(self, name, np.zeros((room, *old.shape[1:]), old.dtype))
        getattr(self, name)[: len(old)] = old


def check_reservoir(state: Mapping[str, Any], capacity: int) -> None:
  """Raises ValueError where no rows that were added lead to these fields, of the right types and dimensions."""
  room = len(state["weights"])
  require(all(len(state[name]) == room for name in _ARRAYS), "rows are whole")
  require(0 <= min(state["seen"], capacity) <= room <= capacity, "rows fit")
  require(all(np.isfinite(state[name]).all() for name in _ARRAYS), "rows are finite")
  require(state["weights"] >= 0, "weights are not negative")
