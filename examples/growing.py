r"""Compares games that grow while they are solved with solving them at once: iterations, time and memory to a target.

    python examples/growing.py --picture=results/growing.png

The games are Leduc poker with five sizes of bets, begun with one of them; and a river endgame with all of `fchpa`,
begun with `few_bets`, or with ten buckets of hands by equity. Memory is what an iteration goes through; the whole game
is kept besides, to say how good a policy is. Times begin when the whole game is compiled.
"""

import pathlib
import sys
from typing import Any

import leduc5
import numpy as np
from absl import app, flags
from results import river_endgame, writable

import spiel_cfr
from spiel_cfr.poker import bet_filters

_LEDUC = flags.DEFINE_float("leduc", 0.1, "NashConv to reach in Leduc poker", lower_bound=0.0)
_ENDGAME = flags.DEFINE_float("endgame", 5.0, "the same in the endgame", lower_bound=0.0)
_GAMES = flags.DEFINE_list("games", ["leduc5", "endgame"], "which of them")
_PICTURE = flags.DEFINE_string("picture", "results/growing.png", "where it goes; empty for none")

Runs = dict[str, spiel_cfr.Grown]


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  makers = {"leduc5": leduc, "endgame": endgame}
  if not _GAMES.value or not set(_GAMES.value) <= set(makers):
    raise app.UsageError(f"--games takes {' and '.join(makers)}")
  path = writable(_PICTURE.value) if _PICTURE.value else None
  drawn: dict[str, Runs] = {}
  for name in _GAMES.value:
    title, game, starts, target = makers[name]()
    runs = {
      how: spiel_cfr.solve_growing(game, start, target)
      for how, start in {"at once": game, **starts}.items()
    }
    drawn[title] = runs
  print(table(drawn))
  if path:
    draw(drawn, path)


Comparison = tuple[str, spiel_cfr.CompiledGame, dict[str, Any], float]


def leduc() -> Comparison:
  game = spiel_cfr.compile_game(leduc5.Leduc5Game(), progress=False)
  return "Leduc-5", game, {"from one size of bets": one_size}, _LEDUC.value


def one_size(state: Any, actions: list[int]) -> list[int]:
  """Folds, calls, and the middle one of five bets."""
  return [action for action in actions if action in (0, 1, 4)]


def endgame() -> Comparison:
  loaded, title = river_endgame()
  game = spiel_cfr.compile_public_game(loaded.load())
  equities = [spiel_cfr.hand_equities(game, player) for player in (0, 1)]
  hands = spiel_cfr.hand_buckets(game, [spiel_cfr.k_means(own, 10) for own in equities])
  starts = {"from few bets": bet_filters.few_bets, "from ten buckets of hands": hands}
  return title, game, starts, _ENDGAME.value


def table(drawn: dict[str, Runs]) -> str:
  rows = [
    "| game | | infosets | MB | iterations | seconds | NashConv |",
    "| --- | --- | --- | --- | --- | --- | --- |",
  ]
  for title, runs in drawn.items():
    for name, found in runs.items():
      last = found.history[-1]
      rows.append(
        f"| {title} | {name} | {last.infosets:,} | {last.bytes / 1e6:.2f} | {last.iterations:,} | {last.seconds:.2f} | "
        f"{found.nash_conv:.4g} |"
      )
  return "\n".join(rows)


def draw(drawn: dict[str, Runs], path: pathlib.Path) -> None:
  import matplotlib

  matplotlib.use("Agg")
  import matplotlib.pyplot as plt
  from matplotlib import ticker

  figure, plots = plt.subplots(
    2, len(drawn), figsize=(5.2 * len(drawn), 7), layout="constrained", squeeze=False
  )
  for column, (title, runs) in zip(plots.T, drawn.items(), strict=True):
    for name, found in runs.items():
      seconds = [stage.seconds for stage in found.history]
      column[0].plot(seconds, [stage.nash_conv for stage in found.history], ".-", label=name)
      column[1].plot(seconds, np.array([stage.bytes for stage in found.history]) / 1e6, ".-")
    column[0].set_yscale("log")
    column[0].set_title(title)
    column[0].legend()
    column[0].set_ylabel("NashConv in the whole game")
    column[1].set_ylabel("MB that an iteration goes through")
    column[1].set_xlabel("seconds")
    for plot in column:
      plot.set_xscale("log")
      plot.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 3.0)))
      plot.xaxis.set_major_formatter("{x:g}")
      plot.xaxis.set_minor_formatter(ticker.NullFormatter())
      plot.grid(alpha=0.3, which="both", linewidth=0.4)
  figure.savefig(path, dpi=110)
  print(f"\nWrote {path}", file=sys.stderr)


if __name__ == "__main__":
  app.run(main)
