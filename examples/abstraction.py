r"""Draws exploitability against the number of buckets, for abstractions of Leduc poker, liar's dice and endgames.

    python examples/abstraction.py --picture=results/abstraction.png
    python examples/abstraction.py --endgame=subgame3.txt

prints a table for each game: the number of buckets, and the exploitability of the solver's policy in the full game.
Both players are abstracted, or one player at a time (`least_exploitable`). `--endgame` is a file in the
LibratusEndgames format, and begins at the river or the turn. By default there are a random river and a random turn.
"""

from results import draws, median_seconds, pyplot, river_endgame, save, start, turn_endgame

import pathlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from absl import flags

import spiel_cfr
from spiel_cfr.poker import bet_filters

_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "iterations of each solver", lower_bound=1)
_SIZES = flags.DEFINE_list(
  "sizes", ["1", "2", "3", "4", "6"], "largest number of buckets at a public state"
)
_HANDS = flags.DEFINE_list(
  "hands", ["1", "2", "5", "10", "20", "50", "100", "200"], "buckets of hands on the river"
)
_TURN_HANDS = flags.DEFINE_list(
  "turn_hands", ["1", "2", "4", "8", "16"], "buckets of hands on the turn, and on each river"
)
_TURN_ITERATIONS = flags.DEFINE_integer(
  "turn_iterations", 300, "iterations of each solver of a turn endgame", lower_bound=1
)
_GAMES = flags.DEFINE_list(
  "games", ["leduc_poker", "liars_dice(dice_sides=4)"], "games with a list of histories"
)
_ENDGAME = flags.DEFINE_string("endgame", None, "a file in the LibratusEndgames format")
_ROUNDS = flags.DEFINE_integer("rounds", 60, "rounds of timing", lower_bound=1)
_SPEED_ONLY = flags.DEFINE_bool("speed_only", False, "print only the timings, without a picture")
_PICTURE = flags.DEFINE_string(
  "picture", "results/abstraction.png", "file of the picture; empty for none"
)

# Buckets and exploitability, by curve.
Curves = dict[str, list[tuple[int, float]]]


def main() -> None:
  if _SPEED_ONLY.value:
    print(speed())
    return
  drawn = {}
  for name in _GAMES.value:
    game = spiel_cfr.compile_game(name)
    curves = clustered(game)
    print(table(name, curves))
    drawn[f"{name}: {game.num_infosets:,} infosets"] = curves
  for game, title in endgames():
    curves = before_the_river(game) if len(game.tree.boards) > 1 else bucketed(game)
    print(table(title, curves))
    drawn[f"{title}: {game.num_infosets:,} infosets"] = curves
  print(speed())
  if _PICTURE.value:
    draw(drawn)


def clustered(game: spiel_cfr.CompiledGame) -> Curves:
  """Measures clusters of strategies, and the lossless abstraction."""
  curves: Curves = {}
  for size in map(int, _SIZES.value):
    buckets = spiel_cfr.abstraction.cluster(game, size)
    exploitability = run(spiel_cfr.abstraction.abstract(game, buckets))
    best = spiel_cfr.abstraction.least_exploitable(game, buckets, iterations=_ITERATIONS.value)
    add(curves, "both sides", buckets.num_buckets, exploitability)
    add(curves, "one side at a time", buckets.num_buckets, best.exploitability)
  small = spiel_cfr.abstraction.lossless_abstraction(game)
  add(curves, "lossless", small.num_infosets, run(small))
  return curves


def bucketed(game: spiel_cfr.poker.PublicGame) -> Curves:
  """Measures buckets of hands by equity, and by equities against eight clusters of the opponent's hands."""
  curves: Curves = {}
  equity = [spiel_cfr.abstraction.hand_equities(game, player) for player in (0, 1)]
  groups = [spiel_cfr.abstraction.k_means(values, 8) for values in equity]
  features = {
    "equity": equity,
    "equity against 8 clusters": [
      spiel_cfr.abstraction.hand_equities(game, player, groups[1 - player]) for player in (0, 1)
    ],
  }
  for name, points in features.items():
    for size in map(int, _HANDS.value):
      small = spiel_cfr.abstraction.abstract(
        game,
        spiel_cfr.abstraction.hand_buckets(
          game, [spiel_cfr.abstraction.k_means(values, size) for values in points]
        ),
      )
      add(curves, name, small.num_infosets, run(small))
  add(curves, "all hands", game.num_infosets, run(game))
  return curves


def before_the_river(game: spiel_cfr.poker.PublicGame) -> Curves:
  """Measures buckets of hands on the turn and each river, by three features of the turn, and lossless buckets."""
  curves: Curves = {}
  turns = [turn_features(game, player) for player in (0, 1)]
  rivers = [
    [spiel_cfr.abstraction.hand_equities(game, player, board=board) for board in later_boards(game)]
    for player in (0, 1)
  ]
  for name in turns[0]:
    for size in map(int, _TURN_HANDS.value):
      labels = []
      for features, equities in zip(turns, rivers, strict=True):
        points, ground = features[name]
        turn = spiel_cfr.abstraction.k_means(points, size, ground=ground)
        labels.append([turn, *(spiel_cfr.abstraction.k_means(values, size) for values in equities)])
      small = spiel_cfr.abstraction.abstract(game, spiel_cfr.abstraction.hand_buckets(game, labels))
      add(curves, name, small.num_infosets, run(small, _TURN_ITERATIONS.value))
  equal = spiel_cfr.poker.compile_public_game(game.game, bet_filters.few_bets, merge_suits=True)
  add(curves, "lossless", equal.num_infosets, run(equal, _TURN_ITERATIONS.value))
  return curves


def turn_features(
  game: spiel_cfr.poker.PublicGame, player: int
) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
  """Returns features of hands on the turn, with ground distances between the columns of histograms."""
  bins = np.arange(10)
  # On each river, equities against two clusters of the opponent's hands; then common clusters of these on all rivers.
  by_river = []
  for board in later_boards(game):
    others = spiel_cfr.abstraction.k_means(
      spiel_cfr.abstraction.hand_equities(game, 1 - player, board=board), 2
    )
    hand_features = spiel_cfr.abstraction.hand_equities(game, player, others, board=board)
    by_river.append(
      hand_features if hand_features.shape[1] == 2 else np.hstack([hand_features, hand_features])
    )
  all_features = np.vstack(by_river)
  clusters = spiel_cfr.abstraction.k_means(all_features, 6)
  centers = np.array(
    [all_features[clusters == number].mean(axis=0) for number in range(clusters.max() + 1)]
  )
  labels = np.split(clusters, np.cumsum([len(river_features) for river_features in by_river])[:-1])
  return {
    "equity": (spiel_cfr.abstraction.hand_equities(game, player), None),
    "equity histograms": (
      spiel_cfr.abstraction.equity_histograms(game, player, len(bins)),
      abs(bins[:, None] - bins) / len(bins),
    ),
    "potential-aware": (
      spiel_cfr.abstraction.next_histograms(game, player, labels),
      np.linalg.norm(centers[:, None] - centers, axis=2),
    ),
  }


def later_boards(game: spiel_cfr.poker.PublicGame) -> range:
  return range(1, len(game.tree.boards))


def run(game: spiel_cfr.CompiledGame, iterations: int | None = None) -> float:
  """Returns the lowest exploitability in the full game during a run of DCFR."""
  solver = spiel_cfr.DCFRSolver(game)
  result = spiel_cfr.run(solver, iterations or _ITERATIONS.value, progress=False)
  assert result.best.exploitability is not None
  return result.best.exploitability


def add(curves: Curves, name: str, buckets: int, exploitability: float) -> None:
  curves.setdefault(name, []).append((buckets, exploitability))


def endgames() -> Iterator[tuple[spiel_cfr.poker.PublicGame, str]]:
  """Yields endgames and their titles; payoffs are in chips."""
  chosen = [river_endgame(), turn_endgame()]
  if _ENDGAME.value:
    path = pathlib.Path(_ENDGAME.value)
    chosen = [(spiel_cfr.load_endgame(path), path.stem)]
  for loaded, title in chosen:
    yield spiel_cfr.poker.compile_public_game(loaded.load(), bet_filters.few_bets), title


def speed() -> str:
  """Measures CFR+ on Leduc poker with and without the lossless abstraction, and the time to find the abstraction."""
  full = spiel_cfr.compile_game("leduc_poker")
  lossless = spiel_cfr.abstraction.lossless_abstraction(full)
  runs = {
    "full": spiel_cfr.CFRPlusSolver(full).run,
    "lossless": spiel_cfr.CFRPlusSolver(lossless).run,
  }
  medians = median_seconds(runs, _ROUNDS.value, 0.01, time.process_time)
  ratio = medians["full"] / medians["lossless"]
  game, seconds = spiel_cfr.compile_game("liars_dice"), []
  for _ in range(3):
    begin = time.process_time()
    spiel_cfr.abstraction.lossless_abstraction(game)
    seconds.append(time.process_time() - begin)
  return (
    f"\nAn iteration on Leduc poker ({full.num_infosets:,} infosets) takes {ratio:z.2f} "
    f"times as long as on its lossless abstraction ({lossless.num_infosets:,}). Lossless abstraction of liar's dice "
    f"({game.num_infosets:,} infosets) takes {float(np.median(seconds)):z.2f} s."
  )


def table(title: str, curves: Curves) -> str:
  rows = [f"\n{title}\n", "| curve | buckets | exploitability |", "| --- | --- | --- |"]
  for name, points in curves.items():
    rows += [f"| {name} | {buckets:,} | {value:z.4g} |" for buckets, value in points]
  return "\n".join(rows)


@draws
def draw(drawn: dict[str, Curves]) -> None:
  columns = min(2, len(drawn))
  rows = -(-len(drawn) // columns)
  figure, plots = pyplot().subplots(
    rows, columns, figsize=(5.6 * columns, 4.2 * rows), layout="constrained", squeeze=False
  )
  for plot in plots.ravel()[len(drawn) :]:
    plot.remove()
  for plot, (title, curves) in zip(plots.ravel(), drawn.items(), strict=False):
    draw_curves(plot, curves)
    plot.set_title(title, fontsize=11)
    plot.set_xlabel("buckets")
  for plot in plots[:, 0]:
    plot.set_ylabel("exploitability in the full game")
  save(figure, _PICTURE.value, 110)


def draw_curves(plot: Any, curves: Curves) -> None:
  from matplotlib import ticker

  for name, points in curves.items():
    buckets, values = zip(*sorted(points), strict=True)
    plot.plot(
      buckets,
      np.maximum(values, 1e-12),
      "*" if len(points) == 1 else "o-",
      label=name,
      markersize=13 if len(points) == 1 else 4,
    )
  plot.set_xscale("log")
  plot.set_yscale("log")
  plot.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
  plot.xaxis.set_major_formatter("{x:,.0f}")
  plot.xaxis.set_minor_formatter(ticker.NullFormatter())
  plot.grid(alpha=0.3, which="both", linewidth=0.4)
  plot.legend(fontsize=8)


if __name__ == "__main__":
  start(main)
