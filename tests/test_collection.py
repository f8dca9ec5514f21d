"""All processes collect the same tests under the same names, as pytest-xdist requires."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).parent.parent


def test_no_name_holds_an_address(collected_ids):
  """An address in an id would differ between processes, and pytest-xdist compares the ids of quick tests only."""
  assert not [name for name in collected_ids if re.search(r"\b0x[0-9a-f]{6,}", name)]


@pytest.mark.slow
def test_two_processes_collect_the_same():
  """No name holds an address, and no order is that of a set."""
  command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "--assert=plain"]
  processes = [
    subprocess.Popen(
      [*command, "-p", "no:cacheprovider"],
      cwd=_ROOT,
      env=os.environ | {"PYTHONHASHSEED": seed},
      stdout=subprocess.PIPE,
      text=True,
    )
    for seed in ("1", "2")
  ]
  one, other = (
    [line for line in process.communicate()[0].splitlines() if "::" in line]
    for process in processes
  )
  assert [process.returncode for process in processes] == [0, 0]
  assert len(one) > 5000
  assert one == other
