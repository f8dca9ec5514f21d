r"""Draws the pictures of docs/tour.md: regret matching, and CFR on Kuhn poker.

python examples/tour.py --output_dir=docs
"""

from results import draws, pyplot, save, start

import pathlib

import numpy as np
from absl import flags

import spiel_cfr

_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "folder of the pictures")
_BLUE, _ORANGE, _GREEN, _GRAY = "#4a63d8", "#d9741f", "#12957f", "#97a0af"
# Payoffs of rock, paper and scissors against each other; winning with rock pays double.
_PAYOFFS = np.array([[0.0, -1.0, 2.0], [1.0, 0.0, -1.0], [-2.0, 1.0, 0.0]])


def regret_matching(iterations: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns the first player's strategies and averages under regret matching, both of shape (iterations, 3)."""
  regrets = np.zeros((2, 3))
  strategies = np.zeros((iterations, 2, 3))
  for t in range(iterations):
    positive = np.maximum(regrets, 0.0)
    total = positive.sum(axis=1, keepdims=True)
    strategies[t] = np.where(total > 0, positive / np.where(total > 0, total, 1.0), 1 / 3)
    if t == 0:
      # The first strategies differ: equal ones would stay equal.
      strategies[0] = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]
    for player in range(2):
      utilities = _PAYOFFS @ strategies[t, 1 - player]
      regrets[player] += utilities - strategies[t, player] @ utilities
  first = strategies[:, 0]
  return first, np.cumsum(first, axis=0) / np.arange(1, iterations + 1)[:, None]


@draws
def draw_regret_matching(path: pathlib.Path) -> None:
  strategies, averages = regret_matching(4000)
  figure, axes = pyplot().subplots(figsize=(8, 3.6), layout="constrained")
  names, colors = ("rock", "paper", "scissors"), (_BLUE, _ORANGE, _GREEN)
  for action, (name, color) in enumerate(zip(names, colors, strict=True)):
    axes.plot(strategies[:, action], color=color, alpha=0.25, linewidth=0.8)
    axes.plot(averages[:, action], color=color, linewidth=2.2, label=f"{name}, on average")
  for share in (0.25, 0.5):
    axes.axhline(share, color=_GRAY, linewidth=0.8, linestyle=":")
  axes.set(xscale="log", xlim=(1, 4000), ylim=(0, 1), xlabel="iteration", ylabel="probability")
  axes.set_title("The strategy circles, its average settles", loc="left")
  axes.legend(frameon=False, loc="upper right")
  axes.spines[["top", "right"]].set_visible(False)
  save(figure, path, 130)


@draws
def draw_kuhn(path: pathlib.Path) -> None:
  figure, (left, right) = pyplot().subplots(1, 2, figsize=(10, 3.8), layout="constrained")
  for name, color in (
    ("CFRSolver", _GRAY),
    ("CFRPlusSolver", _ORANGE),
    ("RestartedCFRSolver", _BLUE),
  ):
    solver = getattr(spiel_cfr, name)("kuhn_poker")
    rows = spiel_cfr.run(solver, 1000, evaluate_at=spiel_cfr.runs.Powers(1.2), progress=False).rows
    # A curve on the logarithmic axis ends at the level of rounding.
    kept = [row for row in rows if row.nash_conv > 1e-12]
    iterations = [row.iteration for row in kept]
    left.plot(
      iterations, [row.nash_conv / 2 for row in kept], color=color, label=name, linewidth=1.8
    )
    values = []
    solver = getattr(spiel_cfr, name)("kuhn_poker")
    for before, after in zip([0, *iterations], iterations, strict=False):
      solver.run(after - before)
      values.append(
        float(spiel_cfr.expected_values(solver.compiled_game, solver.average_policy())[0])
      )
    right.plot(iterations, values, color=color, linewidth=1.8)
  left.set(xscale="log", yscale="log", xlabel="iterations")
  left.set_title("Exploitability", loc="left")
  left.legend(frameon=False)
  right.axhline(-1 / 18, color="black", linewidth=0.8, linestyle=":")
  right.annotate("−1/18", (500, -1 / 18), textcoords="offset points", xytext=(0, 6))
  right.set(xscale="log", xlabel="iterations")
  right.set_title("What the first player expects", loc="left")
  for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
  save(figure, path, 130)


def main() -> None:
  folder = pathlib.Path(_OUTPUT_DIR.value)
  draw_regret_matching(folder / "tour_regret_matching.png")
  draw_kuhn(folder / "tour_kuhn.png")


if __name__ == "__main__":
  start(main)
