r"""Changes our files behind a right checksum, and checks that readers notice.

    python tests/support/mutations.py game 10000

Kinds: game, checkpoint, trace. Every file is read in a child process, and what is accepted is used: solvers run on it,
policies are made of it. A mutation fails if the process dies of a signal, takes more than a minute, raises anything
but a named error, or comes to a result that is not finite. Its number is printed, and alone it is tried again with

    python tests/support/mutations.py game --only 1234
"""

import argparse
import collections
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr._util import files
from spiel_cfr.cfr import solver_files
from spiel_cfr.games.compiled import enumerated_game

# Of the processor's time, kernels that are compiled included; and by the clock, for what waits for ever.
_SECONDS_EACH, _LONGEST_WAIT = 60, 600
# With whether they are in vector form.
_GAMES = (
  ("kuhn_poker", False),
  ("kuhn_poker(players=3)", False),
  ("tiny_hanabi", False),
  ("leduc_poker", False),
  ("leduc_poker", True),
  ("liars_dice(numdice=2,dice_sides=2)", True),
)
_PRIVATE_MOVES = ("kuhn_poker", "dark_hex(num_rows=2,num_cols=2)")
_SOLVERS: dict[str, Callable[[Any], Any]] = {
  "cfr+": spiel_cfr.CFRPlusSolver,
  "averages": lambda game: spiel_cfr.FullWidthSolver(
    game, spiel_cfr.RegretMatching.discounted(), averaging=spiel_cfr.Averaging(counted="faced")
  ),
  "adaptive descent": spiel_cfr.AdaptiveOptimisticCFRSolver,
  "adaptive steps": lambda game: spiel_cfr.StablePredictiveCFRSolver(
    game, alternating_updates=True
  ),
  # A first attempt so early that there are restarts, kept and on trial, where the checkpoints are made.
  "restarted": lambda game: spiel_cfr.Restarted(spiel_cfr.DCFRSolver(game), first_attempt=7),
  "restarted CFR": spiel_cfr.RestartedCFRSolver,
  "external sampling": lambda game: spiel_cfr.ExternalSamplingSolver(game, baseline_rate=0.1),
  "discounted sampling": lambda game: spiel_cfr.OutcomeSamplingSolver(
    game, minimizer=spiel_cfr.RegretMatching.discounted()
  ),
}
_ODD_VALUES: tuple[Any, ...] = (
  *(None, True, False, 0, 1, -1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, 10**30),
  *(0.5, -0.0, 1e-310, 1e308, math.inf, -math.inf, math.nan),
  *("", "0", "nan", "kuhn_poker", "leduc_poker", "kuhn_poker()", "x" * 1000, [], {}, [[]], [0, 1]),
)


# When checkpoints are made: "restarted" has a restart on trial at the one, "restarted CFR" at the other.
_EARLY, _LATE = 10, 510


# What is changed.


def spoiled_header(rng: random.Random, header: Any) -> Any:
  """Returns a copy of JSON in which something is replaced, left out or put in."""
  result = json.loads(json.dumps(header))
  place = result
  while True:
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    if not keys:
      place["new" if isinstance(place, dict) else slice(0, 0)] = [rng.choice(_ODD_VALUES)]
      return result
    key = rng.choice(keys)
    if isinstance(place[key], dict | list) and rng.random() < 0.8:
      place = place[key]
    elif rng.random() < 0.2:
      del place[key]
      return result
    else:
      value = place[key]
      choices = [rng.choice(_ODD_VALUES), rng.choice(_ODD_VALUES)]
      if isinstance(value, int | float) and math.isfinite(value):
        choices += [value + 1, value - 1, 2 * value, -value]
      place[key] = rng.choice(choices)
      return result


def spoiled_array(rng: random.Random, array: Any) -> Any:
  """Returns a copy of an array with other numbers, another type or another shape."""
  result = np.array(array)
  flat = result.reshape(-1)
  kind = rng.randrange(14)
  if kind < 8 and not flat.size:
    kind = 8
  index = rng.randrange(max(1, flat.size))
  if kind == 0:
    flat.view(np.uint8)[rng.randrange(flat.nbytes)] ^= 1 << rng.randrange(8)
  elif kind == 1:
    extremes = (
      [math.nan, math.inf, -math.inf, 1e308, 5e-324, -1.0, 2.0]
      if result.dtype.kind == "f"
      else [np.iinfo(result.dtype).max, np.iinfo(result.dtype).min, 0, 1]
    )
    flat[index] = rng.choice(extremes)
  elif kind == 2:
    with np.errstate(over="ignore"):
      flat[index : index + 1] += np.array(rng.choice([1, 2, 8, 64])).astype(result.dtype)
  elif kind == 3:
    with np.errstate(over="ignore"):
      flat[index : index + 1] -= np.array(rng.choice([1, 2, 8, 64])).astype(result.dtype)
  elif kind == 4:
    other = rng.randrange(flat.size)
    flat[[index, other]] = flat[[other, index]]
  elif kind == 5:
    flat[:] = flat[np.array(rng.sample(range(flat.size), flat.size))]
  elif kind == 6:
    flat[index:] = flat[index]
  elif kind == 7:
    flat[index] = flat[rng.randrange(flat.size)]
  elif kind == 8:
    dtypes = ["f2", "f4", "f8", ">f8", "u1", "i4", "i8", "u4", ">u4", "u8", "?", "c16", "S4"]
    with np.errstate(all="ignore"), warnings.catch_warnings():
      warnings.simplefilter("ignore")
      result = result.astype(rng.choice(dtypes))
  elif kind == 9:
    result = result[: rng.randrange(len(result) + 1)]
  elif kind == 10:
    result = np.concatenate([result, result[: 1 + rng.randrange(3)]])
  elif kind == 11:
    result = rng.choice([result[..., None], result[None], flat, np.zeros((), result.dtype)])
  elif kind == 12:
    result = np.asfortranarray(result).T
  else:
    result = result[:0]
  return result


def spoiled_arrays(rng: random.Random, arrays: Any) -> Any:
  """Returns a copy of named arrays with one or two changed, swapped, left out or put in."""
  result = dict(arrays)
  first, second = rng.choice(sorted(result)), rng.choice(sorted(result))
  kind = rng.randrange(12)
  if kind == 0:
    result[first], result[second] = result[second], result[first]
  elif kind == 1:
    del result[first]
  elif kind == 2:
    result["new"] = np.zeros(3)
  else:
    for name in {first} if kind < 10 else {first, second}:
      result[name] = spoiled_array(rng, result[name])
  return result


def forge(path: pathlib.Path, content: bytes) -> None:
  """Writes content with the checksum that it should have."""
  with open(path, "w+b") as file:
    file.write(content)
    file.write(files._digest(file, len(content)))


def spoil(rng: random.Random, path: pathlib.Path, kind: str, version: int) -> None:
  """Changes one of our binary files."""
  if rng.random() < 0.15:
    content = bytearray(path.read_bytes()[: -files._DIGEST_BYTES])
    for _ in range(rng.randrange(1, 4)):
      content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    forge(path, bytes(content))
    return
  header, arrays = files.read(path, kind, version)
  if rng.random() < 0.25:
    header = spoiled_header(rng, header)
  else:
    arrays = spoiled_arrays(rng, arrays)
  header = header if isinstance(header, dict) else {}
  found = header.pop("kind", kind), header.pop("format", version)
  files.write(path, *found, header, arrays)


def spoil_text(rng: random.Random, path: pathlib.Path) -> None:
  """Changes a trace."""
  lines = path.read_text().splitlines()
  number = rng.randrange(len(lines))
  kind = rng.randrange(6)
  if kind == 0 and lines[number].lstrip("# ").startswith("{"):
    spoiled = spoiled_header(rng, json.loads(lines[number].lstrip("# ")))
    lines[number] = "# " * lines[number].startswith("#") + json.dumps(spoiled)
  elif kind == 1:
    del lines[number]
  elif kind == 2:
    lines.insert(number, lines[rng.randrange(len(lines))])
  elif kind == 3 and lines[number].count(",") == 5:
    cells = lines[number].split(",")
    cells[rng.randrange(6)] = str(rng.choice(_ODD_VALUES))
    lines[number] = ",".join(cells)
  else:
    text = bytearray(lines[number].encode())
    if text:
      text[rng.randrange(len(text))] = rng.choice(b'0919-+.einf,"{}[]\x00\xff ')
    lines[number] = text.decode(errors="surrogateescape")
  path.write_text("\n".join(lines) + "\n", errors="surrogateescape")


# What is done with it.


class Kind:
  """Valid files of a kind, and the use of a changed one."""

  def __init__(self, folder: pathlib.Path) -> None:
    self.folder = folder

  def attempt(self, number: int) -> bool:
    """Changes a file in the way that the number stands for; returns whether it was accepted."""
    rng = random.Random(number)
    path = self.spoil(rng)
    try:
      self.use(path, rng)
    except errors.SpielCFRError as error:
      assert str(error)
      return False
    return True

  def spoil(self, rng: random.Random) -> pathlib.Path:
    raise NotImplementedError

  def use(self, path: pathlib.Path, rng: random.Random) -> None:
    raise NotImplementedError


def use_solver(solver: Any) -> None:
  """Uses a solver in many ways."""
  solver.run(3)
  assert math.isfinite(solver.nash_conv())
  for probabilities in (solver.average_probabilities(), solver.current_probabilities()):
    assert np.isfinite(probabilities).all()
  assert np.isfinite(solver.average_policy().action_probability_array).all()


class Games(Kind):
  def __init__(self, folder: pathlib.Path) -> None:
    super().__init__(folder)
    self.contents = []
    for name, vector_form in _GAMES:
      path = folder / "whole.npz"
      spiel_cfr.compile_game(name, vector_form=vector_form).save(path)
      self.contents.append(path.read_bytes())
    for name in _PRIVATE_MOVES:
      spiel_cfr.games.compile_private_moves_game(name, infostate="history").save(path)
      self.contents.append(path.read_bytes())

  def spoil(self, rng: random.Random) -> pathlib.Path:
    path = self.folder / "game.npz"
    path.write_bytes(rng.choice(self.contents))
    spoil(rng, path, enumerated_game.KIND, enumerated_game.FORMAT)
    return path

  def use(self, path: pathlib.Path, rng: random.Random) -> None:
    game = spiel_cfr.load_compiled_game(path)
    assert repr(game)
    assert game.digest
    use_solver(spiel_cfr.CFRPlusSolver(game))
    use_solver(spiel_cfr.StablePredictiveCFRSolver(game, horizon=10, steps="paper"))
    if game.num_infosets < 100:
      use_solver(spiel_cfr.ExternalSamplingSolver(game))


class Checkpoints(Kind):
  def __init__(self, folder: pathlib.Path) -> None:
    super().__init__(folder)
    self.game = spiel_cfr.compile_game("kuhn_poker")
    self.contents = []
    for make in _SOLVERS.values():
      path, solver = folder / "whole.npz", make(self.game)
      for iterations in (_EARLY, _LATE):
        solver.run(iterations - solver.iteration)
        solver.save(path)
        self.contents.append((make, path.read_bytes()))

  def spoil(self, rng: random.Random) -> pathlib.Path:
    path = self.folder / "checkpoint.npz"
    self.make, content = rng.choice(self.contents)
    path.write_bytes(content)
    spoil(rng, path, solver_files.KIND, solver_files.FORMAT)
    return path

  def use(self, path: pathlib.Path, rng: random.Random) -> None:
    solver = self.make(self.game)
    before = solver.state_dict()
    try:
      solver.restore(path)
    except errors.SpielCFRError:
      # A refused file changes nothing.
      for name, value in solver.state_dict().items():
        np.testing.assert_array_equal(value, before[name])
      spiel_cfr.Solver.load(path, self.game)
      raise
    # Until something else is done than in every iteration.
    solver.run(_LATE)
    use_solver(solver)
    use_solver(spiel_cfr.Solver.load(path, self.game))


class Traces(Kind):
  def __init__(self, folder: pathlib.Path) -> None:
    super().__init__(folder)
    self.game = spiel_cfr.compile_game("kuhn_poker")
    self.solver = spiel_cfr.CFRSolver(self.game)
    path = folder / "whole.csv"
    for iterations in (10, 20):
      traces = [spiel_cfr.runs.TraceFile(path)]
      spiel_cfr.run(self.solver, iterations, traces=traces, progress=False)
    self.content = path.read_bytes()

  def spoil(self, rng: random.Random) -> pathlib.Path:
    path = self.folder / "trace.csv"
    path.write_bytes(self.content)
    spoil_text(rng, path)
    return path

  def use(self, path: pathlib.Path, rng: random.Random) -> None:
    rows = spiel_cfr.runs.read_trace(path).rows
    for row in rows:
      assert row.iteration >= 0
      assert math.isfinite(row.solver_seconds + row.evaluation_seconds + row.nash_conv)
    solver = spiel_cfr.CFRSolver(self.game)
    solver.load_state_dict(self.solver.state_dict())
    result = spiel_cfr.run(solver, 22, traces=[spiel_cfr.runs.TraceFile(path)], progress=False)
    assert math.isfinite(result.last.solver_seconds)
    assert spiel_cfr.runs.read_trace(path).rows[-1] == result.last


KINDS: dict[str, type[Kind]] = {"game": Games, "checkpoint": Checkpoints, "trace": Traces}


# Child processes.


def _child(kind: str, first: int, last: int) -> None:
  """Tries mutations one after the other, and says so on standard output."""
  # What is tried here does not have to outlast the machine.
  os.fsync = lambda file: None
  warnings.simplefilter("ignore")
  with tempfile.TemporaryDirectory() as folder:
    files_of_kind = KINDS[kind](pathlib.Path(folder))
    for number in range(first, last):
      print(number, end=" ", flush=True)
      signal.setitimer(signal.ITIMER_PROF, _SECONDS_EACH)
      signal.alarm(_LONGEST_WAIT)
      try:
        print("accepted" if files_of_kind.attempt(number) else "refused", flush=True)
      except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"failed {text[:300]}", flush=True)
      signal.alarm(0)


def failures(
  kind: str, count: int, first: int = 0
) -> tuple[dict[int, str], collections.Counter[str]]:
  """Tries mutations in child processes.

  Returns:
    What went wrong, by the mutation's number, and how many were accepted and refused.
  """
  wrong: dict[int, str] = {}
  counts: collections.Counter[str] = collections.Counter()
  last = first + count
  while first < last:
    command = [sys.executable, __file__, kind, "--child", str(first), str(last)]
    child = subprocess.run(command, capture_output=True, text=True, errors="replace")
    for line in child.stdout.splitlines():
      number, _, rest = line.partition(" ")
      first = int(number) + 1
      outcome, _, detail = rest.partition(" ")
      if outcome in ("accepted", "refused"):
        counts[outcome] += 1
      else:
        wrong[first - 1] = detail or f"the process ended with code {child.returncode}"
    if child.returncode and (first - 1) not in wrong and first < last:
      raise RuntimeError(child.stderr)
  return wrong, counts


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("kind", choices=KINDS)
  parser.add_argument("count", type=int, nargs="?", default=1000)
  parser.add_argument("--only", type=int)
  parser.add_argument("--child", type=int, nargs=2)
  given = parser.parse_args()
  if given.child:
    _child(given.kind, *given.child)
  elif given.only is not None:
    with tempfile.TemporaryDirectory() as folder:
      print(KINDS[given.kind](pathlib.Path(folder)).attempt(given.only))
  else:
    wrong, counts = failures(given.kind, given.count)
    for number, what in wrong.items():
      print(number, what)
    print(f"{len(wrong)} failures of {given.count}; {dict(counts)}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
  main()
