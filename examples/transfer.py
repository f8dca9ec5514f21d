r"""Compares what solving a game is worth for the next one, with other bets: policies, or the regrets of the same play.

    python examples/transfer.py --iterations=300

CFR solves Kuhn or Leduc poker for a while; then it is to solve the game with other sizes of bets. It begins anew; or
from the average policy, as `spiel_cfr.cfr.transfer` does; or, after Brown and Sandholm, "Regret Transfer and Parameter
Optimization" (2014), from the regrets R that the same play would have had with the other payoffs. These are discounted:
w R stand for w T of the T iterations, w the largest number up to 1 with

    sum_a max(w R(ja), 0)^2 <= w T (2 D_j)^2 |A_j|      at every infoset j, where no utility is larger than D_j,

or the one with which they count as much as the policy does. Cells are iterations to an exploitability, medians over the
sizes of bets, and in brackets the median of what they are times those from the policy.
"""

from typing import Any

import numpy as np
from absl import flags
from results import start

import spiel_cfr
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.compiled.counterfactual_values import backward_pass, expect, gradients
from spiel_cfr.parametric_games import kuhn_bets, leduc_bets, linear_game
from spiel_cfr.policies import forms
from spiel_cfr.runs import Powers

# The game, its components, the bets that have been solved, the others, and targets.
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

_GAMES = flags.DEFINE_multi_enum("game", list(GAMES), list(GAMES), "which games")
_ITERATIONS = flags.DEFINE_integer("iterations", 300, "of the game that is solved first", 1)
_MOST = flags.DEFINE_integer("most", 20_000, "iterations of the others, at most", 1)


def main() -> None:
  for number, name in enumerate(_GAMES.value):
    (game, components), solved, others, targets = GAMES[name]
    bets = linear_game(game, components)
    counts: dict[str, list[list[int]]] = {}
    solver, regrets = solve([bets(solved), *map(bets, others)], _ITERATIONS.value)
    plus = spiel_cfr.CFRPlusSolver(bets(solved))
    plus.run(_ITERATIONS.value)
    for other, own in zip(others, regrets[1:], strict=True):
      for label, begun in starts(solver, plus, bets(other), own).items():
        counts.setdefault(label, []).append(reached(begun, targets))
    if not number:
      print(f"| game | to | {' | '.join(counts)} |\n| --- " + "| --- " * (1 + len(counts)) + "|")
    for place, target in enumerate(targets):
      columns = {label: np.array(rows)[:, place] for label, rows in counts.items()}
      cells = [
        f"{np.median(column):z,.0f} ({np.median(column / columns[POLICY]):z.2g})"
        for column in columns.values()
      ]
      print(f"| {name} | {target:zg} | {' | '.join(cells)} |", flush=True)


def solve(
  games: list[spiel_cfr.CompiledGame], iterations: int
) -> tuple[spiel_cfr.FullWidthSolver, list[Float64s]]:
  """Solves the first of some games with the same infosets; returns the regrets of this play in all, (sequences,) each.

  Regrets are linear in payoffs, so whoever kept them by component would have the same.
  """
  solver = spiel_cfr.CFRSolver(games[0])
  first = slice(games[0].treeplexes[0].root, games[0].treeplexes[0].end)
  result = [np.zeros(game.end) for game in games]
  for _ in range(iterations):
    played = solver.current_probabilities()
    solver.run(1)
    # Player 1 faces the strategy to which player 0 has just updated.
    faced = played.copy()
    faced[first] = solver.current_probabilities()[first]
    for game, sums in zip(games, result, strict=True):
      utility = gradients(game, forms.sequence_form(game, faced))
      utility[first] = gradients(game, forms.sequence_form(game, played))[first]
      backward_pass(game, expect, utility, strategy=played)
      for tree in game.treeplexes:
        for rows, _ in tree.infoset_groups():
          sums[rows] += utility[rows] - (played[rows] * utility[rows]).sum(axis=0)
  return solver, result


def starts(
  solver: spiel_cfr.FullWidthSolver,
  plus: spiel_cfr.FullWidthSolver,
  game: spiel_cfr.CompiledGame,
  regrets: Float64s,
) -> dict[str, spiel_cfr.FullWidthSolver]:
  """Returns solvers of another game that begin in each of the ways."""
  policy = spiel_cfr.cfr.transfer(solver, game)
  bounded = bound(game, regrets, solver.iteration)
  return {
    "CFR, anew": spiel_cfr.CFRSolver(game),
    POLICY: policy,
    "CFR, regrets, w by the bound": discounted(solver, game, regrets, bounded),
    "CFR, regrets, as many iterations": discounted(
      solver, game, regrets, policy.warm_iterations / solver.iteration
    ),
    "CFR+, anew": spiel_cfr.CFRPlusSolver(game),
    "CFR+, policy": spiel_cfr.cfr.transfer(plus, game),
  }


def bound(game: spiel_cfr.CompiledGame, regrets: Float64s, iterations: int) -> float:
  """Returns the largest factor up to 1 with which regrets are no larger than iterations may leave them."""
  result, most = 1.0, game.per_sequence(game.loss_bounds)
  for tree in game.treeplexes:
    for rows, _ in tree.infoset_groups():
      allowed = iterations * len(rows) * (2 * most[rows[0]]) ** 2
      squares = np.square(np.maximum(regrets[rows], 0.0)).sum(axis=0)
      result = min(result, (allowed[squares > 0] / squares[squares > 0]).min(initial=1.0))
  return result


def discounted(
  solver: spiel_cfr.FullWidthSolver,
  game: spiel_cfr.CompiledGame,
  regrets: Float64s,
  factor: float,
) -> spiel_cfr.FullWidthSolver:
  """Returns CFR that begins with a factor times regrets, and with as much of the average."""
  result, count = spiel_cfr.CFRSolver(game), factor * solver.iteration
  state = result.state
  state.action_state[0] = factor * regrets
  state.strategy[:] = forms.behavioral_form(game, np.maximum(regrets, 0.0))
  state.begin_warm(max(1, round(count)), count * solver.average_sequence_form())
  result.refresh()
  return result


def reached(solver: spiel_cfr.FullWidthSolver, targets: tuple[float, ...]) -> list[int]:
  """Returns after how many more iterations a solver first reaches each target; 1 if it begins there."""
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
