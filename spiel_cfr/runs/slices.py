"""Divides iterations into slices that take about a tenth of a second.

Compiled code notices neither Ctrl-C nor a clock, so nobody may call it for longer than that.
"""

import time
from collections.abc import Iterator

_SECONDS = 0.1
_MOST = 1 << 14


def slices(iterations: int) -> Iterator[int]:
  """Yields numbers that sum to `iterations`, each chosen by how long the caller took with the one before."""
  at_a_time = 1
  while iterations:
    count = min(iterations, at_a_time)
    start = time.perf_counter()
    yield count
    iterations -= count
    seconds = max(time.perf_counter() - start, 1e-9)
    at_a_time = max(1, min(_MOST, int(count * min(8.0, _SECONDS / seconds))))
