"""Ctrl-C that waits for a good moment.

Python raises KeyboardInterrupt right after compiled code returns, before the caller can note how far it came. Between
`with DeferredInterrupt()` and its end, the first Ctrl-C only sets a flag; a second one acts at once, unless what is
inside must be done whole.
"""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class DeferredInterrupt:
  """A context that turns the first Ctrl-C into a flag, or all of them.

  In other threads than the main one, which Ctrl-C never reaches, it does nothing.

  Attributes:
    requested: whether Ctrl-C has been pressed inside.
  """

  def __init__(self, swallow: bool = False, whole: bool = False) -> None:
    """Makes the context.

    Args:
      swallow: whether an interrupt ends with the context, because the caller looks at `requested`. Otherwise it is
        handed on when the context ends, which normally raises KeyboardInterrupt.
      whole: whether every Ctrl-C waits for the end, because half of what is inside would leave a wrong state.
    """
    self.requested = False
    self._swallow, self._whole = swallow, whole
    self._waiting = 0
    self._previous: Any = None

  def __enter__(self) -> "DeferredInterrupt":
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is threading.main_thread() and callable(previous):
      self._previous = previous
      signal.signal(signal.SIGINT, self._note)
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
  ) -> None:
    if self._previous is not None:
      signal.signal(signal.SIGINT, self._previous)
      if self.requested and not self._swallow and error is None:
        for _ in range(self._waiting):
          self._previous(signal.SIGINT, None)

  def _note(self, number: int, frame: FrameType | None) -> None:
    if self.requested and not self._whole:
      self._previous(number, frame)
    self._waiting += 1
    self.requested = True
