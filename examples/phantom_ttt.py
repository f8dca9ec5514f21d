r"""Solves phantom tic-tac-toe, a game of 9,829,101,024 histories, with a certificate: both players' best responses.

    python examples/phantom_ttt.py --exploitability=0.001
    python examples/phantom_ttt.py --game="dark_hex(board_size=3)" --history

Infosets of dark hex are those of the literature with `--history`: OpenSpiel's strings contain the number of moves, and
forget it later. See docs/private_moves.md.
"""

import resource
import time
from collections.abc import Callable
from typing import Any

from absl import app, flags

import spiel_cfr

_GAME = flags.DEFINE_string("game", "phantom_ttt", "a game of private moves, with its parameters")
_HISTORY = flags.DEFINE_bool("history", False, "whether infosets are own observations and actions")
_SOLVER = flags.DEFINE_string("solver", "cfr+", "any of the catalogue that is full-width")
_EXPLOITABILITY = flags.DEFINE_float("exploitability", 1e-3, "where to stop", lower_bound=0.0)
_SECONDS = flags.DEFINE_float("seconds", 600.0, "where to stop at last", lower_bound=0.0)


def timed(what: str, call: Callable[[], Any]) -> Any:
  """Prints the processor time of a call, and the memory of the process; returns what the call does."""
  start = time.process_time()
  result = call()
  seconds = time.process_time() - start
  # Linux counts in kilobytes.
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
  print(f"| {what} | {seconds:z.2f} | {peak:z.2f} |", flush=True)
  return result


def main(_: list[str]) -> None:
  print("| step | processor seconds | GB at most |\n| --- | --- | --- |")
  game = timed(
    "compile",
    lambda: spiel_cfr.games.compile_private_moves_game(
      _GAME.value, infostate="history" if _HISTORY.value else None
    ),
  )
  solver = spiel_cfr.catalogue.make(_SOLVER.value, game, 1_000)
  timed("kernels", solver.prepare)
  # Those of evaluations, too.
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
