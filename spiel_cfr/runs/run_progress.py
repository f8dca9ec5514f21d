"""Progress of a run on standard error: a tqdm bar on a terminal and in notebooks, otherwise a few lines."""

import sys
import time

import tqdm

from spiel_cfr.cfr.solver import Solver
from spiel_cfr.runs.trace import Row, Trace

# The shortest time between two lines; the last line may come sooner.
SECONDS_BETWEEN_LINES = 5.0


class Progress(Trace):
  """Trace that prints progress to standard error.

  Without a terminal it prints the first and the last evaluation, and a few between them.
  """

  def __init__(self, iterations: int | None) -> None:
    self._iterations = iterations
    self._last: Row | None = None
    self._last_printed: Row | None = None
    self._next_line_time = 0.0

  def start(self, solver: Solver) -> None:
    self._name = solver.recipe.name
    self._bar = tqdm.tqdm(
      desc=self._name,
      total=self._iterations,
      initial=int(solver.iteration),
      leave=False,
      dynamic_ncols=True,
      disable=not (sys.stderr.isatty() or "ipykernel" in sys.modules),
    )

  def update(self, iteration: int) -> None:
    """Moves the bar to an iteration."""
    self._bar.update(iteration - self._bar.n)

  def write(self, row: Row) -> None:
    self._last = row
    self._bar.set_postfix_str(_quality(row), refresh=False)
    if self._bar.disable and time.monotonic() >= self._next_line_time:
      self._write_line(row)

  def close(self) -> None:
    """Prints the last evaluation, in place of the bar if there is one."""
    self._bar.close()
    if self._last is not None and self._last is not self._last_printed:
      self._write_line(self._last)

  def _write_line(self, row: Row) -> None:
    self._last_printed = row
    self._next_line_time = time.monotonic() + SECONDS_BETWEEN_LINES
    print(
      f"{self._name}: iteration {row.iteration:,}, {_quality(row)}, solver {row.solver_seconds:z.3g} s, "
      f"evaluation {row.evaluation_seconds:z.3g} s",
      file=sys.stderr,
      flush=True,
    )


def _quality(row: Row) -> str:
  if row.exploitability is None:
    return f"NashConv {row.nash_conv:z.3g}"
  return f"exploitability {row.exploitability:z.3g}"
