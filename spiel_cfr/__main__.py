"""Command line: `python -m spiel_cfr --help`.

Each job has its own arguments. absl's flags can't express that, since they are one list for a whole program. The
programs in examples/ use absl's flags, like those of OpenSpiel.
"""

import argparse
import importlib
import math
import os
import pathlib
import re
import signal
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import pyspiel

import spiel_cfr
from spiel_cfr import catalogue, errors, playing
from spiel_cfr._util import files
from spiel_cfr.games.openspiel import loading
from spiel_cfr.games.openspiel.game_size import DEFAULT_MAX_BYTES, DEFAULT_MAX_NODES

# The iterations of `compare` without limits, and the horizon of solvers that need one.
_ITERATIONS = 1000
# The exit status after Ctrl-C, as in shells.
_INTERRUPTED = 130
# The limits of `solve`, as in `spiel_cfr.solve`.
_EXPLOITABILITY, _SECONDS = 1e-6, 60.0
_PLAY_SECONDS = 10.0
# The most states of a game that the list of games compiles.
_LISTED_STATES = 5000


def main(arguments: Sequence[str] | None = None) -> int:
  """Runs one job, with the given arguments or those of the process; returns the exit status."""
  parser = argparse.ArgumentParser(
    prog="python -m spiel_cfr", description="Solves games of OpenSpiel by regret minimization."
  )
  parser.add_argument("--version", action="version", version=f"spiel_cfr {spiel_cfr.__version__}")
  jobs = parser.add_subparsers(title="jobs", required=True, metavar="JOB")

  job = _add(jobs, "solve", _solve, "solve a game, and write the policy on request")
  _take_game(job)
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
  _take_solver(job)
  job.add_argument("--policy", type=pathlib.Path, metavar="FILE", help="write the policy, as JSON")

  job = _add(jobs, "compare", _compare, "run several solvers on a game")
  _take_game(job)
  job.add_argument("--solvers", default="cfr,cfr+,dcfr,pcfr+,adaptive", metavar="NAME,NAME")
  job.add_argument(
    "--iterations",
    type=int,
    help=f"the most iterations: by default {_ITERATIONS}, or with --seconds no limit",
  )
  job.add_argument("--seconds", type=float, help="stop each solver after this time")

  job = _add(jobs, "explore", _explore, "solve a game, and write a page to click through it")
  _take_game(job)
  _take_solver(job)
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

  job = _add(jobs, "play", _play, "play a game against a policy, in the terminal")
  _take_game(job)
  job.add_argument(
    "--policy", type=pathlib.Path, metavar="FILE", help="the policy, as `solve --policy` writes it"
  )
  job.add_argument(
    "--checkpoint", type=pathlib.Path, metavar="FILE", help="a saved solver, to play its policy"
  )
  _take_solver(job)
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

  job = _add(jobs, "size", _size, "estimate the size of a game, without compiling it")
  _take_game(job)

  _add(
    jobs, "games", _games, "list OpenSpiel's games, with their size and whether they can be solved"
  )
  _add(jobs, "solvers", _solvers, "list the solvers")

  chosen = parser.parse_args(arguments)
  try:
    if __name__ == "__main__" and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
      # Jobs end with what there is.
      signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in chosen.imported:
      _import(name)
    return chosen.run(chosen) or 0
  except (errors.SpielCFRError, OSError) as error:
    print(f"error: {error}", file=sys.stderr)
    return 1
  except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
    return _INTERRUPTED


def _add(
  jobs: "argparse._SubParsersAction[argparse.ArgumentParser]",
  name: str,
  run: Callable[[argparse.Namespace], int | None],
  summary: str,
) -> argparse.ArgumentParser:
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


def _take_game(job: argparse.ArgumentParser) -> None:
  job.add_argument("game", help='OpenSpiel\'s string of a game, such as "leduc_poker(players=3)"')


def _take_solver(job: argparse.ArgumentParser) -> None:
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


def _solve(chosen: argparse.Namespace) -> int:
  if chosen.policy is not None:
    check_writable(chosen.policy)
  target, seconds, iterations = chosen.exploitability, chosen.seconds, chosen.iterations
  has_limit = seconds is not None or iterations is not None
  solution = spiel_cfr.solve(
    chosen.game,
    exploitability=_EXPLOITABILITY if target is None else target,
    relative=chosen.relative,
    seconds=(math.inf if has_limit else _SECONDS) if seconds is None else seconds,
    iterations=iterations,
    solver=chosen.solver,
  )
  print(solution)
  if chosen.policy is not None:
    spiel_cfr.save_policy(solution.compiled_game, solution.policy, chosen.policy)
    print(f"Wrote {chosen.policy}")
  return int(solution.reason != "target" and (target is not None or not has_limit))


def _compare(chosen: argparse.Namespace) -> None:
  entries = {name: catalogue.find(name) for name in chosen.solvers.split(",") if name}
  if not entries:
    raise errors.ArgumentError(
      f"Name solvers, with commas between them: {', '.join(catalogue.SOLVERS)}."
    )
  game = spiel_cfr.compile_game(chosen.game)
  print(game, flush=True)
  iterations = chosen.iterations
  if iterations is None and chosen.seconds is None:
    iterations = _ITERATIONS
  print(f"{'solver':>30}{'iterations':>12}{'NashConv':>14}{'seconds':>10}")
  for name, entry in entries.items():
    solver = entry(game, iterations or _ITERATIONS)
    solver.prepare()
    result = spiel_cfr.run(solver, iterations, seconds=chosen.seconds, progress=False)
    last = result.last
    print(
      f"{name:>30}{last.iteration:12,}{last.nash_conv:z14.6g}{last.solver_seconds:z10.3g}",
      flush=True,
    )
    if result.reason == "interrupt":
      return


def _explore(chosen: argparse.Namespace) -> None:
  check_writable(chosen.output)
  game = spiel_cfr.compile_game(chosen.game)
  print(game, flush=True)
  target = chosen.exploitability
  if target is None:
    # More exact than the page shows.
    target = 1e-3 * max(map(abs, game.payoff_range))
  solution = spiel_cfr.solve(
    game, exploitability=target, seconds=chosen.seconds, solver=chosen.solver
  )
  print(solution)
  print(spiel_cfr.explore(solution, chosen.output))


def _play(chosen: argparse.Namespace) -> None:
  policy: Any
  if chosen.policy is not None:
    policy = spiel_cfr.load_policy(chosen.game, chosen.policy)
  elif chosen.checkpoint is not None:
    policy = spiel_cfr.Solver.load(chosen.checkpoint, chosen.game)
  else:
    policy = spiel_cfr.solve(chosen.game, seconds=chosen.seconds, solver=chosen.solver)
    print(f"{policy}\n")
  playing.play(
    chosen.game,
    policy,
    player=chosen.player,
    hands=chosen.hands,
    search=chosen.search,
    seed=chosen.seed,
  )


def _size(chosen: argparse.Namespace) -> None:
  print(spiel_cfr.estimate_size(chosen.game))


def _games(_: argparse.Namespace) -> None:
  loading.register_python_games()
  names = pyspiel.registered_names()
  width = max(map(len, names)) + 2
  for name in names:
    print(f"{name:{width}}{_verdict(name)}", flush=True)


def _verdict(name: str) -> str:
  """Returns whether a game can be solved with its default parameters, and its size or the reason."""
  try:
    found = spiel_cfr.compile_game(name, max_nodes=_LISTED_STATES, progress=False)
    return f"can be solved: {found.num_states:,} states"
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


def check_writable(path: pathlib.Path) -> None:
  """Raises OSError before a long run if a file can't be written after it."""
  path.parent.mkdir(parents=True, exist_ok=True)
  path = files.destination(path)
  if not os.access(path if path.exists() else path.parent, os.W_OK):
    raise PermissionError(f"{path} can't be written.")


if __name__ == "__main__":
  # A reader of the output that ends early, such as head, ends this program without a message.
  signal.signal(signal.SIGPIPE, signal.SIG_DFL)
  sys.exit(main())
