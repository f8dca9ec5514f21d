"""Graph of the worlds of a game: a few hundred thousand worlds for ten billion histories.

Histories in the same world have the same future, so `find_worlds` visits one history of each world. `world_checks`
compares it with others, and raises `PrivateMovesError` with two histories if the keys of worlds are wrong.
"""

import collections
import dataclasses
import random
from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy  # its `sparse` is imported when it is used
import tqdm

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s, concatenated_ranges
from spiel_cfr._util import memory
from spiel_cfr.games.openspiel.checked_calls import TERMINAL, cannot_be_walked
from spiel_cfr.games.openspiel.game_size import estimate_classes
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import ReturnsCheck
from spiel_cfr.games.private_moves.world_keys import WorldKeys

_CHECK_EVERY = 1 << 12
# After `_ESTIMATE_FROM` worlds, their number is estimated from `_SAMPLED_STATES` states on random histories. A game is
# refused if the estimate is over `_CERTAINLY` times the allowed number.
_ESTIMATE_FROM, _SAMPLED_STATES, _CERTAINLY = 100_000, 20_000, 2


@dataclasses.dataclass(frozen=True, eq=False)
class Worlds:
  """Graph of worlds. An edge is a move at a world; the edges of a world are consecutive, in the order of its actions.

  Attributes:
    keys: WorldKeys. The keys.
    numbers: dict from (core, seen by player 0, seen by player 1) to the number of the world.
    cores: dict from the key of a core, with the player to move, to the number of the core.
    seen: for each player, dict from the key of what it has seen to its number.
    core: int64 (worlds,). The core of each world.
    seen_number: int64 (2, worlds). The number of what each player has seen, in `seen`.
    legal: int64 (worlds,). The list of actions of each world, in `action_lists`.
    action_lists: list of tuples. Lists of actions, those of chance among them.
    mover: int64 (cores,). The player to move, `CHANCE` or `TERMINAL` of `checked_calls`.
    returns: float64 (cores, 2). The returns of both players at terminal cores; 0 elsewhere.
    first_edge: int64 (worlds,). The first edge of each world.
    source: int64 (edges,). The world before the move.
    action: int64 (edges,). The action of the move.
    place: int64 (edges,). The place of the action in the world's list of actions.
    target: int64 (edges,). The world after the move; -1 - core if the move ends the game.
    probability: float64 (edges,). The probability of a chance outcome; 1 elsewhere.
    found_by: int64 (worlds,). The edge by which the world was found; -1 at the root, which is world 0.
  """

  keys: WorldKeys
  numbers: dict[tuple[int, int, int], int]
  cores: dict[Hashable, int]
  seen: tuple[dict[Hashable, int], dict[Hashable, int]]
  core: Int64s
  seen_number: Int64s
  legal: Int64s
  action_lists: list[tuple[int, ...]]
  mover: Int64s
  returns: Float64s
  first_edge: Int64s
  source: Int64s
  action: Int64s
  place: Int64s
  target: Int64s
  probability: Float64s
  found_by: Int64s

  def history(self, world: int) -> list[int]:
    """Returns the actions of the history by which a world was found."""
    result = []
    edge = int(self.found_by[world])
    while edge >= 0:
      result.append(int(self.action[edge]))
      edge = int(self.found_by[self.source[edge]])
    return result[::-1]

  def history_after(self, edge: int) -> list[int]:
    """Returns the actions of a history whose last move is an edge."""
    return [*self.history(int(self.source[edge])), int(self.action[edge])]

  def core_after(self, edges: Int64s) -> Int64s:
    """Returns the core that each edge leads to."""
    target = self.target[edges]
    return np.where(target < 0, -1 - target, self.core[np.maximum(target, 0)])


def world_of(worlds: Worlds, state: Any) -> int | None:
  """Returns the world of a non-terminal state; None if it was not found."""
  core = worlds.cores.get((worlds.keys.core(state), state.current_player()), -1)
  first, second = (
    numbers.get(worlds.keys.seen(state, player), -1) for player, numbers in enumerate(worlds.seen)
  )
  return worlds.numbers.get((core, first, second))


def find_worlds(
  view: GameView, keys: WorldKeys, max_worlds: int, max_bytes: int, progress: bool
) -> Worlds:
  """Visits one history of each world.

  Args:
    view: the game, of two players.
    keys: the keys of worlds.
    max_worlds: largest number of worlds.
    max_bytes: largest growth of the process's memory.
    progress: whether to show a bar, if standard error is a terminal.

  Raises:
    PrivateMovesError: two terminal histories of one core have different returns, or a world can repeat.
    GameTooLargeError: there are more worlds, or they take more memory.
    UnsupportedGameError: a state has no legal action or an unknown player, or raises an exception.
    InvalidPayoffError: see `ReturnsCheck`.
  """
  search = _Search(view, keys, max_worlds)
  before, is_estimated = memory.resident_bytes(), False
  bar = tqdm.tqdm(
    desc="finding worlds", unit=" worlds", unit_scale=True, delay=1.0, leave=False,
    disable=None if progress else True,
  )  # fmt: skip
  try:
    while search.queue:
      search.expand()
      count = len(search.numbers)
      if count > _ESTIMATE_FROM and not is_estimated:
        is_estimated = True
        estimate = estimate_classes(sample_worlds(view, keys, _SAMPLED_STATES))
        if estimate > _CERTAINLY * max_worlds:
          raise _too_many(keys, max_worlds, f": {estimate:z.1e} or more by an estimate")
      if count - bar.n >= _CHECK_EVERY:
        if memory.resident_bytes() - before > max_bytes:
          raise errors.GameTooLargeError(
            f"The game has {count:,} worlds or more, which take over max_bytes={max_bytes:,}, by these keys: {keys}."
          )
        bar.update(count - bar.n)
  finally:
    bar.close()
  result = search.result()
  _check_that_games_end(result)
  return result


def sample_worlds(view: GameView, keys: WorldKeys, count: int) -> collections.Counter[Any]:
  """Returns the number of visits of each world on random histories with `count` states in all."""
  choice, state = random.Random(0), view.new_initial_state()
  visits: collections.Counter[Any] = collections.Counter()
  for _ in range(count):
    if state.is_terminal():
      state = view.new_initial_state()
    seen = (keys.seen(state, player) for player in (0, 1))
    visits[keys.core(state), state.current_player(), *seen] += 1
    if state.is_chance_node():
      moves = [action for action, _ in view.chance_outcomes(state)]
    else:
      moves = view.legal_actions(state)
    state.apply_action(choice.choice(moves))
  return visits


def _too_many(keys: WorldKeys, max_worlds: int, number: str = "") -> errors.GameTooLargeError:
  return errors.GameTooLargeError(
    f"The game has more than {max_worlds:,} worlds{number}, by these keys: {keys}. Choose smaller parameters, or raise "
    "the limit if there is the time (about 30 microseconds a world)."
  )


class _Search:
  """The worlds found so far, and a queue of states whose moves are still to be followed."""

  def __init__(self, view: GameView, keys: WorldKeys, max_worlds: int) -> None:
    self._view, self._keys, self._check = view, keys, ReturnsCheck(view)
    self._max_worlds = max_worlds
    self.numbers: dict[tuple[int, int, int], int] = {}
    self._cores: dict[Hashable, int] = {}
    self._seen: tuple[dict[Hashable, int], dict[Hashable, int]] = ({}, {})
    self._action_lists: dict[tuple[int, ...], int] = {}
    # An element for each core.
    self._mover, self._returns = list[int](), list[tuple[float, float]]()
    # An element for each world.
    self._legal, self._found_by = list[int](), list[int]()
    # An element for each edge.
    self._target, self._probability = list[int](), list[float]()
    # The edge by which each terminal core was found.
    self._ends: dict[int, int] = {}
    self.queue: collections.deque[Any] = collections.deque()
    self._visit(view.new_initial_state())

  def expand(self) -> None:
    """Follows the moves of the first state of the queue."""
    state = self.queue.popleft()
    try:
      if state.is_chance_node():
        outcomes = self._view.chance_outcomes(state)
        moves = tuple(action for action, _ in outcomes)
        chances = [chance for _, chance in outcomes]
      else:
        legal = self._view.legal_actions(state)
        moves, chances = tuple(legal), [1.0] * len(legal)
      self._legal.append(self._action_lists.setdefault(moves, len(self._action_lists)))
      for action, chance in zip(moves, chances, strict=True):
        self._probability.append(chance)
        self._target.append(self._visit(self._view.child(state, action)))
        # A single state may have millions of chance outcomes.
        if len(self.numbers) > self._max_worlds:
          raise _too_many(self._keys, self._max_worlds)
    except (errors.SpielCFRError, MemoryError):
      raise
    except Exception as problem:
      raise cannot_be_walked(state, problem) from problem

  def _visit(self, state: Any) -> int:
    """Returns the world of a state; -1 - core if it is terminal."""
    player, edge = self._view.mover(state), len(self._target)
    key = self._keys.core(state), player
    core = self._cores.get(key)
    is_new = core is None
    if core is None:
      core = self._cores[key] = len(self._cores)
      self._mover.append(player)
      self._returns.append((0.0, 0.0))
    if self._mover[core] == TERMINAL:
      first, second = returns = self._view.returns(state)
      if is_new:
        self._check(state, returns)
        self._returns[core], self._ends[core] = (first, second), edge
      elif self._returns[core] != (first, second):
        other = self.result().history_after(self._ends[core])
        raise errors.PrivateMovesError(
          f"The histories {other} and {state.history()} end in the same core, but return {self._returns[core]} and "
          f"{(first, second)}. Cores are identified by {self._keys}."
        )
      return -1 - core
    first_seen, second_seen = (
      numbers.setdefault(self._keys.seen(state, player), len(numbers))
      for player, numbers in enumerate(self._seen)
    )
    world = self.numbers.setdefault((core, first_seen, second_seen), len(self.numbers))
    if world == len(self._found_by):
      # No edge leads to the root.
      self._found_by.append(edge if world else -1)
      self.queue.append(state)
    return world

  def result(self) -> Worlds:
    """Returns the graph of worlds."""
    numbers = np.array(list(self.numbers), np.int64)
    legal, action_lists = np.array(self._legal, np.int64), list(self._action_lists)
    counts = np.array([len(actions) for actions in action_lists])[legal]
    table = np.concatenate([np.array(actions, np.int64) for actions in action_lists])
    starts = np.cumsum([0, *map(len, action_lists)])[legal]
    return Worlds(
      keys=self._keys,
      numbers=self.numbers,
      cores=self._cores,
      seen=self._seen,
      core=numbers[:, 0].copy(),
      seen_number=numbers[:, 1:].T.copy(),
      legal=legal,
      action_lists=action_lists,
      mover=np.array(self._mover, np.int64),
      returns=np.array(self._returns, np.float64),
      first_edge=np.cumsum(counts) - counts,
      source=np.repeat(np.arange(len(counts)), counts),
      action=table[concatenated_ranges(starts, counts)],
      place=concatenated_ranges(np.zeros_like(counts), counts),
      target=np.array(self._target, np.int64),
      probability=np.array(self._probability, np.float64),
      found_by=np.array(self._found_by, np.int64),
    )


def _check_that_games_end(worlds: Worlds) -> None:
  """Raises PrivateMovesError if the graph has a cycle, since a game that returns to a world can go on for ever."""
  inner = worlds.target >= 0
  source, target = worlds.source[inner], worlds.target[inner]
  count = len(worlds.core)
  graph = scipy.sparse.csr_array((np.ones(len(source), np.int8), (source, target)), (count, count))
  number, component = scipy.sparse.csgraph.connected_components(graph, connection="strong")
  in_cycle = np.flatnonzero(inner)[component[source] == component[target]]
  if number < count or (source == target).any():
    history = worlds.history_after(int(in_cycle[0]))
    raise errors.PrivateMovesError(
      f"The world after the history {history} can repeat, so that the game need not end. Worlds are identified by "
      f"{worlds.keys}: let the core contain what makes the game end, such as the number of moves."
    )
