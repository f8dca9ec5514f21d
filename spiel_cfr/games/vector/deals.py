"""The deals of private types, and quick tests that a game is one of private types and public actions.

The tests run before the walk of the public tree and refuse most other games early. The walk itself checks all states.
"""

import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s, Int64s
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL, cannot_be_walked
from spiel_cfr.games.openspiel.game_size import SECONDS_BEFORE_ESTIMATE
from spiel_cfr.games.openspiel.game_view import GameView

MOST_DEALS = 20_000
# The weight of a deal that is impossible, or that another deal with the same pair of types represents. A deal that
# chance lists with probability 0 has weight 0; it has infosets, as in OpenSpiel's policies.
RULED_OUT = -1.0
# `try_out`: largest number of random histories, and of moves of all of them.
_HISTORIES, _MOVES = 1000, 20_000
# Number of random histories at which deals with the same types are compared, if not all deals are walked.
_COMPARED = 2000
# Largest number of moves of a history.
_LONGEST = 1000


def refused(reason: str, state: Any = None) -> errors.UnsupportedGameError:
  """Returns the error for a game that is not a game of private types."""
  where = "" if state is None else f" after the history [{state.history_str()}]"
  return errors.UnsupportedGameError(
    f"This is not a game of private types and public actions: {reason}{where}. "
    "compile_game(game, vector_form=False) lists its leaves."
  )


def _named(state: Any, error: Exception) -> Exception:
  """Returns the library's error for an exception of a game; the library's own errors and MemoryError stay the same."""
  if isinstance(error, errors.SpielCFRError | MemoryError):
    return error
  return cannot_be_walked(state, error)


class Deals(NamedTuple):
  """The deals of private types, in the order of histories sorted as strings.

  Attributes:
    paths: int64 (deals, moves). The actions of chance before the first move of a player, padded with -1.
    types: int64 (players, deals). The type of each player, numbered in order of discovery.
    weights: float64 (deals,). The probability of each deal.
  """

  paths: Int64s
  types: Int64s
  weights: Float64s

  @property
  def num_types(self) -> tuple[int, int]:
    """The number of types of each player."""
    first, second = (self.types.max(axis=1) + 1).tolist()
    return first, second


def find_deals(view: GameView) -> tuple[Deals, list[Any]]:
  """Lists the deals that chance can make before a player moves, and the state after each deal.

  Raises UnsupportedGameError unless the game has two players and at most `MOST_DEALS` deals, and a player moves after
  each deal; for other errors see `GameView`.
  """
  if view.num_players != 2:
    raise refused(f"it has {view.num_players} players, not two")
  paths: list[list[int]] = []
  states: list[Any] = []
  weights: list[float] = []
  names: list[list[str]] = []
  num_ways = 1
  state = view.new_initial_state()
  # An element is a state, the actions of chance that lead to it, and their probability.
  stack: list[tuple[Any, list[int], float]] = [(state, [], 1.0)]
  try:
    while stack:
      state, path, weight = stack.pop()
      mover = view.mover(state)
      if mover != CHANCE:
        if mover == TERMINAL:
          raise refused("it can end before a player moves", state)
        paths.append(path)
        states.append(state)
        weights.append(weight)
        names.append([view.named(state, player) for player in (0, 1)])
        continue
      outcomes = view.chance_outcomes(state)
      num_ways *= 1 if states else len(outcomes)
      if (
        len(stack) + len(states) + len(outcomes) > MOST_DEALS
        # The number of deals if chance had as many outcomes everywhere as before the first deal. A game in Python takes
        # seconds to list 20,000 deals.
        or num_ways > 1000 * MOST_DEALS
        or len(path) > _LONGEST
      ):
        raise refused(f"chance deals in more than {MOST_DEALS:,} ways before a player moves", state)
      outcomes.sort(key=lambda outcome: str(outcome[0]), reverse=True)
      stack += [(state.child(action), [*path, action], weight * p) for action, p in outcomes]
  # A game may have no infostate for the player who does not move.
  except Exception as error:
    raise _named(state, error) from error
  types = [_numbered(player_names) for player_names in zip(*names, strict=True)]
  moves = np.full((len(paths), max(map(len, paths))), -1, np.int64)
  for row, path in zip(moves, paths, strict=True):
    row[: len(path)] = path
  return Deals(moves, np.array(types), np.array(weights)), states


def _numbered(names: Sequence[str]) -> list[int]:
  """Numbers different names in order of discovery."""
  numbers: dict[str, int] = {}
  return [numbers.setdefault(name, len(numbers)) for name in names]


def one_per_pair(deals: Deals) -> Float64s:
  """Returns weights with one deal for each pair of types, float64 (deals,).

  The first deal of a pair has the probability of all its deals; the others are `RULED_OUT`.
  """
  first_types, second_types = deals.types
  _, first, pair = np.unique(
    first_types * deals.num_types[1] + second_types, return_index=True, return_inverse=True
  )
  result = np.full(len(first_types), RULED_OUT)
  result[first] = np.bincount(pair, deals.weights)
  return result


def count_nodes(
  view: GameView, state: Any, most: int, check_estimate: Callable[[], None] = lambda: None
) -> int:
  """Counts the nodes of the public tree below one deal, including terminals; other deals may reach more nodes.

  Args:
    view: the game.
    state: the state after the deal.
    most: number of nodes at which the count stops.
    check_estimate: called once if the count takes long; may raise an error.

  Raises:
    UnsupportedGameError: a history does not end.
  """
  count, stack = 0, [(state.clone(), 0)]
  deadline = time.perf_counter() + SECONDS_BEFORE_ESTIMATE
  try:
    while stack and count < most:
      if time.perf_counter() > deadline:
        deadline = math.inf
        check_estimate()
      state, moves = stack.pop()
      count += 1
      if not state.is_terminal():
        _check_length(state, moves)
        stack += [(state.child(action), moves + 1) for action in _observed(view, state)[1]]
  except Exception as error:
    raise _named(state, error) from error
  return count


def try_out(view: GameView, deals: Deals, states: Sequence[Any]) -> None:
  """Plays random histories; raises UnsupportedGameError if one does not end, or an infostate belongs to two nodes."""
  choose = random.Random(0)
  histories, moves = 0, 0
  state = states[0]
  # The type and the public actions that go with each observation of a player.
  known: dict[Any, tuple[int, list[int]]] = {}
  try:
    while histories < _HISTORIES and moves < _MOVES:
      histories += 1
      deal = choose.randrange(len(states))
      state, path = states[deal].clone(), list[int]()
      while not state.is_terminal():
        moves += 1
        _check_length(state, len(path))
        observation, actions = _observed(view, state)
        if not state.is_chance_node():
          player = observation[0]
          type_and_path = int(deals.types[player, deal]), [*path]
          if known.setdefault(observation, type_and_path) != type_and_path:
            raise refused(f"player {player} has the infostate of another place", state)
        path.append(choose.choice(actions))
        state.apply_action(path[-1])
  except Exception as error:
    raise _named(state, error) from error


def compare_alike(view: GameView, deals: Deals, states: Sequence[Any]) -> None:
  """Raises UnsupportedGameError if deals with the same types of both players differ in a random history."""
  first = np.flatnonzero(one_per_pair(deals) >= 0)
  first_of = dict(zip(map(tuple, deals.types[:, first].T.tolist()), first.tolist(), strict=True))
  others = np.setdiff1d(np.arange(len(states)), first).tolist()
  choose = random.Random(0)
  representative, other = states[0], states[0]
  try:
    for number in range(_COMPARED):
      deal = others[number % len(others)]
      representative = states[first_of[tuple(deals.types[:, deal].tolist())]].clone()
      other = states[deal].clone()
      while not representative.is_terminal():
        observation, actions = _observed(view, representative)
        if (observation, actions) != _observed(view, other):
          raise refused("two deals that neither player tells apart differ later", other)
        action = choose.choice(actions)
        representative.apply_action(action)
        other.apply_action(action)
      if not other.is_terminal() or list(view.returns(representative)) != list(view.returns(other)):
        raise refused("two deals that neither player tells apart end differently", other)
  except Exception as error:
    raise _named(other, error) from error


def _check_length(state: Any, moves: int) -> None:
  """Raises UnsupportedGameError for a state after too many moves of players and chance since the deal."""
  if moves > _LONGEST:
    raise refused(f"it goes on for more than {_LONGEST:,} moves", state)


def _observed(view: GameView, state: Any) -> tuple[Any, list[int]]:
  """Returns the observation of the player or of chance who moves at a state, and the actions there.

  A player observes its number and infostate, chance its outcomes and probabilities.
  """
  if state.is_terminal():
    return None, []
  if state.is_chance_node():
    outcomes = view.chance_outcomes(state)
    return outcomes, [action for action, _ in outcomes]
  return (state.current_player(), view.infostate(state)), view.legal_actions(state)
