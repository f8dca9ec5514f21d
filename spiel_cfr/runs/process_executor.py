"""Processes of this machine as an executor: one that is killed costs its own task alone, which is then tried again.

In a `concurrent.futures.ProcessPoolExecutor` the death of one process ends them all, and nothing tells which call was
at fault. Here each process is a pool by itself.
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

# How often a task is begun before it is held to be the one that ends its processes.
ATTEMPTS = 3
# In a process of the executor, the call that it is at.
_calls: list[Callable[..., Any]] = []


class ProcessExecutor(concurrent.futures.ThreadPoolExecutor):
  """An executor of new Python processes, which end when this process does, however that is.

  Function, arguments and results are pickled. Where its process ends, a call is tried in another one; after the third,
  the future raises `BrokenProcessPool`.
  """

  @typed
  def __init__(self, workers: int | None = None) -> None:
    """Starts no process before there is something to do.

    Args:
      workers: how many; as many as there are cores by default.

    Raises:
      ArgumentError: `workers` is not a positive integer, or above 1,000.
    """
    workers = (os.cpu_count() or 1) if workers is None else workers
    super().__init__(arguments.integer(workers, "workers", 1, 1000))
    self._own = threading.local()
    self._pools: list[concurrent.futures.ProcessPoolExecutor] = []

  def submit(
    self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
  ) -> concurrent.futures.Future[Any]:
    return super().submit(self._call, fn, args, kwargs)

  def _call(self, function: Callable[..., Any], args: Any, kwargs: Any, attempt: int = 1) -> Any:
    """Calls a function in the process of this thread."""
    if getattr(self._own, "pool", None) is None:
      context = multiprocessing.get_context("spawn")
      self._own.pool = concurrent.futures.ProcessPoolExecutor(1, context, _begin)
      self._pools.append(self._own.pool)
    try:
      return self._own.pool.submit(_work, function, args, kwargs).result()
    except BrokenProcessPool:
      self._own.pool = None
      if attempt == ATTEMPTS:
        raise
    return self._call(function, args, kwargs, attempt + 1)

  def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
    super().shutdown(wait, cancel_futures=cancel_futures)
    for pool in list(self._pools):
      pool.shutdown(wait, cancel_futures=cancel_futures)


def _begin() -> None:
  """Makes a new process deaf to the terminal's Ctrl-C, which is for its parent, and has it end with its parent."""
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
