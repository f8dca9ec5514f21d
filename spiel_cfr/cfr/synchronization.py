"""Mutual exclusion of threads that share a solver: only one of them at a time reads or writes the state.

Methods that read or write the state have the decorator `synchronized`. `Solver.run` takes the mutex anew for each slice
of iterations. Another thread that calls a method during a run therefore waits about a tenth of a second, or one long
iteration, and sees the state after a whole number of iterations.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class FairMutex:
  """The mutex of a solver. A thread that holds it may take it again, as callbacks during a run do.

  Attributes:
    lock: held by the thread that uses the solver.
    queue: held by the thread that waits first for `lock`. A run would otherwise take `lock` again before the waiting
      thread wakes up.
  """

  def __init__(self) -> None:
    """Makes a free mutex."""
    self.queue = threading.Lock()
    self.lock: Any = threading.RLock()

  def __reduce__(self) -> Any:
    """Pickles nothing: a copy is a free mutex."""
    return FairMutex, ()


def synchronized(method: F) -> F:
  """Decorator of methods of objects with a `_mutex`. The method, and its overrides in subclasses, hold the mutex."""

  @functools.wraps(method)
  def synchronized_method(self: Any, /, *arguments: Any, **named: Any) -> Any:
    queue, lock = self._mutex.queue, self._mutex.lock
    try:
      # The lock is usually free. The thread that has it does not wait again.
      if (queue.locked() and not lock._is_owned()) or not lock.acquire(False):
        with queue:
          lock.acquire()
      return method(self, *arguments, **named)
    finally:
      # Ctrl-C may come just before or just after this thread takes the lock.
      if lock._is_owned():
        lock.release()

  synchronized_method.is_synchronized = True  # type: ignore[attr-defined]
  return synchronized_method  # type: ignore[return-value]


def synchronize_overrides(cls: type) -> None:
  """Makes the methods of a class that override `synchronized` methods hold the mutex too."""
  for name, method in list(vars(cls).items()):
    if hasattr(method, "is_synchronized"):
      continue
    overridden = [vars(base).get(name) for base in cls.__mro__[1:]]
    if any(hasattr(base_method, "is_synchronized") for base_method in overridden):
      setattr(cls, name, synchronized(method))
