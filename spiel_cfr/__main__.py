"""The main jobs from the command line: `python -m spiel_cfr --help`."""

import argparse
import os
import pathlib
import sys
import time
from collections.abc import Callable, Sequence

import pyspiel

import spiel_cfr
from spiel_cfr import catalogue, errors

# Where nothing says when to stop; and the horizon of solvers that want to know theirs.
_ITERATIONS = 1000


def main(arguments: Sequence[str] | None = None) -> int:
  """Runs one job; returns the process's exit status.

  Args:
    arguments: of the command line; those of the process if None.
  """
  parser = argparse.ArgumentParser(
    prog="python -m spiel_cfr", description="Solves games of OpenSpiel by regret minimization."
  )
  parser.add_argument("--version", action="version", version=f"spiel_cfr {spiel_cfr.__version__}")
  jobs = parser.add_subparsers(title="jobs", required=True, metavar="JOB")

  job = _add(jobs, "solve", _solve, "solve a game, and write the policy on request")
  job.add_argument("game", help='OpenSpiel\'s string of a game, such as "leduc_poker(players=3)"')
  job.add_argument("--solver", default="dcfr", choices=catalogue.SOLVERS, metavar="NAME")
  _add_limits(job, "stop after so many seconds, compiling included")
  job.add_argument("--target", type=float, metavar="NASHCONV", help="stop at this NashConv")
  job.add_argument("--policy", type=pathlib.Path, metavar="FILE", help="write the policy, as JSON")

  job = _add(jobs, "compare", _compare, "run several solvers on a game")
  job.add_argument("game", help="OpenSpiel's string of a game")
  job.add_argument("--solvers", default="cfr,cfr+,dcfr,pcfr+,adaptive", metavar="NAME,NAME")
  _add_limits(job, "stop each solver after so many seconds")

  job = _add(
    jobs, "explore", _explore, "solve a game, and write a page on which one clicks through it"
  )
  job.add_argument("game", help="OpenSpiel's string of a game")
  job.add_argument("--seconds", type=float, default=60.0, help="solve for so many at most")
  job.add_argument(
    "--output", type=pathlib.Path, default=pathlib.Path("explore.html"), metavar="FILE"
  )

  job = _add(jobs, "size", _size, "estimate how large a game is, without walking it")
  job.add_argument("game", help="OpenSpiel's string of a game")

  _add(jobs, "games", _games, "list OpenSpiel's games, and which can't be solved")
  _add(jobs, "solvers", _solvers, "list the solvers")

  chosen = parser.parse_args(arguments)
  try:
    chosen.run(chosen)
  except (errors.SpielCFRError, OSError) as error:
    print(f"error: {error}", file=sys.stderr)
    return 1
  return 0


def _add(
  jobs: "argparse._SubParsersAction[argparse.ArgumentParser]",
  name: str,
  run: Callable[[argparse.Namespace], None],
  summary: str,
) -> argparse.ArgumentParser:
  job = jobs.add_parser(name, help=summary, description=summary)
  job.set_defaults(run=run)
  return job


def _add_limits(job: argparse.ArgumentParser, seconds: str) -> None:
  job.add_argument(
    "--iterations",
    type=int,
    help=f"how many at most: by default {_ITERATIONS}, or with --seconds as many as there is time for",
  )
  job.add_argument("--seconds", type=float, help=seconds)


def _iterations(chosen: argparse.Namespace) -> int | None:
  """Returns how many iterations there are at most, None if time is the only limit."""
  given: int | None = chosen.iterations
  return _ITERATIONS if given is None and chosen.seconds is None else given


def _solve(chosen: argparse.Namespace) -> None:
  if chosen.policy is not None:
    check_writable(chosen.policy)
  start = time.perf_counter()
  game = spiel_cfr.compile_game(chosen.game)
  print(game, flush=True)
  iterations = _iterations(chosen)
  solver = catalogue.make(chosen.solver, game, iterations or _ITERATIONS)
  seconds = chosen.seconds
  if seconds is not None:
    # Compiling counts.
    seconds = max(seconds - (time.perf_counter() - start), min(seconds, 1e-3))
  result = spiel_cfr.run(solver, iterations, seconds=seconds, target_nash_conv=chosen.target)
  print(f"{solver}: NashConv {result.last.nash_conv:.6g}")
  if chosen.policy is not None:
    spiel_cfr.save_policy(game, solver.average_policy(), chosen.policy)
    print(f"Wrote {chosen.policy}")


def _compare(chosen: argparse.Namespace) -> None:
  names = [name for name in chosen.solvers.split(",") if name]
  unknown = [name for name in names if name not in catalogue.SOLVERS]
  if unknown or not names:
    raise errors.ArgumentError(
      f"Name solvers from these, with commas between them: {', '.join(catalogue.SOLVERS)}; "
      + (f"there is no {', '.join(unknown)}." if unknown else "none is named.")
    )
  game = spiel_cfr.compile_game(chosen.game)
  print(game, flush=True)
  iterations = _iterations(chosen)
  print(f"{'solver':>30}{'iterations':>12}{'NashConv':>14}{'seconds':>10}")
  for name in names:
    solver = catalogue.make(name, game, iterations or _ITERATIONS)
    solver.prepare()
    result = spiel_cfr.run(solver, iterations, seconds=chosen.seconds, progress=False)
    last = result.last
    print(
      f"{name:>30}{last.iteration:12,}{last.nash_conv:14.6g}{last.solver_seconds:10.3g}", flush=True
    )
    if result.reason == "interrupt":
      return


def _explore(chosen: argparse.Namespace) -> None:
  check_writable(chosen.output)
  game = spiel_cfr.compile_game(chosen.game)
  print(game, flush=True)
  # A thousandth of the largest payoff is more than one sees.
  target = 1e-3 * max(map(abs, game.payoff_range))
  solution = spiel_cfr.solve(game, exploitability=target, seconds=chosen.seconds, progress=True)
  print(solution)
  print(spiel_cfr.explore(solution, chosen.output))


def _size(chosen: argparse.Namespace) -> None:
  print(spiel_cfr.estimate_size(chosen.game))


def _games(_: argparse.Namespace) -> None:
  for name in pyspiel.registered_names():
    try:
      spiel_cfr.games.load_game(name)
      note = ""
    except errors.GameError as error:
      note = f"  {error}"
    print(f"{name}{note}")


def _solvers(_: argparse.Namespace) -> None:
  width = max(map(len, catalogue.SOLVERS)) + 2
  for name, entry in catalogue.SOLVERS.items():
    print(f"{name:{width}}{entry.summary}")


def check_writable(path: pathlib.Path) -> None:
  """Makes sure before a long run that a file can be written after it.

  Raises:
    OSError: it can't.
  """
  path.parent.mkdir(parents=True, exist_ok=True)
  if path.is_dir():
    raise IsADirectoryError(f"{path} is a folder, not a file.")
  if not os.access(path if path.exists() else path.parent, os.W_OK):
    raise PermissionError(f"{path} can't be written.")


if __name__ == "__main__":
  sys.exit(main())
