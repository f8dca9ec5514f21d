"""Files with a right checksum and wrong contents: nothing in them reaches a kernel or takes much memory."""

import io
import json
import pathlib
import tracemalloc
import zipfile
from typing import Any

import mutations
import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr.games.compiled import enumerated_game, saved_game


@pytest.mark.parametrize("kind", mutations.KINDS)
def test_some(kind: str) -> None:
  wrong, counts = mutations.failures(kind, 30)
  assert not wrong
  # What is tried is neither all nonsense nor all harmless.
  assert min(counts["accepted"], counts["refused"]) > 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", mutations.KINDS)
def test_many(kind: str) -> None:
  wrong, _ = mutations.failures(kind, 10_000, first=30)
  assert not wrong


def _archive(path: pathlib.Path, members: dict[str, bytes], compression: int) -> None:
  """Writes an archive of these members with a right checksum."""
  stream = io.BytesIO()
  with zipfile.ZipFile(stream, "w", compression) as archive:
    for name, content in members.items():
      archive.writestr(name, content)
  mutations.forge(path, stream.getvalue())


def _array(shape: tuple[int, ...], data: bytes) -> bytes:
  stream = io.BytesIO()
  header = {"descr": "<f8", "fortran_order": False, "shape": shape}
  np.lib.format.write_array_header_1_0(stream, header)
  return stream.getvalue() + data


@pytest.mark.parametrize("bomb", ["compressed", "shape", "negative", "twice"])
def test_a_file_takes_no_more_memory_than_it_is_long(bomb: str, tmp_path: pathlib.Path) -> None:
  path = tmp_path / "bomb.npz"
  text = json.dumps({"kind": enumerated_game.KIND, "format": enumerated_game.FORMAT}).encode()
  members = {"header.npy": _array((2,), bytes(16))}
  compression = zipfile.ZIP_STORED
  if bomb == "compressed":
    compression = zipfile.ZIP_DEFLATED
    members["zeros.npy"] = _array((1 << 24,), bytes(1 << 27))
  elif bomb == "shape":
    members["zeros.npy"] = _array((1 << 40,), bytes(8))
  elif bomb == "negative":
    members["zeros.npy"] = _array((-1, -1), bytes(8))
  else:
    members |= {"header": text}
  _archive(path, members, compression)
  tracemalloc.start()
  with pytest.raises(errors.FileFormatError):
    files.read(path, enumerated_game.KIND, enumerated_game.FORMAT)
  _, peak = tracemalloc.get_traced_memory()
  tracemalloc.stop()
  assert peak < 1 << 23


@pytest.mark.parametrize(
  "name", ["kuhn_poker", "leduc_poker", "kuhn_poker(players=4)", "matrix_pd"]
)
def test_whole_files_are_accepted(name: str, tmp_path: pathlib.Path) -> None:
  game = spiel_cfr.compile_game(name)
  game.save(tmp_path / "game.npz")
  assert spiel_cfr.load_compiled_game(tmp_path / "game.npz").digest == game.digest


@pytest.mark.parametrize(
  ("array", "value", "message"),
  [
    ("0.parents", 11, "discovered after"),
    ("1.position", 0, "in the layout"),
    ("0.num_actions", 3, "actions are those of infosets"),
    ("0.num_actions", -1, "have actions"),
    ("0.actions", 7, "actions are the game's"),
    ("0.actions", 0, "different actions"),
    ("0.infostate_lengths", 9, "end to end"),
    ("payoff.1.others", 1 << 31, "treeplexes"),
    ("payoff.0.values", np.nan, "finite"),
  ],
)
def test_messages_explain_errors(
  array: str, value: Any, message: str, tmp_path: pathlib.Path
) -> None:
  path = tmp_path / "game.npz"
  spiel_cfr.compile_game("kuhn_poker").save(path)
  header, arrays = files.read(path, enumerated_game.KIND, enumerated_game.FORMAT)
  arrays[array].flat[-1] = value
  files.write(path, header.pop("kind"), header.pop("format"), header, arrays)
  with pytest.raises(errors.FileFormatError, match=message):
    spiel_cfr.load_compiled_game(path)


def test_names_that_are_the_same_are_found() -> None:
  def check(*names: str) -> list[str]:
    text = np.frombuffer("".join(names).encode(), np.uint8).copy()
    return saved_game._infostates(text, np.array([len(name.encode()) for name in names], np.uint32))

  for names in (["a", "ab", "b", ""], ["\u00e9", "e", "\u00e9e"]):
    assert check(*names) == names
  with pytest.raises(ValueError, match="different names"):
    check("ab", "a", "ab")
