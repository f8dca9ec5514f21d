"""Environment of a result: versions of packages, and a description of the machine."""

import importlib.metadata
import os
import platform

_PACKAGES = ("spiel_cfr", "open_spiel", "numpy", "numba")


def versions() -> dict[str, str]:
  """Returns the versions of Python and of the packages that results depend on."""
  result = {"python": platform.python_version()}
  for package in _PACKAGES:
    try:
      result[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      result[package] = "not installed"  # The package runs from its source.
  return result


def machine() -> dict[str, str | int | None]:
  """Returns the operating system, the processor and the number of cores."""
  return {
    "system": platform.platform(),
    "processor": platform.processor() or platform.machine(),
    "cores": os.cpu_count(),
  }
