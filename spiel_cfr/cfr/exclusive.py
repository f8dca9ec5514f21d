"""One thread at a time: methods of a solver of which only one may be under way."""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from spiel_cfr import errors

P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")

# The attribute that says that a solver is running.
RUNNING = "_running"


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
  """Decorator of methods of a solver of which only one may be under way, in one thread."""

  @functools.wraps(method)
  def alone(self: S, /, *arguments: P.args, **named: P.kwargs) -> R:
    attributes = self.__dict__
    # Unlike what a lock would note, this is undone wherever Ctrl-C strikes.
    token = object()
    try:
      # One operation of a dictionary, so that no other thread comes in between.
      if attributes.setdefault(RUNNING, token) is not token:
        raise errors.ConcurrentUseError(
          f"This {type(self).__name__} runs already. Give each thread a solver of its own: copy.copy(solver) shares "
          "the compiled game."
        )
      return method(self, *arguments, **named)
    finally:
      if attributes.get(RUNNING) is token:
        del attributes[RUNNING]

  return alone
