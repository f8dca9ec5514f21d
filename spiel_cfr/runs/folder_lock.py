"""Lock on a folder, so that only one run writes to it at a time.

The operating system releases the lock when the process ends, even if it is killed. The lock file remains, and contains
the process that held the lock last.
"""

import contextlib
import fcntl
import os
import pathlib
import socket
from collections.abc import Iterator

from spiel_cfr import errors
from spiel_cfr._util import files


@contextlib.contextmanager
def held_lock(folder: pathlib.Path) -> Iterator[None]:
  """Holds the lock on a folder during the context. Makes the folder if it is missing.

  Raises:
    FolderInUseError: another run holds the lock.
    OSError: the folder can't be made.
  """
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
