r"""Compares Monte Carlo CFR's samplers with CFR+, and shows what single infosets do meanwhile.

    python examples/mccfr.py --game=leduc_poker --samplers=external,outcome,cfr+ --seconds=5

prints exploitability (NashConv where the game is not a constant-sum game of two players) and draws it against nodes
touched and against seconds.

    python examples/mccfr.py --game=kuhn_poker --samplers= --track='^0' --iterations=20000

draws current strategy, average strategy and cumulative regret of the infosets whose names the regular expression finds,
and writes them to a file, one JSON object per line. It also takes games too large to compile.
"""

import json
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

from absl import app, flags
from results import file_name

import spiel_cfr
from spiel_cfr import CompiledGame, RegretMatching
from spiel_cfr._util import files
from spiel_cfr.mccfr import Snapshot

Factory = Callable[[Any, int], Any]
SOLVERS: dict[str, Factory] = {
  "external": lambda game, seed: spiel_cfr.ExternalSamplingSolver(game, seed=seed),
  "external_linear": lambda game, seed: spiel_cfr.ExternalSamplingSolver(
    game, seed=seed, minimizer=RegretMatching.discounted(1.0, 1.0), average_weights=1.0
  ),
  "external_plus": lambda game, seed: spiel_cfr.ExternalSamplingSolver(
    game, seed=seed, minimizer=RegretMatching.plus(), average_weights=1.0
  ),
  "external_baseline": lambda game, seed: spiel_cfr.ExternalSamplingSolver(
    game, seed=seed, baseline_rate=0.1
  ),
  "chance": lambda game, seed: spiel_cfr.mccfr.ChanceSamplingSolver(game, seed=seed),
  "average_strategy": lambda game, seed: spiel_cfr.mccfr.AverageStrategySamplingSolver(
    game, seed=seed
  ),
  "outcome": lambda game, seed: spiel_cfr.OutcomeSamplingSolver(game, seed=seed),
  "outcome_baseline": lambda game, seed: spiel_cfr.OutcomeSamplingSolver(
    game, seed=seed, baseline_rate=0.1
  ),
  "cfr+": lambda game, seed: spiel_cfr.CFRPlusSolver(game),
}
_GAME = flags.DEFINE_string("game", "leduc_poker", "any OpenSpiel game, with its parameters")
_SAMPLERS = flags.DEFINE_list(
  "samplers",
  ["external", "external_linear", "chance", "average_strategy", "outcome", "cfr+"],
  f"which to compare, from: {', '.join(SOLVERS)}",
)
_SECONDS = flags.DEFINE_float("seconds", 3.0, "how long each runs, evaluations included", 0.0)
_TRACK = flags.DEFINE_string("track", None, "a regular expression: which infosets to follow")
_TRACKED = flags.DEFINE_enum(
  "tracked_sampler", "external", [name for name in SOLVERS if name != "cfr+"], "under which sampler"
)
_ITERATIONS = flags.DEFINE_integer(
  "iterations", 10_000, "how many iterations to follow them", lower_bound=1
)
_SEED = flags.DEFINE_integer("seed", 0, "of the random numbers", lower_bound=0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "where pictures and files go")
_PLOT = flags.DEFINE_bool("plot", True, "whether to draw; needs matplotlib")
# Where there is room for in a picture.
_MOST_INFOSETS = 6


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  unknown = sorted(set(_SAMPLERS.value) - set(SOLVERS))
  if unknown:
    raise app.UsageError(f"unknown samplers {unknown}; there are {', '.join(SOLVERS)}")
  try:
    files.check_writable(_OUTPUT_DIR.value)
    if _SAMPLERS.value:
      compare()
    if _TRACK.value is not None:
      track()
  except (spiel_cfr.errors.SpielCFRError, OSError) as error:
    sys.exit(f"error: {error}")


def compare() -> None:
  game = spiel_cfr.compile_game(_GAME.value)
  quality, divisor = ("exploitability", 2) if game.is_two_player_constant_sum else ("NashConv", 1)
  print(f"{game}\n")
  print(f"{'':18} {'iterations':>12} {'nodes touched':>16} {'seconds':>8}   {quality}")
  results = {}
  for name in _SAMPLERS.value:
    result = spiel_cfr.run(SOLVERS[name](game, _SEED.value), seconds=_SECONDS.value, progress=False)
    results[name] = result.rows
    last = result.last
    print(
      f"{name:18} {last.iteration:12,} {last.nodes_touched:16,} {last.solver_seconds:8.2f}   "
      f"{last.nash_conv / divisor:.3e}",
      flush=True,
    )
  if _PLOT.value:
    draw_comparison(game, results, quality, divisor)


def draw_comparison(
  game: CompiledGame, results: dict[str, list[spiel_cfr.runs.Row]], quality: str, divisor: int
) -> None:
  plt = pyplot()

  figure, both = plt.subplots(1, 2, figsize=(11, 5), sharey=True, layout="constrained")
  for axes, column, label in zip(
    both, ("nodes_touched", "solver_seconds"), ("nodes touched", "seconds"), strict=True
  ):
    for name, rows in results.items():
      axes.plot(
        [getattr(row, column) for row in rows],
        [row.nash_conv / divisor for row in rows],
        label=name,
        linestyle="--" if name == "cfr+" else "-",
        color="black" if name == "cfr+" else None,
      )
    axes.set(xscale="log", yscale="log", xlabel=label)
    axes.grid(which="major", color="0.9")
  both[0].set_ylabel(f"{quality} of the average policy")
  both[0].legend()
  figure.suptitle(game.game_string.removesuffix("()"))
  save(figure, "mccfr", game.game_string)


def track() -> None:
  pattern = re.compile(_TRACK.value or "")
  solver = SOLVERS[_TRACKED.value](_GAME.value, _SEED.value)
  kind, game = f"track_{_TRACKED.value}", str(solver.game)
  path = pathlib.Path(_OUTPUT_DIR.value, file_name(kind, game, ".jsonl"))
  every = max(1, _ITERATIONS.value // 200)
  snapshots: list[Snapshot] = []
  while solver.iteration < _ITERATIONS.value:
    solver.run(every)
    snapshots += [
      solver.snapshot(player, infostate)
      for player, infostates in enumerate(solver.infostates())
      for infostate in infostates
      if pattern.search(infostate)
    ]
  if not snapshots:
    sys.exit("error: there is no infoset that the regular expression finds, or none was met.")
  path.write_text("".join(json.dumps(snapshot._asdict()) + "\n" for snapshot in snapshots))
  print(f"\nWrote {path}")
  if _PLOT.value:
    draw_infosets(snapshots, kind, game)


def draw_infosets(snapshots: list[Snapshot], kind: str, game: str) -> None:
  """Draws a row of pictures an infoset: strategies on the left, regrets on the right."""
  plt = pyplot()

  infosets: dict[tuple[int, str], list[Snapshot]] = {}
  for snapshot in snapshots:
    infosets.setdefault((snapshot.player, snapshot.infostate), []).append(snapshot)
  shown = dict(list(infosets.items())[:_MOST_INFOSETS])
  figure, grid = plt.subplots(
    len(shown), 2, figsize=(11, 2.6 * len(shown)), sharex=True, squeeze=False, layout="constrained"
  )
  for (strategies, regrets), ((player, infostate), notes) in zip(grid, shown.items(), strict=True):
    iterations = [note.iteration for note in notes]
    for index, action in enumerate(notes[0].actions):
      color = f"C{index}"
      current = [note.current[index] for note in notes]
      strategies.plot(iterations, current, color=color, alpha=0.3, linewidth=0.8)
      average = [note.average[index] for note in notes]
      strategies.plot(iterations, average, color=color, label=f"action {action}")
      regrets.plot(iterations, [note.regret[index] for note in notes], color=color)
    strategies.set(ylim=(-0.03, 1.03), ylabel="probability")
    strategies.set_title(f"player {player}: {infostate}"[:150], fontsize=8, loc="left")
    regrets.set_ylabel("cumulative regret")
    strategies.legend(fontsize=7)
  for axes in grid[-1]:
    axes.set_xlabel("iterations")
  left_out = len(infosets) - len(shown)
  figure.suptitle(
    "average strategy (faint: current strategy) and cumulative regret"
    + (f"; {left_out:,} more infosets are in the file" if left_out else "")
  )
  save(figure, kind, game)


def pyplot() -> Any:
  try:
    import matplotlib.pyplot as plt
  except ImportError:
    sys.exit("No picture without matplotlib: pip install matplotlib, or pass --noplot.")
  return plt


def save(figure: Any, kind: str, game: str) -> None:
  path = pathlib.Path(_OUTPUT_DIR.value, file_name(kind, game, ".png"))
  figure.savefig(path, dpi=150)
  print(f"\nWrote {path}")


if __name__ == "__main__":
  app.run(main)
