"""Handling of Ctrl-C around compiled code: deferred until results are stored, or noticed while the code runs.

Python raises KeyboardInterrupt right after compiled code returns, before the caller can store the result. Inside `with
DeferredInterrupt()`, the first Ctrl-C only sets a flag. A second one acts at once, unless the context is `whole`.
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
  """Context in which the first Ctrl-C, or every Ctrl-C, only sets a flag.

  Only the main thread receives Ctrl-C; in other threads the context does nothing.

  Attributes:
    requested: bool. True after Ctrl-C was pressed inside the context.
  """

  def __init__(self, swallow: bool = False, whole: bool = False) -> None:
    """Makes the context.

    Args:
      swallow: True discards Ctrl-C at the end of the context; the caller checks `requested`. False passes it on at the
        end, which normally raises KeyboardInterrupt.
      whole: True defers every Ctrl-C, for work that would leave a wrong state if it stopped halfway. False defers only
        the first.
    """
    self.requested = False
    self._swallow, self._whole = swallow, whole
    self._num_deferred = 0
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
        for _ in range(self._num_deferred):
          self._previous(signal.SIGINT, None)

  def _note(self, number: int, frame: FrameType | None) -> None:
    if self.requested and not self._whole:
      self._previous(number, frame)
    self._num_deferred += 1
    self.requested = True


def interruptible(work: Callable[[], _Result], title: str) -> _Result:
  """Calls a function that spends a long time in compiled code, so that Ctrl-C acts at once; returns its result.

  The function runs in a new thread, because Python ignores Ctrl-C while its main thread is in compiled code. After
  Ctrl-C, the caller goes on, and the thread ends with the process.

  Args:
    work: the function.
    title: a description of the work and its size, shown on standard error after a second, if that is a terminal.
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
