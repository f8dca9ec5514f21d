"""A compiled game in a file that the processes of a machine map into their memory, so that they hold it once."""

import dataclasses
import functools
import hashlib
import mmap
import os
import pathlib
import pickle

from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr.games.compiled.compiled_game import CompiledGame

# Arrays begin where a page does not matter and a cache line does.
_ALIGNMENT = 64


@dataclasses.dataclass(frozen=True)
class MappedGame:
  """Where a compiled game is.

  The file holds what `pickle` writes, its arrays apart. Who unpickles executes what the file says, so what is read must
  be what was written: this object is handed on by another way than the file, and knows its checksum.

  Attributes:
    path: the file.
    sha256: hexadecimal, of all of it.
    parts: the first byte and the length of each piece, the pickle first, then the arrays.
  """

  path: str
  sha256: str
  parts: tuple[tuple[int, int], ...]

  @classmethod
  def write(cls, game: CompiledGame, path: pathlib.Path) -> "MappedGame":
    """Writes a game.

    Raises:
      OSError: the file can't be written.
    """
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(game, 5, buffer_callback=buffers.append)
    files.make_folder(path.parent)
    parts: list[tuple[int, int]] = []
    digest = hashlib.sha256()
    with files.replacing(path) as file:
      for piece in (memoryview(head), *(buffer.raw() for buffer in buffers)):
        for data in (memoryview(bytes(-file.tell() % _ALIGNMENT)), piece):
          file.write(data)
          digest.update(data)
        parts.append((file.tell() - len(piece), len(piece)))
    return cls(os.path.abspath(path), digest.hexdigest(), tuple(parts))

  def load(self) -> CompiledGame:
    """Returns the game; a process that asks again gets the same one.

    Raises:
      DamagedFileError: the file is not what was written.
      OSError: the file can't be read.
    """
    return _load(self)


@functools.lru_cache(maxsize=1)
def _load(shared: MappedGame) -> CompiledGame:
  with open(shared.path, "rb") as file:
    # Private: nobody writes to the arrays of a game, and who did would write to a copy.
    content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
  if hashlib.sha256(content).hexdigest() != shared.sha256:
    raise errors.DamagedFileError(
      f"{shared.path} is not what was written there. Start the program again."
    )
  head, *arrays = (content[first : first + length] for first, length in shared.parts)
  game: CompiledGame = pickle.loads(head, buffers=arrays)
  return game
