"""Divides iterations into slices that take about a tenth of a second, and keeps those whole that are written in Python.

Compiled code notices neither Ctrl-C nor a clock, so that no call of it may take longer.
"""

import concurrent.futures
import threading
import time
from collections.abc import Callable, Iterator

from spiel_cfr._util.interrupt import DeferredInterrupt

_SECONDS = 0.1
_MOST = 1 << 14


class Slices:
  """Remembers how long iterations take."""

  def __init__(self) -> None:
    """Begins with one iteration."""
    self._at_a_time = 1

  def __call__(self, iterations: int) -> Iterator[int]:
    """Yields numbers that sum to `iterations`, chosen by how long the caller took with those before."""
    while iterations:
      count = min(iterations, self._at_a_time)
      start = time.perf_counter()
      yield count
      iterations -= count
      seconds = max(time.perf_counter() - start, 1e-9)
      most = min(_MOST, 8 * self._at_a_time)
      self._at_a_time = max(1, min(most, int(count * _SECONDS / seconds)))


def whole_steps(step: Callable[[int, bool], None], count: int) -> None:
  """Calls `step` with 0 to `count - 1`, and whether it is the last call.

  Ctrl-C raises KeyboardInterrupt after a whole number of calls, of which the last was told so. Python interrupts its
  main thread only, so the calls are made in another one.
  """
  interrupted = threading.Event()

  def work() -> None:
    for number in range(count):
      last = number == count - 1 or interrupted.is_set()
      step(number, last)
      if last:
        return

  with concurrent.futures.ThreadPoolExecutor(1) as thread:
    try:
      # Interrupted while its thread starts, the executor would not know that it has one to wait for.
      with DeferredInterrupt():
        running = thread.submit(work)
      running.result()
    except KeyboardInterrupt:
      interrupted.set()
      raise
