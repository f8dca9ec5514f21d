"""Tables of histories: each row describes one history, such as its parent, its last action and the player to move.

A depth-first walk of OpenSpiel's states, from one or more root states on, makes the rows.
"""

import array
import math
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s
from spiel_cfr.games.openspiel import checked_calls
from spiel_cfr.games.openspiel.checked_calls import TERMINAL
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import ReturnsCheck

# An undefined element of a column or index.
NONE = -1
_COLUMNS = ("parent", "action", "index", "mover", "infoset", "length")
# Stands for the chance probabilities of moves that a player makes.
_NO_CHANCES: list[float] = []
# Number of histories between two checks of the limits.
_BETWEEN_CHECKS = 500
# An action as OpenSpiel numbers it, paired with its index among the actions of its history.
ActionPair: TypeAlias = tuple[int, int]
# (state, player to move) -> (number of the infoset, its actions to explore). The actions are a stack: the walk explores
# the last one first. If the list is empty, the walk goes no further, and the table has no histories after this state.
Decide: TypeAlias = Callable[[Any, int], tuple[int, list[ActionPair]]]


class HistoryList:
  """A table of histories, one row for each history.

  Attributes:
    chances: float64 (histories,). The probability of each history's last move if chance made it; otherwise 1.
    returns: list of tuples of floats. The returns of the terminal histories, in order.
  """

  def __init__(
    self,
    view: GameView,
    max_nodes: int,
    decide: Decide,
    deadline: float = math.inf,
    advice: str = "",
  ) -> None:
    """Makes an empty table.

    Args:
      view: the game.
      max_nodes: largest number of histories.
      decide: function that returns the infoset of a state and the actions to explore there; called with the states at
        which a player moves, in the order of the table.
      deadline: time of `time.perf_counter` after which the walk raises an error.
      advice: last sentence of the message of GameTooLargeError.
    """
    self._view, self._max_nodes, self._decide = view, max_nodes, decide
    self._deadline, self._advice = deadline, advice
    self._check = ReturnsCheck(view)
    self._rows, self.chances = array.array("i"), array.array("d")
    self.returns: list[tuple[float, ...]] = []

  def columns(self) -> dict[str, Int64s]:
    """Returns the columns of the table by name, each int64 (histories,).

    - `parent`: the history before the last move; `NONE` for a root.
    - `action`: the last move in OpenSpiel's numbers; `NONE` for a root.
    - `index`: the index of the last move among the actions of the parent; `NONE` for a root.
    - `mover`: the player to move, `CHANCE` or `TERMINAL` of `checked_calls`.
    - `infoset`: the number from `decide`; `NONE` where no player moves.
    - `length`: the number of moves.
    """
    rows = np.array(self._rows, np.int64).reshape(-1, len(_COLUMNS))
    return dict(zip(_COLUMNS, np.ascontiguousarray(rows.T), strict=True))

  def add(self, root: Any) -> None:
    """Adds a state and all states after it.

    Chance's outcomes are explored in the order of their numbers as strings, so that histories have the same order as in
    OpenSpiel's `TabularPolicy`; a player's actions in the order of `decide`.

    Raises:
      GameTooLargeError: there are more histories than `max_nodes`, or the deadline has passed.
      GameError: see `state_checks`; also the errors of `decide`.
    """
    try:
      self._add(root.clone())
    except (errors.SpielCFRError, MemoryError):
      raise
    # OpenSpiel raises an exception if the parameters of a game do not fit together, perhaps only at a rare state.
    except Exception as error:
      raise checked_calls.cannot_be_walked(root, error) from error

  def _add(self, root: Any) -> None:
    """Adds a state and all states after it. Changes the state."""
    view, checked, check_at = self._view, set(self.returns), len(self.chances)
    decide, mover_of, child_of = self._decide, view.mover, view.child
    add, add_chance, add_returns = self._rows.extend, self.chances.append, self.returns.append
    node, begin = check_at, len(root.history())
    stack: list[tuple[Any, int, int, int, float, int]] = [(root, NONE, NONE, NONE, 1.0, begin)]
    push, pop = stack.append, stack.pop
    while stack:
      state, parent, action, index, chance, length = pop()
      if node >= check_at:
        if node >= self._max_nodes or time.perf_counter() > self._deadline:
          is_over_limit = node >= self._max_nodes
          size = f"more than {self._max_nodes:,} histories"
          if not is_over_limit:
            size = f"too many histories to list in time (at least {node:,})"
          raise errors.GameTooLargeError(f"{view.game} has {size}.{self._advice}")
        check_at = min(self._max_nodes, node + _BETWEEN_CHECKS)
      add_chance(chance)
      player = mover_of(state)
      if player == TERMINAL:
        add((parent, action, index, TERMINAL, NONE, length))
        returns = tuple(view.returns(state))
        if returns not in checked:
          self._check(state, returns)
          checked.add(returns)
        add_returns(returns)
        node += 1
        continue
      infoset, chances = NONE, _NO_CHANCES
      if player >= 0:
        infoset, action_pairs = decide(state, player)
      else:
        outcomes = view.chance_outcomes(state)
        action_pairs = in_order([outcome for outcome, _ in outcomes])
        chances = [probability for _, probability in outcomes]
      add((parent, action, index, player, infoset, length))
      if not action_pairs:
        node += 1
        continue
      length += 1
      for action, index in action_pairs[:-1]:
        chance = chances[index] if chances else 1.0
        push((child_of(state, action), node, action, index, chance, length))
      # The state becomes its own first child, which saves a copy.
      action, index = action_pairs[-1]
      view.apply(state, action)
      push((state, node, action, index, chances[index] if chances else 1.0, length))
      node += 1


def in_order(actions: list[int]) -> list[ActionPair]:
  """Returns actions with their indices, as a stack: the action whose number is first as a string is last.

  A walk then visits histories in the order of OpenSpiel's `TabularPolicy`, which sorts them as strings.
  """
  return sorted(zip(actions, range(len(actions)), strict=True), key=_as_string, reverse=True)


def _as_string(action_pair: ActionPair) -> str:
  return str(action_pair[0])
