r"""Solves phantom tic-tac-toe, a game of 9,829,101,024 histories, with exact best responses of both players.

    python examples/phantom_ttt.py --exploitability=0.001
    python examples/phantom_ttt.py --game="dark_hex(board_size=3)" --history
    python examples/phantom_ttt.py --game="phantom_ttt(gameversion=abrupt)" --max_bytes=3000000000 --exploitability=0.02

With `--history`, infosets of dark hex are those of the literature, the player's own observations and actions.
OpenSpiel's information state strings differ from them: see docs/private_moves.md.
"""

import resource
import time
from collections.abc import Callable
from typing import Any

from absl import app, flags

import spiel_cfr

_GAME = flags.DEFINE_string("game", "phantom_ttt", "OpenSpiel string of a game of private moves")
_HISTORY = flags.DEFINE_bool("history", False, "make infosets of own observations and actions")
_MAX_BYTES = flags.DEFINE_integer(
  "max_bytes", 1_500_000_000, "largest size of the compiled arrays, in bytes", lower_bound=1
)
_SOLVER = flags.DEFINE_string("solver", "cfr+", "full-width solver of the catalogue")
_EXPLOITABILITY = flags.DEFINE_float(
  "exploitability", 1e-3, "exploitability at which to stop", lower_bound=0.0
)
_SECONDS = flags.DEFINE_float(
  "seconds", 600.0, "time limit of the solver, in seconds", lower_bound=0.0
)


def timed(step: str, call: Callable[[], Any]) -> Any:
  """Prints the CPU time of a call, and the peak memory of the process; returns the result of the call."""
  start = time.process_time()
  result = call()
  seconds = time.process_time() - start
  # Linux reports kilobytes.
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
  print(f"| {step} | {seconds:z.2f} | {peak:z.2f} |", flush=True)
  return result


def main(_: list[str]) -> None:
  print("| step | CPU seconds | peak GB |\n| --- | --- | --- |")
  game = timed(
    "compile",
    lambda: spiel_cfr.games.compile_private_moves_game(
      _GAME.value, infostate="history" if _HISTORY.value else None, max_bytes=_MAX_BYTES.value
    ),
  )
  solver = spiel_cfr.catalogue.make(_SOLVER.value, game, 1_000)
  timed("kernels", solver.prepare)
  # This compiles the kernels of evaluations.
  solver.nash_conv()
  timed("an iteration", lambda: solver.run(1))
  timed("an evaluation", solver.nash_conv)
  solution = spiel_cfr.solve(
    game, solver=solver, exploitability=_EXPLOITABILITY.value, seconds=_SECONDS.value
  )
  print("\n| iterations | seconds | exploitability |\n| --- | --- | --- |")
  for row in solution.rows:
    print(f"| {row.iteration:,} | {row.solver_seconds:z.1f} | {row.nash_conv / 2:z.5f} |")
  print(f"\n{solution}\ncore histories {game.num_core_histories:,}")


if __name__ == "__main__":
  app.run(main)
