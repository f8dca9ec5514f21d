"""The walk of a public tree in this process, or in forked processes that divide its subtrees among them.

The tree does not depend on the number of processes.
"""

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
from spiel_cfr._util.interrupt import DeferredInterrupt
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
  """The share of a tree that a process has walked, and regular reports of it."""

  def __init__(self, report: Any) -> None:
    """Takes a function of a share, a number of terminals and a number of bytes, all since the last report."""
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


class _Limits:
  """The progress bar of a walk in any number of processes, and its limits."""

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
  progress: bool,
  num_processes: int,
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
    UnsupportedGameError: it is not a game of private types and public actions, or a state's answer is wrong.
    GameTooLargeError: the tree is too large.
    GameError: chance outcomes do not have probabilities.
    ArgumentError: see `GameView.legal_actions`.
  """
  game = view, deals, states, weights
  limits = _Limits(max_nodes, max_bytes, progress)
  try:
    # By the number of the task; the top of the tree is -1.
    pieces: dict[int, Piece] = {}
    if num_processes == 1 or not CAN_FORK:
      _walk(game, limits, lambda task: True, pieces.__setitem__)
    else:
      pieces = _walk_in_processes(game, limits, num_processes)
  finally:
    limits.close()
  return join(deals, [pieces[number] for number in sorted(pieces)])


def _walk(game: _Game, report: Any, claim: Any, deliver: Any) -> None:
  """Walks the top of the tree and the claimed tasks; see `_Progress` for `report`, `walk_pieces` for the others."""
  progress = _Progress(report)
  walk_pieces(*game, progress, claim, deliver)
  progress.report()


def _walk_in_processes(game: _Game, limits: _Limits, num_processes: int) -> dict[int, Piece]:
  """Forks processes that all walk the top of the tree, and claim one subtree after the other; returns the pieces."""
  forking = multiprocessing.get_context("fork")
  # The first task that no process has claimed; tasks are claimed in order.
  unclaimed = forking.Value("q", 0)

  def claim(task: int) -> bool:
    with unclaimed.get_lock():
      is_claimed = task == unclaimed.value
      unclaimed.value += is_claimed
    return bool(is_claimed)

  def work(pipe: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    result = None
    try:
      # A piece is sent as soon as it is complete, and is not kept in this process.
      _walk(game, lambda *report: pipe.send(report), claim, lambda *piece: pipe.send(dict([piece])))
    except Exception as error:
      result = error
    pipe.send(result)

  progress = _Progress(limits)
  pieces: dict[int, Piece] = {}
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
          limits(*message)
        elif isinstance(message, dict):
          pieces |= message
          progress.report()
        else:
          waiting.remove(pipe)
  return pieces


@contextlib.contextmanager
def _forked(forking: Any, work: Any, count: int) -> Iterator[list[Any]]:
  """Starts processes that call `work` with a pipe, and yields the other ends of the pipes; terminates them on exit."""
  processes, pipes = [], []
  try:
    # Python loses a Ctrl-C that arrives in a hook of a fork.
    with DeferredInterrupt(whole=True):
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
