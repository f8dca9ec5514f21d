"""Attacks, struck in a process of their own, and what comes of them."""

import errno
import json
import os
import pathlib
import resource
import select
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

import spiel_cfr
from spiel_cfr import errors

VERDICTS = ("right", "named", "wrong")
# An attack has so many seconds of CPU time, so many on the wall, and the process so many bytes.
_SECONDS, _WALL_SECONDS, _BYTES = 20.0, 120.0, 8 << 30
_PACKAGE = str(pathlib.Path(spiel_cfr.__file__).parent)


class Attack(NamedTuple):
  """A call.

  Attributes:
    room: the part of the library that it is about.
    name: the call in words.
    strike: makes the call; returns the fault of its result, "" if it is right, None if there is nothing to attack.
  """

  room: str
  name: str
  strike: Callable[[], str | None]


class Outcome(NamedTuple):
  """Outcome of an attack: its room and name, one of `VERDICTS`, and why."""

  room: str
  name: str
  verdict: str
  why: str


class _Late(BaseException):
  """Raised in an attack that takes too long; `except Exception` does not catch it."""


def outcomes(attacks: Sequence[Attack], seconds: float) -> Iterator[Outcome]:
  """Strikes one attack after the other, for so many seconds. Where a process dies or hangs, another one goes on."""
  end, done = time.monotonic() + seconds, 0
  while True:
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory() as folder, os.fdopen(reader, "rb", buffering=0) as lines:
      child = os.fork()
      if not child:
        _strike_all(attacks[done:], folder, writer, end)
      os.close(writer)
      while select.select([lines], [], [], _WALL_SECONDS)[0] and (line := lines.readline()):
        verdict, why = json.loads(line)
        if verdict in VERDICTS:
          yield Outcome(*attacks[done][:2], verdict, why)
        done += 1
      os.kill(child, signal.SIGKILL)
      status = os.waitpid(child, 0)[1]
    if status == 0:
      return
    yield Outcome(*attacks[done][:2], "wrong", f"the process hangs or dies, status {status}")
    done += 1


def _strike_all(attacks: Sequence[Attack], folder: str, writer: int, end: float) -> NoReturn:
  """Strikes attacks in this child process, in a folder of its own. Outcomes are lines of the pipe."""
  os.chdir(folder)
  null = os.open(os.devnull, os.O_RDWR)
  for number in (0, 1, 2):
    os.dup2(null, number)
  resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
  resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
  signal.signal(signal.SIGINT, signal.default_int_handler)
  signal.signal(signal.SIGVTALRM, _late)
  for attack in attacks:
    if time.monotonic() > end:
      break
    os.write(writer, json.dumps(judge(attack)).encode() + b"\n")
  os._exit(0)


def _late(number: int, frame: Any) -> None:
  raise _Late


def judge(attack: Attack) -> tuple[str, str]:
  """Strikes, and returns a verdict and why; no verdict if there was nothing to attack."""
  np.random.seed(0)  # noqa: NPY002 - the state that solvers draw their seeds from
  try:
    with warnings.catch_warnings():
      warnings.simplefilter("error")
      warnings.filterwarnings("ignore", "os.fork")
      for ours in UserWarning.__subclasses__():
        if ours.__module__.startswith("spiel_cfr"):
          warnings.simplefilter("ignore", ours)
      signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS, 1.0)
      try:
        wrong = attack.strike()
      finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    return ("wrong", wrong) if wrong else ("" if wrong is None else "right", "")
  except _Late:
    return "wrong", f"it takes more than {_SECONDS:g} seconds"
  except BaseException as error:
    return ("named" if is_named(error) else "wrong"), _words(error)


def is_named(error: BaseException) -> bool:
  """Returns whether an exception says in a sentence of ours what is wrong, or is the system's about a file."""
  if isinstance(error, errors.SpielCFRError):
    return bool(str(error))
  if isinstance(error, OSError) and error.errno not in (None, errno.EMFILE):
    return True
  last = traceback.extract_tb(error.__traceback__)[-1]
  is_ours = last.filename.startswith(_PACKAGE) and (last.line or "").startswith("raise ")
  return is_ours and isinstance(error, TypeError | ValueError | OSError)


def _words(error: BaseException) -> str:
  """Returns an exception with the place that let it out."""
  frames = traceback.extract_tb(error.__traceback__)
  ours = [frame for frame in frames if frame.filename.startswith(_PACKAGE)]
  where = ours[-1] if ours else frames[-1]
  place = f"{pathlib.Path(where.filename).name}:{where.lineno}"
  return f"{type(error).__name__} at {place}: {error}"[:300]
