r"""Tracks infosets while a solver runs: strategies, cumulative regrets, and histograms of all regrets.

    python examples/track.py --game=kuhn_poker --track='^2' --solver=cfr --iterations=10000

draws the infosets of the king in Kuhn poker under CFR. It also writes snapshots of these infosets to a file, one JSON
object per line. `--track` is a regular expression of names of infosets; without it, all infosets are tracked. The last
row of the picture compares the last strategy with the average: the probability of every action, and the exploitability
(NashConv if the game is not two-player constant-sum). All solvers of the catalogue work; a solver without regrets shows
strategies only.
"""

from results import draws, file_name, pyplot, save, start

import json
import pathlib
from typing import Any

import numpy as np
from absl import flags

import spiel_cfr
from spiel_cfr import catalogue, runs
from spiel_cfr._util import files

_GAME = flags.DEFINE_string("game", "kuhn_poker", "OpenSpiel game string")
_SOLVER = flags.DEFINE_string("solver", "cfr", f"solver, from: {', '.join(catalogue.SOLVERS)}")
_TRACK = flags.DEFINE_string(
  "track", "", "regular expression of the infosets to track; by default all"
)
_ITERATIONS = flags.DEFINE_integer("iterations", 10_000, "number of iterations", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "seed of solvers that sample")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "folder of picture and snapshots")
_PLOT = flags.DEFINE_bool("plot", True, "draw the picture, which needs matplotlib")
# The most infosets in the picture.
_MOST_INFOSETS = 12


def main() -> None:
  files.check_writable(f"{_OUTPUT_DIR.value}/picture")
  samples = issubclass(catalogue.find(_SOLVER.value).family, spiel_cfr.mccfr.MonteCarloSolver)
  seed = {"seed": _SEED.value} if samples else {}
  solver = catalogue.make(_SOLVER.value, _GAME.value, _ITERATIONS.value, **seed)
  tracker = runs.Tracker(_TRACK.value)
  result = spiel_cfr.run(
    solver,
    _ITERATIONS.value,
    evaluate_at=runs.Powers(1.1),
    evaluate_current=True,
    traces=[tracker],
    progress=False,
  )
  kind, game = f"track_{_SOLVER.value}", solver.compiled_game.game_string
  path = pathlib.Path(_OUTPUT_DIR.value, file_name(kind, game, ".jsonl"))
  snapshots = [snapshot for of_infoset in tracker.infosets.values() for snapshot in of_infoset]
  path.write_text("".join(json.dumps(snapshot._asdict()) + "\n" for snapshot in snapshots))
  print(f"Wrote {path}")
  if _PLOT.value:
    draw(solver, tracker, result.rows, path.with_suffix(".png"))


@draws
def draw(
  solver: spiel_cfr.Solver, tracker: runs.Tracker, evaluations: list[runs.Row], path: pathlib.Path
) -> None:
  """Draws one row for each infoset, strategies left and regrets right; the last rows are about all infosets."""
  shown = dict(list(tracker.infosets.items())[:_MOST_INFOSETS])
  rows = len(shown) + bool(tracker.histograms) + 1
  figure, grid = pyplot().subplots(
    rows, 2, figsize=(11, 2.2 * rows), squeeze=False, layout="constrained"
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
      of_action = [note.regrets[index] for note in notes if note.regrets is not None]
      if of_action:
        regrets.plot(iterations, of_action, color=color)
    strategies.set(ylim=(-0.03, 1.03), ylabel="probability")
    title = f"player {player} at {infostate}"[:80] + f", own reach {notes[-1].reach:z.2f}"
    strategies.set_title(title, fontsize=9, loc="left")
    strategies.legend(fontsize=8, loc="center right")
    # Regrets of bad actions become very negative, and would hide the others.
    low, high = regrets.get_ylim()
    regrets.set(yscale="symlog" if max(-low, high) > 10.0 else "linear", ylabel="cumulative regret")
    regrets.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
  if tracker.histograms:
    draw_histograms(figure, grid[-2], tracker)
  draw_last_and_average(grid[-1], solver, evaluations)
  for axes in grid.ravel():
    axes.spines[["top", "right"]].set_visible(False)
  for axes in grid.ravel()[:-2]:
    axes.set(xscale="log", xlim=(1, evaluations[-1].iteration))
  for axes in grid[-2]:
    axes.set_xlabel("iterations")
  left_out = len(tracker.infosets) - len(shown)
  figure.suptitle(
    f"{solver.recipe.name} on {solver.compiled_game.game_string.removesuffix('()')}: average strategy (faint: current "
    "strategy) and cumulative regret"
    + (f"; {left_out:,} more infosets are in the file" if left_out else "")
  )
  save(figure, path, 110)


def draw_histograms(figure: Any, pair: Any, tracker: runs.Tracker) -> None:
  """Draws histograms of regrets per iteration over time, separately for negative and positive regrets."""
  counts = np.stack(list(tracker.histograms.values()), axis=1)
  shares = np.ma.masked_equal(counts / counts.sum(axis=0), 0.0)
  iterations, half = np.array(list(tracker.histograms)), len(counts) // 2
  bounds, sizes = np.append(iterations, iterations[-1] * 1.1), tracker.edges[half + 1 :]
  sides = {"negative": shares[:half][::-1], "positive": shares[half + 1 :]}
  for axes, (side, of_side) in zip(pair, sides.items(), strict=True):
    most = max(side_shares.max() for side_shares in sides.values() if side_shares.count())
    mesh = axes.pcolormesh(bounds, sizes, of_side, cmap="viridis_r", vmin=0.0, vmax=most)
    axes.set(yscale="log", ylabel="|regret| / iterations")
    axes.set_title(f"{side} regrets of all infosets", fontsize=9, loc="left")
  figure.colorbar(mesh, ax=pair[1], label="share of all actions")


def draw_last_and_average(pair: Any, solver: spiel_cfr.Solver, evaluations: list[runs.Row]) -> None:
  """Draws every action's probability in the last and the average strategy, and the exploitability of both over time."""
  snapshots = solver.snapshots()
  averages = [probability for snapshot in snapshots for probability in snapshot.average]
  last = [probability for snapshot in snapshots for probability in snapshot.current]
  pair[0].plot([0, 1], [0, 1], color="0.8", linewidth=0.8)
  pair[0].scatter(averages, last, s=12, alpha=0.5)
  pair[0].set(xlabel="average strategy", ylabel="last strategy")
  pair[0].set_title("probability of every action of all infosets", fontsize=9, loc="left")
  constant_sum = solver.compiled_game.is_two_player_constant_sum
  iterations, divisor = [row.iteration for row in evaluations], 2 if constant_sum else 1
  # Smaller values are rounding errors, and a logarithmic axis has no 0.
  curves = {
    "average": [max(row.nash_conv / divisor, 1e-16) for row in evaluations],
    "last": [max((row.current_nash_conv or 0.0) / divisor, 1e-16) for row in evaluations],
  }
  for name, curve in curves.items():
    pair[1].plot(iterations, curve, label=name)
  pair[1].set(xscale="log", yscale="log", xlabel="iterations")
  pair[1].set_ylabel("exploitability" if constant_sum else "NashConv")
  pair[1].legend(fontsize=8)


def action_names(
  solver: spiel_cfr.Solver, player: int, infostate: str, actions: list[int]
) -> list[str]:
  """Returns the game's names of the actions of an infoset."""
  game = solver.compiled_game
  names = [[infostate] if number == player else [] for number in range(game.num_players)]
  (state,) = game.view.first_states(names)
  return [state.action_to_string(player, action) for action in actions]


if __name__ == "__main__":
  start(main)
