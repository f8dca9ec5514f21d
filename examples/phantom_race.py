r"""Compares CFR in private moves form, Monte Carlo CFR and exp-a-spiel on phantom tic-tac-toe after two known moves.

    python examples/phantom_race.py
    python examples/phantom_race.py --exp_a_spiel=dcfr.csv --picture=docs/phantom_race.png

Player 0 has a corner, player 1 the center, and both know it. `examples/phantom_race.cpp` says how to build and run
exp-a-spiel on this game. Its file lists iterations, CPU seconds and exploitability.
"""

from results import draws, pyplot, save, start, writable

import csv
import pathlib
import time
from typing import Any

from absl import flags

import spiel_cfr

_SECONDS = flags.DEFINE_float("seconds", 60.0, "CPU seconds of each solver", lower_bound=0.0)
_EXP_A_SPIEL = flags.DEFINE_string(
  "exp_a_spiel", "", "CSV file with the results of exp-a-spiel; empty for none"
)
_PICTURE = flags.DEFINE_string(
  "picture", "results/phantom_race.png", "file of the picture; empty for none"
)
_GAME = "start_at(history=0;4,game=phantom_ttt())"
# The cell of the opponent's stone, which each player knows.
_KNOWN = 4, 0
_OTHER = "DCFR of exp-a-spiel"

Curve = list[tuple[int, float, float]]


def main() -> None:
  picture = writable(_PICTURE.value) if _PICTURE.value else None
  game = spiel_cfr.games.compile_private_moves_game(_GAME, unknown_cells)
  print(f"{game}\n\n| solver | iterations | CPU seconds | exploitability |\n|{' --- |' * 4}")
  curves = {
    name: measured(name, make)
    for name, make in {
      "CFR+": lambda: spiel_cfr.CFRPlusSolver(game),
      "DCFR": lambda: spiel_cfr.DCFRSolver(game),
      "outcome sampling": lambda: spiel_cfr.OutcomeSamplingSolver(game, engine="states", seed=0),
    }.items()
  }
  if _EXP_A_SPIEL.value:
    with open(_EXP_A_SPIEL.value, newline="") as file:
      curves[_OTHER] = [
        (int(iteration), float(seconds), float(exploitability))
        for iteration, seconds, exploitability in csv.reader(file)
      ]
    for row in curves[_OTHER]:
      report(_OTHER, *row)
  if picture is not None:
    draw(curves, picture)


def unknown_cells(state: Any, actions: list[int]) -> list[int]:
  """Leaves out the cell where the player to move knows the opponent's stone."""
  return [action for action in actions if action != _KNOWN[state.current_player()]]


def measured(name: str, make: Any) -> Curve:
  """Returns iterations, CPU seconds and exploitability of a solver, at powers of 2."""
  solver, used, target, curve = make(), 0.0, 1, []
  solver.prepare()
  while used < _SECONDS.value:
    before = time.process_time()
    solver.run(target - int(solver.iteration))
    used += time.process_time() - before
    curve.append((target, used, solver.exploitability()))
    report(name, *curve[-1])
    target *= 2
  return curve


def report(name: str, iterations: int, seconds: float, exploitability: float) -> None:
  print(f"| {name} | {iterations:,} | {seconds:z.2f} | {exploitability:z.2e} |", flush=True)


@draws
def draw(curves: dict[str, Curve], path: pathlib.Path) -> None:
  """Draws exploitability against CPU seconds."""
  figure, axes = pyplot().subplots(figsize=(7, 4.5), layout="constrained")
  for name, curve in curves.items():
    _, seconds, exploitability = zip(*curve, strict=True)
    axes.plot(seconds, exploitability, marker=".", label=name)
  axes.set(xscale="log", yscale="log", xlabel="CPU seconds", ylabel="exploitability")
  axes.legend()
  save(figure, path, dpi=120)


if __name__ == "__main__":
  start(main)
