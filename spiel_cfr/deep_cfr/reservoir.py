"""Deep CFR's memory where exact sums do not fit: a uniform sample of all that was ever added (Vitter 1985)."""

from collections.abc import Mapping

import numpy as np

from spiel_cfr._numba.arrays import require
from spiel_cfr.deep_cfr.network import Array, Rows

_FIRST_ROOM = 1024


class Reservoir:
  """Keeps at most `capacity` of the rows that are added, each with the same chance.

  Attributes:
    seen: how many rows have been added.
  """

  def __init__(self, capacity: int, num_features: int, num_outputs: int) -> None:
    """Begins empty; room doubles as it is needed."""
    self.seen = 0
    self._capacity = capacity
    room = min(capacity, _FIRST_ROOM)
    self._rows = Rows(
      np.zeros((room, num_features), np.float32),
      np.zeros((room, num_outputs), np.float32),
      np.zeros((room, num_outputs), bool),
      np.zeros(room),
    )

  def add(self, rows: Rows, generator: np.random.Generator) -> None:
    """Adds rows; which old ones they replace is drawn."""
    count = len(rows.weights)
    self._reserve(self.seen + count)
    places = np.arange(self.seen, self.seen + count)
    late = places >= self._capacity
    # The n-th row that is ever added stays with a chance of capacity / n.
    places[late] = (generator.random(late.sum()) * (places[late] + 1)).astype(np.int64)
    kept = np.flatnonzero(places < self._capacity)
    for array, new in zip(self._rows, rows, strict=True):
      array[places[kept]] = new[kept]
    self.seen += count

  def rows(self) -> Rows:
    """Returns what is kept; rows that are still free weigh nothing, so that shapes seldom change."""
    return self._rows

  def clear(self) -> None:
    """Forgets everything."""
    self.seen = 0
    self._rows.weights[:] = 0.0

  def state(self) -> dict[str, Array]:
    """Returns a copy of all that it is, by name."""
    rows = {name: array.copy() for name, array in self._rows._asdict().items()}
    return {"seen": np.array([self.seen])} | rows

  def check(self, state: Mapping[str, Array]) -> None:
    """Checks what is to be taken over, arrays of the right types and of the right shapes but for their lengths.

    Raises:
      ValueError: it is of no reservoir like this one.
    """
    require(len(state["seen"]) == 1, "there is one number of rows seen")
    seen, room = int(state["seen"][0]), len(state["weights"])
    require(all(len(state[name]) == room for name in Rows._fields), "rows are whole")
    require(min(seen, self._capacity) <= room <= self._capacity, "rows fit")
    for name in ("features", "targets", "weights"):
      require(np.isfinite(state[name]), f"{name} are finite")
    require(state["weights"] >= 0, "weights are not negative")
    require(seen >= 0, "the number of rows seen is not negative")

  def take_over(self, state: Mapping[str, Array]) -> None:
    """Becomes what `state` has returned."""
    self.seen = int(state["seen"][0])
    self._rows = Rows(**{name: state[name].copy() for name in Rows._fields})

  def _reserve(self, count: int) -> None:
    room = len(self._rows.weights)
    wanted = room
    while wanted < min(count, self._capacity):
      wanted = min(2 * wanted, self._capacity)
    if wanted > room:
      self._rows = Rows(*(_longer(array, wanted) for array in self._rows))


def _longer(array: Array, length: int) -> Array:
  result = np.zeros((length, *array.shape[1:]), array.dtype)
  result[: len(array)] = array
  return result
