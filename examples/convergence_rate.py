r"""Draws NashConv against the horizon T: T^(-3/4) for stable-predictive CFR, T^(-1/2) for CFR.

    python examples/convergence_rate.py --output=rate.png

For each horizon T = 2^6 ... 2^14, the program runs T iterations of stable-predictive CFR, with the steps of the theory
for T, and T iterations of CFR, both with simultaneous updates. The theory bounds NashConv times T^(3/4). For CFR,
NashConv times T^(1/2) stays constant. The matrix games have mixed equilibria away from the uniform strategy.
"""

from results import draws, pyplot, save, start, writable

import csv
import pathlib

import pyspiel
from absl import flags

import spiel_cfr

_MATRICES = {
  "rock-paper-scissors, biased": [[0, -1, 2], [1, 0, -1], [-2, 1, 0]],
  "matching pennies, biased": [[2, -1], [-1, 1]],
  # From Farina, Kroer and Sandholm (2021): regret matching+ is slow on this game.
  "3 x 3": [[3, 0, -3], [0, 3, -4], [0, 0, 1]],
}
_GAMES = ("kuhn_poker", "leduc_poker")
_POWERS = flags.DEFINE_integer(
  "powers", 14, "exponent of the largest horizon, a power of 2", lower_bound=6
)
_OUTPUT = flags.DEFINE_string(
  "output", "results/rate.png", "file of the picture; a CSV file is written beside it"
)
# (title, power) of a panel -> game -> NashConv times the power of each horizon.
Curves = dict[tuple[str, float], dict[str, list[float]]]


def main() -> None:
  games: dict[str, str | pyspiel.Game] = {
    name: pyspiel.create_matrix_game(matrix, [[-entry for entry in row] for row in matrix])
    for name, matrix in _MATRICES.items()
  } | {name: name for name in _GAMES}
  solvers: list[tuple[str, float, dict[str, object] | None]] = [
    (
      f"stable-predictive, the paper's steps, {regularizer}",
      0.75,
      {"steps": "paper", "regularizer": regularizer},
    )
    for regularizer in ("entropy", "euclidean")
  ]
  solvers.append(("CFR", 0.5, None))
  horizons = [2**power for power in range(6, _POWERS.value + 1)]
  path = writable(_OUTPUT.value)
  curves: Curves = {}
  with path.with_suffix(".csv").open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["solver", "game", "horizon", "nash_conv"])
    for title, rate, settings in solvers:
      for name, source in games.items():
        game = spiel_cfr.compile_game(source)
        gaps = [nash_conv(game, horizon, settings) for horizon in horizons]
        writer.writerows([title, name, *row] for row in zip(horizons, gaps, strict=True))
        scaled = [gap * horizon**rate for gap, horizon in zip(gaps, horizons, strict=True)]
        curves.setdefault((title, rate), {})[name] = scaled
        print(f"{title:42} {name:28} {scaled[0]:z9.3g} ... {scaled[-1]:z9.3g}", flush=True)
  print(f"Wrote {path.with_suffix('.csv')}")
  draw(curves, horizons, path)


@draws
def draw(curves: Curves, horizons: list[int], path: pathlib.Path) -> None:
  """Draws one panel for each solver, and one line for each game."""
  size = 3.6 * len(curves), 4
  figure, grid = pyplot().subplots(1, len(curves), figsize=size, layout="constrained")
  for axes, ((title, rate), lines) in zip(grid, curves.items(), strict=True):
    for name, scaled in lines.items():
      axes.plot(horizons, scaled, marker=".", label=name)
    axes.set(xscale="log", yscale="log", xlabel="horizon T", title=title)
    axes.set_ylabel("NashConv $T^{3/4}$" if rate == 0.75 else "NashConv $T^{1/2}$")
    axes.title.set_fontsize(9)
    axes.grid(which="major", color="0.9")
  figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
  save(figure, path, 80)


def nash_conv(
  game: spiel_cfr.CompiledGame, horizon: int, settings: dict[str, object] | None
) -> float:
  """Returns NashConv of a solver after its horizon: stable-predictive CFR with `settings`, or CFR without."""
  solver: spiel_cfr.FullWidthSolver = (
    spiel_cfr.TabularCFRSolver(game, alternating_updates=False)
    if settings is None
    else spiel_cfr.StablePredictiveCFRSolver(game, horizon, **settings)  # type: ignore[arg-type]
  )
  solver.run(horizon)
  return solver.nash_conv()


if __name__ == "__main__":
  start(main)
