"""Runs programs like `python FILE`, in copies of a process that has imported the slow modules."""

import functools
import json
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn


def run(
  path: pathlib.Path,
  flags: Sequence[str],
  cwd: pathlib.Path,
  typed: str | None,
  timeout: int,
  missing: str | None = None,
) -> tuple[int, str, str]:
  """Runs a program.

  Args:
    path: its file.
    flags: what it is given.
    cwd: in which folder.
    typed: the typed input.
    timeout: after how many seconds it is ended.
    missing: a package that can't be imported, as if it were not installed.

  Returns:
    Its exit status, output and errors.
  """
  server = _server()
  assert server.stdin is not None
  assert server.stdout is not None
  with tempfile.TemporaryDirectory() as name:
    files = [pathlib.Path(name, each) for each in ("in", "out", "err")]
    for file in files:
      file.write_text(typed or "")
    order = {
      "argv": [str(path), *flags],
      "cwd": str(cwd),
      "files": list(map(str, files)),
      "timeout": timeout,
      "missing": missing,
    }
    print(json.dumps(order), file=server.stdin, flush=True)
    status = int(server.stdout.readline())
    return status, files[1].read_text(), files[2].read_text()


@functools.cache
def _server() -> "subprocess.Popen[str]":
  """Returns the process of which programs are copies; it ends with this one, when its input does."""
  root = pathlib.Path(__file__).parents[2]
  return subprocess.Popen(
    [sys.executable, __file__],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
    # With threads of its own it could not be copied.
    env=os.environ | {"PYTHONPATH": str(root), "MPLBACKEND": "agg", "OPENBLAS_NUM_THREADS": "1"},
  )


def _serve() -> None:
  import matplotlib.pyplot  # noqa: F401
  import open_spiel.python.algorithms.cfr
  import open_spiel.python.algorithms.exploitability  # noqa: F401

  import spiel_cfr  # noqa: F401

  for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if not child:
      _become(order)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)


def _become(order: dict[str, Any]) -> NoReturn:
  """Goes on as the program."""
  signal.alarm(order["timeout"])
  for number, (path, how) in enumerate(zip(order["files"], "rww", strict=True)):
    with open(path, how) as file:
      os.dup2(file.fileno(), number)
  os.chdir(order["cwd"])
  for name in list(sys.modules):
    if name.partition(".")[0] == order["missing"]:
      sys.modules[name] = None  # type: ignore[assignment]
  sys.argv = order["argv"]
  sys.path[0] = os.path.dirname(sys.argv[0])
  status = 1
  try:
    runpy.run_path(sys.argv[0], run_name="__main__")
    status = 0
  except SystemExit as stop:
    if stop.code is None or isinstance(stop.code, int):
      status = stop.code or 0
    else:
      print(stop.code, file=sys.stderr)
  except BaseException:
    traceback.print_exc()
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(status)


if __name__ == "__main__":
  _serve()
