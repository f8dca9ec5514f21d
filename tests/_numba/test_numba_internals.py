"""A numba that lacks what it doesn't promise to keep: slower, the same bytes."""

import os
import subprocess
import sys

import pytest

import spiel_cfr

_WITHOUT = {
  "FunctionModel": "import numba.experimental.function_type as f; del f.FunctionModel",
  "global_compiler_lock": "import numba.core.compiler_lock as f; del f.global_compiler_lock",
  "DefaultOptions": "import numba.core.options as f; del f.DefaultOptions",
  "entry_point": (
    "import numba.core.dispatcher as f\n"
    "class Overloads(dict):\n  def __getitem__(self, key): raise KeyError\n"
    "original = f.Dispatcher.add_overload\n"
    "def add(self, result):\n  original(self, result)\n  self.overloads = Overloads(self.overloads)\n"
    "f.Dispatcher.add_overload = add"
  ),
}
_SOLVE = """
import spiel_cfr
solver = spiel_cfr.CFRSolver("kuhn_poker")
solver.run(20)
print(solver.average_probabilities().tobytes().hex())
"""


@pytest.mark.slow
@pytest.mark.parametrize("missing", _WITHOUT)
def test_without_what_numba_does_not_promise(missing, tmp_path):
  environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
  solver = spiel_cfr.CFRSolver("kuhn_poker")
  solver.run(20)
  # Compiled, and then from disk.
  for _ in range(2):
    printed = subprocess.check_output(
      [sys.executable, "-c", f"import numba\n{_WITHOUT[missing]}\n{_SOLVE}"],
      env=environment,
      text=True,
    )
    assert printed.strip() == solver.average_probabilities().tobytes().hex()
