r"""Measures the gain of warm starts: solvers from scratch, and from the average of another solver.

    python examples/warm_start.py --picture=results/warm_start.png

prints two tables for a game. In the first table, CFR continues from its average after 30 iterations, about as if it had
not stopped. The second table shows the number of iterations to three exploitabilities, from scratch and from the
average of CFR after 1,000 iterations.

    python examples/warm_start.py --game=kuhn_poker --source=30 --condition

prints T, the number of iterations for which the average of --source iterations of CFR counts. It also prints the
condition of Brown and Sandholm (2016): at each infoset, the sum of squares of the positive substitute regrets is at
most T D^2 n, the bound after T iterations of regret matching. D is the range of the player's payoffs, n the number of
actions.
"""

from results import draws, pyplot, save, start

from collections.abc import Callable

import numpy as np
from absl import flags

import spiel_cfr
from spiel_cfr import TabularCFRSolver
from spiel_cfr.cfr import substitute_regrets, warm_start
from spiel_cfr.runs import Powers

SOLVERS: dict[str, Callable[[spiel_cfr.CompiledGame], spiel_cfr.FullWidthSolver]] = {
  "CFR+": spiel_cfr.CFRPlusSolver,
  "PCFR+": spiel_cfr.PCFRPlusSolver,
  "DCFR": spiel_cfr.DCFRSolver,
}
TARGETS = (1e-2, 2e-3, 5e-4)
MORE = (10, 30, 100, 300, 900)

_GAME = flags.DEFINE_string("game", "leduc_poker", "OpenSpiel game string")
_SOURCE = flags.DEFINE_integer("source", 1_000, "iterations of CFR before the warm starts", 1)
_ITERATIONS = flags.DEFINE_integer("iterations", 1_000, "iterations after the warm starts", 1)
_CONDITION = flags.DEFINE_bool("condition", False, "print only T and the condition")
_MOST_SHOWN = 20
_PICTURE = flags.DEFINE_string(
  "picture", "results/warm_start.png", "file of the picture; empty for none"
)

# (iterations, exploitability).
Curve = list[tuple[int, float]]


def main() -> None:
  game = spiel_cfr.compile_game(_GAME.value)
  source = simultaneous(game)
  source.run(_SOURCE.value)
  if _CONDITION.value:
    condition(game, source)
    return
  goes_on(game)
  print(
    f"\nFrom CFR's average after {_SOURCE.value:,} iterations, {source.exploitability():z.2e}:\n"
  )
  print(f"| solver | T | {' | '.join(f'to {target:zg}' for target in TARGETS)} |")
  print("| --- " * (2 + len(TARGETS)) + "|")
  curves = {}
  for name, make in SOLVERS.items():
    cold, warm, fresh = make(game), make(game), make(game)
    start = warm.warm_start(source)
    fresh.warm_start(source, keep_average=False)
    rows = {
      f"{name}, cold": (cold, ""),
      f"{name}, warm": (warm, f"{start.iterations:,}"),
      f"{name}, warm, average anew": (fresh, f"{start.iterations:,}"),
    }
    for label, (solver, counted) in rows.items():
      curve, counts = run(solver)
      curves[label] = curve
      cells = " | ".join("" if count is None else f"{count:,}" for count in counts)
      print(f"| {label} | {counted} | {cells} |", flush=True)
  if _PICTURE.value:
    draw(curves, source.exploitability())


def simultaneous(game: spiel_cfr.CompiledGame) -> spiel_cfr.FullWidthSolver:
  """Returns CFR with simultaneous updates, for which the theory is exact."""
  return TabularCFRSolver(game, alternating_updates=False)


def condition(game: spiel_cfr.CompiledGame, source: spiel_cfr.FullWidthSolver) -> None:
  """Prints T, and both sides of the paper's condition at the infosets with the largest D."""
  values, start = warm_start.plan(simultaneous(game), source)
  regrets, _ = values.regrets_at(substitute_regrets.substitute, start.scale)
  bound = 1 / start.scale
  print(
    f"NashConv of the average after {source.iteration:,} iterations of CFR: {start.nash_conv:z.3g}"
  )
  print(f"c*, the root at which the history costs nothing:             {start.scale:z.3g}")
  print(
    f"T by default, {substitute_regrets.STEADY} / c*:                                   {start.iterations:,}"
  )
  print(f"T at most by the paper's condition, 1 / c*:                  {bound:z,.0f}\n")
  rows = []
  for player, tree in enumerate(game.treeplexes):
    names = game.infosets[player]
    by_position = dict(zip(names.position.tolist(), names.infostates, strict=True))
    for sequences, infosets in tree.infoset_groups():
      squares = np.square(np.maximum(regrets[sequences], 0.0)).sum(axis=0)
      for position, square in zip(
        range(infosets.start, infosets.stop), squares.tolist(), strict=True
      ):
        payoff_range = float(values.weights[0, tree.first_infoset + position])
        threshold = payoff_range**2 * len(sequences)
        rows.append((by_position[position], payoff_range, square, threshold, len(sequences)))
  rows.sort(key=lambda row: -row[1])
  print(
    "| infoset | D | actions | squares, T by default | threshold T D^2 n | squares, T = 1 / c* | threshold |"
  )
  print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
  for name, payoff_range, square, threshold, actions in rows[:_MOST_SHOWN]:
    cells = [
      f"{t * t * square:z.3g} | {t * threshold:z.3g}" for t in (float(start.iterations), bound)
    ]
    print(f"| {name} | {payoff_range:z.3g} | {actions} | {' | '.join(cells)} |")
  if len(rows) > _MOST_SHOWN:
    print(f"\n{len(rows) - _MOST_SHOWN:,} more infosets have smaller D.")


def goes_on(game: spiel_cfr.CompiledGame) -> None:
  """Prints the exploitability of CFR uninterrupted, continued from its average, and from scratch."""
  never, warm = simultaneous(game), simultaneous(game)
  never.run(30)
  print(f"CFR's average after 30 iterations: {warm.warm_start(never, 30)}\n")
  print(f"| CFR, exploitability after | {' | '.join(f'+{more}' for more in MORE)} |")
  print("| --- " * (1 + len(MORE)) + "|")
  rows = {"never stopped": never, "warm start": warm, "from scratch": simultaneous(game)}
  for label, solver in rows.items():
    cells, first = [], solver.iteration
    for more in MORE:
      solver.run(first + more - solver.iteration)
      cells.append(f"{solver.exploitability():z.4f}")
    print(f"| {label} | {' | '.join(cells)} |", flush=True)


def run(solver: spiel_cfr.FullWidthSolver) -> tuple[Curve, list[int | None]]:
  """Runs a solver; returns its curve, and the number of further iterations to each target."""
  first, schedule = solver.iteration, Powers(1.1)
  curve: Curve = []
  reached: list[int | None] = [None] * len(TARGETS)
  done = 0
  while done < _ITERATIONS.value:
    # Evaluations are at every fifth iteration at first, later at powers of 1.1.
    following = max(done + 5, int(schedule(max(1, done))))
    solver.run(following - done)
    done = solver.iteration - first
    value = solver.exploitability()
    curve.append((done, value))
    for number, target in enumerate(TARGETS):
      if reached[number] is None and value <= target:
        reached[number] = done
  return curve, reached


@draws
def draw(curves: dict[str, Curve], source: float) -> None:
  """Draws one panel a solver."""
  figure, panels = pyplot().subplots(
    1, len(SOLVERS), figsize=(4.6 * len(SOLVERS), 4.4), layout="constrained", sharey=True
  )
  for axes, name in zip(panels, SOLVERS, strict=True):
    for label, curve in curves.items():
      if label.startswith(f"{name}, "):
        axes.plot(*zip(*curve, strict=True), label=label.partition(", ")[2])
    axes.axhline(source, color="0.6", linestyle=":", label="initial policy")
    axes.set(xscale="log", yscale="log", xlabel="iterations after the start", title=name)
    axes.grid(which="major", color="0.9")
    axes.legend(loc="lower left", fontsize="small")
  panels[0].set_ylabel("exploitability")
  save(figure, _PICTURE.value, 110)


if __name__ == "__main__":
  start(main)
