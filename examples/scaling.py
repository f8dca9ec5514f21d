"""How the cost of solving grows with games: the part `scaling` of benchmark.py.

Each game has a process of its own, so that memory is its own:

    python examples/scaling.py '{"game": "kuhn_poker", "seconds": 1, "most_leaves_of_open_spiel": 1e6}'
"""

import csv
import functools
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import pyspiel

import spiel_cfr

_LEDUC = (
  "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,numSuits={},numRanks={},"
  "numHoleCards=1,numBoardCards=0 1,raiseSize=2 4,maxRaises=2 2)"
)
FAMILIES = {
  "Leduc with 2 to 13 ranks, 2 to 4 suits": [
    _LEDUC.format(suits, ranks)
    for suits, ranks in ((2, 2), (2, 3), (2, 4), (2, 6), (2, 9), (2, 13), (3, 13), (4, 13))
  ],
  "liar's dice, a die of 2 to 10 sides": [
    f"liars_dice(dice_sides={sides})" for sides in range(2, 11)
  ],
  "goofspiel with 3 to 7 cards": [
    f"goofspiel(num_cards={cards},imp_info=True,points_order=descending)" for cards in range(3, 8)
  ],
}
_SOLVER, _TARGETS, _ROUNDS = "pdcfr+", (1e-3, 1e-6), 3
# The columns of the table that are drawn, and what of OpenSpiel's C++ goes beside them.
_PANELS = {
  "compile_seconds": ("compiling, seconds", None),
  "megabytes": ("peak of memory above Kuhn poker's, MB", None),
  "microseconds": ("an iteration of CFR+, microseconds", "open_spiel_microseconds"),
  "seconds_to_0.001": (f"{_SOLVER} to exploitability 1e-3, seconds", None),
  "seconds_to_1e-06": (f"{_SOLVER} to exploitability 1e-6, seconds", None),
}


def measure(game: str, seconds: float, most_leaves_of_open_spiel: float) -> dict[str, Any]:
  """Measures one game in this process; what was not reached in time is None."""
  kuhn = spiel_cfr.CFRPlusSolver("kuhn_poker")
  kuhn.prepare()
  before = _peak_megabytes()
  start = time.perf_counter()
  compiled = spiel_cfr.compile_game(game, max_nodes=10**10, vector_form=False)
  row: dict[str, Any] = {
    "game": game,
    "leaves": compiled.num_terminals,
    "infosets": compiled.num_infosets,
    "compile_seconds": time.perf_counter() - start,
  }
  ours = spiel_cfr.CFRPlusSolver(compiled)
  ours.prepare()
  result = spiel_cfr.run(
    spiel_cfr.catalogue.make(_SOLVER, compiled, iterations=1),
    target_exploitability=min(_TARGETS),
    seconds=seconds,
    evaluate_at=spiel_cfr.Powers(1.2),
    progress=False,
  )
  for target in _TARGETS:
    # Exploitability is half of NashConv with two players.
    reached = (found.solver_seconds for found in result.rows if found.nash_conv <= 2 * target)
    row[f"seconds_to_{target:g}"] = next(reached, None)
  row["megabytes"] = _peak_megabytes() - before
  # Last, since its memory is not ours.
  theirs = None
  if compiled.num_terminals <= most_leaves_of_open_spiel:
    theirs = pyspiel.CFRPlusSolver(compiled.game)
  times: dict[str, list[float]] = {}
  for _ in range(_ROUNDS):
    times.setdefault("microseconds", []).append(_microseconds(ours.run))
    if theirs is not None:
      found = _microseconds(functools.partial(_repeat, theirs.evaluate_and_update_policy))
      times.setdefault("open_spiel_microseconds", []).append(found)
  row.update({name: statistics.median(column) for name, column in times.items()})
  return row


def _microseconds(run: Callable[[int], object]) -> float:
  """Returns what an iteration takes, of as many as fill a tenth of a second."""
  count, seconds = 1, 0.0
  while True:
    start = time.perf_counter()
    run(count)
    seconds = time.perf_counter() - start
    if seconds >= 0.1:
      return seconds / count * 1e6
    count *= 2


def _repeat(step: Callable[[], object], count: int) -> None:
  for _ in range(count):
    step()


def _peak_megabytes() -> float:
  """Returns the most memory that this process has had."""
  status = pathlib.Path("/proc/self/status").read_text().splitlines()
  return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1000


def measure_all(
  most_leaves: float, seconds: float, most_leaves_of_open_spiel: float, picture: pathlib.Path
) -> None:
  """Measures games of each family in turn, from the smallest, and draws them; a CSV file goes beside the picture."""
  rows: list[dict[str, Any]] = []
  for family, games in FAMILIES.items():
    print(f"\n{family}")
    for game in games:
      estimate = spiel_cfr.estimate_size(game, seconds=0.5)
      if estimate.terminals.value > most_leaves:
        print(f"  and so on; not run: {game}\n{estimate}")
        break
      task = json.dumps(
        {
          "game": game,
          "seconds": seconds,
          "most_leaves_of_open_spiel": most_leaves_of_open_spiel,
        }
      )
      done = subprocess.run(
        [sys.executable, __file__, task], capture_output=True, text=True, check=False
      )
      if done.returncode:
        print(f"  {game} failed:\n{done.stderr}")
        break
      row = {"family": family, **json.loads(done.stdout.splitlines()[-1])}
      rows.append(row)
      print(
        f"  {row['leaves']:12,} leaves, {row['compile_seconds']:8.2f} s to compile, {row['megabytes']:9,.1f} MB, "
        f"{row['microseconds']:12,.1f} us an iteration{_times(row)}, to "
        + ", ".join(f"{target:g} {_shown(row[f'seconds_to_{target:g}'])}" for target in _TARGETS),
        flush=True,
      )
  if not rows:
    print("No game has so few leaves.")
    return
  with picture.with_suffix(".csv").open("w", newline="") as file:
    names = list({name: None for row in rows for name in row})
    writer = csv.DictWriter(file, names)
    writer.writeheader()
    writer.writerows(rows)
  _draw(rows, picture)
  print(f"\nWrote {picture} and {picture.with_suffix('.csv')}")


def _times(row: dict[str, Any]) -> str:
  """Says how many times as long OpenSpiel takes."""
  theirs = row.get("open_spiel_microseconds")
  return "" if theirs is None else f" (OpenSpiel C++ {theirs / row['microseconds']:,.0f} times)"


def _shown(seconds: float | None) -> str:
  return "not in time" if seconds is None else f"{seconds:.3g} s"


def _draw(rows: list[dict[str, Any]], path: pathlib.Path) -> None:
  figure, grid = plt.subplots(2, 3, figsize=(14, 8), layout="constrained")
  for axes, (name, (title, theirs)) in zip(grid.flat, _PANELS.items(), strict=False):
    for index, family in enumerate({row["family"]: None for row in rows}):
      own = [row for row in rows if row["family"] == family]
      for column, style in ((name, "o-"), (theirs, "x--")):
        shown = [row.get(column) or math.nan for row in own] if column else []
        if any(value == value for value in shown):
          axes.plot([row["leaves"] for row in own], shown, style, color=f"C{index}")
    axes.set(xscale="log", yscale="log", xlabel="leaves", title=title)
    axes.grid(alpha=0.3)
  legend = grid.flat[-1]
  legend.axis("off")
  for index, family in enumerate({row["family"]: None for row in rows}):
    legend.plot([], [], "o-", color=f"C{index}", label=family)
  legend.plot([], [], "x--", color="black", label="OpenSpiel's CFR+ in C++")
  legend.legend(loc="center", frameon=False)
  figure.savefig(path, dpi=120)


if __name__ == "__main__":
  print(json.dumps(measure(**json.loads(sys.argv[1]))))
