r"""Compares two transfers of a solution to a game with other bet sizes: by the policy, and by regrets.

    python examples/transfer.py --iterations=300

CFR solves Kuhn or Leduc poker, and then the game with other bet sizes. In the second game it starts

- from scratch;
- from the average policy: `spiel_cfr.cfr.transfer(solver, game)`;
- from the discounted regrets of the past iterations with the new payoffs: `transfer(solver, game, rule="regrets")`,
  after Brown and Sandholm, "Regret Transfer and Parameter Optimization" (2014). The regrets count for as many
  iterations as the paper's bound allows, or for as many as the policy.

Cells are medians, over bet sizes, of the number of iterations to an exploitability. In brackets is the median ratio to
the number of iterations from the policy.
"""

from results import start

from typing import Any

import numpy as np
from absl import flags

import spiel_cfr
from spiel_cfr.parametric_games import kuhn_bets, leduc_bets, linear_game
from spiel_cfr.runs import Powers

# Title -> (game, components), bets solved first, other bets, targets.
GAMES: dict[str, Any] = {
  "Kuhn poker": (
    ("kuhn_poker", kuhn_bets),
    (1.0,),
    [(bet,) for bet in (1.05, 1.2, 1.5, 2.0, 0.8, 0.5)],
    (0.02, 0.005, 0.002),
  ),
  "Leduc poker": (
    ("leduc_poker", leduc_bets),
    (2, 4, 2, 4),
    [
      *((2.1, 4.2, 2.1, 4.2), (2.5, 4, 2, 4), (3, 4, 2, 4), (2, 6, 2, 4), (3, 3, 3, 3)),
      *((3, 6, 3, 6), (1.5, 3, 1.5, 3), (4, 8, 2, 4), (1, 8, 1, 8)),
    ],
    (0.1, 0.05, 0.02),
  ),
}
POLICY = "CFR, policy"

_GAMES = flags.DEFINE_multi_enum("game", list(GAMES), list(GAMES), "games to measure")
_ITERATIONS = flags.DEFINE_integer("iterations", 300, "iterations on the game solved first", 1)
_MOST = flags.DEFINE_integer("most", 20_000, "largest number of iterations on the other games", 1)


def main() -> None:
  for number, name in enumerate(_GAMES.value):
    (game, components), solved, others, targets = GAMES[name]
    bets = linear_game(game, components)
    counts: dict[str, list[list[int]]] = {}
    solver, plus = spiel_cfr.CFRSolver(bets(solved)), spiel_cfr.CFRPlusSolver(bets(solved))
    solver.run(_ITERATIONS.value)
    plus.run(_ITERATIONS.value)
    for other in others:
      for label, begun in starts(solver, plus, bets(other)).items():
        counts.setdefault(label, []).append(reached(begun, targets))
    if not number:
      print(f"| game | to | {' | '.join(counts)} |\n| --- " + "| --- " * (1 + len(counts)) + "|")
    for index, target in enumerate(targets):
      columns = {label: np.array(rows)[:, index] for label, rows in counts.items()}
      cells = [
        f"{np.median(column):z,.0f} ({np.median(column / columns[POLICY]):z.2g})"
        for column in columns.values()
      ]
      print(f"| {name} | {target:zg} | {' | '.join(cells)} |", flush=True)


def starts(
  solver: spiel_cfr.FullWidthSolver,
  plus: spiel_cfr.FullWidthSolver,
  game: spiel_cfr.CompiledGame,
) -> dict[str, spiel_cfr.FullWidthSolver]:
  """Returns solvers of another game, one for each kind of start."""
  policy = spiel_cfr.cfr.transfer(solver, game)
  return {
    "CFR, anew": spiel_cfr.CFRSolver(game),
    POLICY: policy,
    "CFR, regrets, w by the bound": spiel_cfr.cfr.transfer(solver, game, rule="regrets"),
    "CFR, regrets, as many iterations": spiel_cfr.cfr.transfer(
      solver, game, policy.warm_iterations, rule="regrets"
    ),
    "CFR+, anew": spiel_cfr.CFRPlusSolver(game),
    "CFR+, policy": spiel_cfr.cfr.transfer(plus, game),
  }


def reached(solver: spiel_cfr.FullWidthSolver, targets: tuple[float, ...]) -> list[int]:
  """Returns the number of further iterations to each target; 1 if the solver starts below it."""
  first, schedule = solver.iteration, Powers(1.04)
  result: list[int] = []
  while len(result) < len(targets):
    done = solver.iteration - first
    if done >= _MOST.value:
      return result + [_MOST.value] * (len(targets) - len(result))
    if solver.exploitability() <= targets[len(result)]:
      result.append(max(1, done))
    else:
      solver.run(max(done + 1, int(schedule(max(1, done)))) - done)
  return result


if __name__ == "__main__":
  start(main)
