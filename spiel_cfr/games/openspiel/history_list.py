"""The walk that lists histories: OpenSpiel's states below some roots, in preorder, as columns of numbers."""

import array
import math
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s
from spiel_cfr.games.openspiel import answers
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import ReturnsCheck

# CHANCE, TERMINAL: movers that are not players. NONE: an undefined element of a column.
CHANCE, TERMINAL = -1, -2
NONE = -1
COLUMNS = ("parent", "action", "move", "mover", "infoset", "length")
# The chance probabilities of a player's moves: none.
_CERTAIN: list[float] = []
# Number of histories between two checks of the limits.
_BETWEEN_CHECKS = 500
# An action as OpenSpiel numbers it, and its place among the moves of its history.
Move: TypeAlias = tuple[int, int]
# (state, player to move) -> (number of the infoset, its moves in the order of a stack: the last one is explored first).
# The walk ends at a history without moves.
Decide: TypeAlias = Callable[[Any, int], tuple[int, list[Move]]]


class HistoryList:
  """A table of histories, one row for each.

  Attributes:
    chances: float64 (histories,). The probability of the last move of each history if it is chance's; otherwise 1.
    returns: list of tuples. The returns of the terminal histories, in order.
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
      decide: called in order with each state at which a player moves; returns its infoset and moves.
      deadline: time after which the walk stops, by `time.perf_counter`.
      advice: end of the message if there are too many histories.
    """
    self._view, self._max_nodes, self._decide = view, max_nodes, decide
    self._deadline, self._advice = deadline, advice
    self._check = ReturnsCheck(view)
    self._rows, self.chances = array.array("i"), array.array("d")
    self.returns: list[tuple[float, ...]] = []

  def columns(self) -> dict[str, Int64s]:
    """Returns the table by `COLUMNS`, each int64 (histories,).

    `parent` is the history before the last move, or `NONE`. `action` is that move in OpenSpiel's numbers, and `move`
    its place among the moves there. `mover` is a player, `CHANCE` or `TERMINAL`. `infoset` is the number from `decide`,
    or `NONE`. `length` is the number of moves.
    """
    rows = np.array(self._rows, np.int64).reshape(-1, len(COLUMNS))
    return dict(zip(COLUMNS, np.ascontiguousarray(rows.T), strict=True))

  def add(self, root: Any) -> None:
    """Adds a state and all that follow it. Actions are explored in the order of their names as strings.

    Raises:
      GameTooLargeError: there are more histories than `max_nodes`, or the deadline has passed.
      GameError: see `state_checks`; also the errors of `decide`.
    """
    try:
      self._add(root.clone())
    except (errors.SpielCFRError, MemoryError):
      raise
    except Exception as error:  # OpenSpiel raises one where parameters don't go together.
      raise answers.cannot_be_walked(root, error) from error

  def _add(self, root: Any) -> None:
    view, checked, check_at = self._view, set(self.returns), len(self.chances)
    decide, mover_of, child_of = self._decide, view.mover, view.child
    add, add_chance, add_returns = self._rows.extend, self.chances.append, self.returns.append
    node, begin = check_at, len(root.history())
    stack: list[tuple[Any, int, int, int, float, int]] = [(root, NONE, NONE, NONE, 1.0, begin)]
    push, pop = stack.append, stack.pop
    while stack:
      state, parent, action, place, chance, length = pop()
      if node >= check_at:
        if node >= self._max_nodes or time.perf_counter() > self._deadline:
          raise errors.GameTooLargeError(
            f"{view.game} has more than {self._max_nodes:,} histories, or than can be listed in time."
            f"{self._advice}"
          )
        check_at = min(self._max_nodes, node + _BETWEEN_CHECKS)
      add_chance(chance)
      player = mover_of(state)
      if player == answers.TERMINAL:
        add((parent, action, place, TERMINAL, NONE, length))
        returns = tuple(view.returns(state))
        if returns not in checked:
          self._check(state, returns)
          checked.add(returns)
        add_returns(returns)
        node += 1
        continue
      infoset, chances = NONE, _CERTAIN
      if player >= 0:
        infoset, moves = decide(state, player)
      else:
        player, outcomes = CHANCE, view.chance_outcomes(state)
        moves = in_order([outcome for outcome, _ in outcomes])
        chances = [probability for _, probability in outcomes]
      add((parent, action, place, player, infoset, length))
      if not moves:
        node += 1
        continue
      length += 1
      for action, place in moves[:-1]:
        chance = chances[place] if chances else 1.0
        push((child_of(state, action), node, action, place, chance, length))
      # The state becomes its own first child, which saves a copy.
      action, place = moves[-1]
      view.apply(state, action)
      push((state, node, action, place, chances[place] if chances else 1.0, length))
      node += 1


def in_order(actions: list[int]) -> list[Move]:
  """Returns moves in the order of a stack: the last one, whose name sorts first as a string, is explored first."""
  return sorted(zip(actions, range(len(actions)), strict=True), key=_name, reverse=True)


def _name(move: Move) -> str:
  return str(move[0])
