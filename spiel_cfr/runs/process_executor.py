"""Processes of this machine as an executor: one that is killed costs its own task alone, which is then tried again.

In a `concurrent.futures.ProcessPoolExecutor` the death of one process ends them all, and nobody can say whose fault it
was. Here each process is a pool by itself.
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from spiel_cfr._util import arguments

# How often a task is begun before it is held to be the one that ends its processes.
ATTEMPTS = 3


class ProcessExecutor(concurrent.futures.Executor):
  """An executor of new Python processes, which end when this process does, however that is."""

  def __init__(self, workers: int | None = None) -> None:
    """Starts no process before there is something to do.

    Args:
      workers: how many; as many as there are cores by default.

    Raises:
      ArgumentError: `workers` is not a positive integer, or above 1,000.
    """
    if workers is None:
      workers = os.cpu_count() or 1
    workers = arguments.integer(workers, "workers", 1, 1000)
    self._threads = concurrent.futures.ThreadPoolExecutor(workers)
    self._own = threading.local()
    self._pools: set[concurrent.futures.ProcessPoolExecutor] = set()

  def submit(
    self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
  ) -> concurrent.futures.Future[Any]:
    """Calls a function in a process that is free, or will be; function, arguments and result are pickled.

    Where its process ends, the call is tried in another one; after the third, the future raises `BrokenProcessPool`.
    """
    return self._threads.submit(self._call, fn, args, kwargs)

  def _call(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    for attempt in range(1, ATTEMPTS + 1):
      pool = getattr(self._own, "pool", None)
      if pool is None:
        pool = self._own.pool = concurrent.futures.ProcessPoolExecutor(
          1, multiprocessing.get_context("spawn"), _begin
        )
        self._pools.add(pool)
      try:
        return pool.submit(function, *args, **kwargs).result()
      except BrokenProcessPool:
        self._own.pool = None
        self._pools.discard(pool)
        if attempt == ATTEMPTS:
          raise
    return None

  def interrupt(self) -> None:
    """Sends the processes what Ctrl-C sends: runs end after a whole number of iterations."""
    for pool in list(self._pools):
      for process in list((getattr(pool, "_processes", None) or {}).values()):
        with contextlib.suppress(ProcessLookupError, ValueError):
          os.kill(process.pid, signal.SIGINT)

  def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
    """Ends the processes once their tasks are done."""
    self._threads.shutdown(wait, cancel_futures=cancel_futures)
    for pool in list(self._pools):
      pool.shutdown(wait, cancel_futures=cancel_futures)


def _begin() -> None:
  """Makes a new process deaf to the terminal's Ctrl-C, which is for its parent, and has it end with its parent."""
  if hasattr(os, "setpgrp"):
    os.setpgrp()
  threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
  parent = multiprocessing.parent_process()
  if parent is not None:
    parent.join()
    os._exit(1)
