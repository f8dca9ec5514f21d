"""Ctrl-C, kills, full disks, threads and copies: what was there before is still there, or what should come after."""

import concurrent.futures
import copy
import functools
import os
import pathlib
import pickle
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import public_api

import spiel_cfr
from attacks import by_type, forged_files
from attacks.outcomes import Attack
from spiel_cfr import catalogue, errors
from spiel_cfr.deep_cfr.network import LeastSquares

_ITERATIONS = 10**5
# Seconds within which Ctrl-C is pressed, and again.
_SOON = 0.03


def attacks(rng: np.random.Generator) -> Iterator[Attack]:
  """Yields copies of everything once, then disturbances at random moments."""
  for cls in public_api.concrete_classes():
    room = cls.__module__.split(".")[1]
    # A function of the caller's, and processes.
    if issubclass(cls, spiel_cfr.referee.FunctionPolicy | concurrent.futures.Executor):
      continue
    for how in (_pickled, copy.copy, copy.deepcopy):
      strike = functools.partial(_copied, cls, how)
      yield Attack(room, f"{how.__name__} of {cls.__name__}", strike)
  for calls in interrupts(rng):
    yield calls
    for name, kind in forged_files.KINDS.items():
      if rng.random() < 0.1:
        for strike in (_killed, _full):
          seed = int(rng.integers(2**32))
          yield Attack(
            kind.room,
            f"{name}, {strike.__name__[1:]} {seed}",
            functools.partial(strike, name, seed),
          )
    if rng.random() < 0.2:
      solver = str(rng.choice(_SOLVERS))
      yield Attack("cfr", f"two threads run {solver}", functools.partial(_two_threads, solver))
      yield Attack("evaluation", "two threads share a game", _one_game)


_SOLVERS = list(catalogue.SOLVERS)


def interrupts(rng: np.random.Generator) -> Iterator[Attack]:
  """Yields interrupts of every solver in turn, without end: half of them double, half at moments of Python's."""
  while True:
    for solver in _SOLVERS:
      presses, seed = int(rng.integers(1, 3)), int(rng.integers(2**32))
      press = (_at_a_call, _after_a_time)[rng.integers(2)]
      yield Attack(
        "cfr",
        f"{presses} x Ctrl-C {press.__name__[1:]} in {solver}, {seed}",
        functools.partial(_interrupted, solver, press, presses, seed),
      )


def _make(name: str) -> spiel_cfr.Solver:
  game = spiel_cfr.compile_game("kuhn_poker")
  family = catalogue.SOLVERS[name].family
  more: dict[str, Any] = {}
  if issubclass(family, spiel_cfr.mccfr.MonteCarloSolver):
    more["seed"] = 0
  if issubclass(family, spiel_cfr.DeepCFRSolver):
    more |= {"network": LeastSquares(), "seed": 0}
  return catalogue.make(name, game, _ITERATIONS, **more)


def _interrupted(
  name: str, press: Callable[[np.random.Generator, int], "_Switch"], presses: int, seed: int
) -> str:
  """Interrupts a run; the state must be that of a whole number of iterations, or the solver refuses to go on."""
  _make(name).run(2)  # Compiles what is compiled.
  solver, rng = _make(name), np.random.default_rng(seed)
  start, stop = press(rng, presses)
  is_running = True

  def interrupt(number: int, frame: Any) -> None:
    # The second one may come when all is over.
    if is_running:
      raise KeyboardInterrupt

  before = signal.signal(signal.SIGINT, interrupt)
  try:
    start()
    solver.run(_ITERATIONS if press is _after_a_time else 40)
  except KeyboardInterrupt:
    is_running = False
  is_running = False
  stop()
  signal.signal(signal.SIGINT, before)
  done, fresh = int(solver.iteration), _make(name)
  if done:
    fresh.run(done)
  for more in (0, 3):
    try:
      if more:
        solver.run(more)
      found = solver.state_dict()
    except errors.SpielCFRError:
      return ""
    if more:
      fresh.run(more)
    wanted = fresh.state_dict()
    wrong = [key for key in wanted if not _same_bytes(wanted[key], found[key])]
    if wrong:
      return f"after {done} + {more} iterations {wrong} are not what they should be"
  return ""


def _same_bytes(one: Any, other: Any) -> bool:
  if isinstance(one, np.ndarray):
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()
  return bool(one == other) or one != one


_Switch = tuple[Callable[[], Any], Callable[[], Any]]


def _at_a_call(rng: np.random.Generator, presses: int) -> _Switch:
  """Presses Ctrl-C when Python has made so many calls; again after a few more."""
  first = int(rng.integers(2000))
  moments = {first, first + int(rng.choice([0, 1, 5, 50]))} if presses == 2 else {first}
  twice = presses == 2 and len(moments) == 1
  count = 0

  def pressed(frame: Any, event: str, argument: Any) -> None:
    nonlocal count
    if count in moments:
      for _ in range(1 + twice):
        signal.raise_signal(signal.SIGINT)
    count += 1

  return lambda: sys.setprofile(pressed), lambda: sys.setprofile(None)


def _after_a_time(rng: np.random.Generator, presses: int) -> _Switch:
  """Presses Ctrl-C after some milliseconds; again within 50 more."""
  times = [float(rng.random() * _SOON), *[float(rng.random() * 0.05)][: presses - 1]]

  def press() -> None:
    for seconds in times:
      time.sleep(seconds)
      os.kill(os.getpid(), signal.SIGINT)

  thread = threading.Thread(target=press)
  return thread.start, thread.join


def _copied(cls: type, how: Callable[[Any], Any]) -> str:
  other = how(public_api.instance(cls))
  return "" if type(other) is cls or isinstance(other, cls) else f"it is {other!r}"


def _pickled(thing: Any) -> Any:
  return pickle.loads(pickle.dumps(thing))


def _killed(name: str, seed: int) -> str:
  """Kills a process that saves again and again; there is a whole file, and nothing else after the next save."""
  kind, rng = forged_files.KINDS[name], np.random.default_rng(seed)
  path = pathlib.Path(f"kill{seed}") / "file"
  path.parent.mkdir()
  kind.write(str(path))
  wanted = kind.read(str(path))
  child = os.fork()
  if not child:
    while True:
      kind.write(str(path))
  time.sleep(float(rng.random() * 0.1))
  os.kill(child, signal.SIGKILL)
  os.waitpid(child, 0)
  if name != "trace" and not by_type.same(kind.read(str(path)), wanted):
    return "the file is another one"
  for left in path.parent.iterdir():
    os.utime(left, (0, 0))
  kind.write(str(path))
  left_over = [each.name for each in path.parent.iterdir() if each != path]
  return f"left over: {left_over}" if left_over else ""


def _full(name: str, seed: int) -> str:
  """Saves where there is no room for the whole file; the one before must still be there."""
  kind, rng = forged_files.KINDS[name], np.random.default_rng(seed)
  path = pathlib.Path(f"full{seed}") / "file"
  path.parent.mkdir()
  kind.write(str(path))
  before = path.read_bytes()
  most = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (int(rng.integers(len(before))), most[1]))
  try:
    kind.write(str(path))
    return "it was written without room"
  except OSError:
    pass
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, most)
  is_there = path.read_bytes().startswith(before) or name == "trace"
  left_over = [each.name for each in path.parent.iterdir() if each != path]
  return "" if is_there and not left_over else f"the file before is gone, or left over: {left_over}"


def _in_threads(call: Callable[[], Any]) -> list[Any]:
  results: list[Any] = []
  failed: list[BaseException] = []

  def work() -> None:
    try:
      results.append(call())
    except BaseException as error:
      failed.append(error)

  threads = [threading.Thread(target=work) for _ in range(2)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  if failed:
    raise failed[0]
  return results


def _two_threads(name: str) -> str:
  solver, fresh = _make(name), _make(name)
  _in_threads(lambda: solver.run(20))
  fresh.run(40)
  wanted, found = fresh.state_dict(), solver.state_dict()
  wrong = [key for key in wanted if not _same_bytes(wanted[key], found[key])]
  return f"{wrong} are not what they should be" if wrong else ""


def _one_game() -> str:
  game = spiel_cfr.compile_game("leduc_poker")
  policy = spiel_cfr.CFRSolver(game).average_policy()

  def work() -> list[float]:
    solver = spiel_cfr.CFRPlusSolver(game)
    solver.run(5)
    return [spiel_cfr.nash_conv(game, policy), solver.nash_conv()]

  one, other = _in_threads(work)
  return "" if one == other == work() else f"{one} and {other}"
