r"""Compares first-order methods with CFR+, DCFR and stable-predictive CFR, on seven games and on hold'em endgames.

    python examples/first_order.py --output_dir=results
    python examples/first_order.py --games= --endgames=subgame3.txt,subgame4.txt --iterations=300

The program measures exploitability against iterations, gradients and CPU seconds. It writes a picture, a table,
and a CSV file with every number. A gradient is that of one player; an alternating iteration of CFR takes two. The last
column of the table is the median slope at the end: -1 is a rate of 1 / T. Times of iterations are medians over
interleaved rounds.
"""

from results import NAMED_GAMES, draws, median_seconds, pyplot, save, start

import csv
import math
import pathlib
import statistics
import time
from typing import Any

from absl import flags

import spiel_cfr
from spiel_cfr import CompiledGame, Solver, catalogue
from spiel_cfr.poker import bet_filters
from spiel_cfr.runs import Row

# Name of a curve -> solver in the catalogue, further arguments, color and line style.
_SOLVERS: dict[str, tuple[str, dict[str, object], str, str]] = {
  "CFR+": ("cfr+", {}, "tab:blue", "-"),
  "DCFR": ("dcfr", {}, "tab:green", "-"),
  "stable-predictive CFR": ("stable_predictive_alternating", {}, "tab:red", "-"),
  "EGT": ("egt", {}, "tab:orange", ":"),
  "EGT/AS": ("egt_as", {}, "tab:orange", "-"),
  "EGT/AS, Euclidean": (
    "egt_as",
    {"regularizer": "euclidean", "weights": "kroer2017"},
    "tab:orange",
    "--",
  ),
  "mirror prox": ("mirror_prox_as", {"aggressive": False}, "tab:purple", ":"),
  "mirror prox/AS": ("mirror_prox_as", {}, "tab:purple", "-"),
  "DOMWU": ("domwu", {"step": 5.0}, "tab:brown", "-"),
  "DOGDA": ("domwu", {"regularizer": "euclidean", "weights": "one"}, "tab:brown", "--"),
  "KOMWU": ("komwu", {"step": 5.0}, "tab:pink", "-"),
  "RTCFR+, last iterate": ("rtcfr+", {}, "0.5", "-"),
}
_AXES = ("iterations", "gradients", "seconds")
_FLOOR = 1e-16
# The lower end of the vertical axis.
_LOWEST = 1e-7
# CPU seconds of a solver in each round.
_ROUND = 0.02

# Iterations, gradients, seconds, exploitability.
Point = tuple[int, float, float, float]

_GAMES = flags.DEFINE_list(
  "games",
  list(NAMED_GAMES),
  f"games: {', '.join(NAMED_GAMES)}, or OpenSpiel game strings without commas",
)
_ENDGAMES = flags.DEFINE_list("endgames", [], "files of hold'em river endgames")
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "iterations of each solver", lower_bound=10)
_ROUNDS = flags.DEFINE_integer("rounds", 9, "rounds of timing", lower_bound=1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "folder of picture, table and CSV file")
_NAME = flags.DEFINE_string("name", "first_order", "name of the files")


def main() -> None:
  folder = pathlib.Path(_OUTPUT_DIR.value)
  folder.mkdir(parents=True, exist_ok=True)
  curves: dict[str, dict[str, list[Point]]] = {}
  for name in filter(None, [*_GAMES.value, *_ENDGAMES.value]):
    game = load(name)
    spiel_cfr.evaluation.evaluate.check_two_player_constant_sum(game)
    print(game, flush=True)
    solvers = {
      label: catalogue.make(entry, game, _ITERATIONS.value, **more)
      for label, (entry, more, *_) in _SOLVERS.items()
    }
    points = {label: run(solver) for label, solver in solvers.items()}
    runs = {label: solver.run for label, solver in solvers.items()}
    seconds = median_seconds(runs, _ROUNDS.value, _ROUND, time.process_time)
    curves[pathlib.Path(name).stem] = {
      label: [
        (row.iteration, row.nodes_touched / game.num_states, row.iteration * seconds[label], gap)
        for row, gap in rows
      ]
      for label, rows in points.items()
    }
    path = folder / _NAME.value
    write_csv(path.with_suffix(".csv"), curves)
    draw(path.with_suffix(".png"), curves)
    path.with_suffix(".md").write_text(markdown(curves))
  print(f"\n{markdown(curves)}\nWrote {path}.csv and .md")


def load(name: str) -> CompiledGame:
  """Compiles a game or an endgame."""
  if name in _ENDGAMES.value:
    endgame = spiel_cfr.load_endgame(name)
    return spiel_cfr.poker.compile_public_game(endgame.load(), bet_filters.few_bets)
  return spiel_cfr.compile_game(NAMED_GAMES.get(name, name))


def run(solver: Solver) -> list[tuple[Row, float]]:
  """Runs a solver; returns rows and exploitability, at least 1e-16, at powers of 10^(1/8)."""
  result = spiel_cfr.run(
    solver, _ITERATIONS.value, evaluate_at=spiel_cfr.runs.Powers(10 ** (1 / 8)), progress=False
  )
  return [(row, max(row.nash_conv / 2, _FLOOR)) for row in result.rows]


def write_csv(path: pathlib.Path, curves: dict[str, dict[str, list[Point]]]) -> None:
  """Writes a CSV file with every number."""
  with path.open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["game", "solver", *_AXES, "exploitability"])
    for game, of_game in curves.items():
      for solver, points in of_game.items():
        writer.writerows([game, solver, *point] for point in points)


def markdown(curves: dict[str, dict[str, list[Point]]]) -> str:
  """Returns a table: exploitability after all iterations / after the gradients of CFR+ / after the seconds of CFR+."""
  lines = [f"| solver | {' | '.join(curves)} | slope |", "| --- " * (len(curves) + 2) + "|"]
  for solver in _SOLVERS:
    cells, slopes = [], []
    for of_game in curves.values():
      points, limits = of_game[solver], of_game["CFR+"][-1]
      cell = [f"{points[-1][-1]:z.1e}"]
      for axis in range(1, len(_AXES)):
        within = [point for point in points if point[axis] <= limits[axis]]
        cell.append(f"{within[-1][-1]:z.1e}" if within else "-")
      cells.append(" / ".join(cell))
      slopes.append(slope(points))
    lines.append(f"| {solver} | {' | '.join(cells)} | {statistics.median(slopes):z.2f} |")
  return "\n".join(lines) + "\n"


def slope(points: list[Point]) -> float:
  """Returns the slope of log exploitability over log iterations in the last factor 10 of iterations."""
  last = points[-1]
  first = next(point for point in points if 10 * point[0] >= last[0])
  return math.log(last[-1] / first[-1]) / math.log(last[0] / first[0])


@draws
def draw(path: pathlib.Path, curves: dict[str, dict[str, list[Point]]]) -> None:
  """Draws one column for each game, and one row for each axis."""
  figure, grid = pyplot().subplots(
    len(_AXES),
    len(curves),
    figsize=(3.1 * len(curves) + 1, 8.6),
    layout="constrained",
    squeeze=False,
    sharey="col",
  )
  for column, (game, of_game) in enumerate(curves.items()):
    for axis, axes in enumerate(grid[:, column]):
      draw_panel(axes, axis, of_game)
    grid[0, column].set_title(game)
  for row in grid:
    row[0].set_ylabel("exploitability")
  handles, labels = grid[0, 0].get_legend_handles_labels()
  figure.legend(handles, labels, loc="outside lower center", ncols=6)
  save(figure, path, 80)


def draw_panel(axes: Any, axis: int, of_game: dict[str, list[Point]]) -> None:
  """Draws the curves of one game against one axis."""
  axes.set(xscale="log", yscale="log", xlabel=_AXES[axis])
  for solver, points in of_game.items():
    *_, color, line = _SOLVERS[solver]
    axes.plot(
      [point[axis] for point in points],
      [point[-1] for point in points],
      color=color,
      linestyle=line,
      label=solver,
      linewidth=1.3,
    )
  axes.set_ylim(bottom=max(axes.get_ylim()[0], _LOWEST))
  axes.grid(which="major", color="0.92")


if __name__ == "__main__":
  start(main)
