"""Reservoir sampling (Vitter 1985): a uniform sample of all training data so far, for games too large to compile."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from spiel_cfr._numba.arrays import require
from spiel_cfr.cfr.solver_state import GROWING
from spiel_cfr.deep_cfr.network import Array, Rows

# The first length of arrays.
_FIRST_ROOM = 1024
_ARRAYS = Rows._fields


@dataclasses.dataclass
class Reservoir:
  """Uniform sample of the rows added so far. The arrays grow by doubling; unused rows have weight 0.

  Attributes:
    features: float32 (rows, features). The inputs.
    targets: float32 (rows, outputs). The outputs to learn.
    mask: bool (rows, outputs). True for the targets that count.
    weights: float64 (rows,). The weight of each row.
    seen: int. The number of rows added so far, including those that were dropped.
  """

  features: Array = dataclasses.field(metadata=GROWING)
  targets: Array = dataclasses.field(metadata=GROWING)
  mask: Array = dataclasses.field(metadata=GROWING)
  weights: Array = dataclasses.field(metadata=GROWING)
  seen: int = 0

  @classmethod
  def empty(cls, capacity: int, num_features: int, num_outputs: int) -> Self:
    """Returns a reservoir without rows."""
    room = min(capacity, _FIRST_ROOM)
    return cls(
      np.zeros((room, num_features), np.float32),
      np.zeros((room, num_outputs), np.float32),
      np.zeros((room, num_outputs), bool),
      np.zeros(room),
    )

  def add(self, rows: Rows, capacity: int, generator: np.random.Generator) -> None:
    """Adds rows. In a full reservoir of `capacity` rows, new rows replace rows drawn at random, or are dropped."""
    count = len(rows.weights)
    self._reserve(min(self.seen + count, capacity), capacity)
    slots = np.arange(self.seen, self.seen + count)
    beyond = slots >= capacity
    # The n-th row is stored with probability capacity / n.
    slots[beyond] = (generator.random(beyond.sum()) * (slots[beyond] + 1)).astype(np.int64)
    stored = np.flatnonzero(slots < capacity)
    for name, new in zip(_ARRAYS, rows, strict=True):
      getattr(self, name)[slots[stored]] = new[stored]
    self.seen += count

  def rows(self) -> Rows:
    """Returns all rows. Unused rows, of weight 0, are included, so that shapes seldom change."""
    return Rows(self.features, self.targets, self.mask, self.weights)

  def clear(self) -> None:
    """Removes all rows."""
    self.seen = 0
    self.weights[:] = 0.0

  def _reserve(self, count: int, capacity: int) -> None:
    """Makes room for `count` rows."""
    room = len(self.weights)
    while room < count:
      room = min(2 * room, capacity)
    for name in _ARRAYS:
      old = getattr(self, name)
      if room > len(old):
        setattr(self, name, np.zeros((room, *old.shape[1:]), old.dtype))
        getattr(self, name)[: len(old)] = old


def check_reservoir(state: Mapping[str, Any], capacity: int) -> None:
  """Raises ValueError for fields that no reservoir can have. Their types and dimensions must be right."""
  room = len(state["weights"])
  require(all(len(state[name]) == room for name in _ARRAYS), "rows are whole")
  require(0 <= min(state["seen"], capacity) <= room <= capacity, "rows fit")
  require(all(np.isfinite(state[name]).all() for name in _ARRAYS), "rows are finite")
  require(state["weights"] >= 0, "weights are not negative")
