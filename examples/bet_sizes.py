r"""Optimizes bet sizes in Kuhn and Leduc poker while CFR+ solves the games.

    python examples/bet_sizes.py --picture=results/bet_sizes.png

The method is that of Brown and Sandholm, "Regret Transfer and Parameter Optimization" (2014). Every few iterations, the
bet sizes of player 0 take a step along the approximate gradient of the value under the averages so far. CFR+ continues
in the game with the new sizes, and keeps regrets and averages. A step is length * gradient / sqrt(sum of squared norms
of the gradients so far). The sizes of player 1 are fixed. `optimize_parameters`, which solves each game before a step,
has the same number of iterations. The table shows the values of the resulting sizes, computed by CFR+ from scratch.
"""

from results import draws, pyplot, save, start

from typing import Any

import numpy as np
from absl import flags

import spiel_cfr
from spiel_cfr.parametric_games import (
  LinearGame,
  kuhn_bets,
  leduc_bets,
  linear_game,
  optimize_parameters,
)

# Game, components, initial sizes, indices of the fixed ones, names of the others.
GAMES: dict[str, Any] = {
  "Kuhn poker": ("kuhn_poker", kuhn_bets, (1.0,), (), ("bet",)),
  "Leduc poker": ("leduc_poker", leduc_bets, (2, 4, 2, 4), (2, 3), ("round 1", "round 2")),
}

_ITERATIONS = flags.DEFINE_integer("iterations", 5_000, "total iterations of CFR+", lower_bound=1)
_EVERY = flags.DEFINE_integer("every", 10, "iterations between two steps", lower_bound=1)
_LENGTH = flags.DEFINE_float("length", 2.0, "length of the first step", 0.0)
_CERTIFY = flags.DEFINE_integer("certify", 2_000, "iterations from scratch for each row", 1)
_PICTURE = flags.DEFINE_string(
  "picture", "results/bet_sizes.png", "file of the picture; empty for none"
)

# (iteration, sizes, estimated value) after each step.
Path = list[tuple[int, list[float], float]]


def main() -> None:
  paths = {}
  print(
    "| game | rule | iterations | sizes | value | NashConv |\n| --- | --- | ---: | ---: | ---: | ---: |"
  )
  for name, (game, components, sizes, fixed, _) in GAMES.items():
    bets = linear_game(game, components)
    print(row(name, "as it is", 0, bets, sizes))
    paths[name] = path = while_solving(bets, sizes, fixed)
    print(row(name, "while solving", path[-1][0], bets, path[-1][1]))
    steps = optimize_parameters(
      bets, sizes, steps=max(1, _ITERATIONS.value // 500), length=_LENGTH.value, fixed=fixed
    )
    best = max(steps, key=lambda step: step.value - step.nash_conv)
    print(row(name, "solved before each step", 500 * len(steps), bets, best.parameters))
  if _PICTURE.value:
    draw(paths)


def while_solving(bets: LinearGame, sizes: tuple[float, ...], fixed: tuple[int, ...]) -> Path:
  """Returns the path of player 0's sizes while CFR+ runs."""
  current, squares = np.array(sizes, np.float64), 0.0
  solver = spiel_cfr.CFRPlusSolver(bets(current))
  path: Path = []
  while solver.iteration < _ITERATIONS.value:
    solver.run(min(_EVERY.value, _ITERATIONS.value - solver.iteration))
    values = bets.values(solver.average_sequence_form())[:, 0]
    path.append((solver.iteration, current.tolist(), float(values @ [1.0, *current])))
    gradient = values[1:].copy()
    gradient[list(fixed)] = 0.0
    squares += float(gradient @ gradient)
    step = _LENGTH.value * gradient / (np.sqrt(squares) or 1.0)
    current = np.maximum(current + step, 0.0)
    # The tree does not change, so the new solver can take over the state.
    moved = spiel_cfr.CFRPlusSolver(bets(current))
    moved.load_state_dict(solver.state_dict())
    solver = moved
  return path


def row(name: str, rule: str, iterations: int, bets: LinearGame, sizes: Any) -> str:
  """Returns a row of the table: the value at these sizes, and NashConv as its uncertainty."""
  game = bets(sizes)
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(_CERTIFY.value)
  value = spiel_cfr.expected_values(game, solver)[0]
  shown = ", ".join(f"{size:z.2f}" for size in sizes)
  return (
    f"| {name} | {rule} | {iterations:,} | {shown} | {value:z.4f} | {solver.nash_conv():z.1e} |"
  )


@draws
def draw(paths: dict[str, Path]) -> None:
  """Draws sizes and values against iterations, one column for each game."""
  figure, grid = pyplot().subplots(
    2, len(paths), figsize=(5 * len(paths), 6), sharex=True, squeeze=False, layout="constrained"
  )
  for (size_axes, value_axes), (name, path) in zip(grid.T, paths.items(), strict=True):
    iterations = [iteration for iteration, _, _ in path]
    for number, label in enumerate(GAMES[name][4]):
      size_axes.plot(iterations, [sizes[number] for _, sizes, _ in path], label=label)
    value_axes.plot(iterations, [value for _, _, value in path], color="black")
    size_axes.set(title=name, ylabel="player 0's sizes")
    value_axes.set(xscale="log", xlabel="iterations of CFR+", ylabel="value to player 0, estimated")
    size_axes.legend()
  save(figure, _PICTURE.value, 110)


if __name__ == "__main__":
  start(main)
