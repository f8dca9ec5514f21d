"""Threads that use the same solver take turns.

Every public method is a turn. So is each slice of iterations, so that whoever asks a solver that runs in another thread
waits for about a tenth of a second, or for one iteration, and sees what there is after a whole number of them. A turn
may take others inside, as callbacks in the middle of a run do.
"""

import functools
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

C = TypeVar("C", bound=type)

# A turn each, though private: slices of iterations, and what copies and pickles are made of.
_PRIVATE = ("_advance", "__getstate__", "__copy__")
# Made of slices.
_IN_SLICES = "run"


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


def take_turns(cls: C) -> C:
  """Decorator of a class whose objects have `_turns`: makes its methods wait for their turn."""
  for name, method in list(vars(cls).items()):
    is_public = not name.startswith("_") and name != _IN_SLICES
    if isinstance(method, FunctionType) and (is_public or name in _PRIVATE):
      setattr(cls, name, _in_turn(method))
  return cls


def _in_turn(method: Callable[..., Any]) -> Callable[..., Any]:
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

  return waiting
