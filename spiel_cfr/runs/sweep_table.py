"""What a sweep has found: a row per cell."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from spiel_cfr import errors
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.runs.checkpoint_folder import Checkpoints
from spiel_cfr.runs.sweep_cells import CHECKPOINTS, TRACE
from spiel_cfr.runs.trace import TraceContents, read_trace


@dataclasses.dataclass(frozen=True, repr=False)
class SweepTable:
  """The results of `sweep`, which are in `table.csv` in its folder too.

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

  def trace(self, row: Mapping[str, Any]) -> TraceContents:
    """Returns all evaluations of a row's run.

    Raises:
      FileFormatError: the trace is damaged.
      OSError: there is none.
    """
    return read_trace(pathlib.Path(row["folder"]) / TRACE)

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
    folder = row["folder"]
    paths = Checkpoints(pathlib.Path(folder, CHECKPOINTS), every=1).paths() if folder else []
    if not paths:
      raise errors.ArgumentError(f"The run has left no checkpoint in {folder!r}.")
    return Solver.load(paths[0], game)

  def __repr__(self) -> str:
    return f"<SweepTable: {len(self.rows)} runs, {len(self.failed)} without a result>"
