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
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TextIO

from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr._util.environment import machine, versions
from spiel_cfr.cfr.solver import Solver

_KIND = "trace of spiel_cfr"
_FORMAT = 3
_CSV, _JSON_LINES = ".csv", ".jsonl"


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
    more: what else the solver has to say, see `Solver.trace_columns`.
  """

  iteration: int
  solver_seconds: float
  evaluation_seconds: float
  nodes_touched: int
  nash_conv: float
  exploitability: float | None
  more: Mapping[str, float] = dataclasses.field(default_factory=dict)

  def columns(self) -> dict[str, Any]:
    """Returns all values by their names in files."""
    return {name: getattr(self, name) for name in _NAMES} | dict(self.more)


# Of the columns that every trace has.
_NAMES = tuple(field.name for field in dataclasses.fields(Row) if field.name != "more")


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
  if path.suffix in (_CSV, _JSON_LINES):
    return _FileTrace(path)
  if path.suffix:
    raise errors.ArgumentError(
      f"{path} must end in .csv or .jsonl, or be a folder, without a suffix, for TensorBoard."
    )
  return _TensorBoardTrace(path)


def read_trace(path: str | os.PathLike[str]) -> TraceContents:
  """Reads a CSV or JSON lines trace, without the last line if that is incomplete.

  Raises:
    FileFormatError: the file is no trace, has another format, or is damaged.
    OSError: the file can't be read.
  """
  path = pathlib.Path(path)
  if path.suffix not in (_CSV, _JSON_LINES):
    raise errors.FileFormatError(f"{path} does not end in .csv or .jsonl.")
  rows: list[Row] = []
  try:
    lines = [line.decode() for line in path.read_bytes().split(b"\n")[:-1]]
    header = dict(json.loads(lines[0].removeprefix("# ")))
    kind, version = header["kind"], header["format"]
    if not isinstance(header.get("resumed", []), list):
      raise ValueError("its header does not list when it was resumed")
    if (kind, version) == (_KIND, _FORMAT):
      for values in _parsed(path.suffix, lines[1:]):
        rows.append(_to_row(values))
        if len(rows) > 1 and rows[-2].iteration >= rows[-1].iteration:
          raise ValueError(f"iteration {rows[-1].iteration} comes after {rows[-2].iteration}")
  except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
    raise errors.FileFormatError(
      f"{path} is not a {_KIND}, or is damaged after {len(rows)} rows: {error}."
    ) from error
  if kind != _KIND:
    raise errors.FileFormatError(f"{path} is not a {_KIND}.")
  if version != _FORMAT:
    raise errors.FileFormatError(
      f"{path} has format {version}; this version of spiel_cfr reads format {_FORMAT}."
    )
  return TraceContents(header, rows)


def _parsed(suffix: str, lines: list[str]) -> Iterable[dict[str, Any]]:
  """Yields the values in each line after the header."""
  if suffix == _JSON_LINES:
    yield from (dict(json.loads(line)) for line in lines)
    return
  # What is cut off may be all but the header.
  names = lines[0].split(",") if lines else []
  for line in lines[1:]:
    cells = [json.loads(cell) if cell else None for cell in line.split(",")]
    yield dict(zip(names, cells, strict=True))


def _to_row(values: dict[str, Any]) -> Row:
  for name, value in values.items():
    if value is None and name == "exploitability":
      continue
    if type(value) not in (int, float) or not math.isfinite(value):
      raise ValueError(f"{name} is {value!r}, no finite number")
    if name in ("iteration", "nodes_touched") and (type(value) is not int or value < 0):
      raise ValueError(f"{name} is {value!r}, no count")
    if name in ("solver_seconds", "evaluation_seconds") and value < 0:
      raise ValueError("a time is negative")
  return Row(**{name: values.pop(name) for name in _NAMES}, more=values)


def _text(suffix: str, header: Mapping[str, Any], names: Iterable[str], rows: Iterable[Row]) -> str:
  """Returns a whole file: in CSV the header is a comment, and the names of the columns follow."""
  beginning = json.dumps(header) + "\n"
  if suffix == _CSV:
    beginning = f"# {beginning}{','.join(names)}\n"
  return beginning + "".join(_line(suffix, row) for row in rows)


def _line(suffix: str, row: Row) -> str:
  """Returns a row as it is in a file: None is an empty cell in CSV."""
  values = row.columns()
  if suffix == _JSON_LINES:
    return json.dumps(values) + "\n"
  cells = ("" if value is None else json.dumps(value) for value in values.values())
  return ",".join(cells) + "\n"


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


class _FileTrace(Trace):
  """A text file."""

  def __init__(self, path: pathlib.Path) -> None:
    self._path = path
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
        header = old.header | {"resumed": [*old.header.get("resumed", []), resumed]}
    files.make_folder(self._path.parent)
    with files.replacing(self._path) as file:
      text = _text(self._path.suffix, header, [*_NAMES, *solver.trace_columns()], rows)
      file.write(text.encode())
    self._file = open(self._path, "a", newline="\n")  # noqa: SIM115
    self._last = rows[-1].iteration if rows else -1
    return rows[-1] if rows else None

  def write(self, row: Row) -> None:
    """Takes a row, and hands it to the operating system at once."""
    # A run that goes on where there is nothing left to do evaluates what has been evaluated.
    if self._file is not None and row.iteration > self._last:
      self._file.write(_line(self._path.suffix, row))
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

  def start(self, solver: Solver) -> Row | None:
    """Begins a new event file, which tells TensorBoard to forget what older ones say of later iterations."""
    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, types_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    self._event, self._summary = event_pb2.Event, summary_pb2.Summary
    self._writer = EventFileWriter(str(self._folder))
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    self._add(int(solver.iteration) + 1, session_log=start)
    text = f"```\n{json.dumps(_header(solver), indent=2)}\n```"
    metadata = summary_pb2.SummaryMetadata(
      plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text")
    )
    tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, string_val=[text.encode()])
    header = self._summary.Value(tag="run", metadata=metadata, tensor=tensor)
    self._add(int(solver.iteration), summary=self._summary(value=[header]))
    return None

  def write(self, row: Row) -> None:
    """Takes a row, and hands it to the operating system at once."""
    values = [
      self._summary.Value(tag=tag, simple_value=value)
      for tag, value in row.columns().items()
      if tag != "iteration" and value is not None
    ]
    self._add(row.iteration, summary=self._summary(value=values))

  def _add(self, step: int, **content: Any) -> None:
    self._writer.add_event(self._event(wall_time=time.time(), step=step, **content))
    self._writer.flush()

  def close(self) -> None:
    """Closes the file."""
    if self._writer is not None:
      self._writer.close()
