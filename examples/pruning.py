r"""Prints what pruning saves: CFR+ with and without, on games where most is never played.

    python examples/pruning.py

prints a table for each game: exploitability after so many iterations, the part of the leaves that was still looked at,
and how many times faster it was in processor time, all else included (below 1: slower). Both solvers take turns, so
that whatever else the machine does is shared. Only the time of this process counts.

    python examples/pruning.py --papers --games=0 --at=100,300

counts what the papers' algorithms visit, see `cfr.pruning.reference_pruning`.

"""

import time
from collections.abc import Callable
from typing import Any

import leduc5
from absl import app, flags
from results import chosen, start

import spiel_cfr
from spiel_cfr import CFRPlusSolver, FullWidthSolver, Pruned, RegretMatching, Solver
from spiel_cfr.cfr.pruning.reference_pruning import RULES, ReferenceCFR
from spiel_cfr.evaluation.evaluate import original_nash_conv

GAMES: dict[str, Callable[[], Any]] = {
  "Leduc poker": lambda: "leduc_poker",
  "liar's dice, 1 die of 6 sides": lambda: "liars_dice",
  "Leduc-5": leduc5.Leduc5Game,
  # On these no constant was chosen, but for what opening a window is counted as and, with a look at the first of them,
  # when the first window begins.
  "liar's dice, 1 die of 7 sides": lambda: "liars_dice(dice_sides=7)",
  "goofspiel, 5 cards": lambda: (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=True,num_cards=5,points_order=descending))"
  ),
  "battleship, 2x2": lambda: (
    "battleship(board_width=2,board_height=2,ship_sizes=[1;2],ship_values=[1;2],num_shots=3,allow_repeated_shots=False)"
  ),
}

_GAMES = flags.DEFINE_list("games", list("012"), "which games, by number from 0")
_AT = flags.DEFINE_list("at", ["1000", "3000", "10000"], "after how many iterations to look")
_PAPERS = flags.DEFINE_bool("papers", False, "whether to count what the papers' algorithms visit")


def main() -> None:
  games = chosen(GAMES, _GAMES.value)
  if not games:
    raise app.UsageError("--games names none")
  if not _AT.value or not all(at.isdecimal() and int(at) > 0 for at in _AT.value):
    raise app.UsageError("--at takes positive integers")
  for name in games:
    compiled = spiel_cfr.compile_game(GAMES[name]())
    print(f"\n{name}: {compiled}\n")
    if _PAPERS.value:
      count_visits(compiled)
    else:
      compare(compiled)


def count_visits(game: spiel_cfr.CompiledGame) -> None:
  """Prints what part of the histories the papers' algorithms visit."""
  print("| solver | rule | iterations | exploitability | visited | come back |")
  print("| --- | --- | --- | --- | --- | --- |")
  for plus in (False, True):
    for rule in (None, *RULES):
      solver = ReferenceCFR(game, rule, plus)
      for at in sorted(map(int, _AT.value)):
        solver.run(at - solver.iteration)
        share = solver.visited / (2 * at * solver.num_histories)
        gap = original_nash_conv(game, solver.faced) / 2
        print(
          f"| {'CFR+' if plus else 'CFR'} | {rule or 'none'} | {at:,} | {gap:z.2e} | {share:z.2f} "
          f"| {solver.num_returns:,} |",
          flush=True,
        )


def compare(game: spiel_cfr.CompiledGame) -> None:
  """Runs CFR+ without and with pruning, each some iterations in turn, with averages of the same strategies."""
  pruned = Pruned(CFRPlusSolver(game))
  plain = FullWidthSolver(game, RegretMatching.plus(), averaging=spiel_cfr.Averaging(1.0, "faced"))
  solvers: tuple[Solver, ...] = plain, pruned
  seconds = [0.0, 0.0]
  for solver in solvers:
    # What is made once, and kernels.
    solver.prepare()
  print("| iterations | exploitability | pruned | looked at | times faster |")
  print("| --- | --- | --- | --- | --- |")
  moments = sorted(map(int, _AT.value))
  while plain.iteration < moments[-1]:
    done = plain.iteration
    following = min([max(done + 50, int(1.5 * done)), *(at for at in moments if at > done)])
    for place, solver in enumerate(solvers):
      start = time.process_time()
      solver.run(following - done)
      seconds[place] += time.process_time() - start
    if following in moments:
      print(
        f"| {following:,} | {plain.exploitability():z.2e} | {pruned.exploitability():z.2e} "
        f"| {pruned.active_share:z.2f} | {seconds[0] / seconds[1]:z.2f} |",
        flush=True,
      )


if __name__ == "__main__":
  start(main)
