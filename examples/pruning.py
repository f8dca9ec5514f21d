"""Measures the savings of pruning: three solvers with and without it, on games where few actions are played.

    python examples/pruning.py

prints a table for each game, with a row for each solver and number of iterations. Its columns:

    exploitability  exploitability without pruning
    pruned          exploitability with pruning
    nodes           nodes visited with pruning, divided by those without pruning; includes the work of pruning itself
    rolled back     number of windows that were rolled back
    speedup         CPU time without pruning, divided by CPU time with pruning; below 1, the pruned solver is slower

The solvers with and without pruning take turns, so other load on the machine affects both.
"""

from results import chosen, start

import time
from collections.abc import Callable
from typing import Any

import leduc5
from absl import app, flags

import spiel_cfr
from spiel_cfr import FullWidthSolver, Pruned, RegretMatching, Solver
from spiel_cfr.regret_minimizers.hedge import Hedge

GAMES: dict[str, Callable[[], Any]] = {
  "Leduc poker": lambda: "leduc_poker",
  "liar's dice, 1 die of 6 sides": lambda: "liars_dice",
  "Leduc-5": leduc5.Leduc5Game,
  # No constant was chosen on the following games.
  "liar's dice, 1 die of 7 sides": lambda: "liars_dice(dice_sides=7)",
  "goofspiel, 5 cards": lambda: (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=5,points_order=descending))"
  ),
  "battleship, 2x2": lambda: (
    "battleship(board_width=2,board_height=2,ship_sizes=[1;2],ship_values=[1;2],num_shots=3,allow_repeated_shots=False)"
  ),
}
# Solver -> minimizer, power of the averaging weights.
SOLVERS: dict[str, tuple[spiel_cfr.RegretMinimizer, float]] = {
  "cfr_pruned": (RegretMatching(), 0.0),
  "cfr+_pruned": (RegretMatching.plus(), 1.0),
  "hedge_pruned": (Hedge(1000.0, 2.0), 0.0),
}

_GAMES = flags.DEFINE_list("games", list("012"), "games to measure, by number from 0")
_SOLVERS = flags.DEFINE_list("solvers", list(SOLVERS), "solvers to measure, by name")
_AT = flags.DEFINE_list("at", ["1000", "3000", "10000"], "iterations at which to evaluate")


def main() -> None:
  games = chosen(GAMES, _GAMES.value)
  if not games:
    raise app.UsageError(f"--games is empty; give numbers from 0 to {len(GAMES) - 1}")
  if not set(_SOLVERS.value) <= set(SOLVERS):
    raise app.UsageError(f"--solvers takes {', '.join(SOLVERS)}")
  if not _AT.value or not all(at.isdecimal() and int(at) > 0 for at in _AT.value):
    raise app.UsageError("--at takes positive integers")
  for name in games:
    compiled = spiel_cfr.compile_game(GAMES[name]())
    print(f"\n{name}: {compiled}\n")
    print("| solver | iterations | exploitability | pruned | nodes | rolled back | speedup |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for solver in _SOLVERS.value:
      compare(compiled, solver)


def compare(game: spiel_cfr.CompiledGame, name: str) -> None:
  """Runs a solver without and with pruning, in turn, with averages over the same iterations."""
  minimizer, power = SOLVERS[name]
  averaging = spiel_cfr.Averaging(power, "faced")
  plain = FullWidthSolver(game, minimizer, averaging=averaging)
  pruned = Pruned(FullWidthSolver(game, minimizer, averaging=averaging))
  solvers: tuple[Solver, ...] = plain, pruned
  seconds = [0.0, 0.0]
  for solver in solvers:
    # This compiles kernels.
    solver.prepare()
  moments = sorted(map(int, _AT.value))
  while plain.iteration < moments[-1]:
    done = plain.iteration
    following = min([max(done + 50, int(1.5 * done)), *(at for at in moments if at > done)])
    for index, solver in enumerate(solvers):
      start = time.process_time()
      solver.run(following - done)
      seconds[index] += time.process_time() - start
    if following in moments:
      print(
        f"| {name} | {following:,} | {plain.exploitability():z.2e} | {pruned.exploitability():z.2e} "
        f"| {pruned.nodes_touched / plain.nodes_touched:z.2f} | {pruned.state.rollbacks} "
        f"| {seconds[0] / seconds[1]:z.2f} |",
        flush=True,
      )


if __name__ == "__main__":
  start(main)
