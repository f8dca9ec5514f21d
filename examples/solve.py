r"""Solves one game, prints its convergence, and writes the policy.

    python examples/solve.py --game="liars_dice(dice_sides=4)"

chooses the solver, and stops at an exploitability of 1e-9 or after a minute.

    python examples/solve.py --game="liars_dice(dice_sides=4)" --solver=dcfr --iterations=10000

runs a solver by name. Both print a table of iterations, seconds and NashConv, and write the policy as JSON: infostate
-> action -> probability. Ctrl-C stops early, with the policy so far.

    python examples/solve.py --iterations=1000000 --trace=results/leduc.csv \
      --checkpoint_dir=results/leduc --checkpoint_every=100000 --resume

can be stopped or killed at any moment. Started again, it resumes from the last checkpoint, and ends with the same
policy, bit for bit. `plot_traces.py` draws traces.
"""

from results import file_name, start

import math
import pathlib
import time

from absl import app, flags
from named_solvers import SOLVERS, find

import spiel_cfr
from spiel_cfr._util.files import check_writable

# The default stopping rules.
_EXPLOITABILITY, _MINUTE = 1e-9, 60.0

_GAME = flags.DEFINE_string("game", "leduc_poker", "OpenSpiel game string")
_SOLVER = flags.DEFINE_string(
  "solver",
  None,
  f"solver, by default the best one for the game, from: {', '.join(SOLVERS)}",
)
_ITERATIONS = flags.DEFINE_integer(
  "iterations",
  None,
  "stop after this number of iterations; 1000 if a solver is named",
  lower_bound=1,
)
_TARGET = flags.DEFINE_float("target_nash_conv", None, "stop at this NashConv", 0.0)
_SECONDS = flags.DEFINE_float("seconds", None, "stop after this number of seconds", 0.0)
_EVAL_EVERY = flags.DEFINE_integer(
  "eval_every", 0, "iterations between evaluations; 0 for a growing interval", lower_bound=0
)
_POLICY = flags.DEFINE_string(
  "policy", None, "file of the average policy; by default in results/, named by the game"
)
_MAX_NODES = flags.DEFINE_integer(
  "max_nodes", 20_000_000, "largest number of states of the game", lower_bound=1
)
_TRACE = flags.DEFINE_multi_string("trace", [], "CSV files to which the evaluations are written")
_CHECKPOINT_DIR = flags.DEFINE_string("checkpoint_dir", None, "folder of checkpoints")
_CHECKPOINT_EVERY = flags.DEFINE_integer(
  "checkpoint_every", 10_000, "iterations between checkpoints", lower_bound=1
)
_KEEP = flags.DEFINE_integer("keep", 3, "number of checkpoints to keep", lower_bound=1)
_RESUME = flags.DEFINE_bool("resume", False, "resume from the last checkpoint, if there is one")


def main() -> None:
  begin = time.perf_counter()
  policy = pathlib.Path(_POLICY.value or "results/" + file_name("policy", _GAME.value, ".json"))
  check_writable(policy)
  game = spiel_cfr.compile_game(_GAME.value, max_nodes=_MAX_NODES.value)
  compiling = time.perf_counter() - begin
  print(game, flush=True)
  iterations, target, seconds = _ITERATIONS.value, _TARGET.value, _SECONDS.value
  if _SOLVER.value is None:
    name, why = spiel_cfr.solving.choose_solver(game)
    print(f"Uses {name!r}, {why}.", flush=True)
    if iterations is None and target is None and seconds is None:
      target, seconds = 2 * _EXPLOITABILITY, _MINUTE
  else:
    name, iterations = _SOLVER.value, iterations or 1000
  solver = find(name)(game, iterations or 1000)
  checkpoints = None
  if _CHECKPOINT_DIR.value is not None:
    checkpoints = spiel_cfr.Checkpoints(
      _CHECKPOINT_DIR.value, every=_CHECKPOINT_EVERY.value, keep=_KEEP.value
    )
    if _RESUME.value and checkpoints.resume(solver) is not None:
      print(f"resumed from iteration {solver.iteration:,}", flush=True)
  elif _RESUME.value:
    raise app.UsageError("--resume needs --checkpoint_dir")
  solution = spiel_cfr.solve(
    game,
    exploitability=(target or 0.0) / 2,
    # The time of compiling counts.
    seconds=math.inf if seconds is None else max(seconds - compiling, 1e-3),
    iterations=iterations,
    solver=solver,
    traces=[spiel_cfr.runs.TraceFile(path) for path in _TRACE.value],
    checkpoints=checkpoints,
    evaluate_at=spiel_cfr.runs.Every(_EVAL_EVERY.value) if _EVAL_EVERY.value else None,
  )
  print(f"\n{'iteration':>12}{'seconds':>12}{'NashConv':>14}")
  for row in solution.rows:
    print(f"{row.iteration:12,}{row.solver_seconds:z12.4f}{row.nash_conv:z14.6e}")
  print(f"\n{solution}\n")

  spiel_cfr.save_policy(game, solution.policy, policy)
  print(f"Wrote {policy}")


if __name__ == "__main__":
  start(main)
