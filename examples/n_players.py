r"""Draws two measures of play in games of several players or general sums: which of them falls, and what it means.

    python examples/n_players.py --iterations=2000 --picture=results/n_players.png

For CFR and CFR+ with simultaneous updates: the coarse correlated gap of all that has been played, which regret
minimization brings to 0 whatever the game; and NashConv of the product of the average strategies, which it need not.
"""

import math
import pathlib

import matplotlib.pyplot as plt
import pyspiel
from absl import app, flags

import spiel_cfr

_NAMED_GAMES: dict[str, str | pyspiel.Game] = {
  "Kuhn, 3 players": "kuhn_poker(players=3)",
  "Kuhn, 4 players": "kuhn_poker(players=4)",
  "Leduc, 3 players": "leduc_poker(players=3)",
  "sheriff, general-sum": (
    "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=3,max_items=5,num_rounds=2,sheriff_penalty=1.0)"
  ),
  # A little off its symmetry, from which nobody would move.
  "Shapley's game": pyspiel.create_matrix_game(
    [[0.0, 1.1, 0.0], [0, 0, 1], [1, 0, 0]], [[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]
  ),
}
_SOLVERS = {"CFR": (False, "0.5"), "CFR+": (True, "tab:blue")}

_GAMES = flags.DEFINE_multi_integer(
  "games", list(range(len(_NAMED_GAMES))), f"which of {', '.join(_NAMED_GAMES)}, counted from 0"
)
_ITERATIONS = flags.DEFINE_integer("iterations", 2000, "how many each does", lower_bound=1)
_PICTURE = flags.DEFINE_string("picture", "results/n_players.png", "where the picture goes")


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  names = [list(_NAMED_GAMES)[number] for number in _GAMES.value]
  figure, grid = plt.subplots(
    1, len(names), figsize=(3.4 * len(names) + 0.6, 3.6), layout="constrained", squeeze=False
  )
  print(
    "| game | solver | coarse correlated gap | NashConv of the product |\n| --- | --- | ---: | ---: |"
  )
  for axes, name in zip(grid[0], names, strict=True):
    game = spiel_cfr.compile_game(_NAMED_GAMES[name])
    for label, (plus, color) in _SOLVERS.items():
      solver = spiel_cfr.FullWidthSolver(
        game,
        spiel_cfr.RegretMatching.plus() if plus else spiel_cfr.RegretMatching(),
        alternating_updates=False,
        averaging=spiel_cfr.Averaging(float(plus), correlated=True),
      )
      points = []
      for iteration in due():
        solver.run(iteration - solver.iteration)
        gap = spiel_cfr.correlated.coarse_correlated_gap(solver).gap
        points.append((iteration, gap, solver.nash_conv()))
      iterations, gaps, nash_convs = zip(*points, strict=True)
      axes.plot(iterations, gaps, color=color, label=f"{label}, coarse correlated gap")
      axes.plot(iterations, nash_convs, color=color, linestyle=":", label=f"{label}, NashConv")
      print(f"| {name} | {label} | {gaps[-1]:.1e} | {nash_convs[-1]:.1e} |", flush=True)
    axes.set(xscale="log", yscale="log", xlabel="iterations", title=name)
    axes.grid(which="major", color="0.92")
  grid[0, 0].set_ylabel("gap, in the game's units")
  handles, labels = grid[0, 0].get_legend_handles_labels()
  figure.legend(handles, labels, loc="outside lower center", ncols=4)
  path = pathlib.Path(_PICTURE.value)
  path.parent.mkdir(parents=True, exist_ok=True)
  figure.savefig(path, dpi=100)
  print(f"Wrote {path}")


def due() -> list[int]:
  """Returns when to look: at powers of 10^(1/6), and at the end."""
  steps = math.floor(6 * math.log10(_ITERATIONS.value))
  return sorted({round(10 ** (step / 6)) for step in range(steps + 1)} | {_ITERATIONS.value})


if __name__ == "__main__":
  app.run(main)
