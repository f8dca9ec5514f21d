"""Traces of a run: receivers of its evaluations, and CSV files with one row for each evaluation.

A file begins with its header, a comment line in JSON: the game, the solver with its arguments and seed, versions of
packages, and the machine. Every row is flushed at once. A killed run may leave half a line at the end. When the run is
resumed, this line is removed, and all rows of iterations after the checkpoint.
"""

import abc
import dataclasses
import datetime
import json
import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, TextIO

from spiel_cfr import errors
from spiel_cfr._util import arguments, files
from spiel_cfr._util.environment import machine, versions
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr.solver import Solver

_KIND = "trace of spiel_cfr"
_FORMAT = 4


@dataclasses.dataclass(frozen=True)
class Row:
  """Evaluation of a solver's average policy during a run.

  Attributes:
    iteration: int. The number of iterations that the solver has done.
    solver_seconds: float. The wall-clock time of all iterations.
    evaluation_seconds: float. The wall-clock time of all evaluations up to this one.
    nodes_touched: int. The number of states that a recursive implementation would have visited.
    nash_conv: float. NashConv, the sum of the players' gains by best responses, in the game's units.
    exploitability: float. Half of NashConv in two-player constant-sum games; None in others.
    current_nash_conv: float. NashConv of the current strategy, the last iterate; None unless the run was
      asked to evaluate it.
    extra_columns: dictionary. Column -> value, for additional columns of the solver, see `Solver.trace_columns`.
  """

  iteration: int
  solver_seconds: float
  evaluation_seconds: float
  nodes_touched: int
  nash_conv: float
  exploitability: float | None
  current_nash_conv: float | None = None
  extra_columns: Mapping[str, float] = dataclasses.field(default_factory=dict)

  def columns(self) -> dict[str, Any]:
    """Returns all values of the row: name of the column in files -> value."""
    return {name: getattr(self, name) for name in _NAMES} | dict(self.extra_columns)


# The columns of every trace.
_NAMES = tuple(field.name for field in dataclasses.fields(Row) if field.name != "extra_columns")


class TraceContents(NamedTuple):
  """Contents of a trace file.

  Attributes:
    header: dictionary. The game, the solver, versions of packages, and the machine.
    rows: list of `Row`. The evaluations.
  """

  header: dict[str, Any]
  rows: list[Row]


class Trace(abc.ABC):
  """Base class of receivers of a run's evaluations. Derive from it to send evaluations elsewhere."""

  @abc.abstractmethod
  def start(self, solver: Solver) -> Row | None:
    """Begins the trace, or continues an earlier trace from the solver's iteration.

    Returns:
      The last row up to the solver's iteration in an earlier trace that this one continues; None if there is no such
      row.
    """

  @abc.abstractmethod
  def write(self, row: Row) -> None:
    """Receives an evaluation."""

  @abc.abstractmethod
  def close(self) -> None:
    """Ends the trace. The run calls this method even if the run fails."""


@typed
def read_trace(path: str | os.PathLike[str]) -> TraceContents:
  """Returns the contents of a trace file. An incomplete last line is ignored.

  Raises:
    FileFormatError: the file is not a trace, has another format, or is damaged.
    ArgumentError: `path` is not a path.
    OSError: the file can't be read.
  """
  path = arguments.path(path, "path")
  rows: list[Row] = []
  try:
    first, *lines = [line.decode() for line in path.read_bytes().split(b"\n")[:-1]]
    header = dict(json.loads(first.removeprefix("# ")))
    if (header["kind"], header["format"]) != (_KIND, _FORMAT):
      raise ValueError(f"its format is not {_FORMAT}")
    if not isinstance(header.get("resumed", []), list):
      raise ValueError("in its header, 'resumed' is not a list")
    # If the file was cut off after the header, there are no lines.
    names = lines[0].split(",") if lines else []
    for line in lines[1:]:
      cells = [json.loads(cell) if cell else None for cell in line.split(",")]
      rows.append(_to_row(dict(zip(names, cells, strict=True))))
      if len(rows) > 1 and rows[-2].iteration >= rows[-1].iteration:
        raise ValueError(f"iteration {rows[-1].iteration} comes after {rows[-2].iteration}")
  except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
    raise errors.FileFormatError(
      f"{path} is not a {_KIND}, or the file is damaged after row {len(rows)}: {error}."
    ) from error
  return TraceContents(header, rows)


def _to_row(values: dict[str, Any]) -> Row:
  """Returns the row with these values, by column.

  Raises:
    ValueError: a value is impossible.
  """
  for name, value in values.items():
    if value is None and name in ("exploitability", "current_nash_conv"):
      continue
    if type(value) not in (int, float) or not math.isfinite(value):
      raise ValueError(f"{name} is {value!r}, not a finite number")
    if name in ("iteration", "nodes_touched") and (type(value) is not int or value < 0):
      raise ValueError(f"{name} is {value!r}, not a count")
    if name in ("solver_seconds", "evaluation_seconds") and value < 0:
      raise ValueError(f"{name} is {value!r}, a negative time")
  return Row(**{name: values.pop(name) for name in _NAMES}, extra_columns=values)


def _line(row: Row) -> str:
  """Returns a row as a line of the file. An empty cell means None."""
  cells = ("" if value is None else json.dumps(value) for value in row.columns().values())
  return ",".join(cells) + "\n"


def _header(solver: Solver) -> dict[str, Any]:
  """Returns the header of a trace that begins at the solver's iteration."""
  return {
    "kind": _KIND,
    "format": _FORMAT,
    "game": solver.compiled_game.game_string,
    "game_sha256": solver.compiled_game.digest,
    "solver": solver.description(),
    "iteration": solver.iteration,
    "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    "versions": versions(),
    "machine": machine(),
  }


class TraceFile(Trace):
  """Trace that writes a CSV file. The run makes the file when it starts."""

  @typed
  def __init__(self, path: str | os.PathLike[str]) -> None:
    """Makes the trace. Its file is only written when a run starts the trace.

    Args:
      path: the path of the file.

    Raises:
      ArgumentError: `path` is not a path.
    """
    self._path = arguments.path(path, "path")
    self._file: TextIO | None = None
    self._last = -1

  def start(self, solver: Solver) -> Row | None:
    """Begins the file. If it exists, its rows up to the solver's iteration are kept.

    Raises:
      FileFormatError: the file exists, and is not a trace.
      CheckpointMismatchError: the trace belongs to another game, another solver or other arguments.
      OSError: the file can't be written.
    """
    header = _header(solver)
    rows: list[Row] = []
    if self._path.exists():
      old = read_trace(self._path)
      for key in ("game_sha256", "solver"):
        if old.header.get(key) != header[key]:
          raise errors.CheckpointMismatchError(
            f"{self._path} is a trace of {old.header.get('solver')} on {old.header.get('game')}, "
            f"not of {header['solver']} on {header['game']}. Give the trace another name."
          )
      rows = [row for row in old.rows if row.iteration <= solver.iteration]
      if rows:
        resumed = {key: header[key] for key in ("iteration", "started", "versions", "machine")}
        header = old.header | {"resumed": [*old.header.get("resumed", []), resumed]}
    files.make_folder(self._path.parent)
    with files.replacing(self._path) as file:
      names = ",".join([*_NAMES, *solver.trace_columns()])
      file.write(f"# {json.dumps(header)}\n{names}\n{''.join(map(_line, rows))}".encode())
    self._file = open(self._path, "a", newline="\n")  # noqa: SIM115
    self._last = rows[-1].iteration if rows else -1
    return rows[-1] if rows else None

  def write(self, row: Row) -> None:
    # A resumed run that has no iterations left evaluates the last iteration again, whose row the file has.
    if self._file is not None and row.iteration > self._last:
      self._file.write(_line(row))
      self._file.flush()

  def close(self) -> None:
    if self._file is not None:
      self._file.close()
