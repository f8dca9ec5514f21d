"""Memory of the process: limits for work whose memory has no known bound."""

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
  """Returns the resident memory of this process in bytes; its peak, or 0, on systems that tell only that."""
  try:
    with open(_STATM, "rb") as file:
      return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
  except OSError:
    if resource is None:
      return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def available_bytes() -> int | None:
  """Returns the available memory of the machine in bytes; None if the system does not tell."""
  try:
    with open(_MEMINFO) as file:
      found = [line.split()[1] for line in file if line.startswith("MemAvailable:")]
    return 1024 * int(found[0]) if found else None
  except OSError:
    return None


def give_back() -> None:
  """Returns unused memory to the operating system, if the C library can."""
  gc.collect()
  # Some C libraries lack the function; some systems can't open a library in this way.
  with contextlib.suppress(OSError, AttributeError, TypeError):
    ctypes.CDLL(None).malloc_trim(0)
