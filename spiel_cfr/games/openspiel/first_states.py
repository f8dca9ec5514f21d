"""A state of every infoset: the first in the order of histories, as in OpenSpiel's `TabularPolicy`.

The walk notes the history that comes first to each infoset, as numbers in a row, in order of discovery:

    player, length of the history, its actions

One after the other, most of it is shared with the one before: so there are about as many states to make as infosets,
where another walk would make all states of the game.
"""

import array
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr.games.openspiel.game_view import GameView

IntArray: TypeAlias = npt.NDArray[np.integer[Any]]


# Numbers of eight bytes each that are kept before they are narrowed.
_NARROW_EVERY = 1 << 16


class FirstHistories:
  """Notes them, in as few bytes as they need."""

  def __init__(self) -> None:
    """Makes an empty list."""
    self._new = array.array("q")
    self._narrowed: list[IntArray] = []

  def add(self, player: int, history: Sequence[int]) -> None:
    """Notes the history that comes first to an infoset."""
    self._new.extend((player, len(history), *history))

  def collect(self) -> None:
    """Narrows what is new; call it every few thousand infosets."""
    if len(self._new) >= _NARROW_EVERY:
      self._narrow()

  def all(self) -> IntArray:
    """Returns all that was noted."""
    self._narrow()
    return np.concatenate(self._narrowed)

  def _narrow(self) -> None:
    wide = np.array(self._new)
    low, high = int(wide.min(initial=0)), int(wide.max(initial=0))
    least = np.result_type(np.min_scalar_type(low), np.min_scalar_type(high))
    self._narrowed.append(wide.astype(least))
    del self._new[:]


def first_states(
  view: GameView,
  infostates: Sequence[Sequence[str]],
  first_histories: IntArray | None = None,
) -> list[Any]:
  """Finds the first state of every infoset.

  Args:
    view: the game.
    infostates: each player's, as `enumerate_game` returns them.
    first_histories: as `enumerate_game` returns them too; without them, the game is walked until all are found.

  Returns:
    The states, player by player in the order of `infostates`.

  Raises:
    InconsistentInfosetError: the game has no such infostate.
  """
  if first_histories is None:
    return _found(view, infostates)
  numbers = first_histories.tolist()
  states: list[list[Any]] = [[] for _ in infostates]
  # The states on the way to the last one that was found.
  way = [view.new_initial_state()]
  taken: list[int] = way[0].history()
  before, begin = len(taken), 0
  while begin < len(numbers):
    player, length = numbers[begin : begin + 2]
    begin += 2 + length
    history = numbers[begin - length : begin]
    shared = before
    while shared < min(len(taken), length) and taken[shared] == history[shared]:
      shared += 1
    del way[shared - before + 1 :]
    for action in history[shared:]:
      way.append(way[-1].child(action))
    taken = history
    states[player].append(way[-1])
  return [state for own in states for state in own]


def _found(view: GameView, infostates: Sequence[Sequence[str]]) -> list[Any]:
  found: list[dict[str, Any]] = [dict.fromkeys(own) for own in infostates]
  missing = sum(map(len, infostates))
  stack = [view.new_initial_state()]
  while missing and stack:
    state = stack.pop()
    if state.is_terminal():
      continue
    if state.is_chance_node():
      actions = [action for action, _ in view.chance_outcomes(state)]
    else:
      actions = view.legal_actions(state)
      known = found[state.current_player()]
      infostate = view.infostate(state)
      if infostate in known and known[infostate] is None:
        known[infostate] = state
        missing -= 1
    stack.extend(state.child(action) for action in sorted(actions, key=str, reverse=True))
  for player, states in enumerate(found):
    for infostate, state in states.items() if missing else ():
      if state is None:
        raise errors.InconsistentInfosetError(
          f"{view.game} has no infostate {infostate!r} of player {player}."
        )
  return [state for states in found for state in states.values()]
