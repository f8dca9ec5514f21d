"""The infosets of one player, with their names and actions."""

import dataclasses
from collections.abc import Sequence

from spiel_cfr._numba.arrays import Int64s, Uint32s


@dataclasses.dataclass(frozen=True, eq=False)
class Infosets:
  """A player's infosets in order of discovery, which is the order of OpenSpiel's `TabularPolicy`.

  Attributes:
    infostates: the information state strings.
    actions: int64, legal actions, infoset by infoset, in one flat array.
    num_actions: int64 of shape (infosets,).
    position: uint32 of shape (infosets,): each infoset's place in the layout of the player's treeplex.
    first_sequence: uint32 of shape (infosets,): the sequence of each infoset's action 0.
    stride: uint32 of shape (infosets,): from there to the sequence of the next action.
  """

  infostates: Sequence[str]
  actions: Int64s
  num_actions: Int64s
  position: Uint32s
  first_sequence: Uint32s
  stride: Uint32s
