"""Checks that histories with equal keys, those in one world, have equal futures.

`find_worlds` visits one history of each world, so it may miss that a key leaves something out. These checks compare all
short histories and many random ones, state by state, with the histories that found their worlds. Each random history
is also walked again along its path of cores with other moves. The two histories are then crossed: player 0 moves as in
the first, player 1 as in the second. The crossed history must exist, and each player must have the same infostates as
before.
"""

import collections
import random
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s
from spiel_cfr.games.openspiel.checked_calls import CHANCE
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.private_moves.infostate_checks import RANDOM, SHORT, InfostateChecks, Memory
from spiel_cfr.games.private_moves.worlds import Worlds, world_of


def check_worlds(view: GameView, worlds: Worlds) -> None:
  """Compares histories with the worlds that were found.

  Raises:
    PrivateMovesError: two histories of one world differ or can't be crossed; see also `InfostateChecks.arrive`.
    ImperfectRecallError: see `InfostateChecks.arrive`.
  """
  checks = _Checks(view, worlds)
  checks.short_histories()
  choice = random.Random(0)
  for _ in range(RANDOM):
    first = checks.walk(lambda here: choice.choice(here.moves))
    assert first is not None
    second = checks.walk(_Along(worlds, first.cores, choice))
    if second is not None:
      checks.cross(first, second)


class _Position(NamedTuple):
  """A state on a walk.

  Attributes:
    state: OpenSpiel's state.
    world: int. The world of the state.
    moves: list of int. The legal actions, or the outcomes of chance.
    edges: int64 (moves,). The edge of each move.
    memory: Memory. Both players' memories of the history.
  """

  state: Any
  world: int
  moves: list[int]
  edges: Int64s
  memory: Memory


class _Walk(NamedTuple):
  """A history from the root to its end.

  Attributes:
    moves: dict from player 0, player 1 and chance to the list of its moves.
    cores: list of int. The cores of the history after the first one.
    memory: Memory. Both players' memories after the last move.
    history: list of int. All moves.
  """

  moves: dict[int, list[int]]
  cores: list[int]
  memory: Memory
  history: list[int]


class _Along:
  """Choice of random moves along a path of cores."""

  def __init__(self, worlds: Worlds, cores: list[int], choice: random.Random) -> None:
    self._worlds, self._cores, self._choice = worlds, collections.deque(cores), choice

  def __call__(self, here: _Position) -> int | None:
    """Returns a move that leads to the next core or does not change the core; None in a dead end."""
    after = self._worlds.core_after(here.edges)
    is_possible, stays = after == self._cores[0], after == self._worlds.core[here.world]
    if not is_possible.any() or self._choice.random() < 0.5:
      is_possible |= stays
    if not is_possible.any():
      return None
    place = self._choice.choice(np.flatnonzero(is_possible).tolist())
    if not stays[place]:
      self._cores.popleft()
    return here.moves[place]


class _Checks:
  """Comparisons of histories with the worlds that were found."""

  def __init__(self, view: GameView, worlds: Worlds) -> None:
    self._view, self._worlds = view, worlds
    self._infostates = InfostateChecks(view, worlds.keys)

  def short_histories(self) -> None:
    """Compares the shortest histories, up to a number of them."""
    queue = collections.deque([self._root()])
    for _ in range(SHORT):
      if not queue:
        return
      here = queue.popleft()
      queue += filter(None, (self._follow(here, move) for move in here.moves))

  def walk(self, choose: Callable[[_Position], int | None]) -> _Walk | None:
    """Walks to the end of the game and compares all states on the way; returns None if `choose` does."""
    here: _Position | None = self._root()
    moves: dict[int, list[int]] = collections.defaultdict(list)
    cores, history, memory = list[int](), list[int](), Memory()
    while here is not None:
      move = choose(here)
      if move is None:
        return None
      mover = here.state.current_player()
      moves[mover].append(move)
      history.append(move)
      core = int(self._worlds.core_after(here.edges)[here.moves.index(move)])
      if core != self._worlds.core[here.world]:
        cores.append(core)
      memory = self._infostates.after(here.memory, mover, move)
      here = self._follow(here, move)
    return _Walk(moves, cores, memory, history)

  def cross(self, first: _Walk, second: _Walk) -> None:
    """Checks that player 0's moves of one walk and player 1's of another along the same cores make a history."""
    queues = {mover: collections.deque(moves) for mover, moves in first.moves.items()}
    queues[1] = collections.deque(second.moves[1])

    def choose(here: _Position) -> int | None:
      queue = queues.get(here.state.current_player())
      return queue.popleft() if queue and queue[0] in here.moves else None

    crossed = self.walk(choose)
    expected = first.memory.infostates[0], second.memory.infostates[1]
    if crossed is None or crossed.cores != first.cores or crossed.memory.infostates != expected:
      raise errors.PrivateMovesError(
        f"The histories {first.history} and {second.history} have the same path of cores, but player 0's moves of the "
        "first and player 1's moves of the second are not a history, or players have other infostates there. Worlds "
        f"are identified by {self._worlds.keys}."
      )

  def _root(self) -> _Position:
    return self._arrive(self._view.new_initial_state(), 0, Memory())

  def _arrive(self, state: Any, world: int, memory: Memory) -> _Position:
    """Compares a state with the history that found its world."""
    worlds = self._worlds
    expected = worlds.action_lists[worlds.legal[world]]
    edges = int(worlds.first_edge[world]) + np.arange(len(expected))
    if worlds.mover[worlds.core[world]] == CHANCE:
      outcomes = self._view.chance_outcomes(state)
      moves = [action for action, _ in outcomes]
      agrees = [chance for _, chance in outcomes] == worlds.probability[edges].tolist()
    else:
      moves, agrees = self._view.legal_actions(state), True
    if not agrees or tuple(moves) != expected:
      self._refuse(state, worlds.history(world), f"are followed by {moves} and {list(expected)}")
    return _Position(state, world, moves, edges, self._infostates.arrive(state, memory))

  def _follow(self, here: _Position, move: int) -> _Position | None:
    """Compares the state after a move with the world that was found there; returns None at the end of the game."""
    worlds, child = self._worlds, here.state.child(move)
    edge = int(here.edges[here.moves.index(move)])
    target, other = int(worlds.target[edge]), worlds.history_after(edge)
    if child.is_terminal() != (target < 0):
      self._refuse(child, other, "are not both over")
    if target < 0:
      returns, expected = list(self._view.returns(child)), worlds.returns[-1 - target].tolist()
      if returns != expected:
        self._refuse(child, other, f"return {returns} and {expected}")
      return None
    if world_of(worlds, child) != target:
      self._refuse(child, other, "lead to different worlds")
    memory = self._infostates.after(here.memory, here.state.current_player(), move)
    return self._arrive(child, target, memory)

  def _refuse(self, state: Any, other: list[int], difference: str) -> NoReturn:
    raise errors.PrivateMovesError(
      f"The histories {state.history()} and {other} {difference}, but are one world, with or without their last moves. "
      f"Worlds are identified by {self._worlds.keys}."
    )
