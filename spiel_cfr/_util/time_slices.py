"""Time slices: numbers of iterations that take about a tenth of a second, and steps that Ctrl-C does not interrupt.

Compiled code notices neither Ctrl-C nor a clock, so no call of it may take longer.
"""

import concurrent.futures
import threading
import time
from collections.abc import Callable, Iterator

from spiel_cfr._util.interrupt import DeferredInterrupt

_SECONDS = 0.1
_MOST = 1 << 14


class Slices:
  """Divides iterations into slices of about a tenth of a second, by the time of earlier slices."""

  def __init__(self) -> None:
    """Begins with a slice of one iteration."""
    self._at_a_time = 1

  def __call__(self, iterations: int) -> Iterator[int]:
    """Yields the lengths of slices, which sum to `iterations`; measures the caller's time between them."""
    while iterations:
      count = min(iterations, self._at_a_time)
      start = time.perf_counter()
      yield count
      iterations -= count
      seconds = max(time.perf_counter() - start, 1e-9)
      most = min(_MOST, 8 * self._at_a_time)
      self._at_a_time = max(1, min(most, int(count * _SECONDS / seconds)))


def whole_steps(step: Callable[[int, bool], None], count: int) -> None:
  """Calls `step(number, last)` for numbers from 0 to `count - 1`; `last` is True in the last call.

  Ctrl-C makes the next call the last one, and then raises KeyboardInterrupt. Python interrupts its main thread only, so
  the calls are made in another thread.
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
      # An executor that is interrupted while its thread starts would not wait for the thread.
      with DeferredInterrupt():
        running = thread.submit(work)
      running.result()
    except KeyboardInterrupt:
      interrupted.set()
      raise
