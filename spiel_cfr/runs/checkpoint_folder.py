"""Checkpoints of a run: a folder with the newest checkpoints, and the schedule on which the run saves them.

A checkpoint is a file with the whole state of a solver, from which a run can be resumed.
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import warnings

from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr._util.arguments import path as checked_path
from spiel_cfr._util.arguments import positive_integer
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.cfr import solver_files
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.runs.run_schedules import Every, RunSchedule

_NAME = re.compile(r"iteration-\d+\.npz")


@dataclasses.dataclass(frozen=True)
class Checkpoints:
  """Folder and schedule of a run's checkpoints.

      checkpoints = Checkpoints("results/leduc", every=10_000)
      checkpoints.resume(solver)
      run(solver, 1_000_000, checkpoints=checkpoints)

  Attributes:
    folder: path. The folder. Different runs need different folders.
    every: int, the number of iterations between checkpoints; or a schedule, such as `Powers(1.5)`. A run also saves a
      checkpoint when it stops.
    keep: int. The number of checkpoints to keep. Older checkpoints are removed.

  Raises:
    ArgumentError: `folder` is not a path, `keep` is not a positive integer, or `every` is neither a positive integer
      nor a schedule.
  """

  folder: str | os.PathLike[str]
  every: int | RunSchedule
  keep: int = 3

  def __post_init__(self) -> None:
    checked_path(self.folder, "folder")
    positive_integer(self.keep, "keep")
    if not callable(self.every):
      Every(self.every)

  @property
  def schedule(self) -> RunSchedule:
    """The schedule of the checkpoints: `every`, or `Every(every)` if that is a number."""
    return self.every if callable(self.every) else Every(self.every)

  def paths(self) -> list[pathlib.Path]:
    """Returns the checkpoints in the folder, newest first."""
    paths = pathlib.Path(self.folder).glob("iteration-*.npz")
    return sorted((path for path in paths if _NAME.fullmatch(path.name)), key=_iteration)[::-1]

  @typed
  def check(self, solver: Solver) -> None:
    """Checks that a solver can be saved to the folder. `run` calls it before the first iteration.

    Raises:
      ArgumentError: an argument of the solver's constructor can't be written as JSON.
      UnsupportedGameError: the solver has no state that can be saved.
      CheckpointMismatchError: the folder has checkpoints of later iterations, or of another solver, which the run would
        replace.
    """
    solver.description()
    solver.state_dict()
    paths = self.paths()
    if paths and _iteration(paths[0]) > solver.iteration:
      raise errors.CheckpointMismatchError(
        f"{paths[0]} was saved at a later iteration than the solver's iteration {solver.iteration:,}. This run would "
        "replace it. Call resume(solver) to continue from it, or choose another folder."
      )
    for path in paths:
      # `resume` reports damaged files.
      with contextlib.suppress(errors.FileFormatError):
        solver_files.read_state(solver, path)
        return

  @typed
  def save(self, solver: Solver) -> pathlib.Path:
    """Saves a checkpoint, and removes old checkpoints, so that `keep` remain. Only one run may use the folder.

    Raises:
      ArgumentError: an argument of the solver's constructor can't be written as JSON.
      OSError: the file can't be written. In this case no older file is removed.
    """
    folder = pathlib.Path(self.folder)
    path = folder / f"iteration-{solver.iteration:012}.npz"
    files.make_folder(folder)
    solver.save(path)
    # A process that was killed during writing leaves a temporary file.
    leftovers = folder.glob(f"iteration-*{files.TEMPORARY}")
    for old_path in [*self.paths()[self.keep :], *leftovers]:
      if old_path != path:
        old_path.unlink(missing_ok=True)
    return path

  @typed
  def resume(self, solver: Solver) -> pathlib.Path | None:
    """Restores a solver from the newest checkpoint, if there is one.

    A damaged file is skipped with a warning, and an older file is tried. When one is restored, the damaged files are
    renamed.

    Returns:
      The restored file; None if the folder has no checkpoints.

    Raises:
      CheckpointMismatchError: the checkpoint belongs to another game, another solver or other arguments.
      FileFormatError: a file is not a checkpoint or has a newer format, or all files are damaged.
    """
    damaged: dict[pathlib.Path, errors.DamagedFileError] = {}
    for path in self.paths():
      try:
        solver.restore(path)
      except errors.DamagedFileError as error:
        warnings.warn(f"Skipped a checkpoint: {error}", stacklevel=2)
        damaged[path] = error
      else:
        for skipped in damaged:
          skipped.rename(skipped.with_name(f"{skipped.name}.damaged"))
        return path
    if damaged:
      raise next(iter(damaged.values()))
    return None


def _iteration(path: pathlib.Path) -> int:
  """Returns the iteration of a checkpoint, which its name contains."""
  return int(path.stem.removeprefix("iteration-"))
