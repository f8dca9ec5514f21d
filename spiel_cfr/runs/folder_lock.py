"""Lock on a folder: only one run may write to it at a time.

The operating system releases the lock when the process ends, even if it is killed. The lock file remains, and names the
last holder.
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
  """Holds the lock on a folder, which is made if it is missing; raises FolderInUseError if another run holds it."""
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
