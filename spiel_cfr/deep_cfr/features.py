"""Features of infosets: the input vectors of networks, by default OpenSpiel's information state tensors.

Features must identify the infoset. FeaturesError is raised if two infosets of a player have equal features, or if two
states of one infoset have different features.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.openspiel.infoset_features import (
  Float32s,
  information_state_tensor,
  infoset_features,
  tensor_size,
)

# A function (state, player to move) -> numbers, whose result always has the same length.
FeatureFunction: TypeAlias = Callable[[Any, int], Sequence[float]]
Features: TypeAlias = Literal["tensor", "one_hot"] | FeatureFunction

# The end of error messages.
_ALTERNATIVES = (
  'Give the solver features="one_hot", which numbers the infosets of a compiled game, or a function of a state and a '
  "player that returns numbers."
)


class Encoder:
  """Function from states to features.

  Attributes:
    features: "tensor", "one_hot" or a function.
    size: int. The length of a state's features; 0 for "one_hot", which exists on compiled games only.
  """

  def __init__(self, view: GameView, features: Features) -> None:
    """Raises ArgumentError if `features` are invalid, FeaturesError if the game has no information state tensors."""
    if not callable(features):
      arguments.one_of(features, "features", ("tensor", "one_hot"), ", or a function")
    self.features = features
    self.size = 0
    if features == "tensor":
      self.size = tensor_size(view, _ALTERNATIVES)
    elif callable(features):
      state = view.new_initial_state()
      while state.is_chance_node():
        state.apply_action(view.chance_outcomes(state)[0][0])
      self.size = len(self._of_function(state, state.current_player(), None))

  def __call__(self, state: Any, player: int) -> Float32s:
    """Returns the features of a state, shape (size,).

    Raises:
      ArgumentError: a user's function returns something else than finite numbers of this length.
    """
    if callable(self.features):
      return self._of_function(state, player, self.size)
    return information_state_tensor(state, player)

  def _of_function(self, state: Any, player: int, size: int | None) -> Float32s:
    """Returns the features from a user's function, checked; any length is valid if `size` is None."""
    returned = self.features(state, player)  # type: ignore[operator]
    try:
      result = np.array(returned, np.float32)
    except (TypeError, ValueError):
      result = np.zeros((0, 0), np.float32)
    if result.ndim != 1 or size not in (None, len(result)) or not np.isfinite(result).all():
      raise errors.ArgumentError(
        f"features has returned {arguments.shortened(returned)} after the history [{state.history_str()}], not "
        f"{'finite numbers' if size is None else f'{size} finite numbers'}."
      )
    return result


def all_features(compiled: CompiledGame, encoder: Encoder) -> Float32s:
  """Returns the features of all infosets, shape (infosets, features), player by player in order of discovery.

  One-hot features of an infoset have a 1 at its number among the player's infosets.

  Raises:
    FeaturesError: two infosets of a player have the same features, or two states of one infoset different ones.
  """
  if encoder.features == "one_hot":
    width = max(map(len, compiled.infostates))
    numbers = np.concatenate([np.arange(len(infostates)) for infostates in compiled.infostates])
    # Pages of zeros take no memory until they are written.
    one_hot = np.zeros((len(numbers), width), np.float32)
    one_hot[np.arange(len(numbers)), numbers] = 1.0
    return one_hot
  if encoder.features == "tensor":
    result = compiled.information_state_tensors
  else:
    result = infoset_features(compiled.view, compiled.infostates, encoder, encoder.size)
  rows = iter(result)
  for infostates in compiled.infostates:
    _check_that_all_differ({infostate: next(rows).tobytes() for infostate in infostates})
  return result


def _check_that_all_differ(infosets: dict[str, bytes]) -> None:
  """Raises FeaturesError if two infosets have the same features; `infosets` maps infostates to features."""
  first_with: dict[bytes, str] = {}
  shared = [
    (infostate, first_with[features])
    for infostate, features in infosets.items()
    if first_with.setdefault(features, infostate) != infostate
  ]
  if shared:
    infostate, other = shared[-1]
    raise errors.FeaturesError(
      f"{len(shared):,} of {len(infosets):,} infosets of a player have the features of another, for example "
      f"{infostate!r} and {other!r}: no network can tell them apart. {_ALTERNATIVES}"
    )
