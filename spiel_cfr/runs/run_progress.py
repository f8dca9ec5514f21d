"""Progress of a run on standard error: a tqdm bar on a terminal, otherwise a few lines."""

import sys
import time

import tqdm

from spiel_cfr.cfr.solver import Solver
from spiel_cfr.runs.trace import Row, Trace

# The least time between two lines; the last line may come sooner.
SECONDS_BETWEEN_LINES = 5.0


class Progress(Trace):
  """Trace that prints progress to standard error: without a terminal, the first, the last and a few evaluations."""

  def __init__(self, iterations: int | None) -> None:
    self._iterations = iterations
    self._last: Row | None = None
    self._written: Row | None = None
    self._next_line = 0.0

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
    if self._bar.disable and time.monotonic() >= self._next_line:
      self._write_line(row)

  def close(self) -> None:
    """Prints the last evaluation, in place of the bar if there was one."""
    self._bar.close()
    if self._last is not None and self._last is not self._written:
      self._write_line(self._last)

  def _write_line(self, row: Row) -> None:
    self._written, self._next_line = row, time.monotonic() + SECONDS_BETWEEN_LINES
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
