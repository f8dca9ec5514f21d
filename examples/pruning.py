r"""Draws what pruning saves: CFR+ and CFR, with and without, on games where most is never played.

    python examples/pruning.py --rule=best_response --picture=results/pruning.png

prints a table for each game: exploitability after so many iterations, the part of the leaves that was still looked at,
what has to be held between iterations ("MB", see `PruningSolver.held_bytes`), and how many times faster it was in
processor time, all else included (below 1: slower). Both solvers take turns, so that whatever else the machine does is
shared. Only the time of this process counts.

    python examples/pruning.py --papers --games=0 --at=100,300

counts what the papers' algorithms visit, see `cfr.pruning.reference_pruning`.

    python examples/pruning.py --thresholds --games=0 --at=300

prints what part of probabilities dynamic thresholding makes 0, and what that does to multiplicative weights.

    python examples/pruning.py --endgame --at=300,1000,3000,10000 --picture=

prints the first table for a river endgame of hold'em with all of `fchpa`, which is in vector form: exploitability is in
chips, and what is looked at are hands at the ends of the game.
"""

import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any, get_args

import leduc5
from absl import app, flags
from results import chosen, river_endgame

import spiel_cfr
from spiel_cfr import Pruning, PruningSolver, RegretMatching, FullWidthSolver
from spiel_cfr.cfr.pruning.constants import Rule
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
_AT = flags.DEFINE_list(
  "at", ["300", "1000", "3000", "10000", "30000"], "after how many iterations to look"
)
_RULE = flags.DEFINE_enum(
  "rule", "best_response", get_args(Rule), "what is left alone, see Pruning"
)
_CAUTION = flags.DEFINE_float(
  "caution",
  None,
  "see Pruning; by default 1 for CFR+ and 3 for CFR",
  lower_bound=0.0,
  upper_bound=1e9,
)
_PAPERS = flags.DEFINE_bool("papers", False, "whether to count what the papers' algorithms visit")
_THRESHOLDS = flags.DEFINE_bool("thresholds", False, "whether to drop small probabilities")
_ENDGAME = flags.DEFINE_bool("endgame", False, "whether to take an endgame of hold'em instead")
_PICTURE = flags.DEFINE_string(
  "picture", "results/pruning.png", "where the picture goes; empty for none"
)

# Seconds, exploitability, what part of the leaves is looked at, and how many bytes are held.
Curve = list[tuple[float, float, float, int]]


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  games = {name: GAMES[name] for name in chosen(GAMES, _GAMES.value)}
  if _ENDGAME.value:
    endgame, title = river_endgame()
    games = {title: endgame.load}
  if not games:
    raise app.UsageError("--games names none")
  if not _AT.value or not all(at.isdecimal() and int(at) > 0 for at in _AT.value):
    raise app.UsageError("--at takes positive integers")
  curves: dict[str, dict[str, Curve]] = {}
  for name, load in games.items():
    compiled = spiel_cfr.compile_game(load())
    print(f"\n{name}: {compiled}\n")
    if _PAPERS.value:
      count_visits(compiled)
    if _THRESHOLDS.value:
      drop_small(compiled)
    if _PAPERS.value or _THRESHOLDS.value:
      continue
    print("| solver | iterations | exploitability | pruned | looked at | MB | times faster |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for plus in (True, False):
      curves.setdefault(name, {}).update(compare(compiled, plus))
  if _PICTURE.value and curves:
    draw(curves)


def count_visits(game: spiel_cfr.CompiledGame) -> None:
  """Prints what part of the histories the papers' algorithms visit."""
  print("| solver | rule | iterations | exploitability | visited | come back |")
  print("| --- | --- | --- | --- | --- | --- |")
  for plus in (False, True):
    for rule in (None, *RULES):
      solver = ReferenceCFR(game, rule, plus)
      for at in sorted(map(int, _AT.value)):
        solver.run(at - solver.iteration)
        share = solver.visited / (2 * at * len(solver.tables.chance))
        gap = original_nash_conv(game, solver.faced) / 2
        print(
          f"| {'CFR+' if plus else 'CFR'} | {rule or 'none'} | {at:,} | {gap:.2e} | {share:.2f} "
          f"| {solver.num_returns:,} |",
          flush=True,
        )


def drop_small(game: spiel_cfr.CompiledGame) -> None:
  """Prints what dynamic thresholding does to multiplicative weights."""
  print("| threshold | iterations | exploitability | probabilities that are 0 |")
  print("| --- | --- | --- | --- |")
  real = game.all_action_sequences
  for threshold in (1.0, 1.1, 1.5, 2.0, 3.0):
    solver = spiel_cfr.HedgeCFRSolver(game, 300.0, threshold=threshold)
    for at in sorted(map(int, _AT.value)):
      solver.run(at - solver.iteration)
      zeros = (solver.current_probabilities()[real] == 0).mean()
      print(f"| {threshold:g} | {at:,} | {solver.exploitability():.4f} | {zeros:.2f} |", flush=True)


def unpruned(game: spiel_cfr.CompiledGame, plus: bool) -> FullWidthSolver:
  """CFR+ or CFR with the averages of the pruned solver, which are mostly those that the other player faces."""
  if _RULE.value == "partial":
    return spiel_cfr.CFRPlusSolver(game) if plus else spiel_cfr.CFRSolver(game)
  return FullWidthSolver(
    game,
    RegretMatching.plus() if plus else RegretMatching(),
    average_weights=1.0 if plus else 0.0,
    averaged=("after", "before"),
  )


def with_pruning(game: spiel_cfr.CompiledGame, plus: bool) -> FullWidthSolver:
  """CFR+ or CFR with pruning."""
  cls = spiel_cfr.CFRPlusSolver if plus else spiel_cfr.CFRSolver
  rules: dict[str, Rule] = {rule: rule for rule in get_args(Rule)}
  return cls(game, pruning=Pruning(rules[_RULE.value], caution=_CAUTION.value))


def compare(game: spiel_cfr.CompiledGame, plus: bool) -> dict[str, Curve]:
  """Runs a solver without and with pruning, each some iterations in turn."""
  name = "CFR+" if plus else "CFR"
  solvers: dict[str, FullWidthSolver] = {
    name: unpruned(game, plus),
    f"{name}, pruned": with_pruning(game, plus),
  }
  seconds = dict.fromkeys(solvers, 0.0)
  curves: dict[str, Curve] = {label: [] for label in solvers}
  for solver in solvers.values():
    # What is made once, and kernels.
    solver.prepare()
  moments = sorted(map(int, _AT.value))
  done = 0
  while done < moments[-1]:
    following = min([max(done + 50, int(1.5 * done)), *(at for at in moments if at > done)])
    for label, solver in solvers.items():
      start = time.process_time()
      solver.run(following - done)
      seconds[label] += time.process_time() - start
      share, held = 1.0, 0
      if isinstance(solver, PruningSolver):
        share, held = solver.active_share, solver.held_bytes
      curves[label].append((seconds[label], solver.exploitability(), share, held))
    done = following
    if done in moments:
      (bare, value, _, _), (own, pruned, share, held) = (curve[-1] for curve in curves.values())
      print(
        f"| {name} | {done:,} | {value:.2e} | {pruned:.2e} | {share:.2f} | {held / 1e6:.2f} | {bare / own:.2f} |",
        flush=True,
      )
  return curves


def draw(curves: dict[str, dict[str, Curve]]) -> None:
  """Draws three panels for each game: exploitability, what is looked at, and what has to be held, against time."""
  try:
    import matplotlib.pyplot as plt
  except ImportError:
    sys.exit("No picture without matplotlib: pip install 'spiel_cfr[plot]', or pass --picture=.")
  figure, panels = plt.subplots(
    3,
    len(curves),
    figsize=(4.6 * len(curves), 7.8),
    layout="constrained",
    squeeze=False,
    sharex="col",
    height_ratios=[3, 1, 1],
  )
  for (upper, middle, lower), (name, lines) in zip(panels.T, curves.items(), strict=True):
    for label, curve in lines.items():
      times, values, shares, held = zip(*curve, strict=True)
      color = "C0" if label.startswith("CFR+") else "C1"
      style = "-" if label.endswith("pruned") else "--"
      upper.plot(times, values, label=label, color=color, linestyle=style)
      if label.endswith("pruned"):
        middle.plot(times, shares, color=color)
        lower.plot(times, [each / 1e6 for each in held], color=color)
    upper.set(xscale="log", yscale="log", title=name)
    middle.set(xscale="log", ylim=(0, 1.05))
    lower.set(xscale="log", xlabel="seconds of processor time")
    lower.set_ylim(bottom=0)
    for axes in (upper, middle, lower):
      axes.grid(which="major", color="0.9")
  panels[0][0].set_ylabel("exploitability")
  panels[1][0].set_ylabel("leaves looked at")
  panels[2][0].set_ylabel("MB held")
  panels[0][0].legend(loc="lower left", fontsize="small")
  path = pathlib.Path(_PICTURE.value)
  path.parent.mkdir(parents=True, exist_ok=True)
  figure.savefig(path, dpi=110)
  print(f"\nWrote {path}")


if __name__ == "__main__":
  app.run(main)
