r"""Watches infosets while a solver runs: strategies, cumulative regrets, and how the regrets of all infosets shrink.

    python examples/track.py --game=kuhn_poker --track='^2' --solver=cfr --iterations=10000

draws what Kuhn's king does under CFR, and writes snapshots of the infosets whose names the regular expression finds to
a file, one JSON object a line. Any solver of the catalogue will do; those that keep no regrets have strategies only.
"""

import json
import pathlib
from typing import Any

import numpy as np
from absl import flags
from results import draws, file_name, pyplot, save, start

import spiel_cfr
from spiel_cfr import catalogue, runs
from spiel_cfr._util import files

_GAME = flags.DEFINE_string("game", "kuhn_poker", "any OpenSpiel game, with its parameters")
_SOLVER = flags.DEFINE_string("solver", "cfr", f"which, of {', '.join(catalogue.SOLVERS)}")
_TRACK = flags.DEFINE_string("track", "^2", "a regular expression: which infosets to follow")
_ITERATIONS = flags.DEFINE_integer("iterations", 10_000, "how many iterations", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "of the random numbers of solvers that sample")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "where picture and file go")
_PLOT = flags.DEFINE_bool("plot", True, "whether to draw; needs matplotlib")
# Where there is room for in a picture.
_MOST_INFOSETS = 6


def main() -> None:
  files.check_writable(_OUTPUT_DIR.value)
  samples = issubclass(catalogue.find(_SOLVER.value).family, spiel_cfr.mccfr.MonteCarloSolver)
  seed = {"seed": _SEED.value} if samples else {}
  solver = catalogue.make(_SOLVER.value, _GAME.value, _ITERATIONS.value, **seed)
  tracker = runs.Tracker(_TRACK.value)
  spiel_cfr.run(
    solver, _ITERATIONS.value, evaluate_at=runs.Powers(1.1), traces=[tracker], progress=False
  )
  kind, game = f"track_{_SOLVER.value}", solver.compiled_game.game_string
  path = pathlib.Path(_OUTPUT_DIR.value, file_name(kind, game, ".jsonl"))
  notes = [note for own in tracker.infosets.values() for note in own]
  path.write_text("".join(json.dumps(note._asdict()) + "\n" for note in notes))
  print(f"Wrote {path}")
  if _PLOT.value:
    draw(solver, tracker, path.with_suffix(".png"))


@draws
def draw(solver: spiel_cfr.Solver, tracker: runs.Tracker, path: pathlib.Path) -> None:
  """Draws a row an infoset, strategies on the left, regrets on the right, and below the regrets of all infosets."""
  shown = dict(list(tracker.infosets.items())[:_MOST_INFOSETS])
  rows = len(shown) + bool(tracker.histograms)
  figure, grid = pyplot().subplots(
    rows, 2, figsize=(11, 2.2 * rows), sharex=True, squeeze=False, layout="constrained"
  )
  for (strategies, regrets), ((player, infostate), notes) in zip(grid, shown.items(), strict=False):
    iterations = [note.iteration for note in notes]
    names = action_names(solver, player, infostate, notes[0].actions)
    for index, name in enumerate(names):
      color = f"C{index}"
      current = [note.current[index] for note in notes]
      strategies.plot(iterations, current, color=color, alpha=0.35, linewidth=0.8)
      average = [note.average[index] for note in notes]
      strategies.plot(iterations, average, color=color, label=name)
      own = [note.regrets[index] for note in notes if note.regrets is not None]
      if own:
        regrets.plot(iterations, own, color=color)
    strategies.set(ylim=(-0.03, 1.03), ylabel="probability")
    title = f"player {player} at {infostate}"[:80] + f", own reach {notes[-1].reach:z.2f}"
    strategies.set_title(title, fontsize=9, loc="left")
    strategies.legend(fontsize=8, loc="center right")
    # Regrets of bad actions fall without end, and would hide the others.
    low, high = regrets.get_ylim()
    regrets.set(yscale="symlog" if max(-low, high) > 10.0 else "linear", ylabel="cumulative regret")
    regrets.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
  if tracker.histograms:
    draw_histograms(figure, grid[-1], tracker)
  for axes in grid.ravel():
    axes.set_xscale("log")
    axes.spines[["top", "right"]].set_visible(False)
  for axes in grid[-1]:
    axes.set_xlabel("iterations")
  left_out = len(tracker.infosets) - len(shown)
  figure.suptitle(
    f"{solver.recipe.name} on {solver.compiled_game.game_string.removesuffix('()')}: average strategy (faint: current "
    "strategy) and cumulative regret"
    + (f"; {left_out:,} more infosets are in the file" if left_out else "")
  )
  save(figure, path, 110)


def draw_histograms(figure: Any, pair: Any, tracker: runs.Tracker) -> None:
  """Draws what part of all actions has a regret per iteration of which size, on either side of 0, over time."""
  counts = np.stack(list(tracker.histograms.values()), axis=1)
  shares = np.ma.masked_equal(counts / counts.sum(axis=0), 0.0)
  iterations, half = np.array(list(tracker.histograms)), len(counts) // 2
  bounds, sizes = np.append(iterations, iterations[-1] * 1.1), tracker.edges[half + 1 :]
  sides = {"negative": shares[:half][::-1], "positive": shares[half + 1 :]}
  for axes, (side, own) in zip(pair, sides.items(), strict=True):
    most = max(each.max() for each in sides.values() if each.count())
    mesh = axes.pcolormesh(bounds, sizes, own, cmap="viridis_r", vmin=0.0, vmax=most)
    axes.set(yscale="log", ylabel="|regret| / iterations")
    axes.set_title(f"{side} regrets of all infosets", fontsize=9, loc="left")
  figure.colorbar(mesh, ax=pair[1], label="part of all actions")


def action_names(
  solver: spiel_cfr.Solver, player: int, infostate: str, actions: list[int]
) -> list[str]:
  """Returns what the game calls the actions of an infoset."""
  game = solver.compiled_game
  names = [[infostate] if each == player else [] for each in range(game.num_players)]
  (state,) = game.view.first_states(names)
  return [state.action_to_string(player, action) for action in actions]


if __name__ == "__main__":
  start(main)
