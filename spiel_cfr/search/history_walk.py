"""Histories that search lists, with the infostates of both players at each."""

import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cfr._numba.arrays import Int64s
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.history_list import (
  CHANCE,
  NONE,
  TERMINAL,
  HistoryList,
  Move,
  in_order,
)
from spiel_cfr.games.openspiel.state_checks import check_actions, inconsistent_actions

__all__ = ["CHANCE", "NONE", "TERMINAL", "Walk"]

_ADVICE = " Raise the limit (max_nodes, of bots max_histories), or the time."


class Walk:
  """Lists histories of a two-player game.

  Attributes:
    infostates: the number of each (player, information state string).
    infosets: by that number, each infoset's own number, legal actions, and moves as they are explored.
  """

  def __init__(self, view: GameView, max_nodes: int, deadline: float) -> None:
    """Begins without histories; for arguments see `HistoryList`."""
    self._view, self._numbers = view, array.array("q")
    self._list = HistoryList(view, max_nodes, self._decide, deadline, _ADVICE)
    self.infostates: dict[tuple[int, str], int] = {}
    self.infosets: dict[int, tuple[int, list[int], list[Move]]] = {}

  @property
  def chances(self) -> Sequence[float]:
    """See `HistoryList`."""
    return self._list.chances

  @property
  def returns(self) -> list[tuple[float, ...]]:
    """See `HistoryList`."""
    return self._list.returns

  def visit(self, root: Any) -> None:
    """Adds a state and all that follow it."""
    self._list.add(root)

  def columns(self) -> dict[str, Int64s]:
    """Returns the columns of `HistoryList`, and "infostate_0" and "infostate_1": their numbers in `infostates`."""
    columns = self._list.columns()
    numbers = np.full((2, len(columns["mover"])), NONE)
    numbers[:, columns["mover"] >= 0] = np.array(self._numbers, np.int64).reshape(-1, 2).T
    return columns | {"infostate_0": numbers[0], "infostate_1": numbers[1]}

  def _decide(self, state: Any, player: int) -> tuple[int, list[Move]]:
    view, infostates = self._view, self.infostates
    both = [
      infostates.setdefault((each, view.named(state, each)), len(infostates)) for each in (0, 1)
    ]
    self._numbers.extend(both)
    legal, own = view.legal_actions(state), both[player]
    infoset = self.infosets.get(own)
    if infoset is None:
      check_actions(view, state, legal)
      infoset = self.infosets[own] = len(self.infosets), legal, in_order(legal)
    elif legal != infoset[1]:
      raise inconsistent_actions(view, state, infoset[1])
    return infoset[0], infoset[2]
