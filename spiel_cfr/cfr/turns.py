"""Threads that use the same solver take turns.

Methods that read or write the state are turns, see `in_turn`. So is each slice of iterations: a thread that asks a
solver that runs in another thread waits for about a tenth of a second, or for one iteration, and sees the state after a
whole number of them. A turn may take others inside, as callbacks in the middle of a run do.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Turns:
  """What threads wait for.

  Attributes:
    queue: held by the one that is next; else a run would hardly ever let anybody in between two slices.
    lock: held by the one whose turn it is, which may take it again.
  """

  def __init__(self) -> None:
    """Begins with nobody's turn."""
    self.queue = threading.Lock()
    self.lock: Any = threading.RLock()

  def __reduce__(self) -> Any:
    """A copy is another's."""
    return Turns, ()


def in_turn(method: F) -> F:
  """Decorator of a method of objects that have `_turns`: it waits for its turn, and so do methods that override it."""

  @functools.wraps(method)
  def waiting(self: Any, /, *arguments: Any, **named: Any) -> Any:
    queue, lock = self._turns.queue, self._turns.lock
    try:
      # Most often nobody else is there. Whoever has the lock need not wait again.
      if (queue.locked() and not lock._is_owned()) or not lock.acquire(False):
        with queue:
          lock.acquire()
      return method(self, *arguments, **named)
    finally:
      # Ctrl-C may strike before it has the lock, and right after.
      if lock._is_owned():
        lock.release()

  waiting.takes_turns = True  # type: ignore[attr-defined]
  return waiting  # type: ignore[return-value]


def inherit_turns(cls: type) -> None:
  """Makes the methods of a class that override methods `in_turn` wait for their turn too."""
  for name, method in list(vars(cls).items()):
    waits = hasattr(method, "takes_turns")
    overridden = [vars(base).get(name) for base in cls.__mro__[1:]]
    if any(hasattr(each, "takes_turns") for each in overridden) and not waits:
      setattr(cls, name, in_turn(method))
