r"""The experiment of Farina et al. (2019) on endgames of no-limit hold'em: its table and its figures.

    python examples/libratus_endgames.py                                     # a river that is built in
    python examples/libratus_endgames.py --subgame_folder=LibratusEndgames   # all endgames that are there

The paper's four endgames, subgame1.txt to subgame4.txt, are at https://github.com/Sandholm-Lab/LibratusEndgames. Bets
are the paper's: the first of a round half the pot, the pot or all-in, later ones the pot or all-in. The program prints
and draws the saddle-point gap (NashConv) of the average strategies in thousandths of a big blind a game (mbb/g) against
iterations, for simultaneous updates (the paper's Figures 2 and 3) and for alternating ones (Figures 4 and 5);
exploitability is half of it. A run that was stopped goes on where it was, and what output_dir has the numbers of is not
run again.

    python examples/libratus_endgames.py --subgame_file=subgame3.txt --methods=dcfr --updates=alternating --page

also writes a page on which one clicks through what the best of the methods does with each hand.
"""

import csv
import functools
import pathlib
import shutil
import sys
from collections.abc import Callable

import results
from absl import app, flags

import spiel_cfr
from spiel_cfr import catalogue
from spiel_cfr.poker import bet_filters

_SUBGAME_FILE = flags.DEFINE_multi_string(
  "subgame_file", [], "a file in the LibratusEndgames format, repeat for several"
)
_SUBGAME_FOLDER = flags.DEFINE_string("subgame_folder", None, "a folder with such files, *.txt")
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "how many each method does", lower_bound=1)
_UPDATES = flags.DEFINE_list(
  "updates", ["simultaneous", "alternating"], "whether players update at once or in turn"
)
_FACTORS = flags.DEFINE_list(
  "factors", ["1", "10", "100", "1000"], "on the steps of OFTRL: the paper's, and tuned ones"
)
_METHODS = flags.DEFINE_list(
  "methods",
  ["cfr", "dcfr", "oftrl"],
  "from cfr, cfr+, dcfr; oftrl, as in the paper's figures, with all factors; "
  "and ours: bounded, whose steps the theory allows; adaptive and uniform, whose steps come from the run",
)
_STACK = flags.DEFINE_integer("stack", 20_000, "chips that each player began the match with")
_BIG_BLIND = flags.DEFINE_integer("big_blind", 100, "chips of the big blind")
_FLOAT32 = flags.DEFINE_bool(
  "float32", False, "whether to compute in float32, in half the time and memory"
)
_THREADS = flags.DEFINE_integer("threads", 1, "threads that share the rivers of turn endgames")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "where pictures and numbers go")
_PLOT = flags.DEFINE_bool("plot", True, "whether to draw; needs matplotlib")
_PAGE = flags.DEFINE_bool("page", False, "whether to write a page of the explorer per endgame")

_TURN = 3
# The number of iterations for which constant steps are made.
_HORIZON = 1000
_SHOWN = (10, 100, 300, 1000)
_FIGURES = {"simultaneous": "Figures 2 and 3", "alternating": "Figures 4 and 5"}
# The paper's methods.
_COLORS = {"cfr": "tab:blue", "dcfr": "tab:red", "oftrl": "tab:purple", "oftrl tuned": "black"}
# In the catalogue; all of them take either order of updates.
_ENTRIES = {
  "cfr": "cfr_simultaneous",
  "cfr+": "cfr+_simultaneous",
  "dcfr": "dcfr_simultaneous",
  "adaptive": "stable_predictive",
  "uniform": "stable_predictive_uniform",
  "bounded": "stable_predictive_paper",
}

# Gaps by iteration, of (endgame, order of updates, method).
Gaps = dict[tuple[str, str, str], dict[int, float]]


def steps_of_the_figures(
  game: spiel_cfr.poker.PublicGame, alternating_updates: bool, factor: float
) -> spiel_cfr.Solver:
  """OFTRL with steps `factor` kappa_j, kappa = T^(-1/4), payoffs in chips times the file's reaches; nothing is proven.

  That steps are kappa_j, and kappa in proportion to T^(-1/4), is what the paper says; the unit of payoffs is a guess.
  """
  widest = max(int(tree.infoset_actions.max()) for tree in game.treeplexes)
  largest_norm = max(game.payoff_range) * widest**0.5
  # The theory's steps are kappa_j / (3 D). A factor fits into a checkpoint, ten million steps take seconds to write.
  return spiel_cfr.StablePredictiveCFRSolver(
    game,
    kappa=_HORIZON**-0.25,
    steps=factor * 3 * largest_norm * game.tree.deal.total,
    loss_bounds="payoffs",
    alternating_updates=alternating_updates,
  )


def makers() -> dict[str, Callable[..., spiel_cfr.Solver]]:
  """Returns how to make each method that is asked for, given a game and `alternating_updates`."""
  found: dict[str, Callable[..., spiel_cfr.Solver]] = {}
  for name in _METHODS.value:
    if name == "oftrl":
      for factor in _FACTORS.value:
        label = "oftrl" if float(factor) == 1 else f"oftrl x{factor}"
        found[label] = functools.partial(steps_of_the_figures, factor=float(factor))
    elif name in _ENTRIES:
      entry = catalogue.SOLVERS[_ENTRIES[name]]
      label = name if "cfr" in name else f"oftrl {name}"
      found[label] = functools.partial(entry, iterations=_HORIZON)
    else:
      raise app.UsageError(f"unknown method {name!r}; there are oftrl, {', '.join(_ENTRIES)}")
  return found


def next_point(iteration: int) -> float:
  """Returns when the next evaluation is due: at powers of 10^(1/8), and where the table looks."""
  power = spiel_cfr.runs.Powers(10 ** (1 / 8))(iteration)
  return min(at for at in (*_SHOWN, power) if at > iteration)


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  if not set(_UPDATES.value) <= set(_FIGURES):
    raise app.UsageError(f"--updates takes {' and '.join(_FIGURES)}")
  methods = makers()
  folder = pathlib.Path(_OUTPUT_DIR.value)
  numbers = results.writable(folder / "endgames.csv")
  try:
    for name, endgame in endgames().items():
      solve(name, endgame, methods, numbers)
  except (spiel_cfr.errors.SpielCFRError, OSError) as error:
    sys.exit(f"error: {error}")
  gaps = known_gaps(numbers)
  for updates in _UPDATES.value:
    print(
      f"\n{updates} updates: NashConv, mbb/g, after {' / '.join(map(str, _SHOWN))} iterations\n"
    )
    print(markdown(gaps, updates))
    if _PLOT.value:
      draw(gaps, updates, folder / f"endgames_{updates}.png")


def endgames() -> dict[str, spiel_cfr.poker.Endgame]:
  """Returns the endgames of all files by what they are called, or the one that is built in."""
  files = [pathlib.Path(name) for name in _SUBGAME_FILE.value]
  if _SUBGAME_FOLDER.value:
    files += sorted(pathlib.Path(_SUBGAME_FOLDER.value).glob("*.txt"))
    if not files:
      sys.exit(f"error: there is no file *.txt in {_SUBGAME_FOLDER.value}")
  if not files:
    endgame, name = results.river_endgame()
    return {name: endgame}
  return {
    file.stem: spiel_cfr.load_endgame(file, stack=_STACK.value, big_blind=_BIG_BLIND.value)
    for file in files
  }


def solve(
  name: str,
  endgame: spiel_cfr.poker.Endgame,
  methods: dict[str, Callable[..., spiel_cfr.Solver]],
  numbers: pathlib.Path,
) -> None:
  """Runs the methods on one endgame; each gap is written when it is known."""
  gaps = known_gaps(numbers)
  runs = [(updates, method) for updates in _UPDATES.value for method in methods]
  runs = [run for run in runs if _ITERATIONS.value not in gaps.get((name, *run), {})]
  if not runs:
    return
  game = spiel_cfr.poker.compile_public_game(
    endgame.load(),
    bet_filters.few_bets,
    dtype="float32" if _FLOAT32.value else "float64",
    num_threads=_THREADS.value if endgame.round == _TURN else 1,
  )
  print(f"{name}: board {endgame.board}, pot {endgame.pot}\n{game}", flush=True)
  print(f"each solver takes about {game.memory_estimate() / 1e6:z,.0f} MB", flush=True)
  best: tuple[float, spiel_cfr.Solver] | None = None
  for updates, method in runs:
    solver = methods[method](game, alternating_updates=updates == "alternating")
    checkpoints = spiel_cfr.Checkpoints(
      numbers.parent / "unfinished" / f"{name} {updates} {method}",
      every=lambda iteration: next_point(max(iteration, 99)),
      keep=1,
    )
    checkpoints.resume(solver)
    done = solver.iteration
    keep = Keep(numbers, endgame, (name, updates, method))
    run = spiel_cfr.run(
      solver,
      _ITERATIONS.value,
      evaluate_at=next_point,
      traces=[keep],
      checkpoints=checkpoints,
      progress=False,
    )
    if run.reason == "interrupt":
      sys.exit("stopped; the same command goes on from here")
    shutil.rmtree(checkpoints.folder)
    milliseconds = 1000 * run.last.solver_seconds / max(1, _ITERATIONS.value - done)
    gap = endgame.milli_big_blinds(run.last.nash_conv)
    print(
      f"  {updates:12} {method:16} {gap:z10.4g} mbb/g {milliseconds:z8.2f} ms an iteration",
      flush=True,
    )
    if best is None or run.last.nash_conv < best[0]:
      best = run.last.nash_conv, solver
    del solver
  if _PAGE.value and best is not None:
    print(spiel_cfr.explore(best[1], numbers.parent / f"endgame_{name}.html", title=name))


class Keep(spiel_cfr.runs.Trace):
  """Adds each evaluation to a file at once, so that nothing is lost when a run is killed."""

  def __init__(
    self, path: pathlib.Path, endgame: spiel_cfr.poker.Endgame, run: tuple[str, str, str]
  ) -> None:
    """Takes the file, and what is run: endgame, order of updates, method."""
    self._path, self._endgame, self._run = path, endgame, run

  def start(self, solver: spiel_cfr.Solver) -> None:
    """Has nothing to take up."""

  def write(self, row: spiel_cfr.runs.Row) -> None:
    """Adds a line."""
    gap = self._endgame.milli_big_blinds(row.nash_conv)
    with self._path.open("a", newline="") as file:
      csv.writer(file).writerow([*self._run, row.iteration, f"{gap:z.6g}"])

  def close(self) -> None:
    """Has nothing to close."""


def known_gaps(path: pathlib.Path) -> Gaps:
  """Returns what has been written so far; of two lines about the same the later one counts."""
  gaps: Gaps = {}
  if path.exists():
    with path.open(newline="") as file:
      for *run, iteration, gap in csv.reader(file):
        name, updates, method = run
        gaps.setdefault((name, updates, method), {})[int(iteration)] = float(gap)
  return {run: dict(sorted(column.items())) for run, column in gaps.items()}


def with_tuned(gaps: Gaps, name: str, updates: str) -> dict[str, dict[int, float]]:
  """Returns the methods of an endgame as the paper shows them: of the factors the best one is "tuned"."""
  found = {run[2]: column for run, column in gaps.items() if run[:2] == (name, updates)}
  tuned = {method: column for method, column in found.items() if method.startswith("oftrl x")}
  if tuned:
    # Not all may have gone as far.
    last = min(max(column) for column in tuned.values())
    best = min(tuned, key=lambda method: tuned[method].get(last, float("inf")))
    found[f"oftrl tuned ({best.removeprefix('oftrl ')})"] = found[best]
  return found


def markdown(gaps: Gaps, updates: str) -> str:
  """Returns a table: a row a method, a column an endgame."""
  names = list(dict.fromkeys(run[0] for run in gaps if run[1] == updates))
  methods = sorted({run[2] for run in gaps if run[1] == updates})
  lines = [f"| {updates} | {' | '.join(names)} |", "| --- " * (len(names) + 1) + "|"]
  for method in methods:
    columns = [gaps.get((name, updates, method), {}) for name in names]
    cells = [
      " / ".join(shown(column.get(at)) for at in _SHOWN) if column else "" for column in columns
    ]
    lines.append(f"| {method} | {' | '.join(cells)} |")
  return "\n".join(lines)


def shown(gap: float | None) -> str:
  """Returns a cell's number, or a dash for what was not run."""
  if gap is None:
    return "-"
  return f"{gap:z,.0f}" if gap >= 100 else f"{gap:z.3g}"


@results.draws
def draw(gaps: Gaps, updates: str, path: pathlib.Path) -> None:
  """Draws the paper's methods, a panel an endgame."""
  names = sorted({run[0] for run in gaps if run[1] == updates})
  if not names:
    return
  columns = min(2, len(names))
  rows = -(-len(names) // columns)
  figure, grid = results.pyplot().subplots(
    rows, columns, figsize=(5.5 * columns, 4 * rows), layout="constrained", squeeze=False
  )
  for axes, name in zip(grid.flat, names, strict=False):
    for method, column in with_tuned(gaps, name, updates).items():
      base = method.partition(" (")[0]
      if base in _COLORS:
        axes.plot(list(column), list(column.values()), label=method, color=_COLORS[base])
    axes.set(xscale="log", yscale="log", title=name, xlabel="iterations")
    axes.set_ylabel("saddle-point gap (NashConv), mbb/g")
    axes.grid(which="major", color="0.9")
    axes.legend()
  for axes in list(grid.flat)[len(names) :]:
    axes.axis("off")
  figure.suptitle(f"{updates} updates, as in {_FIGURES[updates]} of Farina et al. (2019)")
  results.save(figure, path, 90)


if __name__ == "__main__":
  app.run(main)
