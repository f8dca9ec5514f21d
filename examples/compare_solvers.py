r"""Compares solvers of this library and OpenSpiel on one game; OpenSpiel evaluates the results.

    python examples/compare_solvers.py --game=leduc_poker --solvers=cfr,cfr+,dcfr,open_spiel_cfr+ --iterations=1000

prints and draws the exploitability of the average policy after 1, 2, 4, ... iterations, and of the last iterate. (In
games other than two-player constant-sum games it is NashConv.) At the end, OpenSpiel's functions evaluate every final
average policy.
"""

from results import draws, file_name, pyplot, save, start

import pathlib
import time

from absl import app, flags
from named_solvers import SOLVERS, find
from open_spiel.python.algorithms import exploitability as open_spiel_exploitability

import spiel_cfr
from spiel_cfr import CompiledGame
from spiel_cfr._util.files import check_writable

_GAME = flags.DEFINE_string("game", "leduc_poker", "OpenSpiel game string")
_SOLVERS = flags.DEFINE_list(
  "solvers",
  [
    "cfr",
    "cfr+",
    "stable_predictive_alternating",
    "adaptive",
    "restarted",
    "open_spiel_cfr",
    "open_spiel_cfr+",
  ],
  f"solvers to compare, from: {', '.join(SOLVERS)}",
)
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "iterations of each solver", lower_bound=1)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "folder of the picture")
_PLOT = flags.DEFINE_bool("plot", True, "draw the picture, which needs matplotlib")


def main() -> None:
  if not _SOLVERS.value:
    raise app.UsageError(f"--solvers names none; there are {', '.join(SOLVERS)}")
  factories = {name: find(name) for name in _SOLVERS.value}
  if _PLOT.value:
    check_writable(picture_of(_GAME.value))
  start = time.perf_counter()
  game = spiel_cfr.compile_game(_GAME.value)
  print(f"{game}\ncompiled in {time.perf_counter() - start:z.2f} s\n", flush=True)

  solvers = {name: make(game, _ITERATIONS.value) for name, make in factories.items()}
  results = {}
  for name, solver in solvers.items():
    print(f"running {name} ...", flush=True)
    results[name] = spiel_cfr.run(solver, _ITERATIONS.value, evaluate_current=True, progress=False)

  quality, divisor = ("exploitability", 2) if game.is_two_player_constant_sum else ("NashConv", 1)
  table = {
    name: {row.iteration: row.nash_conv / divisor for row in result.rows}
    for name, result in results.items()
  }
  print(f"\n{quality} of the average policy by iteration; {orders(solvers)}")
  seconds = {name: result.last.solver_seconds for name, result in results.items()}
  print("iterations", *(name.rjust(9) for name in table), sep="  ")
  for iteration in next(iter(table.values())):
    cells = (f"{column[iteration]:z.3e}".rjust(max(len(name), 9)) for name, column in table.items())
    print(f"{iteration:10,}", *cells, sep="  ")
  last = {
    name: (result.last.current_nash_conv or 0.0) / divisor for name, result in results.items()
  }
  cells = (f"{value:z.3e}".rjust(max(len(name), 9)) for name, value in last.items())
  print(" last iter", *cells, sep="  ")
  cells = (f"{value:z.3f}".rjust(max(len(name), 9)) for name, value in seconds.items())
  print("   seconds", *cells, sep="  ")
  if "restarted" in solvers:
    print(
      "(restarted returns the best strategies so far, so its line never rises. It is flat until the solver\n"
      "finds better strategies, and at the end, when only rounding errors are left.)"
    )

  judge(game, solvers)
  if _PLOT.value:
    draw(game, table, seconds, f"{quality} of the average policy", orders(solvers))


def orders(solvers: dict[str, spiel_cfr.Solver]) -> str:
  """Returns a description of the order of updates, which matters for the comparison."""
  # A wrapper has the order of its inner solver.
  inner = {name: solver.recipe.arguments.get("solver", solver) for name, solver in solvers.items()}
  simultaneous = [
    name for name, solver in inner.items() if not getattr(solver, "alternating_updates", True)
  ]
  if not simultaneous:
    return "alternating updates"
  return f"alternating updates; simultaneous in {', '.join(simultaneous)}"


def picture_of(game: str) -> pathlib.Path:
  """Returns the path of a game's picture."""
  return pathlib.Path(_OUTPUT_DIR.value, file_name("compare", game, ".png"))


def judge(game: CompiledGame, solvers: dict[str, spiel_cfr.Solver]) -> None:
  """Prints OpenSpiel's NashConv, its difference from the library's, and differences of equal solvers' policies."""
  print("\nOpenSpiel's NashConv of the final average policies, and the difference from ours")
  for name, solver in solvers.items():
    by_open_spiel = open_spiel_exploitability.nash_conv(
      game.game, solver.average_policy(), use_cpp_br=False
    )
    print(f"  {name:28} {by_open_spiel:z.6e}   {abs(by_open_spiel - solver.nash_conv()):z.1e}")
  for ours, theirs in (("cfr", "open_spiel_cfr"), ("cfr+", "open_spiel_cfr+")):
    if {ours, theirs} <= set(solvers):
      twin = solvers[theirs].average_policy_dict()
      difference = max(
        abs(probability - twin[infostate][action])
        for infostate, entries in solvers[ours].average_policy_dict().items()
        for action, probability in entries.items()
      )
      print(f"  largest difference of a probability in {ours} and in {theirs}: {difference:z.1e}")
  print(
    "(Regret matching magnifies rounding errors: equal solvers agree to 1e-9 for about 100 iterations.)"
  )


@draws
def draw(
  game: CompiledGame,
  table: dict[str, dict[int, float]],
  seconds: dict[str, float],
  quality: str,
  order: str,
) -> None:
  """Draws exploitability against iterations."""
  figure, axes = pyplot().subplots(figsize=(8, 5.5), layout="constrained")
  for name, column in table.items():
    axes.plot(
      list(column),
      list(column.values()),
      label=f"{name} ({seconds[name]:z.2g} s)",
      linestyle="--" if name.startswith("open_spiel") else "-",
      marker="o" if name.startswith("open_spiel") else None,
      markersize=4,
      markerfacecolor="none",
    )
  axes.set(xscale="log", yscale="log", xlabel="iterations", ylabel=quality)
  axes.set_title(f"{game.game_string.removesuffix('()')}; {order}", wrap=True)
  axes.grid(which="major", color="0.9")
  axes.legend(title="solver (time)")
  save(figure, picture_of(game.game_string), 150)


if __name__ == "__main__":
  start(main)
