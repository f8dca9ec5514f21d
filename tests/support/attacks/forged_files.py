"""Files of ours that were changed, cut off, exchanged, or made to run code; none may be taken for what it is not."""

import functools
import hashlib
import io
import os
import pathlib
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import spiel_cfr
from attacks import by_type
from attacks.outcomes import Attack
from attacks.targets import kuhn, solver
from spiel_cfr import poker, runs

# What code in a file would leave behind.
_TRACK = pathlib.Path("ran")
_DIGEST_BYTES = 64
_PIECES = (b"", b"-1", b"1e400", b"NaN", b"Infinity", b"9" * 400, b'"', b"{", b"]", b"\0", b"\xff")


class _Code:
  """Unpickled, it leaves a track."""

  def __reduce__(self) -> tuple[Any, ...]:
    return open, (str(_TRACK), "w")


class Kind(NamedTuple):
  """A kind of file.

  Attributes:
    room: who writes and reads it.
    write: writes one to a path.
    read: reads one, and returns something that can be compared with `by_type.same`.
    is_sealed: whether it ends with its checksum, so that any change must be noticed.
    check: returns what is wrong with what was read of a changed file.
  """

  room: str
  write: Callable[[str], Any]
  read: Callable[[str], Any]
  is_sealed: bool = False
  check: Callable[[Any], str] = by_type.odd


def _write_trace(path: str) -> None:
  runs.run(solver(), 8, traces=[runs.TraceFile(path)], progress=False)


def _restored(name: str, path: str) -> list[Any]:
  restored = solver(name)
  restored.restore(path)
  state = [each for each in restored.state_dict().values() if isinstance(each, np.ndarray)]
  # It has to work, too.
  restored.run(1)
  return [*state, restored.nash_conv()]


def _policy(path: str) -> list[float]:
  return [spiel_cfr.nash_conv(kuhn(), spiel_cfr.load_policy(kuhn(), path))]


def _is_nash_conv(found: list[float]) -> str:
  return "" if -1e-9 <= found[0] <= 8.0 else f"NashConv of the policy is {found[0]}"


def _endgame() -> poker.Endgame:
  ranges = np.stack([poker.parse_range("AA,KK:0.5"), poker.parse_range("QQ,AKs")])
  return poker.Endgame("7s9h9cTc2d", 200, ranges, 300)


def _solver_kind(name: str) -> Kind:
  write = lambda path: solver(name).save(path)  # noqa: E731
  return Kind("cfr", write, functools.partial(_restored, name), True)


KINDS: dict[str, Kind] = {
  **{
    f"checkpoint of {name}": _solver_kind(name)
    for name in ("cfr+", "restarted", "efr", "cfr_pruned", "outcome_sampling", "stable_predictive")
  },
  "solver to be loaded": Kind(
    "cfr",
    lambda path: solver().save(path),
    lambda path: spiel_cfr.Solver.load(path, kuhn()).average_probabilities(),
    True,
  ),
  "compiled game": Kind(
    "games",
    lambda path: kuhn().save(path),
    lambda path: spiel_cfr.solve_lp(spiel_cfr.load_compiled_game(path)).value,
    True,
  ),
  "policy": Kind(
    "exchange",
    lambda path: spiel_cfr.save_policy(kuhn(), solver(), path),
    _policy,
    check=_is_nash_conv,
  ),
  "endgame": Kind(
    "poker",
    lambda path: _endgame().save(path),
    lambda path: spiel_cfr.load_endgame(path).reaches,
  ),
  "trace": Kind("runs", _write_trace, lambda path: runs.read_trace(path).rows),
}


@functools.cache
def _original(name: str) -> bytes:
  path = "original"
  KINDS[name].write(path)
  result = pathlib.Path(path).read_bytes()
  os.unlink(path)
  return result


def attacks(rng: np.random.Generator) -> Iterator[Attack]:
  """Yields every kind of file instead of every other one, pickles, then random changes of random kinds."""
  for name, kind in KINDS.items():
    yield Attack(kind.room, f"{name}, as it is", functools.partial(_whole, name))
    yield Attack(kind.room, f"{name}, a pickle", functools.partial(_read_code, name, False))
    yield Attack(kind.room, f"{name}, an archive", functools.partial(_read_code, name, True))
    for other in KINDS:
      # What loads a solver loads all.
      loads = "solver to be loaded" in (name, other) and kind.room == KINDS[other].room
      if name != other and not loads:
        yield Attack(kind.room, f"{name}, a {other}", functools.partial(_read_other, name, other))
  while True:
    for name, kind in KINDS.items():
      seed = int(rng.integers(2**32))
      yield Attack(
        kind.room, f"{name}, changed by {seed}", functools.partial(_read_changed, name, seed)
      )


def _whole(name: str) -> str:
  """Reads an unchanged file twice."""
  found = [_read(name, _original(name)) for _ in range(2)]
  return "" if by_type.same(*found) else "it is read in two ways"


def _read(name: str, content: bytes) -> Any:
  pathlib.Path("file").write_bytes(content)
  result = KINDS[name].read("file")
  if _TRACK.exists():
    raise AssertionError("code in the file ran")
  return result


def _read_code(name: str, in_archive: bool) -> str:
  content = pickle.dumps(_Code())
  if in_archive:
    file = io.BytesIO()
    np.savez(file, header=np.array([_Code()], object))
    content = file.getvalue()
  content = _sealed(content + bytes(_DIGEST_BYTES))
  return f"read as {_read(name, content)!r}"


def _read_other(name: str, other: str) -> str:
  return f"read as {_read(name, _original(other))!r}"


def _read_changed(name: str, seed: int) -> str:
  rng, original = np.random.default_rng(seed), _original(name)
  content = original
  while content == original:
    content = _changed(rng, original)
  kind = KINDS[name]
  forged = kind.is_sealed and rng.random() < 0.7
  result = _read(name, _sealed(content) if forged else content)
  if kind.is_sealed and not forged:
    return "a change was not noticed"
  return kind.check(result)


def _sealed(content: bytes) -> bytes:
  """Returns a file with the checksum that it should have."""
  body = content[:-_DIGEST_BYTES]
  return body + hashlib.sha256(body).hexdigest().encode()


def _changed(rng: np.random.Generator, original: bytes) -> bytes:
  """Returns a file with a few bits turned, pieces lost, doubled, or replaced."""
  content = bytearray(original)
  for _ in range(rng.integers(1, 4)):
    place = int(rng.integers(max(1, len(content))))
    what, length = rng.integers(4), int(rng.choice([1, 2, 8, 100]))
    if what == 0 and place < len(content):
      content[place] ^= 1 << int(rng.integers(8))
    elif what == 1:
      del content[place : place + length]
    elif what == 2:
      content[place:place] = content[place : place + length]
    else:
      content[place : place + length] = _PIECES[rng.integers(len(_PIECES))]
  return bytes(content[: rng.integers(len(content))] if rng.random() < 0.1 else content)
