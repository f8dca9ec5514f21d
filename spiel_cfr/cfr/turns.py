"""Threads that use the same solver take turns.

Every public method is a turn. So is each slice of iterations, so that whoever asks a solver that runs in another thread
waits for about a tenth of a second, or for one iteration, and sees what there is after a whole number of them.
"""

import functools
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

# A turn each, though private: slices of iterations, and what copies and pickles are made of.
_PRIVATE = ("_advance", "__getstate__")
# Made of slices.
_IN_SLICES = "run"


class Turns(NamedTuple):
  """What threads wait for.

  Attributes:
    queue: held by the one that is next; else a run would hardly ever let anybody in between two slices.
    lock: held by the one whose turn it is, which may take it again.
  """

  queue: threading.Lock
  lock: Any


def new_turns() -> Turns:
  """Returns those of one solver."""
  return Turns(threading.Lock(), threading.RLock())


def take_turns(cls: type) -> None:
  """Makes the methods of a class of solvers wait for their turn."""
  for name, method in list(vars(cls).items()):
    is_public = not name.startswith("_") and name != _IN_SLICES
    if isinstance(method, FunctionType) and (is_public or name in _PRIVATE):
      setattr(cls, name, _in_turn(method))


def _in_turn(method: Callable[..., Any]) -> Callable[..., Any]:
  @functools.wraps(method)
  def waiting(self: Any, /, *arguments: Any, **named: Any) -> Any:
    queue, lock = self._turns
    if lock._is_owned():
      return method(self, *arguments, **named)
    try:
      with queue:
        lock.acquire()
      return method(self, *arguments, **named)
    finally:
      # Ctrl-C may strike before it has the lock, and right after.
      if lock._is_owned():
        lock.release()

  return waiting
