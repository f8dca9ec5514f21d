r"""Compares stable-predictive optimistic CFR with regret matching and its relatives, on many games.

    python examples/stable_predictive.py --games=kuhn,leduc --iterations=10000 --updates=simultaneous,alternating

For every game and order of updates it runs CFR, CFR+, DCFR, PCFR+, adaptive optimistic descent, and stable-predictive
OFTRL with adaptive steps, weighed linearly and uniformly, without and with restarts, with those of the paper,
and with the best multiple 10^k of the paper's; and OpenSpiel's own CFR and CFR+ in C++, which update in turn. It prints
what OpenSpiel says of every final policy, and writes a picture and a Markdown table for each order of updates, and a
CSV file with every number.
"""

import csv
import pathlib
import time
from typing import Any

import pyspiel
from absl import flags
from named_solvers import OpenSpielSolver
from results import NAMED_GAMES, draws, pyplot, save, start, writable

import spiel_cfr
from spiel_cfr import CompiledGame, catalogue, policies

_FACTORS = [10.0**k for k in range(1, 7)]
_TABLE_ITERATIONS = (10, 100, 1000, 10000)
_SLOPES = {"$T^{-1/2}$": -0.5, "$T^{-3/4}$": -0.75, "$T^{-1}$": -1.0}
_STYLES = {
  "CFR": ("0.6", "-"),
  "CFR+": ("tab:blue", "-"),
  "OpenSpiel's CFR": ("0.3", "o"),
  "OpenSpiel's CFR+": ("tab:blue", "o"),
  "DCFR": ("tab:green", "-"),
  "PCFR+": ("tab:cyan", "-"),
  "optimistic descent": ("tab:olive", "-"),
  "OFTRL, linear": ("tab:red", "-"),
  "OFTRL, uniform": ("tab:red", "-."),
  "OFTRL, linear, euclidean": ("tab:red", ":"),
  "OFTRL, linear, restarted": ("black", "-"),
  "OFTRL, uniform, restarted": ("black", "-."),
  "OFTRL, paper": ("tab:purple", "-."),
  "OFTRL, paper times the best": ("tab:brown", "-."),
}

_GAMES = flags.DEFINE_list(
  "games",
  list(NAMED_GAMES),
  f"{', '.join(NAMED_GAMES)}, or OpenSpiel game strings without commas",
)
_ITERATIONS = flags.DEFINE_integer(
  "iterations", 10000, "how many iterations each does", lower_bound=1
)
_UPDATES = flags.DEFINE_multi_enum(
  "updates",
  ["simultaneous,alternating"],
  ["simultaneous", "alternating", "simultaneous,alternating"],
  "orders of updates",
)
_OPEN_SPIEL_ITERATIONS = flags.DEFINE_integer(
  "open_spiel_iterations",
  100,
  "how many OpenSpiel's own solvers do, an iteration of which takes longer",
  lower_bound=1,
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "where pictures, tables and CSV go")

# Iteration -> exploitability, by the name of the curve.
Curves = dict[str, dict[int, float]]


def main() -> None:
  folder = pathlib.Path(_OUTPUT_DIR.value)
  writable(folder / "stable_predictive.csv")
  orders = list(dict.fromkeys(",".join(_UPDATES.value).split(",")))
  results: dict[str, dict[str, Curves]] = {order: {} for order in orders}
  for name in _GAMES.value:
    game = spiel_cfr.compile_game(NAMED_GAMES.get(name, name))
    spiel_cfr.evaluation.evaluate.check_two_player_constant_sum(game)
    print(game, flush=True)
    for order in orders:
      start = time.perf_counter()
      results[order][name] = compare(game, alternating=order == "alternating")
      print(f"  {order}: {time.perf_counter() - start:z.1f} s", flush=True)
  write_csv(folder / "stable_predictive.csv", results)
  for order, games in results.items():
    draw(folder / f"stable_predictive_{order}.png", order, games)
    (folder / f"stable_predictive_{order}.md").write_text(table := markdown(order, games))
    print(f"\n{order} updates: exploitability\n\n{table}")
  print(f"Wrote {folder}/stable_predictive*")


def compare(game: CompiledGame, alternating: bool) -> Curves:
  """Runs every solver on one game."""
  curves = {}
  print(f"  {'OpenSpiel: NashConv of the final policy':45} how far ours is from it", flush=True)
  for label, candidates in solvers(game, alternating).items():
    found = [curve(solver) for solver in candidates]
    best = min(range(len(found)), key=lambda k: found[k][candidates[k].iteration])
    factor = f" 10^{best + 1}" if len(found) > 1 else ""
    curves[f"{label}{factor}"] = found[best]
    average = candidates[best].average_probabilities()
    verdict = pyspiel.nash_conv(game.game, policies.to_pyspiel(game, average))
    difference = abs(verdict - candidates[best].nash_conv())
    print(f"    {label + factor:32} {verdict:z10.4e} {difference:z9.1e}", flush=True)
  return curves


def solvers(game: CompiledGame, alternating: bool) -> dict[str, list[spiel_cfr.Solver]]:
  """Makes the solvers of each curve; of several the best one is drawn."""
  names = {
    "CFR": "cfr",
    "CFR+": "cfr+",
    "DCFR": "dcfr",
    "PCFR+": "pcfr+",
    "optimistic descent": "adaptive",
  }
  suffix = "" if alternating else "_simultaneous"
  made = {
    label: [catalogue.make(name + suffix, game, _ITERATIONS.value)] for label, name in names.items()
  }
  if alternating:
    made["OpenSpiel's CFR"] = [OpenSpielSolver(game, "CFRSolver")]
    made["OpenSpiel's CFR+"] = [OpenSpielSolver(game, "CFRPlusSolver")]
  constant = {"horizon": _ITERATIONS.value}
  settings: dict[str, list[dict[str, Any]]] = {
    "OFTRL, linear": [{}],
    "OFTRL, uniform": [{"gamma": 0}],
    "OFTRL, linear, euclidean": [{"regularizer": "euclidean"}],
    "OFTRL, paper": [{"steps": "paper", **constant}],
    "OFTRL, paper times the best": [{"steps": factor, **constant} for factor in _FACTORS],
  }
  for label, choices in settings.items():
    made[label] = [
      spiel_cfr.StablePredictiveCFRSolver(game, alternating_updates=alternating, **choice)
      for choice in choices
    ]
  for gamma, averaging in ((1, "linear"), (0, "uniform")):
    solver = spiel_cfr.StablePredictiveCFRSolver(game, alternating_updates=alternating, gamma=gamma)
    made[f"OFTRL, {averaging}, restarted"] = [spiel_cfr.Restarted(solver)]
  return made


def curve(solver: spiel_cfr.Solver) -> dict[int, float]:
  """Runs a solver; exploitability at powers of 10^(1/8) and at the iterations of the table."""
  theirs = isinstance(solver, OpenSpielSolver)
  end = min(_ITERATIONS.value, _OPEN_SPIEL_ITERATIONS.value) if theirs else _ITERATIONS.value
  # To read a policy of OpenSpiel's takes longer than an iteration.
  steps = 1 if theirs else 8
  due = {round(10 ** (k / steps)) for k in range(steps * 9)} | {end}
  result = {}
  for iteration in sorted(number for number in due if number <= end):
    solver.run(iteration - solver.iteration)
    result[iteration] = solver.exploitability()
  return result


def write_csv(path: pathlib.Path, results: dict[str, dict[str, Curves]]) -> None:
  """Writes every number."""
  with path.open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["updates", "game", "solver", "iteration", "exploitability"])
    for order, games in results.items():
      for game, curves in games.items():
        for solver, points in curves.items():
          writer.writerows([order, game, solver, *point] for point in points.items())


def markdown(order: str, games: dict[str, Curves]) -> str:
  """Returns a table: a row a solver, a column a game, exploitability at 10 / 100 / 1000 / 10000 iterations."""
  # The best factors differ from game to game, and stand in the cells.
  rows: dict[str, dict[str, str]] = {}
  for game, curves in games.items():
    for solver, points in curves.items():
      name, _, factor = solver.partition(" 10^")
      cell = " / ".join(f"{points[i]:z.1e}" for i in _TABLE_ITERATIONS if i in points)
      rows.setdefault(name, {})[game] = cell + (f" (10^{factor})" if factor else "")
  lines = [f"| {order} updates | {' | '.join(games)} |", "| --- " * (len(games) + 1) + "|"]
  for name, cells in rows.items():
    lines.append(f"| {name} | {' | '.join(cells.get(game, '') for game in games)} |")
  return "\n".join(lines) + "\n"


@draws
def draw(path: pathlib.Path, order: str, games: dict[str, Curves]) -> None:
  """Draws a panel a game, and the legend in the last one."""
  columns = min(4, len(games) + 1)
  rows = -(-(len(games) + 1) // columns)
  figure, grid = pyplot().subplots(
    rows, columns, figsize=(4.2 * columns, 3.6 * rows), layout="constrained", squeeze=False
  )
  panels = list(grid.flat)
  for axes, (game, curves) in zip(panels, games.items(), strict=False):
    draw_panel(axes, game, curves)
  for axes in panels[len(games) :]:
    axes.axis("off")
  handles = {
    handle.get_label(): handle for axes in panels for handle in axes.get_legend_handles_labels()[0]
  }
  panels[len(games)].legend(handles.values(), handles.keys(), loc="center", fontsize=8)
  figure.suptitle(f"Exploitability of the average strategies, {order} updates")
  save(figure, path, 80)


def draw_panel(axes: Any, game: str, curves: Curves) -> None:
  """Draws one game."""
  axes.set(xscale="log", yscale="log", title=game, xlabel="iterations")
  # Below this there is rounding only.
  floor = 1e-15
  for solver, points in curves.items():
    label = solver.partition(" 10^")[0]
    color, line = _STYLES[label]
    axes.plot(
      list(points),
      [max(value, floor) for value in points.values()],
      color=color,
      linestyle="none" if line == "o" else line,
      marker="o" if line == "o" else None,
      markersize=4,
      markerfacecolor="none",
      label=label,
      linewidth=1.2,
    )
  start, top = 1.0, max(value for points in curves.values() for value in points.values())
  end = max(max(points) for points in curves.values())
  for text, slope in _SLOPES.items():
    axes.plot(
      [start, end], [top, top * (end / start) ** slope], color="0.85", linewidth=0.8, zorder=0
    )
    axes.annotate(text, (end, top * (end / start) ** slope), fontsize=6, color="0.6", ha="right")


if __name__ == "__main__":
  start(main)
