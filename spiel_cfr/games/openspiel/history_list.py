"""Lists of histories: a walk of OpenSpiel's states below some roots, depth first, as a table of numbers."""

import array
import math
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s
from spiel_cfr.games.openspiel import checked_calls
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import ReturnsCheck

# CHANCE, TERMINAL: values of `mover` that are not players. NONE: an undefined element of a column.
CHANCE, TERMINAL = -1, -2
NONE = -1
COLUMNS = ("parent", "action", "move", "mover", "infoset", "length")
# The chance probabilities of a player's moves.
_NO_CHANCES: list[float] = []
# Number of histories between two checks of the limits.
_BETWEEN_CHECKS = 500
# An action as OpenSpiel numbers it, and its index among the moves of its history.
Move: TypeAlias = tuple[int, int]
# (state, player to move) -> (number of the infoset, its moves in the order of a stack: the last one is explored first).
# Histories after a state without moves are not listed.
Decide: TypeAlias = Callable[[Any, int], tuple[int, list[Move]]]


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
      decide: function that returns the infoset and moves of a state; called in order with each state of a player.
      deadline: time after which the walk raises an error, by `time.perf_counter`.
      advice: end of the message of GameTooLargeError.
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
    - `move`: the index of the last move among the moves of the parent; `NONE` for a root.
    - `mover`: the player to move, `CHANCE` or `TERMINAL`.
    - `infoset`: the number from `decide`; `NONE` where no player moves.
    - `length`: the number of moves.
    """
    rows = np.array(self._rows, np.int64).reshape(-1, len(COLUMNS))
    return dict(zip(COLUMNS, np.ascontiguousarray(rows.T), strict=True))

  def add(self, root: Any) -> None:
    """Adds a state and all states after it. Actions are explored in the order of their numbers as strings.

    Raises:
      GameTooLargeError: there are more histories than `max_nodes`, or the deadline has passed.
      GameError: see `state_checks`; also the errors of `decide`.
    """
    try:
      self._add(root.clone())
    except (errors.SpielCFRError, MemoryError):
      raise
    except Exception as error:  # OpenSpiel raises one if parameters don't go together.
      raise checked_calls.cannot_be_walked(root, error) from error

  def _add(self, root: Any) -> None:
    """Adds a state, which is changed, and all states after it."""
    view, checked, check_at = self._view, set(self.returns), len(self.chances)
    decide, mover_of, child_of = self._decide, view.mover, view.child
    add, add_chance, add_returns = self._rows.extend, self.chances.append, self.returns.append
    node, begin = check_at, len(root.history())
    stack: list[tuple[Any, int, int, int, float, int]] = [(root, NONE, NONE, NONE, 1.0, begin)]
    push, pop = stack.append, stack.pop
    while stack:
      state, parent, action, move, chance, length = pop()
      if node >= check_at:
        if node >= self._max_nodes or time.perf_counter() > self._deadline:
          raise errors.GameTooLargeError(
            f"{view.game} has more than {self._max_nodes:,} histories, or than can be listed in time."
            f"{self._advice}"
          )
        check_at = min(self._max_nodes, node + _BETWEEN_CHECKS)
      add_chance(chance)
      player = mover_of(state)
      if player == checked_calls.TERMINAL:
        add((parent, action, move, TERMINAL, NONE, length))
        returns = tuple(view.returns(state))
        if returns not in checked:
          self._check(state, returns)
          checked.add(returns)
        add_returns(returns)
        node += 1
        continue
      infoset, chances = NONE, _NO_CHANCES
      if player >= 0:
        infoset, moves = decide(state, player)
      else:
        player, outcomes = CHANCE, view.chance_outcomes(state)
        moves = in_order([outcome for outcome, _ in outcomes])
        chances = [probability for _, probability in outcomes]
      add((parent, action, move, player, infoset, length))
      if not moves:
        node += 1
        continue
      length += 1
      for action, move in moves[:-1]:
        chance = chances[move] if chances else 1.0
        push((child_of(state, action), node, action, move, chance, length))
      # The state becomes its own first child, which saves a copy.
      action, move = moves[-1]
      view.apply(state, action)
      push((state, node, action, move, chances[move] if chances else 1.0, length))
      node += 1


def in_order(actions: list[int]) -> list[Move]:
  """Returns moves in the order of a stack: the last one, whose number sorts first as a string, is explored first."""
  return sorted(zip(actions, range(len(actions)), strict=True), key=_as_string, reverse=True)


def _as_string(move: Move) -> str:
  return str(move[0])
