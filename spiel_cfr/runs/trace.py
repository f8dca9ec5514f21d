"""Traces: files with a row an evaluation, for plots and for comparing runs.

Each begins with a header: the game, the solver and its arguments (a seed among them), versions of packages, and the
machine. A row is handed to the operating system as soon as it is there. A run that was killed can leave half a line at
the end of a file; a run that goes on takes it away, together with all rows after the checkpoint that it starts from.
"""

import abc
import dataclasses
import datetime
import importlib.util
import json
import math
import os
import pathlib
import time
from typing import Any, NamedTuple, TextIO

from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr._util.environment import machine, versions
from spiel_cfr.cfr.solver import Solver

_KIND = "trace of spiel_cfr"
_FORMAT = 2


@dataclasses.dataclass(frozen=True)
class Row:
  """One evaluation of the average policy.

  Attributes:
    iteration: how many iterations the solver had done.
    solver_seconds: wall-clock time that they took.
    evaluation_seconds: wall-clock time that this evaluation and those before it took.
    nodes_touched: how many states a recursive implementation would have visited.
    nash_conv: what the players would gain by best responses, summed, in the game's own units.
    exploitability: half of that in constant-sum games of two players, None elsewhere.
    held_bytes: what a solver that prunes has to hold between iterations (`PruningSolver.held_bytes`), None for others.
  """

  iteration: int
  solver_seconds: float
  evaluation_seconds: float
  nodes_touched: int
  nash_conv: float
  exploitability: float | None
  held_bytes: int | None = None


COLUMNS = tuple(field.name for field in dataclasses.fields(Row))
# By format.
_COLUMNS = {1: COLUMNS[:-1], _FORMAT: COLUMNS}
# What stands for None.
_NOTHING = (None, "")


class TraceContents(NamedTuple):
  """What a trace file holds.

  Attributes:
    header: what was run, and on what.
    rows: the evaluations.
  """

  header: dict[str, Any]
  rows: list[Row]


class Trace(abc.ABC):
  """Something that a run tells its evaluations. Derive from it to send them elsewhere."""

  @abc.abstractmethod
  def start(self, solver: Solver) -> Row | None:
    """Begins, or goes on after the solver's iteration; returns the last row up to there, if it knows one."""

  @abc.abstractmethod
  def write(self, row: Row) -> None:
    """Takes a row."""

  @abc.abstractmethod
  def close(self) -> None:
    """Ends; also called when the run fails."""


def open_trace(path: str | os.PathLike[str]) -> Trace:
  """Returns the trace that a path asks for. Nothing is written before the run starts.

  Args:
    path: `*.csv`, `*.jsonl`, or a folder, without a suffix, for event files of TensorBoard.

  Raises:
    ArgumentError: it is none of these, or TensorBoard is not installed.
  """
  path = pathlib.Path(path)
  if path.suffix in _FORMS:
    return _FileTrace(path)
  if path.suffix:
    raise errors.ArgumentError(
      f"{path} must end in .csv or .jsonl, or be a folder, without a suffix, for TensorBoard."
    )
  return _TensorBoardTrace(path)


def read_trace(path: str | os.PathLike[str]) -> TraceContents:
  """Reads a CSV or JSON lines trace, without the last line if that is incomplete.

  Raises:
    FileFormatError: the file is no trace, has a newer format, or is damaged.
    OSError: the file can't be read.
  """
  path = pathlib.Path(path)
  if path.suffix not in _FORMS:
    raise errors.FileFormatError(f"{path} does not end in .csv or .jsonl.")
  form = _FORMS[path.suffix]
  rows: list[Row] = []
  try:
    *lines, _ = path.read_bytes().split(b"\n")
    header = form.parse_header(lines[0].decode())
    kind, version = header["kind"], header["format"]
    if not isinstance(header.get("resumed", []), list):
      raise ValueError("its header does not list when it was resumed")
    if kind == _KIND and version in _COLUMNS:
      for line in lines[form.header_lines :]:
        rows.append(_to_row(form.parse_row(line.decode(), _COLUMNS[version]), _COLUMNS[version]))
        if len(rows) > 1 and rows[-2].iteration >= rows[-1].iteration:
          raise ValueError(f"iteration {rows[-1].iteration} comes after {rows[-2].iteration}")
  except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
    raise errors.FileFormatError(
      f"{path} is not a {_KIND}, or is damaged after {len(rows)} rows: {error}."
    ) from error
  if kind != _KIND:
    raise errors.FileFormatError(f"{path} is not a {_KIND}.")
  if version not in _COLUMNS:
    raise errors.FileFormatError(
      f"{path} has format {version}; this version of spiel_cfr reads formats up to {_FORMAT}."
    )
  return TraceContents(header, rows)


def _to_row(values: dict[str, Any], columns: tuple[str, ...]) -> Row:
  if tuple(values) != columns:
    raise ValueError(f"its columns are {', '.join(values)}")
  iteration, nodes_touched = (_count(values[name]) for name in ("iteration", "nodes_touched"))
  solver_seconds, evaluation_seconds, nash_conv = (
    _number(values[name]) for name in ("solver_seconds", "evaluation_seconds", "nash_conv")
  )
  if min(solver_seconds, evaluation_seconds) < 0:
    raise ValueError("a time is negative")
  exploitability, held_bytes = (values.get(name) for name in COLUMNS[-2:])
  return Row(
    iteration,
    solver_seconds,
    evaluation_seconds,
    nodes_touched,
    nash_conv,
    None if exploitability in _NOTHING else _number(exploitability),
    None if held_bytes in _NOTHING else _count(held_bytes),
  )


def _count(value: Any) -> int:
  number = int(value) if isinstance(value, str) else value
  if type(number) is not int or number < 0:
    raise ValueError(f"{value!r} is no count")
  return number


def _number(value: Any) -> float:
  if isinstance(value, bool) or not math.isfinite(number := float(value)):
    raise ValueError(f"{value!r} is no finite number")
  return number


def _header(solver: Solver) -> dict[str, Any]:
  """Returns what the rows of a run depend on."""
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


class _Form(abc.ABC):
  """How a header and rows become lines."""

  header_lines = 1

  @abc.abstractmethod
  def header(self, header: dict[str, Any]) -> str: ...

  @abc.abstractmethod
  def parse_header(self, line: str) -> dict[str, Any]: ...

  @abc.abstractmethod
  def row(self, row: Row) -> str: ...

  @abc.abstractmethod
  def parse_row(self, line: str, columns: tuple[str, ...]) -> dict[str, Any]: ...


class _CSV(_Form):
  """A comment with the header as JSON, the names of the columns, and a row a line; None is an empty cell."""

  header_lines = 2

  def header(self, header: dict[str, Any]) -> str:
    return f"# {json.dumps(header)}\n{','.join(COLUMNS)}\n"

  def parse_header(self, line: str) -> dict[str, Any]:
    return dict(json.loads(line.removeprefix("# ")))

  def row(self, row: Row) -> str:
    cells = ("" if value is None else repr(value) for value in dataclasses.astuple(row))
    return ",".join(cells) + "\n"

  def parse_row(self, line: str, columns: tuple[str, ...]) -> dict[str, Any]:
    return dict(zip(columns, line.split(","), strict=True))


class _JSONLines(_Form):
  """A JSON object a line, the header first."""

  def header(self, header: dict[str, Any]) -> str:
    return json.dumps(header) + "\n"

  def parse_header(self, line: str) -> dict[str, Any]:
    return dict(json.loads(line))

  def row(self, row: Row) -> str:
    return json.dumps(dataclasses.asdict(row)) + "\n"

  def parse_row(self, line: str, columns: tuple[str, ...]) -> dict[str, Any]:
    return dict(json.loads(line))


_FORMS: dict[str, _Form] = {".csv": _CSV(), ".jsonl": _JSONLines()}


class _FileTrace(Trace):
  """A text file."""

  def __init__(self, path: pathlib.Path) -> None:
    self._path = path
    self._form = _FORMS[path.suffix]
    self._file: TextIO | None = None
    self._last = -1

  def start(self, solver: Solver) -> Row | None:
    """Keeps what an existing file says of the iterations that the solver has done.

    Raises:
      FileFormatError: there is a file at that path which is no trace.
      CheckpointMismatchError: it is of another game, another solver or one made with other arguments.
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
        header = old.header | {
          "format": _FORMAT,
          "resumed": [*old.header.get("resumed", []), resumed],
        }
    files.make_folder(self._path.parent)
    with files.replacing(self._path) as file:
      file.write("".join([self._form.header(header), *map(self._form.row, rows)]).encode())
    self._file = open(self._path, "a", newline="\n")  # noqa: SIM115
    self._last = rows[-1].iteration if rows else -1
    return rows[-1] if rows else None

  def write(self, row: Row) -> None:
    """Takes a row, and hands it to the operating system at once."""
    # A run that goes on where there is nothing left to do evaluates what has been evaluated.
    if self._file is not None and row.iteration > self._last:
      self._file.write(self._form.row(row))
      self._file.flush()

  def close(self) -> None:
    """Closes the file."""
    if self._file is not None:
      self._file.close()


class _TensorBoardTrace(Trace):
  """Event files of TensorBoard: the header as text, each column but the iteration as a scalar."""

  def __init__(self, folder: pathlib.Path) -> None:
    if importlib.util.find_spec("tensorboard") is None:
      raise errors.ArgumentError(
        f"{folder} asks for TensorBoard, which is not installed: pip install tensorboard."
      )
    self._folder = folder
    self._writer: Any = None
    self._protos: Any = None

  def start(self, solver: Solver) -> Row | None:
    """Begins a new event file, which tells TensorBoard to forget what older ones say of later iterations."""
    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, types_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    self._protos = event_pb2, summary_pb2
    self._writer = EventFileWriter(str(self._folder))
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    self._writer.add_event(
      event_pb2.Event(wall_time=time.time(), step=solver.iteration + 1, session_log=start)
    )
    text = f"```\n{json.dumps(_header(solver), indent=2)}\n```"
    metadata = summary_pb2.SummaryMetadata(
      plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text")
    )
    tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, string_val=[text.encode()])
    value = summary_pb2.Summary.Value(tag="run", metadata=metadata, tensor=tensor)
    self._add(solver.iteration, [value])
    return None

  def write(self, row: Row) -> None:
    """Takes a row, and hands it to the operating system at once."""
    if self._writer is not None:
      _, summary = self._protos
      values = dataclasses.asdict(row)
      del values["iteration"]
      self._add(
        row.iteration,
        [
          summary.Summary.Value(tag=tag, simple_value=value)
          for tag, value in values.items()
          if value is not None
        ],
      )

  def _add(self, step: int, values: list[Any]) -> None:
    event, summary = self._protos
    self._writer.add_event(
      event.Event(wall_time=time.time(), step=step, summary=summary.Summary(value=values))
    )
    self._writer.flush()

  def close(self) -> None:
    """Closes the file."""
    if self._writer is not None:
      self._writer.close()
