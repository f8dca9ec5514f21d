r"""Finds the best sizes of bets in Kuhn and Leduc poker while the games are being solved.

    python examples/bet_sizes.py --picture=results/bet_sizes.png

After Brown and Sandholm, "Regret Transfer and Parameter Optimization" (2014). CFR+ runs on; after every few iterations
player 0's sizes follow the gradient of the value under the averages so far, which is only approximate, and the solver
goes on in the game with the new sizes, regrets and averages kept. A step is length * gradient / sqrt(sum of squared
norms of the gradients so far). Player 1's sizes stay. The same number of iterations is also given to
`optimize_parameters`, which solves each game before it moves. The table has the certified value of both ends: CFR+ from
scratch at these sizes.
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

# The game, its components, sizes to begin with, the fixed ones, the names of the others.
GAMES: dict[str, Any] = {
  "Kuhn poker": ("kuhn_poker", kuhn_bets, (1.0,), (), ("bet",)),
  "Leduc poker": ("leduc_poker", leduc_bets, (2, 4, 2, 4), (2, 3), ("round 1", "round 2")),
}

_ITERATIONS = flags.DEFINE_integer("iterations", 5_000, "of CFR+ in all", lower_bound=1)
_EVERY = flags.DEFINE_integer("every", 10, "iterations between two steps", lower_bound=1)
_LENGTH = flags.DEFINE_float("length", 2.0, "of the first step", 0.0)
_CERTIFY = flags.DEFINE_integer("certify", 2_000, "iterations from scratch at the end", 1)
_PICTURE = flags.DEFINE_string(
  "picture", "results/bet_sizes.png", "where the picture goes; empty for none"
)

# Iterations, and the sizes and the estimated value there.
Way = list[tuple[int, list[float], float]]


def main() -> None:
  ways = {}
  print(
    "| game | rule | iterations | sizes | value | NashConv |\n| --- | --- | ---: | ---: | ---: | ---: |"
  )
  for name, (game, components, sizes, fixed, _) in GAMES.items():
    bets = linear_game(game, components)
    print(row(name, "as it is", 0, bets, sizes))
    ways[name] = way = while_solving(bets, sizes, fixed)
    print(row(name, "while solving", way[-1][0], bets, way[-1][1]))
    steps = optimize_parameters(
      bets, sizes, steps=max(1, _ITERATIONS.value // 500), length=_LENGTH.value, fixed=fixed
    )
    best = max(steps, key=lambda step: step.value - step.nash_conv)
    print(row(name, "solved before each step", 500 * len(steps), bets, best.parameters))
  if _PICTURE.value:
    draw(ways)


def while_solving(bets: LinearGame, sizes: tuple[float, ...], fixed: tuple[int, ...]) -> Way:
  """Returns the way of player 0's sizes while CFR+ runs."""
  here, squares = np.array(sizes, np.float64), 0.0
  solver = spiel_cfr.CFRPlusSolver(bets(here))
  way: Way = []
  while solver.iteration < _ITERATIONS.value:
    solver.run(min(_EVERY.value, _ITERATIONS.value - solver.iteration))
    values = bets.values(solver.average_sequence_form())[:, 0]
    way.append((solver.iteration, here.tolist(), float(values @ [1.0, *here])))
    gradient = values[1:].copy()
    gradient[list(fixed)] = 0.0
    squares += float(gradient @ gradient)
    here = np.maximum(here + _LENGTH.value * gradient / (np.sqrt(squares) or 1.0), 0.0)
    # The tree is the same, so that the state fits.
    moved = spiel_cfr.CFRPlusSolver(bets(here))
    moved.load_state_dict(solver.state_dict())
    solver = moved
  return way


def row(name: str, rule: str, iterations: int, bets: LinearGame, sizes: Any) -> str:
  """Returns a row of the table: the value at these sizes, and how uncertain it is."""
  game = bets(sizes)
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(_CERTIFY.value)
  value = spiel_cfr.expected_values(game, solver)[0]
  shown = ", ".join(f"{size:z.2f}" for size in sizes)
  return (
    f"| {name} | {rule} | {iterations:,} | {shown} | {value:z.4f} | {solver.nash_conv():z.1e} |"
  )


@draws
def draw(ways: dict[str, Way]) -> None:
  """Draws sizes and values against iterations, a column a game."""
  figure, grid = pyplot().subplots(
    2, len(ways), figsize=(5 * len(ways), 6), sharex=True, squeeze=False, layout="constrained"
  )
  for (above, below), (name, way) in zip(grid.T, ways.items(), strict=True):
    iterations = [iteration for iteration, _, _ in way]
    for number, label in enumerate(GAMES[name][4]):
      above.plot(iterations, [sizes[number] for _, sizes, _ in way], label=label)
    below.plot(iterations, [value for _, _, value in way], color="black")
    above.set(title=name, ylabel="player 0's sizes")
    below.set(xscale="log", xlabel="iterations of CFR+", ylabel="value to player 0, estimated")
    above.legend()
  save(figure, _PICTURE.value, 110)


if __name__ == "__main__":
  start(main)
