"""Feature vectors of all infosets of a compiled game, such as OpenSpiel's information state tensors."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spiel_cfr import errors
from spiel_cfr.games.openspiel.game_view import GameView

Float32s = npt.NDArray[np.float32]


def infoset_features(
  view: GameView,
  infostates: Sequence[Sequence[str]],
  encode: Callable[[Any, int], Float32s],
  size: int,
) -> Float32s:
  """Walks all states of a game and computes the features of their infosets.

  Args:
    view: the game.
    infostates: each player's infostates, in order of discovery.
    encode: function of a state and the player to move there; returns the features, float32 (size,).
    size: the number of features.

  Returns:
    float32 (infosets of all players, size), read-only.

  Raises:
    FeaturesError: two states of one infoset have different features.
    InconsistentInfosetError: a state has an infostate that is not in `infostates`.
  """
  next_row = itertools.count()
  rows = [dict(zip(names, next_row, strict=False)) for names in infostates]
  # The bytes of each row that is set.
  set_rows: list[bytes | None] = [None] * sum(map(len, rows))
  result = np.zeros((len(set_rows), size), np.float32)
  for state, _ in view.states():
    player = state.current_player()
    if player < 0:
      continue
    infostate = view.infostate(state)
    row = rows[player].get(infostate)
    if row is None:
      raise errors.InconsistentInfosetError(
        f"Player {player}'s infostate {infostate!r} is not in the compiled game. If the game was read from a file, "
        "which keeps no action filter, compile it again."
      )
    features = encode(state, player)
    if set_rows[row] is None:
      result[row], set_rows[row] = features, features.tobytes()
    elif set_rows[row] != features.tobytes():
      raise errors.FeaturesError(
        f"Two states of player {player}'s infostate {infostate!r} have different features, but an infoset has only "
        "one row. Pass a function of what the player knows, or strings."
      )
  result.flags.writeable = False
  return result


def information_state_tensor(state: Any, player: int) -> Float32s:
  """Returns OpenSpiel's tensor of a state."""
  return np.array(state.information_state_tensor(player), np.float32)


def tensor_size(view: GameView, otherwise: str) -> int:
  """Returns the length of a game's information state tensors.

  Raises:
    FeaturesError: the game has no tensors; the message ends with `otherwise`.
  """
  if not view.game.get_type().provides_information_state_tensor:
    raise errors.FeaturesError(f"{view.game} has no information state tensors. {otherwise}")
  return int(view.game.information_state_tensor_size())


def infoset_tensors(view: GameView, infostates: Sequence[Sequence[str]]) -> Float32s:
  """Returns OpenSpiel's information state tensors of all infosets, as `infoset_features` does.

  Raises:
    FeaturesError: the game has no tensors, or an infoset has several.
  """
  size = tensor_size(view, "Pass strings or states.")
  return infoset_features(view, infostates, information_state_tensor, size)
