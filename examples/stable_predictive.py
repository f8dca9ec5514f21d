r"""Compares stable-predictive optimistic CFR with variants of regret matching, on many games.

    python examples/stable_predictive.py --games=kuhn,leduc --iterations=10000 --updates=simultaneous,alternating

For each game and order of updates, the program runs

- CFR, CFR+, DCFR, PCFR+ and adaptive optimistic descent;
- stable-predictive OFTRL with adaptive steps, with linear and uniform weights, without and with restarts;
- stable-predictive OFTRL with the paper's steps, and with the best multiple 10^k of these steps;
- OpenSpiel's CFR and CFR+, in C++ for alternating updates and in Python for simultaneous updates.

It prints OpenSpiel's evaluation of every final policy. For each order of updates it writes a picture and two Markdown
tables, of exploitability and of CPU seconds. A CSV file contains every number.
"""

from results import NAMED_GAMES, draws, markdown, pyplot, save, start, writable

import csv
import pathlib
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pyspiel
from absl import flags
from named_solvers import OpenSpielSolver

import spiel_cfr
from spiel_cfr import CompiledGame, catalogue, policies
from spiel_cfr.stable_predictive.paper_steps import PaperSteps
from spiel_cfr.stable_predictive.stable_predictive_cfr import steps_of

_FACTORS = [10.0**k for k in range(1, 7)]
_TABLE_ITERATIONS = (10, 100, 1000, 10000)
# The number of histories above which an iteration of OpenSpiel in Python takes seconds.
_LARGE = 100_000
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
  f"games: {', '.join(NAMED_GAMES)}, or OpenSpiel game strings without commas",
)
_ITERATIONS = flags.DEFINE_integer("iterations", 10000, "iterations of each solver", lower_bound=1)
_UPDATES = flags.DEFINE_multi_enum(
  "updates",
  ["simultaneous,alternating"],
  ["simultaneous", "alternating", "simultaneous,alternating"],
  "orders of updates",
)
_OPEN_SPIEL_ITERATIONS = flags.DEFINE_integer(
  "open_spiel_iterations",
  100,
  "iterations of OpenSpiel's solvers, which are slower; in Python a tenth of this for games of more than "
  f"{_LARGE:,} histories",
  lower_bound=1,
)
_OUTPUT_DIR = flags.DEFINE_string(
  "output_dir", "results", "folder of pictures, tables and CSV file"
)


class Curve(NamedTuple):
  """Result of a solver.

  Attributes:
    points: dictionary. Iteration -> exploitability.
    seconds: float. CPU seconds of all iterations.
  """

  points: dict[int, float]
  seconds: float


# Name of the solver -> curve.
Curves = dict[str, Curve]


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
    tables = f"{exploitabilities(order, games)}\n{seconds(order, games)}"
    (folder / f"stable_predictive_{order}.md").write_text(tables)
    print(f"\n{order} updates: exploitability, and CPU seconds for 1,000 iterations\n\n{tables}")
  print(f"Wrote {folder}/stable_predictive*")


def compare(game: CompiledGame, alternating: bool) -> Curves:
  """Runs every solver on one game."""
  curves = {}
  print(f"  {'OpenSpiel: NashConv of the final policy':45} difference from ours", flush=True)
  for label, candidates in solvers(game, alternating).items():
    found = [curve(solver) for solver in candidates]
    best = min(range(len(found)), key=lambda k: found[k].points[candidates[k].iteration])
    factor = f" 10^{best + 1}" if len(found) > 1 else ""
    curves[f"{label}{factor}"] = found[best]
    average = candidates[best].average_probabilities()
    verdict = pyspiel.nash_conv(game.game, policies.to_pyspiel(game, average))
    difference = abs(verdict - candidates[best].nash_conv())
    print(f"    {label + factor:32} {verdict:z10.4e} {difference:z9.1e}", flush=True)
    if label == "OFTRL, paper":
      print(f"      {why_slow(candidates[0])}")
  return curves


def why_slow(solver: spiel_cfr.Solver) -> str:
  """Returns a sentence on the final strategy's distance from uniform, and on the guarantee of the paper's steps."""
  theory = steps_of(solver)
  assert isinstance(theory, PaperSteps)
  odds = [max(snapshot.current) / min(snapshot.current) for snapshot in solver.snapshots()]
  return (
    f"why: steps of kappa / (3 D) are small; after {solver.iteration:,} iterations the median ratio of the largest to "
    f"the smallest probability at an infoset is {statistics.median(odds):z.3g}; the guaranteed NashConv is "
    f"{theory.guarantee(solver.iteration):z.2g}"
  )


def solvers(game: CompiledGame, alternating: bool) -> dict[str, list[spiel_cfr.Solver]]:
  """Returns the solvers of each curve; the best of several is drawn."""
  names = {
    "CFR": "cfr",
    "CFR+": "cfr+",
    "DCFR": "dcfr",
    "PCFR+": "pcfr+",
    "optimistic descent": "adaptive",
  }
  suffix = "" if alternating else "_simultaneous"
  solvers_of = {
    label: [catalogue.make(name + suffix, game, _ITERATIONS.value)] for label, name in names.items()
  }
  solvers_of["OpenSpiel's CFR"] = [OpenSpielSolver(game, "CFRSolver", alternating)]
  solvers_of["OpenSpiel's CFR+"] = [OpenSpielSolver(game, "CFRPlusSolver", alternating)]
  constant = {"horizon": _ITERATIONS.value}
  settings: dict[str, list[dict[str, Any]]] = {
    "OFTRL, linear": [{}],
    "OFTRL, uniform": [{"gamma": 0}],
    "OFTRL, linear, euclidean": [{"regularizer": "euclidean"}],
    "OFTRL, paper": [{"steps": "paper", **constant}],
    "OFTRL, paper times the best": [{"steps": factor, **constant} for factor in _FACTORS],
  }
  for label, choices in settings.items():
    solvers_of[label] = [
      spiel_cfr.StablePredictiveCFRSolver(game, alternating_updates=alternating, **choice)
      for choice in choices
    ]
  for gamma, averaging in ((1, "linear"), (0, "uniform")):
    solver = spiel_cfr.StablePredictiveCFRSolver(game, alternating_updates=alternating, gamma=gamma)
    solvers_of[f"OFTRL, {averaging}, restarted"] = [spiel_cfr.Restarted(solver)]
  return solvers_of


def curve(solver: spiel_cfr.Solver) -> Curve:
  """Runs a solver; returns exploitability at powers of 10^(1/8) and at the last iteration."""
  # Reading OpenSpiel's policy takes longer than an iteration, so it is evaluated at powers of 10 only.
  end, steps = _ITERATIONS.value, 8
  if isinstance(solver, OpenSpielSolver):
    end, steps = min(end, _OPEN_SPIEL_ITERATIONS.value), 1
    if not solver.alternating_updates and solver.compiled_game.num_states > _LARGE:
      end = max(1, end // 10)
  due = {round(10 ** (k / steps)) for k in range(steps * 9)} | {end}
  points, seconds = {}, 0.0
  solver.prepare()
  for iteration in sorted(number for number in due if number <= end):
    begin = time.process_time()
    solver.run(iteration - solver.iteration)
    seconds += time.process_time() - begin
    points[iteration] = solver.exploitability()
  return Curve(points, seconds)


def write_csv(path: pathlib.Path, results: dict[str, dict[str, Curves]]) -> None:
  """Writes a CSV file with every number."""
  with path.open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["updates", "game", "solver", "iteration", "exploitability", "seconds in all"])
    for order, games in results.items():
      for game, curves in games.items():
        for solver, (points, seconds) in curves.items():
          writer.writerows([order, game, solver, *point, seconds] for point in points.items())


def exploitabilities(order: str, games: dict[str, Curves]) -> str:
  """Returns a table with one row for each solver and one column for each game: exploitability by iteration."""
  # The best factors differ between games, so they are in the cells.
  at = [point for point in _TABLE_ITERATIONS if point <= _ITERATIONS.value]

  def cell(name: str, curve: Curve) -> str:
    shown = " / ".join(f"{curve.points[point]:z.1e}" for point in at if point in curve.points)
    factor = name.partition(" 10^")[2]
    return f"{shown} (10^{factor})" if factor else shown

  return table(f"{order}, after {' / '.join(map('{:,}'.format, at))} iterations", games, cell)


def seconds(order: str, games: dict[str, Curves]) -> str:
  """Returns a table with one row per solver and one column per game: CPU seconds for 1,000 iterations."""
  return table(
    f"{order}, CPU seconds for 1,000 iterations",
    games,
    lambda _, curve: f"{1000 * curve.seconds / max(curve.points):z.2g}",
  )


def table(head: str, games: dict[str, Curves], cell: Callable[[str, Curve], str]) -> str:
  """Returns a table with a row for each solver and a column for each game."""
  rows: dict[str, dict[str, str]] = {}
  for game, curves in games.items():
    for name, found in curves.items():
      rows.setdefault(name.partition(" 10^")[0], {})[game] = cell(name, found)
  return markdown(
    head,
    list(games),
    {name: [cells.get(game, "") for game in games] for name, cells in rows.items()},
  )


@draws
def draw(path: pathlib.Path, order: str, games: dict[str, Curves]) -> None:
  """Draws one panel for each game, and the legend in the last panel."""
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
  """Draws the curves of one game."""
  axes.set(xscale="log", yscale="log", title=game, xlabel="iterations")
  # Smaller values are rounding errors.
  floor = 1e-15
  for solver, (points, _) in curves.items():
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
  start, top = 1.0, max(value for points, _ in curves.values() for value in points.values())
  end = max(max(points) for points, _ in curves.values())
  for text, slope in _SLOPES.items():
    axes.plot(
      [start, end], [top, top * (end / start) ** slope], color="0.85", linewidth=0.8, zorder=0
    )
    axes.annotate(text, (end, top * (end / start) ** slope), fontsize=6, color="0.6", ha="right")


if __name__ == "__main__":
  start(main)
