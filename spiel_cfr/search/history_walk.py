"""The walk that makes a `HistoryTree`: OpenSpiel's states as columns of numbers."""

import array
import time
from typing import Any

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
COLUMNS = ("parent", "action", "move", "mover", "infoset", "length", "first_knows", "second_knows")
# After how many histories a walk looks at the clock.
_BETWEEN_CHECKS = 500


class Walk:
  """The walk: columns that grow by a row a history."""

  def __init__(self, view: GameView, max_nodes: int, deadline: float) -> None:
    self.view, self.max_nodes, self.deadline = view, max_nodes, deadline
    self._check = ReturnsCheck(view)
    self.columns = {name: array.array("q") for name in COLUMNS}
    self.chances, self.returns = array.array("d"), []  # type: ignore[var-annotated]
    self.known: dict[tuple[int, str], int] = {}
    self.infosets: dict[tuple[int, str], int] = {}
    self.owner: list[int] = []
    self.legal: list[list[int]] = []

  def arrays(self) -> list[Int64s]:
    """Returns the columns, as `COLUMNS` names them."""
    return [np.array(self.columns[name], np.int64) for name in COLUMNS]

  def visit(self, root: Any) -> None:
    """Adds a state and all that follows it."""
    state = root
    try:
      self._visit(root.clone())
    except (errors.SpielCFRError, MemoryError):
      raise
    except Exception as error:  # Games that are written in Python may raise anything.
      raise cannot_be_walked(state, error) from error

  def _visit(self, root: Any) -> None:
    view, columns, check_at = self.view, self.columns, 0
    add = [columns[name].append for name in COLUMNS]
    parents, chances = columns["parent"], self.chances.append
    stack = [(root, NONE, NONE, NONE, 1.0, len(root.history()))]
    while stack:
      state, parent, action, move, chance, length = stack.pop()
      node = len(parents)
      if node >= check_at:
        if node >= self.max_nodes or time.perf_counter() > self.deadline:
          raise errors.GameTooLargeError(
            f"There are more than {node:,} histories below this public state of {view.game}. Raise the limit "
            "(max_nodes, of bots max_histories), or the time."
          )
        check_at = min(self.max_nodes, node + _BETWEEN_CHECKS)
      player, infoset, first, second = state.current_player(), NONE, NONE, NONE
      chances(chance)
      if state.is_terminal():
        player = TERMINAL
        returns = view.returns(state)
        self._check(state, returns)
        self.returns.append(returns)
      elif state.is_chance_node():
        player = CHANCE
        outcomes = chance_outcomes(view, state)
        outcomes.sort(key=lambda outcome: str(outcome[0]), reverse=True)
        for outcome, probability in outcomes:
          stack.append((state.child(outcome), node, outcome, NONE, probability, length + 1))
      elif player in (0, 1):
        first, second = (self._knowledge(state, each) for each in (0, 1))
        name = (player, view.infostate(state))
        legal = view.legal_actions(state)
        infoset = self.infosets.get(name, NONE)
        if infoset == NONE:
          check_actions(view, state, legal)
          infoset = self.infosets[name] = len(self.legal)
          self.legal.append(legal)
          self.owner.append(player)
        elif legal != self.legal[infoset]:
          raise inconsistent_actions(view, state, self.legal[infoset])
        moves = sorted(enumerate(legal), key=lambda each: str(each[1]), reverse=True)
        for place, each in moves:
          stack.append((state.child(each), node, each, place, 1.0, length + 1))
      else:
        raise unknown_player(state)
      for put, number in zip(
        add, (parent, action, move, player, infoset, length, first, second), strict=True
      ):
        put(number)

  def _knowledge(self, state: Any, player: int) -> int:
    key = (player, self.view.named(state, player))
    return self.known.setdefault(key, len(self.known))
