"""A folder with the last few checkpoints of a run."""

import dataclasses
import os
import pathlib
import warnings

from spiel_cfr import errors, files
from spiel_cfr.arguments import positive_integer
from spiel_cfr.runs.schedule import Every, NextDue
from spiel_cfr.solvers.interface import IterativeSolver

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

  def __post_init__(self) -> None:
    """Checks the numbers.

    Raises:
      ArgumentError: `keep` or `every` is a number, but not a positive integer.
    """
    positive_integer(self.keep, "keep")
    if not callable(self.every):
      Every(self.every)

  @property
  def schedule(self) -> NextDue:
    """When checkpoints are due."""
    return self.every if callable(self.every) else Every(self.every)

  def paths(self) -> list[pathlib.Path]:
    """Returns the files there are, newest first."""
    return list(self._iterations())

  def _iterations(self) -> dict[pathlib.Path, int]:
    """Returns the iteration of each file, newest first."""
    numbers = {}
    for path in pathlib.Path(self.folder).glob(f"{_PREFIX}*{_SUFFIX}"):
      number = path.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
      if number.isdecimal():
        numbers[path] = int(number)
    return dict(sorted(numbers.items(), key=lambda item: item[1], reverse=True))

  def check(self, solver: IterativeSolver) -> None:
    """Makes sure that the folder is free for the solver: a run does so before it begins.

    Raises:
      CheckpointMismatchError: there are checkpoints of later iterations, which this run would come to replace.
    """
    for path, iteration in self._iterations().items():
      if iteration > solver.iteration:
        raise errors.CheckpointMismatchError(
          f"{path} is of a later iteration than the solver's, which is {solver.iteration:,}. Resume from "
          "it, or choose another folder."
        )

  def save(self, solver: IterativeSolver) -> pathlib.Path:
    """Adds a checkpoint, and removes those beyond the number to keep.

    Raises:
      ArgumentError: an argument of the solver's constructor can't be kept in a file.
      OSError: the file can't be written; all older ones are still there.
    """
    folder = pathlib.Path(self.folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_PREFIX}{solver.iteration:012}{_SUFFIX}"
    solver.save(path)
    # What a process that was killed while it wrote has left behind.
    leftovers = folder.glob(f"{_PREFIX}*{files.TEMPORARY}")
    for old in [*self.paths()[self.keep :], *leftovers]:
      old.unlink(missing_ok=True)
    return path

  def resume(self, solver: IterativeSolver) -> pathlib.Path | None:
    """Brings a solver to the newest checkpoint, if there is any.

    A damaged file is renamed, and passed over with a warning for the one before it.

    Returns:
      The file that was read, or None.

    Raises:
      CheckpointMismatchError: the checkpoints are of another game, another solver or one made with other arguments.
      FileFormatError: a file is no checkpoint or has a newer format, or all are damaged.
    """
    damage = None
    for path in self.paths():
      try:
        solver.restore(path)
      except errors.DamagedFileError as error:
        warnings.warn(f"Passed over a checkpoint: {error}", stacklevel=2)
        path.rename(path.with_name(f"{path.name}.damaged"))
        damage = error
      else:
        return path
    if damage is not None:
      raise damage
    return None
