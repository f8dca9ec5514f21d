"""What a run shows while it goes on: one line that changes on a terminal, a line an evaluation elsewhere."""

import datetime
import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
  from spiel_cfr.runs.loop import Row

_SECONDS_BETWEEN_UPDATES = 0.1
_CLEAR_LINE = "\r\x1b[K"


class Progress:
  """Writes to a stream how a run is doing."""

  def __init__(
    self,
    name: str,
    iterations: int | None,
    first_iteration: int,
    seconds: float | None,
    stream: TextIO | None = None,
  ) -> None:
    """Starts the clock.

    Args:
      name: what is running.
      iterations: at which iteration the run stops, if that is known.
      first_iteration: the iteration that it starts from.
      seconds: after how many seconds it stops, if that is known.
      stream: where to write; standard error by default.
    """
    self._name = name
    self._iterations = iterations
    self._first_iteration = first_iteration
    self._seconds = seconds
    self._stream = stream or sys.stderr
    self._terminal = self._stream.isatty()
    self._start = self._shown = time.perf_counter()
    self._quality = ""

  def update(self, iteration: int, solver_seconds: float) -> None:
    """Notes that the run has come to `iteration`, after so many seconds in the solver since it started."""
    now = time.perf_counter()
    if not self._terminal or now - self._shown < _SECONDS_BETWEEN_UPDATES:
      return
    self._shown = now
    of_all = "" if self._iterations is None else f" of {self._iterations:,}"
    rate = (iteration - self._first_iteration) / solver_seconds if solver_seconds else 0.0
    parts = [
      f"{self._name}: iteration {iteration:,}{of_all}",
      f"{rate:,.3g}/s" if rate < 100 else f"{rate:,.0f}/s",
      *filter(None, [self._quality]),
      *self._time_left(iteration, now - self._start),
    ]
    self._stream.write(_CLEAR_LINE + ", ".join(parts))
    self._stream.flush()

  def evaluated(self, row: "Row") -> None:
    """Notes a new evaluation."""
    self._quality = _quality(row)
    if not self._terminal:
      self._write_line(row)

  def close(self, row: "Row | None") -> None:
    """Leaves the last evaluation behind on a terminal."""
    if self._terminal:
      self._stream.write(_CLEAR_LINE)
      if row is not None:
        self._write_line(row)

  def _write_line(self, row: "Row") -> None:
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


def _quality(row: "Row") -> str:
  if row.exploitability is None:
    return f"NashConv {row.nash_conv:.3g}"
  return f"exploitability {row.exploitability:.3g}"
