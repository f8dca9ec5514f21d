"""A folder with the last few checkpoints of a run."""

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
from spiel_cfr.cfr import solver_files
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.runs.run_schedules import Every, NextDue

_NAME = re.compile(r"iteration-\d+\.npz")


@dataclasses.dataclass(frozen=True)
class Checkpoints:
  """The folder and the schedule of a run's checkpoints.

      checkpoints = Checkpoints("results/leduc", every=10_000)
      checkpoints.resume(solver)
      run(solver, 1_000_000, checkpoints=checkpoints)

  Attributes:
    folder: where; one run a folder.
    every: the number of iterations from one to the next, or a schedule. Each run also leaves one when it stops.
    keep: how many to keep, the newest ones.

  Raises:
    ArgumentError: `folder` is no path; or `keep` or `every` is a number, but not a positive integer.
  """

  folder: str | os.PathLike[str]
  every: int | NextDue
  keep: int = 3

  def __post_init__(self) -> None:
    checked_path(self.folder, "folder")
    positive_integer(self.keep, "keep")
    if not callable(self.every):
      Every(self.every)

  @property
  def schedule(self) -> NextDue:
    """The schedule of checkpoints."""
    return self.every if callable(self.every) else Every(self.every)

  def paths(self) -> list[pathlib.Path]:
    """Returns the files there are, newest first."""
    found = pathlib.Path(self.folder).glob("iteration-*.npz")
    return sorted((path for path in found if _NAME.fullmatch(path.name)), key=_iteration)[::-1]

  def check(self, solver: Solver) -> None:
    """Makes sure that the solver can be saved, and that the folder is free for it: a run does so before it begins.

    Raises:
      ArgumentError: an argument of the solver's constructor can't be written as JSON.
      UnsupportedGameError: the solver can't say what it consists of.
      CheckpointMismatchError: there are checkpoints of later iterations, or of another solver, which this run would
        come to replace.
    """
    solver.description()
    solver.state_dict()
    paths = self.paths()
    if paths and _iteration(paths[0]) > solver.iteration:
      raise errors.CheckpointMismatchError(
        f"{paths[0]} is of a later iteration than the solver's, which is {solver.iteration:,}. Resume from it, or "
        "choose another folder."
      )
    for path in paths:
      # What is damaged is for `resume` to say.
      with contextlib.suppress(errors.FileFormatError):
        solver_files.read_state(solver, path)
        return

  def save(self, solver: Solver) -> pathlib.Path:
    """Adds a checkpoint, and removes those beyond the number to keep. While a run uses the folder, only it may.

    Raises:
      ArgumentError: an argument of the solver's constructor can't be kept in a file.
      OSError: the file can't be written; all older ones are still there.
    """
    folder = pathlib.Path(self.folder)
    path = folder / f"iteration-{solver.iteration:012}.npz"
    files.make_folder(folder)
    solver.save(path)
    # What a process that was killed while it wrote has left behind.
    leftovers = folder.glob(f"iteration-*{files.TEMPORARY}")
    for old in [*self.paths()[self.keep :], *leftovers]:
      if old != path:
        old.unlink(missing_ok=True)
    return path

  def resume(self, solver: Solver) -> pathlib.Path | None:
    """Brings a solver to the newest checkpoint, if there is any.

    Damaged files are passed over with a warning, and renamed once an older one is found whole.

    Returns:
      The file that was read, or None if there are no files.

    Raises:
      CheckpointMismatchError: the checkpoints are of another game, another solver or one made with other arguments.
      FileFormatError: a file is no checkpoint or has a newer format, or all are damaged.
    """
    damaged: dict[pathlib.Path, errors.DamagedFileError] = {}
    for path in self.paths():
      try:
        solver.restore(path)
      except errors.DamagedFileError as error:
        warnings.warn(f"Passed over a checkpoint: {error}", stacklevel=2)
        damaged[path] = error
      else:
        for bad in damaged:
          bad.rename(bad.with_name(f"{bad.name}.damaged"))
        return path
    if damaged:
      raise next(iter(damaged.values()))
    return None


def _iteration(path: pathlib.Path) -> int:
  return int(path.stem.removeprefix("iteration-"))
