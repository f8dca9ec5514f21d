"""The infosets of one player, with their names and actions, and their numbers in the layout."""

import dataclasses
from collections.abc import Sequence

from spiel_cfr._numba.arrays import Int64s, Uint32s


@dataclasses.dataclass(frozen=True, eq=False)
class Infosets:
  """A player's infosets in order of discovery, which is the order of OpenSpiel's `TabularPolicy`.

  `action_sequences` and `position` convert to the layout of the player's treeplex.

  Attributes:
    infostates: sequence of str (infosets,). The information state strings.
    actions: int64 (actions,). The legal actions, infoset by infoset, end to end.
    num_actions: int64 (infosets,). The number of actions of each infoset.
    action_sequences: uint32 (actions,). The sequence of each action; in an abstraction, several may have the same.
    position: uint32 (infosets,). The index of each infoset in layout order, counted from the player's first infoset.
  """

  infostates: Sequence[str]
  actions: Int64s
  num_actions: Int64s
  action_sequences: Uint32s
  position: Uint32s
