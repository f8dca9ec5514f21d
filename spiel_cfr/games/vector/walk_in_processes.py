"""The walk of a public tree in this process, or in forked ones that share its subtrees; the tree is the same."""

import contextlib
import multiprocessing
import multiprocessing.connection
import signal
import time
import warnings
from collections.abc import Iterator
from typing import Any

import tqdm

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import memory
from spiel_cfr.games.openspiel.forked_child import CAN_FORK
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.vector.deals import Deals
from spiel_cfr.games.vector.tree_pieces import Piece, join
from spiel_cfr.games.vector.typed_tree import TypedTree
from spiel_cfr.games.vector.typed_walk import walk_pieces

# The arguments of a walk: the game, its deals, the states after deals, and the weights of deals.
_Game = tuple[GameView, Deals, list[Any], Float64s]
_SECONDS_BETWEEN_REPORTS = 0.2
# Number of terminals between two looks at the clock.
_LOOK_EVERY = 1 << 8


class _Progress:
  """The share of a tree that has been walked, and regular reports of it."""

  def __init__(self, report: Any) -> None:
    self._report = report
    self._share, self._terminals, self._next = 0.0, 0, 0.0
    self._bytes = memory.resident_bytes()

  def __call__(self, share: float) -> None:
    self._share += share
    self._terminals += 1
    if self._terminals % _LOOK_EVERY == 0 and time.perf_counter() > self._next:
      self.report()

  def report(self) -> None:
    """Reports the walk since the last report, and the growth of this process's memory."""
    share, terminals, before = self._share, self._terminals, self._bytes
    self._share, self._terminals, self._bytes = 0.0, 0, memory.resident_bytes()
    self._next = time.perf_counter() + _SECONDS_BETWEEN_REPORTS
    self._report(share, terminals, self._bytes - before)


class _Watch:
  """The progress bar of a walk, and its limits."""

  def __init__(self, max_nodes: int, max_bytes: int, bar: bool) -> None:
    self._max_nodes, self._max_bytes = max_nodes, max_bytes
    self._terminals, self._bytes = 0, 0
    self._bar = tqdm.tqdm(
      desc="walking the public tree",
      total=1.0,
      bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}",
      delay=1.0,
      leave=False,
      disable=None if bar else True,
    )

  def __call__(self, share: float, terminals: int, grown: int) -> None:
    """Adds a report of the walk; raises GameTooLargeError if it exceeds a limit."""
    self._terminals += terminals
    self._bytes += grown
    self._bar.update(min(share, 1.0 - self._bar.n))
    if self._terminals > self._max_nodes:
      raise errors.GameTooLargeError(
        f"The public tree has more than max_nodes={self._max_nodes:,} terminals. Raise the limit if there is the time "
        "and the memory, or choose smaller parameters."
      )
    if self._bytes > self._max_bytes:
      raise errors.GameTooLargeError(
        f"The public tree takes more than max_bytes={self._max_bytes:,}. Raise the limit if there is the memory."
      )

  def close(self) -> None:
    self._bar.close()


def walk_typed_tree(
  view: GameView,
  deals: Deals,
  states: list[Any],
  weights: Float64s,
  *,
  max_nodes: int,
  max_bytes: int,
  progress: bool = True,
  num_processes: int = 1,
) -> TypedTree:
  """Walks the public tree of a game of private types, with the states of all its deals.

  Args:
    view: the game.
    deals: the deals of types.
    states: the state after each deal.
    weights: float64 (deals,). The probability of each deal that is walked, `RULED_OUT` for others.
    max_nodes: as of `compile_vector_game`.
    max_bytes: as of `compile_vector_game`.
    progress: as of `compile_vector_game`.
    num_processes: number of processes; the tree does not depend on it.

  Raises:
    UnsupportedGameError: it is not such a game, or it breaks a promise of OpenSpiel's games.
    GameTooLargeError: the tree is too large.
    GameError: chance outcomes do not have probabilities.
    ArgumentError: see `GameView.legal_actions`.
  """
  game = view, deals, states, weights
  watch = _Watch(max_nodes, max_bytes, progress)
  try:
    found: dict[int, Piece] = {}
    if num_processes == 1 or not CAN_FORK:
      _walk(game, watch, lambda task: True, found.__setitem__)
    else:
      found = _walk_in_processes(game, watch, num_processes)
  finally:
    watch.close()
  return join(deals, [found[number] for number in sorted(found)])


def _walk(game: _Game, report: Any, claim: Any, deliver: Any) -> None:
  progress = _Progress(report)
  walk_pieces(*game, progress, claim, deliver)
  progress.report()


def _walk_in_processes(game: _Game, watch: _Watch, num_processes: int) -> dict[int, Piece]:
  """Forks processes that each walk the top, and claim one subtree after the other."""
  forking = multiprocessing.get_context("fork")
  # The first task that no process has claimed; tasks are claimed in order.
  unclaimed = forking.Value("q", 0)

  def claim(task: int) -> bool:
    with unclaimed.get_lock():
      mine = task == unclaimed.value
      unclaimed.value += mine
    return bool(mine)

  def work(pipe: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    result = None
    try:
      # A piece is sent as soon as it is complete, and is not kept here.
      _walk(game, lambda *report: pipe.send(report), claim, lambda *piece: pipe.send(dict([piece])))
    except Exception as error:
      result = error
    pipe.send(result)

  here = _Progress(watch)
  found: dict[int, Piece] = {}
  with _forked(forking, work, num_processes) as pipes:
    waiting = list(pipes)
    while waiting:
      ready: list[Any] = multiprocessing.connection.wait(waiting)
      for pipe in ready:
        try:
          message = pipe.recv()
        except EOFError as error:
          raise errors.GameError(
            "A process that walked the game has died. Walk it with num_processes=1 to see why."
          ) from error
        if isinstance(message, Exception):
          raise message
        if isinstance(message, tuple):
          watch(*message)
        elif isinstance(message, dict):
          found |= message
          here.report()
        else:
          waiting.remove(pipe)
  return found


@contextlib.contextmanager
def _forked(forking: Any, work: Any, count: int) -> Iterator[list[Any]]:
  """Starts processes with a pipe each, and yields the other ends; terminates the processes on exit."""
  processes, pipes = [], []
  try:
    for _ in range(count):
      ours, theirs = forking.Pipe(duplex=False)
      process = forking.Process(target=work, args=(theirs,), daemon=True)
      with warnings.catch_warnings():
        # Python warns of forks beside threads, since a child may wait for their locks; these processes take none.
        warnings.simplefilter("ignore")
        process.start()
      theirs.close()
      processes.append(process)
      pipes.append(ours)
    yield pipes
  finally:
    for process in processes:
      process.terminate()
      process.join()
    for pipe in pipes:
      pipe.close()
