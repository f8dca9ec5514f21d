r"""Draws the gaps from correlated equilibria and NashConv, in games of several players or general sums.

    python examples/n_players.py --iterations=2000 --picture=results/n_players.png

The gap of the played iterations from a coarse correlated equilibrium converges to 0 in every game, for CFR and CFR+
with simultaneous updates and for EFR. With EFR, the gap from an extensive-form correlated equilibrium converges to 0
too. NashConv of the product of the average strategies need not converge to 0.
"""

from results import draws, pyplot, save, start

import math

import pyspiel
from absl import flags

import spiel_cfr

_NAMED_GAMES: dict[str, str | pyspiel.Game] = {
  "Kuhn, 3 players": "kuhn_poker(players=3)",
  "Kuhn, 4 players": "kuhn_poker(players=4)",
  "Leduc, 3 players": "leduc_poker(players=3)",
  "sheriff, general-sum": (
    "sheriff(item_penalty=1.0,item_value=5.0,max_bribe=3,max_items=5,num_rounds=2,sheriff_penalty=1.0)"
  ),
  # Slightly asymmetric, because solvers would stay at the symmetric equilibrium.
  "Shapley's game": pyspiel.create_matrix_game(
    [[0.0, 1.1, 0.0], [0, 0, 1], [1, 0, 0]], [[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]
  ),
}
_COLORS = {"CFR": "0.5", "CFR+": "tab:blue", "EFR": "tab:orange"}

_GAMES = flags.DEFINE_multi_integer(
  "games",
  list(range(len(_NAMED_GAMES))),
  f"games to solve, by number from 0: {', '.join(_NAMED_GAMES)}",
)
_ITERATIONS = flags.DEFINE_integer("iterations", 2000, "iterations of each solver", lower_bound=1)
_PICTURE = flags.DEFINE_string("picture", "results/n_players.png", "file of the picture")
# Solver -> (iteration, coarse gap, NashConv).
Curves = dict[str, list[tuple[int, float, float]]]


def main() -> None:
  names = [list(_NAMED_GAMES)[number] for number in _GAMES.value]
  curves: dict[str, Curves] = {}
  print(
    "| game | solver | coarse gap | extensive-form gap | NashConv of the product |\n| --- | --- | ---: | ---: | ---: |"
  )
  for name in names:
    game = spiel_cfr.compile_game(_NAMED_GAMES[name])
    for label in _COLORS:
      solver = make(label, game)
      play, points = spiel_cfr.correlated.EmpiricalPlay(game, "blind counterfactual"), []
      for iteration in range(1, _ITERATIONS.value + 1):
        # The weight of the iteration in the solver's average.
        play.add(solver.current_probabilities(), iteration if label == "CFR+" else 1.0)
        solver.run(1)
        if iteration in due():
          points.append((iteration, play.gap("coarse").gap, solver.nash_conv()))
      curves.setdefault(name, {})[label] = points
      _, gap, nash_conv = points[-1]
      last = f"{solver.gap().gap:z.1e}" if isinstance(solver, spiel_cfr.EFRSolver) else ""
      print(f"| {name} | {label} | {gap:z.1e} | {last} | {nash_conv:z.1e} |", flush=True)
  draw(curves)


@draws
def draw(curves: dict[str, Curves]) -> None:
  """Draws one panel for each game, and two lines for each solver."""
  figure, grid = pyplot().subplots(
    1, len(curves), figsize=(3.4 * len(curves) + 0.6, 3.6), layout="constrained", squeeze=False
  )
  for axes, (name, of_game) in zip(grid[0], curves.items(), strict=True):
    for label, points in of_game.items():
      color = _COLORS[label]
      iterations, gaps, nash_convs = zip(*points, strict=True)
      axes.plot(iterations, gaps, color=color, label=f"{label}, coarse correlated gap")
      axes.plot(iterations, nash_convs, color=color, linestyle=":", label=f"{label}, NashConv")
    axes.set(xscale="log", yscale="log", xlabel="iterations", title=name)
    axes.grid(which="major", color="0.92")
  grid[0, 0].set_ylabel("gap, in the game's units")
  handles, labels = grid[0, 0].get_legend_handles_labels()
  figure.legend(handles, labels, loc="outside lower center", ncols=4)
  save(figure, _PICTURE.value, 100)


def make(
  label: str, game: spiel_cfr.CompiledGame
) -> spiel_cfr.EFRSolver | spiel_cfr.FullWidthSolver:
  """Returns a solver whose players update at the same time."""
  if label == "EFR":
    return spiel_cfr.EFRSolver(game, deviations="causal partial sequence")
  plus = label == "CFR+"
  return spiel_cfr.TabularCFRSolver(
    game, alternating_updates=False, linear_averaging=plus, regret_matching_plus=plus
  )


def due() -> set[int]:
  """Returns the iterations to evaluate at: powers of 10^(1/6), and the last one."""
  steps = math.floor(6 * math.log10(_ITERATIONS.value))
  return {round(10 ** (step / 6)) for step in range(steps + 1)} | {_ITERATIONS.value}


if __name__ == "__main__":
  start(main)
