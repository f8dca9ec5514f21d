"""Memory of the process and of the machine, for limits on work whose memory is not known in advance."""

import contextlib
import ctypes
import gc
import os
import sys

try:
  import resource
except ImportError:  # On Windows.
  resource = None  # type: ignore[assignment]

_STATM = "/proc/self/statm"
_MEMINFO = "/proc/meminfo"


def resident_bytes() -> int:
  """Returns the resident memory of this process in bytes.

  Outside Linux it is the peak of the resident memory, and on Windows 0.
  """
  try:
    with open(_STATM, "rb") as file:
      return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
  except OSError:
    if resource is None:
      return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def available_bytes() -> int | None:
  """Returns the available memory of the machine in bytes; None if it is unknown, as outside Linux."""
  try:
    with open(_MEMINFO) as file:
      kibibytes = [line.split()[1] for line in file if line.startswith("MemAvailable:")]
    return 1024 * int(kibibytes[0]) if kibibytes else None
  except OSError:
    return None


def give_back() -> None:
  """Returns unused memory to the operating system, if the C library can."""
  gc.collect()
  # Some C libraries lack the function, and some systems can't open the C library by None.
  with contextlib.suppress(OSError, AttributeError, TypeError):
    ctypes.CDLL(None).malloc_trim(0)
