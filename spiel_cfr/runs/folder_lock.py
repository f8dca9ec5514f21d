"""A lock on a folder, so that no two runs write into one.

The operating system holds the lock for the process, and releases it when the process ends, also when it is killed. The
file stays, and only names the last holder.
"""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator

from spiel_cfr import errors
from spiel_cfr._util import arguments, files


@contextlib.contextmanager
def locked(folder: str | os.PathLike[str]) -> Iterator[None]:
  """Holds the lock on a folder, which is made; raises FolderInUseError where another run holds it, of any process."""
  folder = arguments.path(folder, "folder")
  files.make_folder(folder)
  with open(folder / "lock", "a+") as file:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
      file.seek(0)
      raise errors.FolderInUseError(
        f"{folder} is in use by {file.read(200)}. Wait until it is done, or choose another folder."
      ) from error
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()
    yield
