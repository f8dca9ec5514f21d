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
import math
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
_MEMBER = ".npy"
# The header before a member of an archive: a signature, and the lengths of the name and the extra field.
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_HEADER_READERS = {
  (1, 0): np.lib.format.read_array_header_1_0,
  (2, 0): np.lib.format.read_array_header_2_0,
}


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
    ValueError: a member is not an array, or is longer than the archive.
  """
  with zipfile.ZipFile(file) as archive:
    entries = archive.infolist()
  if sum(entry.file_size for entry in entries) > size:
    raise ValueError("its members are longer than itself")
  arrays = {}
  for entry in entries:
    # Without compression, no member is longer than the file.
    if entry.compress_type != zipfile.ZIP_STORED or not entry.filename.endswith(_MEMBER):
      raise ValueError(f"{entry.filename!r} is not an array that numpy.savez has written")
    arrays[entry.filename.removesuffix(_MEMBER)] = _array(file, entry)
  if len(arrays) != len(entries):
    raise ValueError("two members have the same name")
  return arrays


def _array(file: BinaryIO, entry: zipfile.ZipInfo) -> npt.NDArray[Any]:
  """Returns an array in NumPy's format, read directly from the file.

  Raises:
    ValueError: the shape does not fit the length of the data, or the format is another one.
  """
  file.seek(entry.header_offset)
  local = file.read(_LOCAL_HEADER.size)
  magic, name_length, extra_length = _LOCAL_HEADER.unpack(local)
  if magic != b"PK\x03\x04":
    raise ValueError(f"{entry.filename!r} is not where it should be")
  begin = file.seek(name_length + extra_length, os.SEEK_CUR)
  version = np.lib.format.read_magic(file)
  if version not in _HEADER_READERS:
    raise ValueError(f"an array has version {version} of NumPy's format")
  shape, fortran_order, dtype = _HEADER_READERS[version](file)
  if dtype.kind not in "biuf":
    raise ValueError(f"an array is of {dtype}")
  length, count = begin + entry.file_size - file.tell(), math.prod(shape)
  if any(number < 0 for number in shape) or count * dtype.itemsize != length:
    raise ValueError(f"an array of shape {shape} has {length} bytes of data")
  array: npt.NDArray[Any] = np.empty(count, dtype)
  readable: Any = file
  if readable.readinto(array.view(np.uint8)) != length:
    raise ValueError(f"{entry.filename!r} goes on behind the end of the file")
  return array.reshape(shape[::-1]).T if fortran_order else array.reshape(shape)


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
