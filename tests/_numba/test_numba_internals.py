"""A numba without its unstable internals: slower, the same bytes."""

import os
import subprocess
import sys

import pytest

import spiel_cfr

_WITHOUT = {
  "lock": "numba.core.compiler_lock = types.SimpleNamespace()",
  "options": "numba.core.options = types.SimpleNamespace()",
  "compile results": """
from spiel_cfr._numba import cache
class Dispatcher:
  def __init__(self, original):
    self.py_func, self.original = original.py_func, original
  def __call__(self, *arguments):
    return self.original(*arguments)
original = cache.compiled
cache.compiled = lambda *arguments: Dispatcher(original(*arguments))
""",
}
_SOLVE = """
import types
import numba
import numba.core.compiler_lock, numba.core.options
{without}
import spiel_cfr
solver = spiel_cfr.CFRSolver("kuhn_poker")
solver.run(20)
print(solver.average_probabilities().tobytes().hex())
"""


@pytest.mark.slow
@pytest.mark.parametrize("missing", _WITHOUT)
def test_without_unstable_internals_of_numba(missing, tmp_path):
  environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(20)
  # Compiled, and then from disk.
  for _ in range(2):
    printed = subprocess.check_output(
      [sys.executable, "-c", _SOLVE.format(without=_WITHOUT[missing])],
      env=environment,
      text=True,
    )
    assert printed.strip() == solver.average_probabilities().tobytes().hex()
