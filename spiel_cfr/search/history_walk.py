"""The walk that makes a `HistoryTree`: OpenSpiel's states as columns of numbers."""

import array
import time
from typing import Any, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Int64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.state_checks import (
  ReturnsCheck,
  cannot_be_walked,
  chance_outcomes,
  check_actions,
  inconsistent_actions,
  unknown_player,
)

CHANCE, TERMINAL = -1, -2
NONE = -1
COLUMNS = ("parent", "action", "move", "mover", "infoset", "length", "infostate_0", "infostate_1")
# After how many histories a walk looks at the clock.
_BETWEEN_CHECKS = 500
# As OpenSpiel numbers it, its place among a player's legal actions, chance's probability of it.
Move: TypeAlias = tuple[int, int, float]


class Walk:
  """The walk: a table that grows by a row a history, in preorder.

  Attributes:
    chances: of each history, chance's probability of the move that leads there; 1 where a player has moved.
    returns: of terminal histories.
    infostates: the number of each (player, information state string).
    infosets: by that number, each infoset's own number, legal actions, and moves as they are explored.
  """

  def __init__(self, view: GameView, max_nodes: int, deadline: float) -> None:
    self._view, self._max_nodes, self._deadline = view, max_nodes, deadline
    self._check = ReturnsCheck(view)
    self._rows, self.chances = array.array("q"), array.array("d")
    self.returns: list[tuple[float, ...]] = []
    self.infostates: dict[tuple[int, str], int] = {}
    self.infosets: dict[int, tuple[int, list[int], list[Move]]] = {}

  def columns(self) -> dict[str, Int64s]:
    """Returns the table, as `COLUMNS` names its columns."""
    rows = np.array(self._rows, np.int64).reshape(-1, len(COLUMNS))
    return dict(zip(COLUMNS, np.ascontiguousarray(rows.T), strict=True))

  def visit(self, root: Any) -> None:
    """Adds a state and all that follows it."""
    try:
      self._visit(root.clone())
    except (errors.SpielCFRError, MemoryError):
      raise
    except Exception as error:  # Games that are written in Python may raise anything.
      raise cannot_be_walked(root, error) from error

  def _visit(self, root: Any) -> None:
    view, infostates, infosets, fine = (
      self._view,
      self.infostates,
      self.infosets,
      set(self.returns),
    )
    named, legal_actions_of, returns_of = view.named, view.legal_actions, view.returns
    add, add_chance, add_returns = self._rows.extend, self.chances.append, self.returns.append
    node = check_at = len(self.chances)
    stack: list[tuple[Any, int, Move, int]] = [(root, NONE, (NONE, NONE, 1.0), len(root.history()))]
    while stack:
      state, parent, (action, place, chance), length = stack.pop()
      if node >= check_at:
        if node >= self._max_nodes or time.perf_counter() > self._deadline:
          raise errors.GameTooLargeError(
            f"There are more than {node:,} histories below this public state of {view.game}. Raise the limit "
            "(max_nodes, of bots max_histories), or the time."
          )
        check_at = min(self._max_nodes, node + _BETWEEN_CHECKS)
      add_chance(chance)
      player = state.current_player()
      if player in (0, 1):
        first = infostates.setdefault((0, named(state, 0)), len(infostates))
        second = infostates.setdefault((1, named(state, 1)), len(infostates))
        legal, own = legal_actions_of(state), second if player else first
        infoset = infosets.get(own)
        if infoset is None:
          check_actions(view, state, legal)
          moves = [(each, place, 1.0) for place, each in enumerate(legal)]
          infoset = infosets[own] = len(infosets), legal, _in_order(moves)
        elif legal != infoset[1]:
          raise inconsistent_actions(view, state, infoset[1])
        add((parent, action, place, player, infoset[0], length, first, second))
        moves = infoset[2]
      elif state.is_chance_node():
        add((parent, action, place, CHANCE, NONE, length, NONE, NONE))
        moves = _in_order([(each, NONE, likely) for each, likely in chance_outcomes(view, state)])
      elif state.is_terminal():
        add((parent, action, place, TERMINAL, NONE, length, NONE, NONE))
        returns = tuple(returns_of(state))
        if returns not in fine:
          self._check(state, returns)
          fine.add(returns)
        add_returns(returns)
        moves = []
      else:
        raise unknown_player(state)
      for move in moves[:-1]:
        stack.append((state.child(move[0]), node, move, length + 1))
      if moves:
        # The state becomes its own first child, which saves a copy.
        state.apply_action(moves[-1][0])
        stack.append((state, node, moves[-1], length + 1))
      node += 1


def _in_order(moves: list[Move]) -> list[Move]:
  """Returns moves as `games.openspiel.walk` explores them, the last one first."""
  return sorted(moves, key=lambda move: str(move[0]), reverse=True)
