r"""Runs many solvers on many games, on all cores or on a cluster; an interrupted sweep continues.

    python examples/sweep.py --games="kuhn_poker;leduc_poker" --solvers=cfr,cfr+,dcfr --iterations=1000
    python examples/sweep.py --config=gamma.json --executor=ray

A configuration is a grid of `spiel_cfr.sweep`, or a list of grids, in JSON:

    {"game": ["leduc_poker"], "solver": ["dcfr", "pdcfr+"], "gamma": [1, 2, 3, 4, 5]}
"""

import csv
import json
import pathlib
import sys
from typing import Any

from absl import app, flags

import spiel_cfr

_CONFIG = flags.DEFINE_string(
  "config", None, "file of a grid in JSON, in place of --games and --solvers"
)
_GAMES = flags.DEFINE_string("games", "kuhn_poker;leduc_poker", "games, separated by semicolons")
_SOLVERS = flags.DEFINE_list("solvers", ["cfr", "cfr+", "dcfr", "restarted"], "names of solvers")
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "iterations of each solver", lower_bound=1)
_FOLDER = flags.DEFINE_string("folder", "results/sweep", "folder of the sweep")
_EXECUTOR = flags.DEFINE_enum("executor", "processes", ["processes", "ray"], "executor of the runs")
_PROCESSES = flags.DEFINE_integer(
  "processes", None, "number of processes; by default one per core", lower_bound=1
)
_RAY_ADDRESS = flags.DEFINE_string(
  "ray_address", None, 'address of a cluster, or "auto"; by default, Ray starts on this machine'
)


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  table, status = pathlib.Path(_FOLDER.value, "table.csv"), 0
  table.unlink(missing_ok=True)
  try:
    sweep()
  except (spiel_cfr.errors.SpielCFRError, OSError, ValueError) as error:
    sys.exit(f"error: {error}")
  except KeyboardInterrupt:
    print("\nInterrupted. The same command continues all runs.", file=sys.stderr)
    status = 130
  if table.exists():
    print_table(table)
  sys.exit(status)


def print_table(path: pathlib.Path) -> None:
  """Prints the results of a sweep; unfinished runs are marked."""
  print(f"\n{'game':>28}{'solver':>28}{'iterations':>12}{'NashConv':>12}{'seconds':>10}")
  with path.open(newline="") as file:
    for row in csv.DictReader(file):
      cells = f"  {row['error'] or '(not done)'}"
      if row["reason"] not in ("", "error"):
        nash_conv, seconds = float(row["nash_conv"]), float(row["solver_seconds"])
        cells = f"{int(row['iteration']):12,}{nash_conv:z12.3g}{seconds:z10.3g}"
      print(f"{row['game']:>28}{row['solver']:>28}{cells}")
  print(f"\nWrote {path}")


def sweep() -> None:
  grid: Any = {"game": _GAMES.value.split(";"), "solver": _SOLVERS.value}
  if _CONFIG.value is not None:
    grid = json.loads(pathlib.Path(_CONFIG.value).read_text())
  executor: Any
  if _EXECUTOR.value == "ray":
    if _RAY_ADDRESS.value is not None:
      import ray

      ray.init(address=_RAY_ADDRESS.value)
    executor = spiel_cfr.runs.RayExecutor()
  else:
    executor = spiel_cfr.runs.ProcessExecutor(_PROCESSES.value)
  with executor:
    spiel_cfr.sweep(grid, folder=_FOLDER.value, iterations=_ITERATIONS.value, executor=executor)


if __name__ == "__main__":
  app.run(main)
