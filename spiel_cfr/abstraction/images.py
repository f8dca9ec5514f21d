"""What histories are taken for in which some actions are left out: histories of kept actions alone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Bools
from spiel_cfr.abstraction.fewer_actions import Choices, Spot
from spiel_cfr.abstraction.translation import Translation


class _Seen(NamedTuple):
  """A history of kept actions.

  Attributes:
    state: after it.
    way: see `Choices.look_up`.
    spot: the number of the spot there, None where nobody decides.
    is_dealt: whether chance moves there.
    moves: what each action there is taken for that somebody has taken.
  """

  state: Any
  way: tuple[int, ...]
  spot: int | None
  is_dealt: bool
  moves: dict[int, int]


class Images:
  """What histories are taken for.

  Many histories are taken for the same few, and most begin as others do, so all of them are looked at once.
  """

  def __init__(self, choices: Choices, kept: Bools, translate: Translation | None) -> None:
    self._choices, self._translate = choices, translate
    self._kept = [
      [action for action, unit in zip(spot.actions, spot.units, strict=True) if kept[unit]]
      for spot in choices.spots
    ]
    self._seen: dict[tuple[int, ...], _Seen] = {}
    self._images: dict[tuple[int, ...], tuple[int, ...] | None] = {(): ()}

  def find(self, spot: Spot) -> int | None:
    """Returns the number of the spot that one is taken for."""
    history = tuple(spot.state.history())
    known = len(history)
    while history[:known] not in self._images:
      known -= 1
    taken_for = self._images[history[:known]]
    for index in range(known, len(history)):
      if taken_for is not None:
        taken_for = self._next(history[:index], taken_for, history[index])
      self._images[history[: index + 1]] = taken_for
    return None if taken_for is None else self._look_at(taken_for).spot

  def _next(
    self, history: tuple[int, ...], taken_for: tuple[int, ...], action: int
  ) -> tuple[int, ...] | None:
    """Returns what a history and an action are taken for, given what the history is taken for."""
    seen = self._look_at(taken_for)
    if seen.is_dealt:
      # An endgame lists a million deals at its root, where nothing has changed yet.
      possible = taken_for == history or action in seen.state.legal_actions()
      return (*taken_for, action) if possible else None
    if seen.spot is None:
      return None
    move = seen.moves.get(action)
    if move is None:
      kept = self._kept[seen.spot]
      move = action if action in kept else self._taken_for(seen.state, action, kept)
      seen.moves[action] = move
    return *taken_for, move

  def _look_at(self, history: tuple[int, ...]) -> _Seen:
    found = self._seen.get(history)
    if found is not None:
      return found
    way: tuple[int, ...] = ()
    if history:
      before = self._look_at(history[:-1])
      state = before.state.child(history[-1])
      way = (*before.way, -1 if before.is_dealt else history[-1])
    else:
      state = self._choices.game.view.new_initial_state()
    spot, is_dealt = None, state.is_chance_node()
    if not is_dealt and not state.is_terminal():
      spot = self._choices.look_up(state, way)
    result = self._seen[history] = _Seen(state, way, spot, is_dealt, {})
    return result

  def _taken_for(self, state: Any, action: int, kept: list[int]) -> int:
    if self._translate is None:
      return nearest(action, kept)
    found: Mapping[int, float] = self._translate(state, action)
    if not found or not set(found) <= set(kept):
      raise errors.AbstractionError(
        f"The translation takes action {action} after [{state.history_str()}] for {dict(found)}; it must return "
        f"probabilities of the kept actions {kept}."
      )
    return max(found, key=lambda each: found[each])


def nearest(action: int, actions: list[int]) -> int:
  """Returns the action with the nearest number."""
  return min(actions, key=lambda each: (abs(each - action), each))
