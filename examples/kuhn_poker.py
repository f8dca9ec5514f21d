r"""Solves Kuhn poker, prints its equilibrium infoset by infoset, and compares it with the theory.

    python examples/kuhn_poker.py --solver=cfr+ --picture=results/kuhn_tree.png

Kuhn (1950) found all equilibria; alpha is a free number from 0 to 1/3. The first player

- bets a jack with probability alpha and a king with 3 alpha, and never bets a queen first;
- calls a bet with a queen with probability alpha + 1/3, and always with a king;
- loses 1/18 per game.

The second player's equilibrium strategy is unique. It

- bets after a check: a jack with probability 1/3, never a queen, always a king;
- calls a bet: never with a jack, with a queen with probability 1/3, always with a king.

In the table, "pass" is to check or fold, and "bet" is to bet or call. The picture is the game tree: colors of nodes
are infosets, and widths of lines are probabilities.
"""

from results import draws, pyplot, save, writable

import sys
from typing import Any

import pyspiel
from absl import app, flags

import spiel_cfr
from spiel_cfr import catalogue

_SOLVER = flags.DEFINE_string("solver", "cfr+", f"solver, from: {', '.join(catalogue.SOLVERS)}")
_ITERATIONS = flags.DEFINE_integer("iterations", 100_000, "number of iterations", lower_bound=1)
_TOLERANCE = flags.DEFINE_float(
  "tolerance", 1e-3, "largest difference from the theory's numbers", 0.0
)
_PICTURE = flags.DEFINE_string("picture", "", "file of a picture of the game tree; empty for none")

_CARDS = {"0": "jack", "1": "queen", "2": "king"}
_SITUATIONS = {
  "": "first to act",
  "p": "after a check",
  "b": "facing a bet",
  "pb": "checked, facing a bet",
}


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  if _PICTURE.value:
    writable(_PICTURE.value)
  solver = catalogue.make(_SOLVER.value, "kuhn_poker", _ITERATIONS.value)
  solver.run(_ITERATIONS.value)
  policy = solver.average_policy_dict()
  # In each infoset, the probability of action 1: to bet, or to call.
  active = {infostate: entry[1] for infostate, entry in policy.items()}
  values = spiel_cfr.expected_values(solver.compiled_game, policy)
  print(
    f"Kuhn poker after {solver.iteration:,} iterations of {_SOLVER.value}: exploitability "
    f"{solver.exploitability():z.1e}\n\n  player  card   situation                  pass     bet"
  )
  for infostate in sorted(policy, key=lambda key: (len(key) % 2 == 0, key[1:], key[0])):
    card, history = infostate[0], infostate[1:]
    player = 2 if len(history) == 1 else 1
    passes, bets = policy[infostate].values()
    print(f"  {player:6}  {_CARDS[card]:5}  {_SITUATIONS[history]:21}  {passes:z8.4f} {bets:z7.4f}")
  if _PICTURE.value:
    draw(policy, values[0], _PICTURE.value)

  alpha = active["0"]
  print(f"\nThe first player's alpha is {alpha:z.4f} here. The claims of the theory:")
  claims = [
    ("the first player loses 1/18 a game", values[0], -1 / 18),
    ("it bets a jack with alpha, from 0 to 1/3", alpha, min(max(alpha, 0), 1 / 3)),
    ("it never bets a queen first", active["1"], 0),
    ("it bets a king three times as often as a jack", active["2"], 3 * alpha),
    ("it folds a jack to a bet", active["0pb"], 0),
    ("it calls a bet with a queen with alpha + 1/3", active["1pb"], alpha + 1 / 3),
    ("it always calls a bet with a king", active["2pb"], 1),
    ("the second player bets a jack after a check with 1/3", active["0p"], 1 / 3),
    ("it never bets a queen after a check", active["1p"], 0),
    ("it always bets a king after a check", active["2p"], 1),
    ("it folds a jack to a bet", active["0b"], 0),
    ("it calls a bet with a queen with 1/3", active["1b"], 1 / 3),
    ("it always calls a bet with a king", active["2b"], 1),
  ]
  holds = [abs(measured - expected) <= _TOLERANCE.value for _, measured, expected in claims]
  for (claim, measured, expected), is_right in zip(claims, holds, strict=True):
    verdict = "ok   " if is_right else "WRONG"
    print(f"  {verdict} {claim:53} {measured:z8.4f}  (theory {expected:z.4f})")
  if not all(holds):
    sys.exit("The strategies are not an equilibrium within --tolerance: run more iterations.")


@draws
def draw(policy: dict[str, dict[int, float]], value: float, path: str) -> None:
  """Draws the game tree, from the deals at the top to the first player's payoffs."""
  plt = pyplot()
  figure, axes = plt.subplots(figsize=(16, 6), layout="constrained")
  colors = {infostate: plt.cm.tab20(number) for number, infostate in enumerate(sorted(policy))}
  leaves = iter(range(1000))

  def draw_subtree(state: Any) -> tuple[float, float]:
    """Draws the subtree of a state; returns the position of the state."""
    depth = -float(len(state.history()))
    if state.is_terminal():
      position = float(next(leaves)), depth
      axes.text(*position, f"{state.returns()[0]:+z.0f}", ha="center", va="top", fontsize=8)
      return position
    name = "" if state.is_chance_node() else state.information_state_string()
    weights = dict(state.chance_outcomes()) if state.is_chance_node() else policy[name]
    children = [(action, draw_subtree(state.child(action))) for action in weights]
    position = sum(x for _, (x, _) in children) / len(children), depth
    for action, (x, y) in children:
      width = 0.4 + 3 * weights[action]
      axes.plot([position[0], x], [depth, y], color="0.6", linewidth=width, zorder=1)
      label = _CARDS[str(action)] if state.is_chance_node() else "pb"[action]
      axes.text((position[0] + x) / 2, (depth + y) / 2, label, fontsize=7, ha="center")
    color = "black" if state.is_chance_node() else colors[name]
    axes.scatter(
      *position, s=60, color=color, marker="s^"[state.current_player()] if name else "D", zorder=2
    )
    axes.text(position[0] + 0.2, depth, name, fontsize=7, va="bottom")
    return position

  draw_subtree(pyspiel.load_game("kuhn_poker").new_initial_state())
  axes.axis("off")
  axes.set_title(
    f"Kuhn poker after {_SOLVER.value}: p passes, b bets; squares: player 1, triangles: player 2; "
    f"leaves: payoffs of player 1, {value:z.4f} on average"
  )
  save(figure, path, 110)


if __name__ == "__main__":
  app.run(main)
