"""What a run shows while it goes on: one line that changes on a terminal, a line per evaluation elsewhere."""

import datetime
import shutil
import sys
import time
from typing import TextIO

from spiel_cfr.cfr.solver import Solver
from spiel_cfr.runs.trace import Row

_SECONDS_BETWEEN_UPDATES = 0.1
_CLEAR_LINE = "\r\x1b[K"


class Progress:
  """Writes to a stream how a run is doing."""

  def __init__(
    self,
    solver: Solver,
    iterations: int | None,
    seconds: float | None,
    solver_seconds: float = 0.0,
    stream: TextIO | None = None,
  ) -> None:
    """Starts the clock.

    Args:
      solver: what is running.
      iterations: at which iteration the run stops, if that is known.
      seconds: after how many seconds it stops, if that is known.
      solver_seconds: how long the solver has run before.
      stream: where to write; standard error by default.
    """
    self._name = type(solver).__name__
    self._iterations = iterations
    self._seconds = seconds
    self._first_iteration = solver.iteration
    self._first_solver_seconds = solver_seconds
    self._stream = stream or sys.stderr
    # A notebook shows what was written after a carriage return in place of the line, but knows no other commands.
    self._notebook = stream is None and "ipykernel" in sys.modules
    self._terminal = self._notebook or self._stream.isatty()
    self._length = 0
    self._start = self._shown = time.perf_counter()
    self._last: Row | None = None

  def update(self, iteration: int, solver_seconds: float) -> None:
    """Notes that the run has come to `iteration`, after so many seconds in the solver."""
    now = time.perf_counter()
    if not self._terminal or now - self._shown < _SECONDS_BETWEEN_UPDATES:
      return
    self._shown = now
    of_all = "" if self._iterations is None else f" of {self._iterations:,}"
    done = iteration - self._first_iteration
    rate = done / max(solver_seconds - self._first_solver_seconds, 1e-9)
    parts = [
      f"{self._name}: iteration {iteration:,}{of_all}",
      f"{rate:,.3g}/s" if rate < 100 else f"{rate:,.0f}/s",
      *([] if self._last is None else [_quality(self._last)]),
      *self._time_left(iteration, now - self._start),
    ]
    self._show(", ".join(parts))

  def _show(self, line: str) -> None:
    """Writes over the line that is there, no more than fits into it."""
    if self._notebook:
      self._stream.write(f"\r{line.ljust(self._length)}")
      self._length = len(line)
    else:
      # The last column would begin a new line on some terminals.
      width = shutil.get_terminal_size().columns - 1
      self._stream.write(_CLEAR_LINE + (line if len(line) <= width else f"{line[: width - 3]}..."))
    self._stream.flush()

  def evaluated(self, row: Row) -> None:
    """Notes a new evaluation."""
    self._last = row
    if not self._terminal:
      self._write_line(row)

  def close(self) -> None:
    """Leaves the last evaluation behind on a terminal."""
    if self._terminal:
      self._show("")
      if self._notebook:
        self._stream.write("\r")
      if self._last is not None:
        self._write_line(self._last)

  def _write_line(self, row: Row) -> None:
    self._stream.write(
      f"{self._name}: iteration {row.iteration:,}, {_quality(row)}, solver {row.solver_seconds:.3g} s, "
      f"evaluation {row.evaluation_seconds:.3g} s\n"
    )
    self._stream.flush()

  def _time_left(self, iteration: int, elapsed: float) -> list[str]:
    left = [] if self._seconds is None else [self._seconds - elapsed]
    done = iteration - self._first_iteration
    if self._iterations is not None and done:
      left.append(elapsed * (self._iterations - iteration) / done)
    if not left or min(left) > datetime.timedelta.max.total_seconds():
      return []
    return [f"{datetime.timedelta(seconds=round(max(0.0, min(left))))} left"]


def _quality(row: Row) -> str:
  if row.exploitability is None:
    return f"NashConv {row.nash_conv:.3g}"
  return f"exploitability {row.exploitability:.3g}"
