"""The infosets of one player, with their names and actions, and their numbers in the layout."""

import dataclasses
from collections.abc import Sequence

from spiel_cfr._numba.arrays import Int64s, Uint32s, range_starts


@dataclasses.dataclass(frozen=True, eq=False)
class Infosets:
  """A player's infosets in order of discovery, which is the order of OpenSpiel's `TabularPolicy`.

  `sequences` and `position` convert to the layout of the player's treeplex, see `Placement`.

  Attributes:
    infostates: sequence of str (infosets,). The information state strings.
    actions: int64 (actions,). The legal actions, infoset by infoset, end to end.
    num_actions: int64 (infosets,). The number of actions of each infoset.
    sequences: uint32 (1 + actions,). The empty sequence, and the sequence of each action, as numbered in the layout; in
      an abstraction, several actions may have the same.
    position: uint32 (infosets,). The index of each infoset in layout order, counted from the player's first infoset.
  """

  infostates: Sequence[str]
  actions: Int64s
  num_actions: Int64s
  sequences: Uint32s
  position: Uint32s

  @property
  def action_sequences(self) -> Uint32s:
    """The sequence of each action, `sequences` without the empty one; uint32 (actions,)."""
    return self.sequences[1:]


def entry_slices(all_infosets: Sequence[Infosets]) -> list[dict[str, slice]]:
  """Returns a dictionary for each player: infostate -> slice of its entries, the actions of all players end to end."""
  result, begin = [], 0
  for infosets in all_infosets:
    starts = begin + range_starts(infosets.num_actions)
    slices = map(slice, starts.tolist(), (starts + infosets.num_actions).tolist())
    result.append(dict(zip(infosets.infostates, slices, strict=True)))
    begin += len(infosets.actions)
  return result
