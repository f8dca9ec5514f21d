"""Deferred Ctrl-C.

Python raises KeyboardInterrupt right after compiled code returns, before the caller can note its progress. Inside `with
DeferredInterrupt()` the first Ctrl-C only sets a flag. A second one acts at once, unless the context is `whole`.
"""

import concurrent.futures
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

import tqdm

_Result = TypeVar("_Result")


class DeferredInterrupt:
  """A context that turns the first Ctrl-C into a flag, or all of them.

  It does nothing outside the main thread, which alone receives Ctrl-C.

  Attributes:
    requested: whether Ctrl-C was pressed inside the context.
  """

  def __init__(self, swallow: bool = False, whole: bool = False) -> None:
    """Makes the context.

    Args:
      swallow: whether the end of the context discards an interrupt, since the caller checks `requested`. Otherwise the
        end of the context passes it on, which normally raises KeyboardInterrupt.
      whole: whether every Ctrl-C waits for the end, since a part of the work would leave a wrong state.
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


def interruptible(work: Callable[[], _Result], title: str) -> _Result:
  """Returns the result of a function that takes long in compiled code, during which Python does not look at Ctrl-C.

  The function runs in a thread of its own. After Ctrl-C the caller goes on at once; the thread ends with the process.

  Args:
    work: the function.
    title: what the function does and how much of it there is; shown after a second, if standard error is a terminal.
  """
  future: concurrent.futures.Future[_Result] = concurrent.futures.Future()

  def run() -> None:
    try:
      future.set_result(work())
    except BaseException as error:
      future.set_exception(error)

  thread = threading.Thread(target=run, daemon=True)
  thread.start()
  with tqdm.tqdm(
    desc=title, bar_format="{desc}, {elapsed}", delay=1.0, leave=False, disable=None
  ) as bar:
    while thread.is_alive():
      thread.join(0.2)
      bar.update(0)
  return future.result()
