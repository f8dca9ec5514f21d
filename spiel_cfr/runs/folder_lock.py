"""A lock on a folder, so that no two runs write into one.

The operating system holds the lock for the process and lets go of it when the process ends, however it does; so there
is no such thing as a lock that somebody who was killed has left behind. The file stays, and only says who held it last.
"""

import contextlib
import json
import os
import pathlib
import socket
from collections.abc import Iterator
from typing import IO, Any

from spiel_cfr import errors
from spiel_cfr._util import files

try:
  import fcntl
except ImportError:  # There is none on Windows.
  fcntl = None  # type: ignore[assignment]
  import msvcrt

LOCK = "lock"


class FolderLock:
  """A lock that its holder may take more than once.

  Attributes:
    folder: what is locked.
  """

  def __init__(self, folder: str | os.PathLike[str]) -> None:
    """Locks nothing yet."""
    self.folder = pathlib.Path(folder)
    self._depth = 0

  @contextlib.contextmanager
  def __call__(self) -> Iterator[None]:
    """Holds the lock; makes the folder if there is none.

    Raises:
      FolderInUseError: another run, of this process or of another one, holds it.
      OSError: the folder can't be written to.
    """
    with self._locked_file() if self._depth == 0 else contextlib.nullcontext():
      self._depth += 1
      try:
        yield
      finally:
        self._depth -= 1

  @contextlib.contextmanager
  def _locked_file(self) -> Iterator[None]:
    files.make_folder(self.folder)
    with open(self.folder / LOCK, "a+b") as file:
      if not _lock(file):
        raise errors.FolderInUseError(
          f"{self.folder} is in use by {_holder(file)}. Wait until it is done, or choose another folder."
        )
      file.truncate(0)
      file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
      file.flush()
      yield


def _lock(file: IO[bytes]) -> bool:
  """Locks a file unless somebody else has; returns whether it is locked now."""
  try:
    if fcntl is not None:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
      windows: Any = msvcrt
      # A byte far behind what is written: others must be able to read that.
      file.seek(1 << 30)
      windows.locking(file.fileno(), windows.LK_NBLCK, 1)
  except OSError:
    return False
  return True


def _holder(file: IO[bytes]) -> str:
  """Returns what the file says of who holds the lock."""
  file.seek(0)
  try:
    said = json.loads(file.read(1000))
    return f"process {int(said['pid'])} on {said['host']!s}"
  except (ValueError, KeyError, TypeError):
    return "another process"
