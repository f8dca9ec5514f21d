"""Compiles every kernel of the package into its folder on disk, in as many processes as there are cores.

    python tests/support/compile_kernels.py

Tests in several processes would each compile the same kernels, which takes most of their time.
"""

import concurrent.futures
import contextlib
import gc
import importlib
import multiprocessing
import os
import pkgutil

import numba
import numpy as np

import spiel_cfr
from spiel_cfr._numba.kernels import Kernel


def _kernels() -> list[Kernel]:
  """Returns the kernels of all modules, wherever they are kept, the longest first."""
  for module in pkgutil.walk_packages(spiel_cfr.__path__, f"{spiel_cfr.__name__}."):
    importlib.import_module(module.name)
  found = [thing for thing in gc.get_objects() if isinstance(thing, Kernel)]
  return sorted(found, key=lambda kernel: -len(kernel.function.__code__.co_code))


# Read by the processes, which are copies of this one.
_KERNELS = _kernels()


def _compile(number: int, dtype: type) -> None:
  # Not every kernel is there in float32; what else doesn't compile is found by the tests.
  with contextlib.suppress(TypeError, numba.core.errors.NumbaError):
    _ = _KERNELS[number].of(dtype)._dispatcher


def main() -> None:
  forked = multiprocessing.get_context("fork")
  with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), forked) as pool:
    jobs = [
      pool.submit(_compile, number, dtype)
      for number in range(len(_KERNELS))
      for dtype in (np.float64, np.float32)
    ]
    for job in jobs:
      job.result()


if __name__ == "__main__":
  main()
