r"""Solves an endgame of no-limit hold'em with the solvers of Farina et al. (2019), and draws their figure for it.

    python examples/libratus_endgames.py --subgame_file=subgame3.txt --iterations=1000

The file is in the format of https://github.com/Sandholm-Lab/LibratusEndgames, where the four endgames of the paper are.
Bets are the paper's: the first of a round half the pot, the pot or all-in, later ones the pot or all-in. The program
prints and draws the saddle-point gap (NashConv) of the average strategies in thousandths of a big blind a game (mbb/g)
against iterations; exploitability is half of it.

    python examples/libratus_endgames.py --subgame_file=subgame3.txt --solvers=dcfr --page

also writes a page on which one clicks through what the best of the solvers does with each hand.
"""

import functools
import json
import pathlib
import sys
import time
from collections.abc import Callable

from absl import app, flags

import spiel_cfr
from spiel_cfr import catalogue
from spiel_cfr.poker import bet_filters
from spiel_cfr.regret_minimizers.oftrl import OFTRL
from spiel_cfr.stable_predictive.paper_steps import paper_steps

_SUBGAME_FILE = flags.DEFINE_string(
  "subgame_file", None, "a file in the LibratusEndgames format", required=True
)
_ITERATIONS = flags.DEFINE_integer("iterations", 1000, "how many each solver does", lower_bound=1)
_STACK = flags.DEFINE_integer("stack", 20_000, "chips that each player began the match with")
_BIG_BLIND = flags.DEFINE_integer("big_blind", 100, "chips of the big blind")
_FLOAT32 = flags.DEFINE_bool(
  "float32", False, "whether to compute in float32, in half the time and memory"
)
_THREADS = flags.DEFINE_integer("threads", 1, "threads that share the rivers of turn endgames")
_OUTPUT_DIR = flags.DEFINE_string("output_dir", "results", "where pictures and numbers go")
_RESUME = flags.DEFINE_bool(
  "resume",
  False,
  "whether to leave out solvers of which output_dir has the numbers, and draw these",
)
_PLOT = flags.DEFINE_bool("plot", True, "whether to draw; needs matplotlib")
_PAGE = flags.DEFINE_bool("page", False, "whether to write a page of the explorer")
_TURN = 3


def steps_of_the_figures(
  game: spiel_cfr.poker.PublicGame, iterations: int, alternating_updates: bool
) -> spiel_cfr.Solver:
  """Steps kappa_j in the payoffs of the file, as the paper's figures were very probably made; nothing is proven."""
  kappa = paper_steps(game, "entropy", kappa_root=iterations**-0.25).kappa
  minimizer = OFTRL(kappa * game.layout.deal.total)
  return spiel_cfr.FullWidthSolver(game, minimizer, alternating_updates=alternating_updates)


SOLVERS: dict[str, Callable[..., spiel_cfr.Solver]] = {}
_SIMULTANEOUS = ", simultaneous"
for _suffix, _alternates in (("", True), (_SIMULTANEOUS, False)):
  for _name in ("cfr", "cfr+", "dcfr"):
    SOLVERS[_name + _suffix] = functools.partial(
      catalogue.SOLVERS[f"{_name}_simultaneous"], alternating_updates=_alternates
    )
  # Stable-predictive OFTRL: steps that come from the run, those of the paper's theory, and those of its figures.
  for _name, _entry in (
    ("", "stable_predictive"),
    (", uniform", "stable_predictive_uniform"),
    (", paper", "stable_predictive_paper"),
  ):
    SOLVERS[f"oftrl{_name}{_suffix}"] = functools.partial(
      catalogue.SOLVERS[_entry], alternating_updates=_alternates
    )
  SOLVERS[f"oftrl, figures{_suffix}"] = functools.partial(
    steps_of_the_figures, alternating_updates=_alternates
  )
_NAMES = [_name for _name in SOLVERS if not _name.endswith(_SIMULTANEOUS)]
_COLORS = ("tab:blue", "tab:green", "tab:red", "0.6", "tab:purple", "tab:orange", "tab:brown")
_SOLVERS = flags.DEFINE_multi_string(
  "solvers", None, f"which solver to run, repeat for several, from: {'; '.join(SOLVERS)}"
)


def main(arguments: list[str]) -> None:
  if len(arguments) > 1:
    raise app.UsageError(f"unknown arguments: {arguments[1:]}")
  names = _SOLVERS.value or list(SOLVERS)
  if not set(names) <= set(SOLVERS):
    raise app.UsageError(f"unknown solvers {sorted(set(names) - set(SOLVERS))}; see --help")
  try:
    solve(names)
  except (spiel_cfr.errors.SpielCFRError, OSError) as error:
    sys.exit(f"error: {error}")


def solve(names: list[str]) -> None:
  endgame = spiel_cfr.load_endgame(
    _SUBGAME_FILE.value, stack=_STACK.value, big_blind=_BIG_BLIND.value
  )
  start = time.perf_counter()
  game = spiel_cfr.poker.compile_public_game(
    endgame.load(),
    bet_filters.few_bets,
    dtype="float32" if _FLOAT32.value else "float64",
    num_threads=_THREADS.value if endgame.round == _TURN else 1,
  )
  print(f"{game}\ncompiled in {time.perf_counter() - start:.2f} s", flush=True)
  print(f"each solver takes about {game.memory_estimate() / 1e6:,.0f} MB", flush=True)

  folder = pathlib.Path(_OUTPUT_DIR.value)
  folder.mkdir(parents=True, exist_ok=True)
  stem = pathlib.Path(_SUBGAME_FILE.value).stem
  numbers = folder / f"endgame_{stem}.json"
  gaps = known_gaps(numbers) if _RESUME.value else {}
  best: tuple[float, str, spiel_cfr.Solver] | None = None
  print(f"\n{'saddle-point gap (NashConv), mbb/g, after iterations':52} ms an iteration")
  for name in names:
    if _ITERATIONS.value in gaps.get(name, {}):
      continue
    solver = SOLVERS[name](game, _ITERATIONS.value)
    result = spiel_cfr.run(
      solver, _ITERATIONS.value, evaluate_at=spiel_cfr.runs.Powers(10 ** (1 / 8)), progress=False
    )
    gaps[name] = {row.iteration: endgame.milli_big_blinds(row.nash_conv) for row in result.rows}
    milliseconds = 1000 * result.last.solver_seconds / _ITERATIONS.value
    shown = {
      iteration: gap
      for iteration, gap in gaps[name].items()
      if iteration in (10, 100, 1000, _ITERATIONS.value)
    }
    cells = "  ".join(f"{iteration}: {gap:.4g}" for iteration, gap in shown.items())
    print(f"{name:26} {cells:50} {milliseconds:10.2f}", flush=True)
    if best is None or result.last.nash_conv < best[0]:
      best = result.last.nash_conv, name, solver
    del solver
    numbers.write_text(json.dumps(gaps, indent=1))
  if best is not None:
    print(
      f"\nbest: {best[1]}, NashConv {endgame.milli_big_blinds(best[0]):.4g} mbb/g, that is exploitability "
      f"{endgame.milli_big_blinds(best[0] / 2):.4g} mbb/g, {best[0] / 2:.4g} chips a game"
    )
  if _PLOT.value:
    draw(gaps, f"{stem}: board {endgame.board}, pot {endgame.pot}", folder / f"endgame_{stem}.png")
  if _PAGE.value and best is not None:
    print(spiel_cfr.explore(best[2], folder / f"endgame_{stem}.html", title=stem))


def known_gaps(path: pathlib.Path) -> dict[str, dict[int, float]]:
  """Returns what an earlier run has written, by solver and iteration."""
  if not path.exists():
    return {}
  known = json.loads(path.read_text())
  return {name: {int(at): gap for at, gap in gaps.items()} for name, gaps in known.items()}


def draw(gaps: dict[str, dict[int, float]], title: str, path: pathlib.Path) -> None:
  """Draws gaps against iterations, simultaneous updates on the left and alternating ones on the right."""
  import matplotlib.pyplot as plt

  figure, both = plt.subplots(1, 2, figsize=(12, 5), sharey=True, layout="constrained")
  colors = dict(zip(_NAMES, _COLORS, strict=True))
  for axes, suffix in zip(both, (_SIMULTANEOUS, ""), strict=True):
    for name, column in gaps.items():
      base = name.removesuffix(_SIMULTANEOUS)
      if (base != name) == bool(suffix):
        axes.plot(list(column), list(column.values()), label=base, color=colors[base])
    axes.set(xscale="log", yscale="log", xlabel="iterations")
    axes.set_title("simultaneous updates" if suffix else "alternating updates")
    axes.grid(which="major", color="0.9")
    if axes.lines:
      axes.legend()
  both[0].set_ylabel("saddle-point gap (NashConv), mbb/g")
  figure.suptitle(title)
  figure.savefig(path, dpi=110)
  print(f"wrote {path}")


if __name__ == "__main__":
  app.run(main)
