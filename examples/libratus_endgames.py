r"""Repeats the experiment of Farina et al. (2019) on endgames of no-limit hold'em, with its table and its figures.

    python examples/libratus_endgames.py                                     # a built-in river
    python examples/libratus_endgames.py --subgame_folder=LibratusEndgames   # all endgames of a folder

The paper's four endgames, subgame1.txt to subgame4.txt, are at https://github.com/Sandholm-Lab/LibratusEndgames. Bet
sizes are those of the paper: the first bet of a round is half the pot, the pot or all-in; later bets are the pot or
all-in.

The program prints and draws NashConv of the average strategies against iterations and seconds, in thousandths of a big
blind per game (mbb/g). Updates are simultaneous (the paper's Figures 2 and 3) and alternating (Figures 4 and 5).
Exploitability is half of NashConv. The table also has NashConv of the last iterate. An interrupted run resumes from its
checkpoint, and a run with a complete trace in output_dir is not repeated.

    python examples/libratus_endgames.py --subgame_file=subgame3.txt --methods=dcfr --updates=alternating --page

also writes a page to click through the best method's strategy for each hand.
"""

import results

import dataclasses
import functools
import pathlib
import shutil
import sys
from collections.abc import Callable
from typing import cast, get_args

from absl import app, flags

import spiel_cfr
from spiel_cfr import catalogue, runs
from spiel_cfr._util import files
from spiel_cfr.poker import bet_filters
from spiel_cfr.regret_minimizers.regularizers import Regularizer

_SUBGAME_FILE = flags.DEFINE_multi_string(
  "subgame_file", [], "file in the LibratusEndgames format; repeat for several"
)
_SUBGAME_FOLDER = flags.DEFINE_string("subgame_folder", None, "folder with such files, *.txt")
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "iterations of each method", lower_bound=1)
_UPDATES = flags.DEFINE_list("updates", ["simultaneous", "alternating"], "orders of updates")
_FACTORS = flags.DEFINE_list(
  "factors", ["1", "10", "100", "1000"], "factors on the steps of OFTRL: 1 is the paper's"
)
_METHODS = flags.DEFINE_list(
  "methods",
  ["cfr", "dcfr", "oftrl"],
  "methods: cfr, cfr+, dcfr; oftrl, as in the paper's figures, with all factors; and ours: bounded, with the theory's "
  "steps, adaptive and uniform, with steps that adapt to the run",
)
_REGULARIZERS = flags.DEFINE_list(
  "regularizer", ["entropy"], "regularizers of OFTRL: entropy, euclidean, or both"
)
_STARTING_STACK = flags.DEFINE_integer(
  "starting_stack", 20_000, "chips of each player at the start of the hand"
)
_BIG_BLIND = flags.DEFINE_integer("big_blind", 100, "chips of the big blind")
_FLOAT32 = flags.DEFINE_bool("float32", False, "compute in float32, in half the time and memory")
_THREADS = flags.DEFINE_integer("threads", 1, "threads that share the rivers of turn endgames")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "folder of pictures and traces")
_PLOT = flags.DEFINE_bool("plot", True, "draw the pictures, which needs matplotlib")
_PAGE = flags.DEFINE_bool("page", False, "write a page of the explorer for each endgame")

_TURN = 3
# The number of iterations for which constant steps are computed.
_HORIZON = 1000
_SHOWN = (10, 100, 300, 1000)
_FIGURES = {"simultaneous": "Figures 2 and 3", "alternating": "Figures 4 and 5"}
# Colors of the drawn methods: the paper's, and our default.
_COLORS = {
  "cfr": "tab:blue",
  "dcfr": "tab:red",
  "oftrl": "tab:purple",
  "oftrl tuned": "black",
  "oftrl adaptive": "tab:green",
}
# Names in the catalogue; all of these solvers take either order of updates.
_ENTRIES = {
  "cfr": "cfr_simultaneous",
  "cfr+": "cfr+_simultaneous",
  "dcfr": "dcfr_simultaneous",
  "adaptive": "stable_predictive",
  "uniform": "stable_predictive_uniform",
  "bounded": "stable_predictive_paper",
}

# Endgame -> method -> evaluations in mbb/g, for one order of updates.
Found = dict[str, dict[str, list[runs.Row]]]


def steps_of_the_figures(
  game: spiel_cfr.poker.PublicGame,
  alternating_updates: bool,
  factor: float,
  regularizer: Regularizer,
) -> spiel_cfr.Solver:
  """Returns OFTRL with steps `factor` kappa_j, kappa = T^(-1/4), and payoffs in chips times the file's reaches.

  The paper says that steps are kappa_j, with kappa proportional to T^(-1/4). The unit of payoffs is a guess, and no
  bound is proven for these steps.
  """
  widest = max(int(tree.infoset_actions.max()) for tree in game.treeplexes)
  largest_norm = max(game.payoff_range) * widest**0.5
  # The theory's steps are kappa_j / (3 D). Checkpoints store the factor, not ten million steps.
  return spiel_cfr.StablePredictiveCFRSolver(
    game,
    kappa=_HORIZON**-0.25,
    steps=factor * 3 * largest_norm * game.tree.deal.total,
    loss_bounds="payoffs",
    regularizer=regularizer,
    alternating_updates=alternating_updates,
  )


def makers() -> dict[str, Callable[..., spiel_cfr.Solver]]:
  """Returns the chosen methods by name, each a function of a game and `alternating_updates`."""
  result: dict[str, Callable[..., spiel_cfr.Solver]] = {}
  for name in _METHODS.value:
    if name not in ("oftrl", *_ENTRIES):
      raise app.UsageError(f"unknown method {name!r}; there are oftrl, {', '.join(_ENTRIES)}")
    for regularizer in cast(list[Regularizer], _REGULARIZERS.value):
      suffix = "" if regularizer == "entropy" else f" {regularizer}"
      if name == "oftrl":
        for factor in _FACTORS.value:
          label = f"oftrl{suffix}" if float(factor) == 1 else f"oftrl{suffix} x{factor}"
          result[label] = functools.partial(
            steps_of_the_figures, factor=float(factor), regularizer=regularizer
          )
      elif "cfr" in name:
        result[name] = functools.partial(catalogue.SOLVERS[_ENTRIES[name]], iterations=_HORIZON)
      else:
        entry = functools.partial(catalogue.SOLVERS[_ENTRIES[name]], regularizer=regularizer)
        result[f"oftrl{suffix} {name}"] = functools.partial(entry, iterations=_HORIZON)
  return result


def shown_points() -> list[int]:
  """Returns the iterations in the columns of the table, including the last one."""
  return [at for at in _SHOWN if at < _ITERATIONS.value] + [_ITERATIONS.value]


def next_point(iteration: int) -> float:
  """Returns the next evaluation: a power of 10^(1/5), or a column of the table."""
  power = runs.Powers(10 ** (1 / 5))(iteration)
  return min(at for at in (*shown_points(), power) if at > iteration)


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  if not set(_UPDATES.value) <= set(_FIGURES):
    raise app.UsageError(f"--updates takes {' and '.join(_FIGURES)}")
  if not set(_REGULARIZERS.value) <= set(get_args(Regularizer)):
    raise app.UsageError(f"--regularizer takes {' and '.join(get_args(Regularizer))}")
  methods, folder = makers(), pathlib.Path(_OUTPUT_DIR.value)
  by_updates: dict[str, Found] = {updates: {} for updates in _UPDATES.value}
  try:
    files.check_writable(folder / "trace")
    for name, endgame in endgames().items():
      for updates, rows in solve(name, endgame, methods, folder).items():
        by_updates[updates][name] = rows
  except (spiel_cfr.errors.SpielCFRError, OSError) as error:
    sys.exit(f"error: {error}")
  for updates, gaps in by_updates.items():
    print(
      f"\n{updates} updates: NashConv in mbb/g of the average by iteration, and of the last iterate,"
    )
    print(f"and the solver's seconds\n\n{table(gaps, updates)}")
    if _PLOT.value:
      draw(gaps, updates, folder / f"endgames_{updates}.png")


def endgames() -> dict[str, spiel_cfr.poker.Endgame]:
  """Returns the endgames of all files by name, or the built-in one."""
  paths = [pathlib.Path(name) for name in _SUBGAME_FILE.value]
  if _SUBGAME_FOLDER.value:
    paths += sorted(pathlib.Path(_SUBGAME_FOLDER.value).glob("*.txt"))
    if not paths:
      sys.exit(f"error: {_SUBGAME_FOLDER.value} has no file *.txt")
  if not paths:
    endgame, name = results.river_endgame()
    return {name: endgame}
  return {
    path.stem: spiel_cfr.load_endgame(
      path, starting_stack=_STARTING_STACK.value, big_blind=_BIG_BLIND.value
    )
    for path in paths
  }


def solve(
  name: str,
  endgame: spiel_cfr.poker.Endgame,
  methods: dict[str, Callable[..., spiel_cfr.Solver]],
  folder: pathlib.Path,
) -> Found:
  """Runs the methods on an endgame, with one trace each; returns evaluations by order of updates and method."""
  game = spiel_cfr.poker.compile_public_game(
    endgame.load(),
    bet_filters.few_bets,
    dtype="float32" if _FLOAT32.value else "float64",
    num_threads=_THREADS.value if endgame.round == _TURN else 1,
  )
  print(f"{name}: board {endgame.board}, pot {endgame.pot}\n{game}", flush=True)
  print(f"each solver takes about {game.memory_estimate() / 1e6:z,.0f} MB", flush=True)
  by_updates: Found = {}
  best: tuple[float, spiel_cfr.Solver] | None = None
  for updates in _UPDATES.value:
    for method, make in methods.items():
      trace = folder / f"{name} {updates} {method}.csv"
      rows = runs.read_trace(trace).rows if trace.exists() else []
      if not any(row.iteration == _ITERATIONS.value for row in rows):
        solver = make(game, alternating_updates=updates == "alternating")
        rows = run(solver, trace)
        if best is None or rows[-1].nash_conv < best[0]:
          best = rows[-1].nash_conv, solver
        del solver
      evaluations = [in_mbb(row, endgame) for row in rows if row.iteration <= _ITERATIONS.value]
      by_updates.setdefault(updates, {})[method] = evaluations
      print(f"  {updates:12} {method:16} {evaluations[-1].nash_conv:z10.4g} mbb/g", flush=True)
  if _PAGE.value and best is not None:
    print(spiel_cfr.explore(best[1], folder / f"endgame_{name}.html", title=name))
  return by_updates


def run(solver: spiel_cfr.Solver, trace: pathlib.Path) -> list[runs.Row]:
  """Runs a solver, from its checkpoint if there is one; returns all rows of its trace."""
  checkpoints = spiel_cfr.Checkpoints(
    trace.parent / "unfinished" / trace.stem,
    every=lambda iteration: next_point(max(iteration, 99)),
    keep=1,
  )
  checkpoints.resume(solver)
  done = spiel_cfr.run(
    solver,
    _ITERATIONS.value,
    evaluate_at=next_point,
    evaluate_current=True,
    traces=[runs.TraceFile(trace)],
    checkpoints=checkpoints,
    progress=False,
  )
  if done.reason == "interrupt":
    sys.exit("stopped; the same command continues from here")
  shutil.rmtree(checkpoints.folder)
  return runs.read_trace(trace).rows


def in_mbb(row: runs.Row, endgame: spiel_cfr.poker.Endgame) -> runs.Row:
  """Returns an evaluation in thousandths of a big blind."""
  assert row.current_nash_conv is not None
  return dataclasses.replace(
    row,
    nash_conv=endgame.milli_big_blinds(row.nash_conv),
    current_nash_conv=endgame.milli_big_blinds(row.current_nash_conv),
  )


def with_tuned(gaps: dict[str, list[runs.Row]]) -> dict[str, list[runs.Row]]:
  """Returns the methods of an endgame as in the paper: OFTRL with the best factor is also "tuned"."""
  tuned = [method for method in gaps if method.startswith("oftrl x")]
  if not tuned:
    return gaps
  best = min(tuned, key=lambda method: gaps[method][-1].nash_conv)
  return gaps | {f"oftrl tuned ({best.removeprefix('oftrl ')})": gaps[best]}


def table(gaps: Found, updates: str) -> str:
  """Returns a table with a row for each endgame and method: NashConv by iteration and of the last iterate, seconds."""
  points = shown_points()
  rows = {}
  for name, methods in gaps.items():
    for method, evaluations in methods.items():
      at, last = {row.iteration: row.nash_conv for row in evaluations}, evaluations[-1]
      cells = [shown(at[point]) for point in points]
      cells += [shown(last.current_nash_conv or 0.0), f"{last.solver_seconds:z,.1f}"]
      rows[f"{name} | {method}"] = cells
  columns = ["method", *map("{:,}".format, points), "last iterate", "seconds"]
  return results.markdown(updates, columns, rows)


def shown(gap: float) -> str:
  """Returns the text of a number in the table."""
  return f"{gap:z,.0f}" if gap >= 100 else f"{gap:z.3g}"


@results.draws
def draw(gaps: Found, updates: str, path: pathlib.Path) -> None:
  """Draws one row for each endgame: NashConv against iterations and against seconds."""
  if not gaps:
    return
  figure, grid = results.pyplot().subplots(
    len(gaps), 2, figsize=(11, 3.2 * len(gaps)), layout="constrained", squeeze=False
  )
  for pair, (name, methods) in zip(grid, gaps.items(), strict=True):
    for method, rows in with_tuned(methods).items():
      color = _COLORS.get(method.partition(" (")[0])
      if color is None:
        continue
      curve = [row.nash_conv for row in rows]
      pair[0].plot([row.iteration for row in rows], curve, label=method, color=color)
      pair[1].plot([row.solver_seconds for row in rows], curve, color=color)
    pair[0].set(title=name, xlabel="iterations", ylabel="NashConv, mbb/g")
    pair[1].set(title=name, xlabel="seconds")
    pair[0].legend(fontsize=8)
    for axes in pair:
      axes.set(xscale="log", yscale="log")
      axes.grid(which="major", color="0.9")
  figure.suptitle(f"{updates} updates, as in {_FIGURES[updates]} of Farina et al. (2019)")
  results.save(figure, path, 90)


if __name__ == "__main__":
  app.run(main)
