"""Command line of the library: `python -m spiel_cfr --help`.

Each job has its own arguments, so the module uses `argparse`: absl has one list of flags for a whole program. The
programs in examples/ use absl's flags, like those of OpenSpiel.
"""

import argparse
import importlib
import math
import pathlib
import re
import signal
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyspiel

import spiel_cfr
from spiel_cfr import catalogue, errors, playing
from spiel_cfr._util import files
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_size import DEFAULT_MAX_BYTES, DEFAULT_MAX_NODES

# The subparsers of the jobs.
_Jobs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
# The iterations of `compare` without limits, and the horizon of solvers that need one.
_ITERATIONS = 1000
# The exit status after Ctrl-C, as in shells.
_INTERRUPTED = 130
# The limits of `solve`, as in `spiel_cfr.solve`.
_EXPLOITABILITY, _SECONDS = 1e-6, 60.0
_PLAY_SECONDS = 10.0
# The list of games compiles games of at most this number of states, and estimates the size of larger ones.
_LISTED_STATES = 5000


def main(arguments: Sequence[str] | None = None) -> int:
  """Runs one job, with the given arguments or those of the process; returns the exit status."""
  options = _parser().parse_args(arguments)
  try:
    if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
      # From here on, Ctrl-C lets a job print the result so far.
      signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in options.imported:
      _import(name)
    return options.run(options) or 0
  except (errors.SpielCFRError, OSError) as error:
    print(f"error: {error}", file=sys.stderr)
    return 1
  except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
    return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
  """Returns the parser of the command line, with a subparser for each job."""
  parser = argparse.ArgumentParser(
    prog="python -m spiel_cfr", description="Solves games of OpenSpiel by regret minimization."
  )
  parser.add_argument("--version", action="version", version=f"spiel_cfr {spiel_cfr.__version__}")
  jobs = parser.add_subparsers(title="jobs", required=True, metavar="JOB")
  _add_solve(jobs)
  _add_compare(jobs)
  _add_explore(jobs)
  _add_play(jobs)
  job = _add_job(jobs, "size", _size, "estimate the size of a game, without compiling it")
  _add_game_argument(job)
  _add_job(
    jobs, "games", _games, "list OpenSpiel's games, with their size and whether they can be solved"
  )
  _add_job(jobs, "solvers", _solvers, "list the solvers")
  return parser


def _add_solve(jobs: "_Jobs") -> None:
  job = _add_job(jobs, "solve", _solve, "solve a game, and write the policy on request")
  _add_game_argument(job)
  job.add_argument(
    "--exploitability",
    type=float,
    metavar="TARGET",
    help=f"stop at this exploitability, by default {_EXPLOITABILITY:zg}, in the game's units; if it is not defined, at "
    "twice this NashConv. The exit status is 1 if it is missed, unless a limit is given and no target",
  )
  job.add_argument(
    "--relative", action="store_true", help="TARGET is a share of the range of payoffs"
  )
  job.add_argument("--iterations", type=int, help="stop after this number of iterations")
  job.add_argument(
    "--seconds",
    type=float,
    help=f"stop after this time, including compilation; by default {_SECONDS:zg}",
  )
  _add_solver_argument(job)
  job.add_argument("--policy", type=pathlib.Path, metavar="FILE", help="write the policy, as JSON")


def _add_compare(jobs: "_Jobs") -> None:
  job = _add_job(jobs, "compare", _compare, "run several solvers on a game")
  _add_game_argument(job)
  job.add_argument("--solvers", default="cfr,cfr+,dcfr,pcfr+,adaptive", metavar="NAME,NAME")
  job.add_argument(
    "--iterations",
    type=int,
    help=f"the largest number of iterations: by default {_ITERATIONS}, or with --seconds no limit",
  )
  job.add_argument("--seconds", type=float, help="stop each solver after this time")


def _add_explore(jobs: "_Jobs") -> None:
  job = _add_job(jobs, "explore", _explore, "solve a game, and write a page to click through it")
  _add_game_argument(job)
  _add_solver_argument(job)
  job.add_argument(
    "--exploitability",
    type=float,
    metavar="TARGET",
    help="solve to this exploitability, by default a thousandth of the largest payoff",
  )
  job.add_argument("--seconds", type=float, default=_SECONDS, help="solve for at most this time")
  job.add_argument(
    "--output", type=pathlib.Path, default=pathlib.Path("explore.html"), metavar="FILE"
  )


def _add_play(jobs: "_Jobs") -> None:
  job = _add_job(jobs, "play", _play, "play a game against a policy, in the terminal")
  _add_game_argument(job)
  job.add_argument(
    "--policy", type=pathlib.Path, metavar="FILE", help="the policy, as `solve --policy` writes it"
  )
  job.add_argument(
    "--checkpoint", type=pathlib.Path, metavar="FILE", help="a saved solver, to play its policy"
  )
  _add_solver_argument(job)
  job.add_argument(
    "--seconds", type=float, default=_PLAY_SECONDS, help="solve for this time if neither is given"
  )
  job.add_argument(
    "--search",
    action="store_true",
    help="the others search: they solve again the subgame of each decision",
  )
  job.add_argument(
    "--player", type=int, help="your seat, from 0; by default the next seat each hand"
  )
  job.add_argument("--hands", type=int, help="end after this number of hands; by default with q")
  job.add_argument("--seed", type=int, help="the seed of the cards and of the others' actions")


def _add_job(
  jobs: "_Jobs",
  name: str,
  run: Callable[[argparse.Namespace], int | None],
  summary: str,
) -> argparse.ArgumentParser:
  """Adds a job that `run` does, and returns its subparser."""
  job = jobs.add_parser(name, help=summary, description=summary)
  job.set_defaults(run=run)
  job.add_argument(
    "--import",
    dest="imported",
    action="append",
    default=[],
    metavar="MODULE",
    help="import this module or file first, such as my_game.py, which registers a game of your own",
  )
  return job


def _add_game_argument(job: argparse.ArgumentParser) -> None:
  job.add_argument("game", help='OpenSpiel\'s string of a game, such as "leduc_poker(players=3)"')


def _add_solver_argument(job: argparse.ArgumentParser) -> None:
  job.add_argument(
    "--solver", metavar="NAME", help="a solver that `solvers` lists, by default the best"
  )


def _import(name: str) -> None:
  """Imports a module by its name, or a file from its folder."""
  path = pathlib.Path(name)
  if path.suffix == ".py":
    sys.path.insert(0, str(path.parent.resolve()))
    name = path.stem
  try:
    importlib.import_module(name)
  except ImportError as error:
    raise errors.ArgumentError(f"--import={path}: {error}.") from error


def _solve(options: argparse.Namespace) -> int:
  if options.policy is not None:
    files.check_writable(options.policy)
  target, seconds, iterations = options.exploitability, options.seconds, options.iterations
  has_limit = seconds is not None or iterations is not None
  solution = spiel_cfr.solve(
    options.game,
    exploitability=_EXPLOITABILITY if target is None else target,
    relative=options.relative,
    seconds=(math.inf if has_limit else _SECONDS) if seconds is None else seconds,
    iterations=iterations,
    solver=options.solver,
  )
  print(solution)
  if options.policy is not None:
    spiel_cfr.save_policy(solution.compiled_game, solution.policy, options.policy)
    print(f"Wrote {options.policy}")
  return int(solution.reason != "target" and (target is not None or not has_limit))


def _compare(options: argparse.Namespace) -> None:
  entries = {name: catalogue.find(name) for name in options.solvers.split(",") if name}
  if not entries:
    raise errors.ArgumentError(
      f"Name solvers, with commas between them: {', '.join(catalogue.SOLVERS)}."
    )
  game = spiel_cfr.compile_game(options.game)
  print(game, flush=True)
  iterations = options.iterations
  if iterations is None and options.seconds is None:
    iterations = _ITERATIONS
  print(f"{'solver':>30}{'iterations':>12}{'NashConv':>14}{'seconds':>10}")
  for name, entry in entries.items():
    solver = entry(game, iterations or _ITERATIONS)
    solver.prepare()
    result = spiel_cfr.run(solver, iterations, seconds=options.seconds, progress=False)
    last = result.last
    print(
      f"{name:>30}{last.iteration:12,}{last.nash_conv:z14.6g}{last.solver_seconds:z10.3g}",
      flush=True,
    )
    if result.reason == "interrupt":
      return


def _explore(options: argparse.Namespace) -> None:
  files.check_writable(options.output)
  game = spiel_cfr.compile_game(options.game)
  print(game, flush=True)
  target = options.exploitability
  if target is None:
    # The page shows fewer digits.
    target = 1e-3 * max(map(abs, game.payoff_range))
  solution = spiel_cfr.solve(
    game, exploitability=target, seconds=options.seconds, solver=options.solver
  )
  print(solution)
  print(spiel_cfr.explore(solution, options.output))


def _play(options: argparse.Namespace) -> None:
  policy: Any
  if options.policy is not None:
    policy = spiel_cfr.load_policy(options.game, options.policy)
  elif options.checkpoint is not None:
    policy = spiel_cfr.Solver.load(options.checkpoint, options.game)
  else:
    policy = spiel_cfr.solve(options.game, seconds=options.seconds, solver=options.solver)
    print(f"{policy}\n")
  playing.play(
    options.game,
    policy,
    player=options.player,
    hands=options.hands,
    search=options.search,
    seed=options.seed,
  )


def _size(options: argparse.Namespace) -> None:
  print(spiel_cfr.estimate_size(options.game))


def _games(_: argparse.Namespace) -> None:
  loading.register_python_games()
  names = pyspiel.registered_names()
  width = max(map(len, names)) + 2
  for name in names:
    print(f"{name:{width}}{_verdict(name)}", flush=True)


def _verdict(name: str) -> str:
  """Says whether a game can be solved with its default parameters, and gives its size or the reason."""
  try:
    game = spiel_cfr.compile_game(name, max_nodes=_LISTED_STATES, progress=False)
    return f"can be solved: {game.num_states:,} states"
  except errors.GameTooLargeError:
    estimate = spiel_cfr.estimate_size(name, seconds=0.1)
  except errors.SpielCFRError as error:
    return textwrap.shorten(f"{type(error).__name__}: {error}", 160, placeholder=" …")
  # For example "9,460 states" or "more than 1e308 states".
  states = re.sub(r"^(?=\d)", "about ", str(estimate).partition(" (")[0])
  if estimate.states < DEFAULT_MAX_NODES and estimate.bytes < DEFAULT_MAX_BYTES:
    return f"can be solved: {states}"
  return f"GameTooLargeError: {states}; if it has parameters, it may be solved with smaller ones"


def _solvers(_: argparse.Namespace) -> None:
  width = max(map(len, catalogue.SOLVERS)) + 2
  for name, entry in catalogue.SOLVERS.items():
    print(f"{name:{width}}{entry.summary}")


if __name__ == "__main__":
  # If a reader of the output ends early, as `head` does, this program ends without a message.
  signal.signal(signal.SIGPIPE, signal.SIG_DFL)
  sys.exit(main())
