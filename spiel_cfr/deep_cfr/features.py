"""What networks see of infosets: vectors of numbers.

By default these are OpenSpiel's information state tensors. Where two infosets have the same tensor no network can tell
them apart, and where two states of one infoset have different ones there is nothing to look up by; both are refused.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.game_view import GameView

Float32s = npt.NDArray[np.float32]
# (state, player who is to move) -> numbers, always as many.
FeatureFunction: TypeAlias = Callable[[Any, int], Sequence[float]]
Features: TypeAlias = Literal["tensor", "one_hot"] | FeatureFunction

_OTHERWISE = (
  'Give the solver features="one_hot", a number of its own for each infoset of a compiled game, or a function of a '
  "state and a player that returns numbers."
)


class Encoder:
  """Turns states into vectors.

  Attributes:
    size: the length of these, 0 for "one_hot", which only a compiled game has.
  """

  def __init__(self, view: GameView, features: Features) -> None:
    """Looks at the game.

    Raises:
      ArgumentError: `features` is neither a name that is known nor a function.
      FeaturesError: the game has no information state tensors.
    """
    self._view = view
    if not callable(features):
      arguments.one_of(features, "features", ("tensor", "one_hot"), ", or a function")
    self.features = features
    self.size = 0
    if features == "tensor":
      if not view.game.get_type().provides_information_state_tensor:
        raise errors.FeaturesError(f"{view.game} has no information state tensors. {_OTHERWISE}")
      self.size = int(view.game.information_state_tensor_size())
    elif callable(features):
      state = view.new_initial_state()
      while state.is_chance_node():
        state.apply_action(view.chance_outcomes(state)[0][0])
      self.size = len(self._called(state, state.current_player(), None))

  def __call__(self, state: Any, player: int) -> Float32s:
    """Returns the features of a state at which a player is to move, shape (size,).

    Raises:
      ArgumentError: a function of the user's returns something else than as many finite numbers as before.
    """
    if callable(self.features):
      return self._called(state, player, self.size)
    return np.array(state.information_state_tensor(player), np.float32)

  def _called(self, state: Any, player: int, size: int | None) -> Float32s:
    found = self.features(state, player)  # type: ignore[operator]
    try:
      result = np.array(found, np.float32)
    except (TypeError, ValueError):
      result = np.zeros((0, 0), np.float32)
    if result.ndim != 1 or size not in (None, len(result)) or not np.isfinite(result).all():
      raise errors.ArgumentError(
        f"features has returned {arguments.shortened(found)} after the history [{state.history_str()}], not "
        f"{'finite numbers' if size is None else f'{size} finite numbers'}."
      )
    return result


def all_features(compiled: CompiledGame, encoder: Encoder) -> Float32s:
  """Returns the features of all infosets in order of discovery, all players' end to end, shape (infosets, features).

  One-hot features number each player's infosets by themselves.

  Raises:
    FeaturesError: two infosets of a player have the same features, or two states of one infoset different ones.
  """
  if encoder.features == "one_hot":
    most = max(map(len, compiled.infostates))
    numbers = np.concatenate([np.arange(len(own)) for own in compiled.infostates])
    # Pages of zeros that nobody writes to take no memory.
    one_hot = np.zeros((len(numbers), most), np.float32)
    one_hot[np.arange(len(numbers)), numbers] = 1.0
    return one_hot
  count = itertools.count()
  rows = [dict(zip(own, count, strict=False)) for own in compiled.infostates]
  result = np.zeros((compiled.num_infosets, encoder.size), np.float32)
  seen: list[bytes | None] = [None] * compiled.num_infosets
  view = compiled.view
  stack = [view.new_initial_state()]
  while stack:
    state = stack.pop()
    if state.is_terminal():
      continue
    if state.is_chance_node():
      moves = [action for action, _ in view.chance_outcomes(state)]
    else:
      moves, player = view.legal_actions(state), state.current_player()
      infostate = view.infostate(state)
      row = rows[player].get(infostate)
      if row is None:
        raise errors.InconsistentInfosetError(
          f"Player {player}'s infostate {infostate!r} is not in the compiled game. If that was read from a file, which "
          "keeps no action filter, compile it again."
        )
      found = encoder(state, player)
      before, now = seen[row], found.tobytes()
      if before is None:
        result[row], seen[row] = found, now
      elif before != now:
        raise errors.FeaturesError(
          f"Two states of player {player}'s infostate {infostate!r} have different features. {_OTHERWISE}"
        )
    stack += [state.child(action) for action in reversed(moves)]
  for infosets in rows:
    _check_that_all_differ(infosets, seen)
  return result


def _check_that_all_differ(infosets: dict[str, int], seen: Sequence[bytes | None]) -> None:
  known: dict[bytes | None, str] = {}
  shared = [
    (infostate, known[seen[row]])
    for infostate, row in infosets.items()
    if known.setdefault(seen[row], infostate) != infostate
  ]
  if shared:
    one, other = shared[-1]
    raise errors.FeaturesError(
      f"{len(shared):,} of {len(infosets):,} infosets of a player have the features of another, for example {one!r} "
      f"and {other!r}: no network can tell them apart. {_OTHERWISE}"
    )
