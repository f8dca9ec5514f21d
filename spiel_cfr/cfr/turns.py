"""Lock for threads that share a solver: at most one of them, whose turn it is, reads or writes the state.

Methods that read or write the state wait for their turn, see `in_turn`. So does each slice of iterations: a thread that
asks a solver which runs in another thread waits for about a tenth of a second, or for one iteration. It sees the state
after a whole number of iterations. A thread may take further turns inside its own, as callbacks in a run do.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Turns:
  """The lock of a solver, with a queue of one thread.

  Attributes:
    queue: held by the next thread. Without it, a run would hardly ever let another thread in between two slices.
    lock: held by the thread whose turn it is, which may take it again.
  """

  def __init__(self) -> None:
    """Begins with free locks."""
    self.queue = threading.Lock()
    self.lock: Any = threading.RLock()

  def __reduce__(self) -> Any:
    """Returns how to make the locks of a copy, which are free."""
    return Turns, ()


def in_turn(method: F) -> F:
  """Decorator of methods of objects with `_turns`. The method, and methods that override it, wait for their turn."""

  @functools.wraps(method)
  def waiting(self: Any, /, *arguments: Any, **named: Any) -> Any:
    queue, lock = self._turns.queue, self._turns.lock
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

  waiting.takes_turns = True  # type: ignore[attr-defined]
  return waiting  # type: ignore[return-value]


def inherit_turns(cls: type) -> None:
  """Makes the methods of a class that override methods `in_turn` wait for their turn too."""
  for name, method in list(vars(cls).items()):
    waits = hasattr(method, "takes_turns")
    overridden = [vars(base).get(name) for base in cls.__mro__[1:]]
    if any(hasattr(waiting, "takes_turns") for waiting in overridden) and not waits:
      setattr(cls, name, in_turn(method))
