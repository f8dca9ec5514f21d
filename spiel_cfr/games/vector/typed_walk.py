"""Walks the public tree of a game of private types, with a state for each deal, and checks that it is one.

That a game is of this kind is found out, never taken on trust: at every node all states must have the same player to
move and the same legal actions, the infostate must be a function of the owner's type there and nothing else, and no
other node may have it. What differs anywhere, however deep, is refused by name.
"""

import itertools
import random
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel
import tqdm

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int32s, Int64s
from spiel_cfr._util import memory
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import (
  cannot_be_walked,
  chance_outcomes,
  check_actions,
  unknown_player,
  wrong_returns,
)
from spiel_cfr.games.vector.typed_tree import CHANCE, Deals, TypedTree

MOST_DEALS = 20_000
_TERMINAL = int(pyspiel.PlayerId.TERMINAL)
# Public actions after which subtrees are tasks of their own, which processes share.
_TASK_DEPTH = 3
# Random histories from which the number of nodes is estimated.
_DESCENTS = 200
# Random histories at which deals that nobody tells apart are compared, where not all are walked.
_COMPARED = 2000
# Returns of which sums are the same but for rounding.
_TOLERANCE = 1e-9


def find_deals(view: GameView) -> tuple[Deals, list[Any]]:
  """Lists what chance can deal before a player moves, with the state after each.

  Raises:
    UnsupportedGameError: there are not two players, they don't move first after each deal, or there are more than
      `MOST_DEALS` deals.
    GameError: see `state_checks.chance_outcomes`.
  """
  if view.num_players != 2:
    raise _refused(f"it has {view.num_players} players, not two")
  paths: list[list[int]] = []
  states: list[Any] = []
  weights: list[float] = []
  stack: list[tuple[Any, list[int], float]] = [(view.new_initial_state(), [], 1.0)]
  while stack:
    state, path, weight = stack.pop()
    if state.current_player() != CHANCE:
      if state.is_terminal():
        raise _refused("it can end before a player moves", state)
      paths.append(path)
      states.append(state)
      weights.append(weight)
      continue
    outcomes = [outcome for outcome in chance_outcomes(view, state) if outcome[1] > 0]
    if len(stack) + len(states) + len(outcomes) > MOST_DEALS:
      raise _refused(f"chance deals in more than {MOST_DEALS:,} ways before a player moves")
    outcomes.sort(key=lambda outcome: str(outcome[0]), reverse=True)
    stack += [(state.child(action), [*path, action], weight * p) for action, p in outcomes]
  types = [_numbered([view.named(state, player) for state in states]) for player in (0, 1)]
  moves = np.full((len(paths), max(map(len, paths))), -1, np.int64)
  for row, path in zip(moves, paths, strict=True):
    row[: len(path)] = path
  return Deals(moves, np.array(types), np.array(weights)), states


def _numbered(names: Sequence[str]) -> list[int]:
  """Numbers different names in order of discovery."""
  known: dict[str, int] = {}
  return [known.setdefault(name, len(known)) for name in names]


def one_per_pair(deals: Deals) -> Bools:
  """Returns which deals are the first of their pair of types, shape (deals,)."""
  own, other = deals.types
  _, first = np.unique(own * deals.num_types[1] + other, return_index=True)
  result = np.zeros(len(own), bool)
  result[first] = True
  return result


def estimate_nodes(view: GameView, states: Sequence[Any]) -> float:
  """Estimates how many nodes the public tree has; see `game_size` for the method."""
  choose = random.Random(0)
  total = 0.0
  for _ in range(_DESCENTS):
    state, weight = choose.choice(states).clone(), 1.0
    while not state.is_terminal():
      total += weight
      actions = (
        [action for action, _ in view.chance_outcomes(state)]
        if state.is_chance_node()
        else view.legal_actions(state)
      )
      weight *= len(actions)
      state.apply_action(choose.choice(actions))
  return total / _DESCENTS


class Alive:
  """The deals that are possible at a node, each with a state there, and what is the same at all such nodes."""

  def __init__(self, number: int, deals: Deals, places: Int64s, weights: Float64s) -> None:
    self.number, self.places, self.weights = number, places, weights
    own, other = deals.types[:, places]
    self.cells = own * deals.num_types[1] + other
    # By player: the first of the states with each of the types, and for each state the first with its type.
    self.firsts: list[list[int]] = []
    self.same: list[list[int]] = []
    for types in (own, other):
      _, first, which = np.unique(types, return_index=True, return_inverse=True)
      self.firsts.append(first.tolist())
      self.same.append(first[which].tolist())


class Piece(NamedTuple):
  """What has been walked of a public tree; arrays as of `TypedTree`, numbered from 0.

  Attributes:
    child: node, -1 - k for terminal k, or `TASK` + t for the root of the piece of task t.
    hashes: of all infostates, to find those that two nodes have; that hashes collide only refuses a game.
    places, weights: by kind, the deals that are alive and their probabilities.
    matrices: what the players get at some terminals, times weights.
    payoff_range: smallest and largest return.
    sums: smallest and largest sum of the players' returns.
  """

  player: Any
  kind: Int32s
  first_edge: Int64s
  action: Int32s
  child: Int32s
  matrix: Int32s
  hashes: Int64s
  places: list[Int64s]
  weights: list[Float64s]
  matrices: list[Float64s]
  payoff_range: tuple[float, float]
  sums: tuple[float, float]


# Above all nodes.
TASK = 1 << 30


class TypedWalk:
  """A walk of a public tree, or of a subtree of it."""

  def __init__(
    self,
    view: GameView,
    deals: Deals,
    progress: Callable[[float], None],
    task: Callable[[list[Any], Alive, float], int] | None = None,
  ) -> None:
    """Takes a game, and what else decides.

    Args:
      view: the game.
      deals: of it.
      progress: called at a terminal with the share of the tree that this is.
      task: called with the arguments of `visit` for subtrees at a certain depth; returns what the edge above has as
        its child. None to walk them here.
    """
    self._view, self._deals, self._progress, self._task = view, deals, progress, task
    self._player, self._kind, self._matrix = array("b"), array("i"), array("i")
    self._first_edge, self._action, self._below = array("q"), array("i"), array("i")
    self._hashes = array("q")
    self._matrices: list[Float64s] = []
    self._range = self._sums = (np.inf, -np.inf)
    self._alive: dict[tuple[bytes, bytes], Alive] = {}
    self._known_matrices: dict[tuple[int, bytes], int] = {}
    root_type = type(view.new_initial_state())
    self._mover, self._child = root_type.current_player, root_type.child
    self._apply = root_type.apply_action

  def piece(self) -> Piece:
    """Returns what has been walked."""
    return Piece(
      player=np.array(self._player, np.int8),
      kind=np.array(self._kind, np.int32),
      first_edge=np.array(self._first_edge, np.int64),
      action=np.array(self._action, np.int32),
      child=np.array(self._below, np.int32),
      matrix=np.array(self._matrix, np.int32),
      hashes=np.array(self._hashes, np.int64),
      places=[alive.places for alive in self._alive.values()],
      weights=[alive.weights for alive in self._alive.values()],
      matrices=self._matrices,
      payoff_range=self._range,
      sums=self._sums,
    )

  def visit(self, states: list[Any], alive: Alive, share: float = 1.0, depth: int = 0) -> int:
    """Walks all that follows, with the states that are alive, which it consumes.

    Args:
      states: those of the deals that are alive.
      alive: which these are.
      share: of the tree, for who watches.
      depth: how many public actions are above.

    Returns:
      What the edge above has as its child.
    """
    movers = list(map(self._mover, states))
    player = movers[0]
    if movers.count(player) != len(states):
      raise _refused("who is to move depends on private types", states[0])
    if player == _TERMINAL:
      return self._end(states, alive, share)
    if depth == _TASK_DEPTH and self._task is not None:
      return self._task(states, alive, share)
    node = len(self._player)
    if player == CHANCE:
      branches = self._chance_moves(states, alive)
      actions = sorted(branches)
    elif 0 <= player < 2:
      actions = self._decision(states, alive, player)
    else:
      raise unknown_player(states[0])
    self._player.append(player)
    self._kind.append(alive.number)
    first = len(self._below)
    self._first_edge.append(first)
    self._action.extend(actions)
    self._below.extend(actions)
    share /= len(actions)
    # In the order in which histories sort as strings.
    order = sorted(range(len(actions)), key=lambda index: str(actions[index]))
    for index in order[: None if player == CHANCE else -1]:
      action, left, after = actions[index], states, alive
      if player == CHANCE:
        kept, after = branches[action]
        left = [states[k] for k in kept]
      below = list(map(self._child, left, itertools.repeat(action)))
      self._below[first + index] = self.visit(below, after, share, depth + 1)
    if player != CHANCE:
      # States become their own last children, which saves copies.
      deque(map(self._apply, states, itertools.repeat(actions[order[-1]])), 0)
      self._below[first + order[-1]] = self.visit(states, alive, share, depth + 1)
    return node

  def alive_of(self, places: Int64s, weights: Float64s) -> Alive:
    """Returns the deals at some places, with weights; the same object for the same ones."""
    key = places.tobytes(), weights.tobytes()
    if key not in self._alive:
      self._alive[key] = Alive(len(self._alive), self._deals, places, weights)
    return self._alive[key]

  def _decision(self, states: list[Any], alive: Alive, player: int) -> list[int]:
    """Checks a node where a player decides; returns the actions."""
    legal = list(map(self._view.legal_actions, states))
    actions = legal[0]
    if legal.count(actions) != len(states):
      raise _refused("legal actions depend on private types", states[0])
    check_actions(self._view, states[0], actions)
    names = list(map(self._view.infostate, states))
    own = [names[k] for k in alive.firsts[player]]
    if names != [names[k] for k in alive.same[player]]:
      raise _refused("an infostate is no function of the own type and what all have seen", states[0])
    self._hashes.extend(map(hash, own))
    return actions

  def _chance_moves(
    self, states: list[Any], alive: Alive
  ) -> dict[int, tuple[list[int], Alive]]:
    """Returns, by outcome, which states it is possible in, and what is alive after it."""
    outcomes = [dict(chance_outcomes(self._view, state)) for state in states]
    result = {}
    for action in sorted(set().union(*outcomes)):
      chances = np.array([own.get(action, 0.0) for own in outcomes])
      kept = np.flatnonzero(chances > 0)
      if len(kept):
        after = self.alive_of(alive.places[kept], alive.weights[kept] * chances[kept])
        result[action] = kept.tolist(), after
    return result

  def _end(self, states: list[Any], alive: Alive, share: float) -> int:
    """Notes a terminal."""
    self._progress(share)
    returns = list(map(self._view.returns, states))
    found = array("d", itertools.chain.from_iterable(returns)).tobytes()
    key = alive.number, found
    if key not in self._known_matrices:
      for state, own in zip(states, returns, strict=True):
        if len(own) != 2:
          raise wrong_returns(state, own, 2)
      values = np.frombuffer(found).reshape(-1, 2)
      sums = values.sum(axis=1)
      if not np.isfinite(values).all():
        wrong = int(np.flatnonzero(~np.isfinite(sums))[0])
        raise errors.InvalidPayoffError(
          f"The return of a player is {returns[wrong]} after the history [{states[wrong].history_str()}]."
        )
      self._range = _widened(self._range, values)
      self._sums = _widened(self._sums, sums)
      shape = self._deals.num_types
      matrix = np.zeros((2, shape[0] * shape[1]))
      for player in (0, 1):
        np.add.at(matrix[player], alive.cells, values[:, player] * alive.weights)
      self._known_matrices[key] = len(self._matrices)
      self._matrices.append(matrix.reshape(2, *shape))
    self._matrix.append(self._known_matrices[key])
    return -len(self._matrix)


def _widened(bounds: tuple[float, float], numbers: Float64s) -> tuple[float, float]:
  """Returns bounds that hold for these numbers too."""
  return min(bounds[0], float(numbers.min())), max(bounds[1], float(numbers.max()))


def _refused(reason: str, state: Any = None) -> errors.UnsupportedGameError:
  """Returns the error for a game that is not one of private types."""
  where = "" if state is None else f" after the history [{state.history_str()}]"
  return errors.UnsupportedGameError(
    f"This is no game of private types and public actions: {reason}{where}. "
    "compile_game(game, vector_form=False) lists its leaves."
  )


def walk_pieces(
  view: GameView,
  deals: Deals,
  states: list[Any],
  weights: Float64s,
  progress: Callable[[float, int], None],
  claim: Callable[[int], bool],
) -> dict[int, Piece]:
  """Walks the top of the public tree, and some of the subtrees below it, the tasks.

  Args:
    view: the game.
    deals: of it.
    states: of all deals.
    weights: the probability of each deal that is walked, 0 of others.
    progress: see `TypedWalk`.
    claim: called with the number of each task, in order; says whether to walk it.

  Returns:
    The top as piece -1, and the pieces of the tasks that were claimed.
  """
  pieces: dict[int, Piece] = {}
  numbers = itertools.count()

  def task(left: list[Any], alive: Alive, share: float) -> int:
    number = next(numbers)
    if claim(number):
      walk = TypedWalk(view, deals, progress)
      walk.visit(left, walk.alive_of(alive.places, alive.weights), share)
      pieces[number] = walk.piece()
    return TASK + number

  top = TypedWalk(view, deals, progress, task)
  places = np.flatnonzero(weights > 0)
  top.visit([states[k].clone() for k in places], top.alive_of(places, weights[places]))
  return {-1: top.piece()} | pieces


def join(deals: Deals, pieces: Sequence[Piece]) -> TypedTree:
  """Puts the pieces of a tree together: the top, then all tasks in order.

  Raises:
    UnsupportedGameError: an infostate belongs to two nodes.
  """
  hashes = np.sort(np.concatenate([piece.hashes for piece in pieces]))
  if (hashes[1:] == hashes[:-1]).any():
    raise _refused("what a player has seen does not tell two places in the game apart")
  ends = [np.cumsum([0, *map(len, own)]) for own in zip(*(piece[:6] for piece in pieces), strict=True)]
  nodes, edges, terminals = ends[0], ends[3], ends[5]
  # What is the same in several pieces gets one number.
  kinds: dict[tuple[bytes, bytes], int] = {}
  known: dict[bytes, int] = {}
  alive, matrices = [], []
  kind, child, matrix = [], [], []
  for number, piece in enumerate(pieces):
    here = []
    for places, weights in zip(piece.places, piece.weights, strict=True):
      here.append(kinds.setdefault((places.tobytes(), weights.tobytes()), len(kinds)))
      if len(kinds) > len(alive):
        alive.append(np.zeros(len(deals.weights)))
        alive[-1][places] = weights
    kind.append(np.array(here, np.int32)[piece.kind])
    here = []
    for own in piece.matrices:
      here.append(known.setdefault(own.tobytes(), len(known)))
      if len(known) > len(matrices):
        matrices.append(own)
    matrix.append(np.array(here, np.int32)[piece.matrix])
    below = piece.child.astype(np.int64)
    moved = np.where(below < 0, below - terminals[number], below + nodes[number])
    # Tasks are the pieces behind the top; the first node of each is its root.
    is_task = below >= TASK
    moved[is_task] = nodes[1 + below[is_task] - TASK]
    child.append(moved.astype(np.int32))
  low, high = np.min([piece.sums[0] for piece in pieces]), np.max([piece.sums[1] for piece in pieces])
  return TypedTree(
    deals=deals,
    weights=np.array(alive),
    player=np.concatenate([piece.player for piece in pieces]),
    kind=np.concatenate(kind),
    first_edge=np.append(
      np.concatenate([piece.first_edge + edges[k] for k, piece in enumerate(pieces)]), edges[-1]
    ),
    action=np.concatenate([piece.action for piece in pieces]),
    child=np.concatenate(child),
    matrix=np.concatenate(matrix),
    matrices=np.array(matrices),
    payoff_range=(
      min(piece.payoff_range[0] for piece in pieces),
      max(piece.payoff_range[1] for piece in pieces),
    ),
    constant_sum=float(low) if high - low <= _TOLERANCE * max(1.0, abs(low), abs(high)) else None,
  )
