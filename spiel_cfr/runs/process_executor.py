"""Executor of processes on this machine: if a process is killed, only the call in that process is tried again.

In a `concurrent.futures.ProcessPoolExecutor`, the death of one process ends all calls, and the call at fault is
unknown. Therefore each process here is a pool of one process.
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from types import FrameType
from typing import Any

from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed

# The number of attempts at a call if its process dies.
ATTEMPTS = 3
# In a process of the executor: the function that it is calling, or nothing.
_calls: list[Callable[..., Any]] = []


class ProcessExecutor(concurrent.futures.ThreadPoolExecutor):
  """Executor of new Python processes, which end when this process ends, even if it is killed.

  Functions, arguments and results are pickled. If a process dies, its call is tried in another process. After three
  attempts, the future raises `BrokenProcessPool`.
  """

  @typed
  def __init__(self, workers: int | None = None) -> None:
    """Makes the executor; processes start with the first calls.

    Args:
      workers: the number of processes; None for one process for each core.

    Raises:
      ArgumentError: `workers` is not an integer from 1 to 1,000.
    """
    workers = (os.cpu_count() or 1) if workers is None else workers
    super().__init__(arguments.integer(workers, "workers", 1, 1000))
    self._thread = threading.local()
    self._pools: list[concurrent.futures.ProcessPoolExecutor] = []

  def submit(
    self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
  ) -> concurrent.futures.Future[Any]:
    return super().submit(self._call, fn, args, kwargs)

  def _call(self, function: Callable[..., Any], args: Any, kwargs: Any, attempt: int = 1) -> Any:
    """Calls a function in the process that belongs to the present thread."""
    if getattr(self._thread, "pool", None) is None:
      context = multiprocessing.get_context("spawn")
      self._thread.pool = concurrent.futures.ProcessPoolExecutor(1, context, _set_up_process)
      self._pools.append(self._thread.pool)
    try:
      return self._thread.pool.submit(_call_in_process, function, args, kwargs).result()
    except BrokenProcessPool:
      self._thread.pool = None
      if attempt == ATTEMPTS:
        raise
    return self._call(function, args, kwargs, attempt + 1)

  def interrupt(self) -> None:
    """Sends the signal of Ctrl-C to the executor's processes: each raises KeyboardInterrupt in its call, and ends."""
    for pool in list(self._pools):
      # None after a shutdown.
      for number in list(pool._processes or ()):
        with contextlib.suppress(ProcessLookupError):
          os.kill(number, signal.SIGINT)

  def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
    super().shutdown(wait, cancel_futures=cancel_futures)
    for pool in list(self._pools):
      pool.shutdown(wait, cancel_futures=cancel_futures)


def _set_up_process() -> None:
  """Detaches a new process from Ctrl-C in the terminal, which is for its parent, and lets it end with its parent."""
  os.setpgrp()
  signal.signal(signal.SIGINT, _interrupt)
  threading.Thread(target=_end_with_parent, daemon=True).start()


def _call_in_process(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
  """Calls a function in a process of the executor."""
  _calls.append(function)
  try:
    return function(*args, **kwargs)
  finally:
    _calls.pop()


def _interrupt(number: int, frame: FrameType | None) -> None:
  """Raises KeyboardInterrupt in a call. Ends a process without a call, which would only print a traceback."""
  if not _calls:
    os._exit(1)
  raise KeyboardInterrupt


def _end_with_parent() -> None:
  parent = multiprocessing.parent_process()
  if parent is not None:
    parent.join()
    os._exit(1)
