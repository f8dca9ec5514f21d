"""The walk that finds the public tree of a game of private types. At each node it has a state for each deal.

The walk checks that types are private and everything else is public. At each node, all states must have the same player
to move and the same legal actions. The player's infostate must depend on its type only, and must not occur at another
node. A state that differs raises an error with its history.
"""

import itertools
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools, Float64s, Int64s
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL, cannot_be_walked
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import ReturnsCheck
from spiel_cfr.games.vector.deals import RULED_OUT, Deals, refused
from spiel_cfr.games.vector.tree_pieces import TASK, Piece

# Subtrees after this many public actions are tasks, which processes divide among them.
_TASK_DEPTH = 3
# Largest number of elements of all different payoff matrices of a player: 134 MB.
_MOST_CELLS = 1 << 24


class PossibleDeals:
  """The deals that are possible at nodes of one kind. Lists of states at such nodes are in the order of `deals`.

  Attributes:
    number: int. The number of the kind.
    deals: int64 (states,). The deal of each state.
    weights: float64 (states,). Chance's reach probability of each state.
    cells: int64 (states,). The index of each state's pair of types in a flattened matrix of types.
    duplicates: list of pairs of int. Each state that is only compared, and the state with the same types.
    firsts: for each player, list of int. The first state with each type.
    first_alike: for each player, list of int. For each state, the first state with its type.
  """

  def __init__(
    self, number: int, all_deals: Deals, deals: Int64s, weights: Float64s, is_duplicate: Bools
  ) -> None:
    """Takes the possible deals and their weights; `is_duplicate` marks those of `all_deals` that are only compared."""
    self.number, self.deals, self.weights = number, deals, weights
    first_types, second_types = all_deals.types[:, deals]
    self.cells = first_types * all_deals.num_types[1] + second_types
    duplicates = np.flatnonzero(is_duplicate[deals])
    _, first, pair = np.unique(self.cells, return_index=True, return_inverse=True)
    self.duplicates = list(zip(duplicates.tolist(), first[pair][duplicates].tolist(), strict=True))
    self.firsts: list[list[int]] = []
    self.first_alike: list[list[int]] = []
    for types in (first_types, second_types):
      _, first, number_of_type = np.unique(types, return_index=True, return_inverse=True)
      self.firsts.append(first.tolist())
      self.first_alike.append(first[number_of_type].tolist())


class TypedWalk:
  """A walk of a public tree, or of a subtree of it, that collects a `Piece`."""

  def __init__(
    self,
    view: GameView,
    deals: Deals,
    is_duplicate: Bools,
    progress: Callable[[float], None],
    task: Callable[[list[Any], PossibleDeals, float], int] | None = None,
  ) -> None:
    """Begins with an empty piece.

    Args:
      view: the game.
      deals: the deals.
      is_duplicate: bool (deals,). Whether a deal is only compared with another deal of the same types.
      progress: called at each terminal with its share of the tree.
      task: called with the arguments of `visit` in place of a walk through each task; None walks all subtrees.
    """
    self._view, self._deals, self._progress, self._task = view, deals, progress, task
    self._is_duplicate = is_duplicate
    self._player, self._kind, self._matrix = array("b"), array("i"), array("i")
    self._first_edge, self._action, self._child = array("q"), array("i"), array("i")
    self._states: list[Any] = []
    self._hashes = array("q"), array("q")
    self._matrices: list[Float64s] = []
    self._range = self._sums = (np.inf, -np.inf)
    self._check = ReturnsCheck(view)
    self._kinds: dict[tuple[bytes, bytes], PossibleDeals] = {}
    self._known_matrices: dict[tuple[int, bytes], int] = {}

  def _piece(self) -> Piece:
    """Returns the nodes that have been visited. Deals that are only compared are left out."""
    return Piece(
      player=np.array(self._player, np.int8),
      kind=np.array(self._kind, np.int32),
      first_edge=np.array(self._first_edge, np.int64),
      action=np.array(self._action, np.int32),
      child=np.array(self._child, np.int32),
      matrix=np.array(self._matrix, np.int32),
      hashes=[np.array(player_hashes, np.int64) for player_hashes in self._hashes],
      possible=[kind.deals[~self._is_duplicate[kind.deals]] for kind in self._kinds.values()],
      weights=[kind.weights[~self._is_duplicate[kind.deals]] for kind in self._kinds.values()],
      matrices=self._matrices,
      payoff_range=self._range,
      sums=self._sums,
    )

  def walk(self, states: list[Any], possible: PossibleDeals, share: float) -> Piece:
    """Walks a subtree and returns it; arguments as of `visit`, errors as of `walk_typed_tree`."""
    try:
      self.visit(states, possible, share)
    except (errors.SpielCFRError, MemoryError):
      raise
    except RecursionError as error:
      raise refused("it is deeper than Python's recursion limit", states[0]) from error
    # Games in Python may return and raise anything.
    except Exception as error:
      raise cannot_be_walked(self._states[0], error) from error
    return self._piece()

  def visit(self, states: list[Any], possible: PossibleDeals, share: float, depth: int = 0) -> int:
    """Walks a subtree with a state for each possible deal; changes the states.

    Args:
      states: the states at the root of the subtree.
      possible: the deals of the states.
      share: the estimated share of this subtree in the whole tree.
      depth: the number of public actions above.

    Returns:
      The element of `Piece.child` of the edge to the subtree.
    """
    self._states = states
    movers = list(map(self._view.mover, states))
    player = movers[0]
    if movers.count(player) != len(states):
      raise refused("the player to move depends on private types", _first_other(states, movers))
    if player == TERMINAL:
      return self._end(states, possible, share)
    if depth == _TASK_DEPTH and self._task is not None:
      return self._task(states, possible, share)
    node = len(self._player)
    if player == CHANCE:
      branches = self._chance_moves(states, possible)
      actions = sorted(branches)
    else:
      actions = self._decision(states, possible, player)
    self._player.append(player)
    self._kind.append(possible.number)
    first_edge = len(self._child)
    self._first_edge.append(first_edge)
    self._action.extend(actions)
    # Children are set after their visits.
    self._child.extend(actions)
    share /= len(actions)
    # Actions are explored in the order in which histories sort as strings.
    order = sorted(range(len(actions)), key=lambda index: str(actions[index]))
    for index in order[: None if player == CHANCE else -1]:
      action, before, possible_after = actions[index], states, possible
      if player == CHANCE:
        kept, possible_after = branches[action]
        before = [states[k] for k in kept]
      self._states = before
      after = list(map(self._view.child, before, itertools.repeat(action)))
      self._child[first_edge + index] = self.visit(after, possible_after, share, depth + 1)
    if player != CHANCE:
      # States become their own last children, which saves copies.
      self._states = states
      deque(map(self._view.apply, states, itertools.repeat(actions[order[-1]])), 0)
      self._child[first_edge + order[-1]] = self.visit(states, possible, share, depth + 1)
    return node

  def possible_deals(self, deals: Int64s, weights: Float64s) -> PossibleDeals:
    """Returns the `PossibleDeals` of a kind, given its deals and their weights; makes it if the kind is new."""
    key = deals.tobytes(), weights.tobytes()
    if key not in self._kinds:
      self._kinds[key] = PossibleDeals(
        len(self._kinds), self._deals, deals, weights, self._is_duplicate
      )
    return self._kinds[key]

  def _decision(self, states: list[Any], possible: PossibleDeals, player: int) -> list[int]:
    """Checks the states of a node at which a player moves, and keeps hashes of infostates; returns the actions."""
    legal = list(map(self._view.legal_actions, states))
    actions = legal[0]
    if legal.count(actions) != len(states):
      raise refused("legal actions depend on private types", _first_other(states, legal))
    names = list(map(self._view.infostate, states))
    expected = [names[k] for k in possible.first_alike[player]]
    if names != expected:
      wrong = [k for k, name in enumerate(names) if name != expected[k]]
      raise refused(
        "an infostate depends on more than its owner's type and public actions", states[wrong[0]]
      )
    self._hashes[player].extend(hash(names[k]) for k in possible.firsts[player])
    return actions

  def _chance_moves(
    self, states: list[Any], possible: PossibleDeals
  ) -> dict[int, tuple[list[int], PossibleDeals]]:
    """Returns, for each outcome, the indices of the states in which it is possible, and the possible deals after it."""
    listed = list(map(self._view.chance_outcomes, states))
    outcomes = list(map(dict, listed))
    if list(map(len, outcomes)) != list(map(len, listed)):
      raise refused("chance has the same outcome twice", states[0])
    self._compare(states, outcomes, possible)
    result = {}
    for action in sorted(set().union(*outcomes)):
      chances = np.array([of_state.get(action, RULED_OUT) for of_state in outcomes])
      kept = np.flatnonzero(chances >= 0)
      after = self.possible_deals(possible.deals[kept], possible.weights[kept] * chances[kept])
      result[action] = kept.tolist(), after
    return result

  def _compare(self, states: list[Any], answers: list[Any], possible: PossibleDeals) -> None:
    """Checks that states of deals with the same types give the same answers."""
    for duplicate, first in possible.duplicates:
      if answers[duplicate] != answers[first] or duplicate == first:
        raise refused("two deals that neither player tells apart differ", states[duplicate])

  def _end(self, states: list[Any], possible: PossibleDeals, share: float) -> int:
    """Adds a terminal and, if it is new, its matrix; returns the element of `Piece.child` of the edge above."""
    self._progress(share)
    returns = list(map(self._view.returns, states))
    self._compare(states, returns, possible)
    flat_returns = array("d", itertools.chain.from_iterable(returns)).tobytes()
    key = possible.number, flat_returns
    if key not in self._known_matrices:
      deque(map(self._check, states, returns), 0)
      values = np.frombuffer(flat_returns).reshape(-1, 2)
      self._range = _widened(self._range, values)
      self._sums = _widened(self._sums, values.sum(axis=1))
      shape = self._deals.num_types
      if (len(self._matrices) + 1) * shape[0] * shape[1] > _MOST_CELLS:
        raise refused("payoffs hardly repeat, so that a list of leaves takes less memory")
      matrix = np.zeros((2, shape[0] * shape[1]))
      for player in (0, 1):
        np.add.at(matrix[player], possible.cells, values[:, player] * possible.weights)
      self._known_matrices[key] = len(self._matrices)
      self._matrices.append(matrix.reshape(2, *shape))
    self._matrix.append(self._known_matrices[key])
    return -len(self._matrix)


def _widened(bounds: tuple[float, float], numbers: Float64s) -> tuple[float, float]:
  """Returns bounds that are widened to contain all of some numbers."""
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
  """Walks the top of the public tree, and those of the subtrees below it (tasks) that this process claims.

  A deal is a duplicate if another deal with the same types represents it. All duplicates are walked through the top of
  the tree, and one duplicate through each task. At each node they are compared with their representatives.

  Args:
    view: as of `walk_typed_tree`.
    deals: as of `walk_typed_tree`.
    states: as of `walk_typed_tree`.
    weights: as of `walk_typed_tree`.
    progress: called at each terminal with its share of the tree.
    claim: called with the number of each task in order; returns whether this process walks the task.
    deliver: called with the numbers and pieces of the claimed tasks, then with -1 and the top.
  """
  numbers = itertools.count()

  def task(task_states: list[Any], possible: PossibleDeals, share: float) -> int:
    number = next(numbers)
    if claim(number):
      walk = TypedWalk(view, deals, is_duplicate, progress)
      # One duplicate, a different one in each task.
      is_kept = ~is_duplicate[possible.deals]
      duplicates = np.flatnonzero(~is_kept)
      is_kept[duplicates[number % max(1, len(duplicates)) :][:1]] = True
      kept = np.flatnonzero(is_kept)
      kept_deals = walk.possible_deals(possible.deals[kept], possible.weights[kept])
      deliver(number, walk.walk([task_states[k] for k in kept], kept_deals, share))
    return TASK + number

  is_duplicate = weights < 0
  top = TypedWalk(view, deals, is_duplicate, progress, task)
  all_deals = top.possible_deals(np.arange(len(weights)), np.maximum(weights, 0))
  deliver(-1, top.walk([state.clone() for state in states], all_deals, 1.0))


def _first_other(states: list[Any], answers: list[Any]) -> Any:
  """Returns the first state whose answer differs from the first one's."""
  return next(state for state, answer in zip(states, answers, strict=True) if answer != answers[0])
