"""A folder with the last few checkpoints of a run."""

import contextlib
import dataclasses
import os
import pathlib
import warnings

from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr._util.arguments import positive_integer
from spiel_cfr.cfr import solver_files
from spiel_cfr.cfr.solver import Solver
from spiel_cfr.runs.folder_lock import FolderLock
from spiel_cfr.runs.run_schedules import Every, NextDue

_PREFIX, _SUFFIX = "iteration-", ".npz"


@dataclasses.dataclass(frozen=True)
class Checkpoints:
  """Where a run keeps checkpoints, and when.

      checkpoints = Checkpoints("results/leduc", every=10_000)
      checkpoints.resume(solver)
      run(solver, 1_000_000, checkpoints=checkpoints)

  Attributes:
    folder: where; one run a folder.
    every: the number of iterations from one to the next, or a schedule. Each run also leaves one when it stops.
    keep: how many to keep, the newest ones.
  """

  folder: str | os.PathLike[str]
  every: int | NextDue
  keep: int = 3
  _lock: FolderLock = dataclasses.field(init=False, repr=False, compare=False)

  def __post_init__(self) -> None:
    """Checks the numbers.

    Raises:
      ArgumentError: `keep` or `every` is a number, but not a positive integer.
    """
    positive_integer(self.keep, "keep")
    if not callable(self.every):
      Every(self.every)
    object.__setattr__(self, "_lock", FolderLock(self.folder))

  @property
  def schedule(self) -> NextDue:
    """When checkpoints are due."""
    return self.every if callable(self.every) else Every(self.every)

  def paths(self) -> list[pathlib.Path]:
    """Returns the files there are, newest first."""
    found = pathlib.Path(self.folder).glob(f"{_PREFIX}*{_SUFFIX}")
    return sorted((path for path in found if _number(path).isdecimal()), key=_iteration)[::-1]

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

  def locked(self) -> contextlib.AbstractContextManager[None]:
    """Returns a context in which nobody else's run may use the folder; a run is in one from its start to its end.

    Raises:
      FolderInUseError: somebody else does.
      OSError: the folder can't be written to.
    """
    return self._lock()

  def save(self, solver: Solver) -> pathlib.Path:
    """Adds a checkpoint, and removes those beyond the number to keep.

    Raises:
      ArgumentError: an argument of the solver's constructor can't be kept in a file.
      FolderInUseError: somebody else's run uses the folder.
      OSError: the file can't be written; all older ones are still there.
    """
    folder = pathlib.Path(self.folder)
    with self.locked():
      path = folder / f"{_PREFIX}{solver.iteration:012}{_SUFFIX}"
      solver.save(path)
      # What a process that was killed while it wrote has left behind.
      leftovers = folder.glob(f"{_PREFIX}*{files.TEMPORARY}")
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


def _number(path: pathlib.Path) -> str:
  """Returns what stands for the iteration in the name of a file."""
  return path.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)


def _iteration(path: pathlib.Path) -> int:
  return int(_number(path))
