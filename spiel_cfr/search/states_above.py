"""Public states from the root down, found one after another in a game that is too large to be walked."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.games.openspiel.answers import CHANCE, TERMINAL
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.search.history_tree import connected

# (state, the player to move) -> probabilities of actions; None where the blueprint has none.
LookUp: TypeAlias = Callable[[Any, int], dict[int, float] | None]


class StateAbove:
  """A public state above all searches, where both players play the blueprint.

  Two histories belong to one public state if a player cannot tell them apart. Two histories at chance nodes belong to
  one public state if histories after them do. In games with perfect recall, `public_states` finds the same public
  states.

  Attributes:
    states: OpenSpiel's states, none of which is terminal.
    probabilities: float64 (3, states). The probabilities with which chance and each player play to each state.
  """

  def __init__(self, states: list[Any], probabilities: Float64s) -> None:
    self.states, self.probabilities = states, probabilities
    self._places = {tuple(state.history()): place for place, state in enumerate(states)}
    self._children: list[StateAbove] | errors.GameTooLargeError | None = None

  def child(
    self, history: tuple[int, ...], view: GameView, look_up: LookUp, limit: int
  ) -> "StateAbove":
    """Returns the public state of a history that is one move longer.

    Raises:
      GameTooLargeError: more histories than the limit are one move longer.
    """
    if self._children is None:
      try:
        self._children = self._split(view, look_up, limit)
      except errors.GameTooLargeError as error:
        self._children = error
    if isinstance(self._children, errors.GameTooLargeError):
      raise self._children
    return next(child for child in self._children if history in child._places)

  def _split(self, view: GameView, look_up: LookUp, limit: int) -> "list[StateAbove]":
    together = self._moved(view, look_up, limit)
    keys: dict[tuple[int, str | int], int] = {}
    joined: list[tuple[int, int]] = []
    after: list[StateAbove] = []
    for place, state in enumerate(together.states):
      for player in (0, 1) if view.mover(state) >= 0 else ():
        joined.append((place, keys.setdefault((player, view.named(state, player)), len(keys))))
    if any(view.mover(state) == CHANCE for state in together.states):
      # Chance nodes have no information states. Histories below them determine which chance nodes belong together.
      try:
        after = together._split(view, look_up, limit)
      except errors.GameTooLargeError:
        return [together]
      for place, child in enumerate(after):
        key = keys.setdefault((-1, place), len(keys))
        joined += {(together._places[history[:-1]], key) for history in child._places}
    groups = connected(len(together.states), *np.array(joined, np.int64).reshape(-1, 2).T)
    result = []
    for group in range(int(groups.max(initial=-1)) + 1):
      own = np.flatnonzero(groups == group)
      part = StateAbove([together.states[each] for each in own], together.probabilities[:, own])
      if after:
        part._children = [
          child for child in after if next(iter(child._places))[:-1] in part._places
        ]
      result.append(part)
    return result

  def _moved(self, view: GameView, look_up: LookUp, limit: int) -> "StateAbove":
    """Returns all histories that are one move longer, as one object."""
    states: list[Any] = []
    columns: list[Float64s] = []
    for state, before in zip(self.states, self.probabilities.T, strict=True):
      mover = view.mover(state)
      if mover == CHANCE:
        moves = dict(view.chance_outcomes(state))
      else:
        legal = view.legal_actions(state)
        strategy = look_up(state, mover)
        even = 1 / len(legal)
        moves = {
          action: even if strategy is None else strategy.get(action, 0.0) for action in legal
        }
      if len(states) + len(moves) > limit:
        raise errors.GameTooLargeError(
          f"One move after a public state of {view.game} there are more than {limit:,} histories. Raise max_histories."
        )
      for action, chance in moves.items():
        child = view.child(state, action)
        if view.mover(child) != TERMINAL:
          states.append(child)
          column = before.copy()
          column[1 + mover] *= chance
          columns.append(column)
    return StateAbove(states, np.array(columns).reshape(-1, 3).T)
