r"""Draws quantal response equilibria of a game: strategies at each infoset against rationality.

    python examples/quantal_response.py --game=kuhn_poker --rationality=100 --picture=results/quantal_response.png

The lines follow one branch of equilibria, starting from uniform play. If the branch turns back, a line has several
points at one rationality.
"""

from results import draws, pyplot, save, start

import numpy as np
from absl import flags

import spiel_cfr
from spiel_cfr.quantal_response import QuantalResponse

_GAME = flags.DEFINE_string("game", "kuhn_poker", "OpenSpiel game string")
_RATIONALITY = flags.DEFINE_float(
  "rationality", 100.0, "rationality at the end of the path", lower_bound=0.0
)
_STEP = flags.DEFINE_float("step", 0.02, "largest change of a probability between points")
_LINES = flags.DEFINE_integer("lines", 8, "infosets to draw for each player", lower_bound=1)
_PICTURE = flags.DEFINE_string("picture", "results/quantal_response.png", "file of the picture")


def main() -> None:
  branch = spiel_cfr.solve_qre(_GAME.value, _RATIONALITY.value, step=_STEP.value)
  print(branch)
  draw(branch)


@draws
def draw(branch: QuantalResponse) -> None:
  """Draws one panel for each player, with one line for each infoset: the probability of its last action."""
  game = branch.compiled_game
  rationality = [point.rationality for point in branch.path]
  # The last action of each infoset; in poker, to bet or to raise.
  entries = np.array([game.to_actions(point.probabilities) for point in branch.path])
  last = np.cumsum(np.concatenate(game.num_actions)) - 1
  figure, grid = pyplot().subplots(
    1, game.num_players, figsize=(4.2 * game.num_players, 3.8), layout="constrained", sharey=True
  )
  begin = 0
  for player, axes in enumerate(grid):
    names = game.infostates[player]
    lines = entries[:, last[begin : begin + len(names)]]
    begin += len(names)
    # The infosets with the largest changes.
    for number in np.argsort(-np.ptp(lines, axis=0))[: _LINES.value]:
      axes.plot(rationality, lines[:, number], label=names[number][-40:])
    axes.set(xscale="asinh", xlabel="rationality", title=f"player {player}", ylim=(0, 1))
    most = max(rationality)
    axes.set_xticks([0, *(10**k for k in range(20) if 10**k <= most)])
    axes.set_xlim(0, most)
    axes.grid(color="0.92")
    axes.legend(fontsize="small")
  grid[0].set_ylabel("probability of the last action")
  save(figure, _PICTURE.value, 100)


if __name__ == "__main__":
  start(main)
