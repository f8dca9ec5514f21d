"""Memory of the process, by which work without a known bound stops in time."""

import contextlib
import ctypes
import gc
import os
import sys

try:
  import resource
except ImportError:  # There is none on Windows.
  resource = None  # type: ignore[assignment]

_STATM = "/proc/self/statm"
_MEMINFO = "/proc/meminfo"


def resident_bytes() -> int:
  """Returns the resident memory of this process; where only its peak can be had, that; 0 where not even that."""
  try:
    with open(_STATM, "rb") as file:
      return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
  except OSError:
    if resource is None:
      return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def available_bytes() -> int | None:
  """Returns the memory that the machine has left for programs; None where the system does not say."""
  try:
    with open(_MEMINFO) as file:
      found = [line.split()[1] for line in file if line.startswith("MemAvailable:")]
    return 1024 * int(found[0]) if found else None
  except OSError:
    return None


def give_back() -> None:
  """Returns memory that is no longer used to the operating system, where the C library can."""
  gc.collect()
  # Not every C library has it, nor every system a library that can be opened like this.
  with contextlib.suppress(OSError, AttributeError, TypeError):
    ctypes.CDLL(None).malloc_trim(0)
