"""What histories are taken for in which some actions are left out: histories of kept actions alone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from spiel_cfr import errors
from spiel_cfr.abstraction.fewer_actions import Choices, Spot
from spiel_cfr.abstraction.translation import Translation
from spiel_cfr.kernels.arrays import Bools


class _Seen(NamedTuple):
  """A history of kept actions.

  Attributes:
    state: after it.
    way: see `Choices.look_up`.
    spot: the number of the spot there, None where nobody decides.
  """

  state: Any
  way: tuple[int, ...]
  spot: int | None


class Images:
  """What histories are taken for.

  Many histories are taken for the same few, so that these are looked at once.
  """

  def __init__(self, choices: Choices, kept: Bools, translate: Translation | None) -> None:
    self._choices, self._translate = choices, translate
    self._kept = [
      [action for action, unit in zip(spot.actions, spot.units, strict=True) if kept[unit]]
      for spot in choices.spots
    ]
    self._seen: dict[tuple[int, ...], _Seen] = {}
    self._moves: dict[tuple[tuple[int, ...], int], int] = {}

  def find(self, spot: Spot) -> int | None:
    """Returns the number of the spot that one is taken for."""
    taken_for: tuple[int, ...] = ()
    history = tuple(spot.state.history())
    for index, action in enumerate(history):
      seen = self._look_at(taken_for)
      if seen.state.is_chance_node():
        # An endgame lists a million deals at its root, where nothing has changed yet.
        if taken_for != history[:index] and action not in seen.state.legal_actions():
          return None
        taken_for += (action,)
        continue
      if seen.spot is None:
        return None
      move = self._moves.get((taken_for, action))
      if move is None:
        kept = self._kept[seen.spot]
        move = action
        if action not in kept:
          move = _taken_for(seen.state, action, kept, self._translate)
        self._moves[taken_for, action] = move
      taken_for += (move,)
    return self._look_at(taken_for).spot

  def _look_at(self, history: tuple[int, ...]) -> _Seen:
    found = self._seen.get(history)
    if found is not None:
      return found
    way: tuple[int, ...] = ()
    if history:
      before = self._look_at(history[:-1])
      state = before.state.child(history[-1])
      way = (*before.way, -1 if before.state.is_chance_node() else history[-1])
    else:
      state = self._choices.game.view.new_initial_state()
    spot = None
    if not state.is_terminal() and not state.is_chance_node():
      spot = self._choices.look_up(state, way)
    result = self._seen[history] = _Seen(state, way, spot)
    return result


def _taken_for(state: Any, action: int, kept: list[int], translate: Translation | None) -> int:
  if translate is None:
    return nearest(action, kept)
  found: Mapping[int, float] = translate(state, action)
  if not found or not set(found) <= set(kept):
    raise errors.AbstractionError(
      f"The translation takes action {action} after [{state.history_str()}] for {dict(found)}; it must return "
      f"probabilities of the kept actions {kept}."
    )
  return max(found, key=lambda each: found[each])


def nearest(action: int, actions: list[int]) -> int:
  """Returns the action with the nearest number."""
  return min(actions, key=lambda each: (abs(each - action), each))
