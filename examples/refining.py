r"""Compares refinement on the way with solving at once: infosets, memory, iterations and time to a target.

    python examples/refining.py --picture=results/refining.png

The game is a river endgame with all of `fchpa`, begun with `few_bets`, or with checks, calls and folds. Memory is what
an iteration goes through; the whole game is kept besides, to say how good a policy is. Times begin when the whole game
and kernels are compiled.
"""

import pathlib
from typing import Any

import numpy as np
from absl import flags
from results import draws, pyplot, river_endgame, save, start, writable

import spiel_cfr
from spiel_cfr.poker import bet_filters

_TARGET = flags.DEFINE_float("target", 5.0, "NashConv to reach, in chips", lower_bound=0.0)
_PICTURE = flags.DEFINE_string("picture", "results/refining.png", "where it goes; empty for none")

Runs = dict[str, spiel_cfr.abstraction.Refined]


def main() -> None:
  path = writable(_PICTURE.value) if _PICTURE.value else None
  loaded, title = river_endgame()
  game = spiel_cfr.poker.compile_public_game(loaded.load())
  starts: dict[str, Any] = {
    "at once": lambda state, actions: actions,
    "from few bets": bet_filters.few_bets,
    "from no bets": no_bets,
  }
  # Kernels are there before times begin.
  spiel_cfr.abstraction.solve_refining(game, no_bets, _TARGET.value, iterations=100)
  runs = {
    how: spiel_cfr.abstraction.solve_refining(game, start, _TARGET.value)
    for how, start in starts.items()
  }
  print(table(title, runs))
  if path:
    draw(title, runs, path)


def no_bets(state: Any, actions: list[int]) -> list[int]:
  """Keeps folds, checks and calls."""
  return [action for action in actions if action < 2]


def table(title: str, runs: Runs) -> str:
  rows = [
    "| game | | infosets | MB | iterations | seconds | NashConv |",
    "| --- | --- | --- | --- | --- | --- | --- |",
  ]
  for name, found in runs.items():
    last = found.history[-1]
    rows.append(
      f"| {title} | {name} | {last.infosets:,} | {last.bytes / 1e6:z.2f} | {last.iterations:,} | {last.seconds:z.2f} | "
      f"{found.nash_conv:z.4g} |"
    )
  return "\n".join(rows)


@draws
def draw(title: str, runs: Runs, path: pathlib.Path) -> None:
  figure, (gaps, sizes) = pyplot().subplots(2, 1, figsize=(5.2, 7), layout="constrained")
  for name, found in runs.items():
    seconds = [stage.seconds for stage in found.history]
    gaps.plot(seconds, [stage.nash_conv for stage in found.history], ".-", label=name)
    sizes.plot(seconds, np.array([stage.bytes for stage in found.history]) / 1e6, ".-")
  gaps.set(title=title, yscale="log", ylabel="NashConv in the whole game")
  gaps.legend()
  sizes.set(ylabel="MB that an iteration goes through", xlabel="seconds")
  for plot in (gaps, sizes):
    plot.set_xscale("log")
    plot.grid(alpha=0.3, which="both", linewidth=0.4)
  save(figure, path, 110)


if __name__ == "__main__":
  start(main)
