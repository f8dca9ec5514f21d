r"""Solves one game with several solvers, ours and OpenSpiel's, and lets OpenSpiel judge the results.

    python examples/compare_solvers.py --game=leduc_poker --solvers=cfr,cfr+,dcfr,open_spiel_cfr+ --iterations=1000

prints the exploitability after 1, 2, 4, ... iterations (NashConv where the game is not a constant-sum game of two
players), that of the last iterate in place of the average, and draws it. It ends with what OpenSpiel's own functions
say of every final average policy.
"""

from results import draws, file_name, pyplot, save, start

import pathlib
import time

from absl import app, flags
from named_solvers import SOLVERS, find
from open_spiel.python.algorithms import exploitability as open_spiel_exploitability

import spiel_cfr
from spiel_cfr import CompiledGame
from spiel_cfr.__main__ import check_writable

_GAME = flags.DEFINE_string("game", "leduc_poker", "any OpenSpiel game, with its parameters")
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
  f"which solvers to compare, from: {', '.join(SOLVERS)}",
)
_ITERATIONS = flags.DEFINE_integer(
  "iterations", 1000, "how many iterations each does", lower_bound=1
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "where the picture goes")
_PLOT = flags.DEFINE_bool("plot", True, "whether to draw the picture; needs matplotlib")


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
  print(f"\n{quality} of the average policy after so many iterations; {orders(solvers)}")
  seconds = {name: result.last.solver_seconds for name, result in results.items()}
  print("iterations", *(name.rjust(9) for name in table), sep="  ")
  for iteration in next(iter(table.values())):
    cells = (f"{column[iteration]:z.3e}".rjust(max(len(name), 9)) for name, column in table.items())
    print(f"{iteration:10,}", *cells, sep="  ")
  last = {name: (each.last.current_nash_conv or 0.0) / divisor for name, each in results.items()}
  cells = (f"{value:z.3e}".rjust(max(len(name), 9)) for name, value in last.items())
  print(" last iter", *cells, sep="  ")
  cells = (f"{value:z.3f}".rjust(max(len(name), 9)) for name, value in seconds.items())
  print("   seconds", *cells, sep="  ")
  if "restarted" in solvers:
    print(
      "(restarted hands out the best strategies that it has met, so its line never rises: it is flat until better "
      "ones\n are found, and for good where only rounding is left.)"
    )

  judge(game, solvers)
  if _PLOT.value:
    draw(game, table, seconds, f"{quality} of the average policy", orders(solvers))


def orders(solvers: dict[str, spiel_cfr.Solver]) -> str:
  """Says in which order players update, since the two are not to be compared without a word."""
  # A wrapper does what the solver inside does.
  inside = {name: each.recipe.arguments.get("solver", each) for name, each in solvers.items()}
  at_once = [
    name for name, each in inside.items() if not getattr(each, "alternating_updates", True)
  ]
  if not at_once:
    return "players update in turn"
  return f"players update in turn, but at once in {', '.join(at_once)}"


def picture_of(game: str) -> pathlib.Path:
  """Returns where the picture of a game goes."""
  return pathlib.Path(_OUTPUT_DIR.value, file_name("compare", game, ".png"))


def judge(game: CompiledGame, solvers: dict[str, spiel_cfr.Solver]) -> None:
  """Prints what OpenSpiel's own NashConv is, beside ours, and how alike the policies of twin solvers are."""
  print("\nOpenSpiel's NashConv of the final average policies, and how far ours is from it")
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
    "(Regret matching magnifies rounding errors: twins are alike to 1e-9 for about 100 iterations.)"
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
