"""Walks the public tree of a game of private types, with a state for each deal, and checks that it is one.

That a game is of this kind is found out, never taken on trust: at every node all states must have the same player to
move and the same legal actions, the infostate must be a function of the owner's type there and nothing else, and no
other node may have it. What differs anywhere, however deep, is refused by name.
"""

import itertools
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import (
  ReturnsCheck,
  cannot_be_walked,
  chance_outcomes,
  check_actions,
  unknown_player,
)
from spiel_cfr.games.vector.deals import RULED_OUT, Deals, refused
from spiel_cfr.games.vector.public_tree import CHANCE
from spiel_cfr.games.vector.tree_pieces import TASK, Piece

_TERMINAL = int(pyspiel.PlayerId.TERMINAL)
# Public actions after which subtrees are tasks of their own, which processes share.
_TASK_DEPTH = 3
# Of different matrices of payoffs, for each player: 134 MB.
_MOST_CELLS = 1 << 24


class Alive:
  """The deals that are possible at a node, each with a state there, and what is the same at all such nodes."""

  def __init__(
    self, number: int, deals: Deals, which: Int64s, weights: Float64s, is_duplicate: Bools
  ) -> None:
    self.number, self.which, self.weights = number, which, weights
    own, other = deals.types[:, which]
    self.cells = own * deals.num_types[1] + other
    # Which states are there for comparison only, and the state that has the same types as each of these.
    duplicates = np.flatnonzero(is_duplicate[which])
    _, first, which = np.unique(self.cells, return_index=True, return_inverse=True)
    self.duplicates = list(zip(duplicates.tolist(), first[which][duplicates].tolist(), strict=True))
    # By player: the first of the states with each of the types, and for each state the first with its type.
    self.firsts: list[list[int]] = []
    self.same: list[list[int]] = []
    for types in (own, other):
      _, first, which = np.unique(types, return_index=True, return_inverse=True)
      self.firsts.append(first.tolist())
      self.same.append(first[which].tolist())


class TypedWalk:
  """A walk of a public tree, or of a subtree of it."""

  def __init__(
    self,
    view: GameView,
    deals: Deals,
    is_duplicate: Bools,
    progress: Callable[[float], None],
    task: Callable[[list[Any], Alive, float], int] | None = None,
  ) -> None:
    """Takes a game, its deals, and which of these are compared with the one that stands for their pair of types.

    `progress` is called at a terminal with the share of the tree that this is; `task`, if there is one, with the
    arguments of `visit` in place of a walk through a subtree at a certain depth.
    """
    self._view, self._deals, self._progress, self._task = view, deals, progress, task
    self._is_duplicate = is_duplicate
    self._player, self._kind, self._matrix = array("b"), array("i"), array("i")
    self._first_edge, self._action, self._below = array("q"), array("i"), array("i")
    self._asked: list[Any] = []
    self._hashes = array("q"), array("q")
    self._matrices: list[Float64s] = []
    self._range = self._sums = (np.inf, -np.inf)
    self._check = ReturnsCheck(view)
    self._alive: dict[tuple[bytes, bytes], Alive] = {}
    self._known_matrices: dict[tuple[int, bytes], int] = {}
    root_type = type(view.new_initial_state())
    self._mover, self._child = root_type.current_player, root_type.child
    self._apply = root_type.apply_action

  def _piece(self) -> Piece:
    return Piece(
      player=np.array(self._player, np.int8),
      kind=np.array(self._kind, np.int32),
      first_edge=np.array(self._first_edge, np.int64),
      action=np.array(self._action, np.int32),
      child=np.array(self._below, np.int32),
      matrix=np.array(self._matrix, np.int32),
      hashes=[np.array(own, np.int64) for own in self._hashes],
      alive=[own.which[~self._is_duplicate[own.which]] for own in self._alive.values()],
      weights=[own.weights[~self._is_duplicate[own.which]] for own in self._alive.values()],
      matrices=self._matrices,
      payoff_range=self._range,
      sums=self._sums,
    )

  def walk(self, states: list[Any], alive: Alive, share: float) -> Piece:
    """Walks all that follows; arguments as of `visit`, errors of `walk_typed_tree`."""
    try:
      self.visit(states, alive, share)
    except (errors.SpielCFRError, MemoryError):
      raise
    except RecursionError as error:
      raise refused("it is deeper than Python's recursion limit", states[0]) from error
    # Games that are written in Python may answer and raise anything.
    except Exception as error:
      raise cannot_be_walked(self._asked[0], error) from error
    return self._piece()

  def visit(self, states: list[Any], alive: Alive, share: float, depth: int = 0) -> int:
    """Walks all that follows the states of the deals that are alive, which it consumes.

    It is this share of the tree, and so many public actions are above. Returns what the edge above has as its child.
    """
    self._asked = states
    movers = list(map(self._mover, states))
    player = movers[0]
    if movers.count(player) != len(states):
      raise refused("who is to move depends on private types", _other(states, movers))
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
      self._asked = left
      below = list(map(self._child, left, itertools.repeat(action)))
      self._below[first + index] = self.visit(below, after, share, depth + 1)
    if player != CHANCE:
      # States become their own last children, which saves copies.
      self._asked = states
      deque(map(self._apply, states, itertools.repeat(actions[order[-1]])), 0)
      self._below[first + order[-1]] = self.visit(states, alive, share, depth + 1)
    return node

  def alive_of(self, which: Int64s, weights: Float64s) -> Alive:
    """Returns some deals, with weights; the same object for the same ones."""
    key = which.tobytes(), weights.tobytes()
    if key not in self._alive:
      self._alive[key] = Alive(len(self._alive), self._deals, which, weights, self._is_duplicate)
    return self._alive[key]

  def _decision(self, states: list[Any], alive: Alive, player: int) -> list[int]:
    """Checks a node where a player decides; returns the actions."""
    legal = list(map(self._view.legal_actions, states))
    actions = legal[0]
    if legal.count(actions) != len(states):
      raise refused("legal actions depend on private types", _other(states, legal))
    check_actions(self._view, states[0], actions)
    names = list(map(self._view.infostate, states))
    own = [names[k] for k in alive.firsts[player]]
    expected = [names[k] for k in alive.same[player]]
    if names != expected:
      wrong = [k for k, name in enumerate(names) if name != expected[k]]
      raise refused(
        "an infostate is no function of the own type and what all have seen", states[wrong[0]]
      )
    self._hashes[player].extend(map(hash, own))
    return actions

  def _chance_moves(self, states: list[Any], alive: Alive) -> dict[int, tuple[list[int], Alive]]:
    """Returns, by outcome, which states it is possible in, and what is alive after it."""
    listed = [chance_outcomes(self._view, state) for state in states]
    outcomes = list(map(dict, listed))
    if list(map(len, outcomes)) != list(map(len, listed)):
      raise refused("chance has the same outcome twice", states[0])
    self._compare(states, outcomes, alive)
    result = {}
    for action in sorted(set().union(*outcomes)):
      chances = np.array([own.get(action, RULED_OUT) for own in outcomes])
      kept = np.flatnonzero(chances >= 0)
      after = self.alive_of(alive.which[kept], alive.weights[kept] * chances[kept])
      result[action] = kept.tolist(), after
    return result

  def _compare(self, states: list[Any], answers: list[Any], alive: Alive) -> None:
    """Checks that states of deals that nobody tells apart answer the same."""
    for duplicate, first in alive.duplicates:
      if answers[duplicate] != answers[first] or duplicate == first:
        raise refused("two deals that both players take for the same one differ", states[duplicate])

  def _end(self, states: list[Any], alive: Alive, share: float) -> int:
    self._progress(share)
    returns = list(map(self._view.returns, states))
    self._compare(states, returns, alive)
    found = array("d", itertools.chain.from_iterable(returns)).tobytes()
    key = alive.number, found
    if key not in self._known_matrices:
      deque(map(self._check, states, returns), 0)
      values = np.frombuffer(found).reshape(-1, 2)
      self._range = _widened(self._range, values)
      self._sums = _widened(self._sums, values.sum(axis=1))
      shape = self._deals.num_types
      if (len(self._matrices) + 1) * shape[0] * shape[1] > _MOST_CELLS:
        raise refused("payoffs hardly repeat, so that its leaves take less memory")
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


def walk_pieces(
  view: GameView,
  deals: Deals,
  states: list[Any],
  weights: Float64s,
  progress: Callable[[float], None],
  claim: Callable[[int], bool],
  deliver: Callable[[int, Piece], None],
) -> None:
  """Walks the top of the public tree, and some of the subtrees below it, the tasks; arguments as of `walk_typed_tree`.

  Deals that are ruled out because others have the same types are walked through the top as well, and one of them
  through each task: with all that is checked at a node, they must be like those that stand for them.

  `claim`, called with the number of each task in order, says whether to walk it; `deliver` is called with the numbers
  and pieces of these, and then with -1 and the top.
  """
  numbers = itertools.count()

  def task(left: list[Any], alive: Alive, share: float) -> int:
    number = next(numbers)
    if claim(number):
      walk = TypedWalk(view, deals, is_duplicate, progress)
      # One duplicate, another one in each task.
      kept = ~is_duplicate[alive.which]
      duplicates = np.flatnonzero(~kept)
      kept[duplicates[number % max(1, len(duplicates)) :][:1]] = True
      here = np.flatnonzero(kept)
      there = walk.alive_of(alive.which[here], alive.weights[here])
      deliver(number, walk.walk([left[k] for k in here], there, share))
    return TASK + number

  is_duplicate = weights < 0
  top = TypedWalk(view, deals, is_duplicate, progress, task)
  everywhere = top.alive_of(np.arange(len(weights)), np.maximum(weights, 0))
  deliver(-1, top.walk([state.clone() for state in states], everywhere, 1.0))


def _other(states: list[Any], answers: list[Any]) -> Any:
  """Returns the first state that does not answer as the very first."""
  return next(state for state, answer in zip(states, answers, strict=True) if answer != answers[0])
