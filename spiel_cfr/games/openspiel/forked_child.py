"""Calls of a function in a forked child process. The child may crash, hang or take all memory without harm."""

import faulthandler
import gc
import os
import pickle
import signal
import warnings
from collections.abc import Callable
from typing import Any

try:
  import resource
except ImportError:  # Windows has neither this module nor fork.
  resource = None  # type: ignore[assignment]

CAN_FORK = hasattr(os, "fork")
# Memory that a child may take in addition to that of this process, in bytes.
_EXTRA_BYTES = 2 * 2**30


class ChildDiedError(Exception):
  """A child did not return. The text says how it ended, as in "ends the process with SIGSEGV"."""


def call_in_child(function: Callable[[], Any], seconds: float) -> Any:
  """Returns the result of a function that runs in a forked child for at most `seconds` of CPU time.

  The result must be picklable.

  Raises:
    ChildDiedError: the child did not return.
  """
  report, exit_code = _fork(function, seconds, 1.5 * seconds)
  if exit_code == -signal.SIGALRM:
    # The child waited: for a lock that another thread held at the fork, or for a processor on a busy machine.
    report, exit_code = _fork(function, seconds, 6 * seconds)
  if report:
    return pickle.loads(report)
  if exit_code in (-signal.SIGALRM, -signal.SIGPROF):
    raise ChildDiedError(f"takes more than {seconds:zg} seconds")
  how = signal.Signals(-exit_code).name if exit_code < 0 else f"exit code {exit_code}"
  raise ChildDiedError(f"ends the process with {how}")


def _fork(function: Callable[[], object], seconds: float, wall_seconds: float) -> tuple[bytes, int]:
  """Returns the pickled result, empty if there is none, and the child's exit code.

  Args:
    function: the function that the child calls.
    seconds: the CPU time after which SIGPROF ends the child.
    wall_seconds: the time after which SIGALRM ends the child.
  """
  read_end, write_end = os.pipe()
  with warnings.catch_warnings():
    # Python warns of forks beside threads, since a child may wait for their locks; this child has an alarm.
    warnings.simplefilter("ignore")
    child = os.fork()
  if child == 0:
    try:
      _isolate(seconds, wall_seconds)
      report = pickle.dumps(function())
      with os.fdopen(write_end, "wb") as pipe:
        pipe.write(report)
    finally:
      os._exit(0)
  os.close(write_end)
  with os.fdopen(read_end, "rb") as pipe:
    report = pipe.read()
  return report, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _isolate(seconds: float, wall_seconds: float) -> None:
  """Sets the limits of a child, see `_fork`, and silences its death."""
  # Finalizers of the parent's objects may need locks that were held at the fork.
  gc.disable()
  signal.signal(signal.SIGALRM, signal.SIG_DFL)
  signal.signal(signal.SIGPROF, signal.SIG_DFL)
  signal.setitimer(signal.ITIMER_PROF, seconds)
  signal.setitimer(signal.ITIMER_REAL, wall_seconds)
  resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
  faulthandler.disable()
  null = os.open(os.devnull, os.O_RDWR)
  os.dup2(null, 1)
  os.dup2(null, 2)
  if os.path.exists("/proc/self/statm"):
    with open("/proc/self/statm") as statm:
      limit = int(statm.read().split()[0]) * resource.getpagesize() + _EXTRA_BYTES
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
