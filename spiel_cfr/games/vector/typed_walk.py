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
from typing import Any

import numpy as np
import pyspiel
import tqdm

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
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
_CHECK_EVERY = 1 << 12
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


class _Alive:
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


class TypedWalk:
  """A walk of a public tree; arrays as of `TypedTree`, of what has been walked so far.

  Attributes:
    hashes: of all infostates, to find those that two nodes have; that hashes collide only refuses a game.
    matrices: of returns times weights, each different one once.
    payoff_range: as of `TypedTree`.
    sums: smallest and largest sum of the players' returns.
  """

  def __init__(
    self, view: GameView, deals: Deals, watch: Callable[["TypedWalk"], None] = lambda walk: None
  ) -> None:
    """Takes a game, and a function that is called every few thousand nodes."""
    self._view, self._deals, self._watch = view, deals, watch
    self.player, self.kind, self.matrix = array("b"), array("i"), array("i")
    self.first_edge, self.action, self.child = array("q"), array("i"), array("i")
    self.hashes = array("q")
    self.matrices: list[Float64s] = []
    self.payoff_range = self.sums = (np.inf, -np.inf)
    self.alive: list[_Alive] = []
    self._alive_by_content: dict[tuple[bytes, bytes], _Alive] = {}
    self._matrix_by_content: dict[tuple[int, bytes], int] = {}
    root_type = type(view.new_initial_state())
    self._mover, self._child = root_type.current_player, root_type.child
    self._apply = root_type.apply_action

  def visit(self, states: list[Any], alive: _Alive) -> int:
    """Walks all that follows, with the states that are alive, which it consumes.

    Returns:
      What the edge above has as its child.
    """
    movers = list(map(self._mover, states))
    player = movers[0]
    if movers.count(player) != len(states):
      raise _refused("who is to move depends on private types", states[0])
    if player == _TERMINAL:
      return self._end(states, alive)
    node = len(self.player)
    if node % _CHECK_EVERY == 0:
      self._watch(self)
    if player == CHANCE:
      branches = self._chance_moves(states, alive)
      actions = sorted(branches)
    elif 0 <= player < 2:
      actions = self._decision(states, alive, player)
    else:
      raise unknown_player(states[0])
    self.player.append(player)
    self.kind.append(alive.number)
    first = len(self.child)
    self.first_edge.append(first)
    self.action.extend(actions)
    self.child.extend(actions)
    # In the order in which histories sort as strings.
    order = sorted(range(len(actions)), key=lambda index: str(actions[index]))
    for index in order[: None if player == CHANCE else -1]:
      action, left, after = actions[index], states, alive
      if player == CHANCE:
        kept, after = branches[action]
        left = [states[k] for k in kept]
      below = list(map(self._child, left, itertools.repeat(action)))
      self.child[first + index] = self.visit(below, after)
    if player != CHANCE:
      # States become their own last children, which saves copies.
      deque(map(self._apply, states, itertools.repeat(actions[order[-1]])), 0)
      self.child[first + order[-1]] = self.visit(states, alive)
    return node

  def alive_of(self, places: Int64s, weights: Float64s) -> _Alive:
    """Returns the deals at some places, with weights; the same object for the same ones."""
    key = places.tobytes(), weights.tobytes()
    if key not in self._alive_by_content:
      self._alive_by_content[key] = _Alive(len(self.alive), self._deals, places, weights)
      self.alive.append(self._alive_by_content[key])
    return self._alive_by_content[key]

  def _decision(self, states: list[Any], alive: _Alive, player: int) -> list[int]:
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
    self.hashes.extend(map(hash, own))
    return actions

  def _chance_moves(
    self, states: list[Any], alive: _Alive
  ) -> dict[int, tuple[list[int], _Alive]]:
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

  def _end(self, states: list[Any], alive: _Alive) -> int:
    """Notes a terminal."""
    returns = list(map(self._view.returns, states))
    found = array("d", itertools.chain.from_iterable(returns)).tobytes()
    key = alive.number, found
    if key not in self._matrix_by_content:
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
      self.payoff_range = _widened(self.payoff_range, values)
      self.sums = _widened(self.sums, sums)
      shape = self._deals.num_types
      matrix = np.zeros((2, shape[0] * shape[1]))
      for player in (0, 1):
        np.add.at(matrix[player], alive.cells, values[:, player] * alive.weights)
      self._matrix_by_content[key] = len(self.matrices)
      self.matrices.append(matrix.reshape(2, *shape))
    self.matrix.append(self._matrix_by_content[key])
    return -len(self.matrix)


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


def walk_typed_tree(
  view: GameView, deals: Deals, states: list[Any], weights: Float64s
) -> TypedTree:
  """Walks the public tree."""
  walk = TypedWalk(view, deals)
  places = np.flatnonzero(weights > 0)
  walk.visit([states[k].clone() for k in places], walk.alive_of(places, weights[places]))
  hashes = np.sort(np.frombuffer(walk.hashes, np.int64))
  if (hashes[1:] == hashes[:-1]).any():
    raise _refused("what a player has seen does not tell two places in the game apart")
  alive = np.zeros((len(walk.alive), len(deals.weights)), bool)
  for own in walk.alive:
    alive[own.number, own.places] = True
  low, high = walk.sums
  return TypedTree(
    deals=deals,
    alive=alive,
    player=np.array(walk.player, np.int8),
    kind=np.array(walk.kind, np.int32),
    first_edge=np.append(np.array(walk.first_edge, np.int64), len(walk.child)),
    action=np.array(walk.action, np.int32),
    child=np.array(walk.child, np.int32),
    matrix=np.array(walk.matrix, np.int32),
    matrices=np.array(walk.matrices),
    payoff_range=walk.payoff_range,
    constant_sum=low if high - low <= _TOLERANCE * max(1.0, abs(low), abs(high)) else None,
  )
