"""Time slices: calls of compiled code that are short enough for Ctrl-C and time limits, which it does not notice.

`Slices` divides iterations into slices of about a tenth of a second. `whole_steps` makes a number of calls, and stops
between two of them after Ctrl-C.
"""

import concurrent.futures
import threading
import time
from collections.abc import Callable, Iterator

from spiel_cfr._util.interrupt import DeferredInterrupt

_SECONDS_PER_SLICE = 0.1
_MOST_ITERATIONS = 1 << 14


class Slices:
  """Divider of iterations into slices of about a tenth of a second, by the measured time of earlier slices."""

  def __init__(self) -> None:
    """Makes the divider; the first slice is one iteration."""
    self._iterations_per_slice = 1

  def __call__(self, iterations: int) -> Iterator[int]:
    """Yields numbers of iterations that sum to `iterations`; measures the time until the caller asks for the next."""
    while iterations:
      count = min(iterations, self._iterations_per_slice)
      start = time.perf_counter()
      yield count
      iterations -= count
      seconds = max(time.perf_counter() - start, 1e-9)
      most = min(_MOST_ITERATIONS, 8 * self._iterations_per_slice)
      fitting = int(count * _SECONDS_PER_SLICE / seconds)
      self._iterations_per_slice = max(1, min(most, fitting))


def whole_steps(step: Callable[[int, bool], None], count: int) -> None:
  """Calls `step(number, is_last)` with numbers from 0 to `count - 1`; after Ctrl-C, makes one last call and stops.

  `is_last` is True in the last call. After it, Ctrl-C raises KeyboardInterrupt. The calls are made in another thread,
  because Python interrupts only its main thread.
  """
  interrupted = threading.Event()

  def work() -> None:
    for number in range(count):
      is_last = number == count - 1 or interrupted.is_set()
      step(number, is_last)
      if is_last:
        return

  with concurrent.futures.ThreadPoolExecutor(1) as thread:
    try:
      # If Ctrl-C interrupted `submit` while the thread starts, the executor would not wait for the thread.
      with DeferredInterrupt():
        running = thread.submit(work)
      running.result()
    except KeyboardInterrupt:
      interrupted.set()
      raise
