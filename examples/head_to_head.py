r"""Compares policies of Leduc poker: all against all, exactly; and pairs in matches, with and without a baseline.

    python examples/head_to_head.py --picture=results/head_to_head.png

The first table shows the expected payoff of the row's policy against the column's, averaged over both seats. The second
table compares the variances of the mean of two plays: of two deals, of one deal in both seats, and of one deal in both
seats with a baseline. The baseline has the values of an equilibrium of the smaller game without suits.
"""

from results import draws, pyplot, save, start, writable

import pathlib
import re
from typing import Any

import numpy as np
from absl import flags

import spiel_cfr
from spiel_cfr import referee

_DEALS = flags.DEFINE_integer("deals", 4_000, "deals of a match, each played twice", lower_bound=2)
_PICTURE = flags.DEFINE_string(
  "picture", "results/head_to_head.png", "file of the picture; empty for none"
)
_GAME, _SMALL = "leduc_poker", "leduc_poker(suit_isomorphism=True)"


def main() -> None:
  picture = writable(_PICTURE.value) if _PICTURE.value else None
  game = spiel_cfr.compile_game(_GAME)
  solver = spiel_cfr.CFRPlusSolver(game)
  policies = {"uniform": solver.average_policy_dict()}
  for iterations in (4, 10, 100, 1_000):
    solver.run(iterations - int(solver.iteration))
    policies[f"CFR+ {iterations:,}"] = solver.average_policy_dict()
  comparison = referee.head_to_head(game, policies)
  print(f"| | {' | '.join(comparison.names)} |\n|{' --- |' * (len(policies) + 1)}")
  for name, row in zip(comparison.names, comparison.scores.tolist(), strict=True):
    print(f"| {name} | {' | '.join(f'{score:+z.4f}' for score in row)} |")
  print(f"\n| match | exact | sampled | two deals | one deal | baseline |\n|{' --- |' * 6}")
  small = spiel_cfr.CFRPlusSolver(_SMALL)
  small.run(1_000)
  baseline = referee.value_baseline(small.compiled_game, small, key=ranks_and_bets)
  for one, other in (("CFR+ 100", "uniform"), ("CFR+ 100", "CFR+ 10"), ("CFR+ 10", "uniform")):
    match = referee.play_match(
      _GAME, policies[one], policies[other], deals=_DEALS.value, baseline=baseline
    )
    exact = comparison.scores[comparison.names.index(one), comparison.names.index(other)]
    variances = (
      match.returns.var(axis=0).sum() / 4,
      match.returns.mean(axis=1).var(),
      match.scores.mean(axis=1).var(),
    )
    low, high = match.interval()
    print(
      f"| {one}, {other} | {exact:+z.4f} | {match.mean:+z.4f} ± {(high - low) / 2:z.4f} | "
      f"{' | '.join(f'{variance:z.2f}' for variance in variances)} |",
      flush=True,
    )
  if picture is not None:
    draw(comparison, picture)


def ranks_and_bets(state: Any) -> Any:
  """Returns the ranks and bets of a state of Leduc poker, with or without suits."""
  suits = 1 if state.get_game().get_parameters().get("suit_isomorphism") else 2
  text = state.information_state_string(0)
  public = re.search(r"Public: (\d+)", text)
  dealt = [*state.history()[:2], *([int(public[1])] if public else [])]
  return *(card // suits for card in dealt), text.partition("[Round1")[2]


@draws
def draw(comparison: referee.HeadToHead, path: pathlib.Path) -> None:
  """Draws the matrix of expected payoffs."""
  figure, axes = pyplot().subplots(figsize=(6.5, 5.5), layout="constrained")
  # Light colors keep the numbers readable.
  most = 2 * np.abs(comparison.scores).max()
  image = axes.imshow(comparison.scores, cmap="RdBu", vmin=-most, vmax=most)
  for (row, column), score in np.ndenumerate(comparison.scores):
    axes.text(column, row, f"{score:+z.3f}", ha="center", va="center")
  places = range(len(comparison.names))
  axes.set_xticks(places, comparison.names, rotation=30)
  axes.set_yticks(places, comparison.names)
  axes.set_title("expected payoff of the row against the column")
  figure.colorbar(image)
  save(figure, path, 120)


if __name__ == "__main__":
  start(main)
