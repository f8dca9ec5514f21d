"""Files of arrays with a checksum, written atomically.

A file is an `.npz` archive that `numpy.load` reads, without pickles. One of its arrays contains a JSON header. The file
ends with the archive's comment, the SHA-256 of all bytes before it. Equal content makes equal bytes.
"""

import contextlib
import errno
import fcntl
import glob
import hashlib
import json
import os
import pathlib
import secrets
import stat
import struct
import time
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._util import arguments

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

TEMPORARY = ".tmp"
# The longest time from the creation of a temporary file to its lock, in seconds.
_MOST_UNLOCKED_SECONDS = 1.0
_HEADER = "header"
_DIGEST_BYTES = 64
_BUFFER_BYTES = 1 << 20


def write(
  path: str | os.PathLike[str],
  kind: str,
  format_version: int,
  header: Mapping[str, Any],
  arrays: Mapping[str, npt.NDArray[Any]],
) -> None:
  """Writes a file atomically: a crash at any moment leaves the old file or the complete new one.

  Args:
    path: the path of the file.
    kind: words for the kind of file, which error messages use.
    format_version: the version of the format of this kind of file.
    header: name -> value that JSON can represent.
    arrays: name -> array of any type except objects.

  Raises:
    ArgumentError: `path` is not a path.
    OSError: the file can't be written.
  """
  text = json.dumps({"kind": kind, "format": format_version} | dict(header), sort_keys=True)
  members = {_HEADER: np.frombuffer(text.encode(), np.uint8)} | dict(arrays)
  with replacing(path) as file:
    np.savez(file, **members)
    # The archive ends with the length of its comment, which is 0. It is replaced by the length of the digest.
    file.seek(-2, os.SEEK_END)
    file.write(struct.pack("<H", _DIGEST_BYTES))
    file.write(_digest(file, file.tell()))


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
  """Opens a temporary file, and at the end of the context replaces the file at `path` by it.

  The new file is on the disk before it replaces the old one, and has the same permissions. Links are followed.
  Temporary files of writers that were killed are removed.

  Raises:
    ArgumentError: `path` is not a path.
    OSError: the file can't be written; `path` then stays as it was.
  """
  path = destination(path)
  _remove_leftovers(path)
  temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
  try:
    with open(temporary, "x+b") as file:
      # The lock tells other writers that this one is alive.
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
      if path.exists():
        os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
      yield file
      file.flush()
      os.fsync(file.fileno())
      os.replace(temporary, path)
  except BaseException as error:
    temporary.unlink(missing_ok=True)
    if isinstance(error, OSError) and error.filename == str(temporary):
      raise OSError(error.errno, error.strerror, str(path)) from error
    raise
  _sync_folder(path.parent)


def destination(path: str | os.PathLike[str]) -> pathlib.Path:
  """Returns the file that a path leads to once links are followed, whether it exists or not.

  Raises:
    ArgumentError: `path` is not a path.
    OSError: the path leads to a folder, a device or a pipe, or its links form a circle.
  """
  path = arguments.path(path, "path")
  result = pathlib.Path(os.path.realpath(path))
  problem = 0
  if not path.name or result.is_dir():
    problem = errno.EISDIR
  elif result.is_symlink():
    problem = errno.ELOOP
  if problem:
    raise OSError(problem, os.strerror(problem), str(path))
  if result.exists() and not result.is_file():
    raise OSError(
      errno.EINVAL, "Only a regular file can be replaced; this is not a regular file", str(path)
    )
  return result


def _remove_leftovers(path: pathlib.Path) -> None:
  """Removes temporary files of writers of `path` that have ended."""
  for leftover in path.parent.glob(f"{glob.escape(path.name)}.????????{TEMPORARY}"):
    with contextlib.suppress(OSError), open(leftover, "rb") as file:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
      # A living writer may not have locked a file that it has just made.
      if time.time() - os.fstat(file.fileno()).st_mtime > _MOST_UNLOCKED_SECONDS:
        leftover.unlink()


def make_folder(path: pathlib.Path) -> None:
  """Makes a folder and its missing parents, and waits until they are on the disk.

  Raises:
    OSError: the folder can't be made.
  """
  if not path.exists():
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    _sync_folder(path.parent)
  elif not path.is_dir():
    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def check_writable(path: str | os.PathLike[str]) -> None:
  """Makes the folder of a file, and checks that the file can be written, so that a long run does not fail at its end.

  Raises:
    ArgumentError: `path` is not a path.
    OSError: the file can't be written.
  """
  make_folder(arguments.path(path, "path").parent)
  path = destination(path)
  if not os.access(path if path.exists() else path.parent, os.W_OK):
    raise PermissionError(f"{path} can't be written.")


def _sync_folder(path: pathlib.Path) -> None:
  """Waits until the list of names in a folder is on the disk."""
  if hasattr(os, "O_DIRECTORY"):
    folder = os.open(path, os.O_DIRECTORY)
    try:
      os.fsync(folder)
    finally:
      os.close(folder)


def read(
  path: str | os.PathLike[str], kind: str, format_version: int
) -> tuple[dict[str, Any], Arrays]:
  """Returns the header and the arrays of a file.

  Reading executes nothing in the file, and takes no more memory than the size of the file.

  Raises:
    ArgumentError: `path` is not a path.
    DamagedFileError: a part of the file is missing or was changed.
    FileFormatError: the file is of another kind or version.
    OSError: the file can't be read.
  """
  with open(arguments.path(path, "path"), "rb") as file:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _DIGEST_BYTES))
    digest = file.read()
    if digest != _digest(file, size - _DIGEST_BYTES):
      raise errors.DamagedFileError(
        f"{path} is not a {kind}, or a part of it is missing or was changed: its checksum is wrong."
      )
    file.seek(0)
    try:
      arrays = _members(file, size)
      header = json.loads(arrays.pop(_HEADER).tobytes())
      kind_found, version_found = header["kind"], header["format"]
    # Another program may have made a file with a right checksum, on which zipfile and NumPy can raise any exception.
    except (Exception, MemoryError) as error:
      raise errors.FileFormatError(
        f"{path} is not a {kind}: {type(error).__name__}: {error}."
      ) from error
  if kind_found != kind:
    raise errors.FileFormatError(f"{path} is a {kind_found}, not a {kind}.")
  if version_found != format_version:
    raise errors.FileFormatError(
      f"{path} has format {version_found}; this version of spiel_cfr reads format {format_version}."
    )
  return header, arrays


def _members(file: BinaryIO, size: int) -> Arrays:
  """Returns the arrays of an archive of `size` bytes.

  Raises:
    ValueError: a member is compressed, is not an array of numbers, or is longer than its array or the archive.
  """
  arrays = {}
  with zipfile.ZipFile(file) as archive:
    entries = archive.infolist()
    # Without compression, no member is longer than the file.
    is_stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
    if not is_stored or sum(entry.file_size for entry in entries) > size:
      raise ValueError("it is not an archive that numpy.savez has written")
    for entry in entries:
      with archive.open(entry) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
        if array.dtype.kind not in "biuf" or member.read(1):
          raise ValueError(f"{entry.filename!r} is of {array.dtype}, or longer than its array")
      arrays[entry.filename.removesuffix(".npy")] = array
  return arrays


def _digest(file: BinaryIO, size: int) -> bytes:
  """Returns the hexadecimal SHA-256 of the first `size` bytes of a file, and moves the file position behind them."""
  digest = hashlib.sha256()
  file.seek(0)
  while size > 0:
    data = file.read(min(size, _BUFFER_BYTES))
    if not data:
      break
    digest.update(data)
    size -= len(data)
  return digest.hexdigest().encode()
