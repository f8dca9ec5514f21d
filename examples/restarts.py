r"""Draws exploitability against seconds: restarted CFR, other solvers, and OpenSpiel's CFR+.

    python examples/restarts.py --picture=results/restarts.png

prints a Markdown table for each game: the exploitability of each solver's policy after several times, and the time to
1e-9. Times are those of the solver on one core, the smallest of several rounds, without evaluations and compiling.
OpenSpiel's CFR+ has the iterates of the library's CFR+, as compare_solvers.py shows. So the library's iterates are
evaluated in its place, which is much faster. The last row is the linear program of the game, solved by the
interior-point method of HiGHS; --noprogram omits it.
"""

from results import chosen, draws, pyplot, save, start, writable

import functools
import pathlib
import time
from collections.abc import Callable

from absl import flags
from named_solvers import SOLVERS

import spiel_cfr
from spiel_cfr.poker import bet_filters
from spiel_cfr.runs import Powers

# Title -> game string, seconds of each solver.
GAMES = {
  "Leduc poker": ("leduc_poker", 1.0),
  "liar's dice, 1 die of 6 sides": ("liars_dice", 5.0),
  "goofspiel, 5 cards": (
    "goofspiel(imp_info=True,num_cards=5,points_order=descending)",
    2.0,
  ),
}
COLUMNS = {
  "OpenSpiel's CFR+": "open_spiel_cfr+",
  "CFR+": "cfr+",
  "DCFR": "dcfr",
  "PCFR+": "pcfr+",
  "PDCFR+": "pdcfr+",
  "restarted DCFR": "restarted_dcfr",
  "restarted CFR": "restarted",
}
_TARGET = 1e-9
# Smaller values are rounding errors, and may be negative.
_LEAST = 1e-17

_GAMES = flags.DEFINE_list("games", list("012"), "games to measure, by number from 0")
_ENDGAME = flags.DEFINE_string(
  "endgame", "", "file of an endgame to add (github.com/Sandholm-Lab/LibratusEndgames)"
)
_SCALE = flags.DEFINE_float("scale", 1.0, "factor on all times", 1e-3)
_ROUNDS = flags.DEFINE_integer("rounds", 2, "rounds of timing", lower_bound=1)
_PICTURE = flags.DEFINE_string(
  "picture", "results/restarts.png", "file of the picture; empty for none"
)

_PROGRAM = flags.DEFINE_bool("program", True, "also solve the linear program")

# Seconds and exploitability.
Curve = list[tuple[float, float]]


def main() -> None:
  curves = {}
  names = chosen(GAMES, _GAMES.value)
  if _PICTURE.value:
    writable(_PICTURE.value)
  for name in names:
    game_string, seconds = GAMES[name]
    curves[name] = measure(name, spiel_cfr.compile_game(game_string), seconds * _SCALE.value)
  if _ENDGAME.value:
    endgame = spiel_cfr.load_endgame(_ENDGAME.value)
    game = spiel_cfr.poker.compile_public_game(endgame.load(), bet_filters.few_bets)
    name = f"endgame {pathlib.Path(_ENDGAME.value).stem}, mbb/g"
    curves[name] = measure(name, game, 20.0 * _SCALE.value, endgame.milli_big_blinds(1.0))
  if _PICTURE.value:
    draw(curves)


def measure(
  name: str, game: spiel_cfr.CompiledGame, limit: float, unit: float = 1.0
) -> dict[str, Curve]:
  """Runs every solver for `limit` seconds, and prints the table; exploitability is multiplied by `unit`."""
  print(f"\n{name}\n")
  moments = [limit / 100, limit / 10, limit]
  header = [f"{moment:z.2g} s" for moment in moments]
  print(f"| solver | {' | '.join(header)} | to {_TARGET:zg} | iterations |")
  print("| --- " * (len(moments) + 3) + "|")
  curves = {}
  for column, solver_name in COLUMNS.items():
    # OpenSpiel's walk over an endgame would take hours.
    if solver_name.startswith("open_spiel") and isinstance(game, spiel_cfr.poker.PublicGame):
      continue
    evaluated = SOLVERS["cfr+" if solver_name.startswith("open_spiel") else solver_name]
    steps = seconds_of_steps(functools.partial(SOLVERS[solver_name], game, 10_000), limit)
    curve = evaluate(evaluated(game, 10_000), steps, unit)
    iterations = sum(count for count, _ in steps)
    curves[column] = curve
    cells = []
    for moment in moments:
      before = [value for seconds, value in curve if seconds <= moment]
      cells.append(f"{max(before[-1], 0.0):z.1e}" if before else "")
    reached = [seconds for seconds, value in curve if value <= _TARGET]
    cells.append(f"{reached[0]:z.2g} s" if reached else "")
    print(f"| {column} | {' | '.join(cells)} | {iterations:,} |", flush=True)
  if _PROGRAM.value and not isinstance(game, spiel_cfr.poker.PublicGame):
    start = time.process_time()
    solution = spiel_cfr.solve_lp(game, method="interior")
    seconds = time.process_time() - start
    cells = [f"{max(solution.exploitability, 0.0):z.1e}" if seconds <= at else "" for at in moments]
    cells.append(f"{seconds:z.2g} s" if solution.exploitability <= _TARGET else "")
    curves["HiGHS"] = [(seconds, solution.exploitability)]
    print(f"| HiGHS | {' | '.join(cells)} | |", flush=True)
  return curves


def seconds_of_steps(make: Callable[[], spiel_cfr.Solver], limit: float) -> list[tuple[int, float]]:
  """Runs a solver for `limit` seconds in steps; returns the number of iterations and the seconds of each step."""
  steps: list[tuple[int, float]] = []
  for rounds in range(_ROUNDS.value):
    solver = make()
    solver.prepare()
    schedule, total, number = Powers(1.08), 0.0, 0
    while number < len(steps) if rounds else total < limit:
      count = int(schedule(solver.iteration)) - solver.iteration
      # CPU time of this process, which other load affects least.
      start = time.process_time()
      solver.run(count)
      seconds = time.process_time() - start
      total += seconds
      if rounds:
        steps[number] = count, min(steps[number][1], seconds)
      else:
        steps.append((count, seconds))
      number += 1
  return steps


def evaluate(solver: spiel_cfr.Solver, steps: list[tuple[int, float]], unit: float) -> Curve:
  """Runs the same steps again, and evaluates the policy after each."""
  curve: Curve = []
  total = 0.0
  for count, seconds in steps:
    solver.run(count)
    total += seconds
    curve.append((total, solver.exploitability() * unit))
  return curve


@draws
def draw(curves: dict[str, dict[str, Curve]]) -> None:
  """Draws one panel for each game."""
  figure, panels = pyplot().subplots(
    1, len(curves), figsize=(4.6 * len(curves), 4.6), layout="constrained", squeeze=False
  )
  for axes, (name, lines) in zip(panels[0], curves.items(), strict=True):
    for column, curve in lines.items():
      ours, number = column == "restarted CFR", [*COLUMNS, "HiGHS"].index(column)
      axes.plot(
        [seconds for seconds, _ in curve],
        [max(value, _LEAST) for _, value in curve],
        label=column,
        color="black" if ours else f"C{number}",
        linewidth=2.0 if ours else 1.2,
        linestyle="--" if column.startswith("OpenSpiel") else "-",
        marker="x" if len(curve) == 1 else None,
      )
    axes.set(xscale="log", yscale="log", xlabel="seconds", title=name)
    # Values at the level of rounding lie at the lower edge.
    axes.set_ylim(bottom=max(_LEAST / 3, axes.get_ylim()[0]))
    axes.grid(which="major", color="0.9")
  panels[0][0].set_ylabel("exploitability")
  panels[0][0].legend(loc="lower left", fontsize="small")
  save(figure, _PICTURE.value, 110)


if __name__ == "__main__":
  start(main)
