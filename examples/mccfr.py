r"""Compares samplers of Monte Carlo CFR with CFR+.

    python examples/mccfr.py --game=leduc_poker --samplers=external,outcome,cfr+ --seconds=5

prints exploitability (NashConv if the game is not two-player constant-sum), and draws it against nodes touched and
against seconds.
"""

from results import draws, file_name, pyplot, save, start

import pathlib
from collections.abc import Callable
from typing import Any

from absl import app, flags

import spiel_cfr
from spiel_cfr import CompiledGame, RegretMatching
from spiel_cfr._util import files

Factory = Callable[[Any, int], Any]
SOLVERS: dict[str, Factory] = {
  "external": lambda game, seed: spiel_cfr.ExternalSamplingSolver(game, seed=seed),
  "external_linear": lambda game, seed: spiel_cfr.ExternalSamplingSolver(
    game, seed=seed, minimizer=RegretMatching.discounted(1.0, 1.0), average_weights=1.0
  ),
  "external_plus": lambda game, seed: spiel_cfr.ExternalSamplingSolver(
    game, seed=seed, minimizer=RegretMatching.plus(), average_weights=1.0
  ),
  "external_baseline": lambda game, seed: spiel_cfr.ExternalSamplingSolver(
    game, seed=seed, baseline_rate=0.1
  ),
  "chance": lambda game, seed: spiel_cfr.mccfr.ChanceSamplingSolver(game, seed=seed),
  "average_strategy": lambda game, seed: spiel_cfr.mccfr.AverageStrategySamplingSolver(
    game, seed=seed
  ),
  "outcome": lambda game, seed: spiel_cfr.OutcomeSamplingSolver(game, seed=seed),
  "outcome_baseline": lambda game, seed: spiel_cfr.OutcomeSamplingSolver(
    game, seed=seed, baseline_rate=0.1
  ),
  "cfr+": lambda game, seed: spiel_cfr.CFRPlusSolver(game),
}
_GAME = flags.DEFINE_string("game", "leduc_poker", "OpenSpiel game string")
_SAMPLERS = flags.DEFINE_list(
  "samplers",
  ["external", "external_linear", "chance", "average_strategy", "outcome", "cfr+"],
  f"samplers to compare, from: {', '.join(SOLVERS)}",
)
_SECONDS = flags.DEFINE_float("seconds", 3.0, "seconds of each run, evaluations included", 0.0)
_SEED = flags.DEFINE_integer("seed", 0, "seed of all random numbers", lower_bound=0)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "folder of the picture")
_PLOT = flags.DEFINE_bool("plot", True, "draw the picture, which needs matplotlib")


def main() -> None:
  unknown = sorted(set(_SAMPLERS.value) - set(SOLVERS))
  if unknown:
    raise app.UsageError(f"unknown samplers {unknown}; there are {', '.join(SOLVERS)}")
  files.check_writable(f"{_OUTPUT_DIR.value}/picture")
  game = spiel_cfr.compile_game(_GAME.value)
  quality, divisor = ("exploitability", 2) if game.is_two_player_constant_sum else ("NashConv", 1)
  print(f"{game}\n")
  print(f"{'':18} {'iterations':>12} {'nodes touched':>16} {'seconds':>8}   {quality}")
  results = {}
  for name in _SAMPLERS.value:
    result = spiel_cfr.run(SOLVERS[name](game, _SEED.value), seconds=_SECONDS.value, progress=False)
    results[name] = result.rows
    last = result.last
    print(
      f"{name:18} {last.iteration:12,} {last.nodes_touched:16,} {last.solver_seconds:z8.2f}   "
      f"{last.nash_conv / divisor:z.3e}",
      flush=True,
    )
  if _PLOT.value:
    draw_comparison(game, results, quality, divisor)


@draws
def draw_comparison(
  game: CompiledGame, results: dict[str, list[spiel_cfr.runs.Row]], quality: str, divisor: int
) -> None:
  figure, both = pyplot().subplots(1, 2, figsize=(11, 5), sharey=True, layout="constrained")
  for axes, column, label in zip(
    both, ("nodes_touched", "solver_seconds"), ("nodes touched", "seconds"), strict=True
  ):
    for name, rows in results.items():
      axes.plot(
        [getattr(row, column) for row in rows],
        [row.nash_conv / divisor for row in rows],
        label=name,
        linestyle="--" if name == "cfr+" else "-",
        color="black" if name == "cfr+" else None,
      )
    axes.set(xscale="log", yscale="log", xlabel=label)
    axes.grid(which="major", color="0.9")
  both[0].set_ylabel(f"{quality} of the average policy")
  both[0].legend()
  figure.suptitle(game.game_string.removesuffix("()"))
  save(figure, pathlib.Path(_OUTPUT_DIR.value, file_name("mccfr", game.game_string, ".png")), 150)


if __name__ == "__main__":
  start(main)
