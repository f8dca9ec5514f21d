r"""Compares refinement of an abstraction during the run with solving the whole game at once.

    python examples/refining.py --picture=results/refining.png

It prints infosets, memory, iterations and time to a target. The game is a river endgame with all bets of `fchpa`; the
first abstraction has `few_bets`, or only checks, calls and folds. Memory is that of an iteration; the whole game, which
evaluates policies, is not counted. Times do not include compiling.
"""

import pathlib
from typing import Any

import numpy as np
from absl import flags
from results import draws, pyplot, river_endgame, save, start, writable

import spiel_cfr
from spiel_cfr.poker import bet_filters

_TARGET = flags.DEFINE_float("target", 5.0, "NashConv to reach, in chips", lower_bound=0.0)
_PICTURE = flags.DEFINE_string(
  "picture", "results/refining.png", "file of the picture; empty for none"
)

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
  # This compiles the kernels before any timing.
  spiel_cfr.abstraction.solve_refining(game, no_bets, _TARGET.value, iterations=100)
  runs = {
    name: spiel_cfr.abstraction.solve_refining(game, start, _TARGET.value)
    for name, start in starts.items()
  }
  print(table(title, runs))
  if path:
    draw(title, runs, path)


def no_bets(state: Any, actions: list[int]) -> list[int]:
  """Returns folds, checks and calls."""
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
  sizes.set(ylabel="memory of an iteration, MB", xlabel="seconds")
  for plot in (gaps, sizes):
    plot.set_xscale("log")
    plot.grid(alpha=0.3, which="both", linewidth=0.4)
  save(figure, path, 110)


if __name__ == "__main__":
  start(main)
