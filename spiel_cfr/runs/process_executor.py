"""Executor of processes on this machine: if a process is killed, only its own call is tried again.

In a `concurrent.futures.ProcessPoolExecutor`, the death of one process ends all calls, and the call at fault is
unknown. Here each process is a pool of its own.
"""

import concurrent.futures
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from types import FrameType
from typing import Any

from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed

# The most attempts at a call whose process dies.
ATTEMPTS = 3
# In a process of the executor, the call that it is at.
_calls: list[Callable[..., Any]] = []


class ProcessExecutor(concurrent.futures.ThreadPoolExecutor):
  """Executor of new Python processes. They end when this process ends, even if it is killed.

  Functions, arguments and results are pickled. If a process dies, its call is tried in another one; after three
  attempts, the future raises `BrokenProcessPool`.
  """

  @typed
  def __init__(self, workers: int | None = None) -> None:
    """Makes the executor; processes start with the first calls.

    Args:
      workers: the number of processes; None for one a core.

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
    """Calls a function in the process of this thread."""
    if getattr(self._thread, "pool", None) is None:
      context = multiprocessing.get_context("spawn")
      self._thread.pool = concurrent.futures.ProcessPoolExecutor(1, context, _begin)
      self._pools.append(self._thread.pool)
    try:
      return self._thread.pool.submit(_work, function, args, kwargs).result()
    except BrokenProcessPool:
      self._thread.pool = None
      if attempt == ATTEMPTS:
        raise
    return self._call(function, args, kwargs, attempt + 1)

  def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
    super().shutdown(wait, cancel_futures=cancel_futures)
    for pool in list(self._pools):
      pool.shutdown(wait, cancel_futures=cancel_futures)


def _begin() -> None:
  """Makes a new process ignore the terminal's Ctrl-C, which is meant for its parent, and end with its parent."""
  os.setpgrp()
  signal.signal(signal.SIGINT, _interrupt)
  threading.Thread(target=_end_with_parent, daemon=True).start()


def _work(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
  """Calls a function in a process of the executor."""
  _calls.append(function)
  try:
    return function(*args, **kwargs)
  finally:
    _calls.pop()


def _interrupt(number: int, frame: FrameType | None) -> None:
  """Raises KeyboardInterrupt in a call; ends a process that waits for one, which would print a traceback."""
  if not _calls:
    os._exit(1)
  raise KeyboardInterrupt


def _end_with_parent() -> None:
  parent = multiprocessing.parent_process()
  if parent is not None:
    parent.join()
    os._exit(1)
