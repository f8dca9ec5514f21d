"""What a sweep has found: a row per cell."""

import csv
import dataclasses
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.runs.checkpoint import Checkpoints
from spiel_cfr.runs.sweep_cells import CHECKPOINTS, RESULTS, TRACE
from spiel_cfr.runs.trace import TraceContents, read_trace

_FOLDER = "folder"


@dataclasses.dataclass(frozen=True, repr=False)
class SweepTable:
  """The results of `sweep`.

      table = sweep({"game": ["kuhn_poker"], "solver": ["cfr", "cfr+"]}, folder="results", iterations=1000)
      table.array["nash_conv"]
      table.draw("results/kuhn.png")

  Attributes:
    columns: the names of the columns: what was varied, what `Row` has of the last evaluation, the `reason` why the run
      stopped ("error" if it failed), the `error`, and the `folder` of the run.
    rows: a mapping per cell from columns to values, in the order of the grid.
  """

  columns: tuple[str, ...]
  rows: Sequence[Mapping[str, Any]]

  @property
  def failed(self) -> Sequence[Mapping[str, Any]]:
    """The rows of the cells that have no result."""
    return [row for row in self.rows if row["error"]]

  @property
  def array(self) -> npt.NDArray[Any]:
    """The table as a structured NumPy array; what is missing is NaN, or empty text."""
    columns = {name: _column([row.get(name) for row in self.rows]) for name in self.columns}
    result = np.empty(len(self.rows), [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
      result[name] = column
    return result

  def to_pandas(self) -> Any:
    """Returns the table as a pandas data frame.

    Raises:
      MissingPackageError: pandas is not installed.
    """
    try:
      import pandas as pd
    except ImportError as error:
      raise errors.MissingPackageError("Data frames need pandas: pip install pandas.") from error
    return pd.DataFrame([dict(row) for row in self.rows], columns=list(self.columns))

  def to_csv(self, path: str | os.PathLike[str]) -> None:
    """Writes the table as CSV, whole or not at all.

    Raises:
      OSError: the file can't be written.
    """
    path = pathlib.Path(path)
    files.make_folder(path.parent)
    with files.replacing(path) as binary:
      lines: list[str] = []
      writer = csv.DictWriter(_Lines(lines), self.columns, lineterminator="\n")
      writer.writeheader()
      writer.writerows(self.rows)
      binary.write("".join(lines).encode())

  def trace(self, row: Mapping[str, Any]) -> TraceContents:
    """Returns all evaluations of a row's run.

    Raises:
      FileFormatError: the trace is damaged.
      OSError: there is none.
    """
    return read_trace(pathlib.Path(row[_FOLDER]) / TRACE)

  def solver(self, row: Mapping[str, Any], game: Any) -> Solver:
    """Returns the solver of a row as it was when its run stopped.

    Args:
      row: one of `rows`.
      game: the row's game, compiled or as `compile_game` takes it.

    Raises:
      ArgumentError: the row's run has left no checkpoint.
      CheckpointMismatchError: it is of another game.
      FileFormatError: the checkpoint is damaged.
    """
    paths = (
      Checkpoints(pathlib.Path(row[_FOLDER]) / CHECKPOINTS, every=1).paths() if row[_FOLDER] else []
    )
    if not paths:
      raise errors.ArgumentError(f"The run has left no checkpoint in {row[_FOLDER]!r}.")
    return Solver.load(paths[0], game)

  def draw(self, path: str | os.PathLike[str], x: str = "iteration") -> None:
    """Draws exploitability, or NashConv where that is not defined, of all runs: a panel a game, a curve a run.

    Args:
      path: where the picture goes; its suffix says which format.
      x: what the horizontal axis shows: "iteration", "solver_seconds" or "nodes_touched".

    Raises:
      ArgumentError: `x` is none of these, or no run has a trace.
      MissingPackageError: matplotlib is not installed.
      OSError: the picture can't be written.
    """
    draw(self, path, x)

  def __repr__(self) -> str:
    """Returns one line."""
    return f"<SweepTable: {len(self.rows)} runs, {len(self.failed)} without a result>"


class _Lines:
  """What the csv module writes to."""

  def __init__(self, lines: list[str]) -> None:
    self.write = lines.append


def _column(values: Sequence[Any]) -> npt.NDArray[Any]:
  """Returns values as an array of numbers if they are, of text otherwise."""
  kinds = {type(value) for value in values if value is not None}
  if kinds <= {int} and None not in values:
    return np.array(values, np.int64)
  if kinds <= {int, float}:
    return np.array([np.nan if value is None else value for value in values], np.float64)
  return np.array(["" if value is None else str(value) for value in values])


_AXES = {
  "iteration": "iterations",
  "solver_seconds": "seconds in the solver",
  "nodes_touched": "nodes touched",
}


def draw(table: SweepTable, path: str | os.PathLike[str], x: str) -> None:
  """Does what `SweepTable.draw` says."""
  if x not in _AXES:
    raise errors.ArgumentError(f"x must be one of {', '.join(map(repr, _AXES))}, not {x!r}.")
  try:
    import matplotlib.figure as matplotlib_figure
  except ImportError as error:
    raise errors.MissingPackageError(
      "Pictures need matplotlib: pip install 'spiel_cfr[plot]'."
    ) from error
  varied = [
    name
    for name in table.columns
    if name not in (*RESULTS, _FOLDER, "game")
    and len({str(row.get(name)) for row in table.rows}) > 1
  ]
  games: dict[str, list[Mapping[str, Any]]] = {}
  for row in table.rows:
    if row["iteration"]:
      games.setdefault(str(row["game"]), []).append(row)
  if not games:
    raise errors.ArgumentError("No run has been evaluated, so that there is nothing to draw.")
  across = min(3, len(games))
  down = -(-len(games) // across)
  figure = matplotlib_figure.Figure(
    figsize=(1 + 5 * across, 0.5 + 3.9 * down), layout="constrained"
  )
  panels = figure.subplots(down, across, squeeze=False).ravel()
  for panel, (game, rows) in zip(panels, games.items(), strict=False):
    for index, row in enumerate(rows):
      points = table.trace(row).rows
      defined = points[0].exploitability is not None
      label = ", ".join(
        str(row[name]) if name == "solver" else f"{name} {row[name]}"
        for name in varied
        if row.get(name) is not None
      )
      panel.plot(
        [getattr(point, x) for point in points],
        [point.exploitability if defined else point.nash_conv for point in points],
        label=label or str(row["solver"]),
        marker=".",
        color=f"C{index % 10}",
        linestyle=("-", "--", ":", "-.")[index // 10 % 4],
      )
    panel.set(xscale="log", yscale="log", xlabel=_AXES[x], title=game.removesuffix("()"))
    panel.set_ylabel("exploitability" if defined else "NashConv")
    panel.grid(which="major", color="0.9")
    panel.legend(fontsize="small")
  for panel in panels[len(games) :]:
    panel.remove()
  path = pathlib.Path(path)
  files.make_folder(path.parent)
  figure.savefig(path, dpi=150)
