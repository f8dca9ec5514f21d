"""Executors that need no processes."""

import concurrent.futures
import pickle
from typing import Any


class Here(concurrent.futures.Executor):
  """Calls at once, after pickling as between processes."""

  def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
    """Calls a function."""
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    fn, args, kwargs = pickle.loads(pickle.dumps((fn, args, kwargs)))
    future.set_result(fn(*args, **kwargs))
    return future
